"""Runs a recipe: plan -> (calibrate) -> weights -> side files -> manifest -> the folder's name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from ocria_compress import __version__
from ocria_compress.errors import OcriaError
from ocria_compress.model.source import Source
from ocria_compress.model.writer import INDEX_NAME, MANIFEST, WorkFolder, index_bytes, write_file
from ocria_compress.quantize.plan import Plan, part_rows
from ocria_compress.quantize.resources import resources
from ocria_compress.quantize.stream import hash_file, write_weights

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
    _refuse_inside_source(plan.source, out)
    pages = _open_pages(plan)
    key = run_key(plan, pages.sha256 if pages else None)
    work = WorkFolder(out, key, overwrite=overwrite, fresh=fresh)
    try:
        if short := resources(plan, work.root.parent, started=work.resumed).short:
            raise OcriaError(short, where=str(out), fix="free some, or choose an --out on another disk")
        if work.resumed:
            report.note("continuing an unfinished run")
        extra = _calibrate(plan, pages, work.state, report) if pages else {}
        _check_duplicates(plan.source)
        report.stage("weights", plan.bytes_before)
        hashes = write_weights(plan, work.files, work.state, extra, report.advance)
        hashes |= _side_files(plan, work.files)
        manifest = _manifest(plan, command, hashes, work.files, extra)
        write_file(work.files / MANIFEST, json.dumps(manifest, indent=1).encode())
        work.finish()
    finally:
        work.close()
    return Result(out, manifest, work.resumed)


def _refuse_inside_source(source: Source, out: Path) -> None:
    inside = out.resolve()
    for folder in (source.folder, source.base.folder if source.base else source.folder):
        if folder.resolve() == inside or folder.resolve() in inside.parents:
            raise OcriaError(
                "The output would be written into the model's own folder.", where=str(out), fix="choose another --out"
            )


def _open_pages(plan: Plan):
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


def _calibrate(plan: Plan, pages, state: Path, report: Reporter) -> dict[str, bytes]:
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
    from ocria_compress.model.checkpoint import read_chunks

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
        if name == MANIFEST:
            continue
        shutil.copyfile(path, folder / name)
        with (folder / name).open("rb") as file:
            import os

            os.fsync(file.fileno())
    config = dict(plan.source.config)
    if quantization := plan.quantization_config():
        config["quantization_config"] = quantization | {"version": metadata.version("compressed-tensors")}
    write_file(folder / "config.json", json.dumps(config, indent=2, ensure_ascii=False).encode())
    index = index_bytes({shard: [o for t in ts for o in t.outputs] for shard, ts in plan.shards.items()})
    if index:
        write_file(folder / INDEX_NAME, index)
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
    kind = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}[out.dtype]
    return float(torch.frombuffer(bytearray(data), dtype=kind)[0])
