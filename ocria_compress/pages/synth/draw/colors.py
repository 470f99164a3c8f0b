"""Colours: contrast by WCAG 2's definition, and the palettes that looks are drawn from."""

from __future__ import annotations

from random import Random

Color = tuple[int, int, int]
"""sRGB, 0 to 255 each."""

LEAST_TEXT_CONTRAST = 3.5
"""Every text has at least this contrast to what is behind it."""

MOST_WATERMARK_CONTRAST = 1.35

WHITE: Color = (255, 255, 255)

PAPERS: tuple[tuple[float, tuple[Color, ...]], ...] = (
    (0.55, (WHITE,)),
    (0.25, ((254, 253, 250), (252, 252, 252), (250, 249, 246), (248, 248, 248), (253, 251, 244))),
    (0.20, ((247, 242, 228), (240, 246, 250), (244, 249, 241), (253, 246, 236), (238, 238, 236), (250, 243, 246))),
)
"""White, off-white and tinted papers with their weights."""

INKS: tuple[Color, ...] = (
    (0, 0, 0),
    (0, 0, 0),
    (17, 17, 17),
    (33, 33, 33),
    (51, 51, 51),
    (68, 68, 72),
    (90, 90, 90),
    (20, 30, 60),
    (32, 44, 57),
    (48, 32, 24),
)

ACCENTS: tuple[Color, ...] = (
    (0, 0, 0),
    (40, 40, 40),
    (31, 78, 140),
    (0, 92, 132),
    (150, 36, 36),
    (28, 105, 62),
    (98, 56, 132),
    (168, 82, 10),
    (14, 100, 104),
    (120, 20, 70),
    (24, 40, 92),
    (92, 84, 40),
)

HAND_INKS: tuple[Color, ...] = ((22, 42, 140), (30, 60, 170), (20, 20, 30), (15, 15, 15), (60, 60, 64), (10, 70, 90))

PALETTES: tuple[tuple[Color, ...], ...] = (
    ((44, 102, 170), (222, 130, 44), (78, 156, 92), (176, 62, 66), (128, 100, 170)),
    ((60, 60, 60), (150, 150, 150), (205, 205, 205), (100, 100, 100), (180, 180, 180)),
    ((24, 78, 104), (104, 168, 172), (232, 184, 92), (196, 92, 72), (120, 140, 90)),
    ((108, 60, 132), (206, 108, 140), (236, 176, 120), (90, 130, 190), (120, 180, 150)),
    ((26, 120, 96), (138, 190, 90), (232, 206, 92), (90, 90, 150), (200, 110, 90)),
    ((170, 40, 50), (60, 70, 90), (150, 160, 176), (220, 160, 100), (90, 130, 120)),
)
"""Fills of charts, one colour a series."""


def luminance(color: Color) -> float:
    """Relative luminance, 0 to 1."""
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def mix(one: Color, other: Color, share: float) -> Color:
    """`share` of `one`, the rest of `other`."""
    return tuple(round(a * share + b * (1 - share)) for a, b in zip(one, other, strict=True))  # type: ignore[return-value]


def readable(color: Color, behind: Color, least: float = LEAST_TEXT_CONTRAST) -> Color:
    """`color`, made darker (or lighter on a dark ground) until its contrast to `behind` is at least `least`."""
    goal: Color = (0, 0, 0) if luminance(behind) > 0.18 else WHITE
    for step in range(11):
        mixed = mix(goal, color, step / 10)
        if contrast(mixed, behind) >= least:
            return mixed
    return goal


def faint(color: Color, behind: Color, most: float = MOST_WATERMARK_CONTRAST) -> Color:
    """A tint of `color` on `behind` whose contrast to it is at most `most`."""
    share = 0.4
    while share > 0.01 and contrast(mix(color, behind, share), behind) > most:
        share *= 0.85
    return mix(color, behind, share)


def draw_paper(rng: Random) -> Color:
    """A paper colour."""
    shades = rng.choices([shades for _, shades in PAPERS], [weight for weight, _ in PAPERS])[0]
    return rng.choice(shades)
