"""The benchmark measures what it says: memory with children, time to the last byte, differences to the byte."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.models import copied, put_value, tensor_bytes
from tools import bench_quantize as bench
from tools.measured_process import Clock, measure, phases_in

ALLOCATE = "import time; block = bytearray(150_000_000); time.sleep(0.4)"


def write(path: Path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    header, body = {}, b""
    for name, (dtype, values) in tensors.items():
        raw = values.tobytes()
        offsets = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": offsets}
        body += raw
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


@pytest.fixture
def quantized() -> dict[str, tuple[str, np.ndarray]]:
    weight = np.arange(32, dtype=np.uint8).reshape(4, 8)
    return {
        "a.weight": ("F8_E4M3", weight),
        "a.weight_scale": ("BF16", np.arange(4, dtype=np.uint16).reshape(4, 1)),
        "norm.weight": ("BF16", np.arange(8, dtype=np.uint16)),
    }


def test_memory_is_summed_over_the_children(tmp_path: Path) -> None:
    parent = f"import subprocess, sys; {ALLOCATE.split(';')[1]}; subprocess.run([sys.executable, '-c', {ALLOCATE!r}])"
    found = measure([sys.executable, "-c", parent], tmp_path / "out", tmp_path / "log")
    assert found["returncode"] == 0, (tmp_path / "log").read_text()
    assert 300e6 < found["peak_hwm"] < 420e6 and 300e6 < found["peak_rss"] < 420e6
    assert found["wall_s"] > 0.4 and found["samples"] >= 5


def test_a_failed_command_is_told_with_its_exit_status(tmp_path: Path) -> None:
    found = measure([sys.executable, "-c", "raise SystemExit(7)"], tmp_path / "out", tmp_path / "log")
    assert found["returncode"] == 7
    assert bench.summary([found], 1) == {"failed": 1, "returncode": 7}


def test_phases_are_found_behind_a_progress_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    clock.lap("load")
    clock.tell()
    log = tmp_path / "log"
    log.write_text("50%\r100% done" + capsys.readouterr().out + "bye\n")
    assert list(phases_in(log)) == ["load"]


def test_identical_outputs_are_identical_whatever_their_shards(tmp_path: Path, quantized: dict) -> None:
    write(tmp_path / "ours" / "model.safetensors", quantized)
    names = list(quantized)
    for i, name in enumerate(names):
        write(tmp_path / "other" / f"model-{i}.safetensors", {name: quantized[name]})
    found = bench.compare(tmp_path / "ours", tmp_path / "other")
    assert found["quantized"] == {"tensors": 2, "identical": 2, "first": None}
    assert found["kept"] == {"tensors": 1, "identical": 1, "first": None}
    assert not found["only_ours"] and not found["only_other"] and not found["odd"]


def test_one_different_byte_is_found_and_named(tmp_path: Path, quantized: dict) -> None:
    write(tmp_path / "ours" / "model.safetensors", quantized)
    changed = quantized["a.weight"][1].copy()
    changed[2, 3] += 1
    write(tmp_path / "other" / "model.safetensors", {**quantized, "a.weight": ("F8_E4M3", changed)})
    found = bench.compare(tmp_path / "ours", tmp_path / "other")
    assert found["quantized"] == {"tensors": 2, "identical": 1, "first": "a.weight: byte 19 is 0x13 against 0x14"}


def test_a_module_that_one_side_alone_quantized_is_told(tmp_path: Path, quantized: dict) -> None:
    write(tmp_path / "ours" / "model.safetensors", quantized)
    kept = {**quantized, "a.weight": ("BF16", np.zeros((4, 8), np.uint16))}
    del kept["a.weight_scale"]
    write(tmp_path / "other" / "model.safetensors", kept)
    found = bench.compare(tmp_path / "ours", tmp_path / "other")
    assert found["only_ours"] == ["a.weight", "a.weight_scale"] and found["odd"] == ["a.weight_scale"]


def test_runs_are_interleaved_compared_and_cleaned_up(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled = put_value(copied(tiny, tmp_path / "spoiled"), "model.language_model.norm.weight", 3.0).parent
    source = {"ours": tiny, "oneshot": spoiled}

    def command(side: str, model: Path, out: Path) -> list[str]:
        return [sys.executable, "-c", f"import shutil; shutil.copytree({str(source[side])!r}, {str(out)!r})"]

    monkeypatch.setattr(bench, "command_of", command)
    said: list[str] = []
    found = bench.run(tiny, tmp_path / "work", 2, ["ours", "oneshot"], said.append)
    assert [line.split()[4] for line in said] == ["ours", "oneshot", "oneshot", "ours"]
    assert found["source_bytes"] == (tiny / "model.safetensors").stat().st_size and found["reference"] == "ours"
    assert found["summary"]["ours"]["compared"]["kept"]["identical"] == len(tensor_bytes(tiny))
    first = found["summary"]["oneshot"]["compared"]["kept"]["first"]
    assert first.startswith("model.language_model.norm.weight: byte ")
    assert {path.suffix for path in (tmp_path / "work").iterdir()} == {".log", ".jsonl"}
    printed = bench.report(found)
    assert first in printed and "python -c" in printed and "torch" in printed
