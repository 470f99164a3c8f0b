"""Runs every check on a checkpoint and gathers the report."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocria_compress.bundle.verify import checks_config, checks_files, checks_tensors, checks_values, serving
from ocria_compress.bundle.verify import processor as processor_check
from ocria_compress.bundle.verify.context import MANIFEST, Context
from ocria_compress.bundle.verify.locate import find_model
from ocria_compress.bundle.verify.reader import Folder, read_json
from ocria_compress.bundle.verify.report import Check, Report, State, failed, not_run
from ocria_compress.errors import OcriaError, nearest

STATIC: tuple[Callable[[Context], Check], ...] = (
    *checks_files.CHECKS,
    *checks_config.CHECKS,
    *checks_tensors.CHECKS,
    *checks_values.CHECKS,
)
"""The checks that read files only, in order. A new one is a function more in one of these lists."""

NEED_SOUND_FILES = frozenset(
    f for f in STATIC if f.__module__ != checks_files.__name__ and f.__name__ not in ("config", "quantization_config")
)

NAMES = (
    *(check.__name__.replace("_", "-") for check in STATIC),
    processor_check.NAME,
    serving.LOADS,
    serving.MODULES,
    serving.KV,
    serving.READS,
    serving.RECOVERY,
)
"""What `--allow-not-run` takes."""

COUNT = 3
"""Pages read in vLLM unless told otherwise."""

_LONGEST = 2048
"""Tokens a page may take where its reference does not say how long it is."""


@dataclass
class Options:
    """What is asked of a verification.

    Attributes:
        source: the model it was made from; None: as the manifest names it.
        static: leave vLLM out.
        vllm_python: vLLM's interpreter; None: found as everywhere.
        pages: a page set, by folder or name.
        count: how many of its pages are read.
        allow_not_run: names of checks that may be not run.
        log_folder: where vLLM's logs are kept; None: a temporary folder that is kept only if a vLLM check fails.
        show: see `Context.show`.
        worker: makes the vLLM worker; None: the real one.
    """

    source: str | None = None
    static: bool = False
    vllm_python: Path | None = None
    pages: str = "eval"
    count: int = COUNT
    allow_not_run: tuple[str, ...] = ()
    log_folder: Path | None = None
    show: Callable[[str, int], tuple[Callable[[int], None], Callable[[], None]]] | None = None
    worker: serving.Factory | None = None


def verify(checkpoint: Path, options: Options | None = None) -> Report:
    """Proves a quantized checkpoint.

    Args:
        checkpoint: its folder.
        options: what to check it against, and how much.

    Raises:
        OcriaError: there is no checkpoint there, a named source or page set does not exist, or `allow_not_run` names
            no check.
    """
    options = options or Options()
    for name in options.allow_not_run:
        if name not in NAMES:
            raise OcriaError(f"there is no check '{name}'", where="--allow-not-run", fix=nearest(name, list(NAMES)))
    ctx = open_checkpoint(checkpoint, options)
    given = options.source or ctx.model_named("source")
    report = Report(str(checkpoint), given, allowed=frozenset(options.allow_not_run))
    try:
        pages = _pages(options)
        report.checks += static_checks(ctx)
        image = pages[0].image if pages else None
        folders = [ctx.result.path, *([reference] if (reference := _reference(ctx)) else [])]
        looked = processor_check.look(folders, image) if image is not None and not ctx.result.config_problem else None
        report.checks.append(processor_check.processor(ctx, image, looked))
        if options.static:
            report.notes.append("--static: vLLM was left out; this says nothing about how the checkpoint reads pages")
        else:
            _in_vllm(ctx, report, options, pages, looked)
    finally:
        for folder in (ctx.result, ctx.source, ctx.base):
            if folder is not None:
                folder.close()
    return report


def open_checkpoint(path: Path, options: Options) -> Context:
    """Reads the folder, its manifest, and its source if that is to be found.

    Raises:
        OcriaError: there is no checkpoint, or the source that was named explicitly does not exist.
    """
    if not path.is_dir():
        what = "a checkpoint is a folder, not a file" if path.exists() else "there is no such folder"
        raise OcriaError(what, where=str(path), fix="give the folder that `ocria-compress quantize` made")
    try:
        if not any(path.glob("*.safetensors")) and not (path / "config.json").exists():
            raise OcriaError("this folder holds no model", where=str(path), fix="give a folder with config.json")
        ctx = Context(Folder.read(path), show=options.show)
    except OSError as error:
        what = f"this folder cannot be read: {error.strerror}"
        raise OcriaError(what, where=str(path), fix="check its permissions") from error
    if (path / MANIFEST).exists():
        ctx.manifest, ctx.manifest_problem = read_json(path / MANIFEST)
    if options.source is not None:
        ctx.source = Folder.read(find_model(options.source))
    else:
        ctx.source, ctx.source_problem = _named(ctx, "source")
    if ctx.manifest.get("base"):
        ctx.base, _ = _named(ctx, "base")
    return ctx


def _named(ctx: Context, key: str) -> tuple[Folder | None, str]:
    given, entry = ctx.model_named(key), ctx.manifest.get(key)
    if given is None or not isinstance(entry, dict):
        return None, "it is not known what this was made from: give --source MODEL"
    revision, folder = entry.get("revision"), entry.get("folder")
    if isinstance(folder, str) and Path(folder).is_dir():  # the model as given may be relative to another place
        given = folder
    try:
        return Folder.read(find_model(given, revision if isinstance(revision, str) else None)), ""
    except OcriaError as error:
        why = error.fix or error.what
        return None, f"the model it was made from, {given}, is not here: {why}, or give --source MODEL"


def static_checks(ctx: Context) -> list[Check]:
    """Every check that reads files only; a check that needs what another found broken is not run."""
    done: list[Check] = []
    for check in STATIC:
        name = check.__name__.replace("_", "-")
        if check in NEED_SOUND_FILES and (ctx.result.problems or ctx.result.config_problem):
            done.append(not_run(name, "the weight files or config.json are not sound; see there"))
            continue
        try:
            done.append(check(ctx))
        except OSError as error:
            done.append(not_run(name, f"a file cannot be read: {error}; check the disk and the permissions"))
        except (TypeError, ValueError, KeyError, AttributeError) as error:  # JSON of another shape than the format's
            done.append(failed(name, f"the folder's JSON is malformed: {type(error).__name__}: {error}"))
    return done


def _reference(ctx: Context) -> Path | None:
    """Whose processor the checkpoint's is compared with: the base's, if the source had lost its own."""
    taken = {str(entry) for entry in ctx.manifest.get("taken_from_base") or []}
    if ctx.base is not None and any(entry.endswith((".json", ".jinja", ".txt")) for entry in taken):
        return ctx.base.path
    return ctx.source.path if ctx.source is not None else None


def _pages(options: Options) -> list[Any]:
    from ocria_compress.pages.pageset import PageSet

    pages = PageSet.load(options.pages)
    return list(pages.take(min(options.count, len(pages.pages)) if options.count > 0 else options.count).pages)


def _in_vllm(
    ctx: Context, report: Report, options: Options, pages: list[Any], looked: list[dict[str, Any]] | str | None
) -> None:
    blocked = [c.name for c in report.of(State.FAILED) if c.name in ("weight-files", "no-code", "config", "processor")]
    if ctx.result.config_problem or ctx.result.problems or "no-code" in blocked:
        why = f"{blocked[0]} failed; vLLM is not shown such a folder"
        report.checks += [not_run(name, why) for name in (serving.LOADS, serving.READS, serving.RECOVERY)]
        return
    prompts = [entry.get("prompt") for entry in looked] if isinstance(looked, list) else []
    if not prompts or not prompts[0]:
        why = "there is no prompt: the processor check says why"
        report.checks += [not_run(name, why) for name in (serving.LOADS, serving.READS, serving.RECOVERY)]
        return
    folder = options.log_folder or Path(tempfile.mkdtemp(prefix="ocria-verify-"))
    make = options.worker or _factory(options.vllm_python)
    with ctx.progress("reading pages in vLLM", len(pages) * (2 if ctx.source else 1)) as advance:
        original = None
        if ctx.source is not None:
            asked = _requests(pages, prompts[-1] or prompts[0])
            original = serving.read(make, ctx.source.path, folder / "original.log", asked, advance)
        result = serving.read(make, ctx.result.path, folder / "result.log", _requests(pages, prompts[0]), advance)
    found, report.pages = serving.checks(ctx, pages, original, result)
    report.checks += found
    if all(check.state is State.PASSED for check in found) and options.log_folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    elif any(folder.glob("*.log")):
        report.notes.append(f"vLLM's logs are kept in {folder}")


def _factory(python: Path | None) -> serving.Factory:
    from ocria_compress.serving.client import VllmWorker

    return lambda model, log: VllmWorker(model, python=python, log=log)


def _requests(pages: Iterable[Any], prompt: str) -> list[Any]:
    from ocria_compress.serving.protocol import PageRequest

    # A token is at least a character, as good as always: twice the reference leaves room to tell looping from length.
    return [
        PageRequest(p.id, str(p.image), prompt, 256 + 2 * len(p.reference) if p.reference is not None else _LONGEST)
        for p in pages
    ]
