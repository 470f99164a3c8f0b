"""Checks of the tensors by their names, dtypes and shapes, and of the scales' values."""

from __future__ import annotations

import math
from collections import Counter

from ocria_compress.bundle.verify import names
from ocria_compress.bundle.verify.context import Context
from ocria_compress.bundle.verify.layouts import to_float
from ocria_compress.bundle.verify.reader import Folder, Tensor
from ocria_compress.bundle.verify.report import Check, judged, not_run, passed

SMALLEST, LARGEST = 1e-12, 1e12
"""Scales outside are absurd whatever the format: a NVFP4 divisor of a layer of 1e-8 is 2.7e11."""

_LARGEST_FACTOR = 1e3
"""A weight scale that is a factor: 448 times it is the largest weight."""


def tensors(ctx: Context) -> Check:
    """Every tensor of the source is there, under its name or as quantized parameters; nothing else is."""
    name = "tensors"
    if ctx.source is None:
        return not_run(name, ctx.source_problem)
    if ctx.source.problems:
        return not_run(name, f"the source's weight files are not sound: {ctx.source.problems[0]}; get them again")
    present: Counter[str] = Counter()
    extra = []
    for stored in ctx.by_name:
        module, parameter = names.split(stored)
        if parameter in names.KV_SCALES:
            continue
        original = f"{module}.weight" if parameter in names.QUANTIZED else stored
        present[original] += 1
        if original not in ctx.origin:
            extra.append(f"{stored} is in no source")
    missing = [f"{want} is missing" for want in ctx.origin if not present[want] and not _tied_copy(ctx, want)]
    taken = {names.canonical(str(n)) for n in ctx.manifest.get("taken_from_base") or []}
    if ctx.base is None and taken:
        extra = [e for e in extra if e.split(" ")[0] not in taken]
    right = f"all {len(ctx.origin)} tensors of the source are there"
    return judged(name, missing + extra, right, "tensors are missing or come from nowhere")


def _tied_copy(ctx: Context, name: str) -> bool:
    """Whether a tensor of the source is the output head stored a second time, equal to the embedding it is tied to."""
    embedding = ctx.origin.get("model.language_model.embed_tokens.weight")
    if name != "lm_head.weight" or not ctx.tied or embedding is None:
        return False
    folder, head = ctx.origin[name]
    other, table = embedding
    if (head.dtype, head.shape) != (table.dtype, table.shape):
        return False
    pairs = zip(folder.chunks(head), other.chunks(table), strict=True)
    return all(bool((one == two).all()) for one, two in pairs)


def dtypes_shapes(ctx: Context) -> Check:
    """Each quantized Linear has the parameters of its config group, no others, with the right dtypes and shapes."""
    problems = []
    for module in ctx.quantized:
        group, size = ctx.group_of(module), ctx.linears.get(module)
        if group is None or size is None:
            problems.append(f"{module} has scales and no one config group to read them by")
            continue
        wanted = group.shapes(*size)
        there = {p: t for p in ("weight", *names.QUANTIZED) if (t := ctx.by_name.get(f"{module}.{p}"))}
        problems += [f"{module}.{p} is missing ({group.layout.name})" for p in wanted if p not in there]
        for parameter, tensor in there.items():
            if parameter not in wanted:
                problems.append(f"{module}.{parameter} has no place in {group.layout.name}")
                continue
            dtypes, shapes = wanted[parameter]
            if tensor.dtype not in dtypes or tensor.shape not in shapes:
                problems.append(f"{tensor}: should be {' or '.join(dtypes)} {list(shapes[0])}")
    for name, (_, original) in ctx.origin.items():
        kept = ctx.by_name.get(name) if names.split(name)[0] not in ctx.quantized else None
        if kept and (kept.dtype, kept.shape) != (original.dtype, original.shape):
            problems.append(f"{kept}: the source has {original.dtype} {list(original.shape)}")
    right = f"{len(ctx.quantized)} quantized Linears have what their config group asks for"
    return judged("dtypes-shapes", problems, right, "dtypes or shapes are not what the configuration says")


def scales(ctx: Context) -> Check:
    """No scale is zero, negative, infinite, NaN, or of an absurd size."""
    problems, count = [], 0
    for stored, tensor in ctx.by_name.items():
        parameter = names.split(stored)[1]
        if parameter.endswith("_scale") and parameter not in names.KV_SCALES:
            count += 1
            problem = scale_problem(ctx.result, tensor, parameter)
            problems += [f"{stored}: {problem}"] if problem else []
    return judged("scales", problems, f"{count} scale tensors, all finite and positive", "scales cannot be right")


