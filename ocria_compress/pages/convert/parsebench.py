"""ParseBench: JSON Lines with one rule a line, each of a document (PDF, JPG or PNG) below the file's folder.

A page's rules are kept in `meta.tests`, as they are, for evaluation. Where a rule carries the whole page as Markdown
(`original_md`), that is the reference, without its head and foot; the tables of `expected_markdown` are not the whole
page, so they stay with their rules.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import IMAGES, Items, Options, data_files, existing, json_lines, page_id, peek

ORIGIN = "ParseBench"
LICENCE = (
    "Apache-2.0 (annotations); documents of third parties",
    "the documents are publicly available ones of third parties without a licence each: ask before passing them on",
)
_FURNITURE = re.compile(r"<(page_header|page_footer)>.*?</\1>", re.DOTALL)


def matches(source: Path) -> bool:
    """Whether the first line of a JSONL file is a rule."""
    return any({"pdf", "category", "id", "type", "rule"} <= peek(path).keys() for path in data_files(source, ".jsonl"))


def read(source: Path, options: Options) -> Items:
    """The pages in the order of their first rules."""
    items: Items = []
    rules: dict[tuple[str, int], list[dict[str, Any]]] = {}
    places: dict[tuple[str, int], str] = {}
    roots: dict[tuple[str, int], Path] = {}
    for path in data_files(source, ".jsonl"):
        for where, record in json_lines(path):
            fault = record if isinstance(record, OcriaError) else _fault(record, where)
            if isinstance(record, OcriaError) or fault is not None:
                items.append(fault)  # type: ignore[arg-type]
                continue
            key = (record["pdf"], record.get("page") or 1)
            kept = {k: v for k, v in record.items() if k not in ("pdf", "page") and v is not None}
            rules.setdefault(key, []).append(kept)
            places.setdefault(key, where)
            roots.setdefault(key, path.parent)
    many = {name for name, page in rules if page > 1}
    for (name, page), found in rules.items():
        where = places[name, page]
        try:
            file = existing(roots[name, page], name, where)
            items.append(_page(name, page, found, file, name in many, where, options))
        except OcriaError as error:
            items.append(error)
        except (KeyError, TypeError, AttributeError) as error:
            items.append(OcriaError(f"these rules have not the form of ParseBench's ({error!r})", where=where))
    return items


def _page(
    name: str, page: int, rules: list[dict[str, Any]], file: Path, many: bool, where: str, options: Options
) -> Any:
    image = file.suffix.lower() in IMAGES
    if image and page != 1:
        raise OcriaError(f"page {page} of an image is asked for", where=where)
    meta = {
        "tests": rules,
        "categories": sorted({rule["category"] for rule in rules}),
        "tags": sorted({tag for rule in rules for tag in rule.get("tags", [])}),
    }
    relative = page_id(name.removeprefix("docs/"), page, 2 if many else 1)
    place = f"{file}, {where}"
    return options.page(relative, file, name, _whole(rules), None if image else page, meta=meta, origin=place)


def _whole(rules: list[dict[str, Any]]) -> str | None:
    for rule in rules:
        text = json.loads(rule["rule"]).get("original_md")
        if isinstance(text, str) and (text := _FURNITURE.sub("", text).strip()):
            return text
    return None


def _fault(record: dict[str, Any], where: str) -> OcriaError | None:
    for key in ("pdf", "category", "id", "type", "rule"):
        if not isinstance(record.get(key), str):
            return OcriaError(f"'{key}' of this rule is {record.get(key)!r}", where=where)
    if not isinstance(record.get("page"), int | None):
        return OcriaError(f"'page' of this rule is {record['page']!r}", where=where)
    try:
        rule = json.loads(record["rule"])
    except (ValueError, RecursionError) as error:
        return OcriaError(f"'rule' of this rule is not JSON: {error}", where=where)
    return None if isinstance(rule, dict) else OcriaError("'rule' of this rule is not a JSON object", where=where)
