"""Draws documents: lays a tree out and paints it with Pillow; about 10 ms a page.

`draw` gives the image and the document that is on it: whole blocks from the front, as many as fit. Lists may be cut at
the end of an item, tables and fields at the end of a row; the returned document is cut alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import Block, Document
from ocria_compress.pages.synth.draw.look import Look

if TYPE_CHECKING:
    from PIL import Image

    from ocria_compress.pages.synth.draw.marks import Box, Mark

__all__ = ["Drawn", "Look", "draw", "used_height"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn page.

    Attributes:
        image: mode RGB, as large as the look says.
        document: what is on it, no more and no less; without blocks if none fitted.
        blocks: every drawn block (those inside columns, not the columns) and its box, in reading order: left, top,
            right, bottom in pixels.
        marks: what was painted, in painting order.
    """

    image: Image.Image
    document: Document
    blocks: list[tuple[Block, Box]]
    marks: list[Mark]


def draw(rng: Random, document: Document, look: Look) -> Drawn:
    """Draws a document.

    Args:
        rng: of small draws of its own: jitter of handwriting, places of stamps.
        document: what to draw. Emphasis that the look's fonts cannot show is taken out of it, and so are note markers
            without notes and notes without markers.
        look: how.

    A block too wide for its column is skipped; the first too high for the room left ends the page.
    """
    from PIL import Image

    from ocria_compress.pages.synth.draw.marks import paint
    from ocria_compress.pages.synth.draw.page import lay_out
    from ocria_compress.pages.synth.draw.place import Setting
    from ocria_compress.pages.synth.draw.visible import note_markers, note_texts, visible, with_notes

    seed = rng.getrandbits(32)
    wanted = visible(document, look)
    while True:
        markers, notes = set(note_markers(wanted.blocks)), set(note_texts(wanted.blocks))
        if markers != notes:
            wanted = with_notes(wanted, frozenset(markers & notes))
        drawn, marks, boxes = lay_out(Setting(look, Random(seed)), wanted)
        shown_markers, shown_notes = set(note_markers(drawn.blocks)), set(note_texts(drawn.blocks))
        if shown_markers == shown_notes:
            break
        # A note or its marker did not fit: without the two, once more. Each round takes at least one away.
        wanted = with_notes(wanted, frozenset(shown_markers & shown_notes))
    image = Image.new("RGB", (look.width, look.height), look.paper)
    paint(image, marks)
    return Drawn(image, drawn, boxes, marks)


def used_height(document: Document, look: Look) -> float:
    """How tall a page (with its lower margin) has to be for what `draw` would draw of this document, in pixels."""
    from ocria_compress.pages.synth.document import Notes
    from ocria_compress.pages.synth.draw.page import lay_out
    from ocria_compress.pages.synth.draw.place import Setting
    from ocria_compress.pages.synth.draw.visible import visible

    _, _, boxes = lay_out(Setting(look, Random(0)), visible(document, look))
    flow = max((box[3] for block, box in boxes if not isinstance(block, Notes)), default=0.0)
    notes = max((box[3] - box[1] for block, box in boxes if isinstance(block, Notes)), default=0.0)
    foot = look.size * look.small_scale + 8 if document.furniture.foot else 0.0
    return flow + notes + (2 * look.size if notes else 0.0) + look.bottom + foot + look.size
