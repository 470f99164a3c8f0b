"""Tiny random Qwen3.5 checkpoints for tests, and the ways in which a checkpoint can be broken.

`make_model` writes a folder in well under a second and never runs a model: names and shapes come from transformers' own
model on the meta device, values from numpy. The tokenizer and processor are those of `mini`.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Literal

import numpy as np

from tools.random_checkpoint import (
    copy_side_files,
    draw,
    header_of,
    shard_names,
    split,
    tensor_shapes,
    tiny_config,
    write_index,
)

Mtp = Literal["none", "mixed", "own_shard"]
Layout = Literal["canonical", "vllm"]

_OTHER_LAYOUT = (
    ("model.language_model.", "language_model.model."),
    ("model.visual.", "visual."),
    ("lm_head.", "language_model.lm_head."),
)


def make_model(
    out: Path,
    *,
    layers: int = 4,
    hidden: int = 128,
    mtp: Mtp = "mixed",
    tied: bool = True,
    layout: Layout = "canonical",
    shards: int = 1,
    seed: int = 0,
    vision_depth: int = 2,
) -> Path:
    """Writes a tiny random checkpoint into the new folder `out` and returns it.

    Args:
        out: must not exist; parents are made.
        layers: decoder layers; every fourth is full attention, the others Gated DeltaNet.
        hidden: width of the language model, a multiple of 32.
        mtp: the multi-token-prediction block is left out (and the config says so), in the same files as the rest, or in
            a last shard of its own, `model-mtp.safetensors`.
        tied: whether `lm_head` is the embedding.
        layout: prefixes of the tensor names: `model.language_model.*` or `language_model.model.*`.
        shards: weight files, not counting the block's own.
        seed: same seed, same bytes.
        vision_depth: blocks of the vision tower.
    """
    config = tiny_config(
        layers=layers, hidden=hidden, vision_depth=vision_depth, tied=tied, mtp_layers=0 if mtp == "none" else 1
    )
    shapes = tensor_shapes(config)
    apart = {n: s for n, s in shapes.items() if mtp == "own_shard" and n.startswith("mtp.")}
    groups = split({n: s for n, s in shapes.items() if n not in apart}, shards)
    files = shard_names(shards)
    if apart:
        groups, files = [*groups, apart], [*files, "model-mtp.safetensors"]
    out = Path(out)
    out.mkdir(parents=True)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    copy_side_files(out)
    for file, group in zip(files, groups, strict=True):
        _write(out / file, group, layout, seed)
    if len(files) > 1:
        write_index(out, [{spelled(n, layout): s for n, s in group.items()} for group in groups], files)
    return out


def spelled(name: str, layout: Layout) -> str:
    """A canonical tensor name as the layout spells it."""
    for ours, other in _OTHER_LAYOUT:
        if layout == "vllm" and name.startswith(ours):
            return other + name[len(ours) :]
    return name


def _write(path: Path, shapes: dict[str, tuple[int, ...]], layout: Layout, seed: int) -> None:
    head, _ = header_of({spelled(name, layout): shape for name, shape in shapes.items()})
    body = [draw(name, 0, math.prod(shape), seed).tobytes() for name, shape in shapes.items()]
    path.write_bytes(b"".join([head, *body]))


# ---- looking at a checkpoint


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, in order."""
    return sorted(Path(folder).glob("*.safetensors"))


