"""How each weight format lies in a checkpoint, and how its numbers are read back.

One `Layout` per format: which tensors stand beside each other, with which dtypes and shapes, and how far the numbers
read back may be from the source. Formats as compressed-tensors defines them: FP8 stores scales as factors, NVFP4 stores
the global scale as a divisor (the value is code x group scale / global scale).

Shapes: O outputs, I inputs of a Linear. Decoded rows are float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

FLOATS = ("BF16", "F16", "F32")
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)

Shapes = dict[str, tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]]
"""Parameter -> the dtypes and the shapes that are right for it."""


@dataclass(frozen=True)
class Layout:
    """A weight format.

    Attributes:
        name: for people.
        stored: the parameter that holds the codes.
        tensors: (weights arguments, O, I) -> the parameters each Linear must have, besides activation scales.
        decode: (codes [rows, bytes], scales by parameter, first row, weights arguments) -> float32 [rows, I].
        error: the largest relative Frobenius error of one tensor against its source.
        row_error: the same for one output row.
        faint: rows whose norm is less than this share of the largest row's are not judged on their own: a scale that
            is shared with larger rows cannot resolve them.
        gain: how far the fitted factor between tensor and source may be from 1; a scale that is off by more is wrong
            even where the error it makes hides below the rounding error.
    """

    name: str
    stored: str
    tensors: Callable[[Mapping[str, Any], int, int], Shapes]
    decode: Callable[[np.ndarray, Mapping[str, np.ndarray], int, Mapping[str, Any]], np.ndarray]
    error: float
    row_error: float
    gain: float
    faint: float = 1e-2


@cache
def _e4m3() -> np.ndarray:
    """The 256 values of E4M3 (FN: no infinities, 0x7F and 0xFF are NaN), OCP 8-bit floating point specification."""
    import numpy as np

    values = []
    for code in range(128):
        exponent, mantissa = code >> 3, code & 7
        values.append(mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    values[127] = math.nan
    return np.array(values + [-v for v in values], np.float32)


@cache
def _e2m1_pairs() -> np.ndarray:
    """Both values of each of the 256 bytes, the low half first."""
    import numpy as np

    signed = np.array(E2M1 + tuple(-v for v in E2M1), np.float32)
    byte = np.arange(256)
    return np.stack([signed[byte & 15], signed[byte >> 4]], axis=1)


def to_float(raw: np.ndarray, dtype: str) -> np.ndarray:
    """Bytes (last axis) of a floating dtype as float32.

    Raises:
        ValueError: this dtype has no floating reading here.
    """
    import numpy as np

    if dtype == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if dtype == "F8_E4M3":
        return _e4m3().take(raw)
    if dtype in ("F16", "F32", "F64"):
        return raw.view({"F16": np.float16, "F32": np.float32, "F64": np.float64}[dtype]).astype(np.float32)
    raise ValueError(f"{dtype} is no floating dtype this checker reads")


def _channel(weights: Mapping[str, Any], o: int, i: int) -> Shapes:
    return {"weight": (("F8_E4M3",), ((o, i),)), "weight_scale": (FLOATS, ((o, 1),))}


def _tensor(weights: Mapping[str, Any], o: int, i: int) -> Shapes:
    return {"weight": (("F8_E4M3",), ((o, i),)), "weight_scale": (FLOATS, ((1,), ()))}


def _block(weights: Mapping[str, Any], o: int, i: int) -> Shapes:
    rows, columns = weights["block_structure"]
    scale = (-(-o // rows), -(-i // columns))
    return {"weight": (("F8_E4M3",), ((o, i),)), "weight_scale": (FLOATS, (scale,))}


def _nvfp4(weights: Mapping[str, Any], o: int, i: int) -> Shapes:
    return {
        "weight_packed": (("U8",), ((o, i // 2),)),
        "weight_scale": (("F8_E4M3",), ((o, i // 16),)),
        "weight_global_scale": (("F32",), ((1,),)),
    }


def _decode_rows(codes: np.ndarray, scales: Mapping[str, np.ndarray], first: int, _: Mapping[str, Any]) -> np.ndarray:
    values = _e4m3().take(codes)
    scale = scales["weight_scale"].reshape(-1, 1)
    values *= scale if len(scale) == 1 else scale[first : first + len(codes)]
    return values


def _decode_block(
    codes: np.ndarray, scales: Mapping[str, np.ndarray], first: int, weights: Mapping[str, Any]
) -> np.ndarray:
    import numpy as np

    rows, columns = weights["block_structure"]
    block = (first + np.arange(len(codes))) // rows
    scale = scales["weight_scale"][block].repeat(columns, axis=1)[:, : codes.shape[1]]
    return _e4m3().take(codes) * scale


def _decode_nvfp4(codes: np.ndarray, scales: Mapping[str, np.ndarray], first: int, _: Mapping[str, Any]) -> np.ndarray:
    values = _e2m1_pairs()[codes].reshape(len(codes), -1, 16)
    with_global = scales["weight_scale"][first : first + len(codes)] / scales["weight_global_scale"].reshape(())
    values *= with_global[:, :, None]
    return values.reshape(len(codes), -1)


_FP8 = {"error": 0.035, "row_error": 0.07, "gain": 0.01}

LAYOUTS: dict[tuple[str, int, str], Layout] = {
    ("float", 8, "channel"): Layout("FP8 per channel", "weight", _channel, _decode_rows, **_FP8, faint=0.0),
    ("float", 8, "tensor"): Layout("FP8 per tensor", "weight", _tensor, _decode_rows, **_FP8),
    ("float", 8, "block"): Layout("FP8 per block", "weight", _block, _decode_block, **_FP8),
    ("float", 4, "tensor_group"): Layout("NVFP4", "weight_packed", _nvfp4, _decode_nvfp4, 0.13, 0.25, 0.03),
}
"""By type, bits and strategy of a config group's `weights`."""

