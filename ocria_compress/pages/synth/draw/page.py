"""A page's layout: blocks one below the other, columns, footnotes at the foot, running head and foot, a watermark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, cos, radians, sin
from typing import Any

from ocria_compress.pages.synth.document import (
    Block,
    Chart,
    Columns,
    Document,
    Fields,
    Formula,
    Furniture,
    Heading,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Stamp,
    Table,
)
from ocria_compress.pages.synth.draw import blocks, charts, fields, tables
from ocria_compress.pages.synth.draw.faces import face
from ocria_compress.pages.synth.draw.marks import Box, Fill, Mark, TextMark, Turned
from ocria_compress.pages.synth.draw.place import Miss, Outcome, Placed, Room, Setting, gap
from ocria_compress.pages.synth.draw.visible import note_markers

PLACE: dict[type, Callable[[Setting, Any, Room], Outcome]] = {
    Heading: blocks.place_heading,
    Paragraph: blocks.place_paragraph,
    Lines: blocks.place_lines,
    ListBlock: blocks.place_list,
    Formula: blocks.place_formula,
    Stamp: blocks.place_stamp,
    Notes: blocks.place_notes,
    Table: tables.place_table,
    Fields: fields.place_fields,
    Chart: charts.place_chart,
}

MOST_NOTES = 0.4
"""Footnotes take at most this share of their column's height."""


@dataclass(slots=True)
class Filled:
    """Blocks one below the other: as drawn, where, and whether others were cut."""

    blocks: list[Block]
    marks: list[Mark]
    boxes: list[tuple[Block, Box]]
    bottom: float
    cut: bool


def fill(setting: Setting, wanted: tuple[Block, ...], room: Room, foot: bool) -> Filled:
    """Places blocks from the front as long as they fit; those too wide are skipped.

    Footnotes at the end of `wanted` have their room kept; they go to the bottom (`foot`) or right below the text.
    """
    notes = wanted[-1] if wanted and isinstance(wanted[-1], Notes) else None
    bottom = room.bottom
    if notes is not None:
        wanted = wanted[:-1]
        tried = blocks.place_notes(setting, notes, replace(room, bottom=1e9))
        tall = tried.box[3] - room.y if isinstance(tried, Placed) else 1e9
        if tall > MOST_NOTES * (room.bottom - room.y):
            notes = None
        else:
            bottom -= tall + setting.look.leading * 0.7
    done = _stack(setting, wanted, replace(room, bottom=bottom), foot)
    if notes is not None and done.blocks:
        marked = set(note_markers(tuple(done.blocks)))
        kept = Notes(tuple(note for note in notes.notes if note[0] in marked))
        tried = blocks.place_notes(setting, kept, replace(room, bottom=1e9)) if kept.notes else Miss.FULL
        if isinstance(tried, Placed):
            tall = tried.box[3] - room.y
            top = round(room.bottom - tall) if foot else done.bottom + setting.look.leading * 0.7
            _add(done, blocks.place_notes(setting, kept, replace(room, y=top, bottom=1e9)))
    return done


def _stack(setting: Setting, wanted: tuple[Block, ...], room: Room, foot: bool) -> Filled:
    done = Filled([], [], [], room.y, False)
    last: Block | None = None
    for number, block in enumerate(wanted):
        top = ceil(done.bottom + gap(setting.look, last, block))
        left = replace(room, y=top)
        if isinstance(block, Columns):
            found = _columns(setting, block, left, foot and number == len(wanted) - 1)
        else:
            found = PLACE[type(block)](setting, block, left)
        if found is Miss.FULL:
            done.cut = True
            break
        if isinstance(found, Placed):
            _add(done, found)
            last = found.block
            if found.cut:
                done.cut = True
                break
    while done.cut and done.blocks and isinstance(done.blocks[-1], Heading):  # nothing below it is drawn
        _drop_last(done)
    return done


def _add(done: Filled, found: Outcome) -> None:
    assert isinstance(found, Placed)
    done.blocks.append(found.block)
    done.marks += found.marks
    done.boxes += found.parts or [(found.block, found.box)]
    done.bottom = found.box[3]


def _drop_last(done: Filled) -> None:
    """Takes back the last block, a heading: its marks are those below its top edge."""
    _, box = done.boxes.pop()
    done.blocks.pop()
    done.marks = [mark for mark in done.marks if _top(mark) < box[1]]
    done.bottom = done.boxes[-1][1][3] if done.boxes else box[1]


