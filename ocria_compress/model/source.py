"""Where a model comes from: `mini`, a folder, or a hub id -> files, table of names, and proof that the two agree."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.model.anatomy import Anatomy, canonical, is_mtp
from ocria_compress.model.checkpoint import (
    INDEX,
    SINGLE,
    StoredTensor,
    open_tensors,
    read_index,
    refuse_unsafe,
)

MINI = "mini"
_HUB_ID = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")

SIDE_FILES: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("tokenizer", (("tokenizer.json", "tokenizer_config.json"), ("vocab.json", "merges.txt", "tokenizer_config.json"))),
    ("image processor", (("preprocessor_config.json",), ("processor_config.json",))),
    ("video processor", (("video_preprocessor_config.json",), ("processor_config.json",))),
    ("chat template", (("chat_template.jinja",), ("chat_template.json",), ("tokenizer_config.json:chat_template",))),
)
"""What vLLM needs beside the weights to read a page; of each, one of the alternatives must be there whole."""


@dataclass
class Source:
    """A model, opened: its files, its table of names, and where every tensor's bytes lie.

    `tensors` is by canonical name and in file order; a tensor taken from `base` lies in the base model's file.
    """

    given: str
    """The model as the user named it."""
    kind: str
    """`mini`, `folder` or `hub`."""
    folder: Path
    config: dict
    anatomy: Anatomy
    tensors: dict[str, StoredTensor]
    side_files: dict[str, Path]
    revision: str | None = None
    """The hub commit, for a hub id."""
    fingerprint: str = ""
    """Changes when any weight file's size, time or header, the configuration, or a side file changes."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Canonical name -> stored name, where they differ."""
    base: Source | None = None
    taken_from_base: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    """Stored copies of a tied tensor (`lm_head.weight`), left out once proven equal."""
    notes: list[str] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def open_source(model: str, *, base: str | None = None, revision: str | None = None, weights: bool = True) -> Source:
    """Opens a model and proves that its files, index and configuration agree; no weight is read.

    Args:
        model: `mini`, a folder, or a hub id.
        base: a model of the same shape to take missing `mtp.*` tensors and side files from.
        revision: branch, tag or commit, for a hub id; the commit found is recorded.
        weights: for a hub id, whether to download the weights; without them only headers are fetched.

    Raises:
        OcriaError: the model cannot be had, is not a dense Qwen3.5 vision-language model, or is damaged.
    """
    source = _open(model, revision, weights)
    other = _open(base, None, weights) if base else None
    if other:
        _take_from_base(source, other)
    _check_side_files(source)
    _check_tensors(source)
    digest = hashlib.sha256(source.fingerprint.encode())
    for name, path in sorted(source.side_files.items()):  # calibration reads with them, and the result holds them
        digest.update(f"\0{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    source.fingerprint = digest.hexdigest()
    return source


def _open(model: str, revision: str | None, weights: bool) -> Source:
    kind, folder, commit = _locate(model, revision, weights)
    _refuse_adapter(folder)
    config = _read_config(folder / "config.json")
    anatomy = _anatomy(config, str(folder / "config.json"))
    if kind == "hub" and not weights and not _has_weights(folder):
        from ocria_compress.model.hub import remote_tensors

        stored, headers = remote_tensors(model, commit, folder)
    else:
        stored, headers = open_tensors(folder)
    tensors, renamed = _canonical(stored, str(folder))
    files = {p.name: p for p in sorted(folder.iterdir()) if _is_side_file(p)}
    source = Source(
        given=model, kind=kind, folder=folder, config=config, anatomy=anatomy, tensors=tensors, side_files=files,
        revision=commit, renamed=renamed,
    )  # fmt: skip
    source.fingerprint = _fingerprint(source, headers)
    if folders := [p.name for p in sorted(folder.iterdir()) if p.is_dir() and not p.name.startswith(".")]:
        source.notes.append(f"sub-folders are not copied: {', '.join(folders)}")
    if odd := [p.name for p in sorted(folder.iterdir()) if not p.is_file() and not p.is_dir()]:
        source.notes.append(f"pipes and links that lead nowhere are not copied: {', '.join(odd)}")
    return source


def _anatomy(config: dict, where: str) -> Anatomy:
    """The table of names; a value of the wrong kind anywhere in the configuration is said as such."""
    try:
        anatomy = Anatomy(config, where=where)
        _ = anatomy.tensors
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise OcriaError(
            f"The model's configuration holds a value of the wrong kind ({error}).",
            where=where,
            fix="restore config.json from the model this one was fine-tuned from",
        ) from error
    return anatomy


def _locate(model: str, revision: str | None, weights: bool) -> tuple[str, Path, str | None]:
    if model == MINI:
        folder = mini_folder()
        if not (folder / "config.json").is_file():
            raise OcriaError("The bundled model is missing.", where=str(folder), fix="install the package again")
        return "mini", folder, None
    try:
        path = Path(model).expanduser()
        there, is_folder = path.exists(), path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # too long a name, an unknown ~user, a NUL
        raise OcriaError(f"This cannot be a path ({error}).", where=model[:200], fix="name a model folder") from error
    if is_folder:
        return "folder", path.resolve(), None
    if there:
        raise OcriaError(
            "A model is a folder, this is a file.", where=model, fix="name the folder that holds config.json"
        )
    if _HUB_ID.match(model) and not model.startswith((".", "~")):
        from ocria_compress.model.hub import fetch

        folder, commit = fetch(model, revision, weights)
        return "hub", folder, commit
    raise OcriaError(
        "There is no such model folder, and this is no hub id either.",
        where=model,
        fix="give 'mini', a folder with config.json and safetensors weights, or a hub id such as llamaindex/OCRia-1",
    )


def _has_weights(folder: Path) -> bool:
    """Whether every weight file is there: a download may have been interrupted between two."""
    index = folder / INDEX
    names = set(read_index(index).values()) if index.is_file() else {SINGLE}
    return all((folder / name).is_file() for name in names)


def _read_config(path: Path) -> dict:
    if not path.is_file():  # a pipe would never end
        raise OcriaError("The model folder has no config.json.", where=str(path.parent), fix="copy the model again")
    try:
        config = json.loads(path.read_text())
        if not isinstance(config, dict):
            raise ValueError("not a JSON object")
    except (ValueError, OSError, RecursionError) as error:
        raise OcriaError(
            f"The model's configuration cannot be read ({error}).", where=str(path), fix="download or copy it again"
        ) from error
    return config


def _refuse_adapter(folder: Path) -> None:
    path = folder / "adapter_config.json"
    if not path.is_file():
        return
    try:
        base = json.loads(path.read_text()).get("base_model_name_or_path") or "BASE_MODEL"
    except (ValueError, AttributeError, OSError, RecursionError):
        base = "BASE_MODEL"
    merge = (
        "from transformers import AutoModelForImageTextToText as M; from peft import PeftModel as P; "
        f"P.from_pretrained(M.from_pretrained({base!r}, dtype='auto'), {str(folder)!r}).merge_and_unload()"
        ".save_pretrained('merged')"
    )
    raise OcriaError(
        "This folder holds a LoRA adapter, not a model.",
        where=str(folder),
        fix=f'merge it into its base first:  python -c "{merge}"  then  --model merged --base {base}',
    )


def _canonical(stored: dict[str, StoredTensor], where: str) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    tensors: dict[str, StoredTensor] = {}
    renamed: dict[str, str] = {}
    for name, tensor in stored.items():
        new = canonical(name)
        if new in tensors:
            raise OcriaError(f"Two tensors are both '{new}': '{name}' and '{renamed.get(new, new)}'.", where=where)
        tensors[new] = tensor
        if new != name:
            renamed[new] = name
    return tensors, renamed


def _is_side_file(path: Path) -> bool:
    weights = path.suffix == ".safetensors" or path.name == INDEX
    return path.is_file() and not weights and not path.name.startswith(".") and path.name != "config.json"


def _fingerprint(source: Source, headers: dict[str, bytes]) -> str:
    digest = hashlib.sha256(json.dumps(source.config, sort_keys=True).encode())
    for name, raw in sorted(headers.items()):
        digest.update(f"\0{name}\0{len(raw)}\0".encode() + raw)
        if source.kind == "folder":  # bundled and pinned hub files cannot change under the same header
            status = (source.folder / name).stat()
            digest.update(f"{status.st_size}\0{status.st_mtime_ns}".encode())
    digest.update(str(source.revision).encode())
    return digest.hexdigest()


def _take_from_base(source: Source, base: Source) -> None:
    """Fills in what a fine-tune lost: `mtp.*` tensors and side files. Nothing that is there is replaced."""
    source.base = base
    expected = source.anatomy.tensors
    if source.anatomy.mtp_layers and not any(map(is_mtp, source.tensors)):
        for name, tensor in base.tensors.items():
            if not is_mtp(name):
                continue
            if name not in expected or expected[name].shape != tensor.shape:
                raise OcriaError(
                    f"The base model's '{name}' does not fit this model.",
                    where=base.given,
                    fix="--base must be the model that this one was fine-tuned from",
                )
            source.tensors[name] = tensor
            source.taken_from_base.append(name)
    for what, alternatives in SIDE_FILES:
        if _has_side_file(source, alternatives):
            continue
        for names in alternatives:
            if _has_side_file(base, (names,)):
                for name in (n.partition(":")[0] for n in names):
                    source.side_files.setdefault(name, base.side_files[name])
                    source.taken_from_base.append(name)
                break
        else:
            raise OcriaError(f"The base model has no {what} either.", where=base.given)


def _has_side_file(source: Source, alternatives: tuple[tuple[str, ...], ...]) -> bool:
    def there(name: str) -> bool:
        file, _, key = name.partition(":")
        if file not in source.side_files:
            return False
        if not key:
            return True
        try:
            return bool(json.loads(source.side_files[file].read_text()).get(key))
        except (ValueError, AttributeError, OSError):
            return False

    return any(all(there(name) for name in names) for names in alternatives)


def _check_side_files(source: Source) -> None:
    refuse_unsafe(list(source.side_files), str(source.folder))
    for what, alternatives in SIDE_FILES:
        if not _has_side_file(source, alternatives):
            wanted = " or ".join(" + ".join(n.partition(":")[0] for n in names) for names in alternatives)
            raise OcriaError(
                f"The model folder has no {what} ({wanted}): vLLM could not read a page with it.",
                where=str(source.folder),
                fix="--base MODEL takes it from the model that this one was fine-tuned from",
            )


def _check_tensors(source: Source) -> None:
    expected, found, where = source.anatomy.tensors, source.tensors, str(source.folder)
    _check_mtp(source)
    extra = [name for name in found if name not in expected]
    if source.anatomy.tied and "lm_head.weight" in extra:
        source.duplicates.append("lm_head.weight")
        extra.remove("lm_head.weight")
    missing = [name for name in expected if name not in found]
    if missing:
        raise OcriaError(
            f"{len(missing)} of {len(expected)} tensors that the configuration calls for are missing: "
            f"{', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}.",
            where=where,
            fix="the weights and config.json are not of the same model, or weight files are missing: copy it again",
        )
    if extra:
        raise OcriaError(
            f"{len(extra)} tensors are unknown to a model of this configuration: "
            f"{', '.join(extra[:3])}{' …' if len(extra) > 3 else ''}.",
            where=where,
            fix="the weights and config.json are not of the same model: copy it again",
        )
    for name, tensor in expected.items():
        if found[name].shape != tensor.shape:
            raise OcriaError(
                f"'{name}' has shape {list(found[name].shape)}, the configuration calls for {list(tensor.shape)}.",
                where=where,
                fix="the weights and config.json are not of the same model: copy it again",
            )


def _check_mtp(source: Source) -> None:
    said, there = source.anatomy.mtp_layers, sum(map(is_mtp, source.tensors))
    if said and not there:
        raise OcriaError(
            f"The configuration announces {said} multi-token-prediction layer(s), but there is no mtp.* tensor.",
            where=str(source.folder),
            fix="--base MODEL takes them from the model that this one was fine-tuned from; or, to go without them, "
            "set text_config.mtp_num_hidden_layers to 0 in config.json",
        )
    if there and not said:
        raise OcriaError(
            f"There are {there} mtp.* tensors, but the configuration announces no multi-token-prediction layer.",
            where=str(source.folder / "config.json"),
            fix="set text_config.mtp_num_hidden_layers (1 in the released models), or remove the tensors",
        )
