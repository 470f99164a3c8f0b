"""Tables and form fields as HTML."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from ocria_compress.pages.synth.document import Cell, Fields, Table
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.faithful.inline import handwriting, inline
from ocria_compress.pages.synth.faithful.style import Faces, font, px, rgb, style


def table(block: Table, look: Look, faces: Faces, gap: float) -> str:
    """A table; `gap` pixels above it."""
    if block.rules == "none" and block.has_spans:
        block = replace(block, rules="head")  # lines tell what a cell spans
    looks = look.table
    head = head_rows(block)
    crossed = any(cell.rowspan > 1 for row in block.rows for cell in row)
    zebra = looks.zebra if looks.zebra and not crossed else None
    frame = f"{px(looks.frame_width)} solid {rgb(looks.rule)}"
    shown = {
        "width": "100%" if block.stretch else None,
        "border": frame if block.rules == "grid" else None,
        "border_top": frame if block.rules in ("rows", "head") else None,
        "border_bottom": frame if block.rules in ("rows", "head") else None,
    }
    ends = _line_ends(block, head, look)
    rows = []
    for number, row in enumerate(block.rows):
        fill = zebra if number >= head and (number - head) % 2 else None
        cells = "".join(_cell(cell, block, look, faces, number, ends) for cell in row)
        rows.append(f"<tr{style(background=rgb(fill) if fill else None)}>{cells}</tr>")
    outer = style(margin_top=gap, align_self=None if block.stretch else "flex-start", **shown)
    return f"<table data-block{outer}>{''.join(rows)}</table>"


def head_rows(block: Table) -> int:
    """How many rows from the first have header cells only."""
    count = 0
    while count < len(block.rows) and all(cell.header for cell in block.rows[count]):
        count += 1
    return count


def _line_ends(block: Table, head: int, look: Look) -> dict[int, float]:
    """The rows (by the number of the next one) that have a line below them from side to side, and how wide it is."""
    thin, thick = look.table.rule_width, look.table.frame_width
    ends: dict[int, float] = {}
    if block.rules == "rows":
        ends = dict.fromkeys(range(1, len(block.rows)), thin)
    elif block.rules == "head":
        spans = [(row, row + cell.rowspan) for row, cells in enumerate(block.rows) for cell in cells]
        crossed = {row for start, end in spans for row in range(start + 1, end)}
        ends = {end: thin for start, end in spans if end - start > 1 and start >= head and end not in crossed}
    if block.rules != "none" and 0 < head < len(block.rows):
        ends[head] = thick
    ends.pop(len(block.rows), None)
    return ends


def _cell(cell: Cell, block: Table, look: Look, faces: Faces, row: int, ends: dict[int, float]) -> str:
    looks = look.table
    size = look.size * looks.scale
    line = f"{px(looks.rule_width)} solid {rgb(looks.rule)}"
    end = row + cell.rowspan
    below = ends.get(end, 0.0)
    if block.rules == "head" and cell.colspan > 1 and end < len(block.rows):
        below = max(below, looks.rule_width)
    shaded = block.shade and cell.header
    css = style(
        padding=f"{px(looks.pad_y * size)} {px(looks.pad_x * size)}",
        text_align=cell.align,
        vertical_align="middle" if looks.middle else "top",
        border=line if block.rules == "grid" else None,
        border_bottom=f"{px(below)} solid {rgb(looks.rule)}" if below else None,
        background=rgb(looks.head_fill) if shaded else None,
        color=rgb(looks.head_ink) if shaded else None,
        font_weight="700" if cell.header and looks.head_bold else None,
        **font(look, faces, looks.scale),
    )
    tag = "th" if cell.header else "td"
    spans = f' rowspan="{cell.rowspan}"' * (cell.rowspan > 1) + f' colspan="{cell.colspan}"' * (cell.colspan > 1)
    return f"<{tag}{spans}{css}>{inline(cell.content, look, faces, looks.scale)}</{tag}>"


def fields(block: Fields, look: Look, faces: Faces, gap: float) -> str:
    """Form fields; `gap` pixels above them."""
    columns = max(1, block.columns)
    make = {"behind": _behind, "column": _in_column, "boxes": _boxed}[block.layout]
    cells = []
    for number, each in enumerate(block.fields):
        label = f"{escape(each.label)}{'' if block.layout == 'boxes' else ':'}"
        value = handwriting(each.value, look, faces) if each.hand else escape(each.value)
        if each.hand:  # room for its taller letters
            room = look.leading * (0.4 if block.layout == "boxes" else 0.2)
            value = f"<div{style(padding_top=room)}>{value}</div>"
        cells.append(make(label, value, block.bold, each.hand, number // columns, look, faces))
    widths = {
        "behind": f"repeat({columns}, minmax(0, 1fr))",
        "column": f"repeat({columns}, max-content minmax(0, 1fr))",
        "boxes": f"repeat({columns}, minmax(0, 1fr))",
    }[block.layout]
    boxes = block.layout == "boxes"
    css = style(
        margin_top=gap,
        grid_template_columns=widths,
        column_gap=0 if boxes else look.size * max(0.8, look.fields.gap),
        row_gap=0 if boxes else look.leading * 0.15,
        align_items="stretch" if boxes else None,
        # Neighbouring boxes share their lines.
        padding=f"0 {px(look.fields.box_width)} {px(look.fields.box_width)} 0" if boxes else None,
    )
    return f'<div class="fields" data-block{css}>{"".join(cells)}</div>'


def _label(look: Look, bold: bool) -> dict[str, str | float | None]:
    return {"font_weight": "700"} if bold else {"color": rgb(look.fields.label_color)}


def _underline(look: Look, value: str, hand: bool) -> str | None:
    line = look.fields.underline
    return f"1px solid {rgb(line)}" if line and (hand or not value) else None


def _behind(label: str, value: str, bold: bool, hand: bool, row: int, look: Look, faces: Faces) -> str:
    gap = style(column_gap=look.size * max(0.25, look.fields.gap))
    line = style(border_bottom=_underline(look, value, hand))
    name = f'<div class="label"{style(**_label(look, bold))}>{label}</div>'
    return f'<div class="open" data-row="{row}"{gap}>{name}<div class="value"{line}>{value or "&nbsp;"}</div></div>'


def _in_column(label: str, value: str, bold: bool, hand: bool, row: int, look: Look, faces: Faces) -> str:
    name = f'<div class="label" data-row="{row}"{style(**_label(look, bold))}>{label}</div>'
    line = style(border_bottom=_underline(look, value, hand))
    return f'{name}<div data-row="{row}"{line}>{value or "&nbsp;"}</div>'


def _boxed(label: str, value: str, bold: bool, hand: bool, row: int, look: Look, faces: Faces) -> str:
    looks = look.fields
    wide = looks.box_width
    small = style(**{**font(look, faces, looks.label_scale), **_label(look, bold)}, flex="none")
    css = style(
        border=f"{px(wide)} solid {rgb(looks.box_rule)}",
        background=rgb(looks.box_fill) if looks.box_fill else None,
        padding=f"{px(look.size * 0.2)} {px(look.size * 0.4)}",
        margin=f"0 {px(-wide)} {px(-wide)} 0",
        gap=None if looks.label_above else look.size * looks.gap,
    )
    kind = "above" if looks.label_above else "beside"
    return (
        f'<div class="box {kind}" data-row="{row}"{css}><div{small}>{label}</div><div>{value or "&nbsp;"}</div></div>'
    )
