"""Trains `mini` from scratch on pages drawn as it goes.

    python -m tools.train_mini --out run --seconds 1200 --stop-after 540

The same command goes on from `run/state.pt`. Needs one GPU of the Hopper class, fla-core 0.6.0 and about 16 cores;
`--cpu` runs the same code on a CPU with small batches, to try it out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from tools.mini import pieces
from tools.mini.augment import changed, draw, normalized
from tools.mini.checkpoint import Saver, load
from tools.mini.delta_rule import plain_delta_rule
from tools.mini.feed import Batch, Feed, inputs_of, on_device
from tools.mini.loader import Loader, held_out
from tools.mini.model import Losses, Net
from tools.mini.optimizer import Optimizer
from tools.mini.packing import Counts, Shapes
from tools.mini.schedule import MTP_WARMUP_STEPS, Clock, level, rate
from tools.mini.setup import choose_ways, prepare_torch
from tools.mini.workers import LoaderError, Workers

EVERY = 25
"""Steps between two lines of the log."""

Mark = Callable[[str], None]


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    mtp_steps: int = 0
    pages: int = 0
    tokens: int = 0
    targets: int = 0
    clock: float = 0.0
    evaluated: float = 0.0


@dataclass
class Tally:
    """Sums since the last line of the log; those on the device are summed there, without waiting for it."""

    sums: Tensor
    counts: Counts = field(default_factory=Counts)
    mtp_targets: int = 0
    steps: int = 0
    began: float = 0.0


class Trainer:
    """One run.

    Args:
        options: the command line.
        shapes: of the batches.
        loader: where they come from.
        held: held-out batches.
    """

    def __init__(self, options: argparse.Namespace, shapes: Shapes, loader: Loader, held: list) -> None:
        self.options, self.shapes, self.loader = options, shapes, loader
        self.device = "cpu" if options.cpu else "cuda"
        self.dtype = torch.float32 if options.cpu else torch.bfloat16
        prepare_torch(self.device)
        torch.manual_seed(options.seed)
        rule, attention = choose_ways(self.device, self.dtype, options.eager, options.delta_rule, options.attention)
        self.net = Net(
            options.base, shapes.length, shapes.longest, shapes.longest_patches, self.dtype, rule, attention
        ).to(self.device)
        named = dict(self.net.named_parameters())
        rates = (options.muon_rate, options.adam_rate, self.dtype)
        trunk = {name: p for name, p in named.items() if not name.startswith("mtp.")}
        mtp = {name: p for name, p in named.items() if name.startswith("mtp.")}
        self.optimizer, self.mtp_optimizer = Optimizer(trunk.items(), *rates), Optimizer(mtp.items(), *rates)
        self.held = [(on_device(arrays, self.device), counts) for arrays, counts in held]
        self.progress, self.clock = Progress(), Clock(per_step=options.seconds_per_step)
        self.loader_state: dict[str, Any] | None = None
        self.stopping = ""
        self.saver = Saver(options.out / "state.pt")
        self.feed = Feed(loader, self.device)
        self.tally = Tally(torch.zeros(4, device=self.device))
        self._before: Any = None

    # -- the state

    def state(self) -> dict[str, Any]:
        """Everything that a run goes on from; tensors, numbers, texts and containers only."""
        self.progress.clock = self.clock.seconds
        return {
            "parameters": {name: p.detach() for name, p in self.net.named_parameters()},
            "optimizer": self.optimizer.state_dict(),
            "mtp_optimizer": self.mtp_optimizer.state_dict(),
            "progress": asdict(self.progress),
            "loader": self.loader_state,
            "seed": self.options.seed,
        }

    @torch.no_grad()
    def resume(self) -> None:
        """Goes on from `state.pt`, if there is one."""
        state = load(self.options.out / "state.pt")
        if state is None:
            return
        for name, parameter in self.net.named_parameters():
            parameter.copy_(state["parameters"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.mtp_optimizer.load_state_dict(state["mtp_optimizer"])
        self.progress = Progress(**state["progress"])
        self.clock.seconds = self.progress.clock
        self.loader_state = state["loader"]
        print(f"going on from step {self.progress.step}, {self.progress.clock:.0f} s of training", flush=True)

    # -- a step

    @property
    def share(self) -> float:
        """Of the schedule's seconds that has passed."""
        return self.clock.seconds / self.options.seconds

    def losses(self, tensors: dict[str, Tensor], mtp: bool, seed: int | None) -> Losses:
        """Of a batch on the device; `seed`: of the changes to its pages (None: as they are)."""
        patches = tensors["patches"]
        if seed is None:
            pixels = normalized(patches, self.dtype)
        else:
            changes = draw(tensors["patch_bounds"], *patches.shape, self.dtype, seed)
            pixels = changed(patches, changes, self.dtype)
        return self.net.losses(inputs_of(tensors, pixels), mtp)

    def train_on(
        self, tensors: dict[str, Tensor], counts: Counts, scale: float, mtp: bool, seed: int, mark: Mark
    ) -> Losses:
        """Forward, backward and both optimizers at `scale` times the peak learning rates."""
        found = self.losses(tensors, mtp, seed)
        total = found.loss / max(1, counts.targets)
        if found.mtp_loss is not None:
            total = total + found.mtp_loss / max(1, counts.next_targets)
        mark("forward")
        total.backward()
        mark("backward")
        self.optimizer.step(scale)
        if mtp:
            self.mtp_optimizer.step(scale * min(1.0, (self.progress.mtp_steps + 1) / MTP_WARMUP_STEPS))
        mark("optimizer")
        return found

    def step(self, mark: Mark = lambda name: None) -> None:
        """One step of the run."""
        self.clock.tick()
        batch: Batch = self.feed.next()
        mark("data")
        share, progress = self.share, self.progress
        mtp = share >= self.options.mtp_from
        self.loader.level = level(share, self.options.level_until)
        seed = self.options.seed * 1_000_003 + progress.step
        found = self.train_on(batch.tensors, batch.counts, rate(progress.step, share), mtp, seed, mark)
        progress.step += 1
        progress.mtp_steps += mtp
        self._count(batch.counts, found)
        self.loader_state = batch.state
        self._wait_for_the_step_before()
        self.feed.ahead()

    def _wait_for_the_step_before(self) -> None:
        """Keeps the host at most one step ahead, so that a wait for pages is one that the GPU feels."""
        if self.device == "cpu":
            return
        if self._before is not None:
            self._before.synchronize()
        self._before = torch.cuda.Event()
        self._before.record()

    def _count(self, counts: Counts, found: Losses) -> None:
        tally, progress = self.tally, self.progress
        sums = [found.loss.detach(), found.hits.float()]
        if found.mtp_loss is not None and found.mtp_hits is not None:
            sums += [found.mtp_loss.detach(), found.mtp_hits.float()]
            tally.mtp_targets += counts.next_targets
        tally.sums[: len(sums)] += torch.stack(sums)
        for name in ("pages", "tokens", "targets"):
            setattr(tally.counts, name, getattr(tally.counts, name) + getattr(counts, name))
            setattr(progress, name, getattr(progress, name) + getattr(counts, name))
        tally.steps += 1

    # -- before the first step

    def warm_up(self) -> None:
        """Compiles everything on a held-out batch and takes back whatever that has changed.

        Where compiling fails, the pieces run as they are; where the delta rule's kernel fails, plain torch replaces it.
        """
        began = time.perf_counter()
        saved = [p.detach().clone() for p in self.net.parameters()]
        ways: list[Callable[[], None]] = [lambda: None, self._eager, self._plain]
        for number, change in enumerate(ways):
            change()
            try:
                self._try_out()
                break
            except Exception as error:
                if number == len(ways) - 1:
                    raise
                print(f"warm-up: {type(error).__name__}: {str(error)[:1500]}", flush=True)
                self.net.zero_grad(set_to_none=True)
        with torch.no_grad():
            for parameter, tensor in zip(self.net.parameters(), saved, strict=True):
                parameter.copy_(tensor)
        self.optimizer.forget()
        self.mtp_optimizer.forget()
        if self.device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        print(f"warm-up: {time.perf_counter() - began:.1f} s", flush=True)

    def _try_out(self) -> None:
        tensors, counts = self.held[0]
        for turn, mtp in enumerate((True, False, True)):
            began = time.perf_counter()
            found = self.train_on(tensors, counts, 0.0, mtp, 0, lambda name: None)
            loss = found.loss.item() / max(1, counts.targets)
            print(f"warm-up step {turn}: {time.perf_counter() - began:.1f} s, loss {loss:.3f}", flush=True)

    def _eager(self) -> None:
        print("warm-up: again, without compiling", flush=True)
        pieces.do_not_compile()
        if self.net.delta_rule is not plain_delta_rule:
            from tools.mini.delta_rule import fla_delta_rule

            self.net.delta_rule = fla_delta_rule(compiled=False)

    def _plain(self) -> None:
        print("warm-up: again, with the plain delta rule", flush=True)
        self.net.delta_rule = plain_delta_rule

    # -- the run

    def run(self) -> None:
        """Trains until the schedule is over or the call has to stop, logging, evaluating and saving on the way."""
        began = time.monotonic()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(ValueError):  # not in the main thread
                signal.signal(number, self._stop)
        self.begin()
        try:
            self._loop()
        except LoaderError as error:
            self.stopping = f"no more pages: {error}"
        self.clock.pause()
        if self.tally.steps:
            self.report()
        self.evaluate("held_out" if self.stopping else "final")
        self.saver.save(self.state(), wait=True)
        print(f"ended: {self.stopping or 'the schedule is over'}; {time.monotonic() - began:.0f} s", flush=True)

    def _loop(self) -> None:
        options, saved, first = self.options, time.monotonic(), self.progress.step
        while self.share < 1 and not self.stopping:
            self.step()
            if self.progress.step % EVERY == 0:
                self.report()
            now = time.monotonic()
            if self.clock.seconds - self.progress.evaluated > options.evaluate_every:
                self.evaluate("held_out")
            if now - saved > options.save_every:
                self.clock.pause()
                self.saver.save(self.state())
                saved = now
            if options.stop_after and now - options.started > options.stop_after:
                self.stopping = f"{options.stop_after:.0f} s are over"
            if options.most_steps and self.progress.step - first >= options.most_steps:
                self.stopping = f"{options.most_steps} steps are done"

    def begin(self) -> None:
        """Compiles, takes a saved state over and starts the loader."""
        self.warm_up()
        self.resume()
        self.loader.level = level(self.share, self.options.level_until)
        self.loader.start(self.device == "cuda", self.loader_state)
        self.tally.began = time.perf_counter()

    def _stop(self, number: int, frame: Any) -> None:
        self.stopping = f"signal {number}"

    def report(self) -> None:
        """Writes a line about the steps since the last one."""
        tally, progress, now = self.tally, self.progress, time.perf_counter()
        loss, hits, mtp_loss, mtp_hits = tally.sums.tolist()
        seconds, targets = now - tally.began, max(1, tally.counts.targets)
        line: dict[str, Any] = {
            "step": progress.step,
            "seconds": round(self.clock.seconds, 1),
            "loss": round(loss / targets, 4),
            "accuracy": round(hits / targets, 4),
            "rate": round(rate(progress.step, self.share), 4),
            "level": round(self.loader.level, 3),
            "pages_per_s": round(tally.counts.pages / seconds),
            "tokens_per_s": round(tally.counts.tokens / seconds),
            "targets_per_s": round(tally.counts.targets / seconds),
            "ms": round(1e3 * seconds / max(1, tally.steps), 1),
            "fill": round(tally.counts.tokens / (self.shapes.tokens * max(1, tally.steps)), 3),
            "wait": round(self.feed.waited / seconds, 3),
        }
        if tally.mtp_targets:
            line["mtp_loss"] = round(mtp_loss / tally.mtp_targets, 4)
            line["mtp_accuracy"] = round(mtp_hits / tally.mtp_targets, 4)
        line["skipped"] = int(self.optimizer.skipped)
        line["left_out"] = dict(self.loader.workers.failures)
        if self.device == "cuda":
            line["gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)
        self.log(line)
        self.feed.waited = 0.0
        self.tally = Tally(torch.zeros(4, device=self.device), began=time.perf_counter())

    def evaluate(self, name: str) -> None:
        """Teacher-forced loss and accuracy on the held-out pages, of the multi-token-prediction layer too."""
        if self.tally.steps:
            self.tally.sums.sum().item()  # the steps on their way belong to the clock
        self.clock.pause()
        began, sums, totals = time.perf_counter(), [0.0] * 4, Counts()
        for tensors, counts in self.held:
            # Gradients stay on: without them every piece would be compiled a second time.
            found = self.losses(tensors, True, None)
            sums = [a + float(b.detach()) for a, b in zip(sums, found, strict=True)]
            totals.targets, totals.next_targets = (
                totals.targets + counts.targets,
                totals.next_targets + counts.next_targets,
            )
            totals.pages += counts.pages
        targets, ahead = max(1, totals.targets), max(1, totals.next_targets)
        self.log({
            "step": self.progress.step, "seconds": round(self.clock.seconds, 1), "evaluation": name,
            f"{name}_loss": round(sums[0] / targets, 4), f"{name}_accuracy": round(sums[1] / targets, 5),
            f"{name}_mtp_loss": round(sums[2] / ahead, 4), f"{name}_mtp_accuracy": round(sums[3] / ahead, 5),
            "held_out_pages": totals.pages, "pages": self.progress.pages, "targets": self.progress.targets,
        })  # fmt: skip
        self.progress.evaluated = self.clock.seconds
        self.tally.began += time.perf_counter() - began

    def log(self, line: dict[str, Any]) -> None:
        """Prints a line and appends it to log.jsonl."""
        text = json.dumps(line)
        print(text, flush=True)
        with (self.options.out / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    from tools.mini.options import parse, shapes_of
    from tools.mini.smoke import smoke

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    options = parse(arguments)
    options.started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    shapes = shapes_of(options)
    # Workers are forked before CUDA is touched and before any thread is started.
    workers = Workers(options.source, options.base, shapes, options.workers, options.slots)
    loader = Loader(workers, shapes, options.seed)
    try:
        held = held_out(workers, shapes, options.held_out)
        if not held:
            raise SystemExit(f"not one held-out page could be made: {dict(workers.failures)}")
        print(f"{sum(c.pages for _, c in held)} held-out pages in {len(held)} batches", flush=True)
        trainer = Trainer(options, shapes, loader, held)
        if options.smoke:
            smoke(trainer, options.smoke)
        else:
            trainer.run()
    finally:
        loader.stop()
