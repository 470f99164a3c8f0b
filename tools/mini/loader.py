"""Training batches: a thread collects pages from the workers, packs them and writes them into pinned memory."""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import Any, NamedTuple

from tools.mini.packing import Arrays, Counts, Page, Shapes, fill, pack
from tools.mini.workers import LoaderError, Workers

FIRST_SEED = 10**12
SEEDS_OF_A_RUN = 10**9
HELD_OUT_SEED = 900_000_000_000

POOL = 1.6
"""Batches' worth of tokens that packing chooses from."""


class Ready(NamedTuple):
    """A batch on the host: its arrays' tensors, which buffer they lie in, what it holds, and the loader's state."""

    tensors: dict[str, Any]
    buffer: int
    counts: Counts
    state: dict[str, Any]


class Loader:
    """Batches without end, the same ones for the same seed and levels.

    Args:
        workers: make the pages; nothing else may use them once `start` was called.
        shapes: of a batch.
        seed: of the run: its pages are `FIRST_SEED + seed * SEEDS_OF_A_RUN` and on, never one twice.
    """

    def __init__(self, workers: Workers, shapes: Shapes, seed: int) -> None:
        self.workers, self.shapes, self.level = workers, shapes, 0.0
        self._first = FIRST_SEED + seed * SEEDS_OF_A_RUN
        self._slots = workers.free
        self._most = max(4, min(self._slots - 2 * len(workers), self._slots * 3 // 4))
        self._ready: queue.Queue[Ready | Exception] = queue.Queue()
        self._empty: queue.Queue[int] = queue.Queue()
        self._buffers: list[tuple[Arrays, dict[str, Any]]] = []
        self._next = 0
        self._asked: deque[int] = deque()
        self._again: deque[tuple[int, float]] = deque()
        self._arrived: dict[int, Page | None] = {}
        self._pool: list[Page] = []
        self._waiting = self._tokens = 0
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, pin: bool, state: dict[str, Any] | None = None, buffers: int = 3) -> None:
        """Starts the thread.

        Args:
            pin: page-locked memory, for copies to a GPU that do not wait.
            state: of a batch (`Ready.state`): the first batch is the one that followed it.
            buffers: batches on the host.
        """
        import torch

        if state:
            self._next = int(state["next"])
            self._again = deque((int(number), float(level)) for number, level in state["left"])
            self._waiting = len(self._again)
        for number in range(buffers):
            tensors = {
                name: torch.zeros(shape, dtype=getattr(torch, dtype), pin_memory=pin)
                for name, (shape, dtype) in Arrays.layout(self.shapes).items()
            }
            self._buffers.append((Arrays(**{name: t.numpy() for name, t in tensors.items()}), tensors))
            self._empty.put(number)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def next(self, timeout: float = 300) -> Ready:
        """The next batch; give its buffer back with `release` when it is copied.

        Raises:
            LoaderError: the workers have died, or no batch came in time.
        """
        try:
            ready = self._ready.get(timeout=timeout)
        except queue.Empty:
            raise LoaderError(f"no batch in {timeout} s; failures so far: {dict(self.workers.failures)}") from None
        if isinstance(ready, Exception):
            raise LoaderError(f"the loader has stopped: {ready}") from ready
        return ready

    def release(self, ready: Ready) -> None:
        """Lets the buffer of a batch be overwritten."""
        self._empty.put(ready.buffer)

    def stop(self) -> None:
        """Ends the thread and the workers."""
        self._stopping = True
        if self._thread is not None:
            self._thread.join(timeout=10)
        self.workers.stop()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._ask()
                self._collect()
        except Exception as error:
            self._ready.put(error)

    def _ask(self) -> None:
        """Hands out as many pages as there are slots for."""
        while self.workers.free:
            if self._again:
                number, level = self._again.popleft()
            else:
                number, level = self._next, self.level
                self._next += 1
            self._asked.append(number)
            self.workers.ask(number, self._first + number, level)

    def _collect(self) -> None:
        """Waits for a page, and takes those that are next in turn into the pool."""
        result = self.workers.next(timeout=1)
        if result is None:
            return
        number, page = result
        if number < 0:  # a held-out page that came too late
            if page is not None:
                self.workers.release(page)
            return
        self._arrived[number] = page
        while self._asked and self._asked[0] in self._arrived:
            page = self._arrived.pop(self._asked.popleft())
            if page is None:
                continue
            self._pool.append(page)
            self._tokens += page.tokens
            if self._full():
                self._batch()

    def _full(self) -> bool:
        return len(self._pool) >= self._most or self._tokens >= POOL * self.shapes.tokens

    def _batch(self) -> None:
        """Packs a batch from the pool, as soon as there is an empty buffer."""
        buffer = None
        while buffer is None and not self._stopping:
            try:
                buffer = self._empty.get(timeout=1)
            except queue.Empty:
                continue
        if buffer is None:
            return
        rows = pack(self._pool, min(self._waiting, len(self._pool)), self.shapes)
        arrays, tensors = self._buffers[buffer]
        chosen = {i for row in rows for i in row}
        counts = fill(arrays, [[self._pool[i] for i in row] for row in rows], self.shapes, self.workers.requests)
        for i in chosen:
            self.workers.release(self._pool[i])
        self._pool = [page for i, page in enumerate(self._pool) if i not in chosen]
        self._waiting = len(self._pool)
        self._tokens = sum(page.tokens for page in self._pool)
        # Pages left over by the batch before a kill are asked for first, so all of them are in the pool by now.
        following = self._asked[0] if self._asked else self._next
        left = [[page.number, page.level] for page in self._pool]
        self._ready.put(Ready(tensors, buffer, counts, {"next": following, "left": left}))


def held_out(workers: Workers, shapes: Shapes, pages: int) -> list[tuple[Arrays, Counts]]:
    """Batches of held-out pages (of the training split, other seeds), every one of them in some batch."""
    left = workers.make([HELD_OUT_SEED + i for i in range(pages)], level=1.0)
    batches = []
    while left:
        rows = pack(left, 0, shapes)
        chosen = {i for row in rows for i in row}
        if not chosen:
            break
        arrays = Arrays.empty(shapes)
        batches.append((arrays, fill(arrays, [[left[i] for i in row] for row in rows], shapes, workers.requests)))
        left = [page for i, page in enumerate(left) if i not in chosen]
    return batches