def scale_problem(folder: Folder, tensor: Tensor, parameter: str) -> str | None:
    """What is wrong with the values of one scale tensor."""
    import numpy as np

    try:
        values = to_float(folder.whole(tensor), tensor.dtype)
    except (ValueError, OSError) as error:
        return str(error)
    if values.size == 0:
        return "it is empty"
    for what, bad in (
        ("NaN", np.isnan(values)),
        ("infinite", np.isinf(values)),
        ("zero", values == 0),
        ("negative", values < 0),
    ):
        if count := int(bad.sum()):
            return f"{count} of {values.size} are {what}" if values.size > 1 else f"it is {what}"
    low, high = float(values.min()), float(values.max())
    limit = _LARGEST_FACTOR if parameter in ("weight_scale", *names.KV_SCALES) else LARGEST
    if low < SMALLEST or high > limit:
        return f"values from {low:.3g} to {high:.3g} are absurd"
    return None


def fused_scales(ctx: Context) -> Check:
    """Members of a fused group share their per-tensor scales: vLLM keeps one for all of them."""
    problems, count = [], 0
    for module, shards in names.vllm_modules(ctx.linears).items():
        scaled = [shard for shard in shards if shard in ctx.quantized]
        if len(scaled) < 2:
            continue
        groups = {group.name if (group := ctx.group_of(shard)) else None for shard in scaled}
        if len(groups) > 1:
            problems.append(f"{module}: its shards belong to different config groups")
        for parameter in ("weight_global_scale", "input_global_scale"):
            found = {s: t for s in scaled if (t := ctx.by_name.get(f"{s}.{parameter}"))}
            values = {s: float(to_float(ctx.result.whole(t), t.dtype).max()) for s, t in found.items() if t.nbytes}
            count += bool(values)
            if len(set(values.values())) > 1:
                listed = ", ".join(f"{shard.rsplit('.', 1)[-1]} {value:.6g}" for shard, value in values.items())
                problems.append(f"{module}: {parameter} differs: {listed}")
    right = f"{count} shared global scales are equal" if count else "no format here shares scales"
    return judged("fused-scales", problems, right, "fused groups are not whole: vLLM would mis-scale a shard")


def kv_scales(ctx: Context) -> Check:
    """Two KV scales per full-attention layer if the configuration has a KV scheme, none otherwise, none elsewhere."""
    name = "kv-scales"
    there = {n: t for n, t in ctx.by_name.items() if names.split(n)[1] in names.KV_SCALES}
    if not ctx.quantization.get("kv_cache_scheme"):
        problems = [f"{stored} is there, and kv_cache_scheme is not set: vLLM would not use it" for stored in there]
        return judged(name, problems, "no FP8 KV cache, no KV scales", "KV scales without a KV scheme")
    wanted = {f"model.language_model.layers.{i}.self_attn.{kv}_scale" for i in ctx.full_attention for kv in "kv"}
    problems = [f"{scale} is missing: vLLM would serve at scale 1.0" for scale in sorted(wanted - set(there))]
    problems += [f"{stored} belongs to no full-attention layer" for stored in sorted(set(there) - wanted)]
    values = []
    for stored, tensor in there.items():
        problem = scale_problem(ctx.result, tensor, names.split(stored)[1])
        if math.prod(tensor.shape) != 1:
            problem = problem or f"it has shape {list(tensor.shape)}; vLLM takes one value"
        problems += [f"{stored}: {problem}"] if problem else []
        if problem is None:
            values.append(float(to_float(ctx.result.whole(tensor), tensor.dtype).reshape(())))
    if values and all(value == 1.0 for value in values):
        problems.append("all KV scales are exactly 1.0: no calibration reached them")
    if not problems and not values:
        problems.append("no layer has full attention")
    if problems:
        return judged(name, problems, "", "KV scales are not what the KV scheme needs")
    reach = f"{min(values):.3g} to {max(values):.3g}"
    return passed(name, f"{len(values)} scales on {len(ctx.full_attention)} layers, {reach}")


CHECKS = (tensors, dtypes_shapes, scales, fused_scales, kv_scales)
