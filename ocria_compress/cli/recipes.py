"""`ocria-compress recipes`: the recipes that ship."""

from __future__ import annotations

from typing import Annotated

import typer


def recipes(
    name: Annotated[
        str | None, typer.Argument(help="Show one recipe whole: a name, or the path of a YAML file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """List the recipes that ship, or show one whole with its defaults filled in."""
    from ocria_compress.cli.output import console, print_json, table
    from ocria_compress.recipes import load_recipe, recipe_paths

    if name:
        import yaml

        data = load_recipe(name).model_dump()
        print_json(data) if as_json else print(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), end="")
        return
    found = [(path, load_recipe(known)) for known, path in recipe_paths().items()]
    if as_json:
        print_json([{"name": r.name, "description": r.description, "path": str(path)} for path, r in found])
        return
    rows = [[r.name, "page images" if r.calibrated else "none", r.description] for _, r in found]
    console().print(table("", ["recipe", "calibration", "what it does"], rows))
    console().print("`ocria-compress recipes NAME` shows one whole; `--set part.mlp.scheme=keep` overrides one value.")
