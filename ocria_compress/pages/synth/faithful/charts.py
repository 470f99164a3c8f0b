"""Charts as inline SVG: every category, series and value of the reference is printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from ocria_compress.pages.synth.document import Chart
from ocria_compress.pages.synth.draw.colors import Color, readable
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.faithful.style import Faces, rgb
from ocria_compress.pages.synth.fonts import load

SCALES = (0.85, 0.78, 0.7, 0.62)
"""Font sizes of labels, ems: the first at which they fit."""


def chart(block: Chart, look: Look, faces: Faces, width: float) -> str:
    """A chart `width` pixels wide. One whose labels need more is made as wide as they need (and does not fit, then)."""
    kind = block.kind
    sheets = [_Sheet(look, faces, width, scale) for scale in SCALES]
    if kind in ("bar", "line"):
        for sheet in sheets:
            if _upright_fits(sheet, block):
                _upright(sheet, block)
                return sheet.svg()
    sheet = next((one for one in sheets if _lying_fits(one, block)), sheets[-1])
    _lying(sheet, block)
    return sheet.svg()


def numbers(values: list[str]) -> list[float]:
    """What printed values say, with decimal commas or points, units and signs; 0 where nothing can be read."""
    bare = [re.sub(r"[^\d.,]", "", value).strip(".,") for value in values]
    decimal = ""
    for value in bare:
        marks = re.findall(r"[.,]", value)
        if len(set(marks)) == 2 or (len(marks) == 1 and not re.search(r"[.,]\d{3}$", value)):
            decimal = marks[-1]
    found = []
    for value, printed in zip(bare, values, strict=True):
        whole, _, part = value.rpartition(decimal) if decimal and decimal in value else (value, "", "")
        digits = re.sub(r"\D", "", whole)
        negative = re.match(r"\s*[-−(]\s*\d", printed) is not None
        found.append(float(f"{'-' * negative}{digits or 0}.{part or 0}"))
    return found


@dataclass
class _Sheet:
    """An SVG being written: its labels' size, and how far down it is."""

    look: Look
    faces: Faces
    width: float
    scale: float

    def __post_init__(self) -> None:
        self.size = self.look.size * self.scale
        font = load(self.look.body.regular, round(2 * self.size * self.look.body.scale) / 2)
        self.measure = font.getlength
        self.cap = -font.getbbox("H", anchor="ls")[1]
        self.line = self.size * 1.3
        self.parts: list[str] = []
        self.y = 0.0
        self.needs = 0.0

    def wide(self, text: str) -> float:
        """Pixels of a label; a little more than Pillow measures, for the browser's own widths."""
        return self.measure(text) * 1.02 + 1

    def text(
        self,
        x: float,
        y: float,
        text: str,
        anchor: str = "middle",
        cover: bool = False,
        turn: float = 0.0,
        size: float = 0.0,
        color: Color | None = None,
    ) -> None:
        """A label with its baseline at y; `cover`: on a piece of paper (middle anchor), `turn`: degrees clockwise."""
        if cover:
            wide = self.wide(text) + 2
            self.rect(x - wide / 2, y - self.cap - 2, wide, self.cap + 4, self.look.paper)
        more = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
        more += f' font-size="{size:.2f}"' if size else ""
        more += f' fill="{rgb(color)}"' if color else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>')

    def rect(self, x: float, y: float, width: float, height: float, fill: Color) -> None:
        """A filled rectangle."""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{rgb(fill)}"/>'
        )

    def stroke(self, points: list[tuple[float, float]], color: Color, width: float = 1.0) -> None:
        """A line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{rgb(color)}" stroke-width="{width:.1f}"/>')

    def fill(self, series: int) -> Color:
        """The colour of a series."""
        return self.look.chart_fills[series % len(self.look.chart_fills)]

    def head(self, block: Chart) -> None:
        """Title and legend; both are broken into lines."""
        for line in self._lines(block.title.split(" "), 1 / self.scale):
            self.y += self.look.size * 1.3
            self.text(self.width / 2, self.y - self.look.size * 0.3, line, size=self.look.size * self.look.body.scale)
        box = self.size * 0.7
        entries = [(number, name, box * 1.5 + self.wide(name)) for number, (name, _) in enumerate(block.series)]
        rows: list[list[tuple[int, str, float]]] = [[]]
        for entry in entries:
            if rows[-1] and sum(one[2] + box * 2 for one in rows[-1]) + entry[2] > self.width:
                rows.append([])
            rows[-1].append(entry)
        for row in rows:
            x = max(0.0, (self.width - sum(one[2] + box * 2 for one in row) + box * 2) / 2)
            self.y += self.line
            for number, name, wide in row:
                self.rect(x, self.y - self.line * 0.3 - box * 0.9, box, box, self.fill(number))
                self.text(x + box * 1.5, self.y - self.line * 0.3, name, "start")
                self.needs = max(self.needs, x + wide)
                x += wide + box * 2
        self.y += self.line * 0.3

    def _lines(self, words: list[str], factor: float) -> list[str]:
        lines: list[str] = []
        for word in words:
            joined = f"{lines[-1]} {word}" if lines else word
            if lines and self.wide(joined) * factor <= self.width * 0.96:
                lines[-1] = joined
            else:
                lines.append(word)
                self.needs = max(self.needs, self.wide(word) * factor)
        return lines

    def svg(self) -> str:
        """The whole chart."""
        width, height = max(self.width, self.needs), self.y + self.size * 0.2
        looks = (
            f'font-family="{self.faces.name(self.look.body)}" font-size="{self.size * self.look.body.scale:.2f}" '
            f'fill="{rgb(self.look.ink)}"'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.1f}" height="{height:.1f}" '
            f'style="display:block;overflow:hidden" {looks}>{"".join(self.parts)}</svg>'
        )


def _values(block: Chart) -> list[list[float]]:
    """By series; a chart's values are read together, so that "1.250" beside "12.5" is one and a quarter."""
    flat = numbers([value for _, values in block.series for value in values])
    found, start = [], 0
    for _, values in block.series:
        found.append(flat[start : start + len(values)])
        start += len(values)
    return found


