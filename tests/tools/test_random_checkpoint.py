"""Random checkpoints have the exact shape they claim, load, and do not depend on how they were written."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import models as broken
from tests.models import make_model, read_header, tensor_bytes, weight_files
from tools import random_checkpoint as made

SHARES_4B = {"language": 4_205_751_296, "vision": 333_514_240, "mtp": 120_599_552}


def values(folder: Path, tensor: str) -> np.ndarray:
    _, shape, raw = tensor_bytes(folder)[tensor]
    return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)


def load(folder: Path):
    import torch

    from ocria_compress.pages.torchvision_cpu import activate

    activate()
    from transformers import Qwen3_5ForConditionalGeneration

    torch.set_num_threads(1)
    return Qwen3_5ForConditionalGeneration.from_pretrained(folder, dtype=torch.bfloat16, output_loading_info=True)


def test_the_4b_shape_has_the_parameters_of_qwen_3_5_4b() -> None:
    shapes = made.tensor_shapes(made.SHAPES["qwen3.5-4b"]())
    share = dict.fromkeys(SHARES_4B, 0)
    for name, shape in shapes.items():
        part = "mtp" if name.startswith("mtp.") else "vision" if name.startswith("model.visual.") else "language"
        share[part] += math.prod(shape)
    assert share == SHARES_4B
    assert sum(share.values()) == 4_659_865_088
    assert "lm_head.weight" not in shapes
    assert shapes["model.language_model.embed_tokens.weight"] == (248320, 2560)
    assert shapes["model.language_model.layers.3.self_attn.q_proj.weight"] == (8192, 2560)
    assert shapes["model.language_model.layers.0.linear_attn.in_proj_qkv.weight"] == (8192, 2560)
    assert shapes["mtp.fc.weight"] == (2560, 5120)


def test_the_4b_config_is_read_by_transformers_as_written() -> None:
    from transformers import Qwen3_5Config

    config = made.SHAPES["qwen3.5-4b"]()
    read = Qwen3_5Config.from_dict(config).to_dict()
    for section in ("text_config", "vision_config"):
        for key, value in config[section].items():
            assert read[section][key] == value, f"{section}.{key}"
    full = [i for i, kind in enumerate(config["text_config"]["layer_types"]) if kind == "full_attention"]
    assert full == [3, 7, 11, 15, 19, 23, 27, 31]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mtp": "own_shard", "shards": 2},
        {"mtp": "none", "shards": 3},
        {"tied": False},
        {"layers": 8, "hidden": 192},
    ],
    ids=lambda options: " ".join(f"{k}={v}" for k, v in options.items()) or "tiny",
)
def test_a_tiny_model_loads_without_a_missing_key_and_gives_finite_logits(models, options: dict) -> None:
    import torch

    folder = models(**options)
    model, info = load(folder)
    assert not info["missing_keys"] and not info["mismatched_keys"]
    assert all(name.startswith("mtp.") for name in info["unexpected_keys"])
    with torch.no_grad():
        logits = model(input_ids=torch.arange(100, 132)[None]).logits
    assert bool(logits.isfinite().all()) and 0.05 < float(logits.float().std()) < 5


def test_a_tiny_model_reads_an_image_with_the_processor_of_mini(tiny: Path) -> None:
    import torch
    from PIL import Image

    model, _ = load(tiny)
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny)
    content = [{"type": "image"}, {"type": "text", "text": "Transcribe this page to Markdown."}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    batch = processor(text=[text], images=[Image.new("RGB", (96, 128), "white")], return_tensors="pt")
    assert int((batch["input_ids"] == model.config.image_token_id).sum()) == 12
    with torch.no_grad():
        assert bool(model(**batch).logits.isfinite().all())


def test_the_other_layout_has_the_same_tensors_under_other_prefixes(
    models, tiny_untied: Path, tiny_other_layout: Path
) -> None:
    ours, other = tensor_bytes(tiny_untied), tensor_bytes(tiny_other_layout)
    assert {broken.spelled(name, "vllm"): what for name, what in ours.items()} == other
    heads = {name.split(".")[0] for name in other}
    assert heads == {"language_model", "visual", "mtp"}
    assert "language_model.lm_head.weight" in other


def test_the_mtp_block_lies_where_it_was_asked_for(models) -> None:
    names = {where: tensor_bytes(models(mtp=where)) for where in ("none", "mixed", "own_shard")}
    assert not any(name.startswith("mtp.") for name in names["none"])
    assert names["mixed"] == names["own_shard"]
    apart = read_header(models(mtp="own_shard") / "model-mtp.safetensors")[0]
    assert {n for n in apart if n != "__metadata__"} == {n for n in names["mixed"] if n.startswith("mtp.")}
    assert len(apart) - 1 == 15


def test_weights_look_like_weights(tiny: Path) -> None:
    stem = "model.language_model.layers.0"
    matrix = values(tiny, f"{stem}.mlp.gate_proj.weight")
    assert 0.019 < matrix.std() < 0.051 and abs(matrix.mean()) < 0.002
    assert abs(values(tiny, f"{stem}.input_layernorm.weight").mean()) < 0.01
    assert abs(values(tiny, f"{stem}.linear_attn.norm.weight").mean() - 1) < 0.01
    assert abs(values(tiny, "model.visual.blocks.0.norm1.weight").mean() - 1) < 0.01
    assert values(tiny, f"{stem}.linear_attn.A_log").max() <= math.log(16)
    assert abs(values(tiny, f"{stem}.linear_attn.dt_bias").mean() - 1) < 0.05


def test_threads_do_not_change_a_byte_and_the_seed_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "CHUNK", 1 << 12)  # so that matrices of a tiny model have several chunks
    config = made.SHAPES["tiny"]()
    for name, threads, seed in (("one", 1, 0), ("two", 2, 0), ("other", 2, 1)):
        made.make_checkpoint(tmp_path / name, config, shards=2, seed=seed, threads=threads)
    one, two, other = (tensor_bytes(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    assert all(one[name][2] != other[name][2] for name in one if math.prod(one[name][1]) > 4)


def test_bfloat16_rounds_to_nearest_even_as_torch_does() -> None:
    import torch

    values = np.concatenate(
        [np.random.default_rng(0).normal(0, 1, 4096).astype(np.float32), np.float32([0, 1.00390625])]
    )
    expected = torch.from_numpy(values.copy()).bfloat16().view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(made.bfloat16(values), expected)


def test_the_command_makes_a_folder_that_safetensors_reads(tmp_path: Path) -> None:
    out = tmp_path / "untied"
    command = [sys.executable, "-m", "tools.random_checkpoint", "--shape", "untied", "--out", str(out), "--shards", "3"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    shapes = made.tensor_shapes(made.SHAPES["untied"]())
    assert f"{sum(map(math.prod, shapes.values())):,} parameters" in done.stdout
    from safetensors import safe_open

    found = {}
    for file in weight_files(out):
        with safe_open(file, "pt") as stream:
            found.update({name: tuple(stream.get_slice(name).get_shape()) for name in stream.keys()})  # noqa: SIM118
    assert found == shapes
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(shapes) and len(set(index["weight_map"].values())) == 3
    again = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    assert again.returncode == 2 and "exists already" in again.stderr


def test_what_breaks_a_checkpoint_breaks_it(tiny: Path, tiny_sharded: Path, breakable) -> None:
    from safetensors import SafetensorError, safe_open

    def unreadable(folder: Path) -> bool:
        try:
            for file in weight_files(folder):
                with safe_open(file, "pt") as stream:
                    stream.keys()
        except SafetensorError:
            return True
        return False

    assert not unreadable(tiny)
    for spoil in (broken.truncate, lambda f: broken.truncate_to(f, 0), lambda f: broken.truncate_to(f, 12)):
        copy = breakable(tiny)
        spoil(copy)
        assert unreadable(copy)
    for how in ("json", "length", "offsets", "dtype"):
        copy = breakable(tiny)
        broken.corrupt_header(copy, how)
        assert unreadable(copy), how


def test_values_put_into_a_checkpoint_are_there(tiny: Path, breakable) -> None:
    name, copy = "model.language_model.layers.1.mlp.up_proj.weight", breakable(tiny)
    broken.put_nan(copy, name, index=7)
    broken.put_inf(copy, name, index=8)
    broken.zero_row(copy, name, row=5)
    found = values(copy, name)
    assert math.isnan(found.flat[7]) and math.isinf(found.flat[8])
    assert not found[5].any() and found[4].all()
    assert np.isfinite(values(tiny, name)).all()


def test_an_index_can_disagree_in_four_ways(tiny_sharded: Path, breakable) -> None:
    for how in ("extra", "missing", "moved", "file"):
        copy = breakable(tiny_sharded)
        name = broken.stale_index(copy, how)
        weights = json.loads((copy / "model.safetensors.index.json").read_text())["weight_map"]
        there = {n: file.name for file in weight_files(copy) for n in read_header(file)[0] if n != "__metadata__"}
        assert weights != there and weights.get(name) != there.get(name)
        assert {n for n in weights if n != name} == {n for n in there if n != name}


def test_tensors_can_be_lost_and_renamed(tiny_sharded: Path, breakable) -> None:
    copy = breakable(tiny_sharded)
    gone = broken.drop_tensors(copy, "mtp.")
    before, after = tensor_bytes(tiny_sharded), tensor_bytes(copy)
    assert len(gone) == 15 and after == {n: t for n, t in before.items() if n not in gone}
    index = json.loads((copy / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(after)
    broken.rename_tensor(copy, "model.language_model.norm.weight", "model.norm.weight")
    assert tensor_bytes(copy)["model.norm.weight"] == before["model.language_model.norm.weight"]


def test_a_model_is_made_in_well_under_a_second(tmp_path: Path, tiny: Path) -> None:
    import time

    started = time.process_time()
    make_model(tmp_path / "again")
    assert time.process_time() - started < 1
    assert tensor_bytes(tmp_path / "again") == tensor_bytes(tiny)
