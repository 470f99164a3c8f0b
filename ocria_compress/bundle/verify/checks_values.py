"""Checks of every byte: kept tensors against the source's, quantized ones read back and held against the source.

Both stream: a few megabytes of each tensor at a time, several tensors at once (numpy leaves Python's lock while it
copies and computes), so that the whole takes as long as the disk and no more memory than some hundred megabytes.

Symbols: S the source's weights, D the numbers read back. Relative Frobenius error |D - S| / |S|; gain <D, S> / <S, S>,
the factor by which D is S on the whole, 1 for unbiased rounding.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocria_compress.bundle.verify import names
from ocria_compress.bundle.verify.context import Context
from ocria_compress.bundle.verify.layouts import Group, to_float
from ocria_compress.bundle.verify.reader import CHUNK, Folder, Tensor
from ocria_compress.bundle.verify.report import Check, failed, judged, not_run, passed

if TYPE_CHECKING:
    import numpy as np

_ELEMENTS = 1 << 20
"""Weights read back at a time by one thread."""

_WORST = 5


def _threads() -> int:
    return max(1, min(4, os.cpu_count() or 1))


def kept_tensors(ctx: Context) -> Check:
    """Every tensor that is not quantized is, byte for byte, the source's; and has no NaN or infinity."""
    name = "kept-tensors"
    kept = {n: t for n, t in ctx.by_name.items() if _is_kept(ctx, n)}
    pairs = [(n, t, *ctx.origin[n]) for n, t in kept.items() if n in ctx.origin]
    total = sum(tensor.nbytes for tensor in kept.values())
    with ctx.progress("comparing kept tensors", total) as advance:
        with ThreadPoolExecutor(_threads()) as pool:
            found = pool.map(lambda n: _kept_problem(ctx, n, kept[n], advance), kept)
            problems = [f"{n}: {problem}" for n, problem in zip(kept, found, strict=True) if problem]
    if problems:
        return failed(name, f"{len(problems)} of {len(kept)} kept tensors are not the source's", problems)
    if ctx.source is None:
        return not_run(name, ctx.source_problem)
    unknown = len(kept) - len(pairs)
    rest = f"; {unknown} more have no original here" if unknown else ""
    return passed(name, f"{len(pairs)} tensors, {total:,} bytes, equal to the source's{rest}")


def _is_kept(ctx: Context, name: str) -> bool:
    module, parameter = names.split(name)
    if parameter in names.QUANTIZED or parameter in names.KV_SCALES:
        return False
    return not (parameter == "weight" and module in ctx.quantized)


def _kept_problem(ctx: Context, name: str, tensor: Tensor, advance: Callable[[int], None]) -> str | None:
    folder, original = ctx.origin.get(name, (None, None))
    if original is not None and (original.dtype, original.shape) != (tensor.dtype, tensor.shape):
        return f"{tensor.dtype} {list(tensor.shape)}, the source has {original.dtype} {list(original.shape)}"
    try:
        for begin in range(0, tensor.nbytes, CHUNK):
            size = min(CHUNK, tensor.nbytes - begin)
            ours = ctx.result.pread(tensor, begin, size)
            if folder is not None and original is not None:
                differ = ours != folder.pread(original, begin, size)
                if differ.any():
                    return f"differs from the source from byte {begin + int(differ.argmax()):,} on"
            if _not_finite(ours, tensor.dtype):
                return "has NaN or infinite values"
            advance(size)
    except OSError as error:
        return str(error)
    return None


def _not_finite(raw: np.ndarray, dtype: str) -> bool:
    """By the exponent's bits: all set means NaN or infinity."""
    import numpy as np

    masks = {"BF16": (np.uint16, 0x7F80), "F16": (np.uint16, 0x7C00), "F32": (np.uint32, 0x7F800000)}
    if dtype not in masks:
        return False
    kind, mask = masks[dtype]
    return bool(((raw.view(kind) & kind(mask)) == mask).any())


@dataclass
class Fit:
    """How well one quantized tensor gives back its source.

    Attributes:
        error: relative Frobenius error.
        row_error: the same of the worst output row.
        row: which that is.
        gain: <D, S> / <S, S>.
        problem: why it could not be measured, or what is out of bounds.
    """

    module: str
    layout: str
    error: float = math.nan
    row_error: float = math.nan
    row: int = -1
    gain: float = math.nan
    problem: str | None = None

    def __str__(self) -> str:
        if math.isnan(self.error):
            return f"{self.module}: {self.problem}"
        figures = f"{self.module} ({self.layout}): relative error {self.error:.4f}, gain {self.gain:.4f}"
        figures += f", worst row {self.row} {self.row_error:.4f}"
        return f"{figures}: {self.problem}" if self.problem else figures


