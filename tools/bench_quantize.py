"""Measures `quantize --recipe fp8` against llmcompressor's `oneshot` and `model_free_ptq` on the same files.

    python -m tools.bench_quantize run MODEL --work DIR [--runs 3] [--json FILE] [--sides ours,oneshot,...]

Every run is a fresh process on a warm page cache, the sides are interleaved and their order rotates, and a run ends
when its output files and their folder are on disk (fsync by this program, for every side alike). The same modules
are quantized on every side: that is checked on the outputs, and the bytes of their tensors are compared with those of
the first run. Memory is the peak of VmHWM summed over the process and its children, mapped files included.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.measured_process import BLOCK, Clock, forget, measure, warm

SIDES = ("ours", "oneshot", "model_free-1", "model_free-2")
SUFFIXES = (".weight_scale", ".weight_zero_point", ".input_scale", ".k_scale", ".v_scale")

NOT_QUANTIZED = (
    "lm_head",
    r"re:.*visual.*",
    r"re:.*embed_tokens.*",
    r"re:.*norm.*",
    r"re:.*conv1d.*",
    r"re:.*linear_attn\.in_proj_(a|b)$",
    r"re:^mtp.*",
)
"""What the recipe `fp8` keeps, as llmcompressor's ignore list."""


# ---- the other sides: each runs in a process of its own


def work_oneshot(model: Path, out: Path) -> None:
    """Loads the model, quantizes it with FP8_DYNAMIC and saves it compressed, as llmcompressor's examples do."""
    clock = Clock()
    from ocria_compress.pages.torchvision_cpu import activate

    activate()
    import torch
    from llmcompressor import oneshot
    from llmcompressor.modifiers.quantization import QuantizationModifier
    from transformers import AutoProcessor, Qwen3_5ForConditionalGeneration

    clock.lap("import")
    loaded = Qwen3_5ForConditionalGeneration.from_pretrained(model, dtype=torch.bfloat16)
    clock.lap("load")
    recipe = QuantizationModifier(targets="Linear", scheme="FP8_DYNAMIC", ignore=list(NOT_QUANTIZED))
    oneshot(model=loaded, recipe=recipe)
    clock.lap("quantize")
    loaded.save_pretrained(out, save_compressed=True)
    AutoProcessor.from_pretrained(model).save_pretrained(out)
    clock.lap("save")
    clock.tell()


def work_model_free(model: Path, out: Path, workers: int) -> None:
    """Quantizes shard by shard without a model definition."""
    clock = Clock()
    from ocria_compress.pages.torchvision_cpu import activate

    activate()
    from llmcompressor import model_free_ptq

    clock.lap("import")
    ignore = list(NOT_QUANTIZED)
    model_free_ptq(
        model_stub=str(model),
        save_directory=str(out),
        scheme="FP8_DYNAMIC",
        ignore=ignore,
        max_workers=workers,
        device="cpu",
    )
    clock.lap("quantize")
    clock.tell()


def command_of(side: str, model: Path, out: Path) -> list[str]:
    """The command line of one side."""
    if side == "ours":
        ours = ["quantize", "--model", str(model), "--recipe", "fp8", "--out", str(out)]
        return [sys.executable, "-m", "ocria_compress", *ours]
    worker = [sys.executable, "-m", "tools.bench_quantize"]
    if side == "oneshot":
        return [*worker, "oneshot", str(model), str(out)]
    return [*worker, "model-free", str(model), str(out), "--workers", side.rpartition("-")[2]]


# ---- comparing outputs, with nothing but the file format


class Tensors:
    """The tensors of a folder of safetensors files: dtype, shape and a way to their bytes."""

    def __init__(self, folder: Path) -> None:
        self.found: dict[str, tuple[str, list[int], Path, int, int]] = {}
        for file in sorted(folder.glob("*.safetensors")):
            with open(file, "rb") as stream:
                size = int.from_bytes(stream.read(8), "little")
                header = json.loads(stream.read(size))
            for name, entry in header.items():
                if name != "__metadata__":
                    begin, end = entry["data_offsets"]
                    self.found[name] = (entry["dtype"], entry["shape"], file, 8 + size + begin, end - begin)

    def quantized(self) -> set[str]:
        """FP8 weights and their scales."""
        return {n for n, t in self.found.items() if t[0].startswith("F8") or n.endswith(SUFFIXES)}

    def blocks(self, name: str) -> Iterator[bytes]:
        """A tensor's bytes, piece by piece."""
        _, _, file, at, left = self.found[name]
        with open(file, "rb") as stream:
            stream.seek(at)
            while left:
                block = stream.read(min(BLOCK, left))
                if not block:
                    raise SystemExit(f"{file} ends within {name}")
                left -= len(block)
                yield block


