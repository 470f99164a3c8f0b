"""The plan: what a recipe will do to a model, tensor by tensor, computed from headers alone.

`plan`, `quantize --dry-run` and `quantize` share this code, so what is printed is what is done. Nothing here
imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ocria_compress.errors import OcriaError, nearest
from ocria_compress.model.anatomy import PARTS, is_mtp, vllm_name
from ocria_compress.model.source import Source
from ocria_compress.model.writer import OutTensor
from ocria_compress.quantize.schemes import FORMATS, FP8_DYNAMIC, KV_FP8, SIDE_MULTIPLE, kv_tensors, linear_tensors
from ocria_compress.recipes import QUANTIZABLE, KeepRule, PartRule, Recipe

QUANTIZED_DTYPES = ("BF16", "F16", "F32")


@dataclass(frozen=True)
class TensorPlan:
    """What happens to one tensor of the source."""

    name: str
    part: str
    scheme: str
    shard: str
    outputs: tuple[OutTensor, ...]
    """What it becomes; scales that calibration adds (`k_scale`, `v_scale`) come with the projection they belong to."""


@dataclass(frozen=True)
class RuleHits:
    """What one rule of the recipe hit."""

    rule: str
    hits: int
    nbytes: int
    reason: str = ""


@dataclass
class Plan:
    """Everything that `quantize` will write."""

    recipe: Recipe
    source: Source
    tensors: list[TensorPlan]
    rules: list[RuleHits]
    ignore: list[str]
    targets: list[str]
    kv_layers: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def shards(self) -> dict[str, list[TensorPlan]]:
        """Tensors by output file."""
        found: dict[str, list[TensorPlan]] = {}
        for tensor in self.tensors:
            found.setdefault(tensor.shard, []).append(tensor)
        return found

    @property
    def bytes_before(self) -> int:
        return sum(self.source.tensors[t.name].nbytes for t in self.tensors)

    @property
    def bytes_after(self) -> int:
        return sum(out.nbytes for t in self.tensors for out in t.outputs)

    @property
    def quantized(self) -> list[TensorPlan]:
        return [t for t in self.tensors if t.scheme != "keep"]

    def quantization_config(self) -> dict:
        """The `quantization_config` of the result's config.json, in compressed-tensors' form; {} if nothing is done."""
        if not self.quantized and not self.kv_layers:
            return {}
        schemes = {t.scheme for t in self.quantized}
        groups = {"group_0": FP8_DYNAMIC | {"targets": self.targets}} if "fp8" in schemes else {}
        return {
            "config_groups": groups,
            "format": FORMATS["fp8"],
            "global_compression_ratio": None,
            "ignore": self.ignore,
            "kv_cache_scheme": dict(KV_FP8) if self.kv_layers else None,
            "quant_method": "compressed-tensors",
            "quantization_status": "compressed",
        }


def make_plan(source: Source, recipe: Recipe) -> Plan:
    """Applies a recipe's rules to a model's table of names.

    Raises:
        OcriaError: a rule without a hit, half of a fused group, a shape or dtype that the scheme cannot have.
    """
    schemes, rules = _apply_parts(source, recipe)
    rules += _apply_keeps(source, recipe, schemes)
    _refuse_split_groups(source, schemes)
    _refuse_bad_shapes(source, schemes)
    if all(scheme == "keep" for scheme in schemes.values()):
        raise OcriaError(
            "The recipe quantizes no weight: the result would be as large as the source.",
            where=f"recipe {recipe.name}",
            fix="give at least one part a scheme other than keep",
        )
    kv_layers = source.anatomy.full_attention_layers if recipe.kv_cache else []
    plan = Plan(
        recipe=recipe,
        source=source,
        tensors=_tensor_plans(source, schemes, bool(kv_layers)),
        rules=rules,
        ignore=_ignore(source, schemes),
        targets=_targets(schemes),
        kv_layers=kv_layers,
        warnings=_warnings(source, schemes),
    )
    _check_names(source, plan, schemes)
    return plan


def _apply_parts(source: Source, recipe: Recipe) -> tuple[dict[str, str], list[RuleHits]]:
    schemes = dict.fromkeys(source.anatomy.linears, "keep")
    rules = []
    for part, rule in recipe.part.items():
        hits = _part_hits(source, part, rule)
        if not hits:
            raise _no_hit(source, f"part.{part}", part, rule)
        for module in hits:
            if module in schemes:  # a whole part that is kept has norms and tables as well
                schemes[module] = rule.scheme
        text = f"part.{part}: {rule.scheme}" + (f" ({', '.join(rule.modules)})" if rule.modules else "")
        rules.append(RuleHits(text, len(hits), _bytes(source, hits)))
    return schemes, rules


def _part_hits(source: Source, part: str, rule: PartRule) -> list[str]:
    if rule.scheme == "keep" and not rule.modules:
        return [t.module for t in source.anatomy.tensors.values() if t.part == part and t.name.endswith(".weight")]
    leaves = rule.modules or QUANTIZABLE[part]
    linears = source.anatomy.linears
    hits = [m for m, t in linears.items() if t.part == part and m.rpartition(".")[2] in leaves]
    found = {m.rpartition(".")[2] for m in hits}
    if rule.modules and hits and (missing := [leaf for leaf in rule.modules if leaf not in found]):
        raise _no_hit(source, f"part.{part}.modules: {missing[0]}", part, rule)
    return hits


def _no_hit(source: Source, rule: str, part: str, found: PartRule) -> OcriaError:
    if part == "lm_head" and source.anatomy.tied:
        why, fix = "this model's lm_head is its embedding table (tie_word_embeddings)", "leave the rule out"
    elif part == "mtp":
        why, fix = "this model has no multi-token-prediction layer", "leave the rule out"
    else:
        leaves = sorted({m.rpartition(".")[2] for m, t in source.anatomy.linears.items() if t.part == part})
        why = f"this model's {part} has the modules {', '.join(leaves) or 'none'}"
        fix = nearest((found.modules or [""])[0], leaves) if leaves else "leave the rule out"
    return OcriaError(f"A rule of the recipe hits nothing: {why}.", where=f"{found.scheme} for {rule}", fix=fix)


def _apply_keeps(source: Source, recipe: Recipe, schemes: dict[str, str]) -> list[RuleHits]:
    rules = []
    for keep in recipe.keep:
        matches = _matcher(keep)
        hits = [m for m in schemes if matches(m) and schemes[m] != "keep"]
        if not hits:
            raise _keep_without_hit(keep, [m for m in schemes if matches(m)], list(schemes))
        for module in hits:
            schemes[module] = "keep"
        rules.append(RuleHits(f"keep: {keep.match}", len(hits), _bytes(source, hits), keep.reason))
    return rules


def _matcher(keep: KeepRule) -> Callable[[str], bool]:
    if keep.match.startswith("re:"):
        pattern = re.compile(keep.match[3:])
        return lambda module: bool(pattern.match(module))
    return lambda module: module == keep.match


def _keep_without_hit(keep: KeepRule, kept: list[str], modules: list[str]) -> OcriaError:
    if kept:
        what = f"A keep rule changes nothing: '{kept[0]}' ({len(kept)} modules hit) is kept already."
        return OcriaError(what, where=f"keep: {keep.match}", fix="leave the rule out")
    if keep.match.startswith("re:"):
        if anywhere := [m for m in modules if re.search(keep.match[3:], m)]:
            fix = f"the expression must match from the start of a name such as '{anywhere[0]}': begin it with .*"
        else:
            fix = f"names look like '{modules[0]}'"
    else:
        fix = nearest(keep.match, modules)
        fix = fix if fix.startswith("did") else f"names look like '{modules[0]}'"
    return OcriaError("A keep rule hits no module.", where=f"keep: {keep.match}", fix=fix)


def _refuse_split_groups(source: Source, schemes: dict[str, str]) -> None:
    for group in source.anatomy.fused_groups:
        if is_mtp(group.name):
            continue
        by_scheme: dict[str, str] = {}
        for member in group.members:
            by_scheme.setdefault(schemes[member], member)
        if len(by_scheme) > 1:
            (one, first), (two, second) = list(by_scheme.items())[:2]
            raise OcriaError(
                f"The recipe splits a group that vLLM loads as one matrix ({group.name.rpartition('.')[2]}): "
                f"'{first}' is {one}, '{second}' is {two}.",
                where=group.name,
                fix="give all members one scheme: " + ", ".join(m.rpartition(".")[2] for m in group.members),
            )


def _refuse_bad_shapes(source: Source, schemes: dict[str, str]) -> None:
    for module, scheme in schemes.items():
        if scheme == "keep":
            continue
        stored, step = source.tensors[f"{module}.weight"], SIDE_MULTIPLE[scheme]
        if any(side % step for side in stored.shape):
            raise OcriaError(
                f"'{module}' is {list(stored.shape)}: {scheme} needs both sides to be multiples of {step}.",
                where="the recipe's rules",
                fix=f"add  keep: - {{match: {module}, reason: shape}}  (and the rest of its fused group)",
            )
        if stored.dtype not in QUANTIZED_DTYPES:
            raise OcriaError(
                f"'{module}.weight' is stored as {stored.dtype}; only {', '.join(QUANTIZED_DTYPES)} can be quantized.",
                where=str(stored.path),
                fix="start from the unquantized checkpoint",
            )


def _tensor_plans(source: Source, schemes: dict[str, str], kv: bool) -> list[TensorPlan]:
    shards = [t.path.name for n, t in source.tensors.items() if n not in source.taken_from_base]
    last, plans = shards[-1], []
    for name, stored in source.tensors.items():
        if name in source.duplicates:
            continue
        info = source.anatomy.tensors[name]
        scheme = schemes.get(info.module, "keep") if info.kind == "linear" else "keep"
        outputs = linear_tensors(name, stored.dtype, stored.shape, scheme)
        if kv and info.part == "attention" and name.endswith(".self_attn.k_proj.weight"):
            outputs += kv_tensors(info.module.rpartition(".")[0], stored.dtype)
        shard = last if name in source.taken_from_base else stored.path.name
        plans.append(TensorPlan(name, info.part, scheme, shard, tuple(outputs)))
    return plans


def _ignore(source: Source, schemes: dict[str, str]) -> list[str]:
    """Every Linear that is not quantized, by name; the MTP block and lm_head by expressions that hold under
    vLLM's names too."""
    ignore = [m for m, scheme in schemes.items() if scheme == "keep" and not is_mtp(m) and m != "lm_head"]
    if schemes.get("lm_head", "keep") == "keep":
        ignore.append("re:.*lm_head$")
    if source.anatomy.mtp_layers:
        ignore.append("re:^mtp.*")
    return ignore


