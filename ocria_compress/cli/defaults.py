"""What a command takes when an option is left out: environment, then `ocria.toml`, then the bundled model."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from ocria_compress.errors import OcriaError, nearest

KEYS = ("model", "vllm_python")


def read_toml(path: Path = Path("ocria.toml")) -> dict[str, str]:
    """The settings of `ocria.toml` in the current folder; {} without one.

    Raises:
        OcriaError: it is not TOML, or holds an unknown key.
    """
    if not path.is_file():
        return {}
    try:
        settings = tomllib.loads(path.read_text())
    except (ValueError, OSError, RecursionError) as error:
        raise OcriaError(
            f"The settings file cannot be read: {error}.", where=str(path.absolute()), fix="mend it, or remove it"
        ) from error
    for key, value in settings.items():
        if key not in KEYS:
            raise OcriaError(f"Unknown setting '{key}': {nearest(key, list(KEYS))}", where=str(path.absolute()))
        if not isinstance(value, str):
            raise OcriaError(f"The setting '{key}' must be text.", where=str(path.absolute()))
    return settings


def choose_model(given: str | None) -> tuple[str, str | None]:
    """The model to work on, and a line that says so when the user named none.

    Args:
        given: the `--model` or positional argument, if there was one.
    """
    if given:
        return given, None
    if model := os.environ.get("OCRIA_MODEL"):
        return model, f"Model: {model} (from OCRIA_MODEL)"
    if model := read_toml().get("model"):
        return model, f"Model: {model} (from ocria.toml)"
    return "mini", "No model named: using mini, the small page reader that ships with this package."


def choose_vllm_python(given: Path | None) -> Path | None:
    """vLLM's interpreter as named: option, else `OCRIA_VLLM_PYTHON`, else `ocria.toml`; None to look for it."""
    if given or os.environ.get("OCRIA_VLLM_PYTHON"):
        return given  # the environment variable is read where the interpreter is looked for
    named = read_toml().get("vllm_python")
    return Path(named) if named else None
