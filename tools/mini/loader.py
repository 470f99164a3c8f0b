"""Training batches: worker processes render pages into shared memory, a thread puts them together.

A bucket is one page size with its sequence length and batch size. Images are stored clean; the scan effects are drawn
on the GPU (augment.py).
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import queue
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ocria_compress.pages import synth
from ocria_compress.pages.prompt import PROMPT

FIRST_SEED = 10**12
"""Of the training pages; held-out pages begin at 900,000, calibration pages at 2,000,000,000."""

HELD_OUT_SEED = 900_000
MAX_IDS = 320

REQUEST = (
    "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>" + PROMPT + "<|im_end|>\n<|im_start|>assistant\n"
)

STAGES = [
    {"L0": 0.8, "L1": 0.2},
    {"L0": 0.15, "L1": 0.45, "B1": 0.4},
    {"L1": 0.1, "B1": 0.4, "B2": 0.3, "P": 0.2},
    {"L1": 0.03, "B1": 0.06, "B2": 0.11, "P": 0.8},
]
"""The curriculum: how often each bucket is drawn. L: lines, B: blocks, P: a page of any of the seven sizes."""

STAGE_BUCKET = ["L0", "L1", "B1", "P"]
STAGE_ACCURACY = [0.88, 0.90, 0.92]
"""A stage ends when the running accuracy on its own bucket passes this, or its time is up."""


@dataclass(frozen=True)
class Bucket:
    """Pages of one size.

    Attributes:
        height, width: pixels; image_tokens: of one page; length: of a sequence, a multiple of 64 tokens.
        max_tokens: of a transcription; batch: pages in a step; shard: pages that one worker makes at a time.
    """

    height: int
    width: int
    image_tokens: int
    length: int
    max_tokens: int
    batch: int
    shard: int


def make_buckets(batch_scale: float = 1.0, tiny: bool = False) -> dict[str, Bucket]:
    """The buckets of the curriculum; `tiny` ones have batches of 16, for a try on a CPU."""
    sizes = [
        ("L0", 32, 256, 30, 1024, 128),
        ("L1", 64, 384, 40, 768, 64),
        ("B1", 128, 448, 90, 384, 32),
        ("B2", 224, 512, 140, 256, 32),
    ]
    sizes += [(f"P{h}x{w}", h, w, synth.max_tokens(h, w), 128, 16) for h, w in synth.SIZES]
    buckets = {}
    for name, height, width, max_tokens, batch, shard in sizes:
        image_tokens = height * width // 1024
        length = -(-(image_tokens + synth.PROMPT_TOKENS + max_tokens) // 64) * 64
        max_tokens = length - image_tokens - synth.PROMPT_TOKENS
        batch = max(shard, int(batch * batch_scale) // shard * shard)
        if tiny:
            batch, shard = 16, 8
        buckets[name] = Bucket(height, width, image_tokens, length, max_tokens, batch, shard)
    return buckets


class Request(NamedTuple):
    """The ids around an image and its transcription."""

    head: list[int]
    image: int
    tail: list[int]
    end: int
    padding: int

    @classmethod
    def of(cls, tokenizer: Any) -> Request:
        """The prompt that `mini` is trained on, in the ids of `tokenizer`."""
        ids = tokenizer.encode(REQUEST).ids
        if len(ids) != synth.PROMPT_TOKENS:
            raise ValueError(f"the request has {len(ids)} tokens, and the pages are laid out for {synth.PROMPT_TOKENS}")
        end, padding = (tokenizer.token_to_id(token) for token in ("<|im_end|>", "<|endoftext|>"))
        return cls(ids[:4], ids[4], ids[5:], end, padding)

    def row(self, bucket: Bucket, ids: Sequence[int]) -> list[int]:
        """A whole sequence for a page with transcription `ids`."""
        row = [*self.head, *[self.image] * bucket.image_tokens, *self.tail, *ids, self.end]
        return row + [self.padding] * (bucket.length - len(row))


def load_tokenizer(base: Path) -> Any:
    """The tokenizer in the folder `base`."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(base / "tokenizer.json"))


class Shared:
    """Slots in shared memory, one for each shard being made: images, ids and numbers of ids."""

    def __init__(self, buckets: dict[str, Bucket], slots: int) -> None:
        pixels = max(b.shard * b.height * b.width for b in buckets.values())
        pages = max(b.shard for b in buckets.values())
        self.images = np.frombuffer(mmap.mmap(-1, slots * pixels), np.uint8).reshape(slots, pixels)
        self.ids = np.frombuffer(mmap.mmap(-1, slots * pages * MAX_IDS * 2), np.int16).reshape(slots, pages, MAX_IDS)
        self.counts = np.frombuffer(mmap.mmap(-1, slots * pages * 2), np.int16).reshape(slots, pages)

    def slot_images(self, slot: int, bucket: Bucket) -> np.ndarray:
        """[shard, H, W] of one slot."""
        flat = self.images[slot][: bucket.shard * bucket.height * bucket.width]
        return flat.reshape(bucket.shard, bucket.height, bucket.width)


def _work(shared: Shared, buckets: dict[str, Bucket], base: Path, tasks: Any, done: Any) -> None:
    """A worker: renders shards into their slots until it is killed or its trainer is gone."""
    tokenizer = load_tokenizer(base)
    trainer = os.getppid()
    while os.getppid() == trainer:  # a killed trainer would leave its workers waiting for ever
        try:
            slot, name, seed = tasks.get(timeout=5)
        except queue.Empty:
            continue
        bucket = buckets[name]
        images = shared.slot_images(slot, bucket)
        for i in range(bucket.shard):
            page = synth.sample(
                seed + i, bucket.height, bucket.width, lambda text: tokenizer.encode(text).ids, bucket.max_tokens
            )
            ids = page.ids or []
            images[i] = np.asarray(page.image)
            shared.counts[slot, i] = len(ids)
            shared.ids[slot, i, : len(ids)] = ids
        done.put(slot)


