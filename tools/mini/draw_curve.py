"""Draws a training run: python -m tools.mini.draw_curve run/log.jsonl --out docs/mini-training.png

Four panels over minutes of training: the loss; the multi-token-prediction layer's; the learning rate and the
curriculum; tokens a second. Held-out figures are dots; a normalized edit distance is drawn where the log has one
(`held_out_ned` in a line). Of lines that a resumed run wrote again, the later ones count. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError

INK, GREY, TRAINING, HELD_OUT, SECOND = "#222222", "#8a8a8a", "#2f6db3", "#c8501e", "#3f8f5f"


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, in the order of their steps.

    A run that was killed goes on from its last saved state: lines of the steps that were lost are left out.

    Raises:
        OcriaError: no such file; a line that is not an object with `step` and `seconds`; no line of training.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OcriaError(f"this log cannot be read: {error}", where=str(path)) from error
    lines: list[dict[str, Any]] = []
    for number, part in enumerate(text.split("\n"), 1):
        if not part.strip():
            continue
        try:
            line = json.loads(part)
            step, _ = int(line["step"]), float(line["seconds"])
        except (ValueError, TypeError, KeyError) as error:
            raise OcriaError("this line is not one of a training log", where=f"{path}, line {number}") from error
        while lines and (lines[-1]["step"] > step or (lines[-1]["step"] == step and _kind(lines[-1]) == _kind(line))):
            lines.pop()
        lines.append(line)
    if not any("loss" in line for line in lines):
        raise OcriaError("this log has no line of training", where=str(path), fix="give the log.jsonl of a run")
    return lines


def _kind(line: dict[str, Any]) -> str:
    return str(line.get("evaluation", "training"))


def series(lines: list[dict[str, Any]], *names: str) -> tuple[list[float], list[float]]:
    """Minutes and values of the lines that have one of these names."""
    points = [(line["seconds"] / 60, line[name]) for line in lines for name in names if line.get(name) is not None]
    return [minutes for minutes, _ in points], [value for _, value in points]


def draw(lines: list[dict[str, Any]], out: Path) -> None:
    """Writes the PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    settings: Any = {"font.size": 9, "axes.edgecolor": GREY, "axes.labelcolor": INK}
    settings |= {"xtick.color": GREY, "ytick.color": GREY}
    with plt.rc_context(settings):
        figure, panels = plt.subplots(2, 2, figsize=(10, 6.2), sharex=True, layout="constrained")
        (loss, mtp), (rate, speed) = panels
        _losses(loss, lines, "loss", "Loss, nats a token")
        _errors(loss, lines)
        _losses(mtp, lines, "mtp_loss", "Loss of the multi-token-prediction layer")
        _rates(rate, lines)
        speed.plot(*series(lines, "tokens_per_s"), color=TRAINING, lw=1.2)
        speed.set_ylim(bottom=0)
        speed.set_title("Tokens a second, image tokens included", loc="left", color=INK, fontsize=10)
        speed.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        for panel in panels.flat:
            panel.grid(color="#e6e6e6", lw=0.6)
            panel.set_axisbelow(True)
            panel.spines[["top", "right"]].set_visible(False)
        for panel in panels[1]:
            panel.set_xlabel("minutes of training")
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=110)
        plt.close(figure)


def _losses(panel: Any, lines: list[dict[str, Any]], name: str, title: str) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    panel.set_title(title, loc="left", color=INK, fontsize=10)
    minutes, values = series(lines, name)
    if not values:
        panel.text(0.5, 0.5, "not trained yet", transform=panel.transAxes, ha="center", color=GREY)
        return
    panel.plot(minutes, values, color=TRAINING, lw=1.2, label="training")
    first = next(number for number, line in enumerate(lines) if line.get(name) is not None)
    # What an untrained layer guesses on held-out pages says nothing.
    held = series(lines[first:] if name == "mtp_loss" else lines, f"held_out_{name}", f"final_{name}")
    panel.plot(*held, "o", color=HELD_OUT, ms=4, label="held-out pages")
    everything = [value for value in (*values, *held[1]) if value > 0]
    if max(everything) > 3 * min(everything):
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.legend(frameon=False, loc="upper right")


def _errors(panel: Any, lines: list[dict[str, Any]]) -> None:
    """The edit distance of held-out pages, on an axis of its own, where it was logged."""
    minutes, values = series(lines, "held_out_ned", "final_ned")
    if values:
        other = panel.twinx()
        other.plot(minutes, values, "s-", color=SECOND, ms=4, lw=0.8)
        other.set_ylim(bottom=0)
        other.set_ylabel("normalized edit distance, held-out pages", color=SECOND)
        other.spines["top"].set_visible(False)


def _rates(panel: Any, lines: list[dict[str, Any]]) -> None:
    for name, color, label in (("rate", TRAINING, "learning rate, share of its peak"), ("level", SECOND, "curriculum")):
        panel.plot(*series(lines, name), color=color, lw=1.2, label=label)
    panel.set_ylim(0, 1.05)
    panel.set_title("Schedule", loc="left", color=INK, fontsize=10)
    panel.legend(frameon=False, loc="lower center")


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Draws the curves of a training run.")
    parser.add_argument("log", type=Path, help="the log.jsonl of a run")
    parser.add_argument("--out", type=Path, required=True, help="a PNG")
    options = parser.parse_args(arguments)
    try:
        draw(read_log(options.log), options.out)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
