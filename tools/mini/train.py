"""Trains `mini` from scratch on pages rendered as it goes.

    python -m tools.mini.train --out run --seconds 1100

Needs one GPU of the Hopper class, fla-core 0.6.0 and about 16 cores. `--cpu` runs the same code on a CPU with tiny
batches, to try it out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ocria_compress.bundled import mini_folder
from tools.mini.loader import STAGE_ACCURACY, STAGE_BUCKET, Bucket, Loader, held_out, make_buckets

WARMUP_STEPS = 200
FLAT = 0.3
"""The share of the time at the peak learning rate; then it falls in a straight line to 0."""

EVERY = 25
"""Steps between two lines of the log."""


@dataclass
class Tally:
    """Sums over the batches of one kind since the last line of the log."""

    loss: Any = 0.0
    tokens: int = 0
    hits: Any = 0.0
    batches: int = 0


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    pages: int = 0
    tokens: int = 0
    waited: float = 0.0
    tallies: dict[str, Tally] = field(default_factory=dict)
    accuracy: dict[str, float] = field(default_factory=dict)
    logged: tuple[float, int, int] = (0.0, 0, 0)


class Trainer:
    """One run.

    Args:
        options: the command line.
        buckets: what pages there are.
        loader: where they come from.
        held: held-out batches.
    """

    def __init__(self, options: argparse.Namespace, buckets: dict[str, Bucket], loader: Loader, held: list) -> None:
        import torch

        from tools.mini.model import Net
        from tools.mini.optimizer import Optimizer

        self.options, self.buckets, self.loader, self.held = options, buckets, loader, held
        self.device = "cpu" if options.cpu else "cuda"
        torch.manual_seed(0)
        self.dtype = torch.float32 if options.cpu else torch.bfloat16
        self.net = Net(options.base, self.dtype, self._prepare()).to(self.device)
        self.optimizer = Optimizer(self.net.named_parameters(), options.muon_rate, options.adam_rate, self.dtype)
        self.progress = Progress()
        self.log_file: IO[str] = (options.out / "log.jsonl").open("a", encoding="utf-8")

    def _prepare(self) -> Any:
        """Sets torch up and returns the delta rule."""
        import torch

        from tools.mini import delta_rule, pieces

        if self.options.cpu:
            torch.set_num_threads(2)
            return None
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        if not self.options.eager:
            pieces.compile_pieces()
        if self.options.delta_rule == "fla":
            return delta_rule.fla_delta_rule(compiled=not self.options.eager)
        return torch.compile(delta_rule.plain_delta_rule, dynamic=True)

    def run(self) -> None:
        """Trains until the time is up, logging, evaluating and saving on the way."""
        self.loader.start(pin=not self.options.cpu)
        self.began = evaluated = saved = time.time()
        self.progress.logged = (self.began, 0, 0)
        while (share := (time.time() - self.began) / self.options.seconds) < 1:
            self._step(share)
            if self.progress.step % (5 if self.options.cpu else EVERY) == 0:
                self._log_progress()
                self._advance_stage()
            if time.time() - evaluated > self.options.evaluate_every:
                self._log_evaluation("eval")
                evaluated = time.time()
            if time.time() - saved > self.options.save_every:
                self.save()
                saved = time.time()
        self._log_evaluation("final_eval")
        self.save()

    def _step(self, share: float) -> None:
        from tools.mini.augment import augment

        asked = time.time()
        name, *batch = self.loader.ready.get()
        progress = self.progress
        progress.waited += time.time() - asked
        pixels, ids, lengths = (tensor.to(self.device, non_blocking=True) for tensor in batch)
        warm = min(1, (progress.step + 1) / WARMUP_STEPS)
        scale = warm * (1 if share < FLAT else max(0.01, (1 - share) / (1 - FLAT)))
        loss, tokens, hits = self.net.loss(augment(pixels, self.dtype), ids, lengths)
        (loss / tokens).backward()
        self.optimizer.step(scale)
        tally = progress.tallies.setdefault("P" if name.startswith("P") else name, Tally())
        tally.loss, tally.hits = tally.loss + loss.detach(), tally.hits + hits  # stays on the GPU: no wait
        tally.tokens += tokens
        tally.batches += 1
        progress.step += 1
        progress.pages += len(ids)
        progress.tokens += tokens

    def _log_progress(self) -> None:
        progress, now = self.progress, time.time()
        then, pages, tokens = progress.logged
        line: dict[str, Any] = {
            "step": progress.step,
            "t": round(now - self.began, 1),
            "stage": self.loader.stage,
            "wait": round(progress.waited / (now - then), 2),
            "pages_per_s": round((progress.pages - pages) / (now - then)),
            "tokens_per_s": round((progress.tokens - tokens) / (now - then)),
        }
        for kind, tally in progress.tallies.items():
            accuracy = float(tally.hits) / tally.tokens
            line[kind] = [round(float(tally.loss) / tally.tokens, 4), round(accuracy, 4), tally.batches]
            progress.accuracy[kind] = 0.5 * progress.accuracy.get(kind, accuracy) + 0.5 * accuracy
        progress.tallies = {}
        progress.waited, progress.logged = 0.0, (now, progress.pages, progress.tokens)
        self._log(line)

    def _advance_stage(self) -> None:
        stage = self.loader.stage
        if stage == len(STAGE_ACCURACY):
            return
        learned = self.progress.accuracy.get(STAGE_BUCKET[stage], 0) > STAGE_ACCURACY[stage]
        if learned or (time.time() - self.began) / self.options.seconds > self.options.stage_ends[stage]:
            self.loader.stage = stage + 1

    def _log_evaluation(self, name: str) -> None:
        from tools.mini.augment import normalized

        loss, tokens, hits = 0.0, 0, 0
        for pixels, ids, lengths in self.held:
            # Gradients stay on: without them every piece would be compiled a second time.
            pixels = normalized(pixels.to(self.device).float(), self.dtype)
            batch = self.net.loss(pixels, ids.to(self.device), lengths.to(self.device))
            loss, tokens, hits = loss + batch[0].item(), tokens + batch[1], hits + int(batch[2])
        line: dict[str, Any] = {"step": self.progress.step, "t": round(time.time() - self.began, 1)}
        line |= {f"{name}_loss": round(loss / tokens, 4), f"{name}_accuracy": round(hits / tokens, 5)}
        self._log(line | {"pages": self.progress.pages, "tokens": self.progress.tokens})

    def _log(self, line: dict[str, Any]) -> None:
        text = json.dumps(line)
        print(text, flush=True)
        self.log_file.write(text + "\n")
        self.log_file.flush()

    def save(self) -> None:
        """Writes the fp32 parameters to `state.pt`, whole or not at all."""
        import torch

        self.net.sync()
        state = {k: v.detach().cpu() for k, v in self.net.hf.state_dict().items() if k != "lm_head.weight"}
        torch.save(state, self.options.out / "state.tmp")
        (self.options.out / "state.tmp").replace(self.options.out / "state.pt")


def time_buckets(trainer: Trainer) -> Iterator[str]:
    """Times one step of each bucket in turn, twice; the first round compiles."""
    import torch

    trainer.loader.start(pin=not trainer.options.cpu)
    trainer.began = time.time()
    for turn in range(2 * len(trainer.buckets)):
        began = time.time()
        trainer._step(0.0)
        if not trainer.options.cpu:
            torch.cuda.synchronize()
        yield f"round {turn // len(trainer.buckets)}: {1e3 * (time.time() - began):.0f} ms"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Trains mini from scratch.")
    parser.add_argument("--out", type=Path, required=True, help="folder for state.pt and log.jsonl")
    parser.add_argument("--base", type=Path, default=mini_folder(), help="folder with the tokenizer")
    parser.add_argument("--seconds", type=float, default=1100, help="of training, compilation included")
    parser.add_argument("--workers", type=int, default=14, help="processes that render pages")
    parser.add_argument("--muon-rate", type=float, default=4e-3)
    parser.add_argument("--adam-rate", type=float, default=2e-3)
    parser.add_argument("--batch-scale", type=float, default=1.0)
    parser.add_argument("--stage-ends", type=float, nargs=3, default=[0.10, 0.20, 0.30], help="as shares of the time")
    parser.add_argument("--evaluate-every", type=float, default=75, help="seconds")
    parser.add_argument("--save-every", type=float, default=140, help="seconds")
    parser.add_argument("--delta-rule", choices=["fla", "torch"], default="fla")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument("--cpu", action="store_true", help="tiny batches on a CPU")
    parser.add_argument("--time-buckets", action="store_true", help="time a step of each page size, then stop")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    buckets = make_buckets(options.batch_scale, tiny=options.cpu)
    # Workers are forked before torch is loaded, so that they stay small and never touch the GPU.
    loader = Loader(options.workers, buckets, options.base, cycle=options.time_buckets)
    try:
        trainer = Trainer(options, buckets, loader, held_out(buckets, options.base, 7 if options.cpu else 140))
        if options.time_buckets:
            for line in time_buckets(trainer):
                print(line, flush=True)
        else:
            trainer.run()
    finally:
        loader.stop()


if __name__ == "__main__":
    main()
    # The loader's thread and queues wait for workers that are gone by now; the results are on disk.
    os._exit(0)
