"""FP8 (E4M3) linear layers on CPUs: weights per channel or per tensor, activations per token or per tensor.

Shapes: x [T, K] tokens by inputs; weight [K, N] as vLLM hands it over after loading (a transposed view).

    y[t, n] = x_scale[t] * w_scale[n] * sum_k x_q[t, k] * w_q[k, n] + bias[n]

Every FP8 value is exact in fp32, so are their products; the sum is accumulated in fp32 and rounded once, to the output
dtype, at the end. vLLM's own AMX kernel for per-tensor FP8 leaves activations unquantized; this one quantizes them, as
GPUs do, so that what is measured here does not depend on the processor.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from vllm import _custom_ops as ops
from vllm.model_executor.kernels import linear as registry
from vllm.model_executor.kernels.linear.scaled_mm import FP8ScaledMMLinearKernel
from vllm.platforms import PlatformEnum, current_platform

from ocria_cpu_kernels.weights import fp32_copy


def scaled_product(
    x_q: torch.Tensor,
    weight_NK: torch.Tensor,
    x_scale: torch.Tensor,
    w_scale: torch.Tensor,
    bias: torch.Tensor | None,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    """x_q [T, K] FP8, weight [N, K] FP8 or its fp32 copy, x_scale one or [T, 1], w_scale one or N -> [T, N]."""
    y = F.linear(x_q.float(), weight_NK.float())
    y *= x_scale.float().reshape(-1, 1)
    y *= w_scale.float().reshape(1, -1)
    if bias is not None:
        y += bias.float()
    return y.to(out_dtype)


class OcriaCpuFp8LinearKernel(FP8ScaledMMLinearKernel):
    """W8A8 FP8 by fp32 products of the FP8 values, from an fp32 copy of the weight made once after loading."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._weight_NK: torch.Tensor | None = None

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> tuple[bool, str | None]:
        return (True, None) if current_platform.is_cpu() else (False, "is for CPUs")

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        scales = (c.weight_quant_key.scale, c.activation_quant_key.scale)
        if any(scale.group_shape.is_per_group() for scale in scales):
            return False, "takes one scale per tensor, channel or token, no blocks"
        return True, None

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        weight_KN = getattr(layer, self.layer_param_names[0])
        self._weight_NK = fp32_copy(weight_KN.t())

    def apply_scaled_mm(
        self,
        *,
        A: torch.Tensor,
        B: torch.Tensor,
        out_dtype: torch.dtype,
        As: torch.Tensor,
        Bs: torch.Tensor,
        bias: torch.Tensor | None,
        output_shape: list[int],
    ) -> torch.Tensor:
        weight_NK = B.t() if self._weight_NK is None else self._weight_NK
        return scaled_product(A, weight_NK, As, Bs, bias, out_dtype).view(*output_shape)


def quantize_with_scale(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """FP8 of x / scale, saturating: what vLLM's `static_scaled_fp8_quant`, absent on CPUs, does for one scale."""
    limit = torch.finfo(torch.float8_e4m3fn).max
    return (x.float() / scale.float()).clamp(-limit, limit).to(torch.float8_e4m3fn)


def install() -> None:
    kernels = registry._POSSIBLE_FP8_KERNELS[PlatformEnum.CPU]
    if OcriaCpuFp8LinearKernel not in kernels:
        kernels.insert(0, OcriaCpuFp8LinearKernel)
    original = ops.scaled_fp8_quant

    def scaled_fp8_quant(
        input: torch.Tensor,
        scale: torch.Tensor | None = None,
        num_token_padding: int | None = None,
        scale_ub: torch.Tensor | None = None,
        use_per_token_if_dynamic: bool = False,
        output: torch.Tensor | None = None,
        group_shape: tuple[int, int] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if scale is None or scale.numel() != 1 or num_token_padding:
            return original(input, scale, num_token_padding, scale_ub, use_per_token_if_dynamic, output, group_shape)
        quantized = quantize_with_scale(input, scale)
        return (quantized if output is None else output.copy_(quantized)), scale

    ops.scaled_fp8_quant = scaled_fp8_quant
