"""Writes the weights of a plan: each tensor is read, quantized or copied, and written; the model is never loaded.

Memory is one slice per worker thread (2 MiB to quantize, 32 MiB to copy), whatever the size of the model. Reads,
torch's arithmetic and writes all let go of Python's lock, so one thread per core keeps the disk and the cores busy.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.model.checkpoint import read_into
from ocria_compress.model.writer import ShardFile, writing
from ocria_compress.pages import torchvision_cpu
from ocria_compress.quantize.fp8 import largest_magnitude, not_finite, quantize_rows, weight_args
from ocria_compress.quantize.plan import Plan, TensorPlan
from ocria_compress.quantize.schemes import torch_dtype

if TYPE_CHECKING:
    from torch import Tensor

SLICE_BYTES = 2 << 20
"""Bytes of a tensor that are quantized at a time; small enough for the arithmetic to stay near the cache."""

COPY_BYTES = 32 << 20
"""Bytes that are copied at a time; large: beside a running import, every step of a copy waits for Python's lock."""

MOST_THREADS = 16
"""More do not help: by then the disk is the limit."""

Progress = Callable[[int, str], None]
"""Called with bytes of source weights done since the last call, and the tensor's name."""


class Journal:
    """The finished tensors of a run, each with a checksum of what was written for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[str, int] = {}
        self._lock = threading.Lock()
        if path.is_file():
            for line in path.read_bytes().split(b"\n"):
                try:
                    entry = json.loads(line)
                    self.done[entry["tensor"]] = entry["crc32"]
                except (ValueError, KeyError, TypeError):
                    continue  # a line that a kill cut short: its tensor is done again
        with writing(path):
            self._file = path.open("ab")
            self._append(b"")

    def add(self, tensor: str, crc: int) -> None:
        """Records a tensor as finished."""
        with self._lock:
            self.done[tensor] = crc
            with writing(self.path):
                self._append(json.dumps({"tensor": tensor, "crc32": crc}).encode())

    def _append(self, line: bytes) -> None:
        self._file.write(b"\n" + line)  # a new line first: the last one may have been cut short
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def write_weights(
    plan: Plan, folder: Path, state: Path, extra: dict[str, bytes], on_progress: Progress, threads: int | None = None
) -> dict[str, str]:
    """Writes every weight file of a plan into `folder`, continuing where a killed run stopped.

    Args:
        plan: what to write.
        folder: where the weight files go.
        state: where the journal of finished tensors is kept.
        extra: the bytes of tensors that calibration measured (`...k_scale`), by name.
        on_progress: told how many bytes of source weights are done.
        threads: worker threads; one per core if None.

    Returns:
        The SHA-256 of each weight file.

    Raises:
        OcriaError: a weight is not finite, a source file is damaged, the disk is full.
    """
    import torch

    journal = Journal(state / "journal.jsonl")
    files = {name: ShardFile(folder / name, (o for t in ts for o in t.outputs)) for name, ts in plan.shards.items()}
    stop = threading.Event()
    threads = threads or min(MOST_THREADS, len(os.sched_getaffinity(0)))
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the threads are ours: one per tensor, not several per operation
    try:
        jobs = [_Job(plan, t, files[t.shard], journal, extra, stop, on_progress) for t in plan.tensors]
        _run(jobs, threads, stop)
        return _sync_and_hash(files)
    finally:
        torch.set_num_threads(before)
        for file in files.values():
            file.close()
        journal.close()


def _run(jobs: list[_Job], threads: int, stop: threading.Event) -> None:
    """Runs all jobs; copies fill the seconds that importing the arithmetic takes."""
    jobs = _spread(jobs)
    copies = [job for job in jobs if job.tensor.scheme == "keep"]
    others = [job for job in jobs if job.tensor.scheme != "keep"]
    with ThreadPoolExecutor(threads, thread_name_prefix="quantize") as pool:
        pending = {pool.submit(job.run) for job in copies}
        try:
            if others:
                torchvision_cpu.activate()  # compressed-tensors imports transformers, and that imports torchvision
                weight_args()
                pending |= {pool.submit(job.run) for job in others}
            while pending:
                done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except BaseException:
            stop.set()  # also on Ctrl-C: tensors in work are dropped, finished ones are in the journal
            for future in pending:
                future.cancel()
            raise


def _spread(jobs: list[_Job]) -> list[_Job]:
    """Jobs in turn from each file: two threads that write to one file wait for each other in the kernel."""
    by_file: dict[str, list[_Job]] = {}
    for job in jobs:
        by_file.setdefault(job.tensor.shard, []).append(job)
    return [job for turn in zip_longest(*by_file.values()) for job in turn if job is not None]


class _Job:
    """One tensor of the plan."""

    def __init__(
        self, plan: Plan, tensor: TensorPlan, file: ShardFile, journal: Journal, extra: dict[str, bytes],
        stop: threading.Event, on_progress: Progress,
    ) -> None:  # fmt: skip
        self.plan, self.tensor, self.file, self.journal = plan, tensor, file, journal
        self.extra, self.stop, self.on_progress = extra, stop, on_progress
        self.stored = plan.source.tensors[tensor.name]
        self.crc = 0

    def run(self) -> None:
        name = self.tensor.name
        if name in self.journal.done and self._written_crc() == self.journal.done[name]:
            self.on_progress(self.stored.nbytes, name)
            return
        if self.tensor.scheme == "keep":
            self._copy()
        else:
            self._quantize()
        for out in self.tensor.outputs:
            if out.name in self.extra:
                self._write(out.name, memoryview(self.extra[out.name]), 0)
        self.journal.add(name, self.crc)

    def _write(self, name: str, data: memoryview, at: int) -> None:
        self.crc = zlib.crc32(data, self.crc)
        self.file.write(name, data, at)

    def _written_crc(self) -> int:
        """The checksum of what lies in the file now, in the order in which `run` writes it."""
        crc, weight = 0, self.tensor.outputs[0]
        step = self._row_bytes() * self._rows_per_slice() * weight.nbytes // max(1, self.stored.nbytes)
        for out in self.tensor.outputs:
            view, at = memoryview(bytearray(min(out.nbytes, step) or out.nbytes)), 0
            while at < out.nbytes:
                part = view[: out.nbytes - at]
                self.file.read(out.name, part, at)
                crc = zlib.crc32(part, crc)
                at += len(part)
        return crc

    def _row_bytes(self) -> int:
        return max(1, self.stored.nbytes // max(1, self.stored.shape[0])) if self.stored.shape else self.stored.nbytes

    def _rows_per_slice(self) -> int:
        size = COPY_BYTES if self.tensor.scheme == "keep" else SLICE_BYTES
        return max(1, size // self._row_bytes())

    def _slices(self):
        """The tensor's rows, a slice at a time, as (first row, torch tensor, its bytes); one buffer, used again."""
        import torch

        stored, step = self.stored, self._rows_per_slice()
        rows, width = (stored.shape[0], stored.shape[1:]) if stored.shape else (1, ())
        buffer = bytearray(min(step, rows) * self._row_bytes()) or bytearray(1)
        with stored.path.open("rb", buffering=0) as file:
            for first in range(0, rows, step):
                if self.stop.is_set():
                    raise _Stopped
                count = min(step, rows - first)
                view = memoryview(buffer)[: count * self._row_bytes()]
                read_into(file.fileno(), view, stored.offset + first * self._row_bytes(), stored.path)
                yield first, torch.frombuffer(view, dtype=torch_dtype(stored.dtype)).view(count, *width), view
                self.on_progress(len(view), self.tensor.name)

    def _copy(self) -> None:
        for first, rows, view in self._slices():
            _refuse_not_finite(rows, self.tensor.name)
            self._write(self.tensor.outputs[0].name, view, first * self._row_bytes())

    def _quantize(self) -> None:
        import torch

        weight, scale = self.tensor.outputs[:2]
        row = weight.shape[1]
        scales = []
        for first, rows_OI, _ in self._slices():
            quantized_OI, scale_O1 = quantize_rows(rows_OI, self.tensor.name, check=first == 0)
            scales.append(scale_O1)
            self._write(weight.name, _bytes(quantized_OI), first * row)
        self._write(scale.name, _bytes(torch.cat(scales)), 0)


class _Stopped(Exception):
    """Another tensor failed, or the user interrupted."""


def _bytes(tensor: Tensor) -> memoryview:
    import torch

    array: Any = tensor.contiguous().view(torch.uint8).numpy().reshape(-1)
    return memoryview(array)


def _refuse_not_finite(rows: Tensor, name: str) -> None:
    """NaN and infinity survive a maximum of magnitudes, which is far cheaper than testing every element."""
    import torch

    floats = rows.dtype.is_floating_point and rows.dtype.itemsize > 1 and rows.numel() > 0
    if floats and not torch.isfinite(largest_magnitude(rows.view(1, -1))).all():
        raise not_finite(name)


def _sync_and_hash(files: dict[str, ShardFile]) -> dict[str, str]:
    """Waits for the disk and hashes at the same time: what was just written is still in memory."""
    with ThreadPoolExecutor(2 * len(files) or 1) as pool:
        syncs = [pool.submit(file.sync) for file in files.values()]
        hashes = {name: pool.submit(hash_file, file.path) for name, file in files.items()}
        for sync in syncs:
            sync.result()
        return {name: digest.result() for name, digest in hashes.items()}


def hash_file(path: Path) -> str:
    """A file's SHA-256, in hexadecimal."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
