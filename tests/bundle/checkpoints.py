"""Small checkpoints made by hand with numpy: a source, right results of it, and the means to break them.

Nothing of the package is used here, so that what the checker reads was written by someone else.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

Stored = dict[str, tuple[str, tuple[int, ...], bytes]]
"""Name -> (dtype, shape, bytes)."""

H, WIDE, V = 64, 128, 96
TEXT = "model.language_model."
BIG = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
BIG += ("self_attn.o_proj", "linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "linear_attn.out_proj")
TARGETS = [r"re:.*language_model\.(model\.)?layers\.\d+\.(" + "|".join(name.replace(".", r"\.") for name in BIG) + ")$"]
FP8 = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}
KV = {"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": True, "dynamic": False}
NVFP4 = {**FP8, "num_bits": 4, "strategy": "tensor_group", "group_size": 16}
CODES = np.array([(m * 2.0**-9 if e == 0 else (1 + m / 8) * 2.0 ** (e - 7)) for e in range(16) for m in range(8)][:127])
FOUR = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def bf16(x: np.ndarray) -> bytes:
    """Rounded to nearest even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()


def from_bf16(raw: bytes, shape: tuple[int, ...]) -> np.ndarray:
    return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)


def nearest(x: np.ndarray, values: np.ndarray, sign: int) -> np.ndarray:
    """Codes of the nearest of ascending `values`; negative ones get the bit `sign`."""
    code = np.searchsorted((values[1:] + values[:-1]) / 2, np.abs(x))
    return (code | np.where(x < 0, sign, 0)).astype(np.uint8)


def shapes() -> dict[str, tuple[int, ...]]:
    """Every tensor of the source."""
    found: dict[str, tuple[int, ...]] = {f"{TEXT}embed_tokens.weight": (V, H), f"{TEXT}norm.weight": (H,)}
    for layer in range(4):
        found |= _layer(f"{TEXT}layers.{layer}.", full=layer == 3)
    found |= _layer("mtp.layers.0.", full=True) | {"mtp.fc.weight": (H, 2 * H), "mtp.norm.weight": (H,)}
    block = "model.visual.blocks.0."
    found |= {f"{block}attn.qkv.weight": (96, 32), f"{block}attn.qkv.bias": (96,), f"{block}attn.proj.weight": (32, 32)}
    found |= {f"{block}mlp.linear_fc1.weight": (64, 32), f"{block}mlp.linear_fc2.weight": (32, 64)}
    found |= {"model.visual.patch_embed.proj.weight": (32, 3, 2, 4, 4), "model.visual.pos_embed.weight": (16, 32)}
    merger = "model.visual.merger.linear_fc"
    return found | {f"{merger}1.weight": (128, 128), f"{merger}2.weight": (H, 128)}


def _layer(at: str, full: bool) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {f"{at}input_layernorm.weight": (H,)}
    found |= {f"{at}mlp.{n}_proj.weight": (WIDE, H) for n in ("gate", "up")} | {f"{at}mlp.down_proj.weight": (H, WIDE)}
    if full:
        attention = f"{at}self_attn."
        sizes = {"q_proj": (128, H), "k_proj": (32, H), "v_proj": (32, H), "o_proj": (H, 64)}
        return found | {f"{attention}{name}.weight": size for name, size in sizes.items()}
    gdn = {"in_proj_qkv": (128, H), "in_proj_z": (64, H), "out_proj": (H, 64), "in_proj_a": (4, H), "in_proj_b": (4, H)}
    found |= {f"{at}linear_attn.{name}.weight": size for name, size in gdn.items()}
    return found | {f"{at}linear_attn.conv1d.weight": (128, 1, 4), f"{at}linear_attn.A_log": (4,)}


CONFIG: dict = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "text_config": {
        "hidden_size": H,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "mtp_num_hidden_layers": 1,
        "num_hidden_layers": 4,
    },
    "vision_config": {"depth": 1},
}
SIDE = ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json", "video_preprocessor_config.json")


