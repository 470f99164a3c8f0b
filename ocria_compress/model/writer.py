"""Writing a checkpoint so that nothing half-done ever looks done.

Files are laid out in full before the first tensor is written (names, shapes and so all offsets are known from the
plan), filled in any order, made durable, and the folder gets its name last. A killed run leaves a work folder
beside the result's place, `.NAME.partial/`, which the same command continues.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ocria_compress.errors import OcriaError
from ocria_compress.model.checkpoint import DTYPE_BYTES, SINGLE, read_into

MANIFEST = "ocria.json"
"""Our manifest; written last. Readers of our folders accept only those that have a valid one."""


@dataclass(frozen=True)
class OutTensor:
    """A tensor to be written."""

    name: str
    dtype: str
    """safetensors' dtype name."""
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of its data."""
        count = 1
        for side in self.shape:
            count *= side
        return count * DTYPE_BYTES[self.dtype]


class ShardFile:
    """One safetensors file, laid out in full and filled in any order, from several threads if need be."""

    def __init__(self, path: Path, tensors: Iterable[OutTensor]) -> None:
        """Opens the file and writes its header, keeping the bytes that a killed run wrote into the same layout.

        Raises:
            OcriaError: the disk is full or the file cannot be written.
        """
        self.path = path
        self.offsets: dict[str, int] = {}
        entries: dict[str, dict] = {"__metadata__": {"format": "pt"}}  # type: ignore[dict-item]
        at = 0
        for tensor in tensors:
            entries[tensor.name] = {
                "dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes],
            }  # fmt: skip
            self.offsets[tensor.name] = at
            at += tensor.nbytes
        header = json.dumps(entries, separators=(",", ":")).encode()
        header += b" " * (-len(header) % 8)  # tensor data starts at a multiple of 8
        self.start, self.size = 8 + len(header), 8 + len(header) + at
        with writing(path):
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            _reserve(self.descriptor, self.size)
            _write_all(self.descriptor, memoryview(struct.pack("<Q", len(header)) + header), 0)

    def write(self, name: str, data: memoryview, at: int = 0) -> None:
        """Writes `data` at byte `at` of a tensor; raises OcriaError when the disk refuses."""
        offset = self.start + self.offsets[name] + at
        with writing(self.path):
            _write_all(self.descriptor, data, offset)

    def read(self, name: str, view: memoryview, at: int = 0) -> None:
        """Fills `view` with bytes of a tensor that was written."""
        read_into(self.descriptor, view, self.start + self.offsets[name] + at, self.path)

    def sync(self) -> None:
        """Makes what was written durable."""
        with writing(self.path):
            os.fsync(self.descriptor)

    def close(self) -> None:
        """Closes the file."""
        os.close(self.descriptor)


@contextlib.contextmanager
def writing(path: Path):
    """Turns what a disk can refuse into an :class:`OcriaError` that says so."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            what, fix = "The disk is full.", "free some space and run the same command again: it continues"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            what, fix = "The output cannot be written: permission denied.", "choose another --out"
        else:
            what, fix = f"The output cannot be written: {error.strerror}.", "choose another --out"
        raise OcriaError(what, where=str(path), fix=fix) from error


def _reserve(descriptor: int, size: int) -> None:
    """Takes the space now, so that a full disk is found before the work is done."""
    os.ftruncate(descriptor, size)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def _write_all(descriptor: int, data: memoryview, offset: int) -> None:
    data = data.cast("B")
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], offset + done)


_libc = ctypes.CDLL(None, use_errno=True)
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


