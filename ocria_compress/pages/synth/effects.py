"""What scanning and copying do to a page: a slight turn, blur, noise, uneven light, JPEG and the like.

The page is taken apart into brightness and colour (YCbCr). Every effect but the turn and the tint touches the
brightness only, and most pages have no colour: that makes it several times faster than work on RGB. Arrays are uint8 or
int16 throughout. Shapes: H rows, W columns of pixels.
"""

from __future__ import annotations

import functools
import io
import itertools
import math
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ocria_compress.errors import OcriaError

if TYPE_CHECKING:
    from PIL import Image

Array = Any

_MOST_TURN = 2.0  # degrees
_MOST_STRENGTH = 2.0
_TILE = 1280  # pixels a side of the tile of noise
_GREYISH = 12  # R, G and B of a page without colours are this close everywhere (slightly yellow paper, bluish ink)
_NEUTRAL = 128  # Cb and Cr of grey


def scanned(rng: Random, image: Image.Image, strength: float = 1.0) -> tuple[Image.Image, list[str]]:
    """The page as if printed and scanned: at least one of `EFFECTS`, each by chance, in that order.

    Args:
        rng: where all draws come from: the same state gives the same pixels.
        image: the clean page, mode RGB, at least 8 pixels a side.
        strength: factor on how strong each effect is, 0 to 2; a turn never exceeds 2 degrees. At 1, text of 11 pixels
            and more stays readable.

    Returns:
        The page, mode RGB, of the same size, and the names of the effects applied.

    Raises:
        OcriaError: another mode, a page too small, or a strength out of range.
    """
    if image.mode != "RGB" or min(image.size) < 8:
        raise OcriaError(
            f"scan effects need an RGB image of at least 8x8 pixels, not {image.mode} {image.width}x{image.height}",
            where="image",
            fix='convert it with image.convert("RGB")',
        )
    if not 0 <= strength <= _MOST_STRENGTH:
        raise OcriaError(f"{strength} is no strength of scan effects", where="strength", fix="a number from 0 to 2")
    chosen = [name for name, (chance, _) in _EFFECTS.items() if rng.random() < chance]
    for one, other in _NOT_BOTH:
        if one in chosen and other in chosen:
            chosen.remove(one)
    if not chosen:
        chosen = [rng.choice(("blur", "noise", "light", "jpeg"))]
    page = _Page(image, "grey" in chosen)
    for name in chosen:
        _EFFECTS[name][1](rng, page, strength)
    return page.rgb(), chosen


