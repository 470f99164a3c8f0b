"""Quantizing: the right bytes, everything carried, nothing half-done, every refusal clean."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.model.source import open_source
from ocria_compress.model.writer import MANIFEST
from ocria_compress.pages.torchvision_cpu import activate
from ocria_compress.quantize.plan import make_plan
from ocria_compress.quantize.run import quantize
from ocria_compress.recipes import load_recipe
from tests import models as broken
from tests.models import tensor_bytes

activate()


def run(model, out, *settings, recipe="fp8", base=None, **options):
    plan = make_plan(open_source(str(model), base=base), load_recipe(recipe, list(settings)))
    return quantize(plan, out, command="test", **options)


def left_behind(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir())


@pytest.fixture(scope="module")
def fp8(tiny_sharded, tmp_path_factory):
    """The tiny sharded model, quantized. Do not change it."""
    return run(tiny_sharded, tmp_path_factory.mktemp("fp8") / "out").folder


def test_everything_of_the_source_is_there(fp8, tiny_sharded):
    before, after = tensor_bytes(tiny_sharded), tensor_bytes(fp8)
    assert set(before) == {n for n in after if not n.endswith("_scale")}
    kept = [n for n in before if after[n] == before[n]]
    changed = [n for n in before if n not in kept]
    assert {f"{n}_scale" for n in changed} == {n for n in after if n.endswith("_scale")}
    assert all(after[n][0] == "F8_E4M3" for n in changed)
    assert any(n.startswith("mtp.") for n in kept)
    for path in tiny_sharded.iterdir():
        if path.suffix != ".safetensors" and path.name not in ("config.json", "model.safetensors.index.json"):
            assert (fp8 / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_configuration_is_the_sources_and_says_what_was_done(fp8, tiny_sharded):
    before, after = (json.loads((f / "config.json").read_text()) for f in (tiny_sharded, fp8))
    quantization = after.pop("quantization_config")
    assert after == before
    assert quantization["quant_method"] == "compressed-tensors"
    assert quantization["config_groups"]["group_0"]["weights"]["strategy"] == "channel"


def test_the_manifest_has_every_file_and_its_hash(fp8):
    import hashlib

    manifest = json.loads((fp8 / MANIFEST).read_text())
    assert set(manifest["files"]) == {p.name for p in fp8.iterdir()} - {MANIFEST}
    for name, said in manifest["files"].items():
        data = (fp8 / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (said["bytes"], said["sha256"])


def oneshot_in(folder, out):
    script = f"""
