"""This checker's own view of Qwen3.5's names: Hugging Face's modules, and what vLLM makes of them.

Written from vLLM 0.32's code, not from this package's table of names, so that the two can be held against each other:
the prefixes and fused modules of `models/qwen3_5.py` and `models/qwen3_vl.py`, and the matching of `ignore` and
`targets` in `layers/quantization/compressed_tensors/utils.py` and `layers/quantization/utils/config_utils.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

FUSED: dict[str, list[str]] = {
    "qkv_proj": ["q_proj", "k_proj", "v_proj"],
    "gate_up_proj": ["gate_proj", "up_proj"],
    "qkv": ["qkv"],
    "in_proj_qkvz": ["in_proj_qkv", "in_proj_z"],
    "in_proj_ba": ["in_proj_b", "in_proj_a"],
}
"""vLLM's `packed_modules_mapping` of `Qwen3_5ForConditionalGeneration`, in its order."""

LINEARS = frozenset(
    ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    + ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj")
    + ("qkv", "proj", "linear_fc1", "linear_fc2", "lm_head", "fc")
)
"""Last names of the modules that are `Linear` in transformers."""

EMBEDDINGS = frozenset({"embed_tokens", "pos_embed"})
"""Last names of modules with a matrix that is no Linear's."""

QUANTIZED = ("weight_scale", "weight_packed", "weight_global_scale", "input_scale", "input_global_scale")
KV_SCALES = ("k_scale", "v_scale")

_LAYOUTS = (
    ("language_model.model.", "model.language_model."),
    ("language_model.lm_head.", "lm_head."),
    ("model.lm_head.", "lm_head."),
    ("visual.", "model.visual."),
)
_TO_VLLM = (
    ("model.visual.", "visual."),
    ("lm_head.", "language_model.lm_head."),
    ("model.language_model.", "language_model.model."),
)


def canonical(name: str) -> str:
    """A name in the layout of the released checkpoints, whichever of the known layouts it is in."""
    for old, new in _LAYOUTS:
        if name.startswith(old):
            return new + name[len(old) :]
    return name


def split(tensor: str) -> tuple[str, str]:
    """`a.b.weight_scale` -> (`a.b`, `weight_scale`)."""
    module, _, parameter = tensor.rpartition(".")
    return module, parameter


def is_mtp(name: str) -> bool:
    """Whether a tensor or module belongs to the multi-token-prediction block."""
    return name.startswith("mtp.")


def is_linear(module: str, dimensions: int) -> bool:
    """Whether a module with a weight of that many dimensions is a Linear."""
    return dimensions == 2 and split(module)[1] in LINEARS


def vllm_rule(rule: str) -> str | None:
    """An entry of `ignore` or `targets` as vLLM rewrites it for its own names; None: vLLM drops it.

    Regular expressions and names without a dot are not rewritten; names under `mtp.` are dropped, since the model that
    serves has no such weights.
    """
    if rule.startswith("re:") or "." not in rule:
        return rule
    if rule.startswith("mtp."):
        return None
    for old, new in _TO_VLLM:
        if rule.startswith(old):
            return new + rule[len(old) :]
    return rule


def vllm_shard(module: str) -> str:
    """A module's name by vLLM's prefixes; a member of a fused module keeps its own last name, as rules name it."""
    for old, new in _TO_VLLM:
        if (module + ".").startswith(old):
            return (new + (module + ".")[len(old) :])[:-1]
    return module


def vllm_module(module: str) -> str:
    """The name of the module that holds this Linear's weight in vLLM, fused modules included."""
    module = vllm_shard(module)
    head, last = split(module)
    for fused, members in FUSED.items():
        if last in members and fused != last:
            return f"{head}.{fused}"
    return module


def vllm_modules(modules: Iterable[str]) -> dict[str, list[str]]:
    """vLLM's modules -> the Hugging Face modules whose weights they hold."""
    found: dict[str, list[str]] = {}
    for module in modules:
        found.setdefault(vllm_module(module), []).append(module)
    return found


def matches(name: str, rule: str, class_name: str = "") -> bool:
    """Whether a rule (a full name, a class name, or `re:` and an expression matched from the start) hits a module."""
    if rule.startswith("re:"):
        return re.match(rule[3:], name) is not None
    return rule == name or (bool(class_name) and rule == class_name)


def rule_problem(rule: object) -> str | None:
    """What is wrong with a rule that cannot be used at all."""
    if not isinstance(rule, str) or not rule:
        return f"{rule!r} is not a name"
    if rule.startswith("re:"):
        try:
            re.compile(rule[3:])
        except re.error as error:
            return f"{rule} is no regular expression: {error}"
    return None


class SplitGroup(Exception):
    """vLLM refuses this fused module: some of its shards are ignored and some are not."""


def vllm_ignores(module: str, ignore: list[str]) -> set[str]:
    """Which (rewritten) `ignore` entries make vLLM leave its module unquantized; empty if none does.

    Raises:
        SplitGroup: shards of a fused module are treated differently.
    """
    if direct := {rule for rule in ignore if matches(module, rule)}:
        return direct
    last = module.rsplit(".", 1)[-1]
    if last not in FUSED:
        return set()
    hits = [{r for r in ignore if matches(module.replace(last, shard), r)} for shard in FUSED[last]]
    if any(hits) and not all(hits):
        missed = [shard for shard, hit in zip(FUSED[last], hits, strict=True) if not hit]
        raise SplitGroup(f"{module}: {', '.join(missed)} not ignored, the other shards are")
    return set().union(*hits)


def vllm_target(module: str, targets: Mapping[str, str], lm_head: bool) -> tuple[str | None, set[str]]:
    """The config group that vLLM takes for its module, and all groups its shards would take on their own.

    Args:
        module: vLLM's name.
        targets: rewritten target -> config group, in the order of the configuration.
        lm_head: whether it is the output head, whose class has no "Linear" in its name in vLLM.
    """
    for target, group in targets.items():
        if matches(module, target):
            return group, {group}
    fused = next((key for key in FUSED if module.endswith(key)), None)
    if fused is not None:
        shards = [module.replace(fused, shard) for shard in FUSED[fused]]
        groups = [next((g for t, g in targets.items() if matches(shard, t)), None) for shard in shards]
        if all(groups):
            return groups[0], {group for group in groups if group}
        named = {group for group in groups if group}
    else:
        named = set()
    if not lm_head:
        for target, group in targets.items():
            if not target.startswith("re:") and target.lower() in "columnparallellinear":
                return group, named | {group}
    return None, named
