"""Checks in real vLLM: it loads the checkpoint as it is meant, and reads pages with it as with the original.

The worker is handed in as a factory, so that the judgement can be tested without vLLM.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ocria_compress.bundle.verify import names
from ocria_compress.bundle.verify.context import Context
from ocria_compress.bundle.verify.layouts import to_float
from ocria_compress.bundle.verify.report import Check, State, failed, judged, not_run
from ocria_compress.errors import OcriaError

LOADS, MODULES, KV, READS, RECOVERY = "vllm-loads", "vllm-modules", "vllm-kv-scales", "vllm-reads", "recovery"

DEFAULT_RECOVERY = 95.0
"""Percent, where the manifest's recipe has no gate."""

_KNOWN_WORDS = 0.5
"""Share of a page's longer words that must turn up in a reading; a random page model finds none."""

_FEW_WORDS = 8
"""A page with fewer longer words is not judged by them: a single misread word would fail a page of one word."""

_BAD_LINES = (
    (re.compile(r"weights? .*not initialized|not found in params|(unexpected|missing) (key|weight)", re.I), "weights"),
    (re.compile(r"scaling factor 1\.0", re.I), "KV scales"),
    (re.compile(r"global scale is different", re.I), "fused scales"),
)

Factory = Callable[[Path, Path], Any]
"""(model folder, log file) -> a `VllmWorker`, which is a context manager."""


@dataclass
class Reading:
    """What vLLM did with one model.

    Attributes:
        texts: page id -> (text, finish reason).
        described: what the worker says vLLM made of the model; None if it could not say.
        log: the lines of vLLM's log.
        error: why there is no reading.
        started: whether vLLM itself was found; False means that no model could have been read.
    """

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    described: Any = None
    log: list[str] = field(default_factory=list)
    error: OcriaError | None = None
    started: bool = True


def read(make: Factory, model: Path, log: Path, requests: list[Any], advance: Callable[[int], None]) -> Reading:
    """Loads a model in vLLM and reads pages with it; errors are kept, not raised."""
    reading = Reading()
    try:
        worker = make(model, log)
    except OcriaError as error:
        return Reading(error=error, started=False)
    try:
        with worker as running:
            for result in running.read_pages(requests):
                reading.texts[result.id] = (result.text, result.finish_reason)
                advance(1)
            reading.described = running.describe()
    except OcriaError as error:
        reading.error = error
    if log.exists():
        reading.log = log.read_text("utf-8", errors="replace").splitlines()
    return reading


def checks(ctx: Context, pages: list[Any], original: Reading | None, result: Reading) -> tuple[list[Check], list[dict]]:
    """All vLLM checks, and a row per page for the report.

    Args:
        pages: with `id` and `reference`.
        original: the source's reading; None if the source is not to be found.
        result: the checkpoint's.
    """
    kv = bool(ctx.quantization.get("kv_cache_scheme"))
    wanted = [LOADS, MODULES, *([KV] if kv else []), READS, RECOVERY]
    if result.error is not None and (not result.started or (original is not None and original.error is not None)):
        why = "vLLM cannot read here, not even the original: " if result.started else ""
        why += _said(result.error)
        return [not_run(name, why) for name in wanted], []
    if result.error is not None:
        what = f"vLLM cannot read with this checkpoint: {_said(result.error)}"
        first = failed(LOADS, what, [result.error.where] if result.error.where else [])
        return [first, *(not_run(name, f"needs {LOADS}; see there") for name in wanted[1:])], []
    rows = [_row(page, original, result) for page in pages]
    found = [_loads(result), _modules(ctx, result), *([_kv(ctx, result)] if kv else []), _reads(rows, original)]
    return [*found, _recovery(ctx, rows, original)], rows


def _said(error: OcriaError) -> str:
    return error.what + (f"; {error.fix}" if error.fix else "")


def _loads(result: Reading) -> Check:
    """vLLM's log has none of the lines that say a weight or scale did not arrive."""
    lines = dict.fromkeys(line.strip()[:300] for line in result.log)
    problems = [f"{what}: {line}" for line in lines for bad, what in _BAD_LINES if bad.search(line)]
    versions = getattr(result.described, "versions", None) or {}
    with_ = f"vLLM {versions['vllm']}" if "vllm" in versions else "vLLM"
    right = f"{with_} loads it, with no warning about weights or scales"
    return judged(LOADS, problems, right, "vLLM loads it, but warns")


def _modules(ctx: Context, result: Reading) -> Check:
    """vLLM fuses what this checker takes as fused, and quantizes exactly the modules that are quantized here."""
    said = result.described
    if said is None:
        return not_run(MODULES, "the worker did not describe the model")
    mapping = {fused: list(members) for fused, members in said.packed_modules_mapping.items()}
    problems = [
        f"vLLM fuses {mapping.get(fused)} as {fused}, this checker takes {names.FUSED.get(fused)}"
        for fused in sorted(set(mapping) | set(names.FUSED))
        if mapping.get(fused) != names.FUSED.get(fused)
    ]
    quantized = (m for m in ctx.quantized if not names.is_mtp(m))
    ours, theirs = set(names.vllm_modules(quantized)), set(said.layer_kernels)
    problems += [f"{module} is quantized here, and vLLM serves it unquantized" for module in sorted(ours - theirs)]
    problems += [f"{module} is not quantized here, and vLLM serves it quantized" for module in sorted(theirs - ours)]
    right = f"{len(ours)} quantized modules, the same as here"
    return judged(MODULES, problems, right, "vLLM's view differs from the checker's")


