"""The blocks of a document as HTML, one element each, in the order of the tree."""

from __future__ import annotations

import zlib
from html import escape

from ocria_compress.pages.synth.document import (
    Block,
    Chart,
    Columns,
    Document,
    Fields,
    Formula,
    Heading,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Stamp,
    Table,
)
from ocria_compress.pages.synth.draw.colors import readable
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.draw.place import gap as space_between
from ocria_compress.pages.synth.faithful.charts import chart
from ocria_compress.pages.synth.faithful.furniture import furniture, room
from ocria_compress.pages.synth.faithful.inline import display, inline
from ocria_compress.pages.synth.faithful.style import Faces, font, px, rgb, style
from ocria_compress.pages.synth.faithful.tables import fields, table


def page_html(number: int, document: Document, look: Look, faces: Faces) -> str:
    """One page: a section of exactly the look's size."""
    top, bottom = room(document.furniture, look)
    content = style(left=look.left, top=top, width=look.width - look.left - look.right, height=bottom - top)
    # The name is that of the @page rule with the paper's size.
    page = style(
        page=sheet_name(look),
        width=sheet(look.width),
        height=sheet(look.height),
        background=rgb(look.paper),
        color=rgb(look.ink),
        **font(look, faces),
    )
    return (
        f'<section class="page" lang="{escape(document.language)}" data-page="{number}"{page}>'
        f"{furniture(document.furniture, look, faces)}"
        f'<div class="content"{content}>{_flow(document.blocks, look, faces, look.column_width())}</div></section>'
    )


