"""Checks of the folder: the manifest's promises, sound weight files, no code, side files as the source has them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ocria_compress.bundle.verify import names
from ocria_compress.bundle.verify.context import MANIFEST, Context
from ocria_compress.bundle.verify.reader import CHUNK, INDEX
from ocria_compress.bundle.verify.report import Check, failed, judged, not_run

UNSAFE = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".h5", ".msgpack", ".py", ".pyc", ".so")
"""Endings of files that carry code or pickled objects: nothing that loads the folder needs one."""

SIDE = (".json", ".jinja", ".txt", ".model", ".tiktoken")
"""Endings of files that a processor, a tokenizer or vLLM may read."""

_NOT_SIDE = re.compile(
    r"config\.json|.*\.index\.json|ocria\.json|(licen[sc]e|readme|notice|requirements).*\.txt", re.IGNORECASE
)

NEEDED = {
    "a tokenizer": ("tokenizer.json", "vocab.json"),
    "a tokenizer configuration": ("tokenizer_config.json",),
    "an image processor": ("preprocessor_config.json", "processor_config.json"),
    "a video processor": ("video_preprocessor_config.json", "processor_config.json"),
}
"""What vLLM needs to make the model's processor: of each, one."""


def manifest(ctx: Context) -> Check:
    """`ocria.json` is valid, and every file in the folder is there with the size and hash that it names."""
    name = "manifest"
    if not ctx.path(MANIFEST).exists():
        return not_run(name, f"no {MANIFEST}: made by another tool; to accept that, --allow-not-run {name}")
    if ctx.manifest_problem:
        return failed(name, ctx.manifest_problem)
    problems = [f"{key} is missing" for key in ("ocria_compress", "kind", "source", "files") if key not in ctx.manifest]
    files = ctx.manifest.get("files")
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        return failed(name, f"{MANIFEST} does not list its files", problems)
    present = [p.relative_to(ctx.result.path).as_posix() for p in ctx.result.path.rglob("*") if p.is_file()]
    problems += [f"{file} is missing" for file in sorted(set(files) - set(present))]
    problems += [f"{file} is not in the manifest" for file in sorted(set(present) - set(files) - {MANIFEST})]
    right = []
    for file in sorted(set(files) & set(present)):
        size, listed = ctx.path(file).stat().st_size, files[file].get("bytes")
        if size == listed:
            right.append(file)
        else:
            problems.append(f"{file} has {size} bytes, the manifest says {listed}")
    hashes = _hashes(ctx, right)
    changed = [file for file in right if hashes[file] != files[file].get("sha256")]
    problems += [f"{file} is not what was written: its hash differs" for file in changed]
    problems += _counts(ctx)
    total = sum(ctx.path(file).stat().st_size for file in right)
    right_words = f"{len(files)} files, {total:,} bytes, all as written"
    return judged(name, problems, right_words, f"the folder is not what {MANIFEST} says")


def _hashes(ctx: Context, files: list[str]) -> dict[str, str]:
    with ctx.progress("hashing files", sum(ctx.path(f).stat().st_size for f in files)) as advance:
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            return dict(zip(files, pool.map(lambda file: _sha256(ctx.path(file), advance), files), strict=True))


def _sha256(file: Path, advance: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as handle:
            while block := handle.read(CHUNK):
                digest.update(block)
                advance(len(block))
    except OSError as error:
        return f"unreadable: {error}"
    return digest.hexdigest()


def _counts(ctx: Context) -> list[str]:
    """The manifest's own counts of tensors against what is there."""
    claimed = ctx.manifest.get("tensors")
    if not isinstance(claimed, dict):
        return []
    scales = sum(names.split(n)[1] in names.QUANTIZED + names.KV_SCALES for n in ctx.by_name)
    codes = sum(names.split(n)[1] == "weight_packed" for n in ctx.by_name)
    whole = sum(f"{module}.weight" in ctx.by_name for module in ctx.quantized)
    kept = len(ctx.by_name) - scales - whole
    found = {"quantized": len(ctx.quantized), "kept": kept, "added": scales - codes}
    return [
        f"the manifest counts {claimed[kind]} {kind} tensors, there are {count}"
        for kind, count in found.items()
        if kind in claimed and claimed[kind] != count
    ]


def weight_files(ctx: Context) -> Check:
    """Headers are sound, tensors fill their files without gap or overlap, nothing is cut, the index agrees."""
    count = len({tensor.file for tensor in ctx.result.tensors.values()})
    right = f"{len(ctx.result.tensors)} tensors in {count} files; headers, offsets and index agree"
    return judged("weight-files", ctx.result.problems, right, "the weight files are not sound")


def no_code(ctx: Context) -> Check:
    """No Python, no pickled weights, no configuration that asks for code."""
    problems = [
        f"{path.relative_to(ctx.result.path).as_posix()} carries code or pickled objects"
        for path in sorted(ctx.result.path.rglob("*"))
        if path.suffix.lower() in UNSAFE
    ]
    problems += ["config.json has auto_map: loading it would ask for code"] if "auto_map" in ctx.result.config else []
    return judged("no-code", problems, "safetensors and text only", "the folder carries code or pickled weights")


def side_files(ctx: Context) -> Check:
    """Tokenizer, processor, chat template, generation settings: all there, all equal to the source's."""
    name = "side-files"
    problems = [
        f"there is no {' or '.join(alternatives)}: vLLM cannot make {what}"
        for what, alternatives in NEEDED.items()
        if not any(ctx.path(file).is_file() for file in alternatives)
    ]
    if not (any(ctx.result.path.glob("chat_template*.j*")) or _template_in_tokenizer(ctx.result.path)):
        problems.append("there is no chat template")
    if ctx.source is None:
        return failed(name, "files are missing", problems) if problems else not_run(name, ctx.source_problem)
    wanted = dict(_side_files(ctx.source.path))
    taken = {str(entry) for entry in ctx.manifest.get("taken_from_base") or []}
    if ctx.base is not None:
        wanted = {f: p for f, p in _side_files(ctx.base.path).items() if f in taken} | wanted
    for file, original in sorted(wanted.items()):
        if not ctx.path(file).is_file():
            problems.append(f"{file} of the source is missing")
        elif ctx.path(file).read_bytes() != original.read_bytes():
            problems.append(f"{file} is not the source's")
    right = f"{len(wanted)} files, byte for byte the source's"
    return judged(name, problems, right, "side files differ from the source's")


def _side_files(folder: Path) -> dict[str, Path]:
    found = (path for path in folder.iterdir() if path.is_file() and path.suffix in SIDE and path.name != INDEX)
    return {path.name: path for path in found if not _NOT_SIDE.fullmatch(path.name)}


def _template_in_tokenizer(folder: Path) -> bool:
    try:
        return '"chat_template"' in (folder / "tokenizer_config.json").read_text("utf-8")
    except (OSError, ValueError):
        return False


CHECKS = (manifest, weight_files, no_code, side_files)
