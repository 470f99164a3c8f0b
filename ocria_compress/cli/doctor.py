"""`ocria-compress doctor`: what is installed, whether it fits together, what can run here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ocria_compress.doctor import Diagnosis


def doctor(
    install_vllm: Annotated[
        bool, typer.Option("--install-vllm", help="Make vLLM's environment, .venv-vllm, in the current folder.")
    ] = False,
    vllm_python: Annotated[
        Path | None, typer.Option("--vllm-python", help="vLLM's interpreter, or the environment that holds it.")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="For --install-vllm: cpu or cuda; found out when left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Check versions, GPU, vLLM, disk and memory, and say what can run here. Exit 2 if quantizing cannot work."""
    from ocria_compress.cli.defaults import choose_vllm_python
    from ocria_compress.doctor import diagnose
    from ocria_compress.errors import OcriaError

    if install_vllm and vllm_python:
        raise OcriaError("--vllm-python names an environment and --install-vllm makes one", fix="give one of them")
    if device and not install_vllm:
        raise OcriaError("--device is for --install-vllm", fix="add --install-vllm, or leave --device out")
    if install_vllm:
        from ocria_compress.serving.install import install

        vllm_python = install(device=device, on_line=lambda line: typer.echo(line, err=True))
    found = diagnose(choose_vllm_python(vllm_python))
    _show(found, as_json)
    if not found.ready:
        raise typer.Exit(2)


def _show(found: Diagnosis, as_json: bool) -> None:
    from dataclasses import asdict

    from ocria_compress.cli.output import console, print_json, table

    if as_json:
        print_json({"ready": found.ready, **asdict(found)})
        return
    colours = {"ok": "green", "warning": "yellow", "wrong": "red"}
    rows = [[c.name, f"[{colours[c.state]}]{c.state}[/]", _plain(c.found), _plain(c.expected)] for c in found.checks]
    screen = console()
    screen.print(table("", ["what", "", "found", "expected"], rows))
    can = [[ability.scheme, ability.runs, ability.how] for ability in found.abilities]
    screen.print(table("what vLLM can run here", ["scheme", "runs", "how"], can))
    for check in found.checks:
        if check.fix:
            screen.print(f"[{colours[check.state]}]{check.name}[/]: {_plain(check.fix)}")
    screen.print("ready to quantize" if found.ready else "[red]not ready to quantize[/]")


def _plain(text: str) -> str:
    """Text with square brackets kept as they are."""
    from rich.markup import escape

    return escape(text)