class WorkFolder:
    """The place where a result grows: `.NAME.partial/files` beside its final place, and the state of the run.

    Args:
        final: the result's folder.
        key: what the result depends on, by name; a left-over run with another key is refused with what changed.
        overwrite: whether an existing result of ours may be replaced.
        fresh: whether to throw a left-over run away.

    Raises:
        OcriaError: something is in the way, the place cannot be written, or another run is writing there.
    """

    def __init__(self, final: Path, key: dict[str, str], *, overwrite: bool = False, fresh: bool = False) -> None:
        self.final = final = absolute(final)
        self.root = self.final.parent / f".{self.final.name}.partial"
        self.files, self.state = self.root / "files", self.root / "state"
        self.overwrite = overwrite
        check_place(self.final, overwrite)
        self._refuse_foreign()
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise OcriaError(
                "Another run is writing this result.", where=str(self.final), fix="wait for it, or choose another --out"
            ) from error
        try:
            self.resumed = self._adopt(key, fresh)
        except BaseException:
            self.close()
            raise

    def _refuse_foreign(self) -> None:
        """A folder of the user's that happens to have the work folder's name is not touched."""
        if self.root.is_symlink() or (self.root.exists() and not self.root.is_dir()):
            foreign = True
        elif not self.root.exists() or (self.root / "key.json").is_file():
            foreign = False
        else:  # ours has a key before it has anything else, but for these
            found = [path for path in self.root.rglob("*") if path not in (self.files, self.state)]
            foreign = any(path.name not in ("lock", "key.json.tmp") for path in found)
        if foreign:
            raise OcriaError(
                "The work folder's place is taken by something that is not of this tool.",
                where=str(self.root),
                fix="move it away, or choose another --out",
            )

    def _adopt(self, key: dict[str, str], fresh: bool) -> bool:
        """Takes over a left-over run with the same key; raises OcriaError naming what differs."""
        path = self.root / "key.json"
        left = _read_json(path) if self.files.is_dir() and self.state.is_dir() else None
        if left == key and not fresh:
            return True
        if left and not fresh and any(path.stat().st_size > 1 for path in self.state.glob("*.jsonl")):
            changed = [name for name in sorted(key.keys() | left.keys()) if key.get(name) != left.get(name)]
            raise OcriaError(
                f"An unfinished run lies there that was started differently (changed: {', '.join(changed)}).",
                where=str(self.root),
                fix="repeat that run's command to finish it, or add --fresh to start over",
            )
        for folder in (self.files, self.state):
            shutil.rmtree(folder, ignore_errors=True)
        with writing(self.root):
            self.files.mkdir()
            self.state.mkdir()
            write_file(path, json.dumps(key, indent=1).encode())
        return False

    def finish(self) -> None:
        """Gives the finished folder its name, in place of an older result of ours if there is one.

        Raises:
            OcriaError: something of the user's has appeared there in the meantime; it is left alone.
        """
        check_place(self.final, self.overwrite)
        with writing(self.final):
            # Without its state the work folder is never continued: after the swap it may hold the older result.
            shutil.rmtree(self.state)
            for folder in (self.files, self.root, self.final.parent):
                _sync_folder(folder)
            if self.final.is_dir() and any(self.final.iterdir()):
                _exchange(self.files, self.final)
            else:
                self.files.rename(self.final)
            _sync_folder(self.final.parent)
        self.close()
        for folder in (self.files, self.root):  # the key goes last: without it, what is left would not be known as ours
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Lets go of the work folder, leaving what is in it for the next run."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def absolute(path: Path) -> Path:
    """The path without `..`, so that `a/../b` does not need `a`; links are kept."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (resolve would follow links)


def laid_out(final: Path) -> bool:
    """Whether an unfinished run has already taken the disk space of its weight files."""
    place = absolute(final)
    return any((place.parent / f".{place.name}.partial" / "files").glob("*.safetensors"))


def check_place(final: Path, overwrite: bool) -> None:
    """Raises OcriaError when something is in the way of a result, or its parent cannot be written."""
    if final.is_symlink() or (final.exists() and not final.is_dir()):
        raise OcriaError("There is a file where the result should go.", where=str(final), fix="choose another --out")
    if final.is_dir() and any(final.iterdir()):
        manifest = _read_json(final / MANIFEST) or {}
        ours = "ocria_compress" in manifest and "kind" in manifest
        if not overwrite or not ours:
            raise OcriaError(
                "The output folder exists already" + ("." if ours else ", and it is not a result of this tool."),
                where=str(final),
                fix="choose another --out" + (", or add --overwrite to replace it" if ours else ""),
            )
    parent = next(p for p in final.absolute().parents if p.exists())
    if not parent.is_dir():
        raise OcriaError("A file is in the way of the output folder.", where=str(parent), fix="choose another --out")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OcriaError("The output's parent folder cannot be written.", where=str(parent), fix="choose another --out")


def write_file(path: Path, data: bytes) -> None:
    """Writes a small file whole or not at all, durably."""
    temporary = path.with_name(path.name + ".tmp")
    with writing(path):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _write_all(descriptor, memoryview(data), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)


def index_bytes(shards: dict[str, list[OutTensor]]) -> bytes | None:
    """The index file's content, or None when everything is in one file named `model.safetensors`."""
    if list(shards) == [SINGLE]:
        return None
    weight_map = {tensor.name: shard for shard, tensors in shards.items() for tensor in tensors}
    total = sum(tensor.nbytes for tensors in shards.values() for tensor in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    return json.dumps(index, indent=2).encode()


def _read_json(path: Path) -> dict | None:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(new: Path, old: Path) -> None:
    """Swaps two folders in one step, so that at no moment is there no result; renames twice where that is not
    offered."""
    if hasattr(_libc, "renameat2"):
        done = _libc.renameat2(
            _AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old), ctypes.c_uint(_RENAME_EXCHANGE)
        )
        if done == 0:
            return
    aside = new.with_name("replaced")
    shutil.rmtree(aside, ignore_errors=True)
    old.rename(aside)
    new.rename(old)