def difference(ours: Tensors, other: Tensors, name: str) -> str | None:
    """How a tensor differs between two folders; None when it is identical."""
    if ours.found[name][:2] != other.found[name][:2]:
        return f"{name}: {ours.found[name][:2]} against {other.found[name][:2]}"
    at = 0
    for a, b in zip(ours.blocks(name), other.blocks(name), strict=True):
        if a != b:
            first = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
            return f"{name}: byte {at + first} is {a[first]:#04x} against {b[first]:#04x}"
        at += len(a)
    return None


def compare(ours_folder: Path, other_folder: Path) -> dict[str, Any]:
    """Compares the tensors of two quantized checkpoints byte for byte.

    Returns:
        for `quantized` (weights and scales) and `kept`: how many `tensors` both have, how many are `identical`, and the
        `first` difference; quantized on one side alone: `only_ours`, `only_other`; names not in both: `odd`.
    """
    ours, other = Tensors(ours_folder), Tensors(other_folder)
    both = sorted(ours.quantized() & other.quantized())
    kept = sorted(set(ours.found) & set(other.found) - set(both))
    found: dict[str, Any] = {"only_ours": sorted(ours.quantized() - other.quantized())}
    found |= {
        "only_other": sorted(other.quantized() - ours.quantized()),
        "odd": sorted(set(ours.found) ^ set(other.found)),
    }
    for what, names in (("quantized", both), ("kept", kept)):
        different = [d for name in names if (d := difference(ours, other, name))]
        found[what] = {
            "tensors": len(names),
            "identical": len(names) - len(different),
            "first": next(iter(different), None),
        }
    return found


# ---- the benchmark


def run(model: Path, work: Path, runs: int, sides: list[str], say: Callable[[str], None] = print) -> dict[str, Any]:
    """Runs every side `runs` times, interleaved, and compares what they wrote; leaves logs and results in `work`."""
    work.mkdir(parents=True, exist_ok=True)
    reference = work / "reference"
    results: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    if reference.exists():
        raise SystemExit(f"{reference} exists: remove it, or give another --work")
    size, first = warm(model), ""
    for turn in range(runs):
        for side in sides[turn % len(sides) :] + sides[: turn % len(sides)]:
            out, log = work / f"out-{side}", work / f"{side}-{turn + 1}.log"
            shutil.rmtree(out, ignore_errors=True)
            os.sync()
            warm(model)
            result = measure(command_of(side, model, out), out, log)
            results[side].append(result)
            say(f"run {turn + 1} of {runs}  {side:<13} {result['wall_s']:8.2f} s  rc {result['returncode']}")
            if result["returncode"] == 0:
                result["output_bytes"] = sum(f.stat().st_size for f in out.glob("*.safetensors"))
                result["compared"] = _keep_or_compare(out, reference)
                first = first or side
            with open(work / "results.jsonl", "a") as kept:  # so that a benchmark cut short is not lost
                kept.write(json.dumps({"side": side, "run": turn + 1, **result}) + "\n")
            shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(reference, ignore_errors=True)
    about = {"model": str(model), "source_bytes": size, "reference": first, **setting(model, work, sides)}
    return {**about, "summary": {side: summary(done, size) for side, done in results.items()}, "runs": results}


def _keep_or_compare(out: Path, reference: Path) -> dict[str, Any] | None:
    if not reference.exists():
        out.rename(reference)
        forget(reference)
        return None
    found = compare(reference, out)
    forget(reference)
    return found


def setting(model: Path, work: Path, sides: list[str]) -> dict[str, Any]:
    """What made the figures: commands, versions, machine."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {"python": sys.version.split()[0]}
    for name in ("torch", "transformers", "llmcompressor", "compressed-tensors", "safetensors"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    memory = Path("/proc/meminfo").read_text().splitlines()
    total = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in memory}
    commands = {side: shlex.join(["python", *command_of(side, model, work / f"out-{side}")[1:]]) for side in sides}
    machine = {"cpus": os.cpu_count(), "memory": total["MemTotal"], "swap": total["SwapTotal"]}
    return {"commands": commands, "versions": versions, "machine": machine}


def summary(done: list[dict[str, Any]], size: int) -> dict[str, Any]:
    """One side's figures: median and range of the wall time, the worst of everything else."""
    good = [result for result in done if result["returncode"] == 0]
    if not good:
        return {"failed": len(done), "returncode": done[0]["returncode"] if done else None}
    walls = [result["wall_s"] for result in good]
    worst = {
        key: max(r[key] for r in good) for key in ("peak_hwm", "peak_rss", "peak_rss_file", "fsync_s", "output_bytes")
    }
    swapped = {key: max(r[key] for r in good) for key in ("swapped_in_pages", "swapped_out_pages", "major_faults")}
    median = statistics.median(walls)
    phases = {key: statistics.median(r["phases"][key] for r in good) for key in good[0]["phases"]}
    times = {"wall_s": median, "wall_min_s": min(walls), "wall_max_s": max(walls), "phases": phases}
    compared = [r["compared"] for r in good if r["compared"]]
    same = bool(compared) and not any(c["only_ours"] or c["only_other"] for c in compared)
    worse = min(compared, key=lambda c: c["quantized"]["identical"]) if compared else None
    return {
        "failed": len(done) - len(good),
        **times,
        "mb_per_s": size / median / 1e6,
        **worst,
        **swapped,
        "same_modules": same,
        "compared": worse,
    }


