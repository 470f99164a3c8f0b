"""The command line as a user meets it: start-up, exit codes, panels, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import models as broken

REPOSITORY = Path(__file__).resolve().parents[2]


def ocria(*arguments, cwd, env=None):
    """Runs `ocria-compress` as a process of its own; output is 100 columns wide."""
    environment = {k: v for k, v in os.environ.items() if k != "OCRIA_MODEL"}
    environment |= {"PYTHONPATH": str(REPOSITORY), "COLUMNS": "100"} | (env or {})
    return subprocess.run(
        [sys.executable, "-m", "ocria_compress", *map(str, arguments)],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def flat(text):
    """Panel text on one line, without its frame."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "mini"], ["recipes"], ["quantize", "--help"]])
def test_start_up_imports_no_torch(arguments):
    script = f"""
import sys
from ocria_compress.cli.app import run
code = run({arguments!r})
heavy = sorted(sys.modules.keys() & {{"torch", "transformers", "compressed_tensors", "llmcompressor", "numpy", "vllm"}})
assert not heavy, heavy
sys.exit(code)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stderr


def test_every_command_has_help(tmp_path):
    for command in ("plan", "quantize", "verify", "recipes", "doctor", "pages"):
        done = ocria(command, "--help", cwd=tmp_path)
        assert done.returncode == 0
        assert "Usage" in done.stdout
        assert len(done.stdout.splitlines()) > 5


def test_quantize_alone_takes_mini_and_says_so_first(tmp_path):
    done = ocria("quantize", "--recipe", "fp8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("No model named: using mini")
    assert (tmp_path / "exports" / "mini-fp8" / "ocria.json").is_file()
    assert "27.9 MB -> 20.1 MB (72%)" in done.stdout
    again = ocria("quantize", "--recipe", "fp8", cwd=tmp_path)
    assert again.returncode == 2
    assert "--overwrite" in flat(again.stderr)
    assert "Traceback" not in again.stderr


def test_dry_run_is_the_plan_and_writes_nothing(tmp_path):
    dry = ocria("quantize", "--model", "mini", "--dry-run", "--json", cwd=tmp_path)
    plan = ocria("plan", "mini", "--json", cwd=tmp_path)
    assert dry.returncode == plan.returncode == 0
    one, other = json.loads(dry.stdout), json.loads(plan.stdout)
    one.pop("resources"), other.pop("resources")
    assert one == other
    assert list(tmp_path.iterdir()) == []


def test_a_model_comes_from_the_argument_then_the_environment_then_the_file(tiny, tmp_path):
    (tmp_path / "ocria.toml").write_text(f'model = "{tiny}"\n')
    assert "(from ocria.toml)" in ocria("plan", cwd=tmp_path).stdout
    assert "(from OCRIA_MODEL)" in ocria("plan", cwd=tmp_path, env={"OCRIA_MODEL": "mini"}).stdout
    assert "mini" in ocria("plan", "--model", "mini", cwd=tmp_path).stdout
    (tmp_path / "ocria.toml").write_text("modell = 'x'\n")
    done = ocria("plan", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'model'?" in flat(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "nowhere"], "no such model folder"),
        (["plan", "mini", "--model", "other"], "Two models are named"),
        (["plan", "mini", "--recipe", "fp9"], "did you mean 'fp8'?"),
        (["plan", "mini", "--set", "part.mlp.schme=keep"], "did you mean 'scheme'?"),
        (["plan", "mini", "--nonsense"], "No such option"),
        (["plam"], "No such command"),
        (["plan", "mini", "--set", "calibration.count=99", "--recipe", "fp8-kv"], "asks for 99 calibration pages"),
        (["quantize", "--set", "calibration.count=99", "--recipe", "fp8-kv"], "asks for 99 calibration pages"),
        (["quantize", "--set", "calibration.pages=/nowhere", "--recipe", "fp8-kv"], "no such page set"),
        (["quantize", "--recipe", "fp8-kv", "--set", "calibration.max_tokens=100"], "refused, not cut"),
    ],
)
def test_what_cannot_be_done_is_one_panel_and_exit_2(arguments, words, tmp_path):
    done = ocria(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in flat(done.stderr)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "exports").exists() or not any(
        p for p in (tmp_path / "exports").iterdir() if not p.name.startswith(".")
    )


def test_errors_are_json_where_json_was_asked(tmp_path):
    done = ocria("plan", "nowhere", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["where"] == "nowhere"


def test_debug_shows_the_traceback(tmp_path):
    done = ocria("plan", "nowhere", "--debug", cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert "OcriaError: There is no such model folder" in done.stderr
    assert done.returncode == 2


def test_a_damaged_model_is_refused_by_quantize(tiny, breakable, tmp_path):
    folder = breakable(tiny)
    broken.put_nan(folder, "model.language_model.layers.0.mlp.up_proj.weight")
    done = ocria("quantize", "--model", folder, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "NaN or infinite" in flat(done.stderr)
    assert not (tmp_path / "out").exists()


def test_calibrated_kv_scales_are_written(tmp_path):
    done = ocria("quantize", "--recipe", "fp8-kv", "--set", "calibration.count=2", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said["calibration_scales"]) == 6
    assert all(0.001 < scale < 1 for scale in said["calibration_scales"].values())
    config = json.loads((tmp_path / "exports" / "mini-fp8-kv" / "config.json").read_text())
    assert config["quantization_config"]["kv_cache_scheme"]["strategy"] == "tensor"


@pytest.mark.parametrize("spoil", ["text", "empty", "wide", "missing"])
def test_a_calibration_page_that_is_no_page_is_refused_by_name(spoil, tmp_path):
    import hashlib
    import shutil

    from PIL import Image

    from ocria_compress.bundled import bundled

    pages = Path(shutil.copytree(bundled("calibration"), tmp_path / "pages"))
    entries = [json.loads(line) for line in (pages / "manifest.jsonl").read_text().splitlines()]
    image = pages / entries[1]["image"]
    if spoil == "text":
        image.write_text("not an image")
    elif spoil == "empty":
        image.write_bytes(b"")
    elif spoil == "wide":
        Image.new("L", (20000, 40)).save(image, "PNG")
    else:
        image.unlink()
    if image.exists():
        entries[1]["sha256"] = hashlib.sha256(image.read_bytes()).hexdigest()
    (pages / "manifest.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
    done = ocria("quantize", "--recipe", "fp8-kv", "--set", f"calibration.pages={pages}", cwd=tmp_path)
    assert done.returncode == 2
    assert image.name in flat(done.stderr).replace(" ", "")
    assert not (tmp_path / "exports" / "mini-fp8-kv").exists()


def test_versions_are_told(tmp_path):
    assert ocria("--version", cwd=tmp_path).stdout.startswith("ocria-compress ")


def test_square_brackets_in_names_are_no_markup(tmp_path):
    (tmp_path / "mine.yaml").write_text("description: '[/bold] x'\npart: {mlp: {scheme: fp8}}\n")
    done = ocria("quantize", "--recipe", "mine.yaml", "--out", "[bold]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[bold]" in done.stdout
    assert "[/bold] x" in ocria("plan", "mini", "--recipe", "mine.yaml", cwd=tmp_path).stdout


def test_ctrl_c_says_how_to_go_on(tmp_path):
    script = """
import os, signal, sys
from ocria_compress.quantize import stream
real = stream._Job.run
count = 0
def run(self):
    global count
    count += 1
    if count == 20:
        os.kill(os.getpid(), signal.SIGINT)
    return real(self)
stream._Job.run = run
from ocria_compress.cli.app import run as command
sys.exit(command(["quantize", "--model", "mini", "--out", "out"]))
"""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 130, done.stderr
    assert "The same command continues" in done.stderr
    assert not (tmp_path / "out").exists()
    assert ocria("quantize", "--model", "mini", "--out", "out", cwd=tmp_path).returncode == 0


def test_ctrl_c_inside_exec_exits_with_130(tmp_path):
    """As it hits while a dataclass is made, on an import in the middle of a command."""
    (tmp_path / "interrupted.py").write_text("""
from ocria_compress.__main__ import main
from ocria_compress.cli import app

def interrupt(*arguments, **options):
    exec("raise KeyboardInterrupt")

app.app = interrupt
main()
""")
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, "-m", "interrupted"], env=environment, capture_output=True, text=True)
    assert done.returncode == 130 and "Interrupted." in done.stderr, done.stderr
