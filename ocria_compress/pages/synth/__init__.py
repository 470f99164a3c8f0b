"""Synthetic document pages with their exact transcription: content, layout, drawing, scan effects.

Everything is a deterministic function of a seed: the same seed gives the same text and, with the same Pillow and
FreeType, the same pixels. `mini` was trained on these pages (tools/mini); the bundled page sets are made of them.

English only, one column, seven families of fonts; headings, paragraphs with bold spans, lists, labelled fields, tables
without spans, totals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL import Image

SIZES = [(448, 448), (512, 512), (640, 480), (576, 640), (448, 640), (640, 512), (544, 448)]
"""Height and width, in pixels, of the pages that `mini` was trained on."""

PROMPT_TOKENS = 17
"""Tokens of a request to `mini` besides the page's own: 16 around the image, and the end token behind the answer."""

CHARACTERS_PER_TOKEN = 2.9

Encode = Callable[[str], Sequence[int]]


class Sample(NamedTuple):
    """A page image (mode L), its transcription, and that as token ids (None without an `encode`)."""

    image: Image.Image
    markdown: str
    ids: Sequence[int] | None


def sample(seed: int, height: int, width: int, encode: Encode | None, max_tokens: int, effects: bool = False) -> Sample:
    """One page.

    Args:
        seed: of every draw.
        height, width: pixels.
        encode: text to token ids; with it, pages longer than `max_tokens` are given up and drawn anew.
        max_tokens: the longest transcription, in tokens of `encode`; it also sets how much is written on the page.
        effects: whether to add scan effects. (Training draws its own on the GPU.)
    """
    from ocria_compress.pages.synth.compose import compose
    from ocria_compress.pages.synth.effects import jpeg, scanned
    from ocria_compress.pages.synth.glyphs import draw

    rng = Random(seed)
    while True:
        sheet, markdown = compose(rng, height, width, max_tokens * CHARACTERS_PER_TOKEN)
        ids = encode(markdown) if encode else None
        if ids is None or len(ids) <= max_tokens:
            break
    image = draw(sheet.marks, height, width, sheet.paper, sheet.ink)
    if effects:
        image = scanned(rng, image, sheet.paper)
    if rng.random() < 0.15:
        image = jpeg(image, rng.randint(45, 92))
    return Sample(image, markdown, ids)


def max_tokens(height: int, width: int, cap: int = 280) -> int:
    """The longest transcription, in tokens, of a page of this size (one image token is 32 x 32 pixels).

    About 250, and so many that request and transcription fill a multiple of 64 tokens, but at most `cap`.
    """
    image_tokens = (height // 32) * (width // 32)
    sequence = -(-(image_tokens + PROMPT_TOKENS + 250) // 64) * 64
    return min(cap, sequence - image_tokens - PROMPT_TOKENS)
