"""`ocria-compress plan`: what a recipe will do to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ocria_compress.cli.defaults import choose_model

if TYPE_CHECKING:
    from ocria_compress.quantize.plan import Plan

Model = Annotated[str | None, typer.Option("--model", "-m", help="mini, a model folder, or a hub id.")]
RecipeName = Annotated[str, typer.Option("--recipe", "-r", help="A recipe's name, or the path of a YAML file.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override one value: part.mlp.scheme=keep.")
]
Base = Annotated[
    str | None, typer.Option("--base", help="Take missing mtp.* tensors and processor files from this model.")
]
Revision = Annotated[str | None, typer.Option("--revision", help="Branch, tag or commit of a hub id.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]


def plan(
    model: Annotated[str | None, typer.Argument(help="mini, a model folder, or a hub id.")] = None,
    model_option: Model = None,
    recipe: RecipeName = "fp8",
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where the result would go (for free disk).")] = None,
    base: Base = None,
    revision: Revision = None,
    tensors: Annotated[bool, typer.Option("--tensors", help="List every tensor.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a recipe will do to a model: parts, schemes, bytes, rules and their hits. No weight is read."""
    from ocria_compress.errors import OcriaError

    if model and model_option and model != model_option:
        raise OcriaError("Two models are named.", where=f"{model} and --model {model_option}", fix="name one")
    chosen, note = choose_model(model or model_option)
    if note and not as_json:
        typer.echo(note)
    made = load_plan(chosen, recipe, settings, base, revision, weights=False)
    show_plan(made, out or default_out(chosen, made.recipe.name), tensors=tensors, as_json=as_json)


def load_plan(
    model: str, recipe: str, settings: list[str] | None, base: str | None, revision: str | None, *, weights: bool
) -> Plan:
    """Opens the recipe and the model, and plans; the recipe first, since it needs no download."""
    from ocria_compress.recipes import load_recipe

    loaded = load_recipe(recipe, settings)

    from ocria_compress.model.source import open_source
    from ocria_compress.quantize.plan import make_plan
    from ocria_compress.quantize.run import open_pages

    made = make_plan(open_source(model, base=base, revision=revision, weights=weights), loaded)
    open_pages(made)
    return made


def default_out(model: str, recipe: str) -> Path:
    """`exports/MODEL-RECIPE`, in the current folder."""
    name = Path(model.rstrip("/")).name or "model"
    return Path("exports") / f"{name}-{recipe}"


def show_plan(made: Plan, out: Path, *, tensors: bool, as_json: bool) -> None:
    """Prints a plan as tables, or as JSON."""
    from rich.markup import escape

    from ocria_compress.cli.output import console, print_json, table
    from ocria_compress.quantize.plan import part_rows
    from ocria_compress.quantize.resources import gigabytes, resources

    needs = resources(made, out)
    if as_json:
        print_json(plan_json(made, out))
        return
    screen = console()
    source, rows = made.source, []
    where = source.folder if source.kind == "folder" else source.given
    at = f" at {source.revision[:12]}" if source.revision else ""
    screen.print(
        f"[bold]{made.recipe.name}[/bold] on [bold]{escape(str(where))}[/bold]{at}: {escape(made.recipe.description)}"
    )
    for row in part_rows(made):
        before, after = row["bytes_before"], row["bytes_after"]
        rows.append(
            [row["part"], row["scheme"], row["tensors"], gigabytes(before), gigabytes(after), f"{after / before:.0%}"]
        )
    total = [made.bytes_before, made.bytes_after]
    rows.append(["total", "", len(made.tensors), *map(gigabytes, total), f"{total[1] / total[0]:.0%}"])
    screen.print(table("", ["part", "scheme", "tensors", "before", "after", "left"], rows, {2, 3, 4, 5}))
    hits = [[escape(rule.rule), rule.hits, gigabytes(rule.nbytes), escape(rule.reason)] for rule in made.rules]
    if made.kv_layers:
        hits.append(
            ["kv_cache: fp8", len(made.kv_layers), "", "full-attention layers " + ", ".join(map(str, made.kv_layers))]
        )
    screen.print(table("", ["rule", "modules", "bytes", "why"], hits, {1, 2}))
    if tensors:
        listed = [
            [t.name, t.scheme, escape(", ".join(f"{o.dtype} {list(o.shape)}" for o in t.outputs))] for t in made.tensors
        ]
        screen.print(table("", ["tensor", "scheme", "becomes"], listed))
    screen.print(
        f"disk    {gigabytes(needs.disk_needed)} needed, {gigabytes(needs.disk_free)} free"
        f"\nmemory  {gigabytes(needs.memory_needed)} needed, {gigabytes(needs.memory_free)} free"
        f"\nwith    {', '.join(f'{name} {version}' for name, version in versions().items())}"
    )
    for warning in [*made.warnings, *([needs.short] if needs.short else [])]:
        screen.print(f"[yellow]warning[/yellow] {escape(warning)}")


def versions() -> dict[str, str]:
    """The installed versions of what a result depends on."""
    from importlib import metadata

    from ocria_compress.quantize.run import PACKAGES

    return {name: metadata.version(name) for name in PACKAGES}


def plan_json(made: Plan, out: Path) -> dict:
    """A plan as plain data."""
    from dataclasses import asdict

    from ocria_compress.quantize.plan import part_rows
    from ocria_compress.quantize.resources import resources

    return {
        "model": made.source.given,
        "revision": made.source.revision,
        "recipe": made.recipe.model_dump(),
        "out": str(out),
        "parts": part_rows(made),
        "bytes_before": made.bytes_before,
        "bytes_after": made.bytes_after,
        "rules": [asdict(rule) for rule in made.rules],
        "kv_layers": made.kv_layers,
        "resources": asdict(resources(made, out)),
        "versions": versions(),
        "warnings": made.warnings,
        "quantization_config": made.quantization_config(),
        "tensors": [
            {
                "name": t.name,
                "part": t.part,
                "scheme": t.scheme,
                "file": t.shard,
                "outputs": [asdict(o) for o in t.outputs],
            }
            for t in made.tensors
        ],
    }
