"""Checks what trains `mini` on a GPU against plain torch in fp32.

    python -m tools.mini.check_delta_rule

The delta rule's kernel with pages packed in a row, the packed attention, and the whole packed forward pass against
the Hugging Face model on three random pages. Run it before training on any new GPU, fla-core, triton or torch:
gradients that are wrong train without a word. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor

from tools.mini.delta_rule import HEAD, KEY_HEADS, VALUE_HEADS, DeltaRule, fla_delta_rule, plain_delta_rule
from tools.mini.pieces import FORGET

NAMES = ("output", "d query", "d key", "d value", "d decay", "d beta")
BOUND = 0.03
"""Relative error in bf16 above which the kernel is taken for wrong (0.006 to 0.009 seen on an H200)."""

LOSS_BOUND, GRADIENT_BOUND = 0.01, 0.2
"""Of the whole packed pass in bf16 against fp32; random pages make gradients that are mostly noise."""


def example(device: str, batch: int = 4, tokens: int = 384, wipe: bool = True) -> tuple[list[Tensor], Tensor]:
    """Random inputs, with heads that forget slowly to fast, and the gradient of the output.

    With `wipe`, pages begin inside chunks, at the edge of one, and twice in one.
    """
    torch.manual_seed(0)
    query, key = (torch.randn(batch, tokens, KEY_HEADS, HEAD, device=device) for _ in range(2))
    value = torch.randn(batch, tokens, VALUE_HEADS, HEAD, device=device)
    beta = torch.rand(batch, tokens, VALUE_HEADS, device=device)
    speeds = torch.tensor([0.01, 0.1, 0.5, 2.0], device=device)
    decay = -torch.rand(batch, tokens, VALUE_HEADS, device=device) * speeds
    if wipe:
        decay[:, [at for at in (0, 37, 64, 130, 170, 255) if at < tokens]] = FORGET
    return [query, key, value, decay, beta], torch.randn(batch, tokens, VALUE_HEADS, HEAD, device=device)


def outcome(rule: DeltaRule, inputs: list[Tensor], gradient: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Output and gradients of `rule`; the decay stays in fp32."""
    query, key, value, decay, beta = inputs
    leaves = [tensor.to(dtype).detach().clone().requires_grad_() for tensor in (query, key, value)]
    leaves += [decay.clone().requires_grad_(), beta.to(dtype).clone().requires_grad_()]
    output = rule(*leaves)
    output.backward(gradient.to(output.dtype))
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    # Where the state is wiped the decay is a constant; what a kernel returns for it there does not matter.
    gradients[3] = torch.where(decay == FORGET, 0.0, gradients[3])
    return [output, *gradients]


def delta_errors(rule: DeltaRule, device: str = "cuda", dtype: torch.dtype = torch.bfloat16) -> dict[str, float]:
    """Relative errors of output and gradients against plain torch in fp32; not a number counts as infinite."""
    inputs, gradient = example(device)
    reference = outcome(plain_delta_rule, inputs, gradient, torch.float32)
    found = outcome(rule, inputs, gradient, dtype)
    errors = {}
    for name, ours, exact in zip(NAMES, found, reference, strict=True):
        error = ((ours.float() - exact.float()).norm() / exact.float().norm()).item()
        errors[name] = error if error == error else float("inf")
    return errors


def main() -> None:
    from ocria_compress.bundled import mini_folder
    from tools.mini.attention import choose, errors
    from tools.mini.check_packing import loss_errors

    if not torch.cuda.is_available():
        sys.exit("this check needs a GPU")
    rule = fla_delta_rule(compiled=False)
    found = {f"delta rule, {name}": (error, BOUND) for name, error in delta_errors(rule).items()}
    attention = choose("cuda", torch.bfloat16)
    worst = errors(attention, "cuda", torch.bfloat16)
    found |= {f"attention, {name}": (error, BOUND) for name, error in worst.items()}
    whole = loss_errors(mini_folder(), "cuda", torch.bfloat16, rule, attention)
    bounds = {name: LOSS_BOUND if name == "loss" else GRADIENT_BOUND for name in whole}
    found |= {f"packed pages, {name}": (error, bounds[name]) for name, error in whole.items()}
    for name, (error, bound) in found.items():
        print(f"{name:40} relative error {error:.4f}  {'ok' if error < bound else 'WRONG'}")
    sys.exit(0 if all(error < bound for error, bound in found.values()) else 1)


if __name__ == "__main__":
    main()
