"""Fonts, text widths and the drawing of a laid-out page.

Glyphs are rendered once per face and size and then pasted by numpy with a maximum blend: a page takes 5 to 8 ms.
Text is set glyph by glyph at whole pixels, without kerning.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

FONTS = Path(__file__).with_name("fonts")


class Family(NamedTuple):
    """A typeface: its two faces, and the factor that makes its letters as large as the others'."""

    regular: str
    bold: str
    scale: float


FAMILIES = [
    Family("LiberationSans-Regular", "LiberationSans-Bold", 1.0),
    Family("LiberationSerif-Regular", "LiberationSerif-Bold", 1.07),
    Family("LiberationMono-Regular", "LiberationMono-Bold", 0.95),
    Family("DejaVuSans", "DejaVuSans-Bold", 0.93),
    Family("DejaVuSerif", "DejaVuSerif-Bold", 0.93),
    Family("NotoSans-Regular", "NotoSans-Bold", 0.98),
    Family("NotoSerif-Regular", "NotoSerif-Bold", 0.98),
]
FAMILY_WEIGHTS = [0.24, 0.22, 0.06, 0.12, 0.1, 0.14, 0.12]


@dataclass(frozen=True)
class Glyph:
    """One character of a face at a size: its mask (None for a blank), where it lies and how far it moves the pen."""

    mask: NDArray[Any] | None
    x_offset: int
    y_offset: int
    advance: float


@dataclass
class Face:
    """A font face at a size in pixels, with its glyphs and advances as they were first needed."""

    name: str
    size: int
    font: Any
    _advances: dict[str, float] = field(default_factory=dict)
    _glyphs: dict[str, Glyph] = field(default_factory=dict)

    def width(self, text: str) -> float:
        """The width of `text` in pixels."""
        total = 0.0
        for character in text:
            advance = self._advances.get(character)
            if advance is None:
                advance = self._advances[character] = self.font.getlength(character)
            total += advance
        return total

    def glyph(self, character: str) -> Glyph:
        """The rendered glyph of one character."""
        glyph = self._glyphs.get(character)
        if glyph is None:
            glyph = self._glyphs[character] = self._render(character)
        return glyph

    def _render(self, character: str) -> Glyph:
        import numpy as np
        from PIL import Image, ImageDraw

        canvas = Image.new("L", (4 * self.size, 3 * self.size), 0)
        ImageDraw.Draw(canvas).text((self.size, self.size), character, font=self.font, fill=255)
        box = canvas.getbbox()
        advance = self.font.getlength(character)
        if box is None:
            return Glyph(None, 0, 0, advance)
        mask = np.ascontiguousarray(np.asarray(canvas.crop(box)))
        return Glyph(mask, box[0] - self.size, box[1] - self.size, advance)


@functools.cache
def face(name: str, size: int) -> Face:
    """The bundled face `name` at `size` pixels."""
    from PIL import ImageFont

    path = str(FONTS / f"{name}.ttf")
    return Face(name, size, ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC))


@dataclass(frozen=True)
class Text:
    """A run of text whose pen starts at (x, y), the top left corner of its line."""

    x: int
    y: int
    text: str
    face: Face


@dataclass(frozen=True)
class Line:
    """A straight line, one pixel wide."""

    box: tuple[int, int, int, int]
    grey: int


@dataclass(frozen=True)
class Rectangle:
    """A filled rectangle, below everything else."""

    box: tuple[int, int, int, int]
    grey: int


Mark = Text | Line | Rectangle


def draw(marks: Sequence[Mark], height: int, width: int, paper: int, ink: int) -> Image.Image:
    """Draws a page.

    Args:
        marks: what is on it.
        height, width: pixels.
        paper, ink: grey values, 0 (black) to 255.

    Returns:
        The page, mode L.
    """
    import numpy as np
    from PIL import Image, ImageDraw

    image = Image.new("L", (width, height), paper)
    pencil = ImageDraw.Draw(image)
    for mark in marks:
        if isinstance(mark, Rectangle):
            pencil.rectangle(mark.box, fill=mark.grey)
    for mark in marks:
        if isinstance(mark, Line):
            pencil.line(mark.box, fill=mark.grey)
    coverage = np.zeros((height, width), np.uint8)
    for mark in marks:
        if isinstance(mark, Text):
            _set_text(coverage, mark)
    below = np.asarray(image, np.uint16)
    above = coverage.astype(np.uint16)
    return Image.fromarray(((below * (255 - above) + above * np.uint16(ink)) // 255).astype(np.uint8))


def _set_text(coverage: NDArray[Any], text: Text) -> None:
    pen = float(text.x)
    for character in text.text:
        glyph = text.face.glyph(character)
        if glyph.mask is not None:
            _paste(coverage, glyph.mask, int(pen + 0.5) + glyph.x_offset, text.y + glyph.y_offset)
        pen += glyph.advance


def _paste(coverage: NDArray[Any], mask: NDArray[Any], left: int, top: int) -> None:
    """Blends `mask` into `coverage` by maximum; what lies outside is cut off."""
    import numpy as np

    page_height, page_width = coverage.shape
    height, width = mask.shape
    if top < 0 or left < 0 or top + height > page_height or left + width > page_width:
        skip_y, skip_x = max(0, -top), max(0, -left)
        mask = mask[skip_y : max(skip_y, page_height - top), skip_x : max(skip_x, page_width - left)]
        top, left = max(0, top), max(0, left)
        height, width = mask.shape
        if height <= 0 or width <= 0:
            return
    target = coverage[top : top + height, left : left + width]
    np.maximum(target, mask, out=target)