def _targets(schemes: dict[str, str]) -> list[str]:
    """One expression per kind of module that is quantized; exceptions among them are in `ignore`."""
    leaves: dict[str, set[str]] = {}
    for module, scheme in schemes.items():
        if scheme != "keep":
            owner, _, leaf = module.rpartition(".")
            leaves.setdefault(owner.rpartition(".")[2], set()).add(leaf)
    return [
        rf"re:.*\.{owner}\.({'|'.join(sorted(names))})$" if owner else f"re:.*{next(iter(names))}$"
        for owner, names in sorted(leaves.items())
    ]


def _check_names(source: Source, plan: Plan, schemes: dict[str, str]) -> None:
    """Each Linear is either a target or ignored, never both or neither, by our names and by vLLM's.

    This cannot fail unless the two lists above and the table of names fall out of step; then nothing may be written.
    """
    for module, scheme in schemes.items():
        for name in {module, vllm_name(module)}:
            ignored = any(_entry_hits(_as_vllm(e) if name != module else e, name) for e in plan.ignore)
            target = any(_entry_hits(e, name) for e in plan.targets)
            quantized = target and not ignored
            if quantized != (scheme != "keep"):
                raise OcriaError(
                    f"The saved names would not say what was done to '{name}' ({scheme}).", where="targets and ignore"
                )


