"""The command line of the trainer."""

from __future__ import annotations

import argparse
from pathlib import Path

from ocria_compress.bundled import mini_folder
from tools.mini.packing import Shapes


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of a run."""
    parser = argparse.ArgumentParser(description="Trains mini from scratch, or goes on.")
    parser.add_argument("--out", type=Path, required=True, help="folder for state.pt and log.jsonl")
    parser.add_argument("--base", type=Path, default=mini_folder(), help="folder with tokenizer and chat template")
    parser.add_argument("--source", default="tools.mini.source:make", help="where pages come from: module:function")
    parser.add_argument("--seed", type=int, default=0, help="of the run: another one, other pages")
    parser.add_argument("--seconds", type=float, default=1200, help="of training: the length of the schedule")
    parser.add_argument("--stop-after", type=float, help="end this call after so many seconds, with the state saved")
    parser.add_argument("--workers", type=int, default=14, help="processes that draw pages")
    parser.add_argument("--slots", type=int, default=1024, help="pages in memory")
    parser.add_argument("--muon-rate", type=float, default=4e-3)
    parser.add_argument("--adam-rate", type=float, default=2e-3)
    parser.add_argument("--level-until", type=float, default=0.15, help="share of the time after which pages are whole")
    parser.add_argument("--mtp-from", type=float, default=0.4, help="share of the time after which mtp.* is trained")
    parser.add_argument("--held-out", type=int, default=256, help="pages that are evaluated on")
    parser.add_argument("--evaluate-every", type=float, default=120, help="seconds of training")
    parser.add_argument("--save-every", type=float, default=60, help="seconds")
    group = parser.add_argument_group("shapes (the defaults are halved and halved again with --cpu)")
    group.add_argument("--rows", type=int)
    group.add_argument("--length", type=int, help="tokens in a row, a multiple of 128")
    group.add_argument("--patches", type=int, help="in a batch; 3 for each token by default")
    group.add_argument("--targets", type=int, help="answer tokens in a batch; half of all tokens by default")
    group.add_argument("--pages", type=int, help="in a batch; one for 100 tokens by default")
    group.add_argument("--longest", type=int, default=1600, help="tokens of a page; longer ones are left out")
    group = parser.add_argument_group("how it is computed")
    group.add_argument("--delta-rule", choices=["fla", "torch"], default="fla")
    group.add_argument("--attention", choices=["varlen", "flash", "flex", "pages"], help="try this one first")
    group.add_argument("--eager", action="store_true", help="compile nothing")
    group.add_argument("--cpu", action="store_true", help="on a CPU, in fp32")
    group = parser.add_argument_group("trying it out")
    group.add_argument("--smoke", type=int, default=0, help="time so many steps, profile a few, and stop")
    group.add_argument("--most-steps", type=int, default=0, help="end this call after so many steps")
    group.add_argument("--seconds-per-step", type=float, help="what the schedule counts a step as; default: the time")
    return parser.parse_args(arguments)


def shapes_of(options: argparse.Namespace) -> Shapes:
    """The shapes of the batches."""
    rows = options.rows or (2 if options.cpu else 8)
    length = options.length or (2048 if options.cpu else 8192)
    if length % 128:
        raise SystemExit(f"--length {length} is not a multiple of 128")
    tokens = rows * length
    return Shapes(
        rows=rows,
        length=length,
        patches=-(-(options.patches or 3 * tokens) // 128) * 128,
        targets=options.targets or tokens // 2,
        pages=options.pages or max(8, tokens // 100),
        longest=min(options.longest, length),
        longest_patches=min(4096, 4 * length),
    )
