"""Checks the delta rule's kernel and its replaced backward piece against fp32 torch, on a GPU.

    python -m tools.mini.check_delta_rule

Run it before training on any new GPU, fla-core or triton: gradients that are wrong train without a word.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor

from tools.mini.delta_rule import HEAD, KEY_HEADS, VALUE_HEADS, DeltaRule, fla_delta_rule, plain_delta_rule

NAMES = ("output", "d query", "d key", "d value", "d decay", "d beta")
BOUND = 0.03
"""Relative error in bf16 above which the kernel is taken for wrong (0.006 to 0.009 seen on an H200)."""


def example(device: str, batch: int = 4, tokens: int = 384) -> tuple[list[Tensor], Tensor]:
    """Random inputs, with heads that forget slowly to fast, and the gradient of the output."""
    torch.manual_seed(0)
    query, key = (torch.randn(batch, tokens, KEY_HEADS, HEAD, device=device) for _ in range(2))
    value = torch.randn(batch, tokens, VALUE_HEADS, HEAD, device=device)
    beta = torch.rand(batch, tokens, VALUE_HEADS, device=device)
    speeds = torch.tensor([0.01, 0.1, 0.5, 2.0], device=device)
    decay = -torch.rand(batch, tokens, VALUE_HEADS, device=device) * speeds
    return [query, key, value, decay, beta], torch.randn(batch, tokens, VALUE_HEADS, HEAD, device=device)


def outcome(rule: DeltaRule, inputs: list[Tensor], gradient: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Output and gradients of `rule`; the decay stays in fp32."""
    query, key, value, decay, beta = inputs
    leaves = [tensor.to(dtype).detach().clone().requires_grad_() for tensor in (query, key, value)]
    leaves += [decay.clone().requires_grad_(), beta.to(dtype).clone().requires_grad_()]
    output = rule(*leaves)
    output.backward(gradient.to(output.dtype))
    return [output] + [leaf.grad for leaf in leaves if leaf.grad is not None]


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("this check needs a GPU")
    inputs, gradient = example("cuda")
    reference = outcome(plain_delta_rule, inputs, gradient, torch.float32)
    found = outcome(fla_delta_rule(compiled=False), inputs, gradient, torch.bfloat16)
    wrong = False
    for name, ours, exact in zip(NAMES, found, reference, strict=True):
        error = ((ours.float() - exact.float()).norm() / exact.float().norm()).item()
        wrong |= not error < BOUND
        print(f"{name:8} relative error {error:.4f}")
    sys.exit(f"wrong: above {BOUND}" if wrong else 0)


if __name__ == "__main__":
    main()
