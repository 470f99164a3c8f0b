"""Headings, paragraphs, kept lines, lists, displayed formulas, footnotes and stamps."""

from __future__ import annotations

from dataclasses import replace

from ocria_compress.pages.synth.document import (
    Formula,
    Heading,
    Item,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Stamp,
)
from ocria_compress.pages.synth.draw.colors import Color, readable
from ocria_compress.pages.synth.draw.faces import face
from ocria_compress.pages.synth.draw.flow import Type, break_lines, height, set_lines, words
from ocria_compress.pages.synth.draw.formulas import formula
from ocria_compress.pages.synth.draw.marks import Fill, Frame, Mark, Picture, TextMark, Turned
from ocria_compress.pages.synth.draw.place import Miss, Outcome, Placed, Room, Setting


def place_heading(setting: Setting, block: Heading, room: Room) -> Outcome:
    """A heading in its level's face, with a line below it or a bar beside it."""
    look = setting.look
    style = look.headings[block.level - 1]
    size = look.size * style.scale
    main = face(look.heading, "bold" if style.bold else "italic" if style.italic else "regular", size)
    kind = Type(
        main,
        main if style.bold else face(look.heading, "bold", size),
        main if style.bold else face(look.heading, "italic", size),
        face(look.hand, "regular", size),
        face(look.heading, "regular", size * 0.62),
        size,
        size * min(look.line_height, 1.3),
        style.color,
        look.hand_ink,
        look.math,
        size * look.math_scale,
    )
    indent = look.size * 0.6 if style.rule == "bar" and block.align == "left" else 0.0
    its_words = words(block.content, kind)
    lines = None if its_words is None else break_lines(its_words, kind, room.width - indent)
    if not lines:
        return Miss.WIDE
    bottom = room.y + height(lines)
    marks: list[Mark] = []
    thick = max(1, round(look.size / 14))
    if indent:
        marks.append(Fill((room.x, room.y + 1, room.x + max(2, thick * 3), bottom - 1), look.accent))
    set_lines(marks, lines, room.x + indent, room.y, room.width - indent, block.align)
    if style.rule == "under":
        bottom += thick + 1
        marks.append(Fill((room.x, bottom - thick, room.x + room.width, bottom), look.accent))
    if bottom > room.bottom:
        return Miss.FULL
    return Placed(block, marks, (room.x, room.y, room.x + room.width, bottom))


def place_paragraph(setting: Setting, block: Paragraph, room: Room) -> Outcome:
    """A paragraph."""
    look, kind = setting.look, setting.body
    align = "justify" if block.align == "left" and look.justify else block.align
    indent = look.paragraph_indent * look.size if align in ("left", "justify") else 0.0
    its_words = words(block.content, kind)
    lines = None if its_words is None else break_lines(its_words, kind, room.width, indent)
    if not lines:
        return Miss.WIDE
    if room.y + height(lines) > room.bottom:
        return Miss.FULL
    marks: list[Mark] = []
    bottom = set_lines(marks, lines, room.x, room.y, room.width, align, indent)
    return Placed(block, marks, (room.x, room.y, room.x + room.width, bottom))


def place_lines(setting: Setting, block: Lines, room: Room) -> Outcome:
    """Lines kept as they are: none of them may be broken."""
    kind = setting.body
    marks: list[Mark] = []
    y = room.y
    for content in block.lines:
        its_words = words(content, kind)
        lines = None if its_words is None else break_lines(its_words, kind, room.width)
        if not lines or len(lines) > 1:
            return Miss.WIDE
        y = set_lines(marks, lines, room.x, y, room.width, block.align)
    if y > room.bottom:
        return Miss.FULL
    return Placed(block, marks, (room.x, room.y, room.x + room.width, y))


def place_list(setting: Setting, block: ListBlock, room: Room) -> Outcome:
    """A list, cut after the last item that fits; at least one item."""
    marks: list[Mark] = []
    indent = setting.look.list_indent * setting.look.size
    inner = Room(room.x + indent, room.y, room.width - indent, room.bottom)
    found = _place_items(setting, block, inner, marks)
    if isinstance(found, Miss):
        return found
    drawn, bottom, cut = found
    return Placed(drawn, marks, (room.x, room.y, room.x + room.width, bottom), cut)


