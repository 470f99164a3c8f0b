"""What all checks look at: the folder, its source, its configuration read once, and where progress is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ocria_compress.bundle.verify import names
from ocria_compress.bundle.verify.layouts import Group
from ocria_compress.bundle.verify.reader import Folder, Tensor

MANIFEST = "ocria.json"


@dataclass
class Context:
    """One verification.

    Attributes:
        result: the checkpoint that is checked.
        source: what it was made from; None if it is not to be found (`source_problem` says what to do).
        base: the model from which it took what the source had lost; None if there is none.
        manifest: `ocria.json`, {} if there is none or it cannot be read (`manifest_problem`).
        show: makes a progress bar: (what, bytes) -> (a function that takes bytes done, a function that ends it).
    """

    result: Folder
    source: Folder | None = None
    source_problem: str = ""
    base: Folder | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    manifest_problem: str | None = None
    show: Callable[[str, int], tuple[Callable[[int], None], Callable[[], None]]] | None = None

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar over `total` bytes, if someone is watching."""
        advance, end = self.show(what, total) if self.show else (lambda _: None, lambda: None)
        try:
            yield advance
        finally:
            end()

    @cached_property
    def quantization(self) -> dict[str, Any]:
        """`quantization_config` of the checkpoint."""
        found = self.result.config.get("quantization_config")
        return found if isinstance(found, dict) else {}

    @cached_property
    def read_groups(self) -> tuple[list[Group], list[str]]:
        """The config groups, and what is wrong with those that cannot be used."""
        groups: list[Group] = []
        problems: list[str] = []
        found = self.quantization.get("config_groups")
        for name, data in (found if isinstance(found, dict) else {}).items():
            group = Group.read(name, data, self.quantization.get("format"))
            if isinstance(group, Group):
                groups.append(group)
            else:
                problems.append(group)
        return groups, problems

    @cached_property
    def groups(self) -> list[Group]:
        """The config groups that can be used."""
        return self.read_groups[0]

    @cached_property
    def ignore(self) -> list[str]:
        """`ignore`, without entries that are no rules."""
        found = self.quantization.get("ignore")
        return [r for r in found if names.rule_problem(r) is None] if isinstance(found, list) else []

    @cached_property
    def text_config(self) -> dict[str, Any]:
        """The language model's configuration."""
        found = self.result.config.get("text_config")
        return found if isinstance(found, dict) else self.result.config

    @cached_property
    def tied(self) -> bool:
        """Whether the output head is the embedding."""
        return bool(self.result.config.get("tie_word_embeddings", self.text_config.get("tie_word_embeddings", False)))

    @cached_property
    def full_attention(self) -> list[int]:
        """The layers with a KV cache."""
        count = self.text_config.get("num_hidden_layers") or 0
        types = self.text_config.get("layer_types")
        if not isinstance(types, list):
            every = self.text_config.get("full_attention_interval") or 4
            types = ["full_attention" if (i + 1) % every == 0 else "" for i in range(count)]
        return [i for i, kind in enumerate(types) if kind == "full_attention"]

    @cached_property
    def by_name(self) -> dict[str, Tensor]:
        """The checkpoint's tensors by canonical name."""
        return {names.canonical(name): tensor for name, tensor in self.result.tensors.items()}

    @cached_property
    def origin(self) -> dict[str, tuple[Folder, Tensor]]:
        """What the checkpoint must hold: the source's tensors (and those taken from the base) by canonical name."""
        found: dict[str, tuple[Folder, Tensor]] = {}
        renamed = self.manifest.get("renamed")
        back = {old: new for new, old in renamed.items()} if isinstance(renamed, dict) else {}
        if self.base is not None:
            taken = {names.canonical(str(name)) for name in self.manifest.get("taken_from_base") or []}
            for name, tensor in self.base.tensors.items():
                if names.canonical(name) in taken:
                    found[names.canonical(name)] = (self.base, tensor)
        if self.source is not None:
            for name, tensor in self.source.tensors.items():
                found[names.canonical(back.get(name, name))] = (self.source, tensor)
        return found

    @cached_property
    def linears(self) -> dict[str, tuple[int, int]]:
        """Every Linear -> (outputs, inputs) of its full-precision weight, by its Hugging Face module name."""
        found: dict[str, tuple[int, int]] = {}
        for name, tensor in self.by_name.items():
            module, parameter = names.split(name)
            if parameter not in ("weight", "weight_packed") or not names.is_linear(module, len(tensor.shape)):
                continue
            rows, columns = tensor.shape
            original = self.origin.get(f"{module}.weight")
            if original is not None and len(original[1].shape) == 2:
                rows, columns = original[1].shape
            elif parameter == "weight_packed":
                columns *= 2
            found[module] = (rows, columns)
        return found

    @cached_property
    def quantized(self) -> dict[str, list[str]]:
        """Linears with quantization parameters -> those parameters' names."""
        found: dict[str, list[str]] = {}
        for name in self.by_name:
            module, parameter = names.split(name)
            if parameter in names.QUANTIZED:
                found.setdefault(module, []).append(parameter)
        return found

    @cached_property
    def modules(self) -> set[str]:
        """Every module that holds a tensor, and the output head, which is a module even where it is tied."""
        return {names.split(name)[0] for name in self.by_name} | {"lm_head"}

    def group_of(self, module: str) -> Group | None:
        """The one config group whose targets hit a Linear; None if there is none, or more than one."""
        hits = [g for g in self.groups if any(names.matches(module, t, "Linear") for t in g.targets)]
        return hits[0] if len(hits) == 1 else None

    def model_named(self, key: str) -> str | None:
        """`source` or `base` as the manifest names it."""
        entry = self.manifest.get(key)
        given = entry.get("model") if isinstance(entry, dict) else None
        return given if isinstance(given, str) else None

    def path(self, name: str) -> Path:
        """A file of the checkpoint."""
        return self.result.path / name
