"""Safetensors checkpoints as files: headers, where each tensor's bytes lie, and streaming reads.

Only headers are parsed here, with `json` and `struct`: a 9 GB checkpoint opens in milliseconds and nothing is mapped.
Format: https://github.com/huggingface/safetensors (8 bytes little-endian header length, JSON header, tensor bytes).
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ocria_compress.errors import OcriaError

DTYPE_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes of one element, by safetensors' dtype name."""

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
_HEADER_LIMIT = 100 * 1024 * 1024  # safetensors' own limit


@dataclass(frozen=True)
class StoredTensor:
    """Where one tensor's bytes lie."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    offset: int
    """First byte, counted from the start of the file."""
    nbytes: int


def read_header(path: Path) -> tuple[dict[str, StoredTensor], dict[str, str], bytes]:
    """Parses one safetensors file's header.

    Returns:
        The tensors by name, the file's metadata, and the raw header.

    Raises:
        OcriaError: the file is missing, truncated, or its header is corrupt.
    """
    raw, size = _raw_header(path)
    try:
        parsed = json.loads(raw)
        metadata = parsed.pop("__metadata__", {})
        tensors = {name: _stored(name, entry, path, 8 + len(raw)) for name, entry in parsed.items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise _corrupt(path, f"its header cannot be read ({type(error).__name__}: {error})") from error
    _check_offsets(path, tensors, 8 + len(raw), size)
    return tensors, metadata, raw


def _raw_header(path: Path) -> tuple[bytes, int]:
    try:
        if path.exists() and not path.is_file():
            raise _corrupt(path, "it is no regular file")
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            if len(start) < 8:
                raise _corrupt(path, f"it is only {size} bytes long")
            (length,) = struct.unpack("<Q", start)
            if length > _HEADER_LIMIT:
                raise _corrupt(path, f"its header claims {length:,} bytes; this is not a safetensors file")
            if 8 + length > size:
                raise _corrupt(path, f"its header should be {length:,} bytes long, the file has {size:,}")
            return file.read(length), size
    except FileNotFoundError as error:
        raise OcriaError(
            "A weight file is missing.", where=str(path), fix="download or copy the model again"
        ) from error
    except OSError as error:
        raise OcriaError(f"A weight file cannot be read: {error.strerror}.", where=str(path)) from error


def _stored(name: str, entry: dict, path: Path, data: int) -> StoredTensor:
    dtype, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    count = 1
    for side in shape:
        if not isinstance(side, int) or side < 0:
            raise ValueError(f"{name}: shape {shape}")
        count *= side
    if dtype not in DTYPE_BYTES:
        raise ValueError(f"{name}: unknown dtype {dtype}")
    if not 0 <= start <= end or end - start != count * DTYPE_BYTES[dtype]:
        raise ValueError(f"{name}: {end - start} bytes for shape {list(shape)} of {dtype}")
    return StoredTensor(name, dtype, shape, path, data + start, end - start)


def _check_offsets(path: Path, tensors: dict[str, StoredTensor], data: int, size: int) -> None:
    """Tensors must follow each other without gap or overlap and end exactly at the end of the file."""
    at = data
    for tensor in sorted(tensors.values(), key=lambda t: (t.offset, t.nbytes)):
        if tensor.offset != at:
            raise _corrupt(path, f"the bytes of '{tensor.name}' do not follow the tensor before them")
        at += tensor.nbytes
    if size < at:
        raise _corrupt(path, f"it is truncated: {at:,} bytes expected, {size:,} found")
    if size > at:
        raise _corrupt(path, f"it holds {size - at:,} bytes that belong to no tensor")


def _corrupt(path: Path, why: str) -> OcriaError:
    return OcriaError(
        f"A weight file is damaged: {why}.", where=str(path), fix="download or copy the file again, then retry"
    )


def list_shards(folder: Path) -> tuple[list[str], dict[str, str] | None]:
    """The names of a model folder's weight files, and the index's map from tensor to file where there is one.

    Raises:
        OcriaError: no safetensors weights, pickled weights, a damaged index, or a shard that is named but missing.
    """
    refuse_unsafe(sorted(p.name for p in folder.iterdir()), str(folder))
    present = sorted(p.name for p in folder.glob("*.safetensors"))
    index = folder / INDEX
    if not index.is_file():
        if (folder / SINGLE).is_file() and len(present) == 1:
            return present, None
        if present:
            raise OcriaError(
                f"The folder holds {len(present)} safetensors files but no {INDEX} that says what is in them.",
                where=str(folder),
                fix="copy the index from where the model came from",
            )
        raise OcriaError(
            "The folder holds no safetensors weights.",
            where=str(folder),
            fix=f"it should have {SINGLE}, or shards with {INDEX}",
        )
    weight_map = read_index(index)
    named = sorted(set(weight_map.values()))
    if missing := [name for name in named if name not in present]:
        raise OcriaError(
            f"{len(missing)} of {len(named)} weight files are missing: {', '.join(missing[:4])}.",
            where=str(folder),
            fix="download or copy them again; the index names them",
        )
    # Left-over shards would be loaded by some readers and not by others.
    if stray := [name for name in present if name not in named]:
        raise OcriaError(
            f"The index does not know these weight files: {', '.join(stray[:4])}.",
            where=str(index),
            fix="remove the stray files, or restore the index that belongs to them",
        )
    return named, weight_map


def read_index(path: Path) -> dict[str, str]:
    """The `weight_map` of an index file; raises OcriaError where it is damaged or points outside its folder."""
    try:
        weight_map = json.loads(path.read_text())["weight_map"]
        if not weight_map or not all(isinstance(k, str) and isinstance(v, str) for k, v in weight_map.items()):
            raise ValueError("no tensors are listed")
        if outside := [v for v in weight_map.values() if Path(v).name != v]:
            raise ValueError(f"it points outside its folder: {outside[0]}")
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise OcriaError(
            f"The index of the weight files cannot be read ({type(error).__name__}: {error}).",
            where=str(path),
            fix="download or copy it again",
        ) from error
    return weight_map


def refuse_unsafe(names: list[str], where: str) -> None:
    """Refuses folders with pickled weights or Python code: neither is ever loaded, so neither may look as if
    it were."""
    if pickled := [n for n in names if n.lower().endswith(PICKLED)]:
        raise OcriaError(
            f"The model folder holds pickled files, which can run code when loaded: {', '.join(pickled[:4])}.",
            where=where,
            fix="keep the safetensors weights only; pickled ones are never opened",
        )
    if code := [n for n in names if n.endswith((".py", ".so", ".pyc"))]:
        raise OcriaError(
            f"The model folder holds code, which is never run: {', '.join(code[:4])}.",
            where=where,
            fix="remove it: Qwen3.5 is part of transformers and vLLM",
        )


def open_tensors(folder: Path) -> tuple[dict[str, StoredTensor], dict[str, bytes]]:
    """Every tensor of a model folder by its stored name, in file order, and each file's raw header.

    Raises:
        OcriaError: as :func:`list_shards` and :func:`read_header`; also where index and files disagree.
    """
    shards, weight_map = list_shards(folder)
    found: dict[str, StoredTensor] = {}
    headers: dict[str, bytes] = {}
    for shard in shards:
        tensors, _, headers[shard] = read_header(folder / shard)
        if twice := [name for name in tensors if name in found]:
            raise OcriaError(
                f"'{twice[0]}' is stored twice, in {found[twice[0]].path.name} and {shard}.",
                where=str(folder),
                fix="restore the files as they were published",
            )
        found |= tensors
    if weight_map is not None:
        check_index(weight_map, {name: tensor.path.name for name, tensor in found.items()}, str(folder / INDEX))
    return found, headers


def check_index(weight_map: dict[str, str], stored: dict[str, str], where: str) -> None:
    """Raises OcriaError where the index and what the files hold disagree."""
    wrong = [name for name in sorted(weight_map.keys() | stored.keys()) if weight_map.get(name) != stored.get(name)]
    if wrong:
        name = wrong[0]
        raise OcriaError(
            f"The index is stale: {len(wrong)} tensors are not where it says. "
            f"'{name}': index says {weight_map.get(name, 'nothing')}, found in {stored.get(name, 'no file')}.",
            where=where,
            fix="restore the index that belongs to these files",
        )


def read_chunks(tensor: StoredTensor, chunk: int) -> Iterator[memoryview]:
    """A tensor's bytes, `chunk` bytes at a time; each view is valid until the next one is asked for.

    Plain reads into one buffer, not a mapping: mapped pages would count as this process's memory.
    """
    buffer = bytearray(min(chunk, tensor.nbytes))
    view = memoryview(buffer)
    with tensor.path.open("rb", buffering=0) as file:
        at, end = tensor.offset, tensor.offset + tensor.nbytes
        while at < end:
            want = min(len(buffer), end - at)
            read_into(file.fileno(), view[:want], at, tensor.path)
            yield view[:want]
            at += want


def read_into(descriptor: int, view: memoryview, offset: int, path: Path) -> None:
    """Fills `view` from `offset`; raises OcriaError when the file ends early or cannot be read."""
    done = 0
    while done < len(view):
        try:
            got = os.preadv(descriptor, [view[done:]], offset + done)
        except OSError as error:
            raise OcriaError(f"A weight file cannot be read: {error.strerror}.", where=str(path)) from error
        if got == 0:
            raise _corrupt(path, f"it ends at byte {offset + done:,}, before a tensor does")
        done += got