def make_source(folder: Path) -> Path:
    """A source with MTP and tied embeddings, in two shards."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    stored: Stored = {n: ("BF16", s, bf16(rng.standard_normal(s) * 0.05)) for n, s in shapes().items()}
    write_weights(folder, stored)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    for name in SIDE:
        (folder / name).write_text(json.dumps({"file": name}))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "generation_config.json").write_text("{}")
    return folder


def fp8(weight: np.ndarray) -> Stored:
    """FP8 per channel: the parameters of one Linear."""
    scale = from_bf16(bf16(np.abs(weight).max(1, keepdims=True) / 448), (len(weight), 1))
    codes = nearest(weight / scale, CODES, 128)
    return {"weight": ("F8_E4M3", weight.shape, codes.tobytes()), "weight_scale": ("BF16", scale.shape, bf16(scale))}


def nvfp4(weight: np.ndarray, amax: float) -> Stored:
    """NVFP4 with the global scale (a divisor) of a group of Linears whose largest weight is `amax`."""
    divisor = np.float32(448 * 6 / amax)
    groups = weight.reshape(len(weight), -1, 16)
    scale = nearest(np.abs(groups).max(2) / 6 * divisor, CODES, 128)
    codes = nearest(groups * divisor / CODES[scale][:, :, None], FOUR, 8).reshape(weight.shape)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    return {
        "weight_packed": ("U8", packed.shape, packed.tobytes()),
        "weight_scale": ("F8_E4M3", scale.shape, scale.tobytes()),
        "weight_global_scale": ("F32", (1,), divisor.tobytes()),
    }


def make_result(source: Path, folder: Path, scheme: str = "fp8", kv: bool = False) -> Path:
    """A right quantized checkpoint with its manifest."""
    folder.mkdir(parents=True)
    stored: Stored = {}
    original = read_weights(source)
    quantized = {n for n in original if n.startswith(f"{TEXT}layers") and n.removesuffix(".weight").endswith(BIG)}
    amax = max(float(np.abs(from_bf16(original[n][2], original[n][1])).max()) for n in quantized)
    for name, (dtype, shape, raw) in original.items():
        if name not in quantized:
            stored[name] = (dtype, shape, raw)
            continue
        weight = from_bf16(raw, shape)
        parts = fp8(weight) if scheme == "fp8" else nvfp4(weight, amax)
        stored |= {f"{name.removesuffix('.weight')}.{parameter}": entry for parameter, entry in parts.items()}
    if kv:
        for name, value in (("k_scale", 0.02), ("v_scale", 0.1)):
            stored[f"{TEXT}layers.3.self_attn.{name}"] = ("BF16", (1,), bf16(np.array([value])))
    write_weights(folder, stored)
    for file in source.iterdir():
        if file.suffix in (".json", ".jinja") and "index" not in file.name:
            (folder / file.name).write_bytes(file.read_bytes())
    activations = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True} if scheme == "fp8" else None
    format_ = "float-quantized" if scheme == "fp8" else "nvfp4-pack-quantized"
    group = {"targets": TARGETS, "weights": FP8 if scheme == "fp8" else NVFP4, "input_activations": activations}
    ignore = [f"model.visual.{n}" for n in ("blocks.0.attn.qkv", "blocks.0.attn.proj", "merger.linear_fc1")]
    ignore += [f"model.visual.{n}" for n in ("blocks.0.mlp.linear_fc1", "blocks.0.mlp.linear_fc2", "merger.linear_fc2")]
    ignore += [f"{TEXT}layers.{i}.linear_attn.in_proj_{ab}" for i in range(3) for ab in "ab"] + ["re:^mtp.*"]
    quantization = {
        "quant_method": "compressed-tensors",
        "format": format_,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {**group, "format": format_}},
        "ignore": ignore,
        "kv_cache_scheme": KV if kv else None,
    }
    (folder / "config.json").write_text(json.dumps(CONFIG | {"quantization_config": quantization}))
    known = {"ocria_compress": "0", "kind": "target", "source": {"model": str(source), "revision": None}}
    write_manifest(folder, known)
    return folder


def write_weights(folder: Path, stored: Stored) -> None:
    """Two shards and their index."""
    names = list(stored)
    weight_map = {}
    for number, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        write_file(folder / file, {name: stored[name] for name in part})
        weight_map |= dict.fromkeys(part, file)
    total = sum(len(raw) for _, _, raw in stored.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write_file(file: Path, stored: Stored) -> None:
    """One safetensors file."""
    header: dict = {"__metadata__": {"format": "pt"}}
    position = 0
    for name, (dtype, shape, raw) in stored.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, position + len(raw)]}
        position += len(raw)
    write_raw(file, header, b"".join(raw for _, _, raw in stored.values()))


def write_raw(file: Path, header: dict, data: bytes) -> None:
    """Any header before any bytes."""
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_raw(file: Path) -> tuple[dict, bytes]:
    raw = file.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def read_weights(folder: Path) -> Stored:
    stored: Stored = {}
    for file in sorted(folder.glob("*.safetensors")):
        header, data = read_raw(file)
        header.pop("__metadata__", None)
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            stored[name] = (entry["dtype"], tuple(entry["shape"]), data[begin:end])
    return stored


def write_manifest(folder: Path, known: dict | None = None) -> None:
    """`ocria.json`, true of the files as they are."""
    path = folder / "ocria.json"
    data = known if known is not None else json.loads(path.read_text())
    files = [file for file in folder.iterdir() if file != path]
    entries = {f.name: {"bytes": f.stat().st_size, "sha256": hashlib.sha256(f.read_bytes()).hexdigest()} for f in files}
    path.write_text(json.dumps({**data, "files": entries}))


def edit_weights(folder: Path, change: Callable[[Stored], None]) -> None:
    """Changes tensors, and makes index and manifest true again."""
    stored = read_weights(folder)
    change(stored)
    write_weights(folder, stored)
    write_manifest(folder)


def edit_config(folder: Path, change: Callable[[dict], None]) -> None:
    """Changes config.json, and makes the manifest true again."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    write_manifest(folder)


def scaled(entry: tuple[str, tuple[int, ...], bytes], change: Callable[[np.ndarray], np.ndarray]) -> tuple:
    """A BF16 or F32 tensor with other values."""
    dtype, shape, raw = entry
    values = from_bf16(raw, shape) if dtype == "BF16" else np.frombuffer(raw, np.float32).reshape(shape)
    new = change(values.copy()).astype(np.float32)
    return dtype, shape, bf16(new) if dtype == "BF16" else new.tobytes()
