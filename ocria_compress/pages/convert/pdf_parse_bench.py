"""pdf-parse-bench: a list of blocks a document in `ground_truth/NAME.json`, and `pdfs/NAME.pdf`, of one page.

A formula in the text stands between the two texts around it, in one paragraph. Tables are LaTeX and become HTML.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import Items, Options, existing, read_text
from ocria_compress.pages.convert.latex_tables import latex_table

ORIGIN = "pdf-parse-bench"
LICENCE = (
    "CC-BY-SA-4.0 (formulas of Wikipedia); MIT (the package)",
    "the origin of the tables is not named in its licence: ask before passing them on",
)


def matches(source: Path) -> bool:
    """Whether there are folders `ground_truth` and `pdfs` beside each other."""
    return bool(_sets(source))


def _sets(source: Path) -> list[Path]:
    if not source.is_dir():
        return []
    found = [source, *sorted(path for path in source.iterdir() if path.is_dir())]
    return [path for path in found if (path / "ground_truth").is_dir() and (path / "pdfs").is_dir()]


def read(source: Path, options: Options) -> Items:
    """The documents in the order of their names."""
    items: Items = []
    sets = _sets(source)
    for folder in sets:
        for path in sorted((folder / "ground_truth").glob("*.json")):
            relative = path.stem if folder == source else f"{folder.name}/{path.stem}"
            try:
                pdf = existing(folder, f"{path.stem}.pdf", str(path), "pdfs")
                reference, meta = _reference(path)
            except OcriaError as error:
                items.append(error)
                continue
            name = relative.replace("/", "-")
            items.append(options.page(name, pdf, f"{relative}.pdf", reference, 1, meta=meta, origin=str(path)))
    return items


def _reference(path: Path) -> tuple[str, dict[str, Any]]:
    from ocria_compress.pages.pdf import page_count

    pages = page_count(path.parent.parent / "pdfs" / f"{path.stem}.pdf")
    if pages != 1:
        raise OcriaError(f"this document has {pages} pages and one reference", where=str(path))
    try:
        blocks = json.loads(read_text(path))
        kinds = [block["type"].strip() for block in blocks]
        data = [block["data"].strip() for block in blocks]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise OcriaError(f"this file has not the form of pdf-parse-bench's ({error!r})", where=str(path)) from error
    parts: list[str] = []
    for number, (kind, text) in enumerate(zip(kinds, data, strict=True)):
        if kind.endswith("-formula"):
            text = _formula(text)
        elif kind == "table":
            text = latex_table(text, f"{path}, block {number + 1}")
        elif kind != "text":
            raise OcriaError(f"there is no block of the type '{kind}'", where=f"{path}, block {number + 1}")
        runs_on = kind == "inline-formula" or (number and kinds[number - 1] == "inline-formula" and kind == "text")
        if parts and runs_on and kinds[number - 1] in ("text", "inline-formula"):
            parts[-1] += " " + text
        else:
            parts.append(text)
    complexity = sorted({str(block["complexity"]) for block in blocks if "complexity" in block})
    return "\n\n".join(parts), {"table_complexity": complexity} if complexity else {}


def _formula(text: str) -> str:
    """LaTeX without the space at its ends, between as many dollar signs as it had."""
    mark = "$$" if text.startswith("$$") else "$"
    inner = text.strip("$").strip()
    if (len(inner) - len(inner.rstrip("\\"))) % 2:  # "\\ " at the end is a space, too
        inner = inner[:-1].rstrip()
    return f"{mark}{inner}{mark}"
