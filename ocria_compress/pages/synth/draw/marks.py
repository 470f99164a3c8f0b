"""What is painted: a flat list of marks in pixels, and the painting of it.

`x` grows to the right, `y` downwards. Boxes are left, top, right, bottom; right and bottom are outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from PIL import Image, ImageDraw

from ocria_compress.pages.synth.draw.colors import Color
from ocria_compress.pages.synth.draw.faces import Face

Box = tuple[float, float, float, float]


class TextMark(NamedTuple):
    """Text whose baseline begins at (x, y)."""

    x: float
    y: float
    text: str
    face: Face
    color: Color


class Fill(NamedTuple):
    """A filled rectangle: shades, bars and straight lines."""

    box: Box
    color: Color


class Frame(NamedTuple):
    """A rectangle's outline, inside its box."""

    box: Box
    color: Color
    width: int = 1
    radius: int = 0


class Stroke(NamedTuple):
    """Lines through points, with a dot of `dot` pixels' radius at each point (0: none)."""

    points: tuple[tuple[float, float], ...]
    color: Color
    width: int = 1
    dot: int = 0


class Picture(NamedTuple):
    """A mask (mode L), its top left corner at (x, y), in one colour; `text` is what it says, a formula's LaTeX."""

    x: float
    y: float
    mask: Image.Image
    color: Color
    text: str


@dataclass(frozen=True, slots=True)
class Turned:
    """Marks drawn in one colour on a layer of `size` pixels, turned (degrees counterclockwise) around its middle, which
    comes to (x, y)."""

    x: float
    y: float
    size: tuple[int, int]
    turn: float
    color: Color
    marks: tuple[TextMark | Frame, ...]


Mark = TextMark | Fill | Frame | Stroke | Picture | Turned


def set_text(image: Image.Image, mark: TextMark, color: Color | int) -> None:
    """Sets the text of a mark on an image; what is outside the image is clipped."""
    paste, glyphs, halves = image.im.paste, mark.face.glyphs, mark.face.halves
    x, baseline = 2 * mark.x + 0.5, round(mark.y)  # in half pixels, rounded by int
    for character in mark.text:
        at = int(x)
        mask, left, top, width, height, advance = (halves if at & 1 else glyphs)[character]
        if mask is not None:
            x0, y0 = (at >> 1) + left, baseline + top
            paste(color, (x0, y0, x0 + width, y0 + height), mask)
        x += advance


def paint(image: Image.Image, marks: Iterable[Mark]) -> None:
    """Paints marks on an RGB image, in their order."""
    pen = ImageDraw.Draw(image)
    for mark in marks:
        if isinstance(mark, TextMark):
            set_text(image, mark, mark.color)
        elif isinstance(mark, Fill):
            image.paste(mark.color, _pixels(mark.box))
        elif isinstance(mark, Frame):
            _frame(pen, mark, mark.color)
        elif isinstance(mark, Stroke):
            _stroke(pen, mark)
        elif isinstance(mark, Picture):
            image.paste(mark.color, (round(mark.x), round(mark.y)), mark.mask)
        else:
            _turned(image, mark)


def _pixels(box: Box) -> tuple[int, int, int, int]:
    """Whole pixels, at least one each way."""
    left, top, right, bottom = (round(edge) for edge in box)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _frame(pen: ImageDraw.ImageDraw, mark: Frame, color: Color | int) -> None:
    left, top, right, bottom = _pixels(mark.box)
    shape = (left, top, right - 1, bottom - 1)
    if mark.radius:
        pen.rounded_rectangle(shape, mark.radius, outline=color, width=mark.width)
    else:
        pen.rectangle(shape, outline=color, width=mark.width)


def _stroke(pen: ImageDraw.ImageDraw, mark: Stroke) -> None:
    pen.line(mark.points, fill=mark.color, width=mark.width, joint="curve")
    if mark.dot:
        for x, y in mark.points:
            pen.ellipse((x - mark.dot, y - mark.dot, x + mark.dot, y + mark.dot), fill=mark.color)


def _turned(image: Image.Image, mark: Turned) -> None:
    layer = Image.new("L", mark.size)
    pen = ImageDraw.Draw(layer)
    for part in mark.marks:
        if isinstance(part, TextMark):
            set_text(layer, part, 255)
        else:
            _frame(pen, part, 255)
    if mark.turn:
        layer = layer.rotate(mark.turn, Image.Resampling.BICUBIC, expand=True)
    corner = (round(mark.x - layer.width / 2), round(mark.y - layer.height / 2))
    image.paste(mark.color, corner, layer)
