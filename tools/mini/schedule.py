"""The clock of a run and what depends on it: seconds of training, without compilation, evaluation and saving."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

WARMUP_STEPS = 150
MTP_WARMUP_STEPS = 100
FLAT = 0.35
"""The share of the time at the peak learning rate; then it falls in a straight line to 0."""


@dataclass
class Clock:
    """Counts the seconds between `tick`s.

    Attributes:
        seconds: of training so far.
        per_step: counts each tick as so many seconds instead, so that a run can be repeated.
    """

    seconds: float = 0.0
    per_step: float | None = None
    _last: float | None = field(default=None, repr=False)

    def tick(self) -> None:
        """A step has begun."""
        now = time.perf_counter()
        if self._last is not None:
            self.seconds += now - self._last if self.per_step is None else self.per_step
        self._last = now

    def pause(self) -> None:
        """A step has ended and what comes now is no training."""
        self.tick()
        self._last = None


def rate(step: int, share: float) -> float:
    """The learning rate as a share of its peak, at a step (from 0) and a share of the time."""
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    return warm * (1.0 if share < FLAT else max(0.0, (1 - share) / (1 - FLAT)))


def level(share: float, until: float) -> float:
    """The curriculum: from 0 at the start to 1 at the share `until`."""
    return 1.0 if share >= until else share / until
