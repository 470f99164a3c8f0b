"""Normalized edit distance and recovery, against figures worked out by hand."""

from __future__ import annotations

import random

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.evaluate.ned import normalized_edit_distance, recovery


@pytest.mark.parametrize(
    ("read", "reference", "expected"),
    [
        ("", "", 0.0),
        ("abc", "abc", 0.0),
        ("", "abc", 1.0),
        ("abc", "", 1.0),
        ("kitten", "sitting", 3 / 7),
        ("a b", "a  b", 1 / 4),
        ("Total: 10 €", "Total: 10 $", 1 / 11),
        ("ab", "ba", 1.0),  # a transposition is two edits
        ("\U0001d54f", "x", 1.0),  # code points, not UTF-16 units or bytes
    ],
)
def test_distance_over_the_longer_length(read: str, reference: str, expected: float) -> None:
    assert normalized_edit_distance(read, reference) == pytest.approx(expected)
    assert normalized_edit_distance(reference, read) == pytest.approx(expected)


def test_the_example_of_the_design() -> None:
    result = recovery([0.0232], [0.0295])
    assert round(result.percent, 2) == 99.36
    assert result.error_change_percent is not None and round(result.error_change_percent) == 27


def test_recovery_is_a_ratio_of_means_not_a_mean_of_ratios() -> None:
    result = recovery([0.0, 0.8], [0.1, 0.8])
    assert result.percent == pytest.approx(100 * 1.1 / 1.2)
    assert result.percent != pytest.approx(100 * (0.9 + 1.0) / 2)
    assert (result.original, result.compressed, result.pages) == (pytest.approx(0.4), pytest.approx(0.45), 2)


def test_the_interval_is_paired() -> None:
    # Pages differ widely, the two models hardly: only an unpaired interval would be wide.
    rng = random.Random(0)
    original = [rng.uniform(0, 0.9) for _ in range(64)]
    compressed = [value + 0.001 for value in original]
    result = recovery(original, compressed, resamples=2000)
    assert result.low <= result.percent <= result.high
    assert 0 < result.high - result.low < 0.2


def test_the_interval_holds_the_truth_about_95_times_in_100() -> None:
    rng = random.Random(1)
    held = 0
    for trial in range(200):
        original = [rng.betavariate(1, 30) for _ in range(60)]
        compressed = [min(1.0, value + rng.betavariate(1, 60)) for value in original]
        result = recovery(original, compressed, seed=trial, resamples=400)
        truth = 100 * (1 - 1 / 31 - 1 / 61) / (1 - 1 / 31)
        held += result.low <= truth <= result.high
    assert 176 <= held <= 199


def test_the_same_seed_gives_the_same_interval_and_another_does_not() -> None:
    rng = random.Random(2)
    original, compressed = ([rng.random() for _ in range(20)] for _ in range(2))
    assert recovery(original, compressed, seed=3) == recovery(original, compressed, seed=3)
    assert recovery(original, compressed, seed=3).low != recovery(original, compressed, seed=4).low


def test_a_perfect_original_has_no_change_in_errors() -> None:
    result = recovery([0.0, 0.0], [0.0, 0.1])
    assert result.error_change_percent is None
    assert result.percent == pytest.approx(95.0)


def test_a_draw_of_unreadable_pages_only_does_not_break_the_interval() -> None:
    result = recovery([1.0, 0.5], [1.0, 0.5])
    assert result.low == result.high == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("original", "compressed"),
    [([], []), ([0.1], [0.1, 0.2]), ([0.1, float("nan")], [0.1, 0.2]), ([1.5], [0.1]), ([1.0, 1.0], [0.5, 1.0])],
)
def test_what_cannot_be_compared_is_refused(original: list[float], compressed: list[float]) -> None:
    with pytest.raises(OcriaError):
        recovery(original, compressed)
