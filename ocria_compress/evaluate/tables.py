"""Finds the tables of a Markdown text: HTML tables and pipe tables, with what is broken in them repaired.

What is a tag: table tags and common tags of text (`INLINE`, `BLOCKS`). Every other `<` stands for itself, because
references and models write `<`, `>` and `&` as printed: `p < 0.05`, `<LOD`.

A cell's text: tags taken out (`<br>` and the like become a space), entities that end in `;` decoded, pairs
of `**` taken out as `<b>` is, whitespace collapsed. A single `*` stays: in tables it is mostly a mark of significance.

Repairs, after HTML's own rules for tables where there are such (https://html.spec.whatwg.org/multipage/parsing.html):
a row or cell ends where the next one begins; a cell without a row gets one; a table that is never closed ends where the
next table begins, or at the first empty line after its last tag, and is flagged; a table inside a cell becomes text of
that cell, one between cells gives its rows to the outer one, and the outer one is flagged. Text between cells, captions
included, belongs to no cell and is left out. Fenced code is searched too: models like to put their tables there.

Pipe tables are those of GitHub Flavored Markdown (https://github.github.com/gfm/#tables-extension-), but rows, the
header too, may have any number of cells: missing ones are filled up with empty ones, and what is too much is kept.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

INLINE = (
    "a|abbr|b|big|cite|code|del|em|font|i|img|input|ins|label|mark|math|mfrac|mi|mn|mo|mrow|msub|msup|q|s|samp|small|"
    "span|strike|strong|sub|sup|tt|u|var"
)
"""Tags inside a line of text: they leave nothing behind."""
BLOCKS = "blockquote|br|center|dd|div|dl|dt|h1|h2|h3|h4|h5|h6|hr|li|ol|p|pre|ul"
"""Tags that part lines: they leave a space."""

MOST_SPANNED = 1000
"""The largest `colspan` and `rowspan`; HTML's own limit for columns."""

_PARTS = "table|thead|tbody|tfoot|tr|td|th|caption|colgroup|col"
_TAG = re.compile(rf"<(/?)({_PARTS}|{INLINE}|{BLOCKS})(?=[\s/>])([^<>]*)>", re.IGNORECASE)
_INLINE_NAMES, _PART_NAMES = frozenset(INLINE.split("|")), frozenset(_PARTS.split("|"))
_SPAN = re.compile(r"\b(rowspan|colspan)\s*=\s*[\"']?\s*(\d{1,9})", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_BOLD = re.compile(r"\*\*(?=\S)(.{1,500}?)(?<=\S)\*\*", re.DOTALL)
_EMPTY_LINE = re.compile(r"\n[ \t\r]*\n")
_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_PIPE = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell, in the row where it begins.

    Attributes:
        text: what stands in it, as the module says.
        rowspan, colspan: how many rows and columns it covers, 1 to `MOST_SPANNED`; what is no such number is 1.
        header: whether it is a `th` (in a pipe table: stands above the line).
        raw: what stands between its tags, untouched.
    """

    text: str
    rowspan: int = 1
    colspan: int = 1
    header: bool = False
    raw: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Section:
    """Rows that belong together: `thead`, `tbody`, `tfoot`, or `""` for rows that stand in the table itself."""

    tag: str
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; two are equal when their sections, cells and spans are.

    Attributes:
        sections: the rows, top to bottom.
        kind: how it was written.
        closed: false where the text ended, or another table began, before its end tag.
        nested: whether a table stood inside it.
        start, end: where it stands in the text, in characters; `end` is behind its last one.
    """

    sections: tuple[Section, ...]
    kind: Literal["html", "pipe"] = field(default="html", compare=False)
    closed: bool = field(default=True, compare=False)
    nested: bool = field(default=False, compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """All rows, each with the cells that begin in it, left to right."""
        return tuple(row for section in self.sections for row in section.rows)

    def grid(self) -> list[list[Cell | None]]:
        """The cell at each place [row][column], as HTML lays a table out; a cell is at every place it covers.

        Rows have one length; None where no cell is. What hangs over the last row is cut; of two cells at one place the
        later one is kept.
        """
        rows = self.rows
        places: list[dict[int, Cell]] = [{} for _ in rows]
        for at, row in enumerate(rows):
            column = 0
            for cell in row:
                while column in places[at]:
                    column += 1
                for covered in places[at : at + cell.rowspan]:
                    covered.update(dict.fromkeys(range(column, column + cell.colspan), cell))
                column += cell.colspan
        width = max((max(row, default=-1) + 1 for row in places), default=0)
        return [[row.get(column) for column in range(width)] for row in places]


def find_tables(text: str) -> list[Table]:
    """The tables of a Markdown text in the order in which they begin; never fails, whatever the text."""
    text = _without_comments(text)
    found = list(_html_tables(text))
    pieces, at = [], 0
    for table in found:
        pieces.append((at, table.start))
        at = table.end
    for start, end in [*pieces, (at, len(text))]:
        found.extend(_pipe_tables(text[start:end], start))
    return sorted(found, key=lambda table: table.start)


def _without_comments(text: str) -> str:
    """The text with spaces where comments were, so that places stay; by hand: a pattern takes n^2 for `<!--<!--...`."""
    pieces, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        pieces += [text[at:start], " " * (end + 3 - start)]
        at = end + 3
    return "".join([*pieces, text[at:]])


def clean_text(raw: str) -> str:
    """What is read in a cell: see the module's description."""
    if "<" in raw:
        raw = _TAG.sub(lambda tag: "" if tag[2].lower() in _INLINE_NAMES else " ", raw)
    if "&" in raw:
        raw = decode_entities(raw)
    if "**" in raw:
        raw = _BOLD.sub(r"\1", raw)
    return " ".join(raw.split())


def decode_entities(raw: str) -> str:
    """Entities that end in `;` as characters; `AT&T` and `&copy` (no semicolon) stay as they are."""
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), raw)


