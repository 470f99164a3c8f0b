"""Fills a sheet with blocks: a whole page, or (under 128 pixels high) a few lines."""

from __future__ import annotations

from random import Random

from ocria_compress.pages.synth.blocks import add_fields, add_heading, add_list, add_paragraph, add_total
from ocria_compress.pages.synth.sheet import Sheet, Term, to_markdown
from ocria_compress.pages.synth.tables import add_table
from ocria_compress.pages.synth.words import address, code, company, date, email, money, name, phone, phrase, sentence

SMALL = 128
"""Below this height, in pixels, a sheet holds one block; below 41 one line."""

WEIGHTS = {
    "paragraph": 4.0,
    "heading": 1.6,
    "bullets": 1.2,
    "numbers": 1.0,
    "fields": 1.2,
    "table": 1.8,
    "total": 0.5,
}
INVOICE = {"fields": 4.0, "table": 4.0, "total": 2.0, "paragraph": 1.0}
REPORT = {"paragraph": 8.0}


def compose(rng: Random, height: int, width: int, max_characters: float) -> tuple[Sheet, str]:
    """A filled sheet and its transcription.

    Args:
        rng: where every draw comes from.
        height, width: pixels.
        max_characters: about how long the transcription of a whole page may get.
    """
    while True:
        sheet = Sheet(rng, height, width, height < SMALL)
        if height < SMALL:
            _fill_small(sheet)
        else:
            _fill(sheet, max_characters)
        if not sheet.blocks:
            add_paragraph(sheet, 1, 1, 1)
        if sheet.blocks:
            return sheet, "\n\n".join(sheet.blocks)


def _fill_small(sheet: Sheet) -> None:
    rng = sheet.rng
    lines = max(1, sheet.left_over // sheet.leading)
    draw = rng.random()
    if sheet.height <= 40:
        _fill_line(sheet, draw)
    elif draw < 0.6:
        add_paragraph(sheet, 1, 2, lines)
    elif draw < 0.8:
        add_fields(sheet, lines)
    elif draw < 0.9:
        add_heading(sheet, rng.choice([1, 2]))
    else:
        add_list(sheet, numbered=False)


def _fill_line(sheet: Sheet, draw: float) -> None:
    rng = sheet.rng
    sheet.leading = min(sheet.leading, sheet.height - sheet.y)
    if draw < 0.35:
        text = phrase(rng, 1, 4)
    elif draw < 0.65:
        text = sentence(rng, 2, 8)
    else:
        text = rng.choice([money, date, code, name, email, phone, company, address])(rng)
    line = sheet.wrapped([Term(word, draw < 0.1) for word in text.split(" ")], sheet.left, sheet.right)[0]
    sheet.add_line(line, sheet.left, sheet.y)
    sheet.add_block(to_markdown(line))


def _fill(sheet: Sheet, max_characters: float) -> None:
    rng = sheet.rng
    if rng.random() < (0.75 if sheet.height > 300 else 0.25):
        add_heading(sheet, 1)
    style = rng.random()
    weights = dict(WEIGHTS)
    if style < 0.25:
        weights.update(INVOICE)
    elif style < 0.55:
        weights.update(REPORT)
    kinds, chances = list(weights), list(weights.values())
    last, failures = None, 0
    while failures < 3 and sheet.has_room(sheet.leading) and sheet.characters < max_characters * 0.93:
        if sheet.blocks and rng.random() < 0.03:
            break
        kind = rng.choices(kinds, chances)[0]
        if kind == last and kind not in ("paragraph", "table"):
            continue
        if _add(sheet, kind, max_characters - sheet.characters):
            last = kind
        else:
            failures += 1


def _add(sheet: Sheet, kind: str, characters_left: float) -> bool:
    if kind == "paragraph":
        return add_paragraph(sheet, 1, 4 if characters_left > 250 else 1)
    if kind == "heading":
        return add_heading(sheet, 2)
    if kind == "table":
        return add_table(sheet, 7 if characters_left > 300 else 3)
    if kind == "fields":
        return add_fields(sheet)
    if kind == "total":
        return add_total(sheet)
    return add_list(sheet, numbered=kind == "numbers")
