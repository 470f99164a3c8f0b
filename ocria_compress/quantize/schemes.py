"""The schemes' saved form: which tensors a Linear becomes, and how the configuration describes it.

The dictionaries are compressed-tensors' own serialization of its presets (a test compares them with the installed
library), written out here so that a plan can be made without importing torch.
"""

from __future__ import annotations

from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.model.writer import OutTensor

PRESETS = {"fp8": "FP8_DYNAMIC"}
"""Our scheme -> compressed-tensors' preset."""

FORMATS = {"fp8": "float-quantized"}

_COMMON: dict[str, Any] = {
    "actorder": None, "block_structure": None, "group_size": None, "num_bits": 8, "observer_kwargs": {},
    "scale_dtype": None, "symmetric": True, "type": "float", "zp_dtype": None,
}  # fmt: skip

FP8_DYNAMIC = {
    "format": "float-quantized",
    "input_activations": _COMMON | {"dynamic": True, "observer": None, "strategy": "token"},
    "output_activations": None,
    "weights": _COMMON | {"dynamic": False, "observer": "memoryless_minmax", "strategy": "channel"},
}

KV_FP8 = _COMMON | {"dynamic": False, "observer": "static_minmax", "strategy": "tensor"}

SIDE_MULTIPLE = {"fp8": 16}
"""Both sides of a Linear must be a multiple of this for the scheme's matrix kernels (`torch._scaled_mm`, CUTLASS)."""


def linear_tensors(weight: str, dtype: str, shape: tuple[int, ...], scheme: str) -> list[OutTensor]:
    """What a Linear's weight becomes under a scheme.

    Args:
        weight: the weight's name, ending in `.weight`.
        dtype: its safetensors dtype; FP8 scales keep it, as compressed-tensors does.
        shape: [out, in].
        scheme: `keep` or `fp8`.
    """
    if scheme == "keep":
        return [OutTensor(weight, dtype, shape)]
    return [OutTensor(weight, "F8_E4M3", shape), OutTensor(f"{weight}_scale", dtype, (shape[0], 1))]


def kv_tensors(attention: str, dtype: str) -> list[OutTensor]:
    """The two scales of an attention module's FP8 KV cache."""
    return [OutTensor(f"{attention}.k_scale", dtype, (1,)), OutTensor(f"{attention}.v_scale", dtype, (1,))]


def torch_dtype(name: str) -> Any:
    """torch's dtype of a safetensors dtype name.

    Raises:
        OcriaError: there is none that this version handles.
    """
    import torch

    known = {
        "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
        "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I64": torch.int64, "I32": torch.int32,
        "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    }  # fmt: skip
    if name not in known:
        raise OcriaError(f"Tensors of dtype {name} are not supported.", where="the model's weights")
    return known[name]
