"""Makes the bundled page sets, and the whole held-out benchmark again.

    python -m tools.make_page_sets calibration --out calibration
    python -m tools.make_page_sets freeze --out eval --base base # chooses the benchmark's pages and hashes them: once
    python -m tools.make_page_sets bundle --out eval             # writes the first of them as a page set
    python -m tools.make_page_sets benchmark --out held-out      # all of them, compared with the hashes

`freeze` writes `eval/benchmark.json` (settings, quotas and counts) and `eval/benchmark.jsonl` (one line a page: what it
shows, and the SHA-256 of its reference and of its pixels). Both were committed before `mini` was trained.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset_write import write_page_set
from ocria_compress.pages.synth.generate import VERSION, Stratum, SynthPage, sample
from ocria_compress.pages.synth.write import encode, records

COUNT = 500
BUNDLED = 200
CALIBRATION = 32
TOKENS = (60, 400)
"""Tokens of a benchmark page's reference."""

WANTED: tuple[tuple[Stratum, int], ...] = (("spans", 30), ("columns", 20), ("formulas", 15))
"""Of every 100 pages so many are asked to show this; the rest shows what it happens to."""
SCANS, LANGUAGES = 30, 20
QUOTAS = {"spans": 0.25, "columns": 0.15, "formulas": 0.10, "scans": 0.20, "languages": 0.10}
"""The shares that the benchmark must have at least."""


def wanted(number: int) -> frozenset[Stratum]:
    """What benchmark page `number` is asked to show: fixed shares in every block of 100, in a fixed shuffle."""
    block, place = divmod(number, 100)
    rng = Random(f"benchmark/{block}")
    kinds: list[Stratum | None] = [stratum for stratum, share in WANTED for _ in range(share)]
    kinds += [None] * (100 - len(kinds))
    rng.shuffle(kinds)
    scans = [i < SCANS for i in range(100)]
    rng.shuffle(scans)
    foreign = [i < LANGUAGES for i in range(100)]
    rng.shuffle(foreign)
    chosen: set[Stratum] = set()
    kind = kinds[place]
    if kind is not None:
        chosen.add(kind)
    if scans[place]:
        chosen.add("scans")
    if foreign[place]:
        chosen.add("languages")
    return frozenset(chosen)


def benchmark_page(number: int, tokenizer: Any) -> tuple[SynthPage, int, int]:
    """Benchmark page `number`: the first of its seeds whose reference has 60 to 400 tokens.

    Returns:
        The page, its tokens and its seed.
    """
    for attempt in range(100):
        seed = 1000 * number + attempt
        page = sample(seed, "benchmark", want=wanted(number))
        tokens = len(tokenizer.encode(page.reference).ids)
        if TOKENS[0] <= tokens <= TOKENS[1]:
            return page, tokens, seed
    raise AssertionError(f"no page of {TOKENS} tokens for number {number}")


def line_of(number: int, page: SynthPage, tokens: int, seed: int) -> dict[str, Any]:
    """The frozen record of a benchmark page."""
    return {
        "number": number,
        "seed": seed,
        "want": sorted(wanted(number)),
        "strata": page.meta["strata"],
        "language": page.meta["language"],
        "template": page.meta["template"],
        "tokens": tokens,
        "size": list(page.image.size),
        "reference_sha256": hashlib.sha256(page.reference.encode()).hexdigest(),
        "pixels_sha256": hashlib.sha256(page.image.tobytes()).hexdigest(),
    }


def freeze(out: Path, base: Path) -> None:
    """Chooses the benchmark's pages (`base`'s tokenizer tells their lengths); writes their records and the settings."""
    from tokenizers import Tokenizer

    lines_file, settings_file = out / "benchmark.jsonl", out / "benchmark.json"
    if lines_file.exists():
        raise OcriaError(
            "the benchmark is frozen already", where=str(lines_file), fix="pages are not exchanged after training"
        )
    tokenizer_file = base / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    lines = []
    for number in _counted(COUNT):
        page, tokens, seed = benchmark_page(number, tokenizer)
        lines.append(line_of(number, page, tokens, seed))
    texts = [json.dumps(line, sort_keys=True) for line in lines]
    shares = {name: sum(name in line["strata"] for line in lines) / COUNT for name in QUOTAS}
    for name, least in QUOTAS.items():
        assert shares[name] >= least, f"{name}: {shares[name]:.1%} of the pages, {least:.0%} are due"
    settings = {
        "generator": VERSION,
        "count": COUNT,
        "bundled": BUNDLED,
        "tokens": list(TOKENS),
        "tokenizer_sha256": hashlib.sha256(tokenizer_file.read_bytes()).hexdigest(),
        "wanted_of_100": {**dict(WANTED), "scans": SCANS, "languages": LANGUAGES},
        "quotas_at_least": QUOTAS,
        "shares": {name: round(share, 3) for name, share in shares.items()},
        "languages": dict(sorted(Counter(line["language"] for line in lines).items())),
        "templates": dict(sorted(Counter(line["template"] for line in lines).items())),
        "mean_tokens": round(sum(line["tokens"] for line in lines) / COUNT, 1),
        "pages_sha256": hashlib.sha256("\n".join(texts).encode()).hexdigest(),
    }
    lines_file.write_text("\n".join(texts) + "\n", "utf-8")
    settings_file.write_text(json.dumps(settings, indent=1) + "\n", "utf-8")
    print(json.dumps(settings, indent=1))


