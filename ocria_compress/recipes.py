"""Recipes: what is done to which part of a model, on which pages, and the gates that the result must pass.

A recipe is a YAML file. Its schema is this module; every field's meaning stands beside it, and unknown keys are
refused with the nearest known one. Recipes are found by name in `recipes/`, or by path.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ocria_compress.bundled import bundled
from ocria_compress.errors import OcriaError, nearest
from ocria_compress.model.anatomy import PARTS

SCHEMES = ("keep", "fp8")
"""Weight schemes: `keep` leaves a part byte for byte; `fp8` is W8A8 with E4M3 weights scaled per output channel and
activations scaled per token while serving (compressed-tensors' FP8_DYNAMIC)."""

QUANTIZABLE = {
    "attention": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "linear_attention": ("in_proj_qkv", "in_proj_z", "out_proj"),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
    "lm_head": ("lm_head",),
}
"""The Linears of each part that a scheme other than `keep` may be set for; what is not here has no such kernel in
vLLM, or loses too much for too little (`in_proj_a` and `in_proj_b` are a few rows each)."""

WHY_NOT = {
    "vision": "the vision tower is a small share of the bytes and reads every page: it is kept",
    "embeddings": "vLLM 0.32 has no FP8 embedding lookup",
    "mtp": "vLLM drafts with it in 16 bits; quantizing it saves almost nothing and costs acceptance",
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True)


class PartRule(_Strict):
    """What is done to one part."""

    scheme: Literal["keep", "fp8"]
    modules: list[str] | None = Field(None, min_length=1)
    """The Linears of the part, by last name (`in_proj_qkv`); all that can be quantized if left out."""


class KeepRule(_Strict):
    """Modules that stay as they are although their part has a scheme."""

    match: str
    """A module's full name, or `re:` and a regular expression that must match from the start of the name."""
    reason: str = Field(min_length=3)

    @field_validator("match")
    @classmethod
    def _compiles(cls, match: str) -> str:
        if match.startswith("re:"):
            try:
                re.compile(match[3:])
            except re.error as error:
                raise ValueError(f"'{match}' is no regular expression: {error}") from error
        return match


class KvCache(_Strict):
    """Scales for an FP8 KV cache, one for keys and one for values per full-attention layer."""

    scheme: Literal["fp8"]


class Calibration(_Strict):
    """The pages that calibrated schemes are run on."""

    pages: str = "calibration"
    """The bundled set `calibration`, or a page set's folder."""
    count: int = Field(16, ge=1)
    max_tokens: int = Field(8192, ge=64)
    """A page whose prompt, image and transcript need more is an error: nothing is ever cut."""


class Bound(_Strict):
    """A bound on a measured figure."""

    min: float | None = Field(default=None, allow_inf_nan=False)
    max: float | None = Field(default=None, allow_inf_nan=False)

    @model_validator(mode="after")
    def _some_bound(self) -> Bound:
        if self.min is None and self.max is None:
            raise ValueError("a gate needs min or max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("a gate's min is above its max")
        return self


class Gates(_Strict):
    """What `verify` holds the result to."""

    recovery: Bound = Bound(min=98.0)
    """Percent of the original's page accuracy (1 - normalized edit distance), a ratio of means."""
    weight_error: Bound = Bound(max=0.035)
    """Largest relative (Frobenius) error of one quantized tensor; 0.035 is the bound of E4M3."""


class Recipe(_Strict):
    """A whole recipe."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    description: str = ""
    part: dict[str, PartRule]
    """Rules by part; parts that are not named are kept."""
    keep: list[KeepRule] = []
    kv_cache: KvCache | None = None
    calibration: Calibration | None = None
    gates: Gates = Gates()

    @model_validator(mode="after")
    def _possible(self) -> Recipe:
        for part, rule in self.part.items():
            if part not in PARTS:
                raise ValueError(f"part.{part}: there is no such part; {nearest(part, list(PARTS))}")
            if rule.scheme == "keep":
                continue
            if part not in QUANTIZABLE:
                raise ValueError(f"part.{part}: scheme {rule.scheme} is not possible here: {WHY_NOT[part]}")
            for module in rule.modules or []:
                if module not in QUANTIZABLE[part]:
                    raise ValueError(
                        f"part.{part}.modules: '{module}' cannot have scheme {rule.scheme}; "
                        f"{nearest(module, list(QUANTIZABLE[part]))}"
                    )
        if self.kv_cache and self.calibration is None:
            raise ValueError("kv_cache needs a calibration section: its scales are measured on pages")
        return self

    @property
    def calibrated(self) -> bool:
        """Whether the recipe needs pages run through the model."""
        return self.kv_cache is not None

    def digest(self) -> str:
        """A hash of everything that changes the result (not of the gates or the description)."""
        data = self.model_dump(exclude={"gates", "description"})
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def recipe_paths() -> dict[str, Path]:
    """The recipes that ship, by name."""
    return {path.stem: path for path in sorted(bundled("recipes").glob("*.yaml"))}


def load_recipe(name_or_path: str, settings: list[str] | None = None) -> Recipe:
    """Loads a recipe by name or path, with `--set` overrides such as `part.mlp.scheme=keep` applied.

    Raises:
        OcriaError: no such recipe, a YAML or schema error, or an override that does not parse.
    """
    import yaml

    known = recipe_paths()
    try:
        path = known.get(name_or_path) or Path(name_or_path).expanduser()
        there = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise OcriaError(f"This cannot be a path ({error}).", where=name_or_path[:200], fix="name a recipe") from error
    if not there:
        raise OcriaError(
            f"There is no recipe '{name_or_path}'.",
            where=str(bundled("recipes")),
            fix=nearest(name_or_path, list(known)) + "; or give the path of a YAML file",
        )
    try:
        data = parse_yaml(path.read_text())
    except (yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise OcriaError(
            f"The recipe is not readable YAML: {error}.", where=str(path), fix="start from a copy of fp8.yaml"
        ) from error
    if not isinstance(data, dict):
        raise OcriaError(
            "The recipe is empty, or not a mapping of keys.", where=str(path), fix="start from a copy of fp8.yaml"
        )
    data.setdefault("name", path.stem)
    for setting in settings or []:
        _override(data, setting)
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        raise _explain(error, path, settings) from error


def parse_yaml(text: str) -> Any:
    """YAML as `yaml.safe_load` reads it, but a key that is given twice is an error: which of the two is meant?"""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            if twice := [key for i, key in enumerate(keys) if key in keys[:i]]:
                raise ValueError(f"the key '{twice[0]}' is given twice")
            return super().construct_mapping(node, deep)

    return yaml.load(text, Loader)


def _override(data: dict, setting: str) -> None:
    import yaml

    path, equals, text = setting.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise OcriaError(
            "An override is KEY=VALUE, with dots between the keys.",
            where=f"--set {setting}",
            fix="for instance --set part.mlp.scheme=keep",
        )
    try:
        value = parse_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise OcriaError(
            f"The value is not readable: {error}.", where=f"--set {setting}", fix="quote it, or give another value"
        ) from error
    node: Any = data
    for key in keys[:-1]:
        if not isinstance(node, dict):
            break
        if node.get(key) is None:  # left out, or an empty section
            node[key] = {}
        node = node[key]
    if not isinstance(node, dict):
        raise OcriaError(
            f"'{path}' does not lead to a single value.",
            where=f"--set {setting}",
            fix="`ocria-compress recipes NAME` shows a recipe's keys",
        )
    node[keys[-1]] = value


def _explain(error: ValidationError, path: Path, settings: list[str] | None) -> OcriaError:
    """The first few faults of a recipe in words; unknown keys with the nearest known one."""
    lines = []
    for fault in error.errors()[:5]:
        where = ".".join(str(key) for key in fault["loc"])
        if fault["type"] == "extra_forbidden":
            lines.append(f"unknown key '{where}': {nearest(str(fault['loc'][-1]), _keys_at(fault['loc'][:-1]))}")
        elif fault["type"] == "literal_error":
            known = list(SCHEMES) if where.endswith("scheme") else []
            hint = f": {nearest(str(fault['input']), known)}" if known else ""
            lines.append(f"'{where}' cannot be '{fault['input']}'{hint}")
        elif fault["type"] == "missing":
            lines.append(f"'{where}' is missing")
        else:
            lines.append(f"{where + ': ' if where else ''}{fault['msg'].removeprefix('Value error, ')}")
    what = "The recipe cannot be used: " + "; ".join(lines)
    return OcriaError(
        what if what.endswith("?") else what + ".",
        where=str(path) + (f" with --set {' --set '.join(settings)}" if settings else ""),
        fix="`ocria-compress recipes` lists the recipes that ship; docs/recipes.md says what each key means",
    )


def _keys_at(location: tuple) -> list[str]:
    """The keys that a recipe knows at a place, to suggest one of them."""
    model: Any = Recipe
    for key in location:
        if isinstance(key, int) or model is PartRule:
            continue
        model = {
            "part": PartRule, "keep": KeepRule, "kv_cache": KvCache, "calibration": Calibration, "gates": Gates,
        }.get(str(key), Bound if model is Gates else model)  # fmt: skip
    return list(model.model_fields)