def _upright_fits(sheet: _Sheet, block: Chart) -> bool:
    slot = sheet.width * 0.96 / max(1, len(block.categories))
    if any(sheet.wide(name) > slot * 0.94 for name in block.categories):
        return False
    widest = max(sheet.wide(value) for _, values in block.series for value in values)
    if block.kind == "line":
        return widest <= slot * 0.94
    bar = slot * 0.8 / len(block.series)
    return widest <= bar * 1.02 + 2 or sheet.size * 1.05 <= bar


def _upright(sheet: _Sheet, block: Chart) -> None:
    """Bars side by side, or lines."""
    look = sheet.look
    sheet.head(block)
    values = _values(block)
    flat = [value for series in values for value in series]
    slot = sheet.width * 0.96 / len(block.categories)
    bar = slot * 0.8 / len(block.series)
    widest = max(sheet.wide(value) for _, printed in block.series for value in printed)
    turned = block.kind == "bar" and widest > bar * 1.02 + 2
    room = widest + sheet.size * 0.4 if turned else sheet.line * (1 if block.kind == "bar" else len(block.series))
    left, top = sheet.width * 0.02, sheet.y
    bottom = top + max(look.size * look.chart_height, room + look.size * 4)
    highest, lowest = max(0.0, *flat), min(0.0, *flat)
    if block.kind == "line" and lowest == 0 and min(flat) > 0.5 * highest:
        lowest = min(flat) - 0.3 * (highest - min(flat))
    # Labels of negative values hang below their bars.
    foot = room if block.kind == "bar" and min(flat) < 0 else 0.0
    unit = (bottom - foot - top - room) / ((highest - lowest) or 1.0)
    zero = bottom - foot + lowest * unit
    floor = bottom if block.kind == "line" else zero
    _backdrop(sheet, top, bottom, sheet.width)
    place = _bars if block.kind == "bar" else _curves
    place(sheet, block, values, left, slot, zero, unit, turned)
    sheet.stroke([(0, floor), (sheet.width, floor)], look.ink)
    sheet.y = bottom
    for number, name in enumerate(block.categories):
        sheet.text(left + (number + 0.5) * slot, bottom + sheet.line, name)
    sheet.y += sheet.line
    if block.corner:
        sheet.y += sheet.line
        sheet.text(sheet.width / 2, sheet.y, block.corner)
        sheet.needs = max(sheet.needs, sheet.wide(block.corner))
    sheet.y += sheet.size * 0.3


def _backdrop(sheet: _Sheet, top: float, bottom: float, width: float) -> None:
    look = sheet.look
    if look.chart_grid:
        for part in range(1, 5):
            y = bottom + (top - bottom) * part / 5
            sheet.stroke([(0, y), (width, y)], look.chart_grid)
    if look.chart_frame:
        corners = [(0.5, top), (width - 0.5, top), (width - 0.5, bottom), (0.5, bottom), (0.5, top)]
        sheet.stroke(corners, look.muted)