def dequantized(ctx: Context) -> Check:
    """Weights read back by this checker's own arithmetic are the source's within the format's bounds."""
    name = "dequantized"
    if ctx.source is None:
        return not_run(name, ctx.source_problem)
    work = [(m, g) for m in ctx.quantized if m in ctx.linears and (g := ctx.group_of(m)) is not None]
    lost = [f"{m} cannot be read back: no one config group is its" for m in ctx.quantized if m not in dict(work)]
    if not work:
        return judged(name, lost, "nothing is quantized", "quantized tensors cannot be read back")
    total = sum(math.prod(ctx.linears[module]) for module, _ in work)
    with ctx.progress("reading quantized tensors back", total) as advance:
        with ThreadPoolExecutor(_threads()) as pool:
            fits = list(pool.map(lambda pair: _fit(ctx, pair[0], pair[1], advance), work))
    fits.sort(key=lambda fit: (fit.problem is not None, _or(fit.error, 1e9)), reverse=True)
    data = {"errors": {fit.module: _or(fit.error, None) for fit in fits}}
    bad = [str(fit) for fit in fits if fit.problem]
    if bad or lost:
        return failed(name, f"{len(bad) + len(lost)} quantized tensors do not give back the source", bad + lost, **data)
    worst = fits[0]
    detail = f"{len(fits)} tensors; relative error up to {worst.error:.4f}"
    detail += f" (bound {_bound(ctx, dict(work)[worst.module]):.3g})"
    return passed(name, detail, map(str, fits[:_WORST]), **data)


def _or(value: float, other: float | None) -> float | None:
    return value if math.isfinite(value) else other


def _bound(ctx: Context, group: Group) -> float:
    """The format's bound, or the recipe's where that is tighter."""
    found: object = ctx.manifest
    for key in ("recipe", "gates", "weight_error", "max"):
        found = found.get(key) if isinstance(found, dict) else None
    own = group.layout.error
    return min(own, found) if isinstance(found, (int, float)) and not isinstance(found, bool) else own


def _fit(ctx: Context, module: str, group: Group, advance: Callable[[int], None]) -> Fit:
    fit = Fit(module, group.layout.name)
    codes = ctx.by_name.get(f"{module}.{group.layout.stored}")
    folder, source = ctx.origin.get(f"{module}.weight", (None, None))
    size = ctx.linears[module]
    if codes is None or folder is None or source is None:
        fit.problem = "its codes are missing" if codes is None else "the source has no such tensor"
        return fit
    parts = {p: ctx.by_name.get(f"{module}.{p}") for p in group.layout.tensors(group.weights, *size)}
    for parameter, (dtypes, shapes) in group.layout.tensors(group.weights, *size).items():
        tensor = parts[parameter]
        if tensor is None or tensor.dtype not in dtypes or tensor.shape not in shapes:
            fit.problem = f"cannot be read back: {parameter} is {tensor or 'missing'}"
            return fit
    try:
        scales = {p: t for p, t in parts.items() if t and t is not codes}
        _measure(ctx.result, codes, scales, folder, source, group, fit, advance)
    except (OSError, ValueError) as error:
        fit.problem = f"cannot be read back: {error}"
        return fit
    fit.problem = _out_of_bounds(fit, group, _bound(ctx, group))
    return fit


def _measure(
    result: Folder,
    codes: Tensor,
    scales: dict[str, Tensor],
    folder: Folder,
    source: Tensor,
    group: Group,
    fit: Fit,
    advance: Callable[[int], None],
) -> None:
    """Fills in a fit, some rows at a time."""
    import numpy as np

    rows, width = source.shape
    values = {p: to_float(result.whole(t), t.dtype).reshape(t.shape) for p, t in scales.items()}
    step = max(1, _ELEMENTS // max(1, width))
    off, whole = np.zeros(rows), np.zeros(rows)
    product = 0.0
    for first in range(0, rows, step):
        last = min(rows, first + step)
        s = to_float(folder.rows(source, first, last), source.dtype)
        with np.errstate(all="ignore"):  # broken scales may divide by zero; what comes out is judged below
            d = group.layout.decode(result.rows(codes, first, last), values, first, group.weights)
            product += float(np.einsum("ij,ij->i", d, s).sum(dtype=np.float64))
            d -= s
            off[first:last] = np.einsum("ij,ij->i", d, d)
        whole[first:last] = np.einsum("ij,ij->i", s, s)
        advance((last - first) * width)
    off = np.where(np.isfinite(off), off, np.inf)
    right = float(whole.sum())
    fit.error = _relative(float(off.sum()), right)
    fit.gain = product / right if right > 0 else 1.0
    judged_rows = np.flatnonzero(whole >= group.layout.faint**2 * whole.max(initial=0.0))
    if len(judged_rows):
        with np.errstate(all="ignore"):
            ratio = np.where(off == 0, 0.0, off / whole)[judged_rows]
        worst = int(np.nanargmax(ratio))
        fit.row, fit.row_error = int(judged_rows[worst]), math.sqrt(float(ratio[worst]))


def _relative(wrong: float, right: float) -> float:
    """sqrt(wrong / right); 0 / 0 is right."""
    if wrong == 0:
        return 0.0
    return math.sqrt(wrong / right) if right > 0 else math.inf


def _out_of_bounds(fit: Fit, group: Group, bound: float) -> str | None:
    layout = group.layout
    if not fit.error <= bound:
        hint = "; a scale may have been stored as its reciprocal" if not fit.error <= 0.9 else ""
        return f"over {bound:.3g}{hint}"
    if not abs(fit.gain - 1) <= layout.gain:
        return f"on the whole {fit.gain:.4f} times the source: a scale is off"
    if not fit.row_error <= layout.row_error:
        return f"row {fit.row} is off by more than {layout.row_error:.3g}"
    return None


CHECKS = (kept_tensors, dequantized)
