"""Scan effects: repeatable, of every size, and mild enough to read."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth import effects, fonts


def sheet(width: int = 320, height: int = 240, ink: Any = (20, 20, 20), paper: Any = (255, 255, 255)) -> Image.Image:
    image = Image.new("RGB", (width, height), paper)
    face = fonts.load(fonts.FAMILIES[0].regular, 13.0)
    for y in range(8, height - 16, 18):
        ImageDraw.Draw(image).text((8, y), "Total 1.234,50 € due on receipt of goods", fill=ink, font=face)
    return image


def test_the_same_seed_gives_the_same_pixels() -> None:
    for seed in range(20):
        first, names = effects.scanned(Random(seed), sheet())
        second, again = effects.scanned(Random(seed), sheet())
        assert names == again and first.tobytes() == second.tobytes()


def test_every_effect_happens_and_at_least_one_each_time() -> None:
    seen = set()
    for seed in range(150):
        image = sheet(96, 64)
        result, names = effects.scanned(Random(seed), image)
        assert names and result.mode == "RGB" and result.size == image.size
        assert names == [name for name in effects.EFFECTS if name in names]
        seen |= set(names)
    assert seen == set(effects.EFFECTS)


def test_the_page_given_is_left_as_it_is() -> None:
    image = sheet(ink=(160, 20, 20))
    before = image.tobytes()
    for seed in range(30):
        effects.scanned(Random(seed), image)
    assert image.tobytes() == before


@pytest.mark.parametrize("size", [(64, 64), (65, 127), (2048, 70), (70, 2048), (2048, 2048)])
def test_any_size(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    always = {name: (1.0, effect) for name, (_, effect) in effects._EFFECTS.items()}
    monkeypatch.setattr(effects, "_EFFECTS", always)
    for ink in ((20, 20, 20), (200, 30, 30)):
        result, names = effects.scanned(Random(3), sheet(*size, ink=ink), strength=2.0)
        assert result.size == size and len(names) == len(effects.EFFECTS) - len(effects._NOT_BOTH)


def only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chances = {other: (float(other == name), effect) for other, (_, effect) in effects._EFFECTS.items()}
    monkeypatch.setattr(effects, "_EFFECTS", chances)


@pytest.mark.parametrize("name", effects.EFFECTS)
def test_each_effect_changes_the_page_but_leaves_its_ink_darker_than_its_paper(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(name, monkeypatch)
    image = sheet(ink=(30, 40, 160))
    ink = np.asarray(sheet(ink=(0, 0, 0)).convert("L")) < 100
    for seed in range(8):
        result, names = effects.scanned(Random(seed), image)
        assert names == [name] and result.tobytes() != image.tobytes()
        if name != "rotation":
            grey = np.asarray(result.convert("L")).astype(int)
            assert grey[~ink].mean() - grey[ink].mean() > 45


def test_a_turn_keeps_dark_lines_and_fills_corners_with_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    only("rotation", monkeypatch)
    image = Image.new("RGB", (400, 500), (240, 230, 200))
    ImageDraw.Draw(image).rectangle((100, 248, 300, 252), fill=(0, 0, 0))
    monkeypatch.setattr(Random, "random", lambda self: 0.999)  # the largest turn
    result, _ = effects.scanned(Random(1), image)
    pixels = np.asarray(result).astype(int)
    assert np.abs(pixels[[0, 0, -1, -1], [0, -1, 0, -1]] - (240, 230, 200)).max() <= 4
    grey = pixels.sum(2)
    left, right = grey[:, 110].argmin(), grey[:, 290].argmin()
    degrees = np.degrees(np.arctan2(abs(left - right), 180))
    assert 1.5 <= degrees <= 2.05 and grey[:, 200].min() < 60


def test_the_turn_agrees_with_pillows(monkeypatch: pytest.MonkeyPatch) -> None:
    page = sheet(200, 160).convert("L")
    slope = np.tan(np.radians(1.2))
    ours = effects._shear(effects._shear(np.asarray(page), slope, 255, 0), -slope, 255, 1)
    theirs = np.asarray(page.rotate(-1.2, Image.Resampling.BICUBIC, fillcolor=255))
    inner = (slice(10, -10), slice(10, -10))
    assert np.abs(ours[inner].astype(int) - theirs[inner]).mean() < 4


def test_strength_scales_the_effects() -> None:
    image = sheet()
    clean = np.asarray(image).astype(int)

    def change(strength: float) -> float:
        pages = (effects.scanned(Random(seed), image, strength)[0] for seed in range(25))
        return float(np.mean([np.abs(np.asarray(page).astype(int) - clean).mean() for page in pages]))

    weak, usual, strong = change(0.2), change(1.0), change(2.0)
    assert weak < 0.5 * usual < 0.5 * strong


def test_a_page_without_colours_gets_none_but_by_a_tint() -> None:
    for seed in range(30):
        result, names = effects.scanned(Random(seed), sheet())
        pixels = np.asarray(result).astype(int)
        assert "tint" in names or (np.ptp(pixels, axis=2) == 0).all()


def test_wrong_input_is_refused() -> None:
    with pytest.raises(OcriaError, match="RGB image"):
        effects.scanned(Random(0), sheet().convert("L"))
    with pytest.raises(OcriaError, match="RGB image"):
        effects.scanned(Random(0), Image.new("RGB", (4, 100)))
    with pytest.raises(OcriaError, match="no strength"):
        effects.scanned(Random(0), sheet(), strength=-1.0)
