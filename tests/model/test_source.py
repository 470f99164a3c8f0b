"""Opening a model: what is accepted, and what is refused by name before anything is read."""

from __future__ import annotations

import json

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.model.source import open_source
from tests import models as broken


def change_config(folder, change):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def test_mini_opens_by_name():
    source = open_source("mini")
    assert source.kind == "mini"
    assert len(source.tensors) == 242
    assert source.nbytes == 27_946_512


@pytest.mark.parametrize("fixture", ["tiny", "tiny_sharded", "tiny_untied", "tiny_no_mtp", "tiny_other_layout"])
def test_every_way_of_saving_opens(fixture, request):
    source = open_source(str(request.getfixturevalue(fixture)))
    assert set(source.tensors) == set(source.anatomy.tensors)
    assert bool(source.renamed) == (fixture == "tiny_other_layout")


def test_mtp_in_its_own_shard_is_counted_as_well(models):
    source = open_source(str(models(mtp="own_shard")))
    assert sum(name.startswith("mtp.") for name in source.tensors) == 15


@pytest.mark.parametrize("how", ["json", "length", "offsets", "dtype"])
def test_a_corrupt_header_is_refused(how, tiny, breakable):
    folder = breakable(tiny)
    broken.corrupt_header(folder, how)
    with pytest.raises(OcriaError, match="damaged"):
        open_source(str(folder))


@pytest.mark.parametrize("size", [0, 5, 1000])
def test_a_file_without_a_whole_header_is_refused(size, tiny, breakable):
    folder = breakable(tiny)
    broken.truncate_to(folder, size)
    with pytest.raises(OcriaError, match="damaged"):
        open_source(str(folder))


def test_a_truncated_file_is_refused(tiny, breakable):
    folder = breakable(tiny)
    broken.truncate(folder)
    with pytest.raises(OcriaError, match="truncated"):
        open_source(str(folder))


def test_a_missing_shard_is_refused(tiny_sharded, breakable):
    folder = breakable(tiny_sharded)
    broken.drop_shard(folder)
    with pytest.raises(OcriaError, match="1 of 2 weight files are missing"):
        open_source(str(folder))


@pytest.mark.parametrize("how", ["extra", "missing", "moved", "file"])
def test_a_stale_index_is_refused(how, tiny_sharded, breakable):
    folder = breakable(tiny_sharded)
    broken.stale_index(folder, how)
    with pytest.raises(OcriaError, match=r"stale|missing"):
        open_source(str(folder))


def test_shards_without_an_index_are_refused(tiny_sharded, breakable):
    folder = breakable(tiny_sharded)
    broken.drop_index(folder)
    with pytest.raises(OcriaError, match=r"no model\.safetensors\.index\.json"):
        open_source(str(folder))


def test_a_stray_shard_is_refused(tiny_sharded, breakable):
    folder = breakable(tiny_sharded)
    (folder / "model-00003-of-00003.safetensors").write_bytes(
        (folder / "model-00001-of-00002.safetensors").read_bytes()
    )
    with pytest.raises(OcriaError, match="does not know"):
        open_source(str(folder))


def test_an_index_that_points_outside_its_folder_is_refused(tiny_sharded, breakable):
    folder = breakable(tiny_sharded)
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"] = dict.fromkeys(index["weight_map"], "../other.safetensors")
    path.write_text(json.dumps(index))
    with pytest.raises(OcriaError, match="outside its folder"):
        open_source(str(folder))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "optimizer.pt", "state.pkl"])
def test_pickled_weights_are_refused_unopened(name, tiny, breakable):
    folder = breakable(tiny)
    (folder / name).write_bytes(b"cos\nsystem\n(S'touch /tmp/never'\ntR.")
    with pytest.raises(OcriaError, match="pickled"):
        open_source(str(folder))


def test_python_code_in_the_folder_is_refused_unrun(tiny, breakable):
    folder = breakable(tiny)
    (folder / "modeling_qwen.py").write_text("raise SystemExit('run!')")
    with pytest.raises(OcriaError, match="code, which is never run"):
        open_source(str(folder))


def test_a_lora_adapter_is_refused_with_the_merge_command(tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "Qwen/Qwen3.5-4B"}))
    with pytest.raises(OcriaError) as caught:
        open_source(str(tmp_path))
    assert "merge_and_unload" in caught.value.fix
    assert "Qwen/Qwen3.5-4B" in caught.value.fix


