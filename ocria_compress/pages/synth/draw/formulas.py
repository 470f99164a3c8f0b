"""Formulas, set by matplotlib's mathtext."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Any, NamedTuple

from PIL import Image

SCALES = {"dejavusans": 0.91, "dejavuserif": 0.93, "stix": 1.08, "stixsans": 1.06, "cm": 1.14}
"""Font sizes by fontset, so that all look as large as text."""

LEAST_PX, LEAST_DISPLAYED = 12.0, 15.0
"""Font sizes in text and displayed are at least these, pixels an em, so that indices can be read."""


class FormulaMask(NamedTuple):
    """A formula as a mask (mode L); `depth` is how many of its pixel rows are below the baseline (negative: it ends
    above)."""

    mask: Image.Image
    depth: int


@lru_cache(maxsize=1)
def _parser() -> Any:
    from matplotlib.mathtext import MathTextParser

    logging.getLogger("matplotlib.mathtext").setLevel(logging.ERROR)  # "underfull boxes": nothing a reader would see

    return MathTextParser("agg")


@lru_cache(maxsize=2048)
def _set(latex: str, half_pixels: int, fontset: str) -> FormulaMask | None:
    import numpy
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=half_pixels / 2 * SCALES[fontset], math_fontfamily=fontset)
    try:
        # The full stop behind the formula shows where the baseline is; mathtext's own depth counts from the ink's top.
        parsed = _parser().parse(f"${latex}$    .", dpi=72, prop=font)
    except ValueError:
        return None
    pixels = numpy.asarray(parsed.image)
    inked = numpy.asarray(pixels.any(0))
    stop = int(numpy.flatnonzero(inked)[-1]) + 1
    while stop and inked[stop - 1]:
        stop -= 1
    baseline = int(numpy.flatnonzero(pixels[:, stop:].max(1) > 100)[-1]) + 1
    columns = numpy.flatnonzero(inked[:stop])
    if not columns.size:
        return None
    rows = numpy.flatnonzero(pixels[:, :stop].any(1))
    crop = numpy.ascontiguousarray(pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
    return FormulaMask(Image.fromarray(crop), int(rows[-1]) + 1 - baseline)


def formula(latex: str, size: float, fontset: str, displayed: bool = False) -> FormulaMask | None:
    """A formula at `size` pixels an em; None if mathtext cannot set it. `displayed`: with large fractions."""
    size = max(size, LEAST_DISPLAYED if displayed else LEAST_PX)
    return _set(_large_fractions(latex) if displayed else latex, round(size * 2), fontset)


def _large_fractions(latex: str) -> str:
    """Fractions that are in no braces in display style, as TeX sets them in displayed formulas."""
    parts, depth = re.split(r"(\\[{}]|[{}]|\\frac(?![a-zA-Z]))", latex), 0
    for place, part in enumerate(parts):
        depth += (part == "{") - (part == "}")
        if part == r"\frac" and depth == 0:
            parts[place] = r"\dfrac"
    return "".join(parts)
