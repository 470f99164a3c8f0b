"""Small changes of a page that cost the workers too much: noise, contrast and brightness, on the GPU."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

NOISE = 8.0
"""Largest standard deviation of the noise, in grey levels of 0..255."""


class Changes(NamedTuple):
    """What is done to each patch; [P, 1] except for the noise."""

    gain: Tensor
    shift: Tensor
    sigma: Tensor
    noise: Tensor


def draw(bounds: Tensor, patches: int, values: int, dtype: torch.dtype, seed: int) -> Changes:
    """Draws the changes of each page: noise on half of them, contrast and brightness on half.

    Args:
        bounds: [pages + 1] first patch of each page; patches, values: shape of the patches.
        dtype: of the noise.
        seed: same seed, same changes on the same device.
    """
    device = bounds.device
    generator = torch.Generator(device).manual_seed(seed)
    some = torch.rand(5, bounds.shape[0], generator=generator, device=device)
    changed = some[0] < 0.5
    gain = torch.where(changed, 0.8 + 0.3 * some[1], 1.0)
    shift = torch.where(changed, 24 * some[2] - 12, 0.0)
    sigma = torch.where(some[3] < 0.5, NOISE * some[4], 0.0)
    page = torch.bucketize(torch.arange(patches, device=device), bounds[1:], right=True)
    noise = torch.randn(patches, values, generator=generator, device=device, dtype=dtype)
    return Changes(gain[page, None], shift[page, None], sigma[page, None], noise)


def changed(patches: Tensor, changes: Changes, dtype: torch.dtype) -> Tensor:
    """[P, 768] uint8 -> -1..1, with the changes."""
    x = 128 + (patches.float() - 128) * changes.gain + changes.shift + changes.noise.float() * changes.sigma
    return normalized(x.clamp(0, 255), dtype)


def normalized(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """Grey values 0..255 -> -1..1."""
    return (pixels.float() / 127.5 - 1).to(dtype)
