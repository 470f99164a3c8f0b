"""Normalized edit distance, and what a compression cost in it.

Definition: the Levenshtein distance of two texts (insertions, deletions, substitutions of one character, each at cost
1; V. I. Levenshtein, 1966), counted in Unicode code points, over the length of the longer one. 0 is equal, 1 is nothing
in common. Texts are compared as they are: no whitespace, case or markup is normalized. (OmniDocBench's edit distance is
divided by the longer length likewise, but after normalization of its own.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ocria_compress.errors import OcriaError


def normalized_edit_distance(read: str, reference: str) -> float:
    """Levenshtein distance over the longer length, 0 (equal) to 1; 0 for two empty texts."""
    from rapidfuzz.distance import Levenshtein

    longer = max(len(read), len(reference))
    return Levenshtein.distance(read, reference) / longer if longer else 0.0


@dataclass(frozen=True)
class Recovery:
    """What a compressed model kept of the original's accuracy, on the same pages.

    Attributes:
        pages: how many.
        original, compressed: mean normalized edit distance of each, 0 (perfect) to 1.
        percent: 100 x (1 - compressed) / (1 - original): a ratio of means, never a mean of ratios.
        low, high: the paired bootstrap interval of `percent`.
        confidence: of the interval: 0.95.
        error_change_percent: 100 x (compressed / original - 1): by how much the errors grew (or, below 0, shrank);
            None where the original made none and so there is nothing to compare with.
        seed, resamples: of the bootstrap.
    """

    pages: int
    original: float
    compressed: float
    percent: float
    low: float
    high: float
    confidence: float
    error_change_percent: float | None
    seed: int
    resamples: int


def recovery(
    original: Sequence[float], compressed: Sequence[float], *, seed: int = 0, resamples: int = 10_000
) -> Recovery:
    """Recovery of a compressed model over pages, with a paired 95 % interval.

    The interval is the percentile bootstrap (B. Efron, 1979): pages are drawn with replacement, both models' distances
    of a page together, and the ratio of means is taken anew. It says how far the pages at hand bear the figure out, not
    how other kinds of pages would fare; with one page it has no width.

    Args:
        original: normalized edit distance of the original model, one a page, 0 to 1.
        compressed: of the compressed model, for the same pages in the same order.
        seed: of the bootstrap.
        resamples: how often pages are drawn.

    Raises:
        OcriaError: no pages, another number of pages, a distance that is not between 0 and 1 (NaN included), or an
            original that read nothing right on all pages.
    """
    import numpy as np

    if len(original) != len(compressed) or not len(original):
        raise OcriaError(
            f"recovery needs the same pages read by both models, and there are {len(original)} and {len(compressed)}",
            fix="read the same page set with both",
        )
    pairs = np.array([original, compressed], dtype=np.float64)
    if not ((pairs >= 0) & (pairs <= 1)).all():
        raise OcriaError("a normalized edit distance is not between 0 and 1", fix="read the pages again")
    means = pairs.mean(axis=1)
    if means[0] == 1:
        raise OcriaError(
            "the original model read nothing right on these pages, so there is nothing to recover",
            fix="use pages that the original model can read",
        )
    low, high = _interval(pairs, seed, resamples, confidence=0.95)
    change = 100 * (means[1] / means[0] - 1) if means[0] > 0 else None
    return Recovery(
        pages=pairs.shape[1],
        original=float(means[0]),
        compressed=float(means[1]),
        percent=float(100 * (1 - means[1]) / (1 - means[0])),
        low=low,
        high=high,
        confidence=0.95,
        error_change_percent=None if change is None else float(change),
        seed=seed,
        resamples=resamples,
    )


def _interval(pairs, seed: int, resamples: int, confidence: float) -> tuple[float, float]:
    """The percentile interval of the recovery of `pairs` [2, pages], in percent."""
    import numpy as np

    rng = np.random.default_rng(seed)
    pages = pairs.shape[1]
    accuracies = np.empty((resamples, 2))
    for first in range(0, resamples, 256):  # in parts: 10,000 draws of 10,000 pages would take gigabytes
        drawn = rng.integers(0, pages, size=(min(256, resamples - first), pages))
        accuracies[first : first + len(drawn)] = 1 - pairs[:, drawn].mean(axis=2).T
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = 100 * accuracies[:, 1] / accuracies[:, 0]
    ratios = ratios[np.isfinite(ratios)]  # a draw of only pages that the original could not read at all
    low, high = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
