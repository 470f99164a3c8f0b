"""What a plan needs of the machine, beside what there is: disk and memory."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ocria_compress.quantize.plan import Plan

STREAM_MEMORY = 1 << 30
"""Memory of a data-free run, whatever the model: torch, transformers and compressed-tensors imported, one slice a
thread. Measured: docs/measurements.md."""

FORWARD_MEMORY = 3 << 30
"""Beside the weights, what a page's forward pass takes at most with the default page budget."""


@dataclass(frozen=True)
class Resources:
    """Bytes needed and bytes there are."""

    disk_needed: int
    disk_free: int
    memory_needed: int
    memory_free: int

    @property
    def short(self) -> str | None:
        """What there is too little of, in words; None if there is enough."""
        if self.disk_needed > self.disk_free:
            return f"Not enough disk: {gigabytes(self.disk_needed)} needed, {gigabytes(self.disk_free)} free."
        if self.memory_needed > self.memory_free:
            return f"Not enough memory: {gigabytes(self.memory_needed)} needed, {gigabytes(self.memory_free)} free."
        return None


def resources(plan: Plan, folder: Path, *, started: bool = False) -> Resources:
    """What writing a plan's result into `folder` needs.

    Args:
        plan: the plan.
        folder: where the result will go; its nearest existing parent is asked.
        started: an unfinished run has reserved its space already.
    """
    import psutil

    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    side = sum(path.stat().st_size for path in plan.source.side_files.values() if path.is_file())
    disk = 0 if started else plan.bytes_after + side + (8 << 20)
    memory = STREAM_MEMORY
    if plan.recipe.calibrated:
        memory += plan.bytes_before + FORWARD_MEMORY
    return Resources(disk, shutil.disk_usage(place).free, memory, psutil.virtual_memory().available)


def gigabytes(count: float) -> str:
    """Bytes as a person reads them: 26.7 MB, 9.08 GB (decimal units)."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 100 * size else f"{count / size:.0f} {unit}"
    return f"{count:.0f} B"
