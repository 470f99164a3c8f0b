"""Whether a weight is kept once more in fp32: four bytes a value, and several times faster on most CPUs."""

from __future__ import annotations

import psutil
import torch

KEEP_FREE = 4 << 30
"""Bytes of memory that the copies leave free."""


def fp32_copy(weight: torch.Tensor) -> torch.Tensor | None:
    """The weight in fp32, contiguous; None where memory is short, and the weight is to be converted at every call."""
    if psutil.virtual_memory().available - 4 * weight.numel() < KEEP_FREE:
        return None
    return weight.detach().float().contiguous()