def _top(mark: Mark) -> float:
    if isinstance(mark, TextMark):
        return mark.y
    if isinstance(mark, Fill):
        return mark.box[1]
    return -1.0


def _columns(setting: Setting, block: Columns, room: Room, foot: bool) -> Outcome:
    look = setting.look
    between = look.column_gap * look.size
    count = len(block.columns)
    width = (room.width - (count - 1) * between) / count
    filled = [
        fill(setting, column, Room(room.x + place * (width + between), room.y, width, room.bottom), foot)
        for place, column in enumerate(block.columns)
    ]
    if not any(each.blocks for each in filled):
        return Miss.FULL if any(each.cut for each in filled) else Miss.WIDE
    bottom = max(each.bottom for each in filled if each.blocks)
    marks = [mark for each in filled for mark in each.marks]
    if block.rule:
        for place in range(1, count):
            x = round(room.x + place * (width + between) - between / 2)
            marks.append(Fill((x, room.y, x + 1, bottom), look.column_rule))
    drawn = replace(block, columns=tuple(tuple(each.blocks) for each in filled if each.blocks))
    parts = tuple(part for each in filled for part in each.boxes)
    box = (room.x, room.y, room.x + room.width, bottom)
    return Placed(drawn, marks, box, any(each.cut for each in filled), parts)


def lay_out(setting: Setting, document: Document) -> tuple[Document, list[Mark], list[tuple[Block, Box]]]:
    """The document as drawn, the marks to paint, and the boxes of its blocks."""
    look = setting.look
    marks: list[Mark] = []
    top, bottom, furniture = _furniture(setting, document.furniture, marks)
    room = Room(look.left, top, look.width - look.left - look.right, bottom)
    done = fill(setting, document.blocks, room, True)
    marks += done.marks
    return replace(document, blocks=tuple(done.blocks), furniture=furniture), marks, done.boxes


def _furniture(setting: Setting, wanted: Furniture, marks: list[Mark]) -> tuple[float, float, Furniture]:
    """Running head, foot and watermark; returns the top and bottom edge of the room that is left for the text."""
    look = setting.look
    small = face(look.body, "regular", look.size * look.small_scale)
    width = look.width - look.left - look.right
    top, bottom = float(look.top), float(look.height - look.bottom)
    drawn = []
    for content, is_head in ((wanted.head, True), (wanted.foot, False)):
        wide = small.width(content)
        if not content or wide > width:
            drawn.append("")
            continue
        drawn.append(content)
        share = {"left": 0.0, "center": 0.5, "right": 1.0}[look.furniture_align]
        x = look.left + share * (width - wide)
        if is_head:
            baseline = round(max(small.up + 3.0, look.top * 0.45 + small.up / 2))
            edge = baseline + small.down + 3
            top = max(top, edge + look.size * 0.9)
            rule, ruled = edge, look.head_rule
        else:
            baseline = round(look.height - max(small.down + 3.0, look.bottom * 0.45 - small.up / 2))
            edge = baseline - small.up - 4
            bottom = min(bottom, edge - look.size * 0.9)
            rule, ruled = edge, look.foot_rule
        marks.append(TextMark(x, baseline, content, small, look.muted))
        if ruled:
            marks.append(Fill((look.left, rule, look.width - look.right, rule + 1), look.column_rule))
    watermark = _watermark(setting, wanted.watermark)
    if watermark is not None:
        marks.insert(0, watermark)
    return top, bottom, Furniture(drawn[0], drawn[1], wanted.watermark if watermark else "")


def _watermark(setting: Setting, content: str) -> Turned | None:
    """Large, turned, across the middle; None if there is none."""
    if not content:
        return None
    look = setting.look
    angle = radians(look.watermark_turn)
    small = face(look.heading, "bold", 20.0)
    width = small.width(content) / small.size
    scale = 1.0
    across = width * cos(angle) + scale * sin(angle)
    up = width * sin(angle) + scale * cos(angle)
    size = min(look.width * 0.85 / across, look.height * 0.85 / up, look.width / 5)
    large = face(look.heading, "bold", 2 * round(size / look.heading.scale / 2))
    wide = round(large.width(content))
    mark = TextMark(0, large.up + 1, content, large, look.watermark)
    layer = (wide + 2, large.up + large.down + 2)
    return Turned(look.width / 2, look.height / 2, layer, look.watermark_turn, look.watermark, (mark,))
