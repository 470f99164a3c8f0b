"""Tables: column widths by content, spans, rules and shades."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ocria_compress.pages.synth.document import Cell, Table
from ocria_compress.pages.synth.draw.flow import Line, Type, Word, break_lines, height, longest_word, set_lines, words
from ocria_compress.pages.synth.draw.marks import Fill, Mark
from ocria_compress.pages.synth.draw.place import Miss, Outcome, Placed, Room, Setting
from ocria_compress.pages.synth.draw.visible import bold_headers

LEAST_BODY_ROWS = 2
"""A table is cut so that at least so many body rows stay."""


@dataclass(slots=True)
class Spot:
    """A cell in the grid: its first row and column, its words, and its lines once its width is known."""

    cell: Cell
    row: int
    column: int
    kind: Type
    words: list[Word]
    lines: list[Line]

    @property
    def end_row(self) -> int:
        """The first row below it."""
        return self.row + self.cell.rowspan

    @property
    def end_column(self) -> int:
        """The first column right of it."""
        return self.column + self.cell.colspan


def grid(rows: tuple[tuple[Cell, ...], ...]) -> list[tuple[int, int, Cell]]:
    """Row and column of every cell, as HTML places them."""
    taken: set[tuple[int, int]] = set()
    found = []
    for row, cells in enumerate(rows):
        column = 0
        for cell in cells:
            while (row, column) in taken:
                column += 1
            found.append((row, column, cell))
            if cell.rowspan > 1:
                taken |= {(row + down, column + right) for down in range(cell.rowspan) for right in range(cell.colspan)}
            column += cell.colspan
    return found


def place_table(setting: Setting, block: Table, room: Room) -> Outcome:
    """A table, cut at the end of a row that no span crosses if it does not fit in full."""
    look = setting.look.table
    spots = _spots(setting, block)
    if spots is None:
        return Miss.WIDE
    pad_x, pad_y = round(look.pad_x * setting.look.size), round(look.pad_y * setting.look.size) + 1
    if not block.rows or not spots:
        return Miss.WIDE
    widths = _widths(spots, room.width, 2 * pad_x + 1, block.stretch)
    if widths is None:
        return Miss.WIDE
    edges = [0.0]
    for width in widths:
        edges.append(edges[-1] + width)
    for spot in spots:
        inner = edges[spot.end_column] - edges[spot.column] - 2 * pad_x - 1
        lines = break_lines(spot.words, spot.kind, inner + 0.5)
        if lines is None:
            return Miss.WIDE
        spot.lines = lines
    tops = _tops(spots, len(block.rows), 2 * pad_y + 1, setting.type(look.scale).leading)
    drawn = block
    if room.y + tops[-1] + 1 > room.bottom:
        keep = _rows_kept(block, spots, [top + room.y + 1 for top in tops], room.bottom)
        if keep is None:
            return Miss.FULL
        drawn = replace(block, rows=block.rows[:keep])
        spots, tops = [spot for spot in spots if spot.row < keep], tops[: keep + 1]
    slack = room.width - edges[-1]
    xs = [round(room.x + edge) for edge in edges]
    if slack > 2 and setting.rng.random() < 0.2:
        xs = [round(x + slack / 2) for x in xs]
    ys = [round(room.y + top) for top in tops]
    marks = _shades(setting, drawn, spots, xs, ys)
    marks += _rules(setting, drawn, spots, xs, ys)
    for spot in spots:
        left, right = xs[spot.column] + pad_x + 0.5, xs[spot.end_column] - pad_x - 0.5
        top, bottom = ys[spot.row] + pad_y + 1.0, ys[spot.end_row] - pad_y
        if look.middle or spot.cell.header:
            top += max(0.0, bottom - top - height(spot.lines)) / 2
        set_lines(marks, spot.lines, left, top, right - left, spot.cell.align)
    return Placed(drawn, marks, (xs[0], ys[0], xs[-1] + 1, ys[-1] + 1), drawn is not block)


def _spots(setting: Setting, block: Table) -> list[Spot] | None:
    look = setting.look
    scale, ink = look.table.scale, look.ink
    head = setting.type(scale, look.table.head_ink if block.shade else ink, bold_headers(block, look))
    body = setting.type(scale, ink)
    spots = []
    for row, column, cell in grid(block.rows):
        kind = head if cell.header else body
        its_words = words(cell.content, kind)
        if its_words is None:
            return None
        spots.append(Spot(cell, row, column, kind, its_words, []))
    return spots


def _widths(spots: list[Spot], room: float, padding: float, stretch: bool) -> list[float] | None:
    """Of the columns, as browsers set them: the contents' widths if they fit, else shrunk towards the longest words.

    None if even these are wider than the room.
    """
    count = max(spot.end_column for spot in spots)
    least, most = [padding + 4.0] * count, [padding + 4.0] * count
    for spot in sorted(spots, key=lambda spot: spot.cell.colspan):
        longest = longest_word(spot.words) + padding
        whole = sum([word.width + (word.space if place else 0.0) for place, word in enumerate(spot.words)]) + padding
        span = range(spot.column, spot.end_column)
        for widths, wanted in ((least, longest), (most, whole)):
            lacking = wanted - sum([widths[column] for column in span])
            if lacking > 0:
                for column in span:
                    widths[column] += lacking / len(span)
    most = [max(pair) for pair in zip(least, most, strict=True)]
    if sum(least) > room - 1:
        return None
    wide = sum(most)
    if wide > room - 1:
        share = (room - 1 - sum(least)) / (wide - sum(least))
        return [low + (high - low) * share for low, high in zip(least, most, strict=True)]
    if stretch:
        return [width * (room - 1) / wide for width in most]
    return most


def _tops(spots: list[Spot], count: int, padding: float, leading: float) -> list[float]:
    """The top edges of the rows, and the bottom edge of the last."""
    heights = [0.0] * count
    for spot in sorted(spots, key=lambda spot: spot.cell.rowspan):
        wanted = max(height(spot.lines), leading * 0.9) + padding
        lacking = wanted - sum(heights[spot.row : spot.end_row])
        if lacking > 0:
            for row in range(spot.row, spot.end_row):
                heights[row] += lacking / spot.cell.rowspan
    tops = [0.0]
    for each in heights:
        tops.append(tops[-1] + round(each))
    return tops


def _rows_kept(block: Table, spots: list[Spot], bottoms: list[float], limit: float) -> int | None:
    """How many rows are drawn, of a table that does not fit; None if too few would be."""
    crossed = {row for spot in spots for row in range(spot.row + 1, spot.end_row)}
    body = [not all(cell.header for cell in row) for row in block.rows]
    for keep in range(len(block.rows) - 1, 0, -1):
        if sum(body[:keep]) < LEAST_BODY_ROWS:
            return None
        if keep not in crossed and bottoms[keep] <= limit:
            return keep
    return None


def _head_rows(block: Table, spots: list[Spot]) -> int:
    """How many rows at the top are header rows (all cells headers), with what their cells span."""
    count = 0
    for row in block.rows:
        if not row or not all(cell.header for cell in row):
            break
        count += 1
    return max([spot.end_row for spot in spots if spot.row < count], default=0)


def _shades(setting: Setting, block: Table, spots: list[Spot], xs: list[int], ys: list[int]) -> list[Mark]:
    look = setting.look.table
    marks: list[Mark] = []
    head = _head_rows(block, spots)
    if look.zebra is not None and all(spot.cell.rowspan == 1 for spot in spots if spot.row >= head):
        for row in range(head + 1, len(ys) - 1, 2):
            marks.append(Fill((xs[0], ys[row], xs[-1], ys[row + 1]), look.zebra))
    if block.shade:
        for spot in spots:
            if spot.cell.header:
                box = (xs[spot.column], ys[spot.row], xs[spot.end_column], ys[spot.end_row])
                marks.append(Fill(box, look.head_fill))
    return marks


def _rules(setting: Setting, block: Table, spots: list[Spot], xs: list[int], ys: list[int]) -> list[Mark]:
    """The lines. Tables with spans always have enough of them to tell what a cell spans."""
    look = setting.look.table
    thin, thick, color = look.rule_width, look.frame_width, look.rule
    marks: list[Mark] = []

    def across(y: int, left: int, right: int, width: int) -> None:
        marks.append(Fill((left, y, right + 1, y + width), color))

    def down(x: int, top: int, bottom: int, width: int) -> None:
        marks.append(Fill((x, top, x + width, bottom + 1), color))

    head = _head_rows(block, spots)
    rules = block.rules
    if rules == "none" and block.has_spans:
        rules = "head"
    if rules == "none":
        return marks
    if rules == "grid":
        for spot in spots:
            across(ys[spot.end_row], xs[spot.column], xs[spot.end_column], thin)
            down(xs[spot.end_column], ys[spot.row], ys[spot.end_row], thin)
        down(xs[0], ys[0], ys[-1], thin)
    elif rules == "rows":
        for spot in spots:
            across(ys[spot.end_row], xs[spot.column], xs[spot.end_column], thin)
    else:
        crossed = {row for spot in spots for row in range(spot.row + 1, spot.end_row)}
        for spot in spots:
            if spot.cell.rowspan > 1 and spot.row >= head and spot.end_row not in crossed | {len(block.rows)}:
                across(ys[spot.end_row], xs[0], xs[-1], thin)
            elif spot.cell.colspan > 1 and spot.end_row < len(block.rows):
                across(ys[spot.end_row], xs[spot.column] + 3, xs[spot.end_column] - 3, thin)
    across(ys[0], xs[0], xs[-1], thick)
    across(ys[-1] - (thick - 1), xs[0], xs[-1], thick)
    if 0 < head < len(block.rows) and rules != "rows":
        across(ys[head] - (thick - 1), xs[0], xs[-1], thick)
    return marks
