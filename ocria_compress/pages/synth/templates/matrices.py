"""Makers of tables whose figures are all of a kind: statistics, comparisons, plans of a week."""

from __future__ import annotations

from collections.abc import Sequence

from ocria_compress.pages.synth.document import Cell, Table, text
from ocria_compress.pages.synth.templates.grids import Grid, Rules, rules_of
from ocria_compress.pages.synth.templates.sheet import EM_PER_CHARACTER, Sheet
from ocria_compress.pages.synth.templates.values import value

_MARGIN = 9 + 2


def years(s: Sheet, many: int) -> list[str]:
    """Years one after the other."""
    first = s.rng.randint(1990, 2025 - many)
    return [str(first + step) for step in range(many)]


def matrix(
    s: Sheet,
    rows: Sequence[str],
    groups: Sequence[str],
    *,
    corner: str,
    kind: str = "number",
    subs: Sequence[str] = (),
    sub_kinds: Sequence[str] = (),
    size: int = 0,
    spans: bool | None = None,
    pairs: Sequence[str] = (),
    total: str = "",
    side: bool = False,
    rules: Rules | None = None,
) -> Table:
    """A table of rows by columns.

    Args:
        s: the page.
        rows: names of the rows; those that are too many for `size` are left out.
        groups: names of the columns, or of the groups of columns where cells may span; too many for the width are
            left out.
        corner: what stands above the rows' names.
        kind: of the values (see `values.value`).
        subs: heads of the columns within each group.
        sub_kinds: kinds of the values below each of them.
        size: about how many reference characters; 0 draws it.
        spans: whether cells span; as the page needs when None.
        pairs: names that each come once for two or three rows, in a column of their own before the rows' names.
        total: a last row with this name.
        side: whether the rows' names are header cells.
        rules: which lines are drawn.
    """
    spans = s.wants("spans", 0.4) if spans is None else spans
    size = min(size or s.rng.randint(250, 800), max(150, s.left))
    inner = list(subs) if spans and len(subs) > 1 else []
    paired = list(pairs) if spans and (not inner or s.chance(0.4)) else []
    groups, cells = _columns(s, rows, groups, kind, inner, sub_kinds, bool(paired))
    head_rows = 2 if inner else 1
    cost = 10 + _MARGIN + max(map(len, rows)) * 0.8 + sum(9 + len(text) for text in cells[0])
    many = max(2, min(len(rows), 12, round((size - 17) / cost - head_rows)))
    names = [*rows[:many], *([total] if total and many > 2 else [])]
    places: list[list[Cell | None]] = []
    for r, name in enumerate(names):
        row: list[Cell | None] = [Cell(text(name), header=side)]
        row += [Cell(text(each) if each else (), align="right") for each in cells[r]]
        places.append(row)
    done = Grid(places)
    lead = 1
    if paired:
        lead = 2
        _pair(s, done, paired, bool(total and many > 2))
    done.places[:0] = _heads(s, groups, inner, corner, lead)
    if spans and not any(cell and cell.rowspan * cell.colspan > 1 for row in done.places for cell in row):
        above = [Cell(header=True), Cell(text(s.words(1, 2)), 1, len(groups), True, "center")]
        if len(groups) > 1:
            done.places[:0] = [[*above, *[None] * (len(groups) - 1)]]
            done.merge(0, 0, 2, 1, corner)
        else:
            done.places[:0] = [[Cell(text(s.words(1, 2)), 1, 2, True, "center"), None]]
    return done.table(s, rules or rules_of(s))


def _columns(
    s: Sheet,
    rows: Sequence[str],
    groups: Sequence[str],
    kind: str,
    inner: list[str],
    kinds: Sequence[str],
    paired: bool,
) -> tuple[list[str], list[list[str]]]:
    """As many groups as the width takes (one at least), with the texts of all their cells."""
    kept = list(groups)
    each = max(1, len(inner))
    while True:
        texts = [
            [value(s, kinds[c % each] if inner and kinds else kind) for c in range(each * len(kept))]
            for _ in range(min(len(rows), 13) + 1)
        ]
        heads = inner * len(kept) if inner else kept
        width = sum(
            max(max(len(row[c]) for row in texts) * EM_PER_CHARACTER, len(heads[c]) * 0.56) + 1.2
            for c in range(len(heads))
        )
        width += min(max(map(len, rows)) * EM_PER_CHARACTER, max(5.0, s.width / 4)) + 1.2 + (5 if paired else 0)
        if width <= s.width or len(kept) == 1:
            return kept, texts
        kept.pop()