def read_header(file: Path) -> tuple[dict, int]:
    """A safetensors file's header and the offset at which its data begins."""
    with open(file, "rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        return json.loads(stream.read(size)), 8 + size


def tensor_bytes(folder: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Every tensor of a folder by name: dtype, shape and bytes, read without any library."""
    found = {}
    for file in weight_files(folder):
        header, start = read_header(file)
        raw = file.read_bytes()
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = (entry["dtype"], tuple(entry["shape"]), raw[start + begin : start + end])
    return found


def file_of(folder: Path, tensor: str) -> Path:
    """The weight file that holds a tensor."""
    for file in weight_files(folder):
        if tensor in read_header(file)[0]:
            return file
    raise KeyError(f"no file in {folder} holds {tensor}")


# ---- breaking it: each changes a folder in place, so give them a copy


def copied(folder: Path, to: Path) -> Path:
    """A copy of a checkpoint to break."""
    return Path(shutil.copytree(folder, to))


def truncate(folder: Path, *, drop: int = 100, file: str | None = None) -> Path:
    """Cuts the last `drop` bytes off a weight file (the last one unless named), as a broken download does."""
    path = Path(folder) / file if file else weight_files(folder)[-1]
    with open(path, "r+b") as stream:
        stream.truncate(path.stat().st_size - drop)
    return path


def truncate_to(folder: Path, size: int, *, file: str | None = None) -> Path:
    """Leaves `size` bytes of a weight file: 0 for an empty file, a few for one without a whole header."""
    path = Path(folder) / file if file else weight_files(folder)[-1]
    with open(path, "r+b") as stream:
        stream.truncate(size)
    return path


def corrupt_header(folder: Path, how: Literal["json", "length", "offsets", "dtype"] = "json") -> Path:
    """Spoils the header of the first weight file.

    `json`: not JSON any more; `length`: says it is far longer than the file; `offsets`: two tensors overlap;
    `dtype`: a tensor of a type that does not exist.
    """
    path = weight_files(folder)[0]
    raw = bytearray(path.read_bytes())
    if how == "json":
        raw[8:16] = b"\x00garbage"
    elif how == "length":
        raw[:8] = (1 << 60).to_bytes(8, "little")
    else:
        header, start = read_header(path)
        names = [name for name in header if name != "__metadata__"]
        if how == "dtype":
            header[names[0]]["dtype"] = "X99"
        else:
            begin, end = header[names[0]]["data_offsets"]
            header[names[0]]["data_offsets"] = [begin + 2, end + 2]
        _replace(path, header, bytes(raw[start:]))
        return path
    path.write_bytes(raw)
    return path


def put_value(folder: Path, tensor: str, value: float, *, index: int = 0) -> Path:
    """Overwrites one bfloat16 value of a tensor."""
    path = file_of(folder, tensor)
    header, start = read_header(path)
    entry = header[tensor]
    if entry["dtype"] != "BF16":
        raise ValueError(f"{tensor} is {entry['dtype']}, not BF16")
    bits = int(np.float32(value).view(np.uint32)) >> 16
    if math.isnan(value):
        bits = 0x7FC0
    with open(path, "r+b") as stream:
        stream.seek(start + entry["data_offsets"][0] + 2 * index)
        stream.write(bits.to_bytes(2, "little"))
    return path


def put_nan(folder: Path, tensor: str, *, index: int = 0) -> Path:
    """Puts one NaN into a tensor."""
    return put_value(folder, tensor, math.nan, index=index)


def put_inf(folder: Path, tensor: str, *, index: int = 0) -> Path:
    """Puts one infinity into a tensor."""
    return put_value(folder, tensor, math.inf, index=index)


def zero_row(folder: Path, tensor: str, row: int = 0) -> Path:
    """Makes a whole output row of a matrix zero: the case in which a careless scale is 0."""
    path = file_of(folder, tensor)
    header, start = read_header(path)
    entry = header[tensor]
    width = 2 * math.prod(entry["shape"][1:])
    with open(path, "r+b") as stream:
        stream.seek(start + entry["data_offsets"][0] + row * width)
        stream.write(bytes(width))
    return path


def drop_shard(folder: Path, which: int = 0) -> Path:
    """Deletes a weight file that the index still names; returns its path."""
    path = weight_files(folder)[which]
    path.unlink()
    return path


def drop_index(folder: Path) -> None:
    """Deletes the index of a sharded checkpoint."""
    (Path(folder) / "model.safetensors.index.json").unlink()


def stale_index(folder: Path, how: Literal["extra", "missing", "moved", "file"] = "extra") -> str:
    """Makes the index of a sharded checkpoint disagree with its files; returns the tensor concerned.

    `extra`: names a tensor that no file has; `missing`: does not name one that is there; `moved`: looks for one in the
    wrong file; `file`: names a file that is not there.
    """
    path = Path(folder) / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    weights = index["weight_map"]
    name = sorted(weights)[0]
    if how == "extra":
        name = "model.language_model.layers.99.mlp.up_proj.weight"
        weights[name] = sorted(set(weights.values()))[0]
    elif how == "missing":
        del weights[name]
    elif how == "moved":
        weights[name] = next(file for file in sorted(set(weights.values())) if file != weights[name])
    else:
        weights[name] = "model-00009-of-00009.safetensors"
    path.write_text(json.dumps(index, indent=2))
    return name


def drop_tensors(folder: Path, prefix: str) -> list[str]:
    """Removes every tensor whose name starts with `prefix` (and its index entries), as a careless save does."""
    gone = []
    for file in weight_files(folder):
        header, start = read_header(file)
        raw, kept, body, at = file.read_bytes()[start:], {}, [], 0
        for name, entry in header.items():
            if name == "__metadata__":
                kept[name] = entry
            elif name.startswith(prefix):
                gone.append(name)
            else:
                begin, end = entry["data_offsets"]
                kept[name] = {**entry, "data_offsets": [at, at + end - begin]}
                body.append(raw[begin:end])
                at += end - begin
        if set(kept) - {"__metadata__"}:
            _replace(file, kept, b"".join(body))
        else:
            file.unlink()
    _forget_in_index(folder, set(gone))
    return gone


def rename_tensor(folder: Path, old: str, new: str) -> None:
    """Gives a tensor another name, in its file only."""
    path = file_of(folder, old)
    header, start = read_header(path)
    raw = path.read_bytes()[start:]
    _replace(path, {new if name == old else name: entry for name, entry in header.items()}, raw)


def edit_config(folder: Path, **changes: object) -> dict:
    """Sets keys of `config.json` (`text_config__hidden_size=64` for nested ones, `None` removes) and returns it."""
    path = Path(folder) / "config.json"
    config = json.loads(path.read_text())
    for key, value in changes.items():
        *parents, last = key.split("__")
        target = config
        for parent in parents:
            target = target[parent]
        if value is None:
            target.pop(last, None)
        else:
            target[last] = value
    path.write_text(json.dumps(config, indent=2))
    return config


def add_python_code(folder: Path) -> Path:
    """Adds code that a careless loader would run: it leaves a file `ran` beside itself when it is."""
    code = "from pathlib import Path\nPath(__file__).with_name('ran').write_text('ran')\n"
    path = Path(folder) / "modeling_custom.py"
    path.write_text(code)
    return path


def add_pickle(folder: Path) -> Path:
    """Adds pickled weights that leave a file `unpickled` in the folder when they are loaded."""
    import pickle

    class Trap:
        def __reduce__(self) -> tuple:
            return Path.touch, (Path(folder) / "unpickled",)

    path = Path(folder) / "pytorch_model.bin"
    path.write_bytes(pickle.dumps(Trap()))
    return path


def add_adapter(folder: Path) -> Path:
    """Makes the folder look like a LoRA adapter."""
    path = Path(folder) / "adapter_config.json"
    path.write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "Qwen/Qwen3.5-4B", "r": 16}))
    (Path(folder) / "adapter_model.safetensors").write_bytes(header_of({})[0])
    return path


def _replace(path: Path, header: dict, body: bytes) -> None:
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def _forget_in_index(folder: Path, names: set[str]) -> None:
    path = Path(folder) / "model.safetensors.index.json"
    if path.is_file():
        index = json.loads(path.read_text())
        index["weight_map"] = {n: file for n, file in index["weight_map"].items() if n not in names}
        path.write_text(json.dumps(index, indent=2))
