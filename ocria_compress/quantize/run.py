"""Runs a recipe: plan -> (calibrate) -> weights -> side files -> manifest -> the folder's name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ocria_compress import __version__
from ocria_compress.errors import OcriaError
from ocria_compress.model.checkpoint import INDEX, open_tensors, read_chunks
from ocria_compress.model.source import Source
from ocria_compress.model.writer import MANIFEST, WorkFolder, check_place, index_bytes, laid_out, write_file
from ocria_compress.quantize.plan import Plan, part_rows
from ocria_compress.quantize.resources import resources
from ocria_compress.quantize.schemes import torch_dtype
from ocria_compress.quantize.stream import hash_file, write_weights

if TYPE_CHECKING:
    from ocria_compress.pages.pageset import PageSet

PACKAGES = ("torch", "transformers", "compressed-tensors", "llmcompressor", "safetensors")


@dataclass
class Reporter:
    """How a run tells what it is doing: `stage(name, total)` opens a bar, `advance(amount, item)` moves it."""

    stage: Callable[[str, int], None] = lambda name, total: None
    advance: Callable[[int, str], None] = lambda amount, item: None
    note: Callable[[str], None] = lambda text: None


@dataclass
class Result:
    """What was written."""

    folder: Path
    manifest: dict
    resumed: bool


def quantize(
    plan: Plan,
    out: Path,
    *,
    command: str,
    overwrite: bool = False,
    fresh: bool = False,
    report: Reporter | None = None,
) -> Result:
    """Writes the checkpoint that a plan describes; a killed or interrupted run is continued by the same call.

    Args:
        plan: what to do.
        out: the result's folder; must not exist, unless `overwrite`.
        command: the command line, for the manifest.
        overwrite: replace an older result of ours.
        fresh: throw an unfinished run of another kind away.
        report: told about progress.

    Raises:
        OcriaError: the request cannot be done; nothing is left under the result's name.
    """
    report = report or Reporter()
    pages = open_pages(plan)
    _refuse_overlap(plan, pages, out)
    check_place(out, overwrite)
    if short := resources(plan, out.parent, started=laid_out(out)).short:
        raise OcriaError(short, where=str(out), fix="free some, or choose an --out on another disk")
    _check_duplicates(plan.source)
    work = WorkFolder(out, run_key(plan, pages.sha256 if pages else None), overwrite=overwrite, fresh=fresh)
    try:
        if work.resumed:
            report.note("continuing an unfinished run")
        extra = _calibrate(plan, pages, work.state, report) if pages else {}
        report.stage("weights", plan.bytes_before)
        hashes = write_weights(plan, work.files, work.state, extra, report.advance)
        hashes |= _side_files(plan, work.files)
        manifest = _manifest(plan, command, hashes, work.files, extra)
        _prove_complete(plan, work.files)
        write_file(work.files / MANIFEST, json.dumps(manifest, indent=1).encode())
        work.finish()
    finally:
        work.close()
    return Result(out, manifest, work.resumed)


def _refuse_overlap(plan: Plan, pages: PageSet | None, out: Path) -> None:
    """The output may lie neither inside what is read nor around it: replacing it must not touch the inputs."""
    place = out.resolve()
    read = [
        plan.source.folder,
        *([plan.source.base.folder] if plan.source.base else []),
        *([pages.folder] if pages else []),
    ]
    for folder in (path.resolve() for path in read):
        if folder == place or folder in place.parents:
            raise OcriaError(
                "The output would be written into the model's own folder.", where=str(out), fix="choose another --out"
            )
        if place in folder.parents:
            raise OcriaError(
                "The output would take the place of a folder that holds the input.",
                where=f"{folder} lies in {out}",
                fix="choose another --out",
            )


def _prove_complete(plan: Plan, folder: Path) -> None:
    """Reads back the headers of what was written: the tensors must be exactly the plan's."""
    found, _ = open_tensors(folder)
    wanted = {out.name: (out.dtype, out.shape) for tensor in plan.tensors for out in tensor.outputs}
    have = {name: (tensor.dtype, tensor.shape) for name, tensor in found.items()}
    if have != wanted:
        name = next(n for n in sorted(have.keys() | wanted.keys()) if have.get(n) != wanted.get(n))
        raise OcriaError(
            f"What was written is not what was planned: '{name}' is {have.get(name)}, planned {wanted.get(name)}.",
            where=str(folder),
            fix="repeat with --fresh; if it happens again, report it",
        )


