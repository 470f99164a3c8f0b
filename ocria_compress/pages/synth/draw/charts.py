"""Charts whose values are printed on them: bars side by side, bars lying down, lines.

Every text of the chart's reference is printed: title, categories, the label of their axis, names of series, values. No
other text is (axes have no ticks). A chart whose labels would overlap is too wide.
"""

from __future__ import annotations

from dataclasses import dataclass

from ocria_compress.pages.synth.document import Chart, text
from ocria_compress.pages.synth.draw.colors import Color, contrast, mix, readable
from ocria_compress.pages.synth.draw.faces import Face
from ocria_compress.pages.synth.draw.flow import Line, Type, break_lines, height, set_lines, words
from ocria_compress.pages.synth.draw.marks import Box, Fill, Frame, Mark, Stroke, TextMark
from ocria_compress.pages.synth.draw.place import Miss, Outcome, Placed, Room, Setting

LEAST_PX = 10.0
"""Labels are at least so large, pixels an em."""


def number(printed: str) -> float:
    """The value of a number as printed in any of the languages; 0 if there is none. Units and currencies are ignored.

    A lone separator before exactly three digits is taken for one of thousands.
    """
    kept = "".join(character for character in printed if character in "0123456789.,").strip(".,")
    minus = printed.lstrip("€$£ ").startswith(("-", "−"))
    mark = max(kept.rfind("."), kept.rfind(","))
    if mark >= 0:
        both = "." in kept and "," in kept
        thousands = not both and (kept.count(kept[mark]) > 1 or len(kept) - mark - 1 == 3)
        whole, part = (kept, "") if thousands else (kept[:mark], kept[mark + 1 :])
        kept = whole.replace(".", "").replace(",", "") + "." + part
    value = float(kept) if kept.strip(".") else 0.0
    return -value if minus else value


@dataclass(slots=True)
class Plan:
    """A chart being laid out: its type and colours, its numbers, its marks."""

    setting: Setting
    chart: Chart
    small: Type
    values: list[list[float]]
    fills: list[Color]
    marks: list[Mark]

    @property
    def face(self) -> Face:
        """Of the labels."""
        return self.small.regular

    @property
    def line(self) -> int:
        """Height of a line of labels, pixels."""
        return round(self.small.regular.up + self.small.regular.down + 3)

    def width(self, label: str) -> float:
        """Of a label on one line, pixels."""
        return self.face.width(label)

    def label(
        self, x: float, top: float, content: str, align: float = 0.0, behind: bool = False, color: Color | None = None
    ) -> Box:
        """Prints a label whose line is from `top` on; returns its box.

        `align` 0: x is its left edge, 0.5: its middle, 1: its right edge. `behind`: lines under it are covered.
        """
        wide = self.width(content)
        left = x - align * wide
        box = (left - 1, top, left + wide + 1, top + self.line)
        if behind and content:
            self.marks.append(Fill(box, self.setting.look.paper))
        if content:
            ink = color or self.setting.look.ink
            self.marks.append(TextMark(left, round(top + self.face.up + 1), content, self.face, ink))
        return box


def place_chart(setting: Setting, block: Chart, room: Room) -> Outcome:
    """A chart: title, names of the series, the plot with its labels, the label of the category axis.

    Labels that would overlap are tried in a smaller size before the chart is given up.
    """
    least = LEAST_PX / setting.look.size
    outcome: Outcome = Miss.WIDE
    for scale in (max(0.85, least), max(0.7, least)):
        outcome = _place(setting, block, room, setting.type(scale))
        if outcome is not Miss.WIDE:
            break
    return outcome


def _place(setting: Setting, block: Chart, room: Room, small: Type) -> Outcome:
    look = setting.look
    values = [[number(value) for value in printed] for _, printed in block.series]
    if not block.categories or not values or any(len(each) != len(block.categories) for each in values):
        return Miss.WIDE
    plan = Plan(setting, block, small, values, _fills(setting, len(values), block.kind == "line"), [])
    pad = round(look.size * 0.7) if look.chart_frame else 0
    inner = Room(room.x + pad, room.y + pad, room.width - 2 * pad, room.bottom - pad)
    title = words(text(block.title), setting.body) if block.title else []
    lines = break_lines(title or [], setting.body, inner.width)
    if lines is None:
        return Miss.WIDE
    align = "center" if look.furniture_align == "center" else "left"
    y = set_lines(plan.marks, lines, inner.x, inner.y, inner.width, align) + 0.2 * look.leading
    legend = _legend(plan, inner, y)
    if legend is None:
        return Miss.WIDE
    plot = {"bar": _bars, "hbar": _lying, "line": _lines}[block.kind]
    bottom = plot(plan, Room(inner.x, round(legend + 0.3 * look.leading), inner.width, inner.bottom))
    if bottom is None:
        return Miss.WIDE
    bottom = round(bottom + pad)
    if bottom > room.bottom:
        return Miss.FULL
    box = (room.x, room.y, room.x + room.width, bottom)
    if look.chart_frame:
        plan.marks.insert(0, Frame(box, mix(look.ink, look.paper, 0.4)))
    return Placed(block, plan.marks, box)