def _pair(s: Sheet, done: Grid, names: Sequence[str], total: bool) -> None:
    """A column before all others whose cells stand for two or three rows each."""
    rows = len(done.places) - total
    for row in done.places:
        row.insert(0, Cell())
    start, turn = 0, 0
    while start < rows:
        left = rows - start
        length = left if left <= 3 else s.rng.choice((2, 2, 3 if left != 4 else 2))
        first = done.places[start][0]
        assert first is not None
        done.places[start][0] = Cell(text(names[turn % len(names)]), header=first.header)
        if length > 1:
            done.merge(start, 0, length, 1)
        start, turn = start + length, turn + 1
    if total:
        name = done.places[-1].pop(1)
        assert name is not None
        done.places[-1][0] = Cell(name.content, 1, 2, name.header)
        done.places[-1].insert(1, None)


def _heads(s: Sheet, groups: list[str], inner: list[str], corner: str, lead: int) -> list[list[Cell | None]]:
    down = 2 if inner else 1
    filled = text(corner) if corner else ()
    first: list[Cell | None] = [Cell(filled, down, lead, True), *[None] * (lead - 1)]
    if not inner:
        return [[*first, *(Cell(text(name), header=True, align="right") for name in groups)]]
    second: list[Cell | None] = [None] * lead
    for name in groups:
        first += [Cell(text(name), 1, len(inner), True, "center"), *[None] * (len(inner) - 1)]
        second += [Cell(text(sub), header=True, align="right") for sub in inner]
    return [first, second]


def week(s: Sheet, days: Sequence[str], times: Sequence[str], *, size: int = 0, spans: bool | None = None) -> Table:
    """A plan of days by times: cells with words, some over two times or two days, a break over all days."""
    spans = s.wants("spans", 0.5) if spans is None else spans
    size = min(size or s.rng.randint(300, 800), max(150, s.left))
    kept = list(days)[: max(2, min(len(days), int((s.width - 5) / 6)))]
    most = int((s.width - 5) / len(kept) * 1.7)
    many = max(2, min(len(times), 10, round((size - 40) / (20 + len(kept) * 18)) - 1))
    places: list[list[Cell | None]] = []
    for time in times[:many]:
        row: list[Cell | None] = [Cell(text(time), header=True)]
        for _ in kept:
            row.append(Cell(text(s.fitting(lambda _: s.words(1, 2), most)) if s.chance(0.85) else ()))
        places.append(row)
    done = Grid(places)
    if spans:
        if many > 2 and s.chance(0.7):
            done.merge(s.rng.randint(1, many - 1), 1, 1, len(kept), s.says("break", "lunch"))
        for _ in range(s.rng.randint(1, 3)):
            down = s.chance(0.6) and many > 1
            place = s.rng.randint(1, len(kept) - (not down))
            done.merge(s.rng.randrange(max(1, many - down)), place, 2 if down else 1, 1 if down else 2)
    head: list[Cell | None] = [Cell(text(s.say("time")) if s.chance(0.7) else (), header=True)]
    done.places.insert(0, [*head, *(Cell(text(day), header=True, align="center") for day in kept)])
    if spans and not any(cell and cell.rowspan * cell.colspan > 1 for row in done.places for cell in row):
        done.merge(1, 1, 1, 2)
    return done.table(s, "grid")


def comparison(
    s: Sheet, features: Sequence[str], products: Sequence[str], *, size: int = 0, spans: bool = False
) -> Table:
    """Products side by side: what each has, cells joined where it is the same for several."""
    kinds = ("yes", "yes", "number", "quantity", "dot")
    table = matrix(
        s, features, products, corner=s.say("feature"), size=size, spans=False, kind="yes", side=s.chance(0.5)
    )
    done = Grid([list(row) for row in table.rows])
    for row in range(1, len(done.places)):
        kind = s.rng.choice(kinds)
        for column in range(1, len(done.places[0])):
            cell = done.places[row][column]
            assert cell is not None
            made = value(s, kind)
            if len(made) > max(6, int(s.width / len(done.places[0]) * 1.6)):
                made = value(s, "yes")
            done.places[row][column] = Cell(text(made) if made else (), align="center")
    if spans:
        columns = len(done.places[0])
        for row in range(1, len(done.places)):
            if columns > 2 and (s.chance(0.4) or row == 1):
                length = s.rng.randint(2, columns - 1)
                done.merge(row, s.rng.randint(1, columns - length), 1, length, value(s, s.rng.choice(kinds[:4])))
        if columns <= 2 and len(done.places) > 2:
            done.merge(1, 1, 2, 1)
    return done.table(s, "grid" if spans else None)
