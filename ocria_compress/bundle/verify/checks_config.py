"""Checks of what the configuration says: unchanged but for quantization, and true of the tensors beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ocria_compress.bundle.verify import names
from ocria_compress.bundle.verify.context import Context
from ocria_compress.bundle.verify.layouts import FORMATS
from ocria_compress.bundle.verify.report import Check, failed, judged, not_run

MAY_DIFFER = frozenset({"quantization_config", "dtype", "torch_dtype", "transformers_version"})
"""Keys of config.json that quantization may add or change, at any depth."""


def config(ctx: Context) -> Check:
    """Every key of the source's configuration is there with its value, and nothing was added but quantization."""
    name = "config"
    if ctx.result.config_problem:
        return failed(name, ctx.result.config_problem)
    if ctx.source is None:
        return not_run(name, ctx.source_problem)
    if ctx.source.config_problem:
        return not_run(name, f"the source's {ctx.source.config_problem}")
    problems = list(_differences(ctx.source.config, ctx.result.config, ""))
    return judged(name, problems, "the source's, but for quantization_config and dtype", "config.json was changed")


def _differences(old: Any, new: Any, where: str) -> Iterator[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if type(old) is not type(new) or old != new:
            yield f"{where} was {old!r}, is {new!r}"
        return
    for key in [*old, *(key for key in new if key not in old)]:
        path = f"{where}.{key}" if where else key
        if key in MAY_DIFFER:
            continue
        if key not in new:
            yield f"{path} is missing"
        elif key not in old:
            yield f"{path} was added: {new[key]!r}"
        else:
            yield from _differences(old[key], new[key], path)


def quantization_config(ctx: Context) -> Check:
    """`quantization_config` is compressed-tensors', complete, and of formats that can be proven here."""
    name, q = "quantization-config", ctx.quantization
    if not q:
        return failed(name, "config.json has no quantization_config: nothing in this folder is quantized")
    problems = [] if q.get("quant_method") == "compressed-tensors" else [f"quant_method is {q.get('quant_method')!r}"]
    if q.get("quantization_status") != "compressed":
        problems.append(f"quantization_status is {q.get('quantization_status')!r}, not 'compressed'")
    groups, wrong = ctx.read_groups
    problems += wrong
    kv = q.get("kv_cache_scheme")
    if not groups and not wrong and not kv:
        problems.append("there are no config groups")
    for group in groups:
        problems += [p for target in group.targets if (p := names.rule_problem(target))]
    ignore = q.get("ignore", [])
    if isinstance(ignore, list):
        problems += [p for rule in ignore if (p := names.rule_problem(rule))]
    else:
        problems.append("ignore is no list")
    formats = {FORMATS[group.layout.stored] for group in groups}
    if len(formats) > 1 and q.get("format") != "mixed-precision":
        problems.append(f"groups have the formats {', '.join(sorted(formats))}, the whole says {q.get('format')!r}")
    problems += _kv_problems(kv)
    what = ", ".join(f"{g.layout.name} ({g.name})" for g in groups) + (", FP8 KV cache" if kv else "")
    return judged(name, problems, what.removeprefix(", "), "quantization_config cannot be used as it is")


def _kv_problems(kv: Any) -> list[str]:
    if kv is None:
        return []
    if not isinstance(kv, dict):
        return ["kv_cache_scheme is malformed"]
    wanted = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}
    return [f"kv_cache_scheme.{k} is {kv.get(k)!r}; vLLM takes {v!r}" for k, v in wanted.items() if kv.get(k) != v]


def scales_or_ignore(ctx: Context) -> Check:
    """By Hugging Face's names: each Linear either has scales or is matched by `ignore`, never both, never neither."""
    problems = []
    for module in ctx.linears:
        scaled, ignored = module in ctx.quantized, any(names.matches(module, r, "Linear") for r in ctx.ignore)
        if scaled and ignored:
            problems.append(f"{module} has scales and is in ignore: it would be loaded as if it had none")
        elif not scaled and not ignored:
            problems.append(f"{module} has no scales and is not in ignore: it would be loaded as if it had some")
    problems += [f"{module} has scales and is no Linear" for module in sorted(set(ctx.quantized) - set(ctx.linears))]
    for name, tensor in ctx.by_name.items():
        module, parameter = names.split(name)
        last = names.split(module)[1]
        if parameter == "weight" and len(tensor.shape) == 2 and last not in names.LINEARS | names.EMBEDDINGS:
            problems.append(f"{module} is a matrix whose kind is not known here")
    if not ctx.quantized and ctx.groups:
        problems.append("not one Linear is quantized")
    right = f"{len(ctx.quantized)} Linears quantized, {len(ctx.linears) - len(ctx.quantized)} in ignore"
    return judged("scales-or-ignore", problems, right, "tensors and ignore disagree")


