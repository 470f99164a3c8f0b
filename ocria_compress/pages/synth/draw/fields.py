"""Labelled fields of forms."""

from __future__ import annotations

from dataclasses import replace

from ocria_compress.pages.synth.document import Field, Fields, Run
from ocria_compress.pages.synth.draw.flow import Line, Type, break_lines, height, set_line, set_lines, words
from ocria_compress.pages.synth.draw.marks import Fill, Frame, Mark
from ocria_compress.pages.synth.draw.place import Miss, Outcome, Placed, Room, Setting

LEAST_ROWS = 2
"""Fields are cut so that at least so many rows stay."""


def place_fields(setting: Setting, block: Fields, room: Room) -> Outcome:
    """Fields row by row, cut after the last row that fits."""
    columns = max(1, block.columns)
    between = setting.look.size * 1.2 if columns > 1 and block.layout != "boxes" else 0.0
    width = (room.width - between * (columns - 1)) / columns
    rows = [block.fields[start : start + columns] for start in range(0, len(block.fields), columns)]
    marks: list[Mark] = []
    values = _value_places(setting, block, columns)
    y, drawn = room.y, 0
    for fields in rows:
        found: list[tuple[list[Mark], float]] = []
        boxed = block.layout == "boxes"
        for column, field in enumerate(fields):
            x = room.x + column * (width + between)
            part = _boxed(setting, block, field, x, y, width) if boxed else _open(
                setting, block, field, x, y, width, values[column])  # fmt: skip
            if part is None:
                return Miss.WIDE
            found.append(part)
        bottom = max(part_bottom for _, part_bottom in found)
        if boxed:
            for column in range(len(fields)):
                marks += _box(setting, room.x + column * width, y, width, bottom)
        if bottom + 1 > room.bottom:
            break
        for part_marks, _ in found:
            marks += part_marks
        y, drawn = bottom, drawn + 1
    if drawn < min(LEAST_ROWS, len(rows)):
        return Miss.FULL
    box = (room.x, room.y, room.x + room.width, y + 1)
    if drawn == len(rows):
        return Placed(block, marks, box)
    marks = [mark for mark in marks if not (isinstance(mark, Frame | Fill) and mark.box[1] >= y)]
    return Placed(replace(block, fields=tuple(field for row in rows[:drawn] for field in row)), marks, box, True)


def _label_type(setting: Setting, block: Fields, scale: float = 1.0) -> Type:
    look = setting.look
    return setting.type(scale, look.ink if block.bold else look.fields.label_color, block.bold)


def _value_places(setting: Setting, block: Fields, columns: int) -> list[float]:
    """How far right of its column's edge each column's values begin, if they are aligned; else 0."""
    if block.layout != "column":
        return [0.0] * columns
    face = _label_type(setting, block).regular
    gap = max(0.8, setting.look.fields.gap) * setting.look.size
    widest = [0.0] * columns
    for number, field in enumerate(block.fields):
        place = number % columns
        width = face.width(field.label)
        widest[place] = max(widest[place], width + face.width(":") + gap)
    return widest


def _value_lines(setting: Setting, field: Field, width: float, indent: float = 0.0) -> tuple[list[Line], Type] | None:
    kind = setting.body
    content = (Run(field.value, "hand" if field.hand else "plain"),) if field.value else ()
    its_words = words(content, kind)
    if its_words is None:
        return None
    lines = break_lines(its_words, kind, width, indent)
    return None if lines is None else (lines, kind)


def _open(
    setting: Setting, block: Fields, field: Field, x: float, y: float, width: float, value_at: float
) -> tuple[list[Mark], float] | None:
    """A field without a box: the label, and the value behind it or in a column of its own."""
    look = setting.look
    label_kind = _label_type(setting, block)
    label = words((Run(field.label + ":"),), label_kind) or []
    label_lines = break_lines(label, label_kind, width)
    if not label_lines or len(label_lines) > 1:
        return None
    start = value_at or label_lines[0].width + max(look.fields.gap * look.size, label_kind.regular.space)
    found = _value_lines(setting, field, width - start)
    if found is None:
        return None
    lines, kind = found
    if field.value and len(lines) > 3:
        return None
    extra = 0.4 * look.leading if field.hand else 0.0
    marks: list[Mark] = []
    set_lines(marks, label_lines, x, y + extra, width)
    bottom = y + extra + max(height(lines), label_lines[0].up + label_lines[0].down)
    _set_value(setting, marks, lines, field, x + start, y + extra)
    if look.fields.underline is not None and (field.hand or not field.value):
        line = round(bottom - label_lines[0].down + kind.regular.down * 0.9) + 1
        marks.append(Fill((x + start, line, x + width, line + 1), look.fields.underline))
        bottom = max(bottom, line + 2)
    return marks, bottom


def _set_value(setting: Setting, marks: list[Mark], lines: list[Line], field: Field, x: float, y: float) -> None:
    """Handwriting goes up and down a little, word by word."""
    jitter = setting.look.hand_jitter * setting.look.size
    for line in lines:
        if field.hand and jitter:
            at = x
            for number, word in enumerate(line.words):
                at += word.space if number else 0.0
                lone = Line([word], word.width, line.up, line.down)
                set_line(marks, lone, at, y + line.up + setting.rng.uniform(-jitter, jitter))
                at += word.width
        else:
            set_line(marks, line, x, y + line.up)
        y += line.up + line.down


def _box(setting: Setting, x: float, y: float, width: float, bottom: float) -> list[Mark]:
    """Neighbouring boxes share their lines."""
    style = setting.look.fields
    box = (round(x), round(y), round(x + width) + style.box_width, round(bottom) + style.box_width)
    shade: list[Mark] = [] if style.box_fill is None else [Fill(box, style.box_fill)]
    return [*shade, Frame(box, style.box_rule, style.box_width)]


def _boxed(
    setting: Setting, block: Fields, field: Field, x: float, y: float, width: float
) -> tuple[list[Mark], float] | None:
    """What is inside a box: the label above the value, or left of it."""
    look = setting.look
    pad = round(look.size * 0.4) + look.fields.box_width
    inner = width - 2 * pad
    label_kind = _label_type(setting, block, look.fields.label_scale)
    label = words((Run(field.label),), label_kind) or []
    label_lines = break_lines(label, label_kind, inner)
    if not label_lines:
        return None
    marks: list[Mark] = []
    above = look.fields.label_above
    start = 0.0 if above else label_lines[0].width + 0.8 * look.size
    if start > inner * 0.6:
        start, above = 0.0, True
    if not above and len(label_lines) > 1:
        return None
    found = _value_lines(setting, field, inner - start)
    if found is None:
        return None
    lines, kind = found
    least = height(lines) or kind.leading
    if above:
        top = set_lines(marks, label_lines, x + pad, y + pad * 0.6, inner)
        _set_value(setting, marks, lines, field, x + pad, top)
        return marks, round(top + least + pad * 0.5)
    top = y + pad * 0.7
    shared = lines[0].up if lines else kind.regular.up + (kind.leading - kind.regular.up - kind.regular.down) / 2
    set_line(marks, label_lines[0], x + pad, top + shared)
    _set_value(setting, marks, lines, field, x + pad + start, top)
    return marks, round(top + least + pad * 0.7)
