"""What is in a page set: counts, sizes, references, what the pages are said to be, duplicates."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ocria_compress.errors import OcriaError, nearest
from ocria_compress.pages.html_tables import read_tables
from ocria_compress.pages.page_record import Page
from ocria_compress.pages.pageset import PageSet
from ocria_compress.pages.reference import without_code

_SAID = ("split", "licence", "source")
_META = ("language", "template", "route", "strata", "effects", "format", "categories", "tags")


@dataclass(frozen=True)
class Range:
    """The smallest, the middle and the largest of some figures."""

    least: int
    middle: float
    most: int

    def __str__(self) -> str:
        return f"{self.least:,} to {self.most:,}, median {self.middle:,.0f}"


@dataclass
class Summary:
    """What is in a page set.

    Attributes:
        pages: how many.
        kinds: files by their suffix.
        widths, heights: pixels.
        megapixels: of all pages.
        references: how many pages have one.
        characters, tokens: of the references; tokens by mini's tokenizer. None where there are none.
        contents: how many pages have tables, tables with spans, formulas, lists, footnotes, tests.
        said: what the records say, by key (split, licence, and from meta language, template ...): values and pages.
        same_reference, same_pixels: groups of ids of pages that are equal.
    """

    pages: int
    kinds: dict[str, int]
    widths: Range
    heights: Range
    megapixels: float
    references: int
    characters: Range | None
    tokens: Range | None
    contents: dict[str, int]
    said: dict[str, dict[str, int]] = field(default_factory=dict)
    same_reference: list[list[str]] = field(default_factory=list)
    same_pixels: list[list[str]] = field(default_factory=list)


def summarize(pages: PageSet, advance: Callable[[int, int], None] = lambda done, total: None) -> Summary:
    """Reads every page and its reference.

    Args:
        pages: the set.
        advance: called with how many pages are done, and how many there are.

    Raises:
        OcriaError: as `Page.open`.
    """
    pixels: dict[str, list[str]] = defaultdict(list)
    for done, page in enumerate(pages, 1):
        image = page.open()
        pixels[hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()].append(page.id)
        advance(done, len(pages))
    texts: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        if page.reference is not None:
            texts[page.reference].append(page.id)
    references = [page.reference for page in pages if page.reference is not None]
    return Summary(
        pages=len(pages),
        kinds=dict(Counter(_kind(page) for page in pages).most_common()),
        widths=_range([page.width for page in pages]),
        heights=_range([page.height for page in pages]),
        megapixels=sum(page.width * page.height for page in pages) / 1e6,
        references=len(references),
        characters=_range([len(text) for text in references]) if references else None,
        tokens=_range(_tokens(references)) if references else None,
        contents=_contents(pages),
        said=_said(pages),
        same_reference=[ids for ids in texts.values() if len(ids) > 1],
        same_pixels=[ids for ids in pixels.values() if len(ids) > 1],
    )


def choose(pages: PageSet, count: int, ids: Sequence[str] = ()) -> list[Page]:
    """Pages to look at: those named, else `count` of them, spread evenly over the set.

    Raises:
        OcriaError: a page that is named is not in the set.
    """
    if ids:
        known = {page.id: page for page in pages}
        for name in ids:
            if name not in known:
                raise OcriaError(f"there is no page '{name}' ({nearest(name, list(known))})", where=str(pages.folder))
        return [known[name] for name in ids]
    total = len(pages)
    count = min(count, total)
    return [pages.pages[i * total // count] for i in range(count)]


def _kind(page: Page) -> str:
    return "of PDFs" if page.page is not None else page.image.suffix.lstrip(".").upper()


def _range(values: list[int]) -> Range:
    return Range(min(values), float(median(values)), max(values))


def _tokens(texts: list[str]) -> list[int]:
    from tokenizers import Tokenizer

    from ocria_compress.bundled import mini_folder

    tokenizer = Tokenizer.from_file(str(mini_folder() / "tokenizer.json"))
    return [len(encoding.ids) for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]


def _contents(pages: PageSet) -> dict[str, int]:
    import re

    counts: Counter[str] = Counter()
    for page in pages:
        text, _ = without_code(page.reference or "")
        tables, _ = read_tables(text)
        cells = [cell for table in tables for row in table.rows for cell in row]
        found = {
            "tables": bool(tables) or bool(re.search(r"^\s*\|?\s*:?-{2,}:?\s*\|", text, re.MULTILINE)),
            "tables with spans": any(cell.rowspan > 1 or cell.colspan > 1 for cell in cells),
            "formulas": bool(re.search(r"\$\$.+?\$\$|\$(?![\s\d])[^$\n]*[\\^_{][^$\n]*\$", text, re.DOTALL)),
            "headings": bool(re.search(r"^#{1,6} ", text, re.MULTILINE)),
            "lists": bool(re.search(r"^\s*(?:[-*+]|\d+[.)]) ", text, re.MULTILINE)),
            "footnotes": "[^" in text,
            "tests instead of a reference": page.reference is None and bool(page.meta.get("tests")),
        }
        counts.update(name for name, is_there in found.items() if is_there)
    return dict(counts)


def _said(pages: PageSet) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for page in pages:
        for key in _SAID:
            counts[key][getattr(page, key)] += 1
        for key in _META:
            for value in _values(page.meta.get(key)):
                counts[key][value] += 1
    if len(counts["source"]) > 8:  # a source for each page is no grouping
        del counts["source"]
    return {key: dict(count.most_common()) for key, count in counts.items()}


def _values(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list):
        return [str(each) for each in value] or ["none"]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    return [str(value)]