from ocria_compress.pages.torchvision_cpu import activate
activate()
from transformers import Qwen3_5ForConditionalGeneration
from llmcompressor import oneshot
from llmcompressor.modifiers.quantization import QuantizationModifier
m = Qwen3_5ForConditionalGeneration.from_pretrained({str(folder)!r}, dtype="auto")
ignore = ["lm_head", "re:.*visual.*", r"re:.*linear_attn\\.conv1d", r"re:.*in_proj_a$", r"re:.*in_proj_b$"]
oneshot(model=m, recipe=QuantizationModifier(targets="Linear", scheme="FP8_DYNAMIC", ignore=ignore))
m.save_pretrained({str(out)!r}, save_compressed=True)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_bytes_are_those_of_llmcompressors_oneshot(fp8, tiny_sharded, tmp_path):
    oneshot_in(tiny_sharded, tmp_path / "theirs")
    ours, theirs = tensor_bytes(fp8), tensor_bytes(tmp_path / "theirs")
    quantized = [n for n, t in theirs.items() if t[0] == "F8_E4M3"]
    assert len(quantized) > 20
    for name in quantized:
        assert ours[name] == theirs[name], name
        assert ours[f"{name}_scale"] == theirs[f"{name}_scale"], name


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_rounding_is_compressed_tensors_own_bit_for_bit(rows):
    import torch
    from compressed_tensors.quantization.lifecycle.forward import quantize as theirs

    from ocria_compress.quantize.fp8 import quantize_rows, weight_args

    torch.manual_seed(rows)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for spread in (1e-7, 1e-4, 0.02, 30.0, 1e-38):  # the last is subnormal in bfloat16, the first in float16
            weight = (torch.randn(rows, 96) * spread).to(dtype)
            weight[0, 0] = 0
            weight[rows // 2, 5:] *= -1
            got, scale = quantize_rows(weight, "w", check=False)
            want = theirs(weight, scale, None, weight_args(), dtype=torch.float8_e4m3fn)
            assert torch.equal(got.view(torch.uint8), want.view(torch.uint8))


def test_a_rounding_that_differs_is_an_error(monkeypatch):
    import torch

    from ocria_compress.quantize import fp8 as module

    real = torch.Tensor.clamp_
    monkeypatch.setattr(module, "_may_exceed", lambda scale: True)
    monkeypatch.setattr(torch.Tensor, "clamp_", lambda self, low, high: real(self, low / 2, high / 2))
    with pytest.raises(OcriaError, match="rounding differs"):
        module.quantize_rows(torch.randn(8, 32).bfloat16(), "w", check=True)


@pytest.mark.parametrize("options", [{"mtp": "own_shard"}, {"tied": False, "layout": "vllm"}, {"mtp": "none"}])
def test_every_way_of_saving_comes_out_complete(options, models, tmp_path):
    folder = models(**options)
    result = run(folder, tmp_path / "out")
    source = open_source(str(folder))
    after = tensor_bytes(result.folder)
    assert {n for n in after if not n.endswith("_scale")} == set(source.anatomy.tensors)
    assert result.manifest["renamed"] == source.renamed


def test_q4_mtp_from_the_base_is_carried_and_recorded(tiny, breakable, tmp_path):
    folder = breakable(tiny)
    gone = broken.drop_tensors(folder, "mtp.")
    result = run(folder, tmp_path / "out", base=str(tiny))
    after, base = tensor_bytes(result.folder), tensor_bytes(tiny)
    assert all(after[n] == base[n] for n in gone)
    assert sorted(result.manifest["taken_from_base"]) == sorted(gone)
    assert result.manifest["base"]["model"] == str(tiny)


def test_an_lm_head_that_repeats_a_tied_table_is_left_out_and_one_that_differs_is_refused(tiny, breakable, tmp_path):
    from safetensors.torch import load_file, save_file

    for differs in (False, True):
        folder = breakable(tiny)
        tensors = load_file(folder / "model.safetensors")
        head = tensors["model.language_model.embed_tokens.weight"].clone()
        head[3, 3] += 1.0 if differs else 0.0
        save_file(tensors | {"lm_head.weight": head}, folder / "model.safetensors", metadata={"format": "pt"})
        if differs:
            with pytest.raises(OcriaError, match="differs from it"):
                run(folder, tmp_path / "refused")
        else:
            result = run(folder, tmp_path / "out")
            assert "lm_head.weight" not in tensor_bytes(result.folder)
            assert result.manifest["left_out"] == ["lm_head.weight"]


# ---- bad input: refused, nothing under the final name, the source untouched


@pytest.mark.parametrize("put", [broken.put_nan, broken.put_inf])
@pytest.mark.parametrize(
    "tensor",
    [
        "model.language_model.layers.1.mlp.up_proj.weight",
        "model.language_model.embed_tokens.weight",
        "model.visual.blocks.0.attn.proj.bias",
    ],
)
def test_q19_nan_and_infinite_weights_are_refused(put, tensor, tiny, breakable, tmp_path):
    folder = breakable(tiny)
    put(folder, tensor)
    before = tensor_bytes(folder)
    with pytest.raises(OcriaError, match=f"'{tensor}' holds NaN or infinite"):
        run(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert tensor_bytes(folder) == before


def test_a_row_of_zeros_has_a_sound_scale(tiny, breakable, tmp_path):
    folder = breakable(tiny)
    name = "model.language_model.layers.0.mlp.up_proj.weight"
    broken.zero_row(folder, name)
    after = tensor_bytes(run(folder, tmp_path / "out").folder)
    width = after[name][1][1]
    assert after[name][2][:width] == bytes(width)
    assert after[f"{name}_scale"][2][:2] != bytes(2)


def test_an_output_that_exists_is_refused_unless_it_is_ours_and_overwrite_is_asked(tiny, fp8, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    for name, overwrite in (("file", True), ("full", True), ("full", False)):
        with pytest.raises(OcriaError, match=r"There is a file|exists already"):
            run(tiny, tmp_path / name, overwrite=overwrite)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"
    run(tiny, tmp_path / "out")
    with pytest.raises(OcriaError, match="exists already"):
        run(tiny, tmp_path / "out")
    inode = (tmp_path / "out").stat().st_ino
    run(tiny, tmp_path / "out", overwrite=True)
    assert (tmp_path / "out").stat().st_ino != inode
    assert left_behind(tmp_path) == ["file", "full", "out"]


def test_an_output_inside_the_models_own_folder_is_refused(tiny, breakable):
    folder = breakable(tiny)
    for out in (folder, folder / "fp8"):
        with pytest.raises(OcriaError, match="own folder"):
            run(folder, out)


def test_a_place_that_cannot_be_written_is_refused(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(OcriaError, match="in the way"):
        run(tiny, tmp_path / "file" / "out")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as root everything is writable
    with pytest.raises(OcriaError, match="cannot be written"):
        run(tiny, tmp_path / "out")


@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite", "fsync"])
def test_a_full_disk_is_said_and_leaves_nothing_under_the_name(call, tiny, tmp_path, monkeypatch):
    real = getattr(os, call)
    calls = iter(range(10**6))

    def full(*arguments):
        if next(calls) >= {"posix_fallocate": 0, "pwrite": 40, "fsync": 1}[call]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OcriaError, match="disk is full"):
            run(tiny, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run(tiny, tmp_path / "out")  # the same command continues
    assert left_behind(tmp_path) == ["out"]


def test_a_disk_that_fills_up_on_the_journal_is_said_too(tiny, tmp_path, monkeypatch):
    from ocria_compress.quantize.stream import Journal

    def full(self, line):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Journal, "_append", full)
    with pytest.raises(OcriaError, match="disk is full"):
        run(tiny, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_small_disk_is_found_before_anything_is_written(tiny, tmp_path, monkeypatch):
    import shutil
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage(10**6, 0, 10**6))
        for _ in range(2):
            with pytest.raises(OcriaError, match="Not enough disk"):
                run(tiny, tmp_path / "out")
    assert left_behind(tmp_path) == []
    run(tiny, tmp_path / "out", "part.mlp.scheme=keep")  # what was refused does not stand in the way of another recipe


def test_a_folder_that_appears_during_the_run_is_left_alone(tiny, tmp_path, monkeypatch):
    from ocria_compress.quantize import run as module

    real = module.write_weights

    def write_and_meddle(*arguments):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("mine")
        return real(*arguments)

    monkeypatch.setattr(module, "write_weights", write_and_meddle)
    with pytest.raises(OcriaError, match="not a result of this tool"):
        run(tiny, tmp_path / "out")
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("stopped", ["before the swap", "after the swap", "after the rename"])
def test_a_kill_around_the_last_step_does_not_spoil_the_next_overwrite(stopped, tiny, tmp_path, monkeypatch):
    """What is left of `.out.partial` then may hold the older result, or nothing at all."""
    import shutil

    from ocria_compress.model import writer

    if stopped != "after the rename":
        run(tiny, tmp_path / "out", "part.attention.scheme=keep")
    (tmp_path / "out").mkdir(exist_ok=True)
    real = shutil.rmtree

    def killed(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if stopped == "before the swap":
            patch.setattr(writer, "_exchange", killed)
        else:
            patch.setattr(
                shutil, "rmtree", lambda path, **o: real(path, **o) if path.name != ".out.partial" else killed()
            )
        with pytest.raises(KeyboardInterrupt):
            run(tiny, tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / MANIFEST).is_file()
    result = run(tiny, tmp_path / "out", overwrite=True)
    assert not result.resumed
    assert left_behind(tmp_path) == ["out"]
    assert set(result.manifest["files"]) == {p.name for p in (tmp_path / "out").iterdir()} - {MANIFEST}


def test_a_folder_of_the_users_with_the_work_folders_name_is_left_alone(tiny, tmp_path):
    mine = tmp_path / ".out.partial" / "files" / "precious"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    for fresh in (False, True):
        with pytest.raises(OcriaError, match="not of this tool"):
            run(tiny, tmp_path / "out", fresh=fresh)
    assert mine.read_text() == "mine"


def test_an_output_around_the_input_is_refused(tiny, breakable, tmp_path):
    out = run(tiny, tmp_path / "out").folder
    inner = breakable(tiny)
    (out / "source").symlink_to(inner)
    moved = inner.rename(out / "model")
    with pytest.raises(OcriaError, match="holds the input"):
        run(moved, out, overwrite=True)
    assert (moved / "config.json").is_file()


def test_two_runs_into_one_place_are_refused(tiny, tmp_path):
    from ocria_compress.model.writer import WorkFolder

    work = WorkFolder(tmp_path / "out", {"recipe": "x"})
    with pytest.raises(OcriaError, match="Another run"):
        run(tiny, tmp_path / "out")
    work.close()


# ---- killed at any moment

KILLED = """
import os, signal, sys
from ocria_compress.quantize import stream
from ocria_compress.quantize.run import quantize
from ocria_compress.quantize.plan import make_plan
from ocria_compress.model.source import open_source
from ocria_compress.model import writer
from ocria_compress.recipes import load_recipe
from pathlib import Path
model, out, kill_at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
count = 0
def counted(real):
    def call(*a, **k):
        global count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*a, **k)
    return call
for name in ("pwrite", "write", "fsync", "rename", "replace"):
    setattr(os, name, counted(getattr(os, name)))
quantize(make_plan(open_source(model), load_recipe("fp8")), out, command="test")
print(count)
"""


def start_to_be_killed(model, out, kill_at):
    """Runs a quantization that kills itself at the given call to the operating system; -1 lets it finish."""
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(model), str(out), str(kill_at)], capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """An uninterrupted run's folder, and how many of those calls it makes."""
    out = tmp_path_factory.mktemp("whole") / "out"
    done = start_to_be_killed(tiny, out, -1)
    assert done.returncode == 0, done.stderr[-2000:]
    return out, int(done.stdout)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9, 0.98, 1.0])
def test_q28_killed_anywhere_it_continues_to_the_same_bytes(share, tiny, whole, tmp_path):
    reference, calls = whole
    done = start_to_be_killed(tiny, tmp_path / "out", max(1, int(share * calls)))
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    if (tmp_path / "out").exists():  # killed after the folder got its name: then it must be whole
        assert (tmp_path / "out" / MANIFEST).is_file()
    else:
        run(tiny, tmp_path / "out")
        assert left_behind(tmp_path) == ["out"]
    assert tensor_bytes(tmp_path / "out") == tensor_bytes(reference)


def test_ctrl_c_leaves_a_run_that_continues(tiny, tmp_path):
    script = KILLED.replace("signal.SIGKILL", "signal.SIGINT")
    first = subprocess.run([sys.executable, "-c", script, str(tiny), str(tmp_path / "out"), "30"], capture_output=True)
    assert first.returncode != 0
    assert not (tmp_path / "out").exists()
    result = run(tiny, tmp_path / "out")
    assert result.resumed
    assert left_behind(tmp_path) == ["out"]


def test_what_was_written_wrongly_before_is_written_again(tiny, whole, tmp_path):
    """A power cut can lose what a journal says was written."""
    good, calls = whole
    start_to_be_killed(tiny, tmp_path / "out", int(0.9 * calls))
    shard = tmp_path / ".out.partial" / "files" / "model.safetensors"
    with shard.open("r+b") as file:
        file.seek(shard.stat().st_size // 4)
        file.write(bytes(4096))
    assert run(tiny, tmp_path / "out").resumed
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (good / "model.safetensors").read_bytes()


def test_an_unfinished_run_of_another_kind_is_refused_with_what_changed(tiny, tmp_path):
    start_to_be_killed(tiny, tmp_path / "out", 50)
    with pytest.raises(OcriaError, match="changed: recipe") as caught:
        run(tiny, tmp_path / "out", "part.mlp.scheme=keep")
    assert "--fresh" in caught.value.fix
    assert not run(tiny, tmp_path / "out", "part.mlp.scheme=keep", fresh=True).resumed


def test_memory_does_not_grow_with_the_tensors(models, tmp_path):
    """The largest tensor here is 16 MB; with one slice a thread the peak stays near that of the imports alone."""
    script = """
import resource, sys
from pathlib import Path
from ocria_compress.pages.torchvision_cpu import activate
activate()
import torch, compressed_tensors
from ocria_compress.quantize.run import quantize
from ocria_compress.quantize.plan import make_plan
from ocria_compress.model.source import open_source
from ocria_compress.recipes import load_recipe
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
quantize(make_plan(open_source(sys.argv[1]), load_recipe("fp8")), Path(sys.argv[2]), command="test")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    folder = models(hidden=2048, layers=8)
    size = sum(p.stat().st_size for p in folder.glob("*.safetensors"))
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder), str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    grown = int(done.stdout) << 10
    assert grown < size / 4, f"{grown >> 20} MiB for a model of {size >> 20} MiB"


# ---- KV scales


def kv(model, out, **options):
    return run(model, out, "calibration.count=1", recipe="fp8-kv", **options).manifest["calibration_scales"]


def test_kv_scales_do_not_depend_on_how_the_model_was_saved(models, tmp_path):
    """transformers would start from random weights for the other layout's names, without an error."""
    usual = kv(models(tied=False), tmp_path / "usual")
    assert len(usual) == 2
    assert kv(models(tied=False, layout="vllm"), tmp_path / "other") == usual


def test_kv_scales_are_measured_with_side_files_from_the_base(tiny, breakable, tmp_path):
    folder = breakable(tiny)
    for name in ("preprocessor_config.json", "video_preprocessor_config.json"):
        (folder / name).unlink()
    assert kv(folder, tmp_path / "lost", base=str(tiny)) == kv(tiny, tmp_path / "whole")


def test_a_killed_calibration_continues_after_the_last_page(tiny, tmp_path, monkeypatch):
    from ocria_compress.quantize.kv_cache import _Watch

    whole = run(tiny, tmp_path / "whole", "calibration.count=3", recipe="fp8-kv").folder
    real, pages = _Watch.run, []

    def interrupted(self, batch, page):
        if len(pages) == 2:
            raise KeyboardInterrupt
        pages.append(page)
        return real(self, batch, page)

    with monkeypatch.context() as patch:
        patch.setattr(_Watch, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tiny, tmp_path / "out", "calibration.count=3", recipe="fp8-kv")
    seen = []
    monkeypatch.setattr(_Watch, "run", lambda self, batch, page: seen.append(page) or real(self, batch, page))
    assert run(tiny, tmp_path / "out", "calibration.count=3", recipe="fp8-kv").resumed
    assert len(seen) == 1
    assert tensor_bytes(tmp_path / "out") == tensor_bytes(whole)