def sheet(side: int) -> int:
    """The side of the paper for a page's side: the next multiple of 8 pixels (6 points): Chromium rounds others."""
    return -(-side // 8) * 8


def sheet_name(look: Look) -> str:
    """The name of the paper's size in CSS."""
    return f"s{sheet(look.width)}x{sheet(look.height)}"


def _flow(blocks: tuple[Block, ...], look: Look, faces: Faces, width: float) -> str:
    parts = []
    previous: Block | None = None
    for place, block in enumerate(blocks):
        last = place == len(blocks) - 1
        parts.append(_block(block, previous, look, faces, width, last))
        previous = block
    return "".join(parts)


def _block(block: Block, previous: Block | None, look: Look, faces: Faces, width: float, last: bool) -> str:
    gap = space_between(look, previous, block)
    if isinstance(block, Heading):
        return _heading(block, look, faces, gap)
    if isinstance(block, Paragraph):
        align = "justify" if look.justify and block.align == "left" else block.align
        indent = look.paragraph_indent * look.size if align in ("left", "justify") else None
        css = style(margin_top=gap, text_align=align, text_indent=indent)
        return f"<p data-block{css}>{inline(block.content, look, faces)}</p>"
    if isinstance(block, Lines):
        lines = "".join(f"<div>{inline(line, look, faces)}</div>" for line in block.lines)
        css = style(margin_top=gap, text_align=block.align, white_space="nowrap")
        return f"<div data-block{css}>{lines}</div>"
    if isinstance(block, ListBlock):
        return _list(block, look, faces, gap, top=True)
    if isinstance(block, Table):
        return table(block, look, faces, gap)
    if isinstance(block, Fields):
        return fields(block, look, faces, gap)
    if isinstance(block, Formula):
        left = look.formula_left
        css = style(
            margin_top=gap, text_align="left" if left else "center", padding_left=look.size * 2 if left else None
        )
        return f'<div class="formula" data-block{css}>{display(block.latex, look)}</div>'
    if isinstance(block, Chart):
        return f'<div class="chart" data-block{style(margin_top=gap)}>{chart(block, look, faces, width)}</div>'
    if isinstance(block, Stamp):
        return _stamp(block, look, faces, gap)
    if isinstance(block, Notes):
        return _notes(block, look, faces, gap, width)
    assert isinstance(block, Columns)
    return _columns(block, look, faces, gap, last)


def _heading(block: Heading, look: Look, faces: Faces, gap: float) -> str:
    looks = look.headings[block.level - 1]
    shown = font(look, faces, looks.scale, "heading")
    shown["line_height"] = min(look.line_height, 1.3) * look.size * looks.scale
    rule = f"{px(max(1, look.size * 0.08))} solid {rgb(look.accent)}"
    css = style(
        **shown,
        margin_top=gap,
        text_align=block.align,
        font_weight="700" if looks.bold else "400",
        font_style="italic" if looks.italic else None,
        color=rgb(looks.color),
        border_bottom=rule if looks.rule == "under" else None,
        padding_bottom=look.size * 0.15 if looks.rule == "under" else None,
        border_left=f"{px(look.size * 0.25)} solid {rgb(look.accent)}" if looks.rule == "bar" else None,
        padding_left=look.size * 0.5 if looks.rule == "bar" else None,
    )
    tag = f"h{block.level}"
    return f'<{tag} class="heading" data-block{css}>{inline(block.content, look, faces, looks.scale)}</{tag}>'


def _list(block: ListBlock, look: Look, faces: Faces, gap: float, top: bool) -> str:
    items = []
    for number, item in enumerate(block.items, block.start):
        mark = f"{number}{block.mark}" if block.ordered else block.mark
        below = "" if item.below is None else _list(item.below, look, faces, 0, top=False)
        side = style(
            justify_self="end" if block.ordered and look.list_right else None,
            color=rgb(look.accent) if look.headings[0].color == look.accent and not block.ordered else None,
        )
        items.append(
            f'<div class="item"><div{side}>{escape(mark)}</div>'
            f'<div class="words">{inline(item.content, look, faces)}</div>{below}</div>'
        )
    css = style(
        margin_top=gap,
        margin_left=look.list_indent * look.size if top else None,
        column_gap=look.list_gap * look.size,
        row_gap=look.item_gap * look.leading,
    )
    return f'<div class="list{"" if top else " below"}"{" data-block" * top}{css}>{"".join(items)}</div>'


def _stamp(block: Stamp, look: Look, faces: Faces, gap: float) -> str:
    line = {"single": "2px solid", "double": "4px double", "round": "2px solid"}[look.stamp_frame]
    color = rgb(readable(block.color, look.paper, 4.5))
    share = zlib.crc32(" ".join(block.lines).encode()) % 5 / 4  # left, right or between
    css = style(
        border=f"{line} {color}",
        border_radius=look.size * 0.6 if look.stamp_frame == "round" else None,
        color=color,
        padding=f"{px(look.size * 0.3)} {px(look.size * 0.7)}",
        transform=f"rotate({-block.turn:.2f}deg)" if block.turn else None,
        # Room for the corners of a turned stamp; a turn of 6 degrees lifts them by a tenth of half the width.
        margin=f"{px(look.size * (0.1 + abs(block.turn) * 0.12))} {px(look.size * 0.5)}",
        **font(look, faces, 1.1, "heading"),
    )
    lines = "".join(f"<div>{escape(line)}</div>" for line in block.lines)
    spacer = f"<span{style(flex=f'{share:g}')}></span>"
    return f'<div class="stamp" data-block{style(margin_top=gap)}>{spacer}<div{css}>{lines}</div></div>'


def _notes(block: Notes, look: Look, faces: Faces, gap: float, width: float) -> str:
    rule = ""
    if look.note_rule:
        line = style(
            width=width * look.note_rule, border_top=f"1px solid {rgb(look.ink)}", margin_bottom=look.size * 0.3
        )
        rule = f"<div{line}></div>"
    scale = look.note_scale
    notes = "".join(
        f'<div class="note" data-note="{escape(marker)}"><sup>{escape(marker)}</sup>'
        f"<div>{inline(content, look, faces, scale)}</div></div>"
        for marker, content in block.notes
    )
    # The gap is inside: the margin pushes the notes to the foot.
    css = style(padding_top=gap, **font(look, faces, scale))
    return f'<div class="notes" data-block{css}>{rule}{notes}</div>'


def _columns(block: Columns, look: Look, faces: Faces, gap: float, last: bool) -> str:
    count = len(block.columns)
    width = look.column_width(count)
    between = look.column_gap * look.size
    columns = []
    for place, each in enumerate(block.columns):
        ruled = block.rule and place > 0
        css = style(
            width=width + (between / 2 if ruled else 0),
            margin_left=None if place == 0 else between / 2 if ruled else between,
            padding_left=between / 2 if ruled else None,
            border_left=f"1px solid {rgb(look.column_rule)}" if ruled else None,
        )
        columns.append(f'<div class="column"{css}>{_flow(each, look, faces, width)}</div>')
    # At the end of the page, columns reach down to its foot, and their notes with them.
    kind = "columns last" if last else "columns"
    return f'<div class="{kind}" data-block{style(margin_top=gap)}>{"".join(columns)}</div>'