def _as_vllm(entry: str) -> str:
    return entry if entry.startswith("re:") else vllm_name(entry)


def _entry_hits(entry: str, name: str) -> bool:
    return bool(re.match(entry[3:], name)) if entry.startswith("re:") else entry == name


def _warnings(source: Source, schemes: dict[str, str]) -> list[str]:
    warnings = list(source.notes)
    if schemes.get("lm_head", "keep") != "keep":
        warnings.append(
            "lm_head is quantized and a DFlash2 draft reads it: vLLM 0.32 can do that, older vLLM and SGLang crash"
        )
    for name in source.duplicates:
        warnings.append(f"{name} repeats the tied embedding table and is left out, once proven equal")
    if source.renamed:
        warnings.append(
            f"{len(source.renamed)} tensors are renamed to the released models' layout (model.language_model.*)"
        )
    if source.taken_from_base and source.base:
        warnings.append(f"{len(source.taken_from_base)} tensors and files are taken from {source.base.given}")
    return warnings


def _bytes(source: Source, modules: list[str]) -> int:
    return sum(source.tensors[f"{m}.weight"].nbytes for m in modules if f"{m}.weight" in source.tensors)


def part_rows(plan: Plan) -> list[dict]:
    """The plan by part and scheme: tensors, bytes before and after, in the order of the parts."""
    rows: dict[tuple[str, str], dict] = {}
    for tensor in sorted(plan.tensors, key=lambda t: (PARTS.index(t.part), t.scheme == "keep")):
        row = rows.setdefault(
            (tensor.part, tensor.scheme),
            {"part": tensor.part, "scheme": tensor.scheme, "tensors": 0, "bytes_before": 0, "bytes_after": 0},
        )
        row["tensors"] += 1
        row["bytes_before"] += plan.source.tensors[tensor.name].nbytes
        row["bytes_after"] += sum(out.nbytes for out in tensor.outputs)
    return list(rows.values())