def report(found: dict[str, Any]) -> str:
    """The figures as an aligned table, with what was compared, the commands and the versions below."""
    heads = ["side", "wall s", "(min..max)", "MB/s", "HWM GB", "RSS GB", "file GB", "swap in/out", "fsync s", "bytes"]
    rows = [_row(side, figures) for side, figures in found["summary"].items()]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = [
        f"{found['model']}: {found['source_bytes'] / 1e9:.3f} GB of weights, medians of the runs, worst of the rest"
    ]
    for row in [heads, *rows]:
        lines.append(
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        )
    lines.append(f"bytes: quantized tensors identical to those of the first run of {found['reference']}")
    for side, figures in found["summary"].items():
        compared = figures.get("compared") or {}
        lines += [
            f"{side}, {what}: first difference at {compared[what]['first']}"
            for what in ("quantized", "kept")
            if compared and compared[what]["first"]
        ]
        if compared and not figures["same_modules"]:
            lines.append(f"{side}: NOT the same modules: {(compared['only_ours'] + compared['only_other'])[:4]}")
        if figures.get("phases"):
            lines.append(f"{side}, phases in s: " + ", ".join(f"{k} {v:.2f}" for k, v in figures["phases"].items()))
    ranked = sorted(
        (f["wall_s"], side) for side, f in found["summary"].items() if "wall_s" in f and side.startswith("model")
    )
    lines += [f"model_free_ptq at its best: {ranked[0][1]}"] if ranked else []
    ours = found["summary"].get("ours", {}).get("wall_s")
    for other, side in [(found["summary"].get("oneshot", {}).get("wall_s"), "oneshot"), *ranked[:1]]:
        lines += [f"ours is {other / ours:.2f} times as fast as {side}"] if ours and other else []
    lines += [f"{side}: {command}" for side, command in found["commands"].items()]
    return "\n".join([*lines, f"versions: {found['versions']}", f"machine: {found['machine']}"])


def _row(side: str, figures: dict[str, Any]) -> list[str]:
    if "wall_s" not in figures:
        return [side, f"failed ({figures['returncode']})", *[""] * 8]
    compared = figures["compared"]
    same = f"{compared['quantized']['identical']} of {compared['quantized']['tensors']}" if compared else "-"
    sizes = [f"{figures[key] / 1e9:.2f}" for key in ("peak_hwm", "peak_rss", "peak_rss_file")]
    spread = f"({figures['wall_min_s']:.2f}..{figures['wall_max_s']:.2f})"
    swapped = f"{figures['swapped_in_pages']}/{figures['swapped_out_pages']}"
    return [
        side,
        f"{figures['wall_s']:.2f}",
        spread,
        f"{figures['mb_per_s']:.0f}",
        *sizes,
        swapped,
        f"{figures['fsync_s']:.2f}",
        same,
    ]


def main(arguments: list[str] | None = None) -> int:
    """`run` measures; `oneshot` and `model-free` are one side each; `compare` sets two results side by side."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench_quantize", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "oneshot", "model-free", "compare"):
        sub = commands.add_parser(name)
        sub.add_argument("model" if name != "compare" else "ours", type=Path)
        if name != "run":
            sub.add_argument("out" if name != "compare" else "other", type=Path)
        if name == "model-free":
            sub.add_argument("--workers", type=int, default=1)
    measured = commands.choices["run"]
    measured.add_argument("--work", type=Path, required=True, help="a folder for outputs and logs")
    measured.add_argument("--runs", type=int, default=3)
    measured.add_argument("--sides", default=",".join(SIDES))
    measured.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args(arguments)
    if given.command == "oneshot":
        work_oneshot(given.model, given.out)
    elif given.command == "model-free":
        work_model_free(given.model, given.out, given.workers)
    elif given.command == "compare":
        print(json.dumps(compare(given.ours, given.other), indent=2))
    else:
        sides = given.sides.split(",")
        if unknown := set(sides) - set(SIDES):
            parser.error(f"no such side: {', '.join(sorted(unknown))}; there are {', '.join(SIDES)}")
        if given.json:
            given.json.parent.mkdir(parents=True, exist_ok=True)
        found = run(given.model.resolve(), given.work.resolve(), given.runs, sides)
        if given.json:
            given.json.write_text(json.dumps(found, indent=2) + "\n")
        print(report(found))
        return int(any(figures["failed"] for figures in found["summary"].values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