def markup_tokens(raw: str) -> list[str]:
    """A cell's content in characters, each tag one token (`<b>`, attributes left out): what published TEDS compares."""
    tokens: list[str] = []
    at = 0
    for tag in _TAG.finditer(raw):
        tokens += decode_entities(raw[at : tag.start()])
        tokens.append(f"<{tag[1]}{tag[2].lower()}>")
        at = tag.end()
    return tokens + list(decode_entities(raw[at:]))


def _html_tables(text: str) -> Iterator[Table]:
    tags = list(_TAG.finditer(text))
    closings = _matching(tags)
    at = 0
    while at < len(tags):
        if tags[at][2].lower() != "table" or tags[at][1]:
            at += 1
            continue
        closing = closings.get(at)
        if closing is not None:
            last, end, closed = closing, tags[closing].end(), True
        else:
            last = next((i for i in range(at + 1, len(tags)) if _is(tags[i], "table")), len(tags))
            limit = tags[last].start() if last < len(tags) else len(text)
            end, closed = _end_of_unclosed(text, tags[at:last], limit), False
        table = _Builder(text).build(tags[at : last + closed], end, closed)
        if closed or table.rows:  # otherwise it is a word about the tag
            yield table
        at = last + 1 if closed else last


def _matching(tags: list[re.Match[str]]) -> dict[int, int]:
    """Which end tag closes which table, by index; what is left over has none."""
    pairs, open_ = {}, []
    for index, tag in enumerate(tags):
        if tag[2].lower() != "table":
            continue
        if not tag[1]:
            open_.append(index)
        elif open_:
            pairs[open_.pop()] = index
    return pairs


def _is(tag: re.Match[str], name: str) -> bool:
    return tag[2].lower() == name


def _end_of_unclosed(text: str, tags: list[re.Match[str]], limit: int) -> int:
    last = [tag for tag in tags if tag[2].lower() in _PART_NAMES][-1]
    found = _EMPTY_LINE.search(text, last.end(), limit)
    return found.start() if found else limit


class _Builder:
    """Builds one table out of its tags."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sections: list[tuple[str, list[list[Cell]]]] = []
        self.rows: list[list[Cell]] | None = None  # of the open section
        self.row: list[Cell] | None = None
        self.cell: re.Match[str] | None = None  # the open cell's tag
        self.depth = 0  # of tables inside the open cell
        self.nested = False

    def build(self, tags: list[re.Match[str]], end: int, closed: bool) -> Table:
        for tag in tags[1 : len(tags) - closed]:
            self._take(tag)
        self._end_cell(tags[-1].start() if closed else end)
        sections = tuple(Section(name, tuple(tuple(row) for row in rows)) for name, rows in self.sections)
        return Table(sections, "html", closed, self.nested, tags[0].start(), end)

    def _take(self, tag: re.Match[str]) -> None:
        name, closing = tag[2].lower(), bool(tag[1])
        if name == "table":
            self.nested = True
            if self.cell is not None:
                self.depth += -1 if closing else 1
            return
        if self.depth or name not in _PART_NAMES:
            return
        self._end_cell(tag.start())
        if name in ("td", "th"):
            self.cell = None if closing else tag
            return
        self.row = None
        if name == "tr" and not closing:
            self._new_row()
        elif name in ("thead", "tbody", "tfoot"):
            self.rows = None
            if not closing:
                self.rows = []
                self.sections.append((name, self.rows))

    def _new_row(self) -> list[Cell]:
        if self.rows is None:
            self.rows = []
            self.sections.append(("", self.rows))
        row: list[Cell] = []
        self.row = row
        self.rows.append(row)
        return row

    def _end_cell(self, at: int) -> None:
        if self.cell is None:
            return
        spans = {name.lower(): int(number) for name, number in _SPAN.findall(self.cell[3])}
        rowspan, colspan = (spans.get(name, 1) for name in ("rowspan", "colspan"))
        raw = self.text[self.cell.end() : at]
        row = self._new_row() if self.row is None else self.row
        row.append(Cell(clean_text(raw), _span(rowspan), _span(colspan), self.cell[2].lower() == "th", raw))
        self.cell = None


def _span(number: int) -> int:
    return min(max(number, 1), MOST_SPANNED)


def _pipe_tables(text: str, offset: int) -> Iterator[Table]:
    if "|" not in text:
        return
    lines = text.split("\n")
    starts = [offset]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    at = 0
    while at + 1 < len(lines):
        if "|" not in lines[at] or "|" not in lines[at + 1] or not _DELIMITER.match(lines[at + 1]):
            at += 1
            continue
        end = at + 2
        while end < len(lines) and "|" in lines[end]:
            end += 1
        rows = [_split(line) for line in (lines[at], *lines[at + 2 : end])]
        width = max(len(rows[0]), len(_split(lines[at + 1])))
        cells = [
            tuple(Cell(clean_text(raw), header=number == 0, raw=raw) for raw in row + [""] * (width - len(row)))
            for number, row in enumerate(rows)
        ]
        sections = (Section("thead", (cells[0],)), *([Section("tbody", tuple(cells[1:]))] if cells[1:] else []))
        yield Table(sections, "pipe", start=starts[at], end=starts[end] - 1)
        at = end


def _split(line: str) -> list[str]:
    """The cells of a pipe table's row."""
    line = line.strip()
    line = line[1:] if line.startswith("|") else line
    cells = _PIPE.split(line)
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.replace("\\|", "|").strip() for cell in cells]
