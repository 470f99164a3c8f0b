"""Batches from the host to the device, one ahead of the step that is running."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tools.mini.loader import Loader, Ready
from tools.mini.model import Inputs
from tools.mini.packing import Arrays, Counts


class Batch(NamedTuple):
    """A batch on the device, as packing.py lays it out, with what it holds and the loader's state behind it."""

    tensors: dict[str, Tensor]
    counts: Counts
    state: dict[str, Any]


def inputs_of(tensors: dict[str, Tensor], pixels: Tensor) -> Inputs:
    """The net's inputs: integers in the types that PyTorch's operators want."""
    wide = {name: tensors[name].long() for name in ("ids", "image_to", "targets", "labels", "next_labels")}
    rest = {name: tensors[name] for name in ("patch_bounds", "bounds")}
    small = {name: tensors[name].int() for name in ("places", "positions", "inside")}
    return Inputs(pixels=pixels, **wide, **rest, **small)


def on_device(arrays: Arrays, device: str) -> dict[str, Tensor]:
    """The arrays of a batch, copied to the device."""
    return {name: torch.from_numpy(array).to(device) for name, array in arrays._asdict().items()}


class Feed:
    """Copies the loader's batches to the device in a stream of their own.

    Attributes:
        waited: seconds spent waiting for the loader.
    """

    def __init__(self, loader: Loader, device: str) -> None:
        self.loader, self.device, self.waited = loader, device, 0.0
        self._stream = torch.cuda.Stream() if device == "cuda" else None
        self._pending: tuple[Batch, Ready, Any] | None = None

    def ahead(self) -> None:
        """Begins to copy the next batch, when the step before is on its way."""
        if self._pending is not None:
            return
        began = time.perf_counter()
        ready = self.loader.next()
        self.waited += time.perf_counter() - began
        if self._stream is None:
            tensors, event = {name: tensor.clone() for name, tensor in ready.tensors.items()}, None
        else:
            with torch.cuda.stream(self._stream):
                tensors = {name: t.to(self.device, non_blocking=True) for name, t in ready.tensors.items()}
                event = torch.cuda.Event()
                event.record(self._stream)
        self._pending = Batch(tensors, ready.counts, ready.state), ready, event

    def next(self) -> Batch:
        """The batch that was begun with `ahead`."""
        self.ahead()
        assert self._pending is not None
        batch, ready, event = self._pending
        self._pending = None
        if event is not None:
            event.synchronize()  # of the copy, begun a step ago: done
            stream = torch.cuda.current_stream()
            for tensor in batch.tensors.values():
                tensor.record_stream(stream)
        self.loader.release(ready)
        return batch
