"""Pages of any size packed into batches of one shape.

A batch has R rows of T tokens. Each row holds pages one behind the other: the request's head, the image tokens, the
request's tail, the answer, `<|im_end|>`. What is left of a row is padding, in pages of its own so that nothing is
undefined. All patches of a batch lie in one buffer, in the order of the image tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tools.mini.patches import VALUES, places
from tools.mini.prompts import Requests

NO_LABEL = -100


@dataclass(frozen=True)
class Shapes:
    """The one shape of all batches.

    Attributes:
        rows, length: of the token grid; length is a multiple of 64.
        patches: in a batch, a multiple of 4; targets: positions with a loss in a batch.
        pages: that a batch may hold.
        longest: tokens of a page, image and text; longest_patches: of a page.
    """

    rows: int = 8
    length: int = 8192
    patches: int = 196_608
    targets: int = 32_768
    pages: int = 640
    longest: int = 1600
    longest_patches: int = 4096

    @property
    def tokens(self) -> int:
        return self.rows * self.length

    @property
    def bounds(self) -> int:
        """Entries of the bounds: of the pages, of the padding cut into pages, and the end."""
        padding = self.rows * -(-self.length // self.longest) + -(-self.patches // self.longest_patches)
        return self.pages + padding + 1


@dataclass
class Page:
    """A finished page.

    Attributes:
        number: of the page in the run; level: of the curriculum when it was asked for.
        rows, columns: of patches; kind: of request; answer: ids without the end token.
        patches: [rows * columns, 768] uint8, maybe in shared memory; slot: which.
    """

    number: int
    level: float
    rows: int
    columns: int
    kind: str
    answer: np.ndarray
    patches: np.ndarray
    slot: int = -1
    tokens: int = field(default=0)

    @property
    def count(self) -> int:
        """Patches."""
        return self.rows * self.columns

    @property
    def targets(self) -> int:
        """Tokens of the answer, its end included."""
        return len(self.answer) + 1

    def measured(self, requests: Requests) -> Page:
        """With `tokens` set: image tokens, request and answer."""
        request = requests.kinds[self.kind]
        self.tokens = len(request.head) + self.count // 4 + len(request.tail) + self.targets
        return self


def pack(pages: Sequence[Page], waiting: int, shapes: Shapes) -> list[list[int]]:
    """First fit, longest first: which pages go into each row.

    Args:
        pages: what there is to choose from.
        waiting: that many of the first ones were left over before: they go first, so that none waits for ever.
        shapes: what a batch holds; its patches, targets and pages are limits too.

    Returns:
        For each row the indices of its pages.
    """
    order = sorted(range(len(pages)), key=lambda i: (i >= waiting, -pages[i].tokens, i))
    rows: list[list[int]] = [[] for _ in range(shapes.rows)]
    room = [shapes.length] * shapes.rows
    patches, targets, count = shapes.patches, shapes.targets, shapes.pages
    for i in order:
        page = pages[i]
        if page.count > patches or page.targets > targets or not count:
            continue
        row = next((row for row in range(shapes.rows) if room[row] >= page.tokens), None)
        if row is None:
            continue
        rows[row].append(i)
        room[row] -= page.tokens
        patches, targets, count = patches - page.count, targets - page.targets, count - 1
    return rows


class Arrays(NamedTuple):
    """A packed batch on the host; NumPy views of what goes to the device.

    Attributes:
        patches: [P, 768] uint8.
        places: [4, P] int16, see patches.places; patch_bounds: [bounds] int32.
        ids: [N] int16; positions: [3, N] int16, of the rotary embedding; inside: [N] int16, number in its page.
        bounds: [bounds] int32: first token of each page, then N.
        image_to: [P / 4] int32: the token that each image token is; N where there is none.
        targets: [M] int32: positions from which an answer's token is predicted; labels, next_labels: [M] int16, the
            token there and the one after it (-100: none).
    """

    patches: Any
    places: Any
    patch_bounds: Any
    ids: Any
    positions: Any
    inside: Any
    bounds: Any
    image_to: Any
    targets: Any
    labels: Any
    next_labels: Any

    @classmethod
    def layout(cls, shapes: Shapes) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and dtype of each array."""
        p, n, m, b = shapes.patches, shapes.tokens, shapes.targets, shapes.bounds
        return {
            "patches": ((p, VALUES), "uint8"),
            "places": ((4, p), "int16"),
            "patch_bounds": ((b,), "int32"),
            "ids": ((n,), "int16"),
            "positions": ((3, n), "int16"),
            "inside": ((n,), "int16"),
            "bounds": ((b,), "int32"),
            "image_to": ((p // 4,), "int32"),
            "targets": ((m,), "int32"),
            "labels": ((m,), "int16"),
            "next_labels": ((m,), "int16"),
        }

    @classmethod
    def empty(cls, shapes: Shapes) -> Arrays:
        """Zeros."""
        return cls(**{name: np.zeros(shape, dtype) for name, (shape, dtype) in cls.layout(shapes).items()})


@dataclass
class Counts:
    """What a batch holds."""

    pages: int = 0
    tokens: int = 0
    patches: int = 0
    targets: int = 0
    next_targets: int = 0


@lru_cache(maxsize=2048)
def _image_positions(rows: int, columns: int) -> np.ndarray:
    """[3, image tokens] of an image whose first position is 0: time, row, column."""
    row, column = np.meshgrid(np.arange(rows // 2), np.arange(columns // 2), indexing="ij")
    return np.stack([np.zeros(row.size), row.ravel(), column.ravel()]).astype(np.int16)


class _Writer:
    """Writes pages into the arrays of a batch, in order."""

    def __init__(self, arrays: Arrays, shapes: Shapes, requests: Requests) -> None:
        self.arrays, self.shapes, self.requests = arrays, shapes, requests
        self.counts = Counts()
        self.edges, self.patch_edges = [0], [0]

    def page(self, page: Page, begin: int) -> int:
        """Writes a page whose first token is `begin`; returns where it ends."""
        a, c, request = self.arrays, self.counts, self.requests.kinds[page.kind]
        head, image = len(request.head), page.count // 4
        answer = begin + head + image + len(request.tail)
        end = answer + page.targets
        ids = a.ids[begin:end]
        ids[:head] = request.head
        ids[head : head + image] = self.requests.image
        ids[head + image : answer - begin] = request.tail
        ids[answer - begin : -1] = page.answer
        ids[-1] = self.requests.end
        a.inside[begin:end] = np.arange(end - begin)
        positions = a.positions[:, begin:end]
        positions[:, :head] = np.arange(head)
        positions[:, head : head + image] = _image_positions(page.rows, page.columns) + head
        behind = head + max(page.rows, page.columns) // 2
        positions[:, head + image :] = np.arange(behind, behind + end - begin - head - image)
        a.patches[c.patches : c.patches + page.count] = page.patches[: page.count]
        a.places[:, c.patches : c.patches + page.count] = places(page.rows, page.columns)
        a.image_to[c.patches // 4 : c.patches // 4 + image] = np.arange(begin + head, begin + head + image)
        where = slice(c.targets, c.targets + page.targets)
        a.targets[where] = np.arange(answer - 1, end - 1)
        a.labels[where] = ids[answer - begin :]
        a.next_labels[where][:-1] = ids[answer - begin + 1 :]
        a.next_labels[where][-1] = NO_LABEL
        c.pages, c.tokens, c.patches = c.pages + 1, c.tokens + end - begin, c.patches + page.count
        c.targets, c.next_targets = c.targets + page.targets, c.next_targets + page.targets - 1
        self.edges.append(end)
        self.patch_edges.append(c.patches)
        return end

    def padding(self, begin: int, end: int) -> None:
        """Fills tokens with padding, in pages that are not too long."""
        a = self.arrays
        a.ids[begin:end] = self.requests.padding
        for start in range(begin, end, self.shapes.longest):
            stop = min(start + self.shapes.longest, end)
            a.inside[start:stop] = np.arange(stop - start)
            a.positions[:, start:stop] = np.arange(stop - start)
            self.edges.append(stop)

    def finish(self) -> None:
        """Fills the rest of patches, targets and bounds."""
        a, c, shapes = self.arrays, self.counts, self.shapes
        a.places[:2, c.patches :], a.places[2:, c.patches :] = 0, 1
        for stop in range(c.patches, shapes.patches, shapes.longest_patches):
            self.patch_edges.append(min(stop + shapes.longest_patches, shapes.patches))
        a.image_to[c.patches // 4 :] = shapes.tokens
        a.targets[c.targets :] = np.arange(c.targets, shapes.targets) % shapes.tokens  # no address is written twice
        a.labels[c.targets :] = a.next_labels[c.targets :] = NO_LABEL
        for bounds, edges in ((a.bounds, self.edges), (a.patch_bounds, self.patch_edges)):
            bounds[: len(edges)] = edges
            bounds[len(edges) :] = edges[-1]


def fill(arrays: Arrays, rows: Sequence[Sequence[Page]], shapes: Shapes, requests: Requests) -> Counts:
    """Writes a whole batch: each row's pages in turn.

    Args:
        arrays: every element that matters is written; patches behind the last page's stay as they are.
        rows: at most `shapes.rows`, each at most `shapes.length` tokens.

    Returns:
        What the batch holds.
    """
    writer = _Writer(arrays, shapes, requests)
    for row in range(shapes.rows):
        at = row * shapes.length
        for page in rows[row] if row < len(rows) else ():
            at = writer.page(page, at)
        writer.padding(at, (row + 1) * shapes.length)
    writer.finish()
    return writer.counts
