"""The blocks of a synthetic page: headings, paragraphs, lists, labelled fields and totals (tables: tables.py).

Each function adds one block to a sheet and its transcription, or nothing when the block does not fit; it returns
whether it did. The order of the draws is part of the generator, also where a block is then given up.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ocria_compress.pages.synth.glyphs import Line, face
from ocria_compress.pages.synth.lexicon import CITIES
from ocria_compress.pages.synth.sheet import Sheet, Term, plain, to_markdown
from ocria_compress.pages.synth.words import (
    address,
    code,
    company,
    date,
    email,
    money,
    name,
    number,
    phone,
    phrase,
    sentence,
)

FIELDS: list[tuple[str, Callable[[Random], str]]] = [
    ("Invoice No", code),
    ("Date", date),
    ("Due Date", date),
    ("Customer", name),
    ("Company", company),
    ("Phone", phone),
    ("Email", email),
    ("Address", address),
    ("Order No", code),
    ("Account", code),
    ("Reference", code),
    ("City", lambda rng: rng.choice(CITIES)),
    ("Contact", name),
    ("Amount", money),
    ("Status", lambda rng: phrase(rng, 1, 2, 0.3)),
    ("Terms", lambda rng: f"Net {rng.choice([10, 15, 30, 45, 60, 90])}"),
    ("Prepared by", name),
    ("Department", lambda rng: phrase(rng, 1, 2, 0.7)),
    ("Bill To", company),
    ("Ship To", address),
    ("Tax ID", code),
    ("Total", money),
    ("Rate", number),
    ("Version", number),
    ("Page", lambda rng: f"{rng.randint(1, 20)} of {rng.randint(20, 60)}"),
]
TOTALS = ["Total", "Subtotal", "Amount Due", "Balance", "Tax", "Grand Total"]
BULLETS = "•••–-"


def add_heading(sheet: Sheet, level: int) -> bool:
    """A heading of level 1 or 2 on one line, in larger bold; a level 1 may be centred or underlined by a rule."""
    rng = sheet.rng
    size = round(sheet.base * (rng.uniform(1.65, 2.0) if level == 1 else rng.uniform(1.25, 1.42)))
    heading_face = face(sheet.family.bold, size)
    text = phrase(rng, 1, 5, 0.75)
    while heading_face.width(text) > sheet.column:
        if " " not in text:
            return False
        text = text.rsplit(" ", 1)[0]
    height = round(size * 1.3)
    if not sheet.has_room(height):
        return False
    x = sheet.left
    if level != 2 and rng.random() >= 0.65:
        x = round(sheet.left + (sheet.column - heading_face.width(text)) / 2)
    sheet.add_text(x, sheet.y, text, heading_face)
    sheet.y += height
    if level == 1 and rng.random() < 0.15:
        sheet.marks.append(Line((sheet.left, sheet.y, sheet.right, sheet.y), sheet.ink))
        sheet.y += 4
    sheet.add_block("#" * level + " " + text)
    sheet.skip(0.3)
    return True


def add_paragraph(sheet: Sheet, fewest: int = 1, most: int = 4, max_lines: int = 9) -> bool:
    """A paragraph of `fewest` to `most` sentences, cut to the lines that fit; sometimes with a bold span."""
    rng = sheet.rng
    terms: list[Term] = []
    for _ in range(rng.randint(fewest, most)):
        terms += plain(sentence(rng))
    if rng.random() < 0.22 and len(terms) > 6:
        first = rng.randrange(1, len(terms) - 3)
        end = first + rng.randint(1, 3)
        terms = [Term(term.text, first <= i < end) for i, term in enumerate(terms)]
    lines = sheet.wrapped(terms, sheet.left, sheet.right)
    fitting = sheet.left_over // sheet.leading
    if fitting < 1:
        return False
    lines = lines[: min(fitting, max_lines)]
    sheet.add_lines(lines, sheet.left)
    sheet.add_block(to_markdown([term for line in lines for term in line]))
    sheet.skip(0.5)
    return True


def add_list(sheet: Sheet, numbered: bool) -> bool:
    """A list of 2 to 5 items, as many as fit; a numbered one may begin above 1."""
    rng = sheet.rng
    count = rng.randint(2, 5)
    bullet = rng.choice(BULLETS)
    start = 1 if rng.random() < 0.85 else rng.randint(2, 7)
    indent = sheet.left + rng.randint(0, 16)
    text_left = indent + round(sheet.regular.width("00. " if numbered else "•  "))
    items = []
    for i in range(count):
        text = phrase(rng, 2, 6, 0.15) if rng.random() < 0.6 else sentence(rng, 4, 11)
        lines = sheet.wrapped(plain(text), text_left, sheet.right)
        if not sheet.has_room(len(lines) * sheet.leading):
            break
        sheet.add_text(indent, sheet.y, f"{start + i}." if numbered else bullet)
        sheet.add_lines(lines, text_left)
        item = to_markdown([term for line in lines for term in line])
        items.append((f"{start + i}. " if numbered else "- ") + item)
    if not items:
        return False
    sheet.add_block("\n".join(items))
    sheet.skip(0.5)
    return True


def add_fields(sheet: Sheet, count: int | None = None) -> bool:
    """Labelled fields, one a line, their values aligned or not; those that do not fit are left out."""
    rng = sheet.rng
    count = count or rng.randint(2, 6)
    aligned = rng.random() < 0.45
    bold_labels = rng.random() < 0.8
    picked = rng.sample(FIELDS, count)
    fields = [(label if rng.random() < 0.75 else phrase(rng, 1, 2, 0.6), make) for label, make in picked]
    label_face = sheet.face_of(bold_labels)
    value_left = sheet.left + round(max(label_face.width(label + ":") for label, _ in fields) + rng.randint(8, 30))
    written = []
    for label, make in fields:
        value = make(rng)
        x = value_left if aligned else round(sheet.left + label_face.width(label + ": "))
        if not sheet.has_room(sheet.leading) or x + sheet.regular.width(value) > sheet.right:
            continue
        sheet.add_text(sheet.left, sheet.y, label + ":", label_face)
        sheet.add_text(x, sheet.y, value)
        sheet.y += sheet.leading
        written.append(f"**{label}:** {value}" if bold_labels else f"{label}: {value}")
    if not written:
        return False
    sheet.add_block("\n".join(written))
    sheet.skip(0.6)
    return True


def add_total(sheet: Sheet) -> bool:
    """One amount with a bold label, mostly at the right margin."""
    rng = sheet.rng
    label = rng.choice(TOTALS)
    value = money(rng)
    if not sheet.has_room(sheet.leading):
        return False
    label_width = sheet.bold.width(label + ": ")
    width = label_width + sheet.regular.width(value)
    x = sheet.right - width if rng.random() < 0.7 else sheet.left
    sheet.add_text(round(x), sheet.y, label + ":", sheet.bold)
    sheet.add_text(round(x + label_width), sheet.y, value)
    sheet.y += sheet.leading
    sheet.add_block(f"**{label}:** {value}")
    sheet.skip(0.5)
    return True
