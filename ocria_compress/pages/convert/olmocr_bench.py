"""olmOCR-bench: JSON Lines with one test a line, each of a page of a PDF in `pdfs/`.

There is no whole reference: a page's tests are kept in `meta.tests`, as they are, for evaluation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError, nearest
from ocria_compress.pages.convert.common import Items, Options, data_files, existing, json_lines, page_id, peek

ORIGIN = "olmOCR-bench"
LICENCE = (
    "ODC-BY-1.0 (tests); PDFs of third parties",
    "the PDFs are documents of third parties without a licence each: use them for scoring, ask before passing them on",
)
TYPES = ("baseline", "present", "absent", "order", "table", "math", "format", "footnote")


def matches(source: Path) -> bool:
    """Whether the first line of a JSONL file is a test of a page."""
    return any(
        {"pdf", "page", "id", "type"} <= record.keys() and "rule" not in record  # a rule is ParseBench's
        for record in map(peek, data_files(source, ".jsonl"))
    )


def read(source: Path, options: Options) -> Items:
    """The pages in the order of their first tests."""
    items: Items = []
    tests: dict[tuple[str, int], list[dict[str, Any]]] = {}
    places: dict[tuple[str, int], str] = {}
    roots: dict[tuple[str, int], Path] = {}
    seen: set[str] = set()
    for path in data_files(source, ".jsonl"):
        for where, record in json_lines(path):
            if isinstance(record, OcriaError) or (fault := _fault(record, where, seen)):
                items.append(record if isinstance(record, OcriaError) else fault)  # type: ignore[arg-type]
                continue
            key = (record["pdf"], record["page"])
            tests.setdefault(key, []).append({k: v for k, v in record.items() if k not in ("pdf", "page")})
            places.setdefault(key, where)
            roots.setdefault(key, path.parent)
    pages: dict[str, int] = {}
    for pdf, page in tests:
        pages[pdf] = max(page, pages.get(pdf, 1))
    for (pdf, page), found in tests.items():
        where = places[pdf, page]
        try:
            file = existing(roots[pdf, page], pdf, where, "pdfs")
        except OcriaError as error:
            items.append(error)
            continue
        name = page_id(pdf, page, pages[pdf])
        items.append(options.page(name, file, pdf, None, page, meta={"tests": found}, origin=f"{file}, {where}"))
    return items


def _fault(record: dict[str, Any], where: str, seen: set[str]) -> OcriaError | None:
    for key, kind in (("pdf", str), ("page", int), ("id", str), ("type", str)):
        if not isinstance(record.get(key), kind):
            return OcriaError(f"'{key}' of this test is {record.get(key)!r}", where=where)
    if record["type"] not in TYPES:
        return OcriaError(
            f"there is no test of the type '{record['type']}' ({nearest(record['type'], list(TYPES))})", where=where
        )
    if record["id"] in seen:
        return OcriaError(f"the test id '{record['id']}' occurs twice", where=where)
    seen.add(record["id"])
    return None
