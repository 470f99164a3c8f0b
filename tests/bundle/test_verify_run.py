"""The whole verification: real outputs of llmcompressor, the processor check, states and exit codes, the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from ocria_compress.bundle.verify import names, processor
from ocria_compress.bundle.verify import run as verify_run
from ocria_compress.bundle.verify.locate import find_model
from ocria_compress.bundle.verify.report import Report, State, failed, not_run, passed
from ocria_compress.bundle.verify.run import NAMES, Options, open_checkpoint, verify
from ocria_compress.bundled import PACKAGE
from ocria_compress.cli.verify import verify as command
from ocria_compress.errors import CheckFailed, OcriaError
from tests.bundle.checkpoints import edit_config, edit_weights, scaled

SEEN = {"prompt": "p", "ids": [1, 2], "grid": [[1, 2, 2]], "pixels": "ab", "pixels_shape": [4, 8]}
"""What a processor makes of a page, for tests that are about something else: asking a real one takes seconds."""

IGNORE = ["lm_head", "re:.*embed_tokens.*", "re:.*visual.*", "re:.*norm.*", r"re:.*\.(in_proj_(a|b)|conv1d)$"]

_MAKE = """
import sys, torch
from ocria_compress.pages import torchvision_cpu
torchvision_cpu.activate()
torch.set_num_threads(1)
from llmcompressor import model_free_ptq
source, out, *ignore = sys.argv[1:]
for scheme in ("FP8_DYNAMIC", "NVFP4A16"):
    into = f"{out}/{scheme}"
    model_free_ptq(model_stub=source, save_directory=into, scheme=scheme, ignore=ignore, max_workers=1, device="cpu")