def _fills(setting: Setting, count: int, lines: bool) -> list[Color]:
    """One colour a series, told well from the paper."""
    look = setting.look
    palette = [look.chart_fills[place % len(look.chart_fills)] for place in range(count)]
    least = 2.6 if lines else 1.5
    return [color if contrast(color, look.paper) >= least else readable(color, look.paper, least) for color in palette]


def _legend(plan: Plan, room: Room, y: float) -> float | None:
    """Names of the series with their colours: beside each other, or one below the other. Returns the bottom edge."""
    names = [name for name, _ in plan.chart.series]
    swatch = round(plan.face.cap)
    widths = [plan.width(name) + swatch * 1.6 for name in names]
    between = plan.small.size * 1.4
    if max(widths) > room.width:
        return None
    total = sum(widths) + between * (len(widths) - 1)
    beside = total <= room.width
    x = room.x + (room.width - total) / 2 if beside and plan.setting.look.furniture_align == "center" else room.x
    for name, width, color in zip(names, widths, plan.fills, strict=True):
        top = round(y + 1 + plan.face.up - plan.face.cap)
        middle = top + swatch // 2
        thin = plan.chart.kind == "line"
        box = (x, middle - 1, x + swatch, middle + 1) if thin else (x, top, x + swatch, top + swatch)
        plan.marks.append(Fill(box, color))
        plan.label(x + swatch * 1.6, y, name)
        if beside:
            x += width + between
        else:
            y += plan.line
    return y + plan.line if beside else y


def _scale(plan: Plan, room: float) -> tuple[float, float]:
    """Pixels a unit, and the least value shown (0 or below)."""
    every = [value for values in plan.values for value in values]
    low, high = min(0.0, *every), max(0.0, *every)
    return (room / (high - low) if high > low else 0.0), low


def _categories(plan: Plan, room: Room, slot: float, y: float) -> float | None:
    """Labels below a plot, broken into at most two lines, and the axis's label. Returns the bottom edge."""
    tallest = 0.0
    broken: list[list[Line]] = []
    for category in plan.chart.categories:
        lines = break_lines(words(text(category), plan.small) or [], plan.small, slot - plan.small.size * 0.5)
        if lines is None or len(lines) > 2:
            return None
        broken.append(lines)
        tallest = max(tallest, height(lines))
    for place, lines in enumerate(broken):
        set_lines(plan.marks, lines, room.x + place * slot, y + 2, slot, "center")
    y += 2 + tallest
    if plan.chart.corner:
        if plan.width(plan.chart.corner) > room.width:
            return None
        plan.label(room.x + room.width / 2, y, plan.chart.corner, 0.5)
        y += plan.line
    return y


def _grid(plan: Plan, room: Room, top: float, bottom: float) -> None:
    color = plan.setting.look.chart_grid
    if color is not None:
        for part in range(4):
            y = round(top + (bottom - top) * part / 4)
            plan.marks.append(Fill((room.x, y, room.x + room.width, y + 1), color))


def _bars(plan: Plan, room: Room) -> float | None:
    look = plan.setting.look
    count, series = len(plan.chart.categories), len(plan.values)
    slot = room.width / count
    widest = max(plan.width(value) for _, printed in plan.chart.series for value in printed)
    share = 0.8 if series > 1 else 0.55
    pitch = min(slot * share / series, max(look.size * 3.2, widest + 3))
    if widest + 3 > (pitch if series > 1 else slot * 0.95):
        return None
    tall = look.chart_height * look.size - 2 * plan.line
    top = room.y + plan.line
    unit, low = _scale(plan, tall)
    below = plan.line if low < 0 else 0
    zero = round(top + tall + low * unit)
    bottom = round(top + tall + below)
    _grid(plan, room, top, zero)
    for number_, values in enumerate(plan.values):
        for place, value in enumerate(values):
            left = room.x + place * slot + (slot - pitch * series) / 2 + pitch * number_
            edge = round(zero - value * unit)
            inset = 1 if series > 1 else 0
            span = (left + inset, min(edge, zero), left + pitch - inset, max(edge, zero))
            if edge != zero:
                plan.marks.append(Fill(span, plan.fills[number_]))
            printed = plan.chart.series[number_][1][place]
            label_top = edge - plan.line - 1 if value >= 0 else edge + 1
            plan.label(left + pitch / 2, label_top, printed, 0.5, look.chart_grid is not None)
    plan.marks.append(Fill((room.x, zero, room.x + room.width, zero + 1), look.ink))
    return _categories(plan, room, slot, bottom + 1)


