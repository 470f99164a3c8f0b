"""Times steps of the real thing: python -m tools.train_mini --out run --smoke 30"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from tools.mini.train import Trainer

PARTS = ("data", "forward", "backward", "optimizer")
PROFILED = 3


def smoke(trainer: Trainer, steps: int) -> None:
    """Warms up, times `steps` steps on the loader's pages, and profiles three more.

    Prints what a step's parts take on the device; the profile's first kernels go to `profile.txt` in the run's folder
    too. Nothing is saved: the weights of these steps are lost.
    """
    began = time.perf_counter()
    trainer.warm_up()
    print(f"compilation and first steps: {time.perf_counter() - began:.1f} s", flush=True)
    trainer.loader.level = 1.0
    trainer.options.level_until = 0.0
    trainer.loader.start(trainer.device == "cuda")
    for _ in range(3):  # the first batches are waited for
        trainer.step()
    trainer.report()
    marks: list[dict[str, Any]] = []
    began = time.perf_counter()
    for _ in range(steps):
        marks.append({})
        _mark(trainer.device, marks[-1], "begin")
        trainer.step(lambda name: _mark(trainer.device, marks[-1], name))
    trainer.report()
    milliseconds = 1e3 * (time.perf_counter() - began) / max(1, steps)
    parts = ", ".join(f"{name} {_mean(marks, name):.1f}" for name in PARTS)
    print(f"{steps} steps: {milliseconds:.1f} ms each; on the device: {parts} ms", flush=True)
    options = trainer.options
    (options.out / "profile.txt").write_text(_profile(trainer), "utf-8")
    trainer.options.mtp_from = 0.0
    began = time.perf_counter()
    for _ in range(max(3, steps // 3)):
        trainer.step()
    trainer.report()
    milliseconds = 1e3 * (time.perf_counter() - began) / max(3, steps // 3)
    print(f"with the multi-token-prediction layer: {milliseconds:.1f} ms a step", flush=True)
    trainer.evaluate("smoke")


def _mark(device: str, marks: dict[str, Any], name: str) -> None:
    if device == "cpu":
        marks[name] = time.perf_counter()
        return
    marks[name] = torch.cuda.Event(enable_timing=True)
    marks[name].record()


def _mean(marks: list[dict[str, Any]], name: str) -> float:
    """Milliseconds from the part before to the end of this one."""
    before = ("begin", *PARTS)[PARTS.index(name)]
    spans = [
        m[before].elapsed_time(m[name]) if not isinstance(m[name], float) else 1e3 * (m[name] - m[before])
        for m in marks
    ]
    return sum(spans) / max(1, len(spans))


def _profile(trainer: Trainer) -> str:
    """The table of what takes longest, or why there is none."""
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if trainer.device == "cuda" else [])
    try:
        with profile(activities=kinds) as profiler:
            for _ in range(PROFILED):
                trainer.step()
            if trainer.device == "cuda":
                torch.cuda.synchronize()
        column = "self_cuda_time_total" if trainer.device == "cuda" else "self_cpu_time_total"
        table = profiler.key_averages().table(sort_by=column, row_limit=15, max_name_column_width=70)
    except Exception as error:  # a profile is not worth a run
        table = f"no profile: {type(error).__name__}: {error}"
    print(table, flush=True)
    return table
