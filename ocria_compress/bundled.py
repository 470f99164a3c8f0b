"""Finds what ships with the package: recipes, calibration pages, evaluation pages, the model `mini`.

In a checkout `recipes/`, `calibration/` and `eval/` lie beside the package; in an installed wheel they lie inside it.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def bundled(name: str) -> Path:
    """The folder `recipes`, `calibration` or `eval`, wherever this installation keeps it."""
    inside = PACKAGE / "_bundled" / name
    return inside if inside.is_dir() else PACKAGE.parent / name


def mini_folder() -> Path:
    """The folder of `mini`, the small page-reading model that ships with the package."""
    return PACKAGE / "mini"
