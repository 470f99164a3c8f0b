"""NVFP4 linear layers on CPUs, with FP4 activations (W4A4) or without (W4A16).

FP4 (E2M1) values in groups of 16 along K, an FP8 (E4M3) scale for each group, one fp32 global scale. Weights are
dequantized once, after loading, to bfloat16, as vLLM's emulation does at every call. Activations are quantized and
dequantized at every call by the same arithmetic as vLLM's emulation (a test holds them equal), without its indexing by
masks, which is what makes that slow. The bfloat16 operands are multiplied in fp32, where their products are exact, and
the sum is rounded once, to the output dtype.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from vllm.logger import init_logger
from vllm.model_executor.kernels.linear.nvfp4.base import NvFp4LinearKernel, NvFp4LinearLayerConfig
from vllm.model_executor.layers.quantization.compressed_tensors.schemes import compressed_tensors_w4a4_nvfp4
from vllm.model_executor.layers.quantization.utils.nvfp4_emulation_utils import dequantize_to_dtype

from ocria_cpu_kernels.weights import fp32_copy

GROUP = 16
FP4_MAX = 6.0
FP8_MAX = 448.0

logger = init_logger(f"vllm.{__name__}")


def round_to_fp4(x: torch.Tensor) -> torch.Tensor:
    """The nearest of 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives, ties to the even code, for |x| <= 6."""
    a = x.abs()
    rounded = torch.where(a < 2, (a * 2).round() / 2, torch.where(a < 4, a.round(), (a / 2).round() * 2))
    return rounded * x.sign()


def quantize_dequantize(x_TK: torch.Tensor, global_scale: torch.Tensor) -> torch.Tensor:
    """x as FP4 with an FP8 scale for each group of 16 keeps it; a group whose scale rounds to zero becomes zero."""
    groups = x_TK.float().unflatten(-1, (-1, GROUP))
    largest = groups.abs().amax(-1, keepdim=True)
    scale = (global_scale * (largest * (1 / FP4_MAX))).clamp(-FP8_MAX, FP8_MAX)
    scale = scale.to(torch.float8_e4m3fn).float()
    to_fp4 = _reciprocal(scale * _reciprocal(global_scale))
    codes = round_to_fp4((groups * to_fp4).clamp(-FP4_MAX, FP4_MAX))
    return (codes * (scale / global_scale)).flatten(-2).to(x_TK.dtype)


def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    """1 / x, and next to nothing for zero, as vLLM's emulation has it."""
    return 1.0 / (x + (x == 0) * 1e8)


class OcriaCpuNvFp4LinearKernel(NvFp4LinearKernel):
    """W4A4: quantized activations, weights dequantized once."""

    quantize_activations = True

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> tuple[bool, str | None]:
        return True, None

    @classmethod
    def can_implement(cls, config: NvFp4LinearLayerConfig) -> tuple[bool, str | None]:
        return True, None

    def process_weights_after_loading(self, layer: Any) -> None:
        weight_NK = dequantize_to_dtype(
            layer.weight.data.view(torch.uint8),
            layer.weight_scale.data,
            layer.weight_global_scale.data,
            torch.bfloat16,
            GROUP,
            swizzle=False,
        )
        copy = fp32_copy(weight_NK)
        self._weight_NK = weight_NK if copy is None else copy

    def apply_weights(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if self.quantize_activations:
            x = quantize_dequantize(x, layer.input_global_scale_inv)
        y = F.linear(x.float(), self._weight_NK.float(), None if bias is None else bias.float())
        return y.to(x.dtype)


class OcriaCpuNvFp4A16LinearKernel(OcriaCpuNvFp4LinearKernel):
    """W4A16: activations as they are."""

    quantize_activations = False


def choose(use_a16: bool = False) -> NvFp4LinearKernel:
    """In place of vLLM's chooser, which knows no NVFP4 kernel for CPUs."""
    kernel = OcriaCpuNvFp4A16LinearKernel if use_a16 else OcriaCpuNvFp4LinearKernel
    logger.info_once("Using %s for NVFP4 GEMM", kernel.__name__)
    return kernel(NvFp4LinearLayerConfig())


def install() -> None:
    compressed_tensors_w4a4_nvfp4.init_nvfp4_linear_kernel = choose
