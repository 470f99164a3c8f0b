"""The application: the commands by name, and how errors, interrupts and usage mistakes reach the user."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ocria_compress.cli.doctor import doctor
from ocria_compress.cli.pages import pages
from ocria_compress.cli.plan import plan
from ocria_compress.cli.quantize import quantize
from ocria_compress.cli.recipes import recipes
from ocria_compress.cli.verify import verify
from ocria_compress.errors import CheckFailed, OcriaError

INTERRUPTED = 130

app = typer.Typer(
    name="ocria-compress",
    help="Quantize, verify and export document-parsing vision-language models of the Qwen3.5 family for vLLM.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (plan, quantize, verify, recipes, doctor):
    app.command()(command)
app.add_typer(pages)


def _version(asked: bool) -> None:
    if asked:
        from ocria_compress import __version__

        print(f"ocria-compress {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Runs a command line and returns its exit code: 0 done, 1 a check or gate failed, 2 cannot be done, 130
    interrupted."""
    if "--debug" in arguments:  # accepted behind the command as well, where people put it
        arguments = ["--debug"] + [a for a in arguments if a != "--debug"]
    as_json, debug = "--json" in arguments, "--debug" in arguments
    try:
        result = app(arguments, standalone_mode=False)
        if result == INTERRUPTED:  # the parser turns Ctrl-C into its exit code
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except CheckFailed:
        return 1
    except OcriaError as error:
        _refuse(error, as_json, debug)
    except KeyboardInterrupt:
        # Page sets are made in minutes and whole or not at all; the other long commands resume.
        after = "Nothing was written." if "pages" in arguments[:2] else "The same command continues an unfinished run."
        print(f"\nInterrupted. {after}", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if code := _usage(error):
            return code
        fault = OcriaError(
            f"Something went wrong that should have been caught earlier: {type(error).__name__}: {error}",
            fix="run again with --debug and report what it shows",
        )
        fault.__cause__ = error
        _refuse(fault, as_json, debug)
    return 2


def _usage(error: Exception) -> int | None:
    """Lets the parser say what is wrong with the command line; None if it is not such an error.

    Told by what the exception offers, not by its class: typer carries its own copy of click in some releases.
    """
    if type(error).__name__ == "Abort":
        print("\nInterrupted. The same command continues an unfinished run.", file=sys.stderr)
        return INTERRUPTED
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        from typer import rich_utils

        rich_utils.rich_format_error(error)  # type: ignore[arg-type]
        return int(error.exit_code)
    return None


def _refuse(error: OcriaError, as_json: bool, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exception(error)
    from ocria_compress.cli.output import error_panel, print_json

    if as_json:
        print_json({"error": {"what": error.what, "where": error.where, "fix": error.fix}})
    else:
        error_panel(error)