def _kv(ctx: Context, result: Reading) -> Check:
    """The KV scales in vLLM's attention layers are those of the checkpoint."""
    cache = getattr(result.described, "kv_cache", None)
    if not cache:
        return not_run(KV, "the worker did not say what KV scales it has")
    problems = []
    for stored, tensor in ctx.by_name.items():
        module, parameter = names.split(stored)
        if parameter not in names.KV_SCALES or tensor.nbytes == 0:
            continue
        here = float(to_float(ctx.result.whole(tensor), tensor.dtype).max())
        served = cache.get(f"{names.vllm_module(module)}.attn", {}).get(parameter)
        if served is None or abs(served - here) > 1e-3 * abs(here):
            at = "without it" if served is None else f"{served:.4g}"
            problems.append(f"{stored} is {here:.4g}, vLLM serves {at}")
    right = f"vLLM serves {2 * len(ctx.full_attention)} scales of the checkpoint"
    return judged(KV, problems, right, "KV scales did not arrive")


def words(text: str) -> set[str]:
    """The longer words of a text, in lower case, without markup."""
    return {word.lower() for word in re.findall(r"[^\W_]{4,}", re.sub(r"<[^>]*>", " ", text))}


def loops(text: str) -> bool:
    """Whether a text ends in one piece repeated over and over: at least 6 times and 120 characters."""
    tail = text.rstrip()[-2000:]
    for size in range(1, len(tail) // 6 + 1):
        unit, count = tail[-size:], 1
        while tail.endswith(unit * (count + 1)):
            count += 1
        if count >= 6 and count * size >= 120:
            return True
    return False


def _row(page: Any, original: Reading | None, result: Reading) -> dict[str, Any]:
    from ocria_compress.evaluate.ned import normalized_edit_distance

    row: dict[str, Any] = {"id": page.id, "reference": page.reference}
    for who, reading in (("original", original), ("result", result)):
        text, finish = reading.texts.get(page.id, (None, None)) if reading else (None, None)
        row[who], row[f"{who}_finish"] = text, finish
        row[f"{who}_ned"] = row[f"{who}_words"] = None
        if text is not None and page.reference is not None:
            row[f"{who}_ned"] = normalized_edit_distance(text, page.reference)
            row[f"{who}_words"] = _share(text, page.reference)
    return row


def _share(text: str, reference: str) -> float | None:
    """Share of the reference's longer words that stand in a text; None if it has too few of them to say anything."""
    known = words(reference)
    return len(known & words(text)) / len(known) if len(known) >= _FEW_WORDS else None


def _reading_problem(row: dict[str, Any], who: str) -> str | None:
    text = row[who]
    if not text or not text.strip():
        return "nothing was read"
    if loops(text):
        return "the reading repeats itself without end"
    if row[f"{who}_finish"] == "length":
        return "the reading did not come to an end"
    share = row[f"{who}_words"]
    if share is not None and share < _KNOWN_WORDS:
        return f"only {share:.0%} of the page's words were found"
    return None


def _reads(rows: list[dict[str, Any]], original: Reading | None) -> Check:
    """Each page's reading is not empty, ends, does not loop, and has the words that stand on the page."""
    problems = [f"page {row['id']}: {problem}" for row in rows if (problem := _reading_problem(row, "result"))]
    unread = [row["id"] for row in rows if original and not original.error and _reading_problem(row, "original")]
    if problems and len(unread) == len(rows):
        return not_run(READS, "the original cannot read these pages either: give --pages that it can read", problems)
    known = [row["result_words"] for row in rows if row["result_words"] is not None]
    if not rows or not known:
        return (
            failed(READS, "pages without readings or references", problems)
            if problems
            else not_run(READS, "no page has a reference to find words of: give --pages with references")
        )
    right = f"{len(rows)} pages read; {sum(known) / len(known):.0%} of their words found"
    return judged(READS, problems, right, "it does not read pages")


def gate(ctx: Context) -> float:
    """The least recovery, percent: the recipe's gate, else the default."""
    found: Any = ctx.manifest
    for key in ("recipe", "gates", "recovery", "min"):
        found = found.get(key) if isinstance(found, dict) else None
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else DEFAULT_RECOVERY


def _recovery(ctx: Context, rows: list[dict[str, Any]], original: Reading | None) -> Check:
    """Recovery of 1 - NED over the pages, against the gate."""
    from ocria_compress.evaluate.ned import recovery

    if original is None:
        return not_run(RECOVERY, ctx.source_problem)
    if original.error is not None:
        return not_run(RECOVERY, f"vLLM cannot read with the original: {_said(original.error)}")
    scored = [row for row in rows if row["original_ned"] is not None and row["result_ned"] is not None]
    if not scored:
        return not_run(RECOVERY, "no page has a reference: give --pages with references")
    try:
        got = recovery([row["original_ned"] for row in scored], [row["result_ned"] for row in scored])
    except OcriaError as error:
        return not_run(RECOVERY, _said(error))
    least = gate(ctx)
    change = "" if got.error_change_percent is None else f", {got.error_change_percent:+.0f} % errors"
    detail = f"{got.percent:.2f} % [{got.low:.2f}, {got.high:.2f}] on {got.pages} pages (gate {least:g})"
    detail += f"; NED {got.original:.4f} -> {got.compressed:.4f}{change}"
    state = State.PASSED if got.percent >= least else State.FAILED
    return Check(RECOVERY, state, detail, data={**asdict(got), "gate": least})