def open_pages(plan: Plan) -> PageSet | None:
    """The recipe's calibration pages, every file checked; None if it needs none.

    Raises:
        OcriaError: no such page set, a damaged one, or one with too few pages.
    """
    if not plan.recipe.calibrated or plan.recipe.calibration is None:
        return None
    from ocria_compress.pages.pageset import PageSet

    pages = PageSet.load(plan.recipe.calibration.pages)
    wanted = plan.recipe.calibration.count
    if len(pages.pages) < wanted:
        raise OcriaError(
            f"The recipe asks for {wanted} calibration pages, the set has {len(pages.pages)}.",
            where=plan.recipe.calibration.pages,
            fix=f"--set calibration.count={len(pages.pages)}, or give a larger set",
        )
    return pages.take(wanted)


def _calibrate(plan: Plan, pages: PageSet, state: Path, report: Reporter) -> dict[str, bytes]:
    from ocria_compress.quantize.kv_cache import kv_scales

    report.stage("calibration pages", len(pages.pages))
    return kv_scales(plan, pages, state, report.advance)


def run_key(plan: Plan, pages: str | None) -> dict[str, str]:
    """What a result depends on, by name; a run is continued only under the same key."""
    key = {
        "recipe": plan.recipe.digest(),
        "source": plan.source.fingerprint,
        "tool": __version__,
        "torch": metadata.version("torch"),
        "compressed-tensors": metadata.version("compressed-tensors"),
    }
    if plan.source.base:
        key["base"] = plan.source.base.fingerprint
    if pages:
        key |= {"pages": pages, "transformers": metadata.version("transformers")}
    return key


def _check_duplicates(source: Source) -> None:
    """A tied lm_head that is stored anyway is left out only if it really repeats the embedding table."""
    for name in source.duplicates:
        copy = source.tensors[name]
        table = source.tensors["model.language_model.embed_tokens.weight"]
        same = (copy.dtype, copy.shape) == (table.dtype, table.shape) and all(
            a == b for a, b in zip(read_chunks(copy, 1 << 24), read_chunks(table, 1 << 24), strict=True)
        )
        if not same:
            raise OcriaError(
                f"The configuration ties {name} to the embedding table, but the stored {name} differs from it.",
                where=str(copy.path),
                fix="set tie_word_embeddings to false in config.json if the model was trained untied",
            )


def _side_files(plan: Plan, folder: Path) -> dict[str, str]:
    """Copies every side file byte for byte and writes config.json and the index; returns their hashes."""
    for name, path in plan.source.side_files.items():
        if name != MANIFEST:
            write_file(folder / name, path.read_bytes())
    config = dict(plan.source.config)
    if quantization := plan.quantization_config():
        config["quantization_config"] = quantization | {"version": metadata.version("compressed-tensors")}
    write_file(folder / "config.json", json.dumps(config, indent=2, ensure_ascii=False).encode())
    index = index_bytes({shard: [o for t in ts for o in t.outputs] for shard, ts in plan.shards.items()})
    if index:
        write_file(folder / INDEX, index)
    return {
        path.name: hash_file(path)
        for path in sorted(folder.iterdir())
        if path.suffix != ".safetensors" and path.name != MANIFEST
    }


def _manifest(plan: Plan, command: str, hashes: dict[str, str], folder: Path, extra: dict[str, bytes]) -> dict:
    source = plan.source
    return {
        "ocria_compress": __version__,
        "kind": "target",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "recipe_name": plan.recipe.name,
        "recipe": plan.recipe.model_dump(),
        "source": _origin(source),
        "base": _origin(source.base) if source.base else None,
        "taken_from_base": source.taken_from_base,
        "renamed": source.renamed,
        "left_out": source.duplicates,
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "tensors": {
            "kept": len(plan.tensors) - len(plan.quantized),
            "quantized": len(plan.quantized),
            "added": sum(len(t.outputs) - 1 for t in plan.tensors),
        },
        "calibration_scales": {name: _scalar(data, plan, name) for name, data in extra.items()},
        "plan": {"parts": part_rows(plan), "bytes_before": plan.bytes_before, "bytes_after": plan.bytes_after},
        "files": {
            name: {"bytes": (folder / name).stat().st_size, "sha256": digest} for name, digest in sorted(hashes.items())
        },
    }


def _origin(source: Source) -> dict:
    """Enough to find a model again."""
    return {
        "model": source.given,
        "folder": str(source.folder) if source.kind == "folder" else None,  # `model` may be relative to another place
        "revision": source.revision,
        "fingerprint": source.fingerprint,
    }


def _scalar(data: bytes, plan: Plan, name: str) -> float:
    import torch

    out = next(o for t in plan.tensors for o in t.outputs if o.name == name)
    return float(torch.frombuffer(bytearray(data), dtype=torch_dtype(out.dtype))[0])
