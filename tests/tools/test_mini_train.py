"""The trainer: pages from workers, a run that goes on as if it had never stopped, and its log as curves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from tests.conftest import REPOSITORY
from tests.tools.mini_pages import make
from tools.mini import draw_curve
from tools.mini.loader import Loader, held_out
from tools.mini.packing import Shapes
from tools.mini.prompts import load_tokenizer
from tools.mini.schedule import WARMUP_STEPS, level, rate
from tools.mini.workers import LoaderError, Workers

SHAPES = Shapes(rows=1, length=512, patches=2048, targets=256, pages=16, longest=256, longest_patches=1024)
SEEDS = [100, 101, 103, 104, 105]

SMALLER = """
import runpy
from tools.mini import architecture
architecture.TEXT["num_hidden_layers"], architecture.VISION["depth"] = 4, 1
runpy.run_module("tools.train_mini", run_name="__main__")
"""
"""The trainer's command, of a model with fewer layers."""


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers("tests.tools.mini_pages:make", mini_folder(), SHAPES, count=1, slots=12)
    yield made
    made.stop()


def test_workers_make_the_pages_of_their_seeds(workers: Workers) -> None:
    tokenizer = load_tokenizer(mini_folder())
    pages = workers.make(SEEDS, level=0.5)
    assert len(pages) == len(SEEDS) and workers.free == 12
    for page, seed in zip(pages, SEEDS, strict=True):
        pixels, request, answer = make(seed, 0.5)
        assert page.kind == request
        assert tokenizer.decode(page.answer.tolist(), skip_special_tokens=False) == answer
        assert abs(page.rows * 16 - pixels.shape[0]) <= 16 and abs(page.columns * 16 - pixels.shape[1]) <= 16
        assert page.patches.shape == (page.count, 768) and page.patches.any()


