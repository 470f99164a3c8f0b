"""Muon for the matrices, AdamW for everything else, without a single wait for the GPU.

Muon (K. Jordan, 2024): momentum, made orthogonal by five Newton-Schulz steps; the update is scaled by
0.2 * sqrt(larger side), as in "Muon is Scalable for LLM Training" (2025), so that one learning rate suits all shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

NOT_FOR_MUON = ("embed_tokens", "pos_embed", "in_proj_a", "in_proj_b", "lm_head")
PATCH_RATE = 1 / 3
"""A grey pixel reaches the patch embedding three times, once for each colour."""

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
BETAS, EPSILON, ADAM_DECAY = (0.9, 0.98), 1e-9, 0.01
MOMENTUM, MUON_DECAY = 0.95, 0.05


class Optimizer:
    """Both optimizers over the trainable parameters of a module.

    Args:
        named: parameters with their names; AdamW's become views of one flat tensor.
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
        others: list[tuple[str, nn.Parameter]] = []
        for name, p in trained:
            if p.ndim == 2 and name != "patch" and not any(part in name for part in NOT_FOR_MUON):
                self.by_shape.setdefault(tuple(p.shape), []).append(p)
            else:
                others.append((name, p))
        device = self.parameters[0].device
        self.momentum = {shape: torch.zeros(len(ps), *shape, device=device) for shape, ps in self.by_shape.items()}
        self._flatten(others, device)
        self.steps = 0
        self.skipped = torch.zeros((), device=device)

    @torch.no_grad()
    def _flatten(self, others: list[tuple[str, nn.Parameter]], device: torch.device) -> None:
        """Puts AdamW's parameters into one tensor, with each one's rate and decay."""
        self.others = [p for _, p in others]
        self.flat = torch.cat([p.detach().reshape(-1) for p in self.others] or [torch.zeros(0, device=device)])
        self.first, self.second = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.rates, self.decays = torch.ones_like(self.flat), torch.zeros_like(self.flat)
        at = 0
        for name, p in others:
            here = slice(at, at + p.numel())
            p.data = self.flat[here].view(p.shape)
            self.rates[here] = PATCH_RATE if name == "patch" else 1.0
            self.decays[here] = ADAM_DECAY if p.ndim >= 2 else 0.0
            at += p.numel()

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """One step at `scale` times the peak learning rates; gradients are dropped after it.

        A step with a gradient that is not finite changes nothing but the count `skipped`.
        """
        stacks = {shape: torch.stack([_gradient(p) for p in ps]) for shape, ps in self.by_shape.items()}
        flat = torch.cat([_gradient(p).reshape(-1) for p in self.others] or [self.flat])
        norm = flat.norm()
        finite = torch.isfinite(norm)
        for stack in stacks.values():
            finite = finite & torch.isfinite(stack.sum())
        self.skipped += ~finite
        self.steps += 1
        go = finite.float()
        # Muon's update has a size of its own, so only AdamW's gradients are clipped.
        self._adam(torch.where(finite, flat / norm.clamp(min=1.0), 0.0), self.adam_rate * scale * go)
        for shape, stack in stacks.items():
            self._muon(shape, torch.where(finite, stack, 0.0), self.muon_rate * scale * go)
        for parameter in self.parameters:
            parameter.grad = None

    def _adam(self, gradient: Tensor, rate: Tensor) -> None:
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.lerp_(gradient.square(), 1 - BETAS[1])
        first = self.first / (1 - BETAS[0] ** self.steps)
        second = self.second / (1 - BETAS[1] ** self.steps)
        rates = self.rates * rate
        self.flat.mul_(1 - rates * self.decays).sub_(rates * first / (second.sqrt() + EPSILON))

    def _muon(self, shape: tuple[int, ...], gradient: Tensor, rate: Tensor) -> None:
        average = self.momentum[shape]
        average.lerp_(gradient, 1 - MOMENTUM)
        update = orthogonalized(gradient.lerp(average, MOMENTUM), self.dtype)
        weights: list[Tensor] = list(self.by_shape[shape])
        torch._foreach_mul_(weights, 1 - rate * MUON_DECAY)
        torch._foreach_add_(weights, list((update * (-rate * 0.2 * math.sqrt(max(shape)))).unbind(0)))

    def state_dict(self) -> dict[str, Any]:
        """Moments and the number of steps."""
        momentum = {"x".join(map(str, shape)): tensor for shape, tensor in self.momentum.items()}
        moments = {"first": self.first, "second": self.second}
        return {"momentum": momentum, **moments, "steps": self.steps, "skipped": self.skipped}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes the moments of `state_dict` over."""
        for shape, tensor in self.momentum.items():
            tensor.copy_(state["momentum"]["x".join(map(str, shape))])
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])
        self.steps = int(state["steps"])
        self.skipped.copy_(state["skipped"])

    @torch.no_grad()
    def forget(self) -> None:
        """Back to the state before the first step."""
        for tensor in (*self.momentum.values(), self.first, self.second, self.skipped):
            tensor.zero_()
        self.steps = 0


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def orthogonalized(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """[n, rows, columns] -> about U V^T of each matrix's singular value decomposition, in fp32."""
    a, b, c = NEWTON_SCHULZ
    x = matrices.to(dtype)
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) * 1.02 + 1e-7).to(x.dtype)
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return (x.mT if tall else x).float()
