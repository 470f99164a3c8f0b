"""Worker processes that make pages: image to patches, answer to ids, into slots of shared memory."""

from __future__ import annotations

import importlib
import mmap
import multiprocessing
import os
import queue
import signal
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tools.mini.packing import Page, Shapes
from tools.mini.patches import VALUES, patchify, resized
from tools.mini.prompts import Requests, load_tokenizer

PAGE_SECONDS = 30
"""A page that takes longer is given up."""

SHOWN = 5
"""How many failures are printed in full; all are counted."""


class LoaderError(RuntimeError):
    """There are no more pages."""


class Task(NamedTuple):
    """A page to be made."""

    number: int
    seed: int
    level: float
    slot: int


class Result(NamedTuple):
    """A page that was made, or why not: then `kind` is the reason and `answer` more of it."""

    number: int
    slot: int
    made: bool
    rows: int
    columns: int
    kind: str
    answer: bytes


def load_source(name: str) -> Any:
    """The function behind "package.module:function"."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def _too_slow(*_: Any) -> None:
    raise TimeoutError(f"more than {PAGE_SECONDS} s for one page")


def _work(
    index: int, current: np.ndarray, slots: np.ndarray, shapes: Shapes, base: Path, requests: Requests, source: str,
    tasks: Any, done: Any,
) -> None:  # fmt: skip
    """Makes pages until it is killed or its trainer is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, _too_slow)
    trainer = os.getppid()
    tokenizer = load_tokenizer(base)
    make, problem = None, ""
    try:
        make = load_source(source)
    except Exception:
        problem = traceback.format_exc(limit=-3)
    while os.getppid() == trainer:  # a killed trainer would leave its workers waiting for ever
        try:
            task = tasks.get(timeout=5)
        except queue.Empty:
            continue
        current[index] = task.number
        try:
            signal.setitimer(signal.ITIMER_REAL, PAGE_SECONDS)
            if make is None:
                raise ImportError(problem)
            result = _made(task, slots[task.slot], make, tokenizer, requests, shapes)
        except Exception as error:  # one bad page must not end a run
            text = traceback.format_exc(limit=-4)
            result = Result(task.number, task.slot, False, 0, 0, type(error).__name__, text.encode())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        done.put(result)
        current[index] = -1


def _made(task: Task, slot: np.ndarray, make: Any, tokenizer: Any, requests: Requests, shapes: Shapes) -> Result:
    pixels, kind, answer = make(task.seed, task.level)
    ids = np.array(tokenizer.encode(answer, add_special_tokens=False).ids, np.int16)
    pixels = resized(pixels)
    height, width = pixels.shape[:2]
    request = requests.kinds[kind]
    tokens = height * width // 1024 + len(request.head) + len(request.tail) + len(ids) + 1
    if tokens > min(shapes.longest, shapes.length) or height * width // 256 > shapes.longest_patches:
        return Result(task.number, task.slot, False, 0, 0, "too long", b"")
    rows, columns = patchify(pixels, slot)
    return Result(task.number, task.slot, True, rows, columns, kind, ids.tobytes())


class Workers:
    """Processes that turn tasks into pages.

    They are forked: make them before CUDA is touched and before any thread is started.

    Args:
        source: "package.module:function", `(seed, level) -> (pixels, kind, answer)` as in source.py.
        base: the folder of tokenizer and chat template.
        shapes: for the largest page.
        count: processes; slots: pages in shared memory at a time.
    """

    def __init__(self, source: str, base: Path, shapes: Shapes, count: int, slots: int) -> None:
        context = multiprocessing.get_context("fork")
        self.requests = Requests.of(base)
        size = shapes.longest_patches * VALUES
        memory = np.frombuffer(mmap.mmap(-1, slots * size), np.uint8)
        self._slots = memory.reshape(slots, shapes.longest_patches, VALUES)
        self._free = list(range(slots))
        self._current = np.frombuffer(mmap.mmap(-1, count * 8), np.int64)
        self._current[:] = -1
        self._tasks, self._done = context.Queue(), context.Queue()
        self._out: dict[int, Task] = {}
        self._buried: set[int] = set()
        self.failures: Counter[str] = Counter()
        shared = (self._current, self._slots, shapes, base, self.requests, source, self._tasks, self._done)
        self._processes = [context.Process(target=_work, args=(i, *shared), daemon=True) for i in range(count)]
        for process in self._processes:
            process.start()

    def __len__(self) -> int:
        return len(self._processes)

    @property
    def free(self) -> int:
        """Slots without a page."""
        return len(self._free)

    def ask(self, number: int, seed: int, level: float) -> None:
        """Hands out a page; there must be a free slot."""
        task = Task(number, seed, level, self._free.pop())
        self._out[number] = task
        self._tasks.put(task)

    def next(self, timeout: float) -> tuple[int, Page | None] | None:
        """A page's number and the page (None if it could not be made); None if none is finished in time.

        Raises:
            LoaderError: every worker has died.
        """
        try:
            result = self._done.get(timeout=timeout)
        except queue.Empty:
            return self._bury()
        task = self._out.pop(result.number, None)
        if task is None:  # given up before
            return None
        if result.made:
            answer = np.frombuffer(result.answer, np.int16)
            page = Page(
                task.number, task.level, result.rows, result.columns, result.kind, answer,
                self._slots[task.slot], task.slot,
            )  # fmt: skip
            return task.number, page.measured(self.requests)
        self._failed(result.kind, result.answer.decode(errors="replace"), task)
        return task.number, None

    def _failed(self, reason: str, text: str, task: Task) -> None:
        self._free.append(task.slot)
        self.failures[reason] += 1
        if text and sum(n for kind, n in self.failures.items() if kind != "too long") <= SHOWN:
            print(f"page of seed {task.seed}, level {task.level:.2f} left out: {text}", flush=True)

    def _bury(self) -> tuple[int, None] | None:
        """Gives up the page of a worker that has died."""
        for index, process in enumerate(self._processes):
            if index in self._buried or process.is_alive():
                continue
            self._buried.add(index)
            print(f"worker {index} has died (exit code {process.exitcode})", flush=True)
            task = self._out.pop(int(self._current[index]), None)
            if task is not None:
                self._failed("worker died", "its worker died\n", task)
                return task.number, None
        if len(self._buried) == len(self._processes):
            raise LoaderError("every worker process has died")
        return None

    def release(self, page: Page) -> None:
        """Frees a page's slot: its patches will be overwritten."""
        self._free.append(page.slot)

    def make(self, seeds: list[int], level: float, timeout: float = 300) -> list[Page]:
        """Pages of these seeds, copied out of shared memory, without those that fail; before anything else is asked."""
        ends = time.monotonic() + timeout
        found: list[Page] = []
        asked = finished = 0
        while finished < len(seeds) and time.monotonic() < ends:
            while asked < len(seeds) and self._free and asked - finished < 4 * len(self):
                self.ask(-1 - asked, seeds[asked], level)
                asked += 1
            result = self.next(timeout=2)
            if result is None:
                continue
            finished += 1
            if result[1] is not None:
                page = result[1]
                page.patches = page.patches[: page.count].copy()
                self._free.append(page.slot)
                found.append(page)
        return sorted(found, key=lambda page: -page.number)

    def stop(self) -> None:
        """Ends the processes."""
        self._tasks.cancel_join_thread()
        for process in self._processes:
            process.kill()
