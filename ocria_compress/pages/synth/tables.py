"""Tables of synthetic pages: a header row and data rows, without spans, transcribed to HTML."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ocria_compress.pages.synth.glyphs import Line, Rectangle
from ocria_compress.pages.synth.sheet import Sheet
from ocria_compress.pages.synth.words import code, date, money, number, phrase

MARKS = ["Yes", "No", "N/A", "-", "OK", "High", "Low", "Open"]
FIRST_COLUMN = "wp"
OTHER_COLUMNS = "wnmndcqe"
RIGHT_ALIGNED = "nmq"


def _cell(rng: Random, kind: str) -> str:
    """Words, a phrase, a number, money, a date, a code, a quantity, or (any other letter) a mark or nothing."""
    if kind == "w":
        return phrase(rng, 1, 2, 0.3)
    if kind == "p":
        return phrase(rng, 1, 3, 0.4)
    if kind == "n":
        return number(rng)
    if kind == "m":
        return money(rng)
    if kind == "d":
        return date(rng)
    if kind == "c":
        return code(rng)
    if kind == "q":
        return str(rng.randint(1, 60))
    return "" if rng.random() < 0.3 else rng.choice(MARKS)


def add_table(sheet: Sheet, max_rows: int = 7) -> bool:
    """A table of 2 to 5 columns and up to `max_rows` data rows; columns and rows that do not fit are left out.

    Returns:
        Whether at least two columns and one row fitted.
    """
    rng = sheet.rng
    columns = rng.randint(2, 5)
    count = rng.randint(2, max_rows)
    padding, row_padding = rng.randint(4, 9), rng.randint(1, 5)
    row_height = sheet.base + round(sheet.base * 0.35) + 2 * row_padding
    kinds = [rng.choice(FIRST_COLUMN if i == 0 else OTHER_COLUMNS) for i in range(columns)]
    header = [phrase(rng, 1, 2 if columns < 4 else 1, 0.7) for _ in range(columns)]
    rows = [[_cell(rng, kind) for kind in kinds] for _ in range(count)]
    fitting = (sheet.left_over - 2) // row_height - 1
    if fitting < 1:
        return False
    rows = rows[:fitting]
    header_bold = rng.random() < 0.85
    widths = _column_widths(sheet, header, rows, header_bold, padding)
    if len(widths) < 2:
        return False
    columns = len(widths)
    table = [header[:columns], *(row[:columns] for row in rows)]
    total = sum(widths)
    if rng.random() < 0.5:
        extra = (sheet.column - total) / columns
        widths = [width + extra for width in widths]
    edges = [float(sheet.left)]
    for width in widths:
        edges.append(edges[-1] + width)
    xs = [round(edge) for edge in edges]
    top = sheet.y
    _rule(sheet, xs, top, row_height, len(table))
    right = [kind in RIGHT_ALIGNED and rng.random() < 0.6 for kind in kinds]
    for i, row in enumerate(table):
        cell_face = sheet.face_of(header_bold and i == 0)
        for j, text in enumerate(row):
            if text:
                x = xs[j + 1] - padding - cell_face.width(text) if right[j] else xs[j] + padding
                sheet.add_text(round(x), top + i * row_height + row_padding, text, cell_face)
    sheet.y = top + len(table) * row_height
    sheet.skip(0.6)
    sheet.add_block(_html(table))
    return True


def _column_widths(
    sheet: Sheet, header: Sequence[str], rows: Sequence[Sequence[str]], header_bold: bool, padding: int
) -> list[float]:
    """Widths of the leading columns that fit the text column, in pixels; fewer than two: the table is given up."""
    header_face = sheet.face_of(header_bold)
    widths = [
        max([header_face.width(title)] + [sheet.regular.width(row[i]) for row in rows]) + 2 * padding
        for i, title in enumerate(header)
    ]
    while len(widths) >= 2 and sum(widths) > sheet.column:
        widths.pop()
    return widths


def _rule(sheet: Sheet, xs: Sequence[int], top: int, row_height: int, rows: int) -> None:
    """Draws the table's lines in one of four styles, and sometimes a shade behind the header."""
    rng = sheet.rng
    left, right = xs[0], xs[-1]
    style = rng.choice(["grid", "grid", "rules", "plain", "head"])
    if style == "head" or rng.random() < 0.2:
        shade = max(150, sheet.paper - rng.randint(15, 60))
        sheet.marks.append(Rectangle((left, top, right, top + row_height), shade))
    grey = sheet.ink + rng.choice([0, 40, 90])
    if style in ("grid", "rules"):
        for i in range(rows + 1):
            sheet.marks.append(Line((left, top + i * row_height, right, top + i * row_height), grey))
    if style == "grid":
        for x in xs:
            sheet.marks.append(Line((x, top, x, top + rows * row_height), grey))
    elif style == "head":
        sheet.marks.append(Line((left, top + row_height, right, top + row_height), grey))


def _html(table: Sequence[Sequence[str]]) -> str:
    header, *rows = table
    lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in header) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join(["<table>", *lines, "</table>"])
