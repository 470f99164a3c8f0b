"""Reads safetensors folders with the standard library and numpy alone: headers by JSON, bytes by position.

The format: eight bytes (little endian) with the length of a JSON header, the header, then the tensors' bytes; offsets
in the header count from the end of the header (https://github.com/huggingface/safetensors, "Format").
No file is mapped and no tensor is ever in memory whole.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

INDEX = "model.safetensors.index.json"
CHUNK = 8 << 20
"""Bytes read at a time."""

_MAX_HEADER = 100 << 20
"""The format's own limit."""

BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2}
BYTES |= {"U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8}
"""Bytes of one element."""


@dataclass(frozen=True)
class Tensor:
    """Where one tensor lies.

    Attributes:
        name: as stored.
        file: the file it lies in.
        dtype: safetensors' name of it (`BF16`, `F8_E4M3`, `U8` ...).
        shape: its dimensions.
        start: position of its first byte in the file.
        nbytes: its size.
    """

    name: str
    file: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    nbytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {list(self.shape)}"


@dataclass
class Folder:
    """A model folder as it lies on disk, with everything that is wrong with its weight files.

    Attributes:
        path: the folder.
        config: `config.json`, or {} where it cannot be read (then `config_problem` says why).
        tensors: by stored name, over all weight files.
        problems: what is wrong with the weight files and their index; empty if they are sound.
    """

    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    config_problem: str | None = None
    tensors: dict[str, Tensor] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _open: dict[Path, int] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: Path) -> Folder:
        """Reads the configuration, all headers and the index; notes what is wrong instead of raising."""
        folder = cls(path)
        folder.config, folder.config_problem = read_json(path / "config.json")
        files = sorted(path.glob("*.safetensors"))
        if not files:
            folder.problems.append("there is no .safetensors file")
        for file in files:
            tensors, problems = read_header(file)
            folder.problems += problems
            for tensor in tensors:
                if tensor.name in folder.tensors:
                    other = folder.tensors[tensor.name].file.name
                    folder.problems.append(f"{tensor.name} is stored twice: in {other} and {file.name}")
                folder.tensors[tensor.name] = tensor
        folder.problems += _index_problems(path, files, folder.tensors)
        return folder

    def pread(self, tensor: Tensor, begin: int, count: int) -> np.ndarray:
        """Bytes [begin, begin + count) of a tensor as uint8; safe to call from several threads.

        Raises:
            OSError: the file ended early or could not be read.
        """
        import numpy as np

        handle = self._open.get(tensor.file)
        if handle is None:
            handle = self._open.setdefault(tensor.file, os.open(tensor.file, os.O_RDONLY))
        out = np.empty(count, np.uint8)
        view, done = out.data, 0
        while done < count:
            got = os.preadv(handle, [view[done:]], tensor.start + begin + done)
            if got == 0:
                raise OSError(f"{tensor.file.name} ended inside {tensor.name}")
            done += got
        return out

    def chunks(self, tensor: Tensor, size: int = CHUNK) -> Iterator[np.ndarray]:
        """A tensor's bytes in order, at most `size` at a time (a multiple of 8)."""
        for begin in range(0, tensor.nbytes, size):
            yield self.pread(tensor, begin, min(size, tensor.nbytes - begin))

    def rows(self, tensor: Tensor, first: int, last: int) -> np.ndarray:
        """Rows [first, last) of a matrix, as bytes [rows, bytes of a row]."""
        width = tensor.nbytes // tensor.shape[0] if tensor.shape[0] else 0
        return self.pread(tensor, first * width, (last - first) * width).reshape(last - first, width)

    def whole(self, tensor: Tensor) -> np.ndarray:
        """A small tensor's bytes."""
        return self.pread(tensor, 0, tensor.nbytes)

    def close(self) -> None:
        """Closes the files."""
        while self._open:
            os.close(self._open.popitem()[1])


def read_json(path: Path) -> tuple[dict[str, Any], str | None]:
    """A JSON object, and what is wrong if it cannot be read as one."""
    try:
        data = json.loads(path.read_text("utf-8"), object_pairs_hook=_no_doubles)
    except FileNotFoundError:
        return {}, f"{path.name} is missing"
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"{path.name} cannot be read: {error}"
    return (data, None) if isinstance(data, dict) else ({}, f"{path.name} is not a JSON object")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands there twice")
        found[key] = value
    return found


