"""`ocria-compress verify`: proves a checkpoint against its source, on disk and in vLLM."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ocria_compress.bundle.verify.report import Check, Report

_SHOWN = 8
"""Items printed under a check."""

_EXCERPT = 330
"""Characters of a reading that are printed."""


def verify(
    checkpoint: Annotated[Path, typer.Argument(help="The folder to prove.")],
    source: Annotated[
        str | None, typer.Option("--source", help="What it was made from: mini, a folder, or a hub id in the cache.")
    ] = None,
    static: Annotated[bool, typer.Option("--static", help="Leave vLLM out.")] = False,
    vllm_python: Annotated[Path | None, typer.Option("--vllm-python", help="The Python that has vLLM.")] = None,
    pages: Annotated[
        str, typer.Option("--pages", help="The page set that is read: its folder, or eval or calibration (bundled).")
    ] = "eval",
    count: Annotated[int, typer.Option("--count", min=1, help="How many of its pages are read.")] = 3,
    allow_not_run: Annotated[
        list[str] | None, typer.Option("--allow-not-run", metavar="CHECK", help="A check that may be left not run.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Prove a checkpoint: files, names, scales, every byte against its source; then its reading of pages in vLLM."""
    from ocria_compress.bundle.verify.run import Options
    from ocria_compress.bundle.verify.run import verify as run
    from ocria_compress.cli.defaults import choose_vllm_python

    python = choose_vllm_python(vllm_python)
    with _bars(shown=not as_json and sys.stderr.isatty()) as show:
        options = Options(source, static, python, pages, count, tuple(allow_not_run or ()), show=show)
        try:
            report = run(checkpoint, options)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError, OSError) as error:
            from ocria_compress.errors import OcriaError

            raise OcriaError(
                f"The folder's files have not the form they should have ({type(error).__name__}: {str(error)[:200]}).",
                where=str(checkpoint)[:200],
                fix="make the checkpoint again, or copy it again",
            ) from error
    if as_json:
        import json

        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        show_report(report)
    if not report.ok:
        from ocria_compress.errors import CheckFailed

        raise CheckFailed("the checkpoint is not proven")


def show_report(report: Report) -> None:
    """Prints the table of checks, what is wrong under each, the readings, and the verdict."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    screen = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("check", "state", "detail"):
        table.add_column(column, overflow="fold", no_wrap=column != "detail")
    for check in report.sorted():
        state, colour = _state(check, report)
        detail = Text(check.detail)
        for item in _items(check):
            detail.append(f"\n  {item}", style="dim")
        table.add_row(check.name, Text(state, style=colour), detail)
    against = f" against {report.source}" if report.source else ""
    screen.print(Text(f"{report.checkpoint}{against}", style="bold"))
    screen.print(table)
    for page in report.pages:
        _show_page(screen, page)
    for note in report.notes:
        screen.print(Text(note, style="dim"))
    screen.print(_verdict(report))


def _state(check: Check, report: Report) -> tuple[str, str]:
    from ocria_compress.bundle.verify.report import State

    if check.state is State.PASSED:
        return "passed", "green"
    if check.state is State.FAILED:
        return "failed", "bold red"
    return ("not run (allowed)", "yellow") if check.name in report.allowed else ("not run", "bold yellow")


def _items(check: Check) -> list[str]:
    from ocria_compress.bundle.verify.report import State

    if check.state is State.PASSED:  # the worst of what passed is in --json
        return []
    more = len(check.items) - _SHOWN
    return [*check.items[:_SHOWN], *([f"and {more} more (--json lists all)"] if more > 0 else [])]


def _show_page(screen: Console, page: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    known = [(who, page[f"{who}_ned"]) for who in ("original", "result") if page[f"{who}_ned"] is not None]
    figures = ", ".join(f"{who} {ned:.4f}" for who, ned in known)
    title = f"page {page['id']}" + (f": normalized edit distance, {figures}" if figures else "")
    screen.print(Text(title, style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for who, label in (("reference", "on the page"), ("original", "original"), ("result", "this one")):
        if page[who] is not None:
            lines = [line for line in page[who].splitlines() if line.strip()]
            text = " / ".join(lines)
            grid.add_row(label, Text(text[:_EXCERPT] + (" …" if len(text) > _EXCERPT else "")))
    screen.print(grid)
    screen.print()


def _verdict(report: Report) -> Text:
    from rich.text import Text

    from ocria_compress.bundle.verify.report import State

    counts = ", ".join(f"{len(report.of(state))} {state}" for state in State if report.of(state))
    if report.ok and not report.pages:
        return Text(f"static checks: {counts}; reading was not checked", style="bold green")
    if report.ok:
        return Text(f"proven: {counts}", style="bold green")
    names = ", ".join(check.name for check in report.blocking)
    return Text(f"not proven: {counts}. Look at: {names}", style="bold red")


Show = Callable[[str, int], tuple[Callable[[int], None], Callable[[], None]]]


@contextmanager
def _bars(shown: bool) -> Iterator[Show | None]:
    """Progress bars with time left on stderr, gone when done; None where no one watches."""
    if not shown:
        yield None
        return
    from ocria_compress.cli.output import bars

    with bars() as made:

        def show(what: str, total: int) -> tuple[Callable[[int], None], Callable[[], None]]:
            task = made.add_task(what, total=total)
            return lambda done: made.advance(task, done), lambda: made.remove_task(task)

        yield show