def _lying(plan: Plan, room: Room) -> float | None:
    look = plan.setting.look
    series = len(plan.values)
    names = max(plan.width(category) for category in plan.chart.categories)
    left = names + plan.small.size * 0.7
    widest = max(plan.width(value) for _, printed in plan.chart.series for value in printed)
    space = room.width - left - widest - 6
    if space < room.width * 0.25 or plan.width(plan.chart.corner) > room.width:
        return None
    y = room.y
    if plan.chart.corner:
        shift = min(room.x + names, room.x + room.width) if plan.width(plan.chart.corner) <= names else None
        plan.label(room.x if shift is None else shift, y, plan.chart.corner, 0.0 if shift is None else 1.0)
        y += plan.line + 2
    unit, low = _scale(plan, space)
    if low < 0:  # values below zero would need room for their labels on the left
        return None
    axis, first = round(room.x + left), y
    thick = plan.line
    between = round(plan.small.size * 0.6)
    for place, category in enumerate(plan.chart.categories):
        y += between / 2
        plan.label(axis - plan.small.size * 0.4, y + (thick * series - plan.line) / 2, category, 1.0)
        for number_, values in enumerate(plan.values):
            end = axis + values[place] * unit
            if end > axis + 0.5:
                plan.marks.append(Fill((axis, y + 1, end, y + thick - 1), plan.fills[number_]))
            plan.label(end + 4, y, plan.chart.series[number_][1][place])
            y += thick
        y += between / 2
    plan.marks.append(Fill((axis, first, axis + 1, y), look.ink))
    return y


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _lines(plan: Plan, room: Room) -> float | None:
    look = plan.setting.look
    count = len(plan.chart.categories)
    slot = room.width / count
    tall = look.chart_height * look.size - 3 * plan.line
    top = room.y + plan.line + 4
    every = [value for values in plan.values for value in values]
    low, high = min(every), max(every)
    low -= (high - low) * 0.15
    unit = tall / (high - low) if high > low else 0.0
    bottom = round(top + tall + plan.line + 4)
    _grid(plan, room, top, bottom)
    plan.marks.append(Fill((room.x, bottom, room.x + room.width, bottom + 1), look.ink))
    thick = max(1, round(look.size / 9))
    points = [
        [(room.x + (place + 0.5) * slot, top + (high - value) * unit) for place, value in enumerate(values)]
        for values in plan.values
    ]
    for number_, line in enumerate(points):
        plan.marks.append(Stroke(tuple(line), plan.fills[number_], thick, thick + 1))
    dots = [(x - thick - 1, y - thick - 1, x + thick + 2, y + thick + 2) for line in points for x, y in line]
    taken: list[Box] = []
    for number_, line in enumerate(points):
        for place, (x, y) in enumerate(line):
            printed = plan.chart.series[number_][1][place]
            box = _free(plan, printed, x, y, thick + 3, taken + dots, line, place, len(points) > 1 and y > min(
                other[place][1] for other in points))  # fmt: skip
            if box is None or box[0] < room.x - 2 or box[2] > room.x + room.width + 2:
                return None
            taken.append(box)
            color = readable(plan.fills[number_], look.paper, 4.5) if len(points) > 1 else None
            plan.label(x, box[1], printed, 0.5, True, color)
    return _categories(plan, room, slot, bottom + 1)


def _free(
    plan: Plan, printed: str, x: float, y: float, away: float, taken: list[Box],
    line: list[tuple[float, float]], place: int, lower: bool,
) -> Box | None:  # fmt: skip
    """Where a point's label is free of other labels and points: above or below it, on the side the line leaves free."""
    half = plan.width(printed) / 2 + 1
    neighbours = [line[other][1] for other in (place - 1, place + 1) if 0 <= other < len(line)]
    valley = bool(neighbours) and all(other < y for other in neighbours)
    tops = [y - away - plan.line, y + away]
    if valley or (lower and not all(other > y for other in neighbours)):
        tops.reverse()
    for top in tops:
        box = (x - half, top, x + half, top + plan.line)
        if not any(_overlap(box, other) for other in taken):
            return box
    return None