"""


@pytest.fixture(scope="session")
def llmcompressor(tmp_path_factory: pytest.TempPathFactory, mini: Path) -> Path:
    """A folder with what llmcompressor makes of `mini`. Do not change it."""
    out = tmp_path_factory.mktemp("llmcompressor")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _MAKE, str(mini), str(out), *IGNORE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return out


def test_fp8_of_llmcompressor_passes_all_static_checks(llmcompressor: Path):
    report = verify(llmcompressor / "FP8_DYNAMIC", Options("mini", static=True, allow_not_run=("manifest",)))
    assert [check.name for check in report.checks if check.state is not State.PASSED] == ["manifest"]
    assert report.ok and "token ids" in report["processor"].detail
    errors = report["dequantized"].data["errors"]
    assert len(errors) == 75 and 0.02 < max(errors.values()) < 0.03


def test_nvfp4_of_llmcompressor_does_not_tie_the_global_scales_of_gdn_projections(seen, llmcompressor: Path):
    report = verify(llmcompressor / "NVFP4A16", Options("mini", static=True, allow_not_run=("manifest",)))
    assert [check.name for check in report.of(State.FAILED)] == ["fused-scales"]
    items = report["fused-scales"].items
    assert all("in_proj_qkvz: weight_global_scale differs" in item for item in items) and len(items) == 9
    assert 0.09 < max(report["dequantized"].data["errors"].values()) < 0.1


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "look", lambda folders, image: [SEEN] * len(folders))


def _processor(folder: Path):
    return verify(folder, Options("mini", static=True))["processor"]


@pytest.fixture
def fp8_of_mini(llmcompressor: Path, tmp_path: Path) -> Path:
    """One that a test may change."""
    return Path(shutil.copytree(llmcompressor / "FP8_DYNAMIC", tmp_path / "fp8"))


def test_image_processor_lost(fp8_of_mini: Path):
    (fp8_of_mini / "preprocessor_config.json").unlink()
    check = _processor(fp8_of_mini)
    assert check.state is State.FAILED


def test_image_processor_with_another_budget_makes_other_pixels_of_a_page(fp8_of_mini: Path):
    path = fp8_of_mini / "preprocessor_config.json"
    data = json.loads(path.read_text())
    data["size"]["longest_edge"] = 65536
    path.write_text(json.dumps(data))
    check = _processor(fp8_of_mini)
    assert check.state is State.FAILED
    assert any("grid" in item for item in check.items) and any("token ids" in item for item in check.items)


def test_chat_template_that_renders_other_ids(fp8_of_mini: Path):
    path = fp8_of_mini / "chat_template.jinja"
    path.write_text(path.read_text() + "\nThink first.")
    check = _processor(fp8_of_mini)
    assert check.state is State.FAILED and "the chat template renders" in check.items[0]


def test_the_whole_way_with_a_worker_that_plays_vllm(fp8_of_mini: Path, tmp_path: Path):
    asked = []

    class Worker:
        def __init__(self, model: Path, log: Path) -> None:
            self.model = model

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read_pages(self, requests):
            asked.append((self.model, requests))
            for request in requests:
                reference = Path(request.image_path).with_suffix(".md").read_text()
                yield SimpleNamespace(id=request.id, text=reference, finish_reason="stop")

        def describe(self):
            ctx = open_checkpoint(fp8_of_mini, Options("mini"))
            kernels = dict.fromkeys(names.vllm_modules(ctx.quantized), "kernel")
            return SimpleNamespace(versions={}, packed_modules_mapping=names.FUSED, layer_kernels=kernels, kv_cache={})

    options = Options("mini", count=2, allow_not_run=("manifest",), worker=Worker)
    report = verify(fp8_of_mini, options)
    assert report.ok and [page["id"] for page in report.pages] == [r.id for r in asked[0][1]]
    assert [model for model, _ in asked] == [find_model("mini"), fp8_of_mini]
    assert "Transcribe this page to Markdown." in asked[0][1][0].prompt_text
    assert json.loads(json.dumps(report.to_dict()))["pages"][0]["result"]


def test_vllm_is_not_shown_a_folder_with_code(seen, fp8_of_mini: Path):
    (fp8_of_mini / "modeling.py").write_text("raise SystemExit('run')")
    report = verify(fp8_of_mini, Options("mini", worker=lambda *_: pytest.fail("it was loaded")))
    assert report["vllm-loads"].state is State.NOT_RUN and report["no-code"].state is State.FAILED


def test_not_run_fails_unless_it_was_allowed_by_name():
    checks = [passed("config", ""), not_run("manifest", "")]
    assert not Report("x", None, checks).ok
    assert Report("x", None, checks, frozenset({"manifest"})).ok
    assert not Report("x", None, [*checks, failed("scales", "")], frozenset({"manifest", "scales"})).ok
    assert not Report("x", None, []).ok


def test_not_run_is_printed_first():
    checks = [passed("config", ""), failed("scales", ""), not_run("manifest", "")]
    assert [check.name for check in Report("x", None, checks).sorted()] == ["manifest", "scales", "config"]


def test_every_check_has_a_name_that_can_be_allowed(result):
    assert len(set(NAMES)) == len(NAMES)
    ctx = open_checkpoint(result, Options())
    assert {check.name for check in verify_run.static_checks(ctx)} <= set(NAMES)


@pytest.mark.parametrize("make", [lambda p: p / "gone", lambda p: p / "file", lambda p: p / "empty"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, make):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(OcriaError):
        verify(make(tmp_path), Options(static=True))


def test_unknown_check_name_is_refused_with_the_nearest(result):
    with pytest.raises(OcriaError) as error:
        verify(result, Options(static=True, allow_not_run=("manifets",)))
    assert error.value.fix and "manifest" in error.value.fix


def test_source_that_is_named_and_does_not_exist_is_refused(result):
    with pytest.raises(OcriaError, match="no such model folder"):
        verify(result, Options("./nowhere", static=True))


def test_source_by_hub_id_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mini: Path):
    commit = "a" * 40
    cached = tmp_path / "models--someone--pages"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(commit)
    shutil.copytree(mini, cached / "snapshots" / commit)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert find_model("someone/pages", commit) == cached / "snapshots" / commit
    with pytest.raises(OcriaError) as error:
        find_model("someone/pages", "b" * 40)
    assert error.value.fix and "hf download someone/pages --revision bbb" in error.value.fix


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    try:
        app(list(arguments), standalone_mode=False)
        code = 0
    except CheckFailed:
        code = 1
    return code, capsys.readouterr().out


def test_command_prints_a_table_and_a_verdict(seen, llmcompressor: Path, capsys: pytest.CaptureFixture[str]):
    folder = str(llmcompressor / "FP8_DYNAMIC")
    code, out = _run(capsys, folder, "--source", "mini", "--static", "--allow-not-run", "manifest")
    assert code == 0 and "vLLM was left out" in out
    assert "static checks: 17 passed, 1 not run; reading was not checked" in out
    assert out.index("not run (allowed)") < out.index("passed ")


def test_command_fails_with_what_is_wrong_and_json_alone_on_stdout(seen, result, capsys: pytest.CaptureFixture[str]):
    name = "model.language_model.layers.0.mlp.gate_proj.weight_scale"
    edit_weights(result, lambda stored: stored.update({name: scaled(stored[name], lambda x: x * 0)}))
    edit_config(result, lambda config: None)
    code, out = _run(capsys, str(result), "--static")
    assert code == 1 and f"{name}: 128 of 128 are zero" in out and "not proven" in out
    code, out = _run(capsys, str(result), "--static", "--json")
    data = json.loads(out)
    assert code == 1 and not data["ok"] and data["counts"]["failed"] >= 2


def test_checker_uses_nothing_of_the_writer():
    code = "import ocria_compress.bundle.verify.run, sys; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "ocria_compress.quantize" not in done.stdout and "ocria_compress.model" not in done.stdout
