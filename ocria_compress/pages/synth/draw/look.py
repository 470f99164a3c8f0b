"""How a page looks: everything typographic, drawn once for each page and used by every way of drawing it.

Lengths are pixels of the page image unless a name or docstring says `em` (multiples of `size`) or lines (of `leading`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

from ocria_compress.pages.synth.draw.colors import (
    ACCENTS,
    HAND_INKS,
    INKS,
    LEAST_TEXT_CONTRAST,
    MOST_WATERMARK_CONTRAST,
    PALETTES,
    WHITE,
    Color,
    draw_paper,
    faint,
    mix,
    readable,
)
from ocria_compress.pages.synth.fonts import FontFamily, families

SIZES_PX = (10.5, 30.0)
SIZES_PT = (7.5, 12.0)
LEAST_SMALL_PX = 10.0
"""Tables, notes and labels in boxes may be smaller than the text, but not below this."""

DPI = (72, 200)
LEAST_EM = 24.0
"""A single column is at least about this wide, where the page allows it."""

MathFonts = Literal["dejavusans", "dejavuserif", "stix", "stixsans", "cm"]


@dataclass(frozen=True, slots=True)
class HeadingLook:
    """How headings of one level look.

    Attributes:
        scale: font size in em.
        bold, italic: the face.
        color: of the text.
        rule: a line below it, as wide as the column, or a bar of `accent` left of it.
        before, after: space in lines.
    """

    scale: float
    bold: bool
    italic: bool
    color: Color
    rule: Literal["none", "under", "bar"]
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class TableLook:
    """How tables look.

    Attributes:
        pad_x, pad_y: between a cell's text and its edges, em.
        rule: colour of the lines; `rule_width` in pixels; `frame_width` that of the outermost and the header's lines.
        head_fill, head_ink: behind and in header cells where `Table.shade` is set; otherwise header cells are in ink.
        head_bold: whether header cells are set in bold. (`visible.bold_headers`: some tables' always are.)
        zebra: behind every second body row, or None. (Left out where a cell spans rows.)
        middle: cells are in the middle of their height, or at its top.
        scale: font size in em.
    """

    pad_x: float = 0.45
    pad_y: float = 0.25
    rule: Color = (120, 120, 120)
    rule_width: int = 1
    frame_width: int = 1
    head_fill: Color = (226, 226, 226)
    head_ink: Color = (0, 0, 0)
    head_bold: bool = True
    zebra: Color | None = None
    middle: bool = True
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class FieldLook:
    """How form fields look.

    Attributes:
        label_scale: font size of labels inside boxes, em; elsewhere labels have the text's size.
        label_above: in boxes, the label stands above its value, not left of it.
        box_rule: colour of the boxes; `box_width` their lines' pixels; `box_fill` what is inside, or None.
        underline: hand values outside boxes stand on a line of this colour, or None.
        label_color: of labels that are not bold.
        gap: between label and value, em. Labels outside boxes end with a colon, those in boxes do not.
    """

    label_scale: float = 0.75
    label_above: bool = True
    box_rule: Color = (110, 110, 110)
    box_width: int = 1
    box_fill: Color | None = None
    underline: Color | None = None
    label_color: Color = (60, 60, 60)
    gap: float = 0.6


@dataclass(frozen=True, slots=True)
class Look:
    """Everything typographic of one page.

    Attributes:
        width, height: of the page image, pixels.
        dpi: how many of its pixels are an inch.
        body, heading, hand: font families. Font sizes are `size` times a scale times the family's own `scale`.
        size: font size of body text, pixels (one em).
        line_height: from line to line, em.
        paragraph_gap: between paragraphs, lines. `paragraph_indent`: of first lines, em; 0 unless the gap is small.
        justify: left-aligned paragraphs are justified.
        left, top, right, bottom: margins. The running head is in the upper half of `top`, the foot in the lower half of
            `bottom`.
        column_gap: between columns, em; `column_rule` the colour of the line there, if there is one.
        headings: of levels 1 to 4.
        paper, ink, accent: colours. `muted`: of running heads, feet and other small text.
        hand_ink: of handwriting; `hand_scale` its font size, em; `hand_jitter` how far its baseline strays, em.
        list_indent: of the marks, em; `list_gap` between marks and text, em; `item_gap` between items, lines.
        list_right: numbers are aligned right.
        table, fields: more of the same.
        chart_fills: one colour a series; `chart_height` in em; `chart_frame` a frame around the plot;
            `chart_grid` colour of the lines behind the bars, or None.
        note_scale: font size of footnotes, em; `note_rule` the length of the line above them, as a share of the column.
        small_scale: font size of running head and foot, em; `head_rule`, `foot_rule` lines at them.
        furniture_align: where head and foot stand.
        math: mathtext's fontset. `math_scale`: font size of formulas, em; of displayed ones times `display_scale`.
        formula_left: displayed formulas are at the left, indented, and not centred.
        stamp_frame: of stamps.
        watermark: its colour; `watermark_turn` degrees, counterclockwise.
    """

    width: int
    height: int
    dpi: float
    body: FontFamily
    heading: FontFamily
    hand: FontFamily
    size: float = 16.0
    line_height: float = 1.35
    paragraph_gap: float = 0.6
    paragraph_indent: float = 0.0
    justify: bool = False
    left: int = 40
    top: int = 40
    right: int = 40
    bottom: int = 40
    column_gap: float = 1.8
    column_rule: Color = (150, 150, 150)
    headings: tuple[HeadingLook, ...] = ()
    paper: Color = WHITE
    ink: Color = (0, 0, 0)
    accent: Color = (31, 78, 140)
    muted: Color = (90, 90, 90)
    hand_ink: Color = (22, 42, 140)
    hand_scale: float = 1.15
    hand_jitter: float = 0.05
    list_indent: float = 0.8
    list_gap: float = 0.6
    item_gap: float = 0.1
    list_right: bool = False
    table: TableLook = field(default_factory=TableLook)
    fields: FieldLook = field(default_factory=FieldLook)
    chart_fills: tuple[Color, ...] = PALETTES[0]
    chart_height: float = 11.0
    chart_frame: bool = True
    chart_grid: Color | None = None
    note_scale: float = 0.85
    note_rule: float = 0.3
    small_scale: float = 0.8
    head_rule: bool = False
    foot_rule: bool = False
    furniture_align: Literal["left", "center", "right"] = "center"
    math: MathFonts = "dejavuserif"
    math_scale: float = 1.0
    display_scale: float = 1.15
    formula_left: bool = False
    stamp_frame: Literal["single", "double", "round"] = "single"
    watermark: Color = (235, 235, 235)
    watermark_turn: float = 40.0

    @property
    def leading(self) -> float:
        """From line to line, pixels."""
        return self.size * self.line_height

    def column_width(self, columns: int = 1) -> float:
        """Of each of so many columns, pixels."""
        return (self.width - self.left - self.right - (columns - 1) * self.column_gap * self.size) / columns

    def column_em(self, columns: int = 1) -> float:
        """Of each of so many columns, em: what templates are told."""
        return self.column_width(columns) / self.size

    def capacity(self) -> int:
        """About how many characters of running text fill the page."""
        lines = (self.height - self.top - self.bottom) / self.leading
        return round(lines * self.column_em() * 1.9)

    @staticmethod
    def draw(
        rng: Random, width: int, height: int, dpi: float | None = None, held_out: bool = False, columns: int = 1,
        plain: bool = False,
    ) -> Look:  # fmt: skip
        """A look of a page of `width` x `height` pixels.

        Args:
            rng: where every draw comes from.
            width, height: of the page image, pixels.
            dpi: pixels an inch, 72 to 200; drawn if None. Font sizes are 7.5 to 12 pt, but at least 10.5 and at most 30
                pixels, and small enough that a column is about 24 em wide (12 of two columns) if the page allows it.
            held_out: fonts of benchmark pages, or those of all others.
            columns: how many columns the page is going to have.
            plain: black on white.
        """
        dpi = dpi or rng.uniform(*DPI)
        margins = _margins(rng, width, height)
        size = rng.uniform(*SIZES_PT) * dpi / 72
        least = LEAST_EM if columns == 1 else LEAST_EM * 0.58 * columns
        size = min(size, (width - margins[0] - margins[2]) / least, SIZES_PX[1])
        size = int(2 * max(size, SIZES_PX[0])) / 2  # in steps of half a pixel: caches of glyphs pay
        body, heading, hand = _families(rng, held_out)
        colors = _colors(rng, plain)
        indent = rng.random() < 0.25
        note_rule, items = rng.choice([0.0, 0.25, 0.35, 1.0]), rng.choice([0.0, 0.0, 0.15, 0.3])
        return Look(
            width, height, dpi, body, heading, hand, size,
            left=margins[0], top=margins[1], right=margins[2], bottom=margins[3],
            **colors,  # type: ignore[arg-type]
            line_height=rng.uniform(1.15, 1.6),
            paragraph_gap=rng.uniform(0.0, 0.15) if indent else rng.uniform(0.4, 0.9),
            paragraph_indent=rng.uniform(1.0, 2.0) if indent else 0.0,
            justify=rng.random() < 0.3,
            column_gap=rng.uniform(1.6, 2.6),
            headings=_headings(rng, colors),
            hand_scale=rng.uniform(1.1, 1.35),
            hand_jitter=rng.choice([0.0, 0.03, 0.06]),
            list_indent=rng.choice([0.0, 0.5, 1.0, 1.5]),
            list_gap=rng.uniform(0.45, 0.9),
            item_gap=items,
            list_right=rng.random() < 0.3,
            table=_table(rng, colors, plain, LEAST_SMALL_PX / size),
            fields=_fields(rng, colors, plain, LEAST_SMALL_PX / size),
            chart_fills=PALETTES[1] if plain else rng.choice(PALETTES),
            chart_height=rng.uniform(9, 13),
            chart_frame=rng.random() < 0.3,
            chart_grid=mix(colors["ink"], colors["paper"], 0.15) if rng.random() < 0.5 else None,
            note_scale=max(rng.uniform(0.8, 0.9), min(1.0, LEAST_SMALL_PX / size)),
            note_rule=note_rule,
            small_scale=rng.uniform(0.75, 0.9),
            head_rule=rng.random() < 0.4,
            foot_rule=rng.random() < 0.25,
            furniture_align=rng.choice(["left", "center", "right"]),
            math=_math(rng, body),
            math_scale=rng.uniform(1.0, 1.12),
            display_scale=rng.uniform(1.15, 1.4),
            formula_left=rng.random() < 0.2,
            stamp_frame=rng.choice(["single", "double", "round"]),
            watermark_turn=rng.uniform(25, 50),
        )  # fmt: skip

    @staticmethod
    def for_tests(width: int = 640, height: int = 800, size: float = 16.0, held_out: bool = False) -> Look:
        """The same plain look each time."""
        family = next(one for one in families(held_out) if one.kind != "hand")
        return Look(
            width,
            height,
            96.0,
            family,
            family,
            families(held_out, "hand")[0],
            size,
            headings=_headings(Random(0), {"ink": (0, 0, 0), "paper": WHITE, "accent": (31, 78, 140)}),
        )


def _families(rng: Random, held_out: bool) -> tuple[FontFamily, FontFamily, FontFamily]:
    def one_of(*kinds: str) -> FontFamily:
        found = [one for one in families(held_out) if one.kind in kinds]
        return rng.choices(found, [one.weight for one in found])[0]

    def printed(mono: float) -> FontFamily:
        kind = rng.choices(["serif", "sans", "mono"], [0.45, 0.55 - mono, mono])[0]
        return one_of(kind) if families(held_out, kind) else one_of("serif", "sans")

    body = printed(0.07)
    heading = body if rng.random() < 0.6 else printed(0.03)
    return body, heading, one_of("hand")


def _margins(rng: Random, width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, right, bottom."""
    side = width * rng.uniform(0.04, 0.11)
    skewed = rng.uniform(0.8, 1.3) if rng.random() < 0.3 else 1.0
    top, bottom = height * rng.uniform(0.045, 0.09), height * rng.uniform(0.04, 0.08)
    return max(6, round(side)), max(6, round(top)), max(6, round(side * skewed)), max(6, round(bottom))


def _colors(rng: Random, plain: bool) -> dict[str, Color]:
    paper = WHITE if plain else draw_paper(rng)
    ink = (0, 0, 0) if plain else readable(rng.choice(INKS), paper, 5.5)
    accent = (0, 0, 0) if plain else readable(rng.choice(ACCENTS), paper, 4.8)
    return {
        "paper": paper,
        "ink": ink,
        "accent": accent,
        "muted": readable(mix(ink, paper, rng.uniform(0.55, 0.9)), paper, 4.8),
        "hand_ink": readable(rng.choice(HAND_INKS), paper, 4.8),
        "column_rule": mix(ink, paper, rng.uniform(0.2, 0.6)),
        "watermark": faint(accent if rng.random() < 0.3 else ink, paper, rng.uniform(1.12, MOST_WATERMARK_CONTRAST)),
    }


def _headings(rng: Random, colors: dict[str, Color]) -> tuple[HeadingLook, ...]:
    """Sizes fall from level to level; those about as small as the text are bold, or they would look like it."""
    colored = rng.random() < 0.4
    scales = (rng.uniform(1.75, 2.3), rng.uniform(1.4, 1.6), rng.uniform(1.16, 1.28), rng.uniform(1.0, 1.06))
    bold = rng.random() < 0.8
    underlined, barred = rng.random() < 0.2, rng.random() < 0.1
    looks = []
    for level, scale in enumerate(scales, 1):
        rule: Literal["none", "under", "bar"] = "none"
        if underlined and level <= 2:
            rule = "under"
        elif barred and level == 2:
            rule = "bar"
        italic = level == 4 and rng.random() < 0.25
        color = colors["accent"] if colored or (level == 4 and rng.random() < 0.2) else colors["ink"]
        before = (0.4, 0.9, 0.7, 0.55)[level - 1] * rng.uniform(0.8, 1.3)
        looks.append(
            HeadingLook(scale, bold or level >= 3, italic, color, rule, before, rng.uniform(0.2, 0.5))
        )  # fmt: skip
    return tuple(looks)


def _table(rng: Random, colors: dict[str, Color], plain: bool, least: float) -> TableLook:
    paper, ink, accent = colors["paper"], colors["ink"], colors["accent"]
    dark = rng.random() < 0.3
    fill = mix(accent, paper, 0.9 if dark else rng.uniform(0.1, 0.22))
    head_ink = readable(WHITE if dark else ink, fill, LEAST_TEXT_CONTRAST + 0.5)
    zebra = mix(accent if rng.random() < 0.5 else ink, paper, rng.uniform(0.04, 0.09))
    wide = rng.choice([1, 1, 2])
    return TableLook(
        pad_x=rng.uniform(0.35, 0.8),
        pad_y=rng.uniform(0.12, 0.45),
        rule=mix(accent if rng.random() < 0.2 else ink, paper, rng.uniform(0.35, 1.0)),
        frame_width=wide,
        head_fill=fill,
        head_ink=head_ink,
        head_bold=rng.random() < 0.85,
        zebra=zebra if rng.random() < (0.1 if plain else 0.25) else None,
        middle=rng.random() < 0.6,
        scale=max(rng.uniform(0.86, 1.0), min(1.0, least)),
    )


def _fields(rng: Random, colors: dict[str, Color], plain: bool, least: float) -> FieldLook:
    paper, ink = colors["paper"], colors["ink"]
    return FieldLook(
        label_scale=max(rng.uniform(0.72, 0.85), min(1.0, least)),
        label_above=rng.random() < 0.65,
        box_rule=mix(ink, paper, rng.uniform(0.4, 1.0)),
        box_fill=mix(colors["accent"], paper, 0.05) if not plain and rng.random() < 0.3 else None,
        underline=mix(ink, paper, 0.6) if rng.random() < 0.6 else None,
        label_color=colors["muted"] if rng.random() < 0.4 else ink,
        gap=rng.uniform(0.4, 1.2),
    )


def _math(rng: Random, body: FontFamily) -> MathFonts:
    """Sets that go with the body's kind more often, Computer Modern with any."""
    sets: list[MathFonts] = ["dejavusans", "dejavuserif", "stix", "stixsans", "cm"]
    return rng.choices(sets, [3, 1, 1, 3, 2] if body.kind == "sans" else [0.5, 2, 3, 0.5, 3])[0]
