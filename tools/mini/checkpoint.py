"""The state of a run on disk: whole or not at all, and written while training goes on."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import torch


class Saver:
    """Writes states to one file, each over the last.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread: threading.Thread | None = None

    def save(self, state: dict[str, Any], wait: bool = False) -> None:
        """Copies the state to the host and writes it in a thread (`wait`: until it is on disk)."""
        if self._thread is not None:
            self._thread.join()
        self._thread = threading.Thread(target=self._write, args=(_copied(state),))
        self._thread.start()
        if wait:
            self._thread.join()

    def _write(self, state: dict[str, Any]) -> None:
        part = self.path.with_suffix(".part")
        with part.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part) for part in value]
    return value


def load(path: Path) -> dict[str, Any] | None:
    """A saved state (tensors and plain values only), or None if there is no file."""
    return torch.load(path, map_location="cpu", weights_only=True) if path.exists() else None
