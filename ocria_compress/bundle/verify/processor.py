"""Check of the processor: the checkpoint's and the source's must make the same tokens and pixels of a page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ocria_compress.bundle.verify.context import Context
from ocria_compress.bundle.verify.report import Check, failed, judged, not_run
from ocria_compress.bundled import PACKAGE

NAME = "processor"
_TIMEOUT_S = 300


def look(folders: list[Path], image: Path) -> list[dict[str, Any]] | str:
    """What the processors of model folders make of one page, from a clean process; or why that could not be told."""
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ocria_compress.bundle.verify.processor_worker", *map(str, folders), str(image)]
    environment = {**os.environ, **quiet, "PYTHONPATH": path}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT_S} s"
    except (OSError, ValueError, IndexError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return last[0]


def processor(ctx: Context, image: Path | None, looked: list[dict[str, Any]] | str | None) -> Check:
    """Same prompt, token ids, pixel values and grid for one page with the serving prompt."""
    if image is None or looked is None:
        return not_run(NAME, "there is no page to look at: give --pages")
    if isinstance(looked, str):
        return not_run(NAME, f"the processors could not be run: {looked}; see `ocria-compress doctor`")
    ours = looked[0]
    if "error" in ours:
        return failed(NAME, f"the checkpoint's processor: {ours['error']}", [ours["fix"]] if ours.get("fix") else [])
    if len(looked) < 2:
        return not_run(NAME, ctx.source_problem)
    theirs = looked[1]
    if "error" in theirs:
        return not_run(NAME, f"the source's processor: {theirs['error']}; restore the source's files")
    problems = _differences(ours, theirs)
    right = f"{len(ours['ids'])} token ids and {ours['pixels_shape'][0]} patches of a page are the source's"
    return judged(NAME, problems, right, "the model would be shown something else than the source was")


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    problems = []
    if ours["prompt"] != theirs["prompt"]:
        problems.append(f"the chat template renders {ours['prompt']!r}, the source's {theirs['prompt']!r}")
    if ours["ids"] != theirs["ids"]:
        pairs = zip(ours["ids"], theirs["ids"], strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours["ids"]), len(theirs["ids"])))
        problems.append(f"{len(ours['ids'])} token ids against {len(theirs['ids'])}, different from position {at} on")
    if ours["grid"] != theirs["grid"]:
        problems.append(f"the image is cut into a grid of {ours['grid']}, the source's {theirs['grid']}")
    if ours["pixels"] != theirs["pixels"]:
        shapes = f"{ours['pixels_shape']} against {theirs['pixels_shape']}"
        problems.append(f"the pixel values differ ({shapes})")
    return problems
