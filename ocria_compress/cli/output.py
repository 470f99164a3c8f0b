"""What the commands print: error panels, aligned tables, progress with time left, JSON."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, ProgressColumn
    from rich.table import Table

    from ocria_compress.errors import OcriaError
    from ocria_compress.quantize.run import Reporter


def error_panel(error: OcriaError) -> None:
    """One panel on stderr: what, where, what to do."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    text = Text(error.what)
    for label, value in (("where       ", error.where), ("what to do  ", error.fix)):
        if value:
            text.append(f"\n{label}", style="dim")
            text.append(value)
    Console(stderr=True).print(Panel(text, title="cannot be done", title_align="left", border_style="red"))


def print_json(data: Any) -> None:
    """Machine-readable output, alone on stdout."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def table(title: str, columns: list[str], rows: list[list[Any]], right: set[int] | None = None) -> Table:
    """An aligned table; `right` are the indices of columns with figures."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
    for i, name in enumerate(columns):
        made.add_column(name, justify="right" if right and i in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*[str(cell) for cell in row])
    return made


def console() -> Any:
    """The console for results, on stdout; as wide as needed when it is not a terminal, so that logs do not fold."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140, soft_wrap=False, highlight=False)


def bars(*more: ProgressColumn, counted: bool = False) -> Progress:
    """Progress bars with time left, on stderr, gone when done; hidden where stderr is no terminal.

    Args:
        more: columns behind the usual ones.
        counted: show "3/16" instead of a percentage.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    screen = Console(stderr=True)
    share = MofNCompleteColumn() if counted else TaskProgressColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), share, TimeRemainingColumn(), *more)
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


@contextmanager
def progress() -> Iterator[Reporter]:
    """Progress bars with time left, on stderr; gone when done. Where stderr is no terminal: one line a stage."""
    from rich.progress import TextColumn

    from ocria_compress.quantize.run import Reporter

    shown = bars(TextColumn("{task.fields[item]}", style="dim"))
    screen = shown.console

    def stage(name: str, total: int) -> None:
        shown.add_task(name, total=total, item="")
        if not screen.is_terminal:
            print(f"{name} …", file=sys.stderr, flush=True)

    def advance(amount: int, item: str) -> None:
        shown.update(shown.task_ids[-1], advance=amount, item=item)

    with shown:
        yield Reporter(stage=stage, advance=advance, note=lambda text: screen.print(text, style="dim"))
