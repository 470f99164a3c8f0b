"""The folder: sound weight files, a true manifest, side files as the source has them, nothing that carries code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ocria_compress.bundle.verify.reader import read_header
from ocria_compress.bundle.verify.report import State
from tests.bundle.checkpoints import edit_config, edit_weights, read_raw, read_weights, write_manifest, write_raw

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def test_a_right_checkpoint_passes_every_static_check(result, with_kv, nvfp4, found):
    assert [found(folder) for folder in (result, with_kv, nvfp4)] == [{}, {}, {}]


def test_truncated_shard(result, found):
    (result / TWO).write_bytes((result / TWO).read_bytes()[:-100])
    checks = found(result)
    assert "truncated" in checks["weight-files"].items[0] and TWO in checks["weight-files"].items[0]
    assert f"{TWO} has" in checks["manifest"].items[0]
    assert checks["dequantized"].state is State.NOT_RUN  # nothing is read from files that are not sound


@pytest.mark.parametrize("length", [0, 5, 8, 40])
def test_shard_cut_inside_its_header(result, found, length):
    (result / TWO).write_bytes((result / TWO).read_bytes()[:length])
    assert any(TWO in item for item in found(result)["weight-files"].items)


def test_header_that_is_not_json(result, found):
    raw = bytearray((result / ONE).read_bytes())
    raw[8:20] = b"\xff" * 12
    (result / ONE).write_bytes(raw)
    assert "header cannot be read" in found(result)["weight-files"].items[0]


@pytest.mark.parametrize("shift, word", [(-2, "overlaps"), (2, "gap")])
def test_tensors_that_overlap_or_leave_a_gap(result, found, shift, word):
    header, data = read_raw(result / ONE)
    name = sorted((n for n in header if n != "__metadata__"), key=lambda n: header[n]["data_offsets"])[1]
    header[name]["data_offsets"] = [n + shift for n in header[name]["data_offsets"]]
    write_raw(result / ONE, header, data)
    assert any(word in item for item in found(result)["weight-files"].items)


def test_bytes_that_belong_to_no_tensor(result, found):
    (result / ONE).write_bytes((result / ONE).read_bytes() + b"\0" * 16)
    assert "belong to none" in found(result)["weight-files"].items[0]


def test_header_whose_shape_does_not_give_its_bytes(tmp_path: Path):
    write_raw(tmp_path / "x.safetensors", {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"\0" * 8)
    assert "takes 8 bytes" in read_header(tmp_path / "x.safetensors")[1][0]


def test_tensor_stored_in_two_shards(result, found):
    header, data = read_raw(result / ONE)
    name = next(n for n in header if n != "__metadata__")
    begin, end = header[name]["data_offsets"]
    again = {name: {**header[name], "data_offsets": [0, end - begin]}}
    write_raw(result / "model-00003.safetensors", again, data[begin:end])
    assert any("stored twice" in item for item in found(result)["weight-files"].items)


def _index(folder: Path, change) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index)
    (folder / INDEX).write_text(json.dumps(index))
    write_manifest(folder)


def test_stale_index_names_a_tensor_that_is_gone(result, found):
    _index(result, lambda index: index["weight_map"].update({"model.gone.weight": ONE}))
    assert found(result)["weight-files"].items == [f"{INDEX} is stale: model.gone.weight is not in {ONE}"]


def test_stale_index_lacks_a_tensor(result, found):
    _index(result, lambda index: index["weight_map"].pop("mtp.fc.weight"))
    assert found(result)["weight-files"].items == [f"{INDEX} is stale: it lacks mtp.fc.weight"]


def test_stale_index_names_the_wrong_shard(result, found):
    _index(result, lambda index: index["weight_map"].update({"mtp.fc.weight": ONE}))
    assert f"lies in {TWO}, not in {ONE}" in found(result)["weight-files"].items[0]


def test_index_with_another_total_size(result, found):
    _index(result, lambda index: index["metadata"].update(total_size=1))
    assert "total_size 1" in found(result)["weight-files"].items[0]


def test_missing_shard(result, found):
    (result / TWO).unlink()
    assert f"{INDEX} names {TWO}, which is missing" in found(result)["weight-files"].items


def test_shards_without_an_index(result, found):
    (result / INDEX).unlink()
    assert "2 weight files and no" in found(result)["weight-files"].items[0]


def test_file_changed_after_it_was_written(result, found):
    text = (result / "tokenizer.json").read_text()
    (result / "tokenizer.json").write_text(text.replace("file", "life"))
    checks = found(result)
    assert checks["manifest"].items == ["tokenizer.json is not what was written: its hash differs"]
    assert checks["side-files"].items == ["tokenizer.json is not the source's"]


def test_file_added_after_the_manifest(result, found):
    (result / "notes.md").write_text("hello")
    assert found(result)["manifest"].items == ["notes.md is not in the manifest"]


def test_manifest_that_is_half_written(result, found):
    (result / "ocria.json").write_text('{"files": {')
    check = found(result, source=str(result.parent))["manifest"]
    assert check.state is State.FAILED and "cannot be read" in check.detail


def test_folder_of_another_tool_has_no_manifest_and_is_checked_all_the_same(result, source, found):
    (result / "ocria.json").unlink()
    checks = found(result, source=str(source))
    assert list(checks) == ["manifest"] and checks["manifest"].state is State.NOT_RUN


@pytest.mark.parametrize("name", ["modeling.py", "pytorch_model.bin", "optimizer.pt", "deep/x.pkl"])
def test_code_or_pickled_weights(result, found, name):
    (result / name).parent.mkdir(exist_ok=True)
    (result / name).write_bytes(b"")
    write_manifest(result) if "/" not in name else None
    assert name in found(result)["no-code"].items[0]


def test_config_that_asks_for_code(result, found):
    edit_config(result, lambda config: config.update(auto_map={"AutoModel": "modeling.Model"}))
    assert "auto_map" in found(result)["no-code"].items[0]


@pytest.mark.parametrize("name", ["preprocessor_config.json", "video_preprocessor_config.json", "tokenizer.json"])
def test_dropped_processor_file(result, found, name):
    (result / name).unlink()
    write_manifest(result)
    checks = found(result)
    assert list(checks) == ["side-files"] and f"{name} of the source is missing" in checks["side-files"].items


def test_chat_template_changed(result, found):
    (result / "chat_template.jinja").write_text("{{ other }}")
    write_manifest(result)
    assert found(result)["side-files"].items == ["chat_template.jinja is not the source's"]


def test_chat_template_lost(result, found):
    (result / "chat_template.jinja").unlink()
    write_manifest(result)
    assert "there is no chat template" in found(result)["side-files"].items


def test_manifest_that_counts_other_tensors(result, found):
    known = json.loads((result / "ocria.json").read_text())
    write_manifest(result, {**known, "tensors": {"quantized": 1}})
    assert "counts 1 quantized tensors" in found(result)["manifest"].items[0]


def test_manifest_that_counts_the_same_tensors(result, with_kv, nvfp4, source, found):
    linears = 3 * 6 + 7  # of three Gated DeltaNet layers and one with full attention
    kept = len(read_weights(source)) - linears
    for folder, added in ((result, linears), (with_kv, linears + 2), (nvfp4, 2 * linears)):
        counts = (kept, linears, added)
        known = json.loads((folder / "ocria.json").read_text())
        write_manifest(folder, {**known, "tensors": dict(zip(("kept", "quantized", "added"), counts, strict=True))})
        assert found(folder) == {}


def test_what_was_taken_from_a_base_is_held_against_the_base(result, source, found, tmp_path):
    lost = Path(shutil.copytree(source, tmp_path / "lost"))
    (lost / "ocria.json").write_text("{}")
    edit_weights(lost, lambda stored: [stored.pop(name) for name in list(stored) if name.startswith("mtp.")])
    (lost / "preprocessor_config.json").unlink()
    assert "mtp.fc.weight is in no source" in found(result, source=str(lost))["tensors"].items
    taken = [name for name in read_weights(source) if name.startswith("mtp.")] + ["preprocessor_config.json"]
    known = json.loads((result / "ocria.json").read_text())
    entries = {"source": {"model": str(lost)}, "base": {"model": str(source)}, "taken_from_base": taken}
    write_manifest(result, {**known, **entries})
    assert found(result) == {}
    edit_weights(result, lambda s: s.update({"mtp.norm.weight": (*s["mtp.norm.weight"][:2], b"\0" * 128)}))
    (result / "preprocessor_config.json").write_text("{}")
    checks = found(result)
    assert checks["kept-tensors"].items[0].startswith("mtp.norm.weight: differs")
    assert "preprocessor_config.json is not the source's" in checks["side-files"].items


def test_no_weights_at_all(result, found):
    for file in result.glob("*.safetensors"):
        file.unlink()
    assert "there is no .safetensors file" in found(result)["weight-files"].items


def test_source_that_is_not_known_leaves_checks_not_run(result, found):
    known = json.loads((result / "ocria.json").read_text())
    write_manifest(result, {**known, "source": {"model": "someone/gone", "revision": None}})
    checks = found(result)
    assert {check.state for check in checks.values()} == {State.NOT_RUN}
    assert set(checks) == {"side-files", "config", "tensors", "kept-tensors", "dequantized"}
    assert all("someone/gone" in check.detail and "--source" in check.detail for check in checks.values())


def test_source_whose_shard_is_missing_is_not_taken_for_a_source(result, source, found, tmp_path):
    broken = Path(shutil.copytree(source, tmp_path / "broken"))
    (broken / TWO).unlink()
    check = found(result, source=str(broken))["tensors"]
    assert check.state is State.NOT_RUN and TWO in check.detail


def test_edit_helpers_leave_a_right_checkpoint_right(result, found):
    edit_weights(result, lambda stored: None)
    edit_config(result, lambda config: None)
    assert found(result) == {}
