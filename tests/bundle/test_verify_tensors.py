"""Tensors and scales: each field failure broken into a right checkpoint, caught by the right check."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ocria_compress.bundle.verify import checks_values
from ocria_compress.bundle.verify.context import Context
from ocria_compress.bundle.verify.layouts import to_float
from ocria_compress.bundle.verify.reader import Folder
from ocria_compress.bundle.verify.report import State
from tests.bundle.checkpoints import (
    TEXT,
    bf16,
    edit_config,
    edit_weights,
    read_weights,
    scaled,
    write_manifest,
    write_raw,
)

GATE = f"{TEXT}layers.0.mlp.gate_proj"
KV = f"{TEXT}layers.3.self_attn."


def _scale(folder: Path, name: str, change) -> None:
    edit_weights(folder, lambda stored: stored.update({name: scaled(stored[name], change)}))


def test_tensor_lost(result, found):
    edit_weights(result, lambda stored: stored.pop(f"{TEXT}norm.weight"))
    assert found(result)["tensors"].items == [f"{TEXT}norm.weight is missing"]


def test_extra_tensor(result, found):
    edit_weights(result, lambda stored: stored.update({"model.extra.weight": ("BF16", (2,), b"\0" * 4)}))
    assert found(result)["tensors"].items == ["model.extra.weight is in no source"]


def test_vision_keys_saved_under_the_language_model(result, found):
    def move(stored):
        for name in [n for n in stored if n.startswith("model.visual.")]:
            stored[name.replace("model.visual.", f"{TEXT}visual.")] = stored.pop(name)

    edit_weights(result, move)
    checks = found(result)
    assert "model.visual.blocks.0.attn.qkv.weight is missing" in checks["tensors"].items
    assert f"{TEXT}visual.blocks.0.attn.qkv.weight is in no source" in checks["tensors"].items
    assert {"scales-or-ignore", "rules"} <= set(checks)


def test_other_prefix_layout_of_the_source_is_the_same_model(result, source, found, tmp_path):
    other = Path(shutil.copytree(source, tmp_path / "other"))
    (other / "ocria.json").write_text("{}")

    def rename(stored):
        for name in list(stored):
            new = name.replace(TEXT, "language_model.model.").replace("model.visual.", "visual.")
            stored[new] = stored.pop(name)

    edit_weights(other, rename)
    assert found(result, source=str(other)) == {}


def test_copy_of_the_tied_head_in_the_source_may_be_left_out_if_equal(result, source, found, tmp_path):
    other = Path(shutil.copytree(source, tmp_path / "other"))
    (other / "ocria.json").write_text("{}")
    table = f"{TEXT}embed_tokens.weight"
    edit_weights(other, lambda stored: stored.update({"lm_head.weight": stored[table]}))
    assert found(result, source=str(other)) == {}
    _scale(other, "lm_head.weight", lambda x: x * 2)
    assert found(result, source=str(other))["tensors"].items == ["lm_head.weight is missing"]


def test_changed_kept_tensor(result, found):
    def flip(stored):
        dtype, shape, raw = stored["model.visual.merger.linear_fc2.weight"]
        stored["model.visual.merger.linear_fc2.weight"] = (dtype, shape, raw[:777] + bytes([raw[777] ^ 1]) + raw[778:])

    edit_weights(result, flip)
    checks = found(result)
    assert list(checks) == ["kept-tensors"]
    assert checks["kept-tensors"].items == [
        "model.visual.merger.linear_fc2.weight: differs from the source from byte 777 on"
    ]


def test_nan_in_a_kept_tensor_that_the_source_has_too(result, source, found, tmp_path):
    other = Path(shutil.copytree(source, tmp_path / "other"))
    (other / "ocria.json").write_text("{}")
    for folder in (other, result):
        _scale(folder, f"{TEXT}norm.weight", lambda x: np.where(np.arange(64) == 5, np.nan, x))
    assert found(result, source=str(other))["kept-tensors"].items == [f"{TEXT}norm.weight: has NaN or infinite values"]


def test_kept_tensor_saved_in_another_dtype(result, found):
    def widen(stored):
        _, shape, raw = stored[f"{TEXT}norm.weight"]
        stored[f"{TEXT}norm.weight"] = ("F32", shape, raw + raw)

    edit_weights(result, widen)
    assert {"dtypes-shapes", "kept-tensors"} <= set(found(result))


def test_swapped_dtype_of_codes(result, found):
    edit_weights(result, lambda stored: stored.update({f"{GATE}.weight": ("F8_E5M2", *stored[f"{GATE}.weight"][1:])}))
    checks = found(result)
    assert "should be F8_E4M3" in checks["dtypes-shapes"].items[0]
    assert "cannot be read back" in checks["dequantized"].items[0]


def test_scale_of_another_shape(result, found):
    name = f"{GATE}.weight_scale"
    edit_weights(result, lambda stored: stored.update({name: ("BF16", (128,), stored[name][2])}))
    assert "should be BF16 or F16 or F32 [128, 1]" in found(result)["dtypes-shapes"].items[0]


def test_scale_lost(result, found):
    edit_weights(result, lambda stored: stored.pop(f"{GATE}.weight_scale"))
    checks = found(result)
    assert "vllm-names" in checks and "scales-or-ignore" in checks


def test_input_scale_that_dynamic_activations_do_not_have(result, found):
    edit_weights(result, lambda stored: stored.update({f"{GATE}.input_scale": ("BF16", (1,), bf16(np.array([0.1])))}))
    assert found(result)["dtypes-shapes"].items == [f"{GATE}.input_scale has no place in FP8 per channel"]


@pytest.mark.parametrize("value, word", [(0.0, "zero"), (np.nan, "NaN"), (np.inf, "infinite"), (-0.01, "negative")])
def test_scale_that_cannot_be_right(result, found, value, word):
    _scale(result, f"{GATE}.weight_scale", lambda x: np.where(np.arange(128)[:, None] == 7, value, x))
    checks = found(result)
    assert checks["scales"].items == [f"{GATE}.weight_scale: 1 of 128 are {word}"]
    assert "dequantized" in checks


def test_reciprocal_scale(result, found):
    _scale(result, f"{GATE}.weight_scale", lambda x: 1 / x)
    checks = found(result)
    assert "reciprocal" in checks["dequantized"].items[0] and GATE in checks["dequantized"].items[0]
    assert "absurd" in checks["scales"].items[0]


def test_scale_off_by_three_percent_hides_in_no_rounding_error(result, found):
    _scale(result, f"{GATE}.weight_scale", lambda x: x * 1.03)
    checks = found(result)
    assert list(checks) == ["dequantized"] and GATE in checks["dequantized"].items[0]


def test_scale_of_one_row_hand_edited(result, found):
    _scale(result, f"{GATE}.weight_scale", lambda x: np.where(np.arange(128)[:, None] == 7, x * 1.1, x))
    checks = found(result)
    assert list(checks) == ["dequantized"] and "row 7" in checks["dequantized"].items[0]


def test_rows_of_codes_in_another_order(result, found):
    def roll(stored):
        dtype, shape, raw = stored[f"{GATE}.weight"]
        stored[f"{GATE}.weight"] = (dtype, shape, raw[64:] + raw[:64])

    edit_weights(result, roll)
    assert list(found(result)) == ["dequantized"]


def test_recipe_may_ask_for_a_smaller_error_than_the_format(result, found):
    import json

    known = json.loads((result / "ocria.json").read_text())
    write_manifest(result, {**known, "recipe": {"gates": {"weight_error": {"max": 0.02}}}})
    assert "over 0.02" in found(result)["dequantized"].items[0]


def test_streaming_in_small_pieces_gives_the_same(result, nvfp4, found, monkeypatch):
    monkeypatch.setattr(checks_values, "_ELEMENTS", 200)  # three rows at a time: no multiple of the tensors' heights
    monkeypatch.setattr(checks_values, "CHUNK", 56)
    assert found(result) == {} and found(nvfp4) == {}
    _scale(result, f"{GATE}.weight_scale", lambda x: np.where(np.arange(128)[:, None] == 7, x * 1.1, x))
    assert "row 7" in found(result)["dequantized"].items[0]


def test_large_kept_tensor_is_never_in_memory_whole(tmp_path):
    rows, width = 1 << 17, 1024  # 256 MiB, of which the disk holds nothing
    for name in ("source", "result"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "model.safetensors"
        entry = {"dtype": "BF16", "shape": [rows, width], "data_offsets": [0, 2 * rows * width]}
        write_raw(file, {f"{TEXT}embed_tokens.weight": entry}, b"")
        with file.open("r+b") as handle:
            handle.truncate(file.stat().st_size + 2 * rows * width)
    ctx = Context(Folder.read(tmp_path / "result"), Folder.read(tmp_path / "source"))
    tracemalloc.start()
    try:
        check = checks_values.kept_tensors(ctx)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert check.state is State.PASSED and peak < 64 << 20


def test_kv_scale_of_one_layer_lost(with_kv, found):
    edit_weights(with_kv, lambda stored: stored.pop(f"{KV}v_scale"))
    assert found(with_kv)["kv-scales"].items == [f"{KV}v_scale is missing: vLLM would serve at scale 1.0"]


def test_kv_scales_all_one(with_kv, found):
    for kv in "kv":
        _scale(with_kv, f"{KV}{kv}_scale", np.ones_like)
    checks = found(with_kv)
    assert list(checks) == ["kv-scales"] and "exactly 1.0" in checks["kv-scales"].items[0]


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -1.0])
def test_kv_scale_that_cannot_be_right(with_kv, found, value):
    _scale(with_kv, f"{KV}k_scale", lambda x: np.full_like(x, value))
    assert f"{KV}k_scale: it is" in found(with_kv)["kv-scales"].items[0]


def test_kv_scale_on_a_layer_without_a_kv_cache(with_kv, found):
    name = f"{TEXT}layers.0.self_attn.k_scale"
    edit_weights(with_kv, lambda stored: stored.update({name: ("BF16", (1,), bf16(np.array([0.1])))}))
    assert found(with_kv)["kv-scales"].items == [f"{name} belongs to no full-attention layer"]


def test_kv_scales_without_a_scheme_are_dropped_silently_by_vllm(with_kv, found):
    edit_config(with_kv, lambda config: config["quantization_config"].update(kv_cache_scheme=None))
    assert len(found(with_kv)["kv-scales"].items) == 2


def test_kv_scheme_without_scales(result, found):
    scheme = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}
    edit_config(result, lambda config: config["quantization_config"].update(kv_cache_scheme=scheme))
    assert len(found(result)["kv-scales"].items) == 2


def test_nvfp4_global_scale_of_one_shard_hand_edited(nvfp4, found):
    _scale(nvfp4, f"{GATE}.weight_global_scale", lambda x: x * 1.02)
    checks = found(nvfp4)
    assert list(checks) == ["fused-scales"]  # two percent hide below NVFP4's rounding: the group gives it away
    assert "gate_up_proj: weight_global_scale differs: gate_proj" in checks["fused-scales"].items[0]


def test_nvfp4_global_scale_of_a_lone_module_hand_edited(nvfp4, found):
    _scale(nvfp4, f"{TEXT}layers.0.mlp.down_proj.weight_global_scale", lambda x: x * 1.1)
    assert list(found(nvfp4)) == ["dequantized"]


def test_nvfp4_global_scale_stored_as_factor(nvfp4, found):
    for part in ("gate", "up"):
        _scale(nvfp4, f"{TEXT}layers.0.mlp.{part}_proj.weight_global_scale", lambda x: 1 / x)
    items = found(nvfp4)["dequantized"].items
    assert len(items) == 2 and all("reciprocal" in item for item in items)


def test_nvfp4_halves_of_each_byte_swapped(nvfp4, found):
    def swap(stored):
        dtype, shape, raw = stored[f"{GATE}.weight_packed"]
        codes = np.frombuffer(raw, np.uint8)
        stored[f"{GATE}.weight_packed"] = (dtype, shape, (codes >> 4 | codes << 4).tobytes())

    edit_weights(nvfp4, swap)
    assert GATE in found(nvfp4)["dequantized"].items[0]


def test_nvfp4_group_scale_of_zero(nvfp4, found):
    def zero(stored):
        dtype, shape, raw = stored[f"{GATE}.weight_scale"]
        stored[f"{GATE}.weight_scale"] = (dtype, shape, b"\0" + raw[1:])

    edit_weights(nvfp4, zero)
    assert found(nvfp4)["scales"].items == [f"{GATE}.weight_scale: 1 of 512 are zero"]


def test_nvfp4_with_activations_needs_input_global_scales(nvfp4, found):
    activations = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "dynamic": "local", "group_size": 16}
    edit_config(
        nvfp4, lambda c: c["quantization_config"]["config_groups"]["group_0"].update(input_activations=activations)
    )
    assert f"{GATE}.input_global_scale is missing (NVFP4)" in found(nvfp4)["dtypes-shapes"].items


def test_e4m3_values_are_torch_s():
    import torch

    codes = torch.arange(256, dtype=torch.uint8)
    expected = codes.view(torch.float8_e4m3fn).float().numpy()
    np.testing.assert_array_equal(to_float(codes.numpy(), "F8_E4M3"), expected)


def test_bf16_values_are_torch_s():
    import torch

    x = torch.randn(1000)
    raw = np.frombuffer(bf16(x.numpy()), np.uint8)
    np.testing.assert_array_equal(to_float(raw, "BF16"), x.bfloat16().float().numpy())


def test_hand_made_checkpoint_holds_what_it_should(result):
    stored = read_weights(result)
    assert stored[f"{GATE}.weight"][0] == "F8_E4M3" and stored["mtp.fc.weight"][0] == "BF16"
