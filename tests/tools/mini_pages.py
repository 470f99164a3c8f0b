"""A stand-in for the page generator: words and numbers on small coloured pages of any size."""

from __future__ import annotations

import os
from random import Random

import numpy as np
from PIL import Image, ImageDraw

WORDS = ("alpha", "beta", "Rechnung", "total", "42.50", "<table>", "été", "**bold**", "note", "2031-04-05")


def make(seed: int, level: float) -> tuple[np.ndarray, str, str]:
    """As tools.mini.source.make; at level 1 pages are larger."""
    rng = Random(seed)
    if seed % 17 == 5:
        raise ValueError("a bad page")
    if seed % 19 == 7:
        return np.zeros((64, 64, 3), np.uint8), "plain", "x " * 3000
    width, height = (round(rng.uniform(60, 100 + 160 * level)) for _ in range(2))
    image = Image.new("RGB", (width, height), tuple(rng.choices(range(180, 256), k=3)))
    pen = ImageDraw.Draw(image)
    lines = [" ".join(rng.choices(WORDS, k=2)) for _ in range(max(1, height // 30))]
    for number, line in enumerate(lines):
        pen.text((4, 4 + 14 * number), line, fill=tuple(rng.choices(range(0, 90), k=3)))
    return np.asarray(image), rng.choice(("plain", "plain", "system", "tables")), "\n\n".join(lines)


def make_or_die(seed: int, level: float) -> tuple[np.ndarray, str, str]:
    """Its worker is gone at one page in thirty."""
    if seed % 30 == 3:
        os._exit(3)
    return make(seed, level)