FORMATS = {"weight": "float-quantized", "weight_packed": "nvfp4-pack-quantized"}
"""The `format` of a config group, by what holds its codes."""


@dataclass(frozen=True)
class Group:
    """One config group that this checker can read."""

    name: str
    layout: Layout
    weights: dict[str, Any]
    activations: dict[str, Any] | None
    targets: list[str]

    @classmethod
    def read(cls, name: str, data: Any, format_: Any) -> Group | str:
        """A config group, or what is wrong with it."""
        weights = data.get("weights") if isinstance(data, dict) else None
        if not isinstance(weights, dict):
            return f"{name} has no weights section"
        targets, activations = data.get("targets"), data.get("input_activations")
        if not isinstance(targets, list) or not targets:
            return f"{name} has no targets"
        key = (str(weights.get("type")), weights.get("num_bits"), str(weights.get("strategy")))
        if key not in LAYOUTS:
            return f"{name}: {key[0]} {key[1]} bits per {key[2]} is no format this checker can prove"
        if problem := _arguments_problem(key[2], weights, activations):
            return f"{name}: {problem}"
        layout = LAYOUTS[key]
        own = data.get("format") or format_
        if own != FORMATS[layout.stored]:
            return f"{name}: format is {own!r}, weights of this kind are {FORMATS[layout.stored]!r}"
        return cls(name, layout, weights, activations, targets)

    def shapes(self, outputs: int, inputs: int) -> Shapes:
        """The parameters that every Linear of this group must have, and no others."""
        shapes = self.layout.tensors(self.weights, outputs, inputs)
        single = ((1,), ())
        if self.activations and self.layout.name == "NVFP4":
            shapes["input_global_scale"] = (("F32",), single)
        elif self.activations and not self.activations.get("dynamic"):
            shapes["input_scale"] = (FLOATS, single)
        return shapes


def _arguments_problem(strategy: str, weights: dict[str, Any], activations: Any) -> str | None:
    if weights.get("dynamic"):
        return "weights cannot be dynamic"
    if not weights.get("symmetric", True):
        return "asymmetric weights are not known here"
    block = weights.get("block_structure")
    if strategy == "block" and not (isinstance(block, list) and len(block) == 2 and min(map(int, block)) > 0):
        return f"block_structure is {block!r}"
    if strategy == "tensor_group" and weights.get("group_size") != 16:
        return f"NVFP4 has groups of 16, not {weights.get('group_size')}"
    if activations is not None and not isinstance(activations, dict):
        return "input_activations is malformed"
    return None
