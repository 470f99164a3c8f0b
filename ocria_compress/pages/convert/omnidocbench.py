"""OmniDocBench: one JSON list of pages with their layout, and the pages' images in `images/`.

A page's reference is put together from the blocks that have a place in the reading order. Heads, feet, page numbers and
what the annotators masked or ignored are left out; so are figures. Titles carry no level there, so all are `#`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import (
    Items,
    Options,
    data_files,
    existing,
    page_id,
    read_text,
    tidy_tables,
)
from ocria_compress.pages.convert.latex_tables import latex_table

ORIGIN = "OmniDocBench"
LICENCE = (
    "research only, not for commercial use",
    "the pages were collected from the web: their makers allow research only, and ask to be told of rights they missed",
)
_LEFT_OUT = ("header", "footer", "page_number", "abandon", "figure", "equation_semantic")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def matches(source: Path) -> bool:
    """Whether a JSON file is a list of pages with `layout_dets`."""
    return _annotations(source) is not None


def _annotations(source: Path) -> Path | None:
    for path in data_files(source, ".json"):
        with path.open("rb") as file:
            start = file.read(1 << 16)
        is_list = start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"[")
        if is_list and (b'"layout_dets"' in start or b'"page_info"' in start):
            return path
    return None


def read(source: Path, options: Options) -> Items:
    """The pages in the order of the file."""
    path = _annotations(source)
    if path is None:
        raise OcriaError("there is no JSON list of pages with 'layout_dets'", where=str(source))
    try:
        pages = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise OcriaError(f"this file is not JSON: {error}", where=str(path)) from error
    items: Items = []
    for number, page in enumerate(pages, 1):
        where = f"{path}, page {number} of the list"
        try:
            items.append(_page(page, path.parent, where, options))
        except OcriaError as error:
            items.append(error)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            items.append(OcriaError(f"this page has not the form of OmniDocBench's ({error!r})", where=where))
    return items


def _page(page: dict[str, Any], root: Path, where: str, options: Options) -> Any:
    info = page["page_info"]
    name = PurePosixPath(info["image_path"]).name
    image = existing(root, name, where, "images")
    blocks, masked = _blocks(page, where)
    meta = {"page_attribute": info.get("page_attribute", {}), "page_no": info.get("page_no")}
    if masked:
        meta["masked"] = masked  # parts of the page that the reference does not have
    if not blocks:
        meta["blank"] = True
    reference = "\n\n".join(blocks)
    return options.page(page_id(name), image, name, reference, meta=meta, origin=where)


def _blocks(page: dict[str, Any], where: str) -> tuple[list[str], int]:
    found = [block for block in page["layout_dets"] if not block.get("ignore") and block.get("order") is not None]
    found.sort(key=lambda block: float(block["order"]))
    texts: dict[Any, str] = {}
    kinds: dict[Any, str] = {}
    masked = sum(block.get("category_type", "").endswith("_mask") for block in page["layout_dets"])
    for number, block in enumerate(found):
        kind = block["category_type"]
        if kind in _LEFT_OUT or kind.endswith("_mask"):
            continue
        key = block.get("anno_id", f"block {number}")
        text = _text(kind, block, f"{where}, block {key}")
        if text:
            texts[key], kinds[key] = text, kind
    for relation in (page.get("extra") or {}).get("relation", []):
        if (relation.get("relation_type") or relation.get("relation")) == "truncated":
            _join(texts, relation.get("source_anno_id"), relation.get("target_anno_id"))
    return list(texts.values()), masked


def _join(texts: dict[Any, str], first: Any, second: Any) -> None:
    """A paragraph that a column or page break cut in two is one paragraph again, where it begins."""
    if first == second or first not in texts or second not in texts:
        return
    head, tail = texts[first], texts.pop(second)
    close = bool(_CJK.match(head[-1]) and _CJK.match(tail[0]))
    if head.endswith("-") and head[-2:-1].isalpha() and tail[0].islower():
        head, close = head[:-1], True
    texts[first] = head + ("" if close else " ") + tail


def _text(kind: str, block: dict[str, Any], where: str) -> str:
    if kind == "table":
        if block.get("html"):
            return tidy_tables(block["html"], where)
        if block.get("latex"):
            return latex_table(block["latex"], where)
        raise OcriaError("this table has neither 'html' nor 'latex'", where=where)
    if kind == "equation_isolated":
        latex = (block.get("latex") or block.get("text") or "").strip()
        latex = re.sub(r"^(?:\$\$|\\\[|\$)\s*|\s*(?:\$\$|\\\]|\$)$", "", latex)
        return f"$${latex}$$" if latex else ""
    text = (block.get("text") or block.get("latex") or "").strip()
    if kind == "title":
        return "# " + " ".join(text.lstrip("# ").split()) if text else ""
    if kind == "code_txt":
        return f"```\n{text}\n```" if text and not text.startswith("```") else text
    return text
