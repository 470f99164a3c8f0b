"""Writes synthetic pages as a page set."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth.generate import VERSION, Request, Route, SynthPage, sample_many, seeds
from ocria_compress.pages.synth.splits import Split

LICENCE = "Apache-2.0"
FAST_BATCH = 8
FAITHFUL_BATCH = 50
SCAN_QUALITY = 82
"""Of WebP, for pages with scan effects; others are stored without loss."""


@dataclass(frozen=True)
class Written:
    """A page as it is stored: its image file's bytes (WebP), reference, size in pixels and the generator's record."""

    image: bytes
    reference: str
    width: int
    height: int
    meta: dict[str, Any]


def encode(page: SynthPage) -> Written:
    """The page as it is stored. What is stored is what counts: a scanned page is compressed once more."""
    buffer = io.BytesIO()
    if page.meta["effects"]:
        page.image.save(buffer, "WEBP", quality=SCAN_QUALITY, method=4)
    else:
        page.image.save(buffer, "WEBP", lossless=True, quality=60, method=4)
    meta = {key: value for key, value in page.meta.items() if key != "split"}
    return Written(buffer.getvalue(), page.reference, page.image.width, page.image.height, meta)


def make_pages(
    requests: Sequence[Request],
    route: Route = "fast",
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Written]:
    """Makes pages, in the order of the requests, in `workers` processes.

    Args:
        requests: what is asked for.
        route: fast or faithful.
        workers: processes; 1 works in this one.
        progress: called with the pages done and asked for.
    """
    size = FAITHFUL_BATCH if route == "faithful" else FAST_BATCH
    batches = [(requests[i : i + size], route) for i in range(0, len(requests), size)]
    done = 0
    for pages in _batches(batches, workers):
        for page in pages:
            done += 1
            yield page
        if progress is not None:
            progress(done, len(requests))


def _batches(batches: Sequence[tuple[Sequence[Request], Route]], workers: int) -> Iterator[list[Written]]:
    if workers <= 1 or len(batches) <= 1:
        yield from map(_make, batches)
        return
    # Not fork: the parent may have threads (progress, Chromium's pipes).
    with ProcessPoolExecutor(min(workers, len(batches)), mp_context=get_context("spawn")) as pool:
        yield from pool.map(_make, batches)


def _make(batch: tuple[Sequence[Request], Route]) -> list[Written]:
    requests, route = batch
    return [encode(page) for page in sample_many(requests, route)]


def write_set(
    out: Path,
    count: int,
    split: Split,
    seed: int = 0,
    route: Route = "fast",
    want: frozenset[Any] = frozenset(),
    size: tuple[int, int] | None = None,
    language: str | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Writes `count` pages of seeds `seed`, `seed + 1`, ... as a page set.

    Args:
        out: the folder; must not exist.
        split, want, size, language: as in `generate.Request`.
        route, workers, progress: as in `make_pages`.

    Raises:
        OcriaError: as `generate.sample`; the folder exists; fewer than one page is asked for.
    """
    from ocria_compress.pages.pageset import write_page_set

    if count < 1:
        raise OcriaError(f"{count} pages were asked for", fix="ask for at least one page: --count 16")
    if out.exists():
        raise OcriaError("this folder exists already", where=str(out), fix="remove it, or give another --out")
    requests = seeds(Request(split, seed, want, size, language), count)
    written = make_pages(requests, route, workers, progress)
    write_page_set(out, records(written, split))
    return out


def records(pages: Iterator[Written], split: Split) -> Iterator[tuple[dict[str, Any], bytes, str]]:
    """What `write_page_set` takes: each page's record without paths and hash, its image file and its reference."""
    for number, page in enumerate(pages):
        yield (
            {
                "id": f"{split}-{number:04d}",
                "source": f"ocria-compress pages synth, generator {VERSION}",
                "licence": LICENCE,
                "split": split,
                "width": page.width,
                "height": page.height,
                "meta": page.meta,
            },
            page.image,
            page.reference,
        )
