"""Makes a random Qwen3.5 checkpoint of an exact shape: names, shapes, dtypes, config and shards as a real one has them.

    python -m tools.random_checkpoint --shape qwen3.5-4b --out DIR [--shards 2] [--seed 0]

The names and shapes are those of transformers' own model, built on the meta device, plus the multi-token-prediction
block that released checkpoints carry and transformers does not build. Values are drawn in chunks, each from its own
seed (SFC64), so the result does not depend on the number of threads and never needs more than a few chunks of memory.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

CHUNK = 1 << 20
"""Values drawn from one seed."""

_BLOCK = 1 << 14

SIDE_FILES = (
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
    "vocab.json",
)
"""What is taken over from `mini`: a real tokenizer and processor, though of a small vocabulary."""

_MINI_IDS = {"image": 4083, "video": 4084, "vision_start": 4080, "vision_end": 4081, "eos": 4073, "pad": 4071}
_QWEN_IDS = {"image": 248056, "video": 248057, "vision_start": 248053, "vision_end": 248054, "eos": 248044}

_TEXT_SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim"),
    *("linear_value_head_dim", "max_position_embeddings"),
)
_TINY_TEXT = dict(zip(_TEXT_SIZES, (4096, 128, 256, 4, 4, 2, 64, 2, 4, 64, 64, 4096), strict=True))
_4B_TEXT = dict(zip(_TEXT_SIZES, (248320, 2560, 9216, 32, 16, 4, 256, 16, 32, 128, 128, 262144), strict=True))

_VISION_SIZES = ("depth", "hidden_size", "intermediate_size", "num_heads", "num_position_embeddings", "out_hidden_size")
_TINY_VISION = dict(zip(_VISION_SIZES, (2, 64, 128, 2, 64, 128), strict=True))
_4B_VISION = dict(zip(_VISION_SIZES, (24, 1024, 4096, 16, 2304, 2560), strict=True))


def config_of(text: dict, vision: dict, *, ids: dict, rope: dict, tied: bool, mtp_layers: int = 1) -> dict:
    """A whole `config.json` with the keys, and their order, of a released Qwen3.5 checkpoint.

    Args:
        text: sizes of the language model.
        vision: sizes of the vision tower.
        ids: token ids by name: image, video, vision_start, vision_end, eos and, if there is one, pad.
        rope: `rope_theta`, `partial_rotary_factor` and `mrope_section`.
        tied: whether `lm_head` is the embedding.
        mtp_layers: layers of the multi-token-prediction block, 0 for none.
    """
    layers = text["num_hidden_layers"]
    types = ["full_attention" if (i + 1) % 4 == 0 else "linear_attention" for i in range(layers)]
    text_config = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_output_gate": True,
        "dtype": "bfloat16",
        "eos_token_id": ids["eos"],
        **({"pad_token_id": ids["pad"]} if "pad" in ids else {}),
        "full_attention_interval": 4,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "layer_types": types,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "model_type": "qwen3_5_text",
        "mtp_num_hidden_layers": mtp_layers,
        "mtp_use_dedicated_embeddings": False,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {"mrope_interleaved": True, "rope_type": "default", **rope},
        "tie_word_embeddings": tied,
        "use_cache": True,
        **text,
    }
    vision_config = {
        "deepstack_visual_indexes": [],
        "hidden_act": "gelu_pytorch_tanh",
        "in_channels": 3,
        "initializer_range": 0.02,
        "model_type": "qwen3_5_vision",
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        **vision,
    }
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "dtype": "bfloat16",
        "image_token_id": ids["image"],
        "model_type": "qwen3_5",
        "text_config": dict(sorted(text_config.items())),
        "tie_word_embeddings": tied,
        "transformers_version": "5.17.0",
        "video_token_id": ids["video"],
        "vision_config": dict(sorted(vision_config.items())),
        "vision_end_token_id": ids["vision_end"],
        "vision_start_token_id": ids["vision_start"],
    }


def tiny_config(
    *, layers: int = 4, hidden: int = 128, vision_depth: int = 2, tied: bool = True, mtp_layers: int = 1
) -> dict:
    """A model of about a million parameters with every kind of module, for `mini`'s tokenizer and processor."""
    text = {**_TINY_TEXT, "hidden_size": hidden, "intermediate_size": 2 * hidden, "num_hidden_layers": layers}
    vision = {**_TINY_VISION, "depth": vision_depth, "out_hidden_size": hidden}
    rope = {"rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [6, 5, 5]}
    return config_of(text, vision, ids=_MINI_IDS, rope=rope, tied=tied, mtp_layers=mtp_layers)


def qwen_4b_config() -> dict:
    """Qwen3.5-4B, the shape of OCRia-1: 32 layers of hidden 2560, tied, one multi-token-prediction layer."""
    rope = {"rope_theta": 10000000, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}
    return config_of(_4B_TEXT, _4B_VISION, ids=_QWEN_IDS, rope=rope, tied=True)


SHAPES: dict[str, Callable[[], dict]] = {
    "qwen3.5-4b": qwen_4b_config,
    "tiny": tiny_config,
    "untied": functools.partial(tiny_config, tied=False),
}


def tensor_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Every tensor of a checkpoint with this config, by its released name, in model order.

    transformers builds the model on the meta device, so no memory is used. It has no multi-token-prediction block: as
    released, that is a projection `fc` of [hidden, 2 * hidden], three norms, and `mtp_num_hidden_layers` layers of full
    attention.
    """
    return dict(_cached_shapes(json.dumps(config, sort_keys=True)))


@functools.lru_cache(maxsize=64)
def _cached_shapes(config_json: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    config = json.loads(config_json)
    shapes = _meta_shapes(config)
    if config["tie_word_embeddings"]:
        shapes.pop("lm_head.weight", None)
    hidden = config["text_config"]["hidden_size"]
    count = config["text_config"].get("mtp_num_hidden_layers") or 0
    if count:
        four = {**config, "text_config": {**config["text_config"], "num_hidden_layers": 4, "layer_types": None}}
        prefix = "model.language_model.layers.3."
        layer = {name[len(prefix) :]: shape for name, shape in _meta_shapes(four).items() if name.startswith(prefix)}
        shapes["mtp.fc.weight"] = (hidden, 2 * hidden)
        for i in range(count):
            shapes.update({f"mtp.layers.{i}.{leaf}": shape for leaf, shape in layer.items()})
        for leaf in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
            shapes[f"mtp.{leaf}.weight"] = (hidden,)
    return tuple(shapes.items())


def _meta_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    from ocria_compress.pages.torchvision_cpu import activate

    activate()
    import torch
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    parsed = Qwen3_5Config(**{k: v for k, v in config.items() if k not in ("architectures", "model_type")})
    with torch.device("meta"):
        model = Qwen3_5ForConditionalGeneration(parsed)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def bfloat16(values: np.ndarray) -> np.ndarray:
    """The bits of fp32 `values` rounded to bfloat16, to nearest even (no NaN among them)."""
    import numpy as np

    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + ((bits >> 16) & 1) + 0x7FFF) >> 16).astype(np.uint16)


@functools.cache
def _normal_quantiles() -> np.ndarray:
    """The middles of 65,536 equally likely slices of the normal distribution; the last is at 4.32 deviations."""
    from statistics import NormalDist

    import numpy as np

    inverse = NormalDist().inv_cdf
    return np.array([inverse((i + 0.5) / 65536) for i in range(65536)])


@functools.lru_cache(maxsize=8)
def _table(name: str) -> np.ndarray:
    """The 65,536 equally likely values of a tensor, as bfloat16 bits.

    Matrices are normal with a standard deviation of 0.02 to 0.05, a little different for every tensor; norms lie near 0
    (Qwen3.5's own RMSNorm multiplies by 1 + weight) or near 1 (the vision tower's and Gated DeltaNet's output norm);
    `A_log` is the log of a uniform draw and `dt_bias` lies near 1, as transformers initializes them.
    """
    import numpy as np

    if name.endswith(".A_log"):
        return bfloat16(np.log(np.linspace(0.01, 16, 65536)))
    spread = 0.02 + 0.03 * (zlib.crc32(name.encode()) % 997) / 996
    centre = _centre(name)
    return bfloat16(_normal_quantiles() * (spread if centre is None else spread / 4) + (centre or 0.0))


def draw(name: str, start: int, count: int, seed: int) -> np.ndarray:
    """`count` bfloat16 values of tensor `name` from flat index `start`, a multiple of `CHUNK`.

    A uniform 16-bit number picks one of the values of the tensor's table, which is some ten times as fast as drawing
    normal fp32 numbers and rounding them.
    """
    import numpy as np

    source = np.random.SFC64(np.random.SeedSequence([seed, zlib.crc32(name.encode()), start // CHUNK]))
    picks = np.random.Generator(source).integers(0, 65536, count, dtype=np.uint16)
    table, values = _table(name), np.empty(count, np.uint16)
    for at in range(0, count, _BLOCK):  # the wide indices that numpy makes of the picks then stay in the cache
        values[at : at + _BLOCK] = table.take(picks[at : at + _BLOCK], mode="wrap")
    return values


def _centre(name: str) -> float | None:
    """Where the values of a vector lie; None for matrices."""
    owner, _, leaf = name.rpartition(".")
    if leaf == "dt_bias":
        return 1.0
    if leaf == "bias":
        return 0.0
    if "norm" not in owner.rpartition(".")[2]:
        return None
    return 1.0 if name.startswith("model.visual.") or owner.endswith("linear_attn.norm") else 0.0


def header_of(shapes: dict[str, tuple[int, ...]], dtype: str = "BF16", bytes_each: int = 2) -> tuple[bytes, dict]:
    """The header of a safetensors file, padded to 8 bytes, and each tensor's offset from the start of the file."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in shapes.items():
        size = math.prod(shape) * bytes_each
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    offsets = {name: len(head) + entries[name]["data_offsets"][0] for name in shapes}
    return head, {"offsets": offsets, "bytes": at}


def split(shapes: dict[str, tuple[int, ...]], shards: int) -> list[dict[str, tuple[int, ...]]]:
    """Tensors in order, in `shards` groups of about equal bytes, none of them empty."""
    groups: list[dict[str, tuple[int, ...]]] = [{} for _ in range(shards)]
    total, done = sum(map(math.prod, shapes.values())), 0
    if len(shapes) < shards:
        raise SystemExit(f"{len(shapes)} tensors do not fill {shards} shards")
    for position, (name, shape) in enumerate(shapes.items()):
        wanted = min(shards - 1, done * shards // total)
        wanted = max(wanted, shards - (len(shapes) - position))
        groups[wanted][name] = shape
        done += math.prod(shape)
    return groups


def shard_names(count: int) -> list[str]:
    """File names as transformers writes them."""
    if count == 1:
        return ["model.safetensors"]
    return [f"model-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]


def write_shard(path: Path, shapes: dict[str, tuple[int, ...]], seed: int, pool: ThreadPoolExecutor) -> int:
    """Streams one random safetensors file to `path`; returns its bytes."""
    head, place = header_of(shapes)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + place["bytes"])
        file.flush()

        def fill(job: tuple[str, int, int]) -> None:
            name, start, count = job
            _write_all(file.fileno(), draw(name, start, count, seed), place["offsets"][name] + 2 * start)

        for _ in pool.map(fill, _chunks(shapes)):
            pass
        os.fsync(file.fileno())
    return len(head) + place["bytes"]


def _write_all(descriptor: int, values: np.ndarray, at: int) -> None:
    """`os.pwrite` until every byte is written: one call may write less than it was given."""
    rest = values.data.cast("B")
    while rest:
        written = os.pwrite(descriptor, rest, at)
        rest, at = rest[written:], at + written


def _chunks(shapes: dict[str, tuple[int, ...]]) -> Iterator[tuple[str, int, int]]:
    for name, shape in shapes.items():
        size = math.prod(shape)
        for start in range(0, size, CHUNK):
            yield name, start, min(CHUNK, size - start)


def write_index(folder: Path, groups: list[dict[str, tuple[int, ...]]], files: list[str]) -> None:
    """`model.safetensors.index.json`, as transformers writes it."""
    parameters = sum(math.prod(shape) for group in groups for shape in group.values())
    weight_map = {name: file for file, group in zip(files, groups, strict=True) for name in group}
    index = {
        "metadata": {"total_parameters": parameters, "total_size": 2 * parameters},
        "weight_map": dict(sorted(weight_map.items())),
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def copy_side_files(folder: Path) -> None:
    """Puts `mini`'s tokenizer, processor, chat template and generation config into `folder`."""
    from ocria_compress.bundled import mini_folder

    for name in SIDE_FILES:
        shutil.copyfile(mini_folder() / name, folder / name)


def make_checkpoint(out: Path, config: dict, *, shards: int = 1, seed: int = 0, threads: int = 2) -> dict[str, Any]:
    """Writes a random checkpoint with this config into the new folder `out`.

    Returns:
        `parameters`, `bytes`, `seconds` of writing the weights (fsync included), and `files`.
    """
    shapes = tensor_shapes(config)
    groups, files = split(shapes, shards), shard_names(shards)
    out.mkdir(parents=True, exist_ok=False)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    copy_side_files(out)
    started, size = time.perf_counter(), 0
    with ThreadPoolExecutor(threads) as pool:
        for file, group in zip(files, groups, strict=True):
            size += write_shard(out / file, group, seed, pool)
    if shards > 1:
        write_index(out, groups, files)
    seconds = time.perf_counter() - started
    parameters = sum(map(math.prod, shapes.values()))
    return {"parameters": parameters, "bytes": size, "seconds": seconds, "files": files}


README = """# Random weights in the shape of {shape}

    {command}

{parameters:,} parameters in bfloat16, drawn at random (seed {seed}). It reads nothing; it is for measuring how fast and
with how much memory a checkpoint of this shape is worked on.

Names, shapes and `config.json` are those of the real model. The tokenizer, processor and generation config are those of
`mini`, whose vocabulary has 4,096 entries: enough to load the folder, not to write text with it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Parses the command line, writes the checkpoint and prints what was made."""
    parser = argparse.ArgumentParser(prog="python -m tools.random_checkpoint", description=__doc__.split("\n")[0])
    parser.add_argument("--shape", choices=sorted(SHAPES), default="qwen3.5-4b")
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist yet")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args(arguments)
    if given.out.exists():
        parser.error(f"{given.out} exists already")
    if given.shards < 1 or given.threads < 1:
        parser.error("--shards and --threads are 1 or more")
    config = SHAPES[given.shape]()
    made = make_checkpoint(given.out, config, shards=given.shards, seed=given.seed, threads=given.threads)
    command = f"python -m tools.random_checkpoint --shape {given.shape} --shards {given.shards} --seed {given.seed}"
    about = {"shape": given.shape, "command": command, "parameters": made["parameters"], "seed": given.seed}
    (given.out / "README.md").write_text(README.format(**about))
    print(f"{given.shape}: {made['parameters']:,} parameters, {made['bytes'] / 1e9:.3f} GB in {given.shards} file(s)")
    print(f"written with fsync in {made['seconds']:.1f} s, {made['bytes'] / made['seconds'] / 1e6:.0f} MB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
