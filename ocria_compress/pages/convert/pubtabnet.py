"""PubTabNet: JSON Lines with one table a line as HTML tokens, and images of the tables, in folders by split or not.

The cells of `thead` become header cells. Bold and italic become Markdown's, but not in header cells that are bold as a
whole; other tags in cells (`sup`, `sub`) stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import (
    Items,
    Options,
    data_files,
    existing,
    json_lines,
    page_id,
    peek,
    tidy_tables,
)

ORIGIN = "PubTabNet"
LICENCE = (
    "CDLA-Permissive-1.0 (annotations); images under the PMC Open Access Subset terms",
    "images of tables, not pages, cut from articles: their use must abide by the PMC Open Access Subset terms",
)


def matches(source: Path) -> bool:
    """Whether the first line of a JSONL file is a table of tokens."""
    return any(_is_table(peek(path)) for path in data_files(source, ".jsonl"))


def _is_table(record: dict[str, Any]) -> bool:
    html = record.get("html")
    return "filename" in record and isinstance(html, dict) and {"cells", "structure"} <= html.keys()


def read(source: Path, options: Options) -> Items:
    """The tables in the order of the file."""
    items: Items = []
    for path in data_files(source, ".jsonl"):
        for where, record in json_lines(path):
            if isinstance(record, OcriaError):
                items.append(record)
                continue
            try:
                items.append(_table(record, path.parent, where, options))
            except OcriaError as error:
                items.append(error)
            except (KeyError, TypeError, AttributeError) as error:
                items.append(OcriaError(f"this line has not the form of PubTabNet's ({error!r})", where=where))
    return items


def _table(record: dict[str, Any], root: Path, where: str, options: Options) -> Any:
    name = record["filename"]
    image = existing(root, name, where, record.get("split", ""), f"images/{record.get('split', '')}", "images")
    reference = tidy_tables(table_html(record["html"], where), where)
    meta = {"imgid": record.get("imgid"), "pubtabnet_split": record.get("split")}
    return options.page(page_id(name), image, name, reference, meta=meta, origin=where)


def table_html(html: dict[str, Any], where: str) -> str:
    """A table's HTML out of its structure's and its cells' tokens.

    Raises:
        OcriaError: there are more or fewer cells than the structure has.
    """
    cells = [_cell("".join(cell["tokens"])) for cell in html["cells"]]
    tokens = html["structure"]["tokens"]
    slots = sum(token.endswith("</td>") for token in tokens)
    if slots != len(cells):
        raise OcriaError(f"the table's structure has {slots} cells and {len(cells)} are given", where=where)
    parts, at, head = [], 0, False
    for token in tokens:
        head = token == "<thead>" or (head and token != "</thead>")
        if token.endswith("</td>"):
            text = re.sub(r"^\*\*((?:(?!\*\*).)*)\*\*$", r"\1", cells[at]) if head else cells[at]
            token = f"{token.removesuffix('</td>')}{text}</td>"
            at += 1
        parts.append(token.replace("<td", "<th").replace("</td", "</th") if head else token)
    return f"<table>{''.join(parts)}</table>"


def _cell(content: str) -> str:
    for tag, mark in (("b", "**"), ("i", "*"), ("strike", "~~")):
        content = re.sub(rf"<{tag}>(\s*)</{tag}>", r"\1", content)
        content = re.sub(rf"<{tag}>(\s*)(.*?)(\s*)</{tag}>", rf"\1{mark}\2{mark}\3", content)
    return re.sub(r"</?(?:underline|overline)>", "", content)