def test_q4_config_that_announces_mtp_without_its_tensors_is_refused(tiny, breakable):
    folder = breakable(tiny)
    broken.drop_tensors(folder, "mtp.")
    with pytest.raises(OcriaError, match=r"no mtp\.\* tensor") as caught:
        open_source(str(folder))
    assert "--base" in caught.value.fix


def test_q4_mtp_tensors_that_the_config_denies_are_refused(tiny, breakable):
    folder = breakable(tiny)
    change_config(folder, lambda c: c["text_config"].update(mtp_num_hidden_layers=0))
    with pytest.raises(OcriaError, match="announces no multi-token"):
        open_source(str(folder))


def test_q4_lost_mtp_is_taken_from_the_base_and_recorded(tiny, breakable):
    folder = breakable(tiny)
    gone = broken.drop_tensors(folder, "mtp.")
    source = open_source(str(folder), base=str(tiny))
    assert sorted(source.taken_from_base) == sorted(gone)
    assert source.tensors["mtp.fc.weight"].path.parent == tiny.resolve()


def test_a_base_of_another_shape_is_refused(tiny, models, breakable):
    folder = breakable(tiny)
    broken.drop_tensors(folder, "mtp.")
    with pytest.raises(OcriaError, match="does not fit"):
        open_source(str(folder), base=str(models(hidden=64)))


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "preprocessor_config.json", "video_preprocessor_config.json", "chat_template.jinja"]
)
def test_q5_a_lost_side_file_is_refused_or_taken_from_the_base(name, tiny, breakable):
    folder = breakable(tiny)
    (folder / name).unlink()
    if name == "tokenizer.json":
        (folder / "merges.txt").unlink()
    if name == "chat_template.jinja":
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "chat_template"}))
    with pytest.raises(OcriaError, match="The model folder has no"):
        open_source(str(folder))
    source = open_source(str(folder), base=str(tiny))
    assert name in source.taken_from_base
    assert source.side_files[name] == tiny.resolve() / name


def test_a_missing_tensor_is_named(tiny, breakable):
    folder = breakable(tiny)
    broken.drop_tensors(folder, "model.language_model.layers.1.mlp.up_proj")
    with pytest.raises(OcriaError, match=r"layers\.1\.mlp\.up_proj"):
        open_source(str(folder))


def test_weights_of_another_shape_than_the_config_are_refused(tiny, breakable):
    folder = breakable(tiny)
    change_config(folder, lambda c: c["text_config"].update(intermediate_size=64))
    with pytest.raises(OcriaError, match="the configuration calls for"):
        open_source(str(folder))


@pytest.mark.parametrize("name", ["no/such/folder/here", "nope", "./mini-not-here"])
def test_a_model_that_is_not_there_is_refused(name):
    with pytest.raises(OcriaError, match="no such model folder"):
        open_source(name)


def test_a_file_is_no_model(tiny):
    with pytest.raises(OcriaError, match="A model is a folder"):
        open_source(str(tiny / "config.json"))


def test_a_damaged_config_is_refused(tiny, breakable):
    folder = breakable(tiny)
    (folder / "config.json").write_text("{not json")
    with pytest.raises(OcriaError, match="configuration cannot be read"):
        open_source(str(folder))


def test_the_fingerprint_changes_with_the_weights(tiny, breakable):
    folder = breakable(tiny)
    before = open_source(str(folder)).fingerprint
    assert open_source(str(folder)).fingerprint == before
    broken.put_value(folder, "model.language_model.norm.weight", 0.5)
    assert open_source(str(folder)).fingerprint != before


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        (None, "vision_config", None),
        (None, "vision_config", 5),
        (None, "architectures", 5),
        (None, "quantization_config", "fp8"),
        ("text_config", "layer_types", 5),
        ("text_config", "layer_types", [["full_attention"]]),
        ("text_config", "mtp_num_hidden_layers", "x"),
        ("text_config", "mtp_num_hidden_layers", 10**9),
        ("text_config", "num_hidden_layers", 10**9),
        ("text_config", "hidden_size", 10**30),
        ("vision_config", "depth", 10**9),
        ("vision_config", "in_channels", "x"),
    ],
)
def test_a_config_value_of_the_wrong_kind_or_size_is_refused_at_once(section, key, value, tiny, breakable):
    folder = breakable(tiny)
    change_config(folder, lambda c: (c[section] if section else c).update({key: value}))
    with pytest.raises(OcriaError):
        open_source(str(folder))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(name, tiny, breakable):
    import os

    folder = breakable(tiny)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(OcriaError):
        open_source(str(folder))


def test_endless_json_is_refused(tiny, breakable):
    folder = breakable(tiny)
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(OcriaError, match="cannot be read"):
        open_source(str(folder))
