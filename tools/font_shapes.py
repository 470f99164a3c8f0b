"""Drawing characters that a font lacks: arrows, boxes, ticks and the like, in its own stroke width and heights."""

from __future__ import annotations

import math
from typing import Any

from fontTools.misc.transform import Identity, Transform
from fontTools.pens.boundsPen import BoundsPen
from fontTools.pens.recordingPen import DecomposingRecordingPen, RecordingPen
from fontTools.pens.reverseContourPen import ReverseContourPen
from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont


def bounds(font: TTFont, character: str) -> tuple[float, float, float, float]:
    """The box of a character's outline in font units: left, bottom, right, top."""
    glyphs = font.getGlyphSet()
    pen = BoundsPen(glyphs)
    glyphs[font.getBestCmap()[ord(character)]].draw(pen)
    return pen.bounds


class Shapes:
    """Draws the characters that a font lacks, in its stroke width and on its heights."""

    def __init__(self, font: TTFont, kind: str) -> None:
        """Measure the font: em, stroke, height of capitals; every glyph of a `mono` font gets the same advance."""
        cmap = font.getBestCmap()
        self.font, self.glyphs, self.cmap = font, font.getGlyphSet(), cmap
        self.em = font["head"].unitsPerEm
        dash = bounds(font, "–")
        # Handwritten dashes slope: their box is taller than the stroke.
        self.stroke = min(dash[3] - dash[1], (0.05 if kind == "hand" else 0.13) * self.em)
        self.cap = bounds(font, "H")[3]
        plus = bounds(font, "+")
        self.middle = (plus[1] + plus[3]) / 2
        self.mono = font["hmtx"][cmap[ord("0")]][0] if kind == "mono" else None

    def finish(self, contours: RecordingPen, box: tuple[float, float]) -> tuple[Any, int]:
        """The glyph and its advance: `box` is its left and right end; room is added on both sides."""
        side = 0.08 * self.em
        width = box[1] - box[0] + 2 * side
        move = Identity.translate(side - box[0], 0)
        advance = round(width)
        if self.mono is not None:
            narrow = min(1.0, self.mono / width)
            move = Identity.translate((self.mono - narrow * width) / 2, 0).scale(narrow, 1).transform(move)
            advance = self.mono
        pen = TTGlyphPen(None)
        contours.replay(TransformPen(pen, move))
        return pen.glyph(), advance

    def polygon(self, pen: RecordingPen, *points: tuple[float, float], hole: bool = False) -> None:
        """A filled polygon, turned so that it is black (or, as a hole, white), whichever way it is given."""
        area = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(points, points[1:] + points[:1], strict=True))
        ordered = points if (area > 0) == hole else points[::-1]
        pen.moveTo(ordered[0])
        for point in ordered[1:]:
            pen.lineTo(point)
        pen.closePath()

    def line(self, pen: RecordingPen, a: tuple[float, float], b: tuple[float, float], width: float) -> None:
        """A straight stroke from `a` to `b`."""
        length = math.dist(a, b)
        x, y = -(b[1] - a[1]) / length * width / 2, (b[0] - a[0]) / length * width / 2
        self.polygon(pen, (a[0] + x, a[1] + y), (b[0] + x, b[1] + y), (b[0] - x, b[1] - y), (a[0] - x, a[1] - y))

    def circle(self, pen: RecordingPen, x: float, y: float, radius: float, hole: bool = False) -> None:
        """A disc of eight quadratic arcs."""
        corners = [
            (x + radius / math.cos(math.pi / 8) * math.cos(a), y + radius / math.cos(math.pi / 8) * math.sin(a))
            for a in (math.pi * (k + 0.5) / 4 for k in range(8))
        ]
        pen.qCurveTo(*(corners if hole else corners[::-1]), None)
        pen.closePath()

    def arrow(self, character: str) -> tuple[Any, int]:
        """→ or ←."""
        pen, width, y, t = RecordingPen(), 0.75 * self.em, self.middle, self.stroke
        head = 0.2 * self.em
        ends = ((0.0, y), (width, y)) if character == "→" else ((width, y), (0.0, y))
        back = ends[1][0] + (head if character == "←" else -head)
        self.line(pen, ends[0], ((back + ends[1][0]) / 2, y), t)
        self.polygon(pen, ends[1], (back, y + head * 0.8), (back, y - head * 0.8))
        return self.finish(pen, (0, width))

    def compared(self, character: str) -> tuple[Any, int]:
        """≤ or ≥ (the font's own < or >, flatter, above a bar) or ≠ (= with a stroke through it)."""
        pen, t = RecordingPen(), self.stroke
        base = {"≤": "<", "≥": ">", "≠": "="}[character]
        left, bottom, right, top = bounds(self.font, base)
        outline = self.outline(base)
        if character == "≠":
            outline.replay(pen)
            slant, reach = 0.12 * self.em, 0.12 * self.em
            middle = (left + right) / 2
            self.line(pen, (middle - slant, bottom - reach), (middle + slant, top + reach), t)
        else:
            lift = Transform(1, 0, 0, 0.82, 0, top - 0.82 * top + 0.04 * self.em)
            outline.replay(TransformPen(pen, lift))
            y = lift.transformPoint((0, bottom))[1] - 1.3 * t
            self.line(pen, (left, y), (right, y), t)
        return self.finish(pen, (left, right))

    def box(self, character: str) -> tuple[Any, int]:
        """■ □ ▪ ▸ and the ballot boxes ☐ ☑ ☒."""
        pen, t = RecordingPen(), self.stroke * 0.8
        side = (0.5 if character in "▪▸" else 0.95) * self.cap
        low = (self.cap - side) / 2
        if character == "▸":
            self.polygon(pen, (0, low), (0, low + side), (0.8 * side, low + side / 2))
            return self.finish(pen, (0, 0.8 * side))
        self.polygon(pen, (0, low), (side, low), (side, low + side), (0, low + side))
        if character not in "■▪":
            near, far = t, side - t
            self.polygon(pen, (near, low + near), (far, low + near), (far, low + far), (near, low + far), hole=True)
        if character in "☑☒":
            self.mark(pen, "✓" if character == "☑" else "✗", (0.2 * side, low + 0.2 * side), 0.6 * side)
        return self.finish(pen, (0, side))

    def mark(self, pen: RecordingPen, character: str, corner: tuple[float, float], side: float) -> None:
        """A tick or a cross in a square."""
        x, y = corner
        if character == "✓":
            self.line(pen, (x, y + 0.5 * side), (x + 0.38 * side, y + 0.05 * side), self.stroke)
            self.line(pen, (x + 0.32 * side, y), (x + side, y + side), self.stroke)
        else:
            self.line(pen, (x, y), (x + side, y + side), self.stroke)
            self.line(pen, (x, y + side), (x + side, y), self.stroke)

    def tick(self, character: str) -> tuple[Any, int]:
        """✓ or ✗."""
        pen, side = RecordingPen(), 0.85 * self.cap
        self.mark(pen, character, (0, 0.05 * self.cap), side)
        return self.finish(pen, (0, side))

    def ball(self, character: str) -> tuple[Any, int]:
        """● ○ ◦"""
        pen = RecordingPen()
        radius = (0.17 if character == "◦" else 0.33) * self.cap
        y = self.cap * 0.48
        self.circle(pen, radius, y, radius)
        if character in "○◦":
            self.circle(pen, radius, y, radius - 0.7 * self.stroke, hole=True)
        return self.finish(pen, (0, 2 * radius))

    def outline(self, character: str) -> RecordingPen:
        """The outline of a character that the font has, without references."""
        recording, pen = DecomposingRecordingPen(self.glyphs), RecordingPen()
        self.glyphs[self.cmap[ord(character)]].draw(recording)
        recording.replay(pen)
        return pen

    def per_mille(self, character: str) -> tuple[Any, int]:
        """‰: the per cent sign and its lower ring once more."""
        pen = RecordingPen()
        left, bottom, right, top = bounds(self.font, "%")
        percent = self.outline("%")
        percent.replay(pen)
        ring = RecordingPen()
        for contour in contours(percent):
            box = contour_box(contour)
            if (box[1] + box[3]) / 2 < (bottom + top) / 2 and box[0] > left + 0.35 * (right - left):
                contour.replay(ring)
        if not ring.value:  # the rings are joined to the bar
            small = self.outline("o")
            o = bounds(self.font, "o")
            scale = 0.5 * (top - bottom) / (o[3] - o[1])
            small.replay(TransformPen(ring, Identity.scale(scale)))
        box = contour_box(ring)
        step = right - box[0] + 0.04 * self.em
        ring.replay(TransformPen(pen, Identity.translate(step, 0)))
        return self.finish(pen, (left, box[2] + step))

    def raised(self, character: str) -> tuple[Any, int]:
        """¹ ² ³: the figure, smaller, its top at the height of capitals."""
        pen, digit = RecordingPen(), {"¹": "1", "²": "2", "³": "3"}[character]
        left, _, right, top = bounds(self.font, digit)
        self.outline(digit).replay(TransformPen(pen, Transform(0.62, 0, 0, 0.62, 0, self.cap - 0.62 * top)))
        return self.finish(pen, (0.62 * left, 0.62 * right))

    def double_dagger(self, character: str) -> tuple[Any, int]:
        """‡: the dagger over its mirror image."""
        pen, dagger = RecordingPen(), self.outline("†")
        left, bottom, right, top = bounds(self.font, "†")
        dagger.replay(pen)
        dagger.replay(TransformPen(ReverseContourPen(pen), Transform(1, 0, 0, -1, 0, bottom + top)))
        return self.finish(pen, (left, right))


def contours(outline: RecordingPen) -> list[RecordingPen]:
    """An outline's closed curves, one by one."""
    found = [RecordingPen()]
    for step in outline.value:
        found[-1].value.append(step)
        if step[0] == "closePath":
            found.append(RecordingPen())
    return found[:-1]


def contour_box(outline: RecordingPen) -> tuple[float, float, float, float]:
    """The box of an outline."""
    pen = BoundsPen(None)
    outline.replay(pen)
    return pen.bounds