def _place_items(
    setting: Setting, block: ListBlock, room: Room, marks: list[Mark]
) -> tuple[ListBlock, float, bool] | Miss:
    """The items that fit, their bottom edge, and whether others were cut."""
    look, kind = setting.look, setting.body
    labels = [f"{number}{block.mark}" if block.ordered else block.mark for number in
              range(block.start, block.start + len(block.items))]  # fmt: skip
    widths = [kind.regular.width(label) for label in labels]
    hang = max(widths) + look.list_gap * look.size
    drawn: list[Item] = []
    y = room.y
    for item, label, label_width in zip(block.items, labels, widths, strict=True):
        top = y + (look.item_gap * look.leading if drawn else 0.0)
        its_words = words(item.content, kind)
        lines = None if its_words is None else break_lines(its_words, kind, room.width - hang)
        if not lines:
            return Miss.WIDE
        bottom = top + height(lines)
        if bottom > room.bottom:
            return (replace(block, items=tuple(drawn)), y, True) if drawn else Miss.FULL
        shift = max(widths) - label_width if look.list_right and block.ordered else 0.0
        color = _mark_color(setting, block)
        marks.append(TextMark(room.x + shift, round(top + lines[0].up), label, kind.regular, color))
        y = set_lines(marks, lines, room.x + hang, top, room.width - hang)
        if item.below is None:
            drawn.append(item)
            continue
        below = Room(room.x + hang, y + look.item_gap * look.leading, room.width - hang, room.bottom)
        found = _place_items(setting, item.below, below, marks)
        if found is Miss.WIDE:
            return Miss.WIDE
        if isinstance(found, Miss):
            return replace(block, items=(*drawn, Item(item.content))), y, True
        inner, y, cut = found
        drawn.append(Item(item.content, inner))
        if cut:
            return replace(block, items=tuple(drawn)), y, True
    return block if len(drawn) == len(block.items) else replace(block, items=tuple(drawn)), y, False


def _mark_color(setting: Setting, block: ListBlock) -> Color:
    look = setting.look
    return look.accent if look.headings[0].color == look.accent and not block.ordered else look.ink


def place_formula(setting: Setting, block: Formula, room: Room) -> Outcome:
    """A displayed formula."""
    look = setting.look
    found = formula(block.latex, look.size * look.display_scale, look.math, displayed=True)
    indent = 2 * look.size if look.formula_left else 0.0
    if found is None or found.mask.width + indent > room.width:
        return Miss.WIDE
    pad = look.size * 0.3
    bottom = room.y + found.mask.height + 2 * pad
    if bottom > room.bottom:
        return Miss.FULL
    x = room.x + (indent or (room.width - found.mask.width) / 2)
    mark = Picture(x, room.y + pad, found.mask, look.ink, block.latex)
    return Placed(block, [mark], (room.x, room.y, room.x + room.width, bottom))


def place_notes(setting: Setting, block: Notes, room: Room) -> Outcome:
    """Footnotes, below a short line or none."""
    look = setting.look
    kind = setting.type(look.note_scale)
    marks: list[Mark] = []
    y = room.y
    if look.note_rule:
        marks.append(Fill((room.x, y, room.x + room.width * look.note_rule, y + 1), look.ink))
    y += 0.3 * look.leading
    hang = max((kind.note.width(marker) for marker, _ in block.notes), default=0.0) + 0.3 * kind.size
    for marker, content in block.notes:
        its_words = words(content, kind)
        lines = None if its_words is None else break_lines(its_words, kind, room.width - hang)
        if not lines:
            return Miss.WIDE
        rise = kind.regular.cap * 0.5
        marks.append(TextMark(room.x, round(y + lines[0].up) - rise, marker, kind.note, look.ink))
        y = set_lines(marks, lines, room.x + hang, y, room.width - hang)
    if y > room.bottom:
        return Miss.FULL
    return Placed(block, marks, (room.x, room.y, room.x + room.width, y))


def place_stamp(setting: Setting, block: Stamp, room: Room) -> Outcome:
    """A stamp: lines in a frame, turned."""
    from math import cos, radians, sin

    look = setting.look
    color = readable(block.color, look.paper, 4.5)
    kind = face(look.heading, "bold", look.size * 1.2)
    pad = round(look.size * 0.6)
    leading = round(kind.size * 1.25)
    widths = [kind.width(line) for line in block.lines]
    width, tall = round(max(widths)) + 2 * pad + 6, leading * len(block.lines) + 2 * pad
    angle = radians(abs(block.turn))
    outer_width = width * cos(angle) + tall * sin(angle) + 2
    outer_height = tall * cos(angle) + width * sin(angle) + 2
    if outer_width > room.width:
        return Miss.WIDE
    if room.y + outer_height > room.bottom:
        return Miss.FULL
    thick = max(1, round(look.size / 8))
    radius = pad if look.stamp_frame == "round" else 0
    inner: list[TextMark | Frame] = [Frame((0, 0, width, tall), color, thick, radius)]
    if look.stamp_frame == "double":
        edge = thick + 2
        inner.append(Frame((edge, edge, width - edge, tall - edge), color, 1))
    for number, (line, line_width) in enumerate(zip(block.lines, widths, strict=True)):
        y = pad + leading * number + (leading + kind.cap) / 2
        inner.append(TextMark((width - line_width) / 2, y, line, kind, color))
    share = setting.rng.choice([0.0, 0.5, 1.0, setting.rng.random()])
    left = room.x + share * (room.width - outer_width)
    middle = (left + outer_width / 2, room.y + outer_height / 2)
    mark = Turned(*middle, (width, tall), block.turn, color, tuple(inner))
    return Placed(block, [mark], (left, room.y, left + outer_width, room.y + outer_height))