def vllm_names(ctx: Context) -> Check:
    """By vLLM's names: what vLLM will take as quantized is what is; fused modules are whole; each rule still hits."""
    problems: list[str] = []
    ignore = [mapped for rule in ctx.ignore if (mapped := names.vllm_rule(rule)) is not None]
    targets = {m: g.name for g in ctx.groups for t in g.targets if (m := names.vllm_rule(t)) is not None}
    modules = names.vllm_modules(ctx.linears)
    for module, shards in modules.items():
        problem = _vllm_problem(ctx, module, shards, ignore, targets)
        problems += [problem] if problem else []
    known = {view(m) for m in ctx.modules for view in (names.vllm_module, names.vllm_shard)}
    for rule in ctx.ignore:
        mapped = names.vllm_rule(rule)
        if mapped is None:
            problems.append(f"ignore: vLLM drops {rule}, as any full name under mtp.; write re:^mtp.*")
        elif mapped != "lm_head" and not any(names.matches(m, mapped) for m in known):
            problems.append(f"ignore: {rule} hits nothing by vLLM's names" + (f" ({mapped})" if mapped != rule else ""))
    fused = sum(len(shards) > 1 for shards in modules.values())
    right = f"{len(modules)} modules of vLLM, {fused} of them fused, are taken as they are stored"
    return judged("vllm-names", problems, right, "vLLM would read this folder otherwise than it was written")


def _vllm_problem(
    ctx: Context, module: str, shards: list[str], ignore: list[str], targets: dict[str, str]
) -> str | None:
    scaled = [shard in ctx.quantized for shard in shards]
    if any(scaled) and not all(scaled):
        bare = [s.rsplit(".", 1)[-1] for s, has in zip(shards, scaled, strict=True) if not has]
        return f"{module}: {', '.join(bare)} not quantized, the other shards are; vLLM loads them as one"
    try:
        hits = names.vllm_ignores(module, ignore)
    except names.SplitGroup as error:
        return str(error)
    group, claimed = names.vllm_target(module, targets, module.endswith("lm_head"))
    taken = None if hits else group
    if any(scaled) and hits:
        return f"{module} has scales, and vLLM ignores it by {sorted(hits)[0]}"
    if any(scaled) and taken is None:
        return f"{module} has scales, and no target hits it in vLLM"
    if any(scaled) and len(claimed) > 1:
        return f"{module}: its shards belong to {' and '.join(sorted(claimed))}; vLLM would take {taken} for all"
    if not any(scaled) and taken is not None:
        return f"{module} has no scales, and vLLM takes it as {taken}"
    own = ctx.group_of(shards[0])
    if taken is not None and own is not None and taken != own.name:
        return f"{module} belongs to {own.name}, and vLLM takes it as {taken}"
    return None


def rules(ctx: Context) -> Check:
    """Each entry of `ignore` and each target hits something; each quantized Linear belongs to exactly one group."""
    problems = [
        f"ignore: {rule} hits no module" for rule in ctx.ignore if not _hits(rule, ctx.modules, set(ctx.linears))
    ]
    if len(set(ctx.ignore)) != len(ctx.ignore):
        problems.append("ignore has entries that stand there twice")
    quantized = set(ctx.quantized) & set(ctx.linears)
    for group in ctx.groups:
        for target in group.targets:
            if not _hits(target, quantized, quantized):
                problems.append(f"{group.name}: target {target} hits no quantized Linear")
    for module in sorted(quantized):
        claim = [g.name for g in ctx.groups if any(names.matches(module, t, "Linear") for t in g.targets)]
        if len(claim) != 1:
            problems.append(f"{module} is a target of {' and '.join(claim) if claim else 'no config group'}")
    targets = sum(len(group.targets) for group in ctx.groups)
    right = f"{len(ctx.ignore)} ignore entries and {targets} targets all hit"
    return judged("rules", problems, right, "rules do not do what they say")


def _hits(rule: str, modules: set[str], linears: set[str]) -> bool:
    return any(names.matches(module, rule) for module in modules) or (rule == "Linear" and bool(linears))


def mtp(ctx: Context) -> Check:
    """The configuration's count of MTP layers is what the tensors have, and vLLM is told to leave them alone."""
    tensors = [name for name in ctx.by_name if names.is_mtp(name)]
    layers = {int(n.split(".")[2]) for n in tensors if n.startswith("mtp.layers.") and n.split(".")[2].isdigit()}
    said = ctx.text_config.get("mtp_num_hidden_layers", ctx.result.config.get("mtp_num_hidden_layers")) or 0
    problems = []
    if layers != set(range(said)):
        problems.append(f"config.json says {said} MTP layers, the tensors have {sorted(layers) or 'none'}")
    if tensors and not said:
        problems.append(f"there are {len(tensors)} mtp tensors, and config.json says there is no MTP block")
    if said and "mtp.fc.weight" not in ctx.by_name and "mtp.fc" not in ctx.quantized:
        problems.append("mtp.fc.weight is missing")
    bare = [m for m in ctx.linears if names.is_mtp(m) and m not in ctx.quantized]
    rules_ = [rule for rule in ctx.ignore if rule.startswith("re:")]
    loose = [m for m in bare if not any(names.matches(m, rule) for rule in rules_)]
    if loose:
        problems.append(f"{len(loose)} unquantized mtp Linears are not hit by an expression in ignore: write re:^mtp.*")
    right = f"{said} MTP layers, {len(tensors)} tensors" if said else "no MTP block, and none is claimed"
    return judged("mtp", problems, right, "MTP weights and configuration disagree")


CHECKS = (config, quantization_config, scales_or_ignore, vllm_names, rules, mtp)