def read_header(file: Path) -> tuple[list[Tensor], list[str]]:
    """The tensors of one safetensors file, and what is wrong with it (then the tensors may be few or none)."""
    try:
        size = file.stat().st_size
        with file.open("rb") as handle:
            prefix = handle.read(8)
            if len(prefix) < 8:
                return [], [f"{file.name} is {size} bytes long: too short to be a safetensors file"]
            (length,) = struct.unpack("<Q", prefix)
            if length > _MAX_HEADER or 8 + length > size:
                return [], [f"{file.name}: its header claims {length} bytes, the file has {size}: truncated or corrupt"]
            header = json.loads(handle.read(length).decode("utf-8"), object_pairs_hook=_no_doubles)
    except (OSError, ValueError, RecursionError) as error:
        return [], [f"{file.name}: its header cannot be read: {error}"]
    if not isinstance(header, dict):
        return [], [f"{file.name}: its header is not a JSON object"]
    header.pop("__metadata__", None)
    return _entries(file, header, 8 + length, size)


def _entries(file: Path, header: dict[str, Any], base: int, size: int) -> tuple[list[Tensor], list[str]]:
    tensors: list[Tensor] = []
    problems: list[str] = []
    for name, entry in header.items():
        try:
            dtype, shape = entry["dtype"], tuple(int(n) for n in entry["shape"])
            begin, end = (int(n) for n in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            problems.append(f"{file.name}: the entry of {name} is malformed")
            continue
        elements = 1
        for n in shape:
            elements *= n
        if dtype not in BYTES:
            problems.append(f"{file.name}: {name} has the unknown dtype {dtype}")
        elif min(shape, default=0) < 0 or begin < 0 or end - begin != elements * BYTES[dtype]:
            problems.append(f"{file.name}: {name} is {dtype} {list(shape)} but takes {end - begin} bytes")
        elif base + end > size:
            problems.append(f"{file.name}: {name} ends {base + end - size} bytes behind the end of the file: truncated")
        else:
            tensors.append(Tensor(name, file, dtype, shape, base + begin, end - begin))
    if not problems:
        problems += _layout_problems(file, tensors, base, size)
    return tensors, problems


def _layout_problems(file: Path, tensors: list[Tensor], base: int, size: int) -> list[str]:
    """The format wants the tensors to fill the file without gaps, overlaps or a rest."""
    problems: list[str] = []
    position = base
    for tensor in sorted(tensors, key=lambda t: (t.start, t.nbytes)):
        if tensor.start != position:
            what = "overlaps the tensor before it" if tensor.start < position else "leaves a gap before it"
            problems.append(f"{file.name}: {tensor.name} {what} ({tensor.start - position:+d} bytes)")
        position = max(position, tensor.start + tensor.nbytes)
    if position != size:
        problems.append(f"{file.name}: {size - position} bytes behind the last tensor belong to none")
    return problems


def _index_problems(path: Path, files: list[Path], tensors: dict[str, Tensor]) -> list[str]:
    names = [file.name for file in files]
    if not (path / INDEX).exists():
        return [f"{len(files)} weight files and no {INDEX}: one may be missing"] if len(files) > 1 else []
    index, problem = read_json(path / INDEX)
    weight_map = index.get("weight_map")
    if problem or not isinstance(weight_map, dict):
        return [problem or f"{INDEX} has no weight_map"]
    problems = [f"{INDEX} names {file}, which is missing" for file in sorted(set(weight_map.values()) - set(names))]
    problems += [f"{file} is not in {INDEX}" for file in sorted(set(names) - set(weight_map.values()))]
    for name, file in weight_map.items():
        if file not in names:
            continue
        if name not in tensors:
            problems.append(f"{INDEX} is stale: {name} is not in {file}")
        elif tensors[name].file.name != file:
            problems.append(f"{INDEX} is stale: {name} lies in {tensors[name].file.name}, not in {file}")
    problems += [f"{INDEX} is stale: it lacks {name}" for name in tensors if name not in weight_map]
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    real = sum(tensor.nbytes for tensor in tensors.values())
    if total is not None and total != real:
        problems.append(f"{INDEX} says total_size {total}, the tensors have {real} bytes")
    return problems
