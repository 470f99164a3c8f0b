"""Measures what the shipped recipes cost `mini`: sizes, and page accuracy in transformers and in vLLM.

    python -m tools.measure_mini [--count 64] [--engines transformers,vllm] [--write]

Reads the bundled evaluation pages greedily with the original and with each recipe's result, the same engine for
both, and prints the table that stands in docs/measurements.md; `--write` puts it there, between its two markers.
On two cores, 64 pages take about half an hour.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from ocria_compress.bundled import mini_folder
from ocria_compress.evaluate.ned import normalized_edit_distance, recovery
from ocria_compress.pages.pageset import PageSet
from ocria_compress.quantize.resources import gigabytes

RECIPES = ("fp8", "fp8-kv")
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "measurements.md"
BEGIN, END = "<!-- measure_mini begins -->", "<!-- measure_mini ends -->"
LIMIT = 512
"""Tokens a page may take; mini's longest page has 280."""


def read_transformers(folder: Path, pages: PageSet) -> dict[str, str]:
    """Greedy transcripts by page id, with transformers in bfloat16, one page at a time."""
    import torch

    from ocria_compress.pages.images import open_page
    from ocria_compress.pages.prompt import Reader

    reader = Reader(folder)
    from transformers import AutoModelForImageTextToText
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.bfloat16, local_files_only=True).eval()
    texts = {}
    for done, page in enumerate(pages, 1):
        batch = reader.encode(open_page(page.image))
        with torch.inference_mode():
            ids = model.generate(**batch, max_new_tokens=LIMIT, do_sample=False)[0, batch["input_ids"].shape[1] :]
        texts[page.id] = reader.tokenizer.decode(ids, skip_special_tokens=True)
        print(f"\r  {done} of {len(pages)} pages", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return texts


def read_vllm(folder: Path, pages: PageSet) -> dict[str, str]:
    """Greedy transcripts by page id, with vLLM."""
    from ocria_compress.pages.prompt import Reader
    from ocria_compress.serving.client import VllmWorker
    from ocria_compress.serving.protocol import PageRequest

    prompt = Reader(folder).prompt_text
    asked = [PageRequest(page.id, str(page.image), prompt, LIMIT) for page in pages]
    with tempfile.TemporaryDirectory() as logs, VllmWorker(folder, log=Path(logs) / "vllm.log") as worker:
        return {result.id: result.text for result in worker.read_pages(asked)}


def distances(texts: dict[str, str], pages: PageSet) -> list[float]:
    """Normalized edit distance of each page, in the set's order."""
    return [normalized_edit_distance(texts[page.id], page.reference or "") for page in pages]


def measure(engines: list[str], pages: PageSet, work: Path) -> list[dict[str, Any]]:
    """One row a model and engine."""
    folders = {"original": mini_folder()}
    for recipe in RECIPES:
        folders[recipe] = work / recipe
        command = [sys.executable, "-m", "ocria_compress", "quantize", "--model", "mini", "--recipe", recipe]
        subprocess.run([*command, "--out", str(folders[recipe])], check=True, stdout=subprocess.DEVNULL)
    rows = []
    for engine in engines:
        original: list[float] = []
        for name, folder in folders.items():
            if engine == "transformers" and name == "fp8-kv":
                continue  # transformers keeps its cache in 16 bits: the scales have no effect there
            print(f"{name} in {engine}", file=sys.stderr)
            started = time.monotonic()
            read = read_transformers if engine == "transformers" else read_vllm
            found = distances(read(folder, pages), pages)
            original = original or found
            size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
            seconds = time.monotonic() - started
            rows.append({"engine": engine, "model": name, "bytes": size, "seconds": seconds} | kept(original, found))
    return rows


def kept(original: list[float], found: list[float]) -> dict[str, Any]:
    """A model's accuracy beside the original's."""
    result = recovery(original, found)
    return {
        "ned": result.compressed,
        "recovery": result.percent,
        "interval": (result.low, result.high),
        "errors": result.error_change_percent,
        "pages": result.pages,
    }


def as_markdown(rows: list[dict[str, Any]], pages: PageSet, command: str) -> str:
    """The table of docs/measurements.md."""
    versions = ", ".join(f"{n} {metadata.version(n)}" for n in ("torch", "transformers", "compressed-tensors"))
    lines = [
        f"`{command}`; {len(pages)} pages of `eval/` (set {pages.sha256[:12]}), greedy; {versions}; 2 CPU cores.",
        "",
        "| engine | model | weights | NED | recovery [95 %] | errors | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        same = row["model"] == "original"
        gain = "" if same else f"{row['recovery']:.2f} % [{row['interval'][0]:.2f}, {row['interval'][1]:.2f}]"
        more = "" if same else f"{row['errors']:+.0f} %"
        lines.append(
            f"| {row['engine']} | {row['model']} | {gigabytes(row['bytes'])} | {row['ned']:.4f} | {gain} | {more} "
            f"| {row['seconds']:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=64, help="how many of the bundled evaluation pages")
    parser.add_argument("--engines", default="transformers,vllm")
    parser.add_argument("--write", action="store_true", help="put the table into docs/measurements.md")
    options = parser.parse_args()
    pages = PageSet.load("eval").take(options.count)
    with tempfile.TemporaryDirectory() as work:
        rows = measure(options.engines.split(","), pages, Path(work))
    command = "python -m tools.measure_mini" + (f" --count {options.count}" if options.count != 64 else "")
    text = as_markdown(rows, pages, command)
    print(text)
    if options.write:
        before, _, rest = DOCUMENT.read_text().partition(BEGIN)
        DOCUMENT.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
