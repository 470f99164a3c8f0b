"""Reads the worker's log: the line that says what went wrong, the kernels vLLM chose, its warnings."""

from __future__ import annotations

import re
import signal
from pathlib import Path

_READ_AT_MOST = 4 << 20
_LEVEL = r"(DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_PREFIX = re.compile(rf"^(?:\([^)]*\)\s*)?(?:{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\]\s?)?")
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b(: |$)")
_KERNEL = re.compile(r"^(Selected \w+ for \w+|Using \w+ for .*(GEMM|linear)|Using .* backend.*)")
# They only say that something else went wrong.
_UNINFORMATIVE = (
    "Engine core initialization failed",
    "Engine process failed",
    "SystemExit",
    "validation error for",
    "Please check the logs",
)

_FIXES = (
    ("Failed to find a kernel", "this scheme cannot run on this device: `ocria-compress doctor` lists what can"),
    ("No available memory for the cache", "leave more memory to the KV cache: shorter max_model_len, or a freer GPU"),
    ("larger than the available KV cache memory", "pass a shorter max_model_len, or set VLLM_CPU_KVCACHE_SPACE (GiB)"),
    ("out of memory", "free some memory, or use a smaller model"),
    ("Free memory on device", "another process holds the GPU's memory; free it or lower gpu_memory_utilization"),
    ("maximum context length", "pass a longer max_model_len, or a smaller page"),
    ("No space left", "free some disk space"),
)


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _READ_AT_MOST))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _split(line: str) -> tuple[str, str]:
    """(level, text) of a line: without process, time and file."""
    match = _PREFIX.match(line)
    return (match.group(1) or "", line[match.end() :].rstrip()) if match else ("", line.rstrip())


def last_error(log: Path) -> str | None:
    """The last line of the log that says what went wrong: an exception, else an error, else whatever came last."""
    lines = [_split(line) for line in _tail(log)]
    texts = [text for _, text in lines if text.strip()]
    exceptions = [t for t in texts if _EXCEPTION.match(t) and not any(u in t for u in _UNINFORMATIVE)]
    errors = [text for level, text in lines if level in ("ERROR", "CRITICAL") and text.strip()]
    for candidates in (exceptions, errors, texts):
        if candidates:
            return candidates[-1].strip()[:600]
    return None


def is_uninformative(message: str) -> bool:
    """The message only says that the log says more."""
    return any(sign in message for sign in ("check the logs", "See root cause", *_UNINFORMATIVE[:3]))


def selected_kernels(log: Path) -> list[str]:
    """What vLLM said about the kernels and backends it chose, in order, each once."""
    found = (text for _, text in map(_split, _tail(log)) if _KERNEL.match(text))
    return list(dict.fromkeys(found))


def warnings(log: Path) -> list[str]:
    """vLLM's warnings, in order, each once."""
    found = (text for level, text in map(_split, _tail(log)) if level == "WARNING")
    return list(dict.fromkeys(found))


def fix_for(message: str) -> str | None:
    """What a user can do about an error of vLLM, where that is known."""
    return next((fix for sign, fix in _FIXES if sign.lower() in message.lower()), None)


def how_it_ended(code: int | None) -> str:
    """An exit status in words."""
    if code is None:
        return "stopped answering"
    if code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed ({name})" + (", most likely because memory ran out" if name == "SIGKILL" else "")