def _bars(
    sheet: _Sheet,
    block: Chart,
    values: list[list[float]],
    left: float,
    slot: float,
    zero: float,
    unit: float,
    turned: bool,
) -> None:
    bar = slot * 0.8 / len(block.series)
    for number, (_, printed) in enumerate(block.series):
        for place, (label, value) in enumerate(zip(printed, values[number], strict=True)):
            x = left + place * slot + slot * 0.1 + number * bar
            y = zero - value * unit
            sheet.rect(x + bar * 0.06, min(y, zero), bar * 0.88, max(1.0, abs(y - zero)), sheet.fill(number))
            middle = x + bar / 2
            if turned:
                up = value >= 0
                start = y - sheet.size * 0.2 if up else y + sheet.size * 0.2
                sheet.text(middle + sheet.size * 0.35, start, label, "start" if up else "end", turn=-90)
            else:
                sheet.text(middle, y - sheet.size * 0.25 if value >= 0 else y + sheet.size, label, cover=True)


def _curves(
    sheet: _Sheet,
    block: Chart,
    values: list[list[float]],
    left: float,
    slot: float,
    zero: float,
    unit: float,
    turned: bool,
) -> None:
    for number in range(len(block.series)):
        points = [(left + (place + 0.5) * slot, zero - value * unit) for place, value in enumerate(values[number])]
        sheet.stroke(points, sheet.fill(number), 2.0)
        for x, y in points:
            sheet.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{rgb(sheet.fill(number))}"/>')
    for place in range(len(block.categories)):
        # From the lowest point up, each label above its point and above the label below it.
        shown = [
            (zero - series[place] * unit, number, printed[place])
            for number, ((_, printed), series) in enumerate(zip(block.series, values, strict=True))
            if place < len(series)
        ]
        limit = float("inf")
        for y, number, label in sorted(shown, reverse=True):
            baseline = min(y - sheet.size * 0.45, limit)
            # Labels may be pushed away from their points, so they have their lines' colours.
            color = readable(sheet.fill(number), sheet.look.paper, 4.5)
            sheet.text(left + (place + 0.5) * slot, baseline, label, cover=True, color=color)
            limit = baseline - sheet.size * 1.05


def _lying_columns(sheet: _Sheet, block: Chart) -> tuple[float, float]:
    """Widths of the category names and of the values."""
    names = max(sheet.wide(name) for name in (*block.categories, block.corner))
    return names, max(sheet.wide(value) for _, values in block.series for value in values)


def _lying_fits(sheet: _Sheet, block: Chart) -> bool:
    names, widest = _lying_columns(sheet, block)
    return names + widest + sheet.look.size * 4 <= sheet.width


def _lying(sheet: _Sheet, block: Chart) -> None:
    """Bars lying down, a row of them for each category."""
    look = sheet.look
    sheet.head(block)
    names, widest = _lying_columns(sheet, block)
    if block.corner:
        sheet.y += sheet.line
        sheet.text(names, sheet.y - sheet.line * 0.3, block.corner, "end")
    values = _values(block)
    flat = [value for series in values for value in series]
    start = names + look.size * 0.5
    sheet.needs = max(sheet.needs, start + widest + look.size * 2)
    highest, lowest = max(0.0, *flat), min(0.0, *flat)
    below = widest + look.size * 0.4 if lowest < 0 else 0.0
    length = max(sheet.width, sheet.needs) - start - below - widest - look.size * 0.6
    unit = length / ((highest - lowest) or 1.0)
    zero = start + below - lowest * unit
    top = sheet.y
    for place, name in enumerate(block.categories):
        sheet.y += sheet.size * 0.3
        tall = sheet.line * len(block.series)
        sheet.text(names, sheet.y + tall / 2 + sheet.cap / 2, name, "end")
        for number, (_, printed) in enumerate(block.series):
            if place < len(printed):
                value = values[number][place]
                long = max(1.0, abs(value) * unit)
                x = zero if value >= 0 else zero - long
                sheet.rect(x, sheet.y + sheet.line * 0.1, long, sheet.line * 0.8, sheet.fill(number))
                end, anchor = (x + long + sheet.size * 0.3, "start") if value >= 0 else (x - sheet.size * 0.3, "end")
                sheet.text(end, sheet.y + sheet.line / 2 + sheet.cap / 2, printed[place], anchor)
            sheet.y += sheet.line
        sheet.y += sheet.size * 0.3
    sheet.stroke([(zero, top), (zero, sheet.y)], look.ink)
