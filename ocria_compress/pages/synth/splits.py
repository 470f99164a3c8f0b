"""The parts that synthetic pages are divided into, so that no page of one part looks like practice for another."""

from __future__ import annotations

from typing import Literal, get_args

Split = Literal["train", "draft", "calibration", "benchmark"]
"""What a page is for: training `mini`, training its draft head, calibrating a quantization, or measuring.

Each split has seeds and page templates of its own. Benchmark pages are drawn with fonts and words that no other split
uses.
"""

SPLITS: tuple[Split, ...] = get_args(Split)
