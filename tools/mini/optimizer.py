"""Muon for the matrices, AdamW for everything else.

Muon (K. Jordan, 2024): momentum, made orthogonal by five Newton-Schulz steps; the update is scaled by
0.2 * sqrt(larger side), as in "Muon is Scalable for LLM Training" (2025), so that one learning rate suits all shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

NOT_FOR_MUON = ("embed_tokens", "pos_embed", "in_proj_a", "in_proj_b", "lm_head", "grey_patch")
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


class Optimizer:
    """Both optimizers over the trainable parameters of a module.

    Args:
        named: parameters with their names.
        muon_rate, adam_rate: peak learning rates.
        dtype: in which the Newton-Schulz steps are computed.
    """

    def __init__(
        self, named: Iterable[tuple[str, nn.Parameter]], muon_rate: float, adam_rate: float, dtype: torch.dtype
    ) -> None:
        trained = [(name, p) for name, p in named if p.requires_grad]
        self.parameters = [p for _, p in trained]
        self.muon_rate, self.adam_rate, self.dtype = muon_rate, adam_rate, dtype
        self.by_shape: dict[tuple[int, ...], list[nn.Parameter]] = {}
        decayed: list[nn.Parameter] = []
        free: list[nn.Parameter] = []
        for name, p in trained:
            if p.ndim == 2 and not any(part in name for part in NOT_FOR_MUON):
                self.by_shape.setdefault(tuple(p.shape), []).append(p)
            else:
                (decayed if p.ndim >= 2 else free).append(p)
        self.adam_parameters = decayed + free
        device = self.parameters[0].device
        self.momentum = {shape: torch.zeros(len(ps), *shape, device=device) for shape, ps in self.by_shape.items()}
        self.adam = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.01}, {"params": free, "weight_decay": 0.0}],
            lr=adam_rate, betas=(0.9, 0.98), eps=1e-9, fused=device.type == "cuda",
        )  # fmt: skip

    def step(self, scale: float) -> None:
        """One step at `scale` times the peak learning rates; gradients are dropped after it."""
        for group in self.adam.param_groups:
            group["lr"] = self.adam_rate * scale
        # Muon's update has a size of its own, so only AdamW's gradients are clipped.
        nn.utils.clip_grad_norm_(self.adam_parameters, 1.0, foreach=True)
        self.adam.step()
        self._muon_step(self.muon_rate * scale)
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def _muon_step(self, rate: float, decay: float = 0.05, momentum: float = 0.95) -> None:
        for shape, parameters in self.by_shape.items():
            gradient = torch.stack([p.grad for p in parameters if p.grad is not None])
            average = self.momentum[shape]
            average.lerp_(gradient, 1 - momentum)
            update = orthogonalized(gradient.lerp(average, momentum), self.dtype)
            weights: list[Tensor] = list(parameters)
            torch._foreach_mul_(weights, 1 - rate * decay)
            torch._foreach_add_(weights, list(update.unbind(0)), alpha=-rate * 0.2 * math.sqrt(max(shape)))


def orthogonalized(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """[n, rows, columns] -> about U V^T of each matrix's singular value decomposition, in fp32."""
    a, b, c = NEWTON_SCHULZ
    x = matrices.to(dtype)
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) * 1.02 + 1e-7).to(x.dtype)
    for _ in range(5):
        gram = x.mT @ x
        x = a * x + x @ (b * gram + c * (gram @ gram))
    return (x.mT if tall else x).float()
