"""Scan effects for a batch of pages on the GPU: the family of ocria_compress.pages.synth.effects."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

UNTURNED_BELOW = 128
"""Lines and small blocks, under this height in pixels, are neither turned nor shifted."""


def normalized(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """Grey values 0..255 -> -1..1."""
    return (pixels / 127.5 - 1).to(dtype)


def augment(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, H, W] uint8 -> [B, H, W] in -1..1, each page with effects of its own.

    Turned by up to 0.8 degrees, shifted by up to 6 x 4 pixels, blurred, unevenly lit, contrast changed, noise added.
    """
    x = pixels.to(torch.float32)
    batch, height, width = x.shape
    device = x.device

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, device=device)

    def some(chance: float) -> Tensor:
        return draw(batch, 1, 1) < chance

    x = _turned(x, draw)
    amount = (draw(batch, 1, 1) * 0.9) * some(0.25)
    x = x * (1 - amount) + amount * _blurred(x)
    on = some(0.3).float()
    across, down = (draw(batch, 1, 1) * 28 - 14) * on, (draw(batch, 1, 1) * 28 - 14) * on
    x = x + across * torch.linspace(-1, 1, width, device=device)
    x = x + down * torch.linspace(-1, 1, height, device=device)[:, None]
    on = some(0.3)
    x = torch.where(on, 128 + (x - 128) * (0.75 + 0.35 * draw(batch, 1, 1)) + draw(batch, 1, 1) * 20 - 10, x)
    x = x + torch.randn_like(x) * (draw(batch, 1, 1) * 9) * some(0.5)
    return normalized(x.clamp(0, 255), dtype)


def _turned(x: Tensor, draw) -> Tensor:
    batch, height, width = x.shape
    angle = (draw(batch) * 1.6 - 0.8) * math.pi / 180 * (draw(batch) < 0.4)
    shift_x = (draw(batch) * 2 - 1) * 6 / width * (draw(batch) < 0.4)
    shift_y = (draw(batch) * 2 - 1) * 4 / height * (draw(batch) < 0.4)
    if height < UNTURNED_BELOW:
        return x
    cos, sin = angle.cos(), angle.sin()
    first = torch.stack([cos, -sin * height / width, shift_x], 1)
    second = torch.stack([sin * width / height, cos, shift_y], 1)
    grid = F.affine_grid(torch.stack([first, second], 1), [batch, 1, height, width], align_corners=False)
    return F.grid_sample(x[:, None], grid, mode="bilinear", padding_mode="border", align_corners=False)[:, 0]


def _blurred(x: Tensor) -> Tensor:
    kernel = torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]], device=x.device).view(1, 1, 3, 3) / 16
    return F.conv2d(F.pad(x[:, None], (1, 1, 1, 1), mode="replicate"), kernel)[:, 0]
