"""FP8 E4M3 weights with one scale per output channel: compressed-tensors' arithmetic, applied row by row.

Rows are independent, so a tensor of any size is quantized in slices. Scales come from compressed-tensors'
`calculate_qparams`; the rounding is its `quantize` without two needless casts, which take most of its time on a CPU.
The two are compared bit for bit on the first rows of every tensor while it is being quantized.

Shape suffixes: O output channels (rows), I input channels.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ocria_compress.errors import OcriaError

if TYPE_CHECKING:
    from torch import Tensor

_CHECKED_ROWS = 4


@functools.cache
def weight_args() -> Any:
    """compressed-tensors' `QuantizationArgs` for the weights of its FP8_DYNAMIC preset."""
    from compressed_tensors.quantization import preset_name_to_scheme

    return preset_name_to_scheme("FP8_DYNAMIC", ["Linear"]).weights


def quantize_rows(weight_OI: Tensor, name: str, *, check: bool) -> tuple[Tensor, Tensor]:
    """Quantizes rows of a weight.

    Args:
        weight_OI: rows of a Linear's weight, BF16, F16 or F32.
        name: the tensor's name, for errors.
        check: whether to compare the first rows with compressed-tensors' own function.

    Returns:
        The rows as E4M3 [O, I], and their scales [O, 1] in the weight's dtype; weight ~ rows * scales.

    Raises:
        OcriaError: a weight is NaN or infinite, or the two roundings differ.
    """
    import torch
    from compressed_tensors.quantization.utils import calculate_qparams

    peak_O1 = largest_magnitude(weight_OI)
    scale_O1, _ = calculate_qparams(-peak_O1, peak_O1, weight_args())  # symmetric: only the larger of the two counts
    if not torch.isfinite(scale_O1).all():
        raise not_finite(name)
    rows_OI = weight_OI / scale_O1
    if _may_exceed(scale_O1):
        limit = torch.finfo(torch.float8_e4m3fn).max
        rows_OI.clamp_(-limit, limit)
    rows_OI = rows_OI.to(torch.float8_e4m3fn)
    if check:
        _compare(weight_OI[:_CHECKED_ROWS], scale_O1[:_CHECKED_ROWS], rows_OI[:_CHECKED_ROWS], name)
    return rows_OI, scale_O1


def largest_magnitude(rows_OI: Tensor) -> Tensor:
    """The largest magnitude of each row [O, 1]; NaN or infinite where the row holds such a value.

    16-bit floats without their sign bit are in the order of their bits, infinity and NaN last, and integers are
    compared twice as fast.
    """
    import torch

    if rows_OI.dtype.itemsize == 2:
        return (rows_OI.view(torch.int16) & 0x7FFF).amax(-1, keepdim=True).view(rows_OI.dtype)
    return rows_OI.abs().amax(-1, keepdim=True)


def _may_exceed(scale_O1: Tensor) -> bool:
    """Whether a quotient can pass 464, where a cast to E4M3 gives NaN instead of 448.

    A row's largest quotient is 448 but for the rounding of its scale: at most one part in 256 for a normal number, but
    anything for a subnormal one.
    """
    import torch

    return bool(scale_O1.min() < 2 * torch.finfo(scale_O1.dtype).tiny)


def _compare(weight_OI: Tensor, scale_O1: Tensor, rows_OI: Tensor, name: str) -> None:
    import torch
    from compressed_tensors.quantization.lifecycle.forward import quantize

    theirs_OI = quantize(weight_OI, scale_O1, None, weight_args(), dtype=torch.float8_e4m3fn)
    if not torch.equal(theirs_OI.view(torch.uint8), rows_OI.view(torch.uint8)):
        raise OcriaError(
            "The FP8 rounding differs from compressed-tensors' own.",
            where=name,
            fix="this build of torch is not one this version was proven with; see `ocria-compress doctor`",
        )


def not_finite(name: str) -> OcriaError:
    """The error for a weight with NaN or infinity in it."""
    return OcriaError(
        f"'{name}' holds NaN or infinite values.",
        where=name,
        fix="the model is damaged, or its training diverged: nothing sound can be made of it",
    )