def frozen(folder: Path) -> list[dict[str, Any]]:
    """The frozen records.

    Raises:
        OcriaError: they are not those that `benchmark.json` names.
    """
    text = (folder / "benchmark.jsonl").read_text("utf-8").rstrip("\n")
    settings = json.loads((folder / "benchmark.json").read_text("utf-8"))
    if hashlib.sha256(text.encode()).hexdigest() != settings["pages_sha256"]:
        raise OcriaError("the benchmark's records are not the frozen ones", where=str(folder / "benchmark.jsonl"))
    return [json.loads(line) for line in text.split("\n")]


def frozen_pages(folder: Path, count: int) -> Iterator[tuple[dict[str, Any], SynthPage]]:
    """The first `count` benchmark pages, made again; a different reference is an error, different pixels are told.

    Raises:
        OcriaError: a reference is not the frozen one (another generator).
    """
    other = 0
    for _, line in zip(_counted(count), frozen(folder), strict=False):
        page = sample(line["seed"], "benchmark", want=frozenset(line["want"]))
        again = line_of(line["number"], page, line["tokens"], line["seed"])
        if again["reference_sha256"] != line["reference_sha256"]:
            raise OcriaError(
                f"benchmark page {line['number']} has another reference now",
                where=f"seed {line['seed']}",
                fix=f"use the generator that made it: {VERSION} of the commit that froze the benchmark",
            )
        other += again["pixels_sha256"] != line["pixels_sha256"]
        page.meta["tokens"] = line["tokens"]
        yield line, page
    if other:
        print(f"{other} of {count} pages have other pixels than when frozen (another Pillow or FreeType)")


def write_benchmark(frozen_in: Path, out: Path, count: int) -> None:
    """Writes the first `count` benchmark pages as a page set; in the records' folder, in place of the one there."""
    pages = (encode(page) for _, page in frozen_pages(frozen_in, count))
    if out.resolve() != frozen_in.resolve():
        write_page_set(out, records(pages, "benchmark"))
        return
    with tempfile.TemporaryDirectory(dir=out.parent) as beside:
        made = Path(beside) / "set"
        write_page_set(made, records(pages, "benchmark"))
        for old in out.iterdir():
            if old.name not in ("README.md", "benchmark.json", "benchmark.jsonl"):
                old.unlink()
        for file in made.iterdir():
            file.replace(out / file.name)


def write_calibration(out: Path) -> None:
    """Writes the calibration pages."""
    pages = (encode(sample(seed, "calibration")) for seed in _counted(CALIBRATION))
    write_page_set(out, records(pages, "calibration"))


def _counted(count: int) -> Iterator[int]:
    """0, 1, ... with a line that counts and says how long it will take."""
    begin = time.monotonic()
    for i in range(count):
        yield i
        left = (time.monotonic() - begin) / (i + 1) * (count - i - 1)
        print(f"\r{i + 1} of {count} pages, {left:.0f} s left   ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the bundled page sets.")
    parser.add_argument("what", choices=["calibration", "freeze", "bundle", "benchmark"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--frozen", type=Path, default=Path("eval"), help="folder of benchmark.json")
    parser.add_argument("--base", type=Path, help="of `freeze`: folder of the tokenizer that counts tokens")
    parser.add_argument("--count", type=int, default=COUNT, help="of `benchmark`: how many of the pages")
    options = parser.parse_args()
    try:
        if options.what == "calibration":
            write_calibration(options.out)
        elif options.what == "freeze":
            if options.base is None:
                parser.error("freeze needs --base")
            freeze(options.out, options.base)
        elif options.what == "bundle":
            write_benchmark(options.frozen, options.out, BUNDLED)
        else:
            write_benchmark(options.frozen, options.out, options.count)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
