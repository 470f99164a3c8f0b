"""Chooses how the layers are computed on this machine: the best way that exists and is right."""

from __future__ import annotations

import torch

from tools.mini import delta_rule, pieces
from tools.mini.attention import Attention, choose
from tools.mini.check_delta_rule import BOUND, delta_errors
from tools.mini.delta_rule import DeltaRule


def prepare_torch(device: str) -> None:
    """Settings of the process."""
    if device == "cpu":
        torch.set_num_threads(2)
        return
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


def choose_delta_rule(device: str, wanted: str, compiled: bool) -> DeltaRule:
    """flash-linear-attention's kernel if it is there and right, or plain torch.

    Args:
        device: "cpu" or "cuda".
        wanted: "fla" or "torch".
        compiled: whether the replaced piece of its backward pass is compiled.
    """
    if device == "cpu" or wanted == "torch":
        return delta_rule.plain_delta_rule
    try:
        worst = max(delta_errors(delta_rule.fla_delta_rule(compiled=False)).values())
        if worst < BOUND:
            print(f"delta rule: flash-linear-attention (largest relative error {worst:.4f})", flush=True)
            return delta_rule.fla_delta_rule(compiled=compiled)
        print(f"delta rule: flash-linear-attention is wrong here (relative error {worst:.4f})", flush=True)
    except Exception as error:  # not installed, or a kernel that does not compile here
        print(f"delta rule: {type(error).__name__}: {str(error)[:500]}", flush=True)
    print("delta rule: plain torch, which is slow", flush=True)
    return delta_rule.plain_delta_rule


def choose_ways(
    device: str, dtype: torch.dtype, eager: bool, rule: str, attention: str | None
) -> tuple[DeltaRule, Attention]:
    """Delta rule and attention; compiles the pieces unless `eager`."""
    if eager or device == "cpu":
        pieces.do_not_compile()
    else:
        pieces.compile_pieces()
    return choose_delta_rule(device, rule, not eager), choose(device, dtype, attention)
