"""Font faces with cached glyphs.

A face keeps each character's masks, so that setting a page costs no font rendering once the caches are warm. Text looks
as in rendered PDF: characters are not hinted (they are drawn four times as large and scaled down), they stand at half
pixels, and their advances are the font's own, not rounded to pixels. There is no kerning: advances add up.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from PIL import Image, ImageFont

from ocria_compress.pages.synth.fonts import FontFamily, load

Style = Literal["regular", "bold", "italic"]

_LARGE = 256.0
"""Advances are measured at this size, pixels an em: rounding to pixels does not matter there."""

_TIMES = 4

Glyph = tuple[Any, int, int, int, int, float]
"""Mask (Pillow's imaging core; None of a space), its left edge and top edge from the pen, width, height, and the
advance in half pixels."""


class _Ems(dict[str, float]):
    """Advances in em."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._font = load(path, _LARGE)

    def __missing__(self, character: str) -> float:
        self[character] = advance = float(self._font.getlength(character)) / _LARGE
        return advance


@lru_cache(maxsize=512)
def _ems(path: Path) -> _Ems:
    return _Ems(path)


class _Advances(dict[str, float]):
    """Advances in pixels."""

    def __init__(self, ems: _Ems, size: float) -> None:
        super().__init__()
        self._ems, self._size = ems, size

    def __missing__(self, character: str) -> float:
        self[character] = advance = self._ems[character] * self._size
        return advance


class _Glyphs(dict[str, Glyph]):
    """`font` is `_TIMES` as large; `shift` is where the pen is, in pixels of it."""

    def __init__(self, font: ImageFont.FreeTypeFont, advances: _Advances, shift: int) -> None:
        super().__init__()
        self._font, self._advances, self._shift = font, advances, shift

    def __missing__(self, character: str) -> Glyph:
        mask, offset = self._font.getmask2(character, mode="L", anchor="ls")
        advance = 2 * self._advances[character]
        glyph: Glyph = (None, 0, 0, 0, 0, advance)
        if all(mask.size):
            left, pad_left = divmod(int(offset[0]) + self._shift, _TIMES)
            top, pad_top = divmod(int(offset[1]), _TIMES)
            width, height = -(-(pad_left + mask.size[0]) // _TIMES), -(-(pad_top + mask.size[1]) // _TIMES)
            large = Image.new("L", (width * _TIMES, height * _TIMES))
            large.im.paste(mask, (pad_left, pad_top, pad_left + mask.size[0], pad_top + mask.size[1]))
            glyph = (large.reduce(_TIMES).im, left, top, width, height, advance)
        self[character] = glyph
        return glyph


class Face:
    """One font file at one size.

    Attributes:
        size: pixels an em.
        advances: by character, pixels.
        glyphs: by character; `halves` those whose pen is at a half pixel.
        space: width of a space.
        up, down: of capitals and accents above the baseline, and of descenders below it, pixels.
        cap: height of a capital H; `low` of an x.
    """

    __slots__ = ("advances", "cap", "down", "glyphs", "halves", "low", "path", "size", "space", "up")

    def __init__(self, path: Path, size: float) -> None:
        font = load(path, size * _TIMES)
        self.path, self.size = path, size
        self.advances = _Advances(_ems(path), size)
        self.glyphs = _Glyphs(font, self.advances, 0)
        self.halves = _Glyphs(font, self.advances, _TIMES // 2)
        self.space = self.advances[" "]
        self.cap = -self.glyphs["H"][2]
        self.low = -self.glyphs["x"][2]
        self.up = max(-self.glyphs["Á"][2], -self.glyphs["f"][2], self.cap)
        self.down = max(self.glyphs[one][2] + self.glyphs[one][4] for one in "gpj")

    def width(self, content: str) -> float:
        """Of a text on one line, pixels."""
        advances = self.advances
        return sum([advances[character] for character in content])


@lru_cache(maxsize=3000)
def _face(path: Path, size: float) -> Face:
    return Face(path, size)


def face(family: FontFamily, style: Style, size: float) -> Face:
    """The face of a family at `size` pixels times the family's scale.

    To half a pixel, large sizes to one or two, so that the caches pay.
    """
    path: Path = getattr(family, style)
    scaled = max(6.0, size * family.scale)
    step = 0.5 if scaled < 16 else 1.0 if scaled < 30 else 2.0
    return _face(path, round(scaled / step) * step)
