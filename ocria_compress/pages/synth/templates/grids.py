"""Makers of tables: records (one kind of value a column) and matrices (one kind of value throughout).

Both are written into a `Grid`, whose merges cannot leave holes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth.document import Cell, Run, Table, text
from ocria_compress.pages.synth.templates.sheet import EM_PER_CHARACTER, Sheet
from ocria_compress.pages.synth.templates.values import value

Align = Literal["left", "center", "right"]
Rules = Literal["grid", "rows", "head", "none"]

PADDING_EM = 1.2
HEAD_EM = 0.56
WAYS = ("head", "groups", "total", "section", "merge")

# What stands in the columns, by the key of their head.
_KINDS = {
    "position": "count",
    "number": "count",
    "line": "small",
    "points": "small",
    "quantity": "small",
    "qty": "small",
    "count": "integer",
    "stock": "integer",
    "unit": "unit",
    "unit_price": "money",
    "price": "money",
    "amount": "money",
    "total": "money",
    "debit": "money",
    "credit": "money",
    "balance": "money",
    "vat": "rate",
    "discount": "rate",
    "share": "percent",
    "change": "change",
    "weight": "quantity",
    "dose": "quantity",
    "distance": "quantity",
    "value": "number",
    "result": "number",
    "min": "number",
    "typ": "number",
    "max": "number",
    "mean": "number",
    "deviation": "number",
    "plan": "number",
    "actual": "number",
    "limit": "range",
    "range": "range",
    "date": "date",
    "deadline": "date",
    "due_date": "date",
    "departure": "time",
    "arrival": "time",
    "time": "time",
    "start": "time",
    "end": "time",
    "name": "name",
    "responsible": "name",
    "speaker": "name",
    "contact": "name",
    "company": "company",
    "part_no": "part",
    "serial_no": "part",
    "model": "part",
    "type": "part",
    "reference": "reference",
    "document_no": "reference",
    "location": "shelf",
    "room": "shelf",
    "symbol": "symbol",
    "status": "status",
    "optional": "yes",
    "inspected": "yes",
    "year": "year",
    "age": "ages",
}
_RIGHT = frozenset(["small", "integer", "money", "rate", "percent", "change", "number", "year", "quantity"])


class Column(NamedTuple):
    """A column of a table of records."""

    head: str
    kind: str
    make: Callable[[], str]
    drop: int = 0

    @property
    def align(self) -> Align:
        """Figures stand at the right."""
        return "right" if self.kind in _RIGHT else "left"


class Grid:
    """A rectangle of places, each holding the cell that begins there, or None where another one covers it."""

    def __init__(self, places: list[list[Cell | None]]) -> None:
        self.places = places

    def merge(self, row: int, column: int, rowspan: int, colspan: int, content: str | None = None) -> bool:
        """Let the cell at a place cover more; false (and nothing done) where a merged cell is in the way, or where no
        cell would begin in a row any more."""
        region = [
            (r, c)
            for r in range(row, row + rowspan)
            for c in range(column, column + colspan)
            if r < len(self.places) and c < len(self.places[0])
        ]
        cells = [self.places[r][c] for r, c in region]
        if len(region) != rowspan * colspan or len(region) < 2:
            return False
        if any(cell is None or cell.rowspan > 1 or cell.colspan > 1 for cell in cells):
            return False
        columns = range(column, column + colspan)
        if not all(
            any(cell and c not in columns for c, cell in enumerate(r)) for r in self.places[row + 1 : row + rowspan]
        ):
            return False
        for r, c in region:
            self.places[r][c] = None
        first = cells[0]
        assert first is not None
        made = replace(first, rowspan=rowspan, colspan=colspan)
        self.places[row][column] = made if content is None else replace(made, content=text(content) if content else ())
        return True

    def table(self, s: Sheet, rules: Rules | None = None) -> Table:
        """The grid as a table in one of the usual looks."""
        rows = tuple(tuple(cell for cell in row if cell is not None) for row in self.places)
        chosen = rules or rules_of(s)
        if chosen in ("head", "none") and any(cell.rowspan > 1 for row in rows for cell in row if not cell.header):
            chosen = s.rng.choice(("grid", "rows"))  # without lines nothing shows how far down a cell reaches
        return Table(rows, chosen, shade=s.chance(0.4), stretch=s.chance(0.4))


def rules_of(s: Sheet) -> Rules:
    """Lines of a table in natural shares."""
    return s.rng.choice(("grid", "grid", "grid", "rows", "rows", "head", "none"))


def grid(table: Table) -> list[list[Cell]]:
    """The cell at every place of a table's rectangle.

    Raises:
        OcriaError: the cells overlap, leave a hole or stick out.
    """
    rows = len(table.rows)
    columns = sum(cell.colspan for cell in table.rows[0]) if rows else 0
    places: list[list[Cell | None]] = [[None] * columns for _ in range(rows)]
    for r, row in enumerate(table.rows):
        c = 0
        for cell in row:
            while c < columns and places[r][c] is not None:
                c += 1
            if c + cell.colspan > columns or r + cell.rowspan > rows:
                raise OcriaError("a table cell sticks out of its table", where=f"row {r + 1}, column {c + 1}")
            for y in range(r, r + cell.rowspan):
                for x in range(c, c + cell.colspan):
                    if places[y][x] is not None:
                        raise OcriaError("two table cells overlap", where=f"row {y + 1}, column {x + 1}")
                    places[y][x] = cell
    full = [[cell for cell in row if cell is not None] for row in places]
    if not columns or any(len(row) != columns for row in full):
        raise OcriaError("the cells of a table leave a hole", where=f"{rows} rows, {columns} columns")
    return full


def columns_of(s: Sheet, keys: str) -> list[Column]:
    """Columns by the keys of their heads, apart by spaces; those with question marks go first where width is short."""
    made = []
    for key in keys.split():
        bare = key.rstrip("?")
        kind = _KINDS.get(bare, "words")
        if kind == "money":
            kind = "amount" if s.chance(0.2) else "number"
        if kind == "count":
            make: Callable[[], str] = partial(next, map(str, range(s.rng.choice((1, 1, 1, 10)), 999)))
        else:
            make = partial(value, s, kind)
        made.append(Column(s.say(bare), kind, make, len(key) - len(bare)))
    return made


def _widths(column: Sequence[str], head: str, most: float = 11.0) -> tuple[float, float]:
    """Least and comfortable width of a column, in ems."""
    words = [len(word) for cell in column for word in cell.split(" ")]
    heads = [len(word) for word in head.split(" ")]
    least = max(max(words, default=1) * EM_PER_CHARACTER, max(heads) * HEAD_EM) + PADDING_EM
    longest = max((len(cell) for cell in column), default=1) * EM_PER_CHARACTER + PADDING_EM
    return least, max(least, min(longest, most))


def _fits(s: Sheet, cells: list[list[str]], heads: Sequence[str]) -> bool:
    widths = [_widths(column, head) for column, head in zip(cells, heads, strict=True)]
    return sum(w for w, _ in widths) <= s.width * 0.94 and sum(w for _, w in widths) <= s.width * 1.1


def _drawn(s: Sheet, columns: list[Column], many: int) -> tuple[list[Column], list[list[str]]]:
    """As many of the columns as the width takes, two at least, and `many` texts for each of them."""
    cells = [[column.make() for _ in range(many)] for column in columns]
    while not _fits(s, cells, [column.head for column in columns]) and len(columns) > 2:
        order = [(column.drop, place) for place, column in enumerate(columns)]
        place = max(order)[1] if max(order)[0] else len(columns) - 2
        columns = columns[:place] + columns[place + 1 :]
        del cells[place]
    for column, texts in zip(columns, cells, strict=True):
        most = int(s.width / len(columns) * 1.6)
        for place, old in enumerate(texts):
            if column.kind in ("words", "company", "name") and len(old) > most:
                texts[place] = s.words(1, 1) if column.kind == "words" else s.fitting(lambda _: column.make(), most)  # noqa: B023
    return columns, cells


def records(
    s: Sheet,
    keys: str,
    *,
    size: int = 0,
    spans: bool | None = None,
    ways: Sequence[str] = WAYS,
    header: bool = True,
    totals: Sequence[str] = ("total",),
    empties: float = 0.03,
    rules: Rules | None = None,
) -> Table:
    """A table of records.

    Args:
        s: the page.
        keys: heads of the columns (see `columns_of`).
        size: about how many reference characters; 0 draws it.
        spans: whether cells reach over several places; as the page needs when None.
        ways: how they may: a "head" above several heads, row "groups" in the first column, "total" rows, "section"
            rows, "merge" of neighbours.
        header: whether there is a row of heads.
        totals: labels of the rows of sums.
        empties: share of empty cells.
        rules: which lines are drawn.
    """
    spans = s.wants("spans", 0.4) if spans is None else spans
    size = min(size or s.rng.randint(250, 800), max(150, s.left))
    rules = rules or rules_of(s)
    columns, cells = _drawn(s, columns_of(s, keys), 13)
    cost = 10 + sum(9 + sum(map(len, texts)) / len(texts) for texts in cells)
    chosen = _chosen(s, [way for way in ways if header or way != "head"], len(columns)) if spans else set()
    if "merge" in chosen:
        rules = "grid"  # only its lines tell a cell over two places from an empty one beside it
    plain_sum = not spans and rules == "grid" and columns[-1].kind in _RIGHT and s.chance(0.4)
    sums = list(totals) if "total" in chosen or plain_sum else []
    extra = bool(header) + ("head" in chosen) + len(sums) * 0.8
    many = max(2 if size > 240 else 1, min(12, round((size - 17) / cost - extra)))
    if "groups" in chosen:
        many = max(2, many)
    body: list[list[Cell | None]] = [
        [_cell(s, columns[c], cells[c][r], empties if c else 0.0) for c in range(len(columns))] for r in range(many)
    ]
    done = Grid(body)
    if "groups" in chosen:
        _group_rows(s, done)
    if "merge" in chosen:
        _merge_some(s, done)
    if "section" in chosen:
        _sections(s, done, len(columns))
    for key in sums:
        done.places.append(_total(s, columns, s.say(key), spans))
    if header:
        done.places[:0] = _heads(s, columns, "head" in chosen)
    if spans and not any(cell and cell.rowspan * cell.colspan > 1 for row in done.places for cell in row):
        done.places[:0] = [[Cell(text(s.words(1, 3)), 1, len(columns), True, "center"), *[None] * (len(columns) - 1)]]
    return done.table(s, rules)


def _chosen(s: Sheet, ways: Sequence[str], columns: int) -> set[str]:
    ways = [way for way in ways if way != "head" or columns > 2]
    if not ways:
        return set()
    return set(s.rng.sample(ways, min(len(ways), s.rng.choice((1, 1, 2)))))


def _cell(s: Sheet, column: Column, content: str, empties: float) -> Cell:
    if s.chance(empties) or not content:
        return Cell(text(s.rng.choice(("–", "n/a"))) if s.chance(0.3) else (), align=column.align)
    return Cell((Run(content, "bold" if s.chance(0.004) else "plain"),), align=column.align)


def _heads(s: Sheet, columns: list[Column], grouped: bool) -> list[list[Cell | None]]:
    heads: list[Cell | None] = [Cell(text(column.head), header=True, align=column.align) for column in columns]
    if not grouped or len(columns) < 3:
        return [heads]
    start = s.rng.randint(1, len(columns) - 2)
    length = s.rng.randint(2, min(3, len(columns) - start))
    label = s.rng.choice(
        (s.says("result", "value", "amount", "quarter", "range"), s.words(1, 2), str(s.rng.randint(1990, 2026)))
    )
    above: list[Cell | None] = []
    for place, cell in enumerate(heads):
        assert cell is not None
        if place < start or place >= start + length:
            above.append(replace(cell, rowspan=2))
            heads[place] = None
        else:
            above.append(Cell(text(label), 1, length, True, "center") if place == start else None)
    return [above, heads]


def _group_rows(s: Sheet, done: Grid) -> None:
    row = 0
    while row < len(done.places):
        left = len(done.places) - row
        length = left if left <= 3 else s.rng.choice((2, 2, 3, min(4, left - 1)))
        if length > 1:
            done.merge(row, 0, length, 1)
        row += length


def _merge_some(s: Sheet, done: Grid) -> None:
    rows, columns = len(done.places), len(done.places[0])
    for _ in range(s.rng.randint(1, 3)):
        if s.chance(0.5) and columns > 2:
            done.merge(s.rng.randrange(rows), s.rng.randrange(1, columns - 1), 1, 2)
        elif rows > 1:
            done.merge(s.rng.randrange(rows - 1), s.rng.randrange(columns), 2, 1)


def _sections(s: Sheet, done: Grid, columns: int) -> None:
    free = [0] + [row for row in range(1, len(done.places)) if all(done.places[row])]
    places = sorted({0, *s.rng.sample(free, min(len(free), s.rng.randint(1, 3)))}, reverse=True)
    for place in places:
        made = Cell(text(s.words(1, 2)), 1, columns, header=s.rng.random() < 0.5)
        done.places.insert(place, [made, *[None] * (columns - 1)])


def _total(s: Sheet, columns: list[Column], label: str, spans: bool) -> list[Cell | None]:
    last = Cell(text(columns[-1].make()), align=columns[-1].align)
    many = len(columns)
    bold = s.chance(0.15)
    first = Cell((Run(label, "bold" if bold else "plain"),), align="right" if s.chance(0.4) else "left")
    if spans and many > 2:
        return [replace(first, colspan=many - 1), *[None] * (many - 2), last]
    return [first, *[Cell() for _ in range(many - 2)], last]
