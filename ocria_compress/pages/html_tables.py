"""The HTML tables of a reference: found, read into rows of cells, and their structure checked.

Not an HTML parser: references write `<`, `>` and `&` as they are printed, so only the tags of tables count as tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_SPAN = 500
"""The largest `rowspan` or `colspan` that is taken seriously."""

_TAG = re.compile(r"<(/?)(table|caption|colgroup|col|thead|tbody|tfoot|tr|td|th)(\s[^<>]*)?/?>", re.IGNORECASE)
_SPAN = re.compile(r"""\b(rowspan|colspan)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+))""", re.IGNORECASE)

_PARENTS = {
    "table": {"", "td", "th"},
    "caption": {"table"},
    "colgroup": {"table"},
    "thead": {"table"},
    "tbody": {"table"},
    "tfoot": {"table"},
    "tr": {"table", "thead", "tbody", "tfoot"},
    "td": {"tr"},
    "th": {"tr"},
}


@dataclass(frozen=True)
class Fault:
    """Something wrong with a reference.

    Attributes:
        line: where, from 1.
        what: one sentence.
    """

    line: int
    what: str


@dataclass
class RawCell:
    """A cell as written; `content` is the text between its tags, inner tables included."""

    line: int
    header: bool = False
    rowspan: int = 1
    colspan: int = 1
    content: str = ""


@dataclass
class RawTable:
    """A table as written: the cells that begin in each row; `start` and `end` are its place in the text."""

    line: int
    start: int
    end: int = 0
    caption: str = ""
    rows: list[list[RawCell]] = field(default_factory=list)


@dataclass
class _Open:
    name: str
    line: int
    behind: int
    table: RawTable | None = None
    cell: RawCell | None = None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[_Open] = []
        self.tables: list[RawTable] = []
        self.faults: list[Fault] = []
        self.counted, self.line = 0, 1

    def line_at(self, position: int) -> int:
        self.line += self.text.count("\n", self.counted, position)
        self.counted = position
        return self.line

    def read(self) -> None:
        for match in _TAG.finditer(self.text):
            name, line = match[2].lower(), self.line_at(match.start())
            if name == "col":
                continue
            if match[1]:
                self.close(name, line, match)
            else:
                self.begin(name, line, match)
        for left in self.open:
            self.faults.append(Fault(left.line, f"<{left.name}> is not closed"))

    def begin(self, name: str, line: int, match: re.Match[str]) -> None:
        parent = self.open[-1].name if self.open else ""
        if parent not in _PARENTS[name]:
            place = f"inside <{parent}>" if parent else "outside a table"
            self.faults.append(Fault(line, f"<{name}> {place}"))
            if not self.open:
                return
        opened = _Open(name, line, match.end())
        table = next((each.table for each in reversed(self.open) if each.table), None)
        if name == "table":
            opened.table = RawTable(line, match.start())
        elif table is not None and name == "tr":
            table.rows.append([])
        elif table is not None and name in ("td", "th"):
            opened.cell = self.cell(name, line, match[3] or "")
            if not table.rows:
                table.rows.append([])
            table.rows[-1].append(opened.cell)
        self.open.append(opened)

    def cell(self, name: str, line: int, attributes: str) -> RawCell:
        cell = RawCell(line, name == "th")
        for match in _SPAN.finditer(attributes):
            key, value = match[1].lower(), (match[2] or match[3] or match[4] or "").strip()
            if not (value.isascii() and value.isdigit() and 1 <= int(value) <= MAX_SPAN):
                self.faults.append(Fault(line, f'{key}="{value[:20]}" is not a number from 1 to {MAX_SPAN}'))
            else:
                setattr(cell, key, int(value))
        return cell

    def close(self, name: str, line: int, match: re.Match[str]) -> None:
        names = [each.name for each in self.open]
        within = names[len(names) - 1 - names[::-1].index("table") :] if "table" in names else []
        if name not in within:
            self.faults.append(Fault(line, f"</{name}> closes nothing"))
            return
        while self.open[-1].name != name:
            left = self.open.pop()
            self.faults.append(Fault(left.line, f"<{left.name}> is not closed before </{name}> in line {line}"))
            self.finish(left, match)
        self.finish(self.open.pop(), match)

    def finish(self, closed: _Open, match: re.Match[str]) -> None:
        if closed.cell is not None:
            closed.cell.content = self.text[closed.behind : match.start()].strip()
        if closed.table is not None:
            closed.table.end = match.end()
            self.tables.append(closed.table)
        if closed.name == "caption" and self.open and self.open[-1].table is not None:
            self.open[-1].table.caption = self.text[closed.behind : match.start()].strip()


def read_tables(text: str) -> tuple[list[RawTable], list[Fault]]:
    """Every table of a text (inner ones before those they are in), and what is wrong with their tags and grids."""
    reader = _Reader(text)
    reader.read()
    faults = reader.faults + [fault for table in reader.tables for fault in grid_faults(table)]
    return reader.tables, sorted(faults, key=lambda fault: fault.line)


def grid_faults(table: RawTable) -> list[Fault]:
    """What is wrong with the places that the cells of a table take, laid out as HTML says.

    Found are: no cell at all; a cell over another; a `rowspan` that goes below the last row; rows of unequal width.
    """
    if not any(table.rows):
        return [Fault(table.line, "a table without cells")]
    faults: list[Fault] = []
    taken: set[tuple[int, int]] = set()
    for y, row in enumerate(table.rows):
        x = 0
        for cell in row:
            while (y, x) in taken:
                x += 1
            if y + cell.rowspan > len(table.rows):
                faults.append(Fault(cell.line, f'rowspan="{cell.rowspan}" goes below the last row of the table'))
            places = {(y + i, x + j) for i in range(cell.rowspan) for j in range(cell.colspan)}
            if places & taken:
                faults.append(Fault(cell.line, "cells overlap: a colspan runs into a rowspan from above"))
            taken |= places
    widths = [max((x + 1 for y, x in taken if y == row), default=0) for row in range(len(table.rows))]
    holes = sum(widths) - sum(1 for y, _ in taken if y < len(table.rows))
    if len(set(widths)) > 1 or holes:
        usual = max(set(widths), key=lambda width: (widths.count(width), width))
        odd = next((i for i, width in enumerate(widths) if width != usual), 0)
        line = table.rows[odd][0].line if table.rows[odd] else table.line
        faults.append(Fault(line, f"row {odd + 1} has {widths[odd]} columns where most have {usual}"))
    return faults
