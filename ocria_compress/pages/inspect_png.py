"""The contact sheet as one image: each page beside its reference, drawn with Pillow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ocria_compress.pages.inspect_draw import DIM, INK, RULE, draw_reference, face_of
from ocria_compress.pages.inspect_html import facts_of, test_line
from ocria_compress.pages.page_record import Page

if TYPE_CHECKING:
    from PIL import Image

SIDE = 560
"""Width of a page and of its reference, pixels."""

_GAP, _HEAD, _DESK = 24, 34, (242, 244, 247)
_MAX_PIXELS = 120_000_000


def contact_png(pages: Sequence[Page], columns: int = 1) -> Image.Image:
    """The sheet, mode RGB: pages go to the shortest column, so that none is much longer than the others.

    Args:
        pages: what is shown, in order.
        columns: pages side by side.

    Raises:
        OcriaError: as `Page.open`; the sheet would be too large for one image.
    """
    from PIL import Image

    from ocria_compress.errors import OcriaError

    cards = [_card(page) for page in pages]
    heights = [_GAP] * columns
    places = []
    for card in cards:
        column = heights.index(min(heights))
        places.append((_GAP + column * (card.width + _GAP), heights[column]))
        heights[column] += card.height + _GAP
    width = columns * (cards[0].width + _GAP) + _GAP
    if width * max(heights) > _MAX_PIXELS or max(heights) > 65_000:
        raise OcriaError(
            f"the contact sheet of {len(pages)} pages would have {width} x {max(heights)} pixels",
            fix="show fewer pages (--count), more side by side (--columns), or write .html",
        )
    sheet = Image.new("RGB", (width, max(heights)), _DESK)
    for card, place in zip(cards, places, strict=True):
        sheet.paste(card, place)
    return sheet


def _card(page: Page) -> Image.Image:
    from PIL import Image, ImageDraw

    image = page.open()
    if image.width > SIDE or image.height > 2 * SIDE:
        scale = min(SIDE / image.width, 2 * SIDE / image.height)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    reference = draw_reference(_shown(page), SIDE, max_height=max(900, 2 * image.height))
    height = _HEAD + max(image.height, reference.height) + 2 * _GAP
    card = Image.new("RGB", (2 * SIDE + 3 * _GAP, height), "white")
    pen = ImageDraw.Draw(card)
    pen.rectangle((0, _HEAD, SIDE + 1.5 * _GAP, height), fill=(232, 235, 240))
    pen.rectangle((0, 0, card.width - 1, card.height - 1), outline=RULE)
    pen.line((0, _HEAD, card.width, _HEAD), fill=RULE)
    name = page.id if len(page.id) <= 60 else page.id[:59] + "…"
    pen.text((_GAP, 22), name, font=face_of("bold", 14), fill=INK, anchor="ls")
    start = _GAP + face_of("bold", 14).getlength(name) + 14
    facts = facts_of(page)
    while facts and start + face_of("regular", 13).getlength(facts) > card.width - _GAP:
        facts = facts[:-2].rstrip("… ") + "…" if len(facts) > 3 else ""
    pen.text((start, 22), facts, font=face_of("regular", 13), fill=DIM, anchor="ls")
    card.paste(image, (_GAP, _HEAD + _GAP))
    card.paste(reference, (SIDE + 2 * _GAP + _GAP // 2, _HEAD + _GAP))
    return card


def _shown(page: Page) -> str:
    if page.reference is None:
        tests = page.meta.get("tests", [])
        said = f"; {len(tests)} test{'s' * (len(tests) > 1)}" if tests else ""
        lines = [f"*no reference{said}*"]
        return "\n\n".join(lines + [_literally(test_line(test)) for test in tests[:20]])
    return page.reference if page.reference.strip() else "*empty: a page without text*"


def _literally(text: str) -> str:
    """Text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_$<>\[\]#|~!-])", r"\\\1", " ".join(text.split()))
