"""`ocria-compress quantize`: runs a recipe and writes a checkpoint that vLLM loads."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ocria_compress.cli.defaults import choose_model
from ocria_compress.cli.plan import Base, Json, Model, RecipeName, Revision, Settings, default_out, load_plan, show_plan


def quantize(
    model: Model = None,
    recipe: RecipeName = "fp8",
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The result's folder (exports/MODEL-RECIPE if left out).")
    ] = None,
    base: Base = None,
    revision: Revision = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an older result of this tool.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Throw an unfinished run away instead of continuing it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Quantize a model with a recipe. A killed or interrupted run is continued by the same command."""
    from ocria_compress.model.writer import check_place

    chosen, note = choose_model(model)
    if note and not as_json:
        typer.echo(note)
    made = load_plan(chosen, recipe, settings, base, revision, weights=False)
    target = out or default_out(chosen, made.recipe.name)
    if dry_run:
        show_plan(made, target, tensors=False, as_json=as_json)
        if not as_json:
            typer.echo(f"Nothing was written; the result would go to {target}")
        return
    check_place(target, overwrite)  # whatever can be refused is refused before weights are downloaded or torch imported
    if "hub" in (made.source.kind, made.source.base.kind if made.source.base else ""):
        made = load_plan(chosen, recipe, settings, base, made.source.revision, weights=True)
    _write(made, target, overwrite, fresh, as_json)


def _write(made, target: Path, overwrite: bool, fresh: bool, as_json: bool) -> None:
    import time

    from rich.markup import escape

    from ocria_compress.cli.output import console, print_json, progress
    from ocria_compress.quantize.resources import gigabytes
    from ocria_compress.quantize.run import quantize as run

    started = time.monotonic()
    with progress() as report:
        result = run(
            made,
            target,
            command=shlex.join(["ocria-compress", *sys.argv[1:]]),
            overwrite=overwrite,
            fresh=fresh,
            report=report,
        )
    seconds = time.monotonic() - started
    if as_json:
        print_json(
            {"folder": str(result.folder), "seconds": round(seconds, 2), "resumed": result.resumed, **result.manifest}
        )
        return
    counts = result.manifest["tensors"]
    for warning in made.warnings:
        console().print(f"[yellow]warning[/yellow] {escape(warning)}")
    console().print(
        f"Wrote [bold]{escape(str(target))}[/bold] in {seconds:.1f} s: {gigabytes(made.bytes_before)} -> "
        f"{gigabytes(made.bytes_after)} ({made.bytes_after / made.bytes_before:.0%}); "
        f"{counts['quantized']} tensors quantized, {counts['kept']} kept.\n"
        f"Prove it:  ocria-compress verify {escape(shlex.quote(str(target)))}"
    )