def test_pages_that_fail_or_are_too_long_are_left_out_and_counted(
    workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, long = 17 * 6 + 5, 19 * 5 + 7
    pages = workers.make([100, bad, long, 101], level=0.5)
    assert len(pages) == 2 and workers.free == 12
    assert workers.failures == {"ValueError": 1, "too long": 1}
    assert "a bad page" in capsys.readouterr().out


def test_a_loader_without_workers_says_so() -> None:
    workers = Workers("tests.tools.mini_pages:make_or_die", mini_folder(), SHAPES, count=1, slots=12)
    try:
        with pytest.raises(LoaderError, match="every worker process has died"):
            workers.make([3, 4], level=0.5)
    finally:
        workers.stop()


def test_held_out_batches_hold_every_page(workers: Workers) -> None:
    batches = held_out(workers, SHAPES, 6)
    assert sum(counts.pages for _, counts in batches) == 6
    for arrays, counts in batches:
        assert (arrays.labels >= 0).sum() == counts.targets
        ends = arrays.labels[: counts.targets] == workers.requests.end
        assert ends.sum() == counts.pages


def _batches(state: dict[str, Any] | None, count: int) -> list[tuple[np.ndarray, dict[str, Any]]]:
    workers = Workers("tests.tools.mini_pages:make", mini_folder(), SHAPES, count=1, slots=24)
    loader = Loader(workers, SHAPES, seed=3)
    loader.level = 0.4
    found = []
    try:
        loader.start(False, state)
        for _ in range(count):
            ready = loader.next(timeout=60)
            found.append((ready.tensors["ids"].numpy().copy(), ready.state))
            loader.release(ready)
    finally:
        loader.stop()
    return found


def test_the_loader_goes_on_with_the_batch_that_would_have_come() -> None:
    whole = _batches(None, 5)
    again = _batches(whole[1][1], 3)
    for (expected, _), (found, _) in zip(whole[2:], again, strict=True):
        assert np.array_equal(expected, found)
    assert len({ids.tobytes() for ids, _ in whole}) == 5


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    """Parameters, moments and counts of three steps, and of one and two, are the same to the bit."""
    options = "--source tests.tools.mini_pages:make --cpu --eager --workers 1 --slots 24 --rows 1 --length 256"
    options += " --held-out 2 --seconds 6 --seconds-per-step 1 --mtp-from 0.3 --evaluate-every 100 --level-until 0"

    def train(name: str, steps: int) -> dict[str, Any]:
        command = [sys.executable, "-c", SMALLER, "--out", str(tmp_path / name), *options.split()]
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_WAIT_POLICY": "PASSIVE"}
        done = subprocess.run(
            [*command, "--most-steps", str(steps)], cwd=REPOSITORY, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"ended: {steps} steps are done" in done.stdout
        return torch.load(tmp_path / name / "state.pt", weights_only=True)

    whole = train("whole", 3)
    half = train("parts", 1)
    rest = train("parts", 2)
    assert whole["progress"]["step"] == rest["progress"]["step"] == 3 and whole["progress"]["mtp_steps"] == 1
    counts = ("pages", "tokens", "targets", "mtp_steps", "clock")
    assert {n: whole["progress"][n] for n in counts} == {n: rest["progress"][n] for n in counts}
    assert whole["loader"] == rest["loader"]
    for name, tensor in whole["parameters"].items():
        assert torch.equal(tensor, rest["parameters"][name]), name
    assert torch.equal(whole["optimizer"]["second"], rest["optimizer"]["second"])
    assert any(not torch.equal(tensor, half["parameters"][name]) for name, tensor in whole["parameters"].items())
    lines = draw_curve.read_log(tmp_path / "parts" / "log.jsonl")
    assert [line["step"] for line in lines] == [1, 1, 3, 3]


def test_the_schedule_warms_up_stays_and_falls_to_nothing() -> None:
    assert rate(0, 0.0) == pytest.approx(1 / WARMUP_STEPS) and rate(WARMUP_STEPS, 0.3) == 1
    assert 0.4 < rate(10**6, 0.7) < 0.6 and rate(10**6, 1.0) == 0
    assert [level(share, 0.2) for share in (0, 0.1, 0.2, 0.9)] == [0, 0.5, 1, 1] and level(0, 0) == 1


# -- the curves


def _log(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def _line(step: int, **more: float) -> dict[str, Any]:
    return {"step": step, "seconds": step * 2.0, "loss": 8 / step, "rate": 1.0, "level": 0.5, "tokens_per_s": 9} | more


def test_lines_of_steps_that_a_kill_lost_are_left_out(tmp_path: Path) -> None:
    held = {"step": 50, "seconds": 100, "evaluation": "held_out", "held_out_loss": 1.0}
    lines = [_line(25), _line(50), held, _line(75), _line(100), _line(75, loss=0.5), _line(100)]
    found = draw_curve.read_log(_log(tmp_path / "log.jsonl", lines))
    assert [line["step"] for line in found] == [25, 50, 50, 75, 100] and found[3]["loss"] == 0.5
    assert draw_curve.series(found, "held_out_loss", "final_loss") == ([100 / 60], [1.0])


def test_the_curves_are_drawn_with_whatever_the_log_has(tmp_path: Path) -> None:
    from PIL import Image

    bare = [_line(25), _line(50)]
    more = [*bare, _line(75, mtp_loss=4.0), {"step": 75, "seconds": 150, "evaluation": "x", "held_out_ned": 0.3}]
    images = []
    for number, lines in enumerate((bare, more)):
        out = tmp_path / "new" / f"{number}.png"
        draw_curve.main([str(_log(tmp_path / "log.jsonl", lines)), "--out", str(out)])
        with Image.open(out) as image:
            assert image.width > 800
            images.append(np.asarray(image.convert("RGB")).copy())
    green = [int(np.all(np.abs(image.astype(int) - (63, 143, 95)) < 12, -1).sum()) for image in images]
    assert green[1] > green[0] + 8, "the edit distance is drawn where there is one"


@pytest.mark.parametrize("text", ["", "not json\n", '{"step": 5}\n', '{"step": 5, "seconds": 1}\n'])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(OcriaError):
        draw_curve.read_log(path)
    with pytest.raises(SystemExit) as ended:
        draw_curve.main([str(path), "--out", str(tmp_path / "a.png")])
    assert ended.value.code == 2 and str(path) in capsys.readouterr().err and not (tmp_path / "a.png").exists()