@dataclass
class _Pending:
    name: str
    shards: int
    slots: list[int] = field(default_factory=list)


class Loader:
    """Batches without end: `ready` holds (bucket name, pixels [B, H, W] uint8, ids [B, L], lengths [B]).

    Args:
        workers: processes.
        buckets: as `make_buckets` gives them.
        base: the folder of the tokenizer.
        cycle: take the buckets in turn instead of by the curriculum (to time them).
    """

    def __init__(
        self, workers: int, buckets: dict[str, Bucket], base: Path, cycle: bool = False, slots: int = 144
    ) -> None:
        context = multiprocessing.get_context("fork")
        self.buckets, self.workers, self.cycle = buckets, workers, cycle
        self.pages = [name for name in buckets if name.startswith("P")]
        self.request = Request.of(load_tokenizer(base))
        self.stage = 0
        self.ready: queue.Queue = queue.Queue(3)
        self._shared = Shared(buckets, slots)
        self._tasks, self._done = context.Queue(), context.Queue()
        self._free = list(range(slots))
        self._seed, self._rng = FIRST_SEED, random.Random(0)
        self._pending: dict[int, _Pending] = {}
        self._batch_of: dict[int, int] = {}
        self._batches = self._turn = 0
        self._next: str | None = None
        arguments = (self._shared, buckets, base, self._tasks, self._done)
        self._processes = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(workers)]
        for process in self._processes:
            process.start()

    def start(self, pin: bool) -> None:
        """Starts the thread that assembles batches, in pinned memory if `pin`."""
        threading.Thread(target=self._run, args=(pin,), daemon=True).start()

    def stop(self) -> None:
        """Ends the worker processes."""
        for process in self._processes:
            process.kill()

    def _pick(self) -> str:
        if self.cycle:
            self._turn += 1
            return list(self.buckets)[self._turn % len(self.buckets)]
        weights = STAGES[self.stage]
        kind = self._rng.choices(list(weights), list(weights.values()))[0]
        return self._rng.choice(self.pages) if kind == "P" else kind

    def _issue(self) -> None:
        """Hands out the shards of further batches, as many as there are slots for."""
        while True:
            name = self._next or self._pick()
            bucket = self.buckets[name]
            shards = bucket.batch // bucket.shard
            if len(self._free) < shards or len(self._batch_of) > self.workers * 3:
                self._next = name
                return
            self._next = None
            number = self._batches
            self._batches += 1
            self._pending[number] = _Pending(name, shards)
            for _ in range(shards):
                slot = self._free.pop()
                self._batch_of[slot] = number
                self._tasks.put((slot, name, self._seed))
                self._seed += bucket.shard

    def _run(self, pin: bool) -> None:
        while True:
            self._issue()
            slot = self._done.get()
            number = self._batch_of.pop(slot)
            pending = self._pending[number]
            pending.slots.append(slot)
            if len(pending.slots) == pending.shards:
                del self._pending[number]
                self.ready.put((pending.name, *self._assemble(pending, pin)))

    def _assemble(self, pending: _Pending, pin: bool) -> tuple[Any, Any, Any]:
        import torch

        bucket = self.buckets[pending.name]
        pixels = torch.empty(bucket.batch, bucket.height, bucket.width, dtype=torch.uint8, pin_memory=pin)
        start = bucket.image_tokens + synth.PROMPT_TOKENS - 1
        ids = np.full((bucket.batch, bucket.length), self.request.padding, np.int64)
        ids[:, :start] = self.request.row(bucket, [])[:start]
        lengths = np.zeros(bucket.batch, np.int64)
        for i, slot in enumerate(pending.slots):
            rows = slice(i * bucket.shard, (i + 1) * bucket.shard)
            pixels.numpy()[rows] = self._shared.slot_images(slot, bucket)
            lengths[rows] = self._shared.counts[slot, : bucket.shard].astype(np.int64) + 1
            for j in range(bucket.shard):
                row, count = ids[i * bucket.shard + j], int(self._shared.counts[slot, j])
                row[start : start + count] = self._shared.ids[slot, j, :count]
                row[start + count] = self.request.end
            self._free.append(slot)
        rows_of_ids, counts = torch.from_numpy(ids), torch.from_numpy(lengths)
        if pin:
            rows_of_ids, counts = rows_of_ids.pin_memory(), counts.pin_memory()
        return pixels, rows_of_ids, counts


def held_out(buckets: dict[str, Bucket], base: Path, pages: int) -> list[tuple[Any, Any, Any]]:
    """The first held-out pages with scan effects, one batch for each size, as `Loader` makes them."""
    import torch

    tokenizer = load_tokenizer(base)
    request = Request.of(tokenizer)
    groups: dict[tuple[int, int], tuple[list, list, list]] = {}
    for i in range(pages):
        height, width = synth.SIZES[i % len(synth.SIZES)]
        bucket = buckets[f"P{height}x{width}"]
        page = synth.sample(
            HELD_OUT_SEED + i, height, width, lambda text: tokenizer.encode(text).ids, bucket.max_tokens, effects=True
        )
        images, rows, lengths = groups.setdefault((height, width), ([], [], []))
        images.append(np.asarray(page.image))
        rows.append(request.row(bucket, page.ids or []))
        lengths.append(len(page.ids or []) + 1)
    return [(torch.from_numpy(np.stack(a)), torch.tensor(b), torch.tensor(c)) for a, b, c in groups.values()]