class _Page:
    """A page taken apart.

    Attributes:
        luma_HW: the brightness.
        paper: the brightness of the paper.
        chroma: Cb and Cr at half the size, or None on a page without colours.
        paper_chroma: Cb and Cr of the paper.
        tint: added to Cb and Cr everywhere.
        contrast: how much of the contrast is left.
    """

    def __init__(self, image: Image.Image, grey: bool) -> None:
        """Take `image` apart; `grey` leaves its colours out."""
        from PIL import Image, ImageChops

        self.luma_HW: Array = np.asarray(image.convert("L"))
        self.paper = _commonest(self.luma_HW)
        self.contrast = 1.0
        self.chroma: list[Array] | None = None
        self.paper_chroma = [_NEUTRAL, _NEUTRAL]
        self.tint = (0, 0)
        if grey:
            return
        half = image.resize((-(-image.width // 2), -(-image.height // 2)), Image.Resampling.NEAREST)
        red, green, blue = half.split()
        apart = max(_most(ImageChops.difference(red, other)) for other in (green, blue))
        if not apart:
            return
        coloured = apart > _GREYISH
        small = image.reduce(2) if coloured else half.resize((-(-half.width // 4), -(-half.height // 4)), 0)
        chroma = [np.asarray(part) for part in small.convert("YCbCr").split()[1:]]
        self.paper_chroma = [_commonest(part) for part in chroma]
        if coloured:
            self.chroma = chroma
        else:
            self.tint = (self.paper_chroma[0] - _NEUTRAL, self.paper_chroma[1] - _NEUTRAL)

    def rgb(self) -> Image.Image:
        """The page put together."""
        from PIL import Image

        luma = Image.fromarray(self.luma_HW)
        if self.chroma is None:
            if self.tint == (0, 0):
                return Image.merge("RGB", (luma, luma, luma))
            luma.putpalette(bytes(value for colour in zip(*_tinted(*self.tint), strict=True) for value in colour))
            return luma.convert("RGB")
        full = []
        for part_HW, shift in zip(self.chroma, self.tint, strict=True):
            part = Image.fromarray(part_HW)
            if shift:
                part = part.point(_shifted(shift))
            full.append(part.resize(luma.size, Image.Resampling.NEAREST))
        return Image.merge("YCbCr", (luma, *full)).convert("RGB")


def _commonest(values_HW: Array) -> int:
    """The commonest value, by every fourth pixel each way of a large image."""
    step = 4 if values_HW.size > 40_000 else 1
    return int(np.bincount(values_HW[::step, ::step].ravel(), minlength=256).argmax())


def _most(image: Image.Image) -> int:
    """The largest value of a grey image."""
    return int(np.asarray(image).max())


def _shifted(shift: int) -> list[int]:
    return [min(255, max(0, value + shift)) for value in range(256)]


def _tinted(blue: int, red: int) -> list[list[int]]:
    """Tables from grey to R, G and B for a shift of Cb and Cr (JFIF's YCbCr)."""
    shifts = (1.402 * red, -0.344136 * blue - 0.714136 * red, 1.772 * blue)
    return [_shifted(round(shift)) for shift in shifts]


def _limited(values_HW: Array) -> Array:
    """int16 to uint8, limited to 0..255."""
    return np.clip(values_HW, 0, 255, out=values_HW).astype(np.uint8)


def _show_through(rng: Random, page: _Page, strength: float) -> None:
    """The other side of the sheet, mirrored and faint: this page's own text, moved."""
    faint = round(256 * rng.uniform(0.06, 0.16) * strength)
    height, width = page.luma_HW.shape
    back_HW = np.roll(page.luma_HW[:, ::-1], (rng.randrange(height), rng.randrange(-width // 8, width // 8)), (0, 1))
    back_HW = _smooth(_smooth(back_HW, 0.3, 1), 0.3, 0)
    shade_HW = np.maximum(page.paper - back_HW.astype(np.int16), 0) * faint >> 8
    page.luma_HW = _limited(page.luma_HW - shade_HW)


def _rotation(rng: Random, page: _Page, strength: float) -> None:
    """Turn about the middle by up to 2 degrees, mostly far less."""
    degrees = min(_MOST_TURN, _MOST_TURN * strength) * rng.random() ** 2.2 * rng.choice((-1, 1))
    slope = math.tan(math.radians(degrees))

    def turned(values_HW: Array, paper: int) -> Array:
        return _shear(_shear(values_HW, slope, paper, 0), -slope, paper, 1)

    page.luma_HW = turned(page.luma_HW, page.paper)
    if page.chroma is not None:
        page.chroma = [turned(part, paper) for part, paper in zip(page.chroma, page.paper_chroma, strict=True)]


def _shear(values_HW: Array, slope: float, paper: int, axis: int) -> Array:
    """Move each row (`axis` 0) along itself, or each column (1), by `slope` times its distance from the middle.

    Two shears make a turn: for 2 degrees the error is 0.1 % of the distance. In between pixels, Keys' cubic
    convolution with a = -0.5 (R. Keys, IEEE Trans. ASSP 29, 1981), its weights in 64ths.
    """
    lines, length = values_HW.shape if axis == 0 else values_HW.shape[::-1]
    moves = slope * (np.arange(lines) - (lines - 1) / 2)
    whole = np.floor(moves).astype(int)
    part = moves - whole
    pad = int(np.abs(whole).max()) + 3
    shape = (lines, length + 3) if axis == 0 else (length + 3, lines)
    source_HW = np.pad(values_HW, ((0, 0), (pad, pad)) if axis == 0 else ((pad, pad), (0, 0)), constant_values=paper)
    moved_HW = np.empty(shape, np.uint8)
    edges = [0, *(np.flatnonzero(np.diff(whole)) + 1).tolist(), lines]
    for start, end in itertools.pairwise(edges):  # few blocks: neighbours mostly move by the same
        first = pad + int(whole[start]) - 1
        if axis == 0:
            moved_HW[start:end] = source_HW[start:end, first : first + length + 3]
        else:
            moved_HW[:, start:end] = source_HW[first : first + length + 3, start:end]
    weights = np.stack(
        [
            ((-0.5 * part + 1) * part - 0.5) * part,
            (1.5 * part - 2.5) * part * part + 1,
            ((-1.5 * part + 2) * part + 0.5) * part,
            (0.5 * part - 0.5) * part * part,
        ]
    )
    taps = np.rint(64 * weights).astype(np.int16)
    taps[1] += 64 - taps.sum(0, dtype=np.int16)
    total_HW: Array = 32
    for k in range(4):
        piece_HW = moved_HW[:, k : k + length] if axis == 0 else moved_HW[k : k + length]
        total_HW = total_HW + piece_HW * (taps[k][:, None] if axis == 0 else taps[k][None])
    total_HW >>= 6
    return _limited(total_HW)


def _smooth(values_HW: Array, side: float, axis: int) -> Array:
    """Average each pixel with its two neighbours along `axis`, which weigh `side` each (0 to 1/3)."""
    weight = round(128 * side)
    wide_HW = np.pad(values_HW, ((1, 1), (0, 0)) if axis == 0 else ((0, 0), (1, 1)), mode="edge").astype(np.uint16)
    before, after = (wide_HW[:-2], wide_HW[2:]) if axis == 0 else (wide_HW[:, :-2], wide_HW[:, 2:])
    total_HW = before + after
    total_HW *= weight
    total_HW += values_HW * np.uint16(128 - 2 * weight)
    total_HW += 64
    total_HW >>= 7
    return total_HW.astype(np.uint8)


def _blur(rng: Random, page: _Page, strength: float) -> None:
    """Out of focus (a bell of deviation up to 0.75 pixels both ways), or moved along one way."""
    moved = rng.random() < 0.3
    deviation = rng.uniform(0.35, 0.75) * min(strength, 1.05)  # 3 taps reach 0.8
    axes = (rng.randrange(2),) if moved else (0, 1)
    for axis in axes:
        page.luma_HW = _smooth(page.luma_HW, deviation**2 / 2, axis)


def _resample(rng: Random, page: _Page, strength: float) -> None:
    """Stored at a lower resolution and enlarged again."""
    from PIL import Image

    factor = 1 - rng.uniform(0.1, 0.25) * strength
    height, width = page.luma_HW.shape
    small = Image.fromarray(page.luma_HW).resize(
        (max(4, round(width * factor)), max(4, round(height * factor))), Image.Resampling.BILINEAR
    )
    page.luma_HW = np.asarray(small.resize((width, height), Image.Resampling.BILINEAR))


def _light(rng: Random, page: _Page, strength: float) -> None:
    """Light that falls off evenly across the page, in some direction."""
    height, width = page.luma_HW.shape
    fall = rng.uniform(0.06, 0.28) * strength
    angle = rng.uniform(0, 2 * math.pi)
    across = np.linspace(-1, 1, width) * math.cos(angle)
    down = np.linspace(-1, 1, height) * math.sin(angle)
    reach = abs(math.cos(angle)) + abs(math.sin(angle))
    _shade(page, fall * (across / reach - 1) / 2, fall * (down / reach - 1) / 2)


def _edge(rng: Random, page: _Page, strength: float) -> None:
    """A dark edge, as of a book's gutter or a lid that does not close."""
    height, width = page.luma_HW.shape
    axis, far = rng.choice((0, 1, 1)), rng.random() < 0.5
    length = width if axis else height
    depth, reach = rng.uniform(0.15, 0.55) * strength, rng.uniform(0.015, 0.06)
    shade = -min(depth, 0.7) * np.exp(-np.arange(length) / (reach * length))
    shade = shade[::-1] if far else shade
    none = np.zeros(height if axis else width)
    _shade(page, *((shade, none) if axis else (none, shade)))


def _shade(page: _Page, across_W: Array, down_H: Array) -> None:
    """Darken by the sum of two parts of the brightness (-1 black, 0 no change)."""
    gain_HW = np.rint(128 * (1 + across_W)).astype(np.int16)[None] + np.rint(128 * down_H).astype(np.int16)[:, None]
    np.maximum(gain_HW, 24, out=gain_HW)
    gain_HW *= page.luma_HW  # at most 255 * 128
    gain_HW >>= 7
    page.luma_HW = gain_HW.astype(np.uint8)


def _contrast(rng: Random, page: _Page, strength: float) -> None:
    """Faded: ink lighter, paper greyer."""
    ink, paper = min(rng.uniform(0.1, 0.38) * strength, 0.5), 1 - rng.uniform(0, 0.18) * strength
    page.contrast *= paper - ink
    _map(page, [255 * ink + value * (paper - ink) for value in range(256)])


def _brightness(rng: Random, page: _Page, strength: float) -> None:
    """Under- or overexposed."""
    gamma = math.exp(rng.uniform(-0.35, 0.35) * strength)
    _map(page, [255 * (value / 255) ** gamma for value in range(256)])


def _map(page: _Page, table: list[float]) -> None:
    """Replace each brightness by the table's."""
    from PIL import Image

    page.luma_HW = np.asarray(Image.fromarray(page.luma_HW).point([round(value) for value in table]))


def _grey(rng: Random, page: _Page, strength: float) -> None:
    """No colours: they have been left out when the page was taken apart."""


def _tint(rng: Random, page: _Page, strength: float) -> None:
    """Yellowed paper, or a scanner's cast."""
    if rng.random() < 0.6:
        blue = -rng.uniform(4, 20)
        red = -blue * rng.uniform(0.15, 0.5)
    else:
        blue, red = rng.uniform(-6, 6), rng.uniform(-6, 6)
    page.tint = (page.tint[0] + round(blue * strength), page.tint[1] + round(red * strength))


@functools.lru_cache(maxsize=2)
def _noise_tile(coarse: bool) -> Array:
    """Normal noise of deviation 32, int8, `_TILE` pixels a side; the coarse one is of two pixels' grain."""
    tile: Array = np.random.default_rng(1).normal(0, 32, (_TILE, _TILE)).astype(np.float32)
    if coarse:  # the mean of four of equal deviation has half of it
        tile = (tile + np.roll(tile, 1, 0) + np.roll(tile, 1, 1) + np.roll(tile, (1, 1), (0, 1))) / 2
    return np.clip(np.rint(tile), -127, 127).astype(np.int8)


def _noise(rng: Random, page: _Page, strength: float) -> None:
    """Grain of deviation 2 to 11 of 255, less on a faded page: a piece of a ready tile, mirrored or not."""
    height, width = page.luma_HW.shape
    tile = _noise_tile(rng.random() < 0.4)
    if max(height, width) > _TILE:
        tile = np.tile(tile, (-(-height // _TILE), -(-width // _TILE)))
    top, left = rng.randint(0, tile.shape[0] - height), rng.randint(0, tile.shape[1] - width)
    piece_HW = tile[top : top + height, left : left + width][:: rng.choice((-1, 1)), :: rng.choice((-1, 1))]
    scale = max(1, round(256 * rng.uniform(2, 11) * strength * page.contrast / 32)) * rng.choice((-1, 1))
    noise_HW = piece_HW * np.int16(scale)  # at most 127 * 176
    noise_HW >>= 8
    noise_HW += page.luma_HW
    page.luma_HW = _limited(noise_HW)


def _speckle(rng: Random, page: _Page, strength: float) -> None:
    """Dust: dots of one or two pixels, grey on the paper or light in the ink."""
    height, width = page.luma_HW.shape
    dots = np.random.default_rng(rng.getrandbits(32))
    count = max(1, round(height * width * rng.uniform(2e-5, 2e-4) * strength))
    rows, columns = dots.integers(0, height - 1, count), dots.integers(0, width - 1, count)
    grey = dots.integers(70, 190, count, dtype=np.uint8)
    light = dots.random(count) < 0.3
    grey[light] = 235
    luma_HW = page.luma_HW.copy()
    wide = dots.random(count) < 0.35
    luma_HW[rows, columns] = grey
    luma_HW[rows[wide], columns[wide] + 1] = grey[wide]
    luma_HW[rows[wide] + 1, columns[wide]] = grey[wide]
    page.luma_HW = luma_HW


def _jpeg(rng: Random, page: _Page, strength: float) -> None:
    """JPEG, quality 35 to 90."""
    from PIL import Image

    quality = max(15, round(100 - (100 - rng.triangular(35, 90, 70)) * strength))
    buffer = io.BytesIO()
    Image.fromarray(page.luma_HW).save(buffer, "JPEG", quality=quality)
    buffer.seek(0)
    with Image.open(buffer) as stored:
        page.luma_HW = np.asarray(stored)


_EFFECTS: dict[str, tuple[float, Callable[[Random, _Page, float], None]]] = {
    "show_through": (0.1, _show_through),
    "rotation": (0.4, _rotation),
    "blur": (0.3, _blur),
    "resample": (0.15, _resample),
    "light": (0.35, _light),
    "edge": (0.12, _edge),
    "contrast": (0.25, _contrast),
    "brightness": (0.3, _brightness),
    "grey": (0.4, _grey),
    "tint": (0.2, _tint),
    "noise": (0.45, _noise),
    "speckle": (0.2, _speckle),
    "jpeg": (0.4, _jpeg),
}
"""Each effect's chance and what does it."""

_NOT_BOTH = (("blur", "resample"), ("brightness", "contrast"))
"""Pairs that together make small text unreadable: the first is left out."""

EFFECTS: tuple[str, ...] = tuple(_EFFECTS)
"""The effects' names, in the order in which they are applied."""
