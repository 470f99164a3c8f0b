"""`ocria-compress pages`: makes, inspects, converts and checks page sets."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocria_compress.errors import OcriaError, nearest

if TYPE_CHECKING:
    from ocria_compress.pages.convert import Converted
    from ocria_compress.pages.inspect import Summary

pages = typer.Typer(
    name="pages",
    help="Make, inspect, convert and check page sets: page images with reference transcriptions.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Set = Annotated[str, typer.Argument(metavar="SET", help="A page set's folder, or eval or calibration (bundled).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The page set's folder; must not exist.")]

_SHOWN = 40
"""Faults that are printed; all are in --json."""


@pages.command()
def synth(
    out: Out,
    count: Annotated[int, typer.Option("--count", min=1, help="How many pages.")] = 16,
    split: Annotated[str, typer.Option("--split", help="train, draft, calibration or benchmark.")] = "train",
    seed: Annotated[int, typer.Option("--seed", help="Of the first page; the others follow.")] = 0,
    route: Annotated[str, typer.Option("--route", help="fast (drawn), or faithful (printed by Chromium).")] = "fast",
    want: Annotated[
        str | None,
        typer.Option("--want", help="What every page shall have: spans,columns,formulas,charts,languages,scans."),
    ] = None,
    size: Annotated[str, typer.Option("--size", help="WIDTHxHEIGHT in pixels, or random.")] = "random",
    language: Annotated[str | None, typer.Option("--language", help="en, de, fr, es, it, nl or pt.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that make pages.")] = 1,
    as_json: Json = False,
) -> None:
    """Make pages with exact references. The same options make the same pages."""
    import time
    from typing import get_args

    from ocria_compress.pages.synth.generate import STRATA, Route
    from ocria_compress.pages.synth.splits import SPLITS

    _choice("--split", split, list(SPLITS))
    _choice("--route", route, list(get_args(Route)))
    wanted = frozenset(part.strip() for part in (want or "").split(",") if part.strip())
    for part in wanted:
        _choice("--want", part, list(STRATA))
    pixels = _size(size)

    from ocria_compress.pages.pageset import PageSet
    from ocria_compress.pages.synth.write import write_set

    started = time.monotonic()
    with _progress("making pages", not as_json) as advance:
        advance(0, count)
        write_set(out, count, split, seed, route, wanted, pixels, language, workers, advance)  # type: ignore[arg-type]
    seconds = time.monotonic() - started
    _made(out, len(PageSet.load(out)), seconds, as_json)


@pages.command()
def inspect(
    page_set: Set,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A contact sheet of pages beside their references: .html or .png."),
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Pages on the sheet, spread over the set.")] = 12,
    ids: Annotated[list[str] | None, typer.Option("--id", help="A page on the sheet; may be given again.")] = None,
    columns: Annotated[int, typer.Option("--columns", min=1, max=8, help="Pages side by side on the sheet.")] = 2,
    as_json: Json = False,
) -> None:
    """Show what is in a page set; with --out draw a contact sheet of pages beside their rendered references."""
    from ocria_compress.cli.output import print_json
    from ocria_compress.pages.inspect import choose, summarize
    from ocria_compress.pages.pageset import PageSet

    if out is not None and out.suffix.lower() not in (".html", ".png"):
        raise OcriaError("a contact sheet is .html or .png", where=str(out), fix="--out contact.html")
    if out is not None and not out.absolute().parent.is_dir():
        raise OcriaError("there is no such folder for the contact sheet", where=str(out.parent), fix="make it first")
    loaded = PageSet.load(page_set)
    if out is not None and out.resolve().is_relative_to(loaded.folder.resolve()):
        raise OcriaError(
            "the contact sheet would lie in the page set and be taken for one of its images",
            where=str(out),
            fix="give another --out",
        )
    shown = choose(loaded, count, ids or ())
    with _progress("reading pages", not as_json) as advance:
        summary = summarize(loaded, advance)
    if out is not None:
        _sheet(out, page_set, shown, summary, columns)
    if as_json:
        from dataclasses import asdict

        print_json(
            {"folder": str(loaded.folder), "sha256": loaded.sha256, **asdict(summary), "sheet": out and str(out)}
        )
        return
    _show_summary(page_set, loaded.sha256, summary)
    if out is not None:
        typer.echo(f"Contact sheet of {_count(len(shown), 'page')}: {out}")


@pages.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A folder of PDFs or images, or a benchmark's folder or JSON file.")],
    out: Out,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="auto, pdfs, images, olmocr-bench, omnidocbench, parsebench, opendataloader, pubtabnet or "
            "pdf-parse-bench.",
        ),
    ] = "auto",
    licence: Annotated[
        str, typer.Option("--licence", help="Under what terms the pages may be used (a benchmark's own if left out).")
    ] = "",
    origin: Annotated[str, typer.Option("--source", help="Where the pages come from, for the record.")] = "",
    split: Annotated[str, typer.Option("--split", help="What the pages are for.")] = "eval",
    references: Annotated[
        Path | None, typer.Option("--references", help="A folder with the references of PDFs or images.")
    ] = None,
    dpi: Annotated[int, typer.Option("--dpi", min=36, max=600, help="At which pages of PDFs are drawn.")] = 150,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Only the first so many pages.")] = None,
    skip_faulty: Annotated[
        bool, typer.Option("--skip-faulty", help="Leave out pages with which something is wrong.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a page set out of PDFs, images or a public benchmark: all its pages, or nothing. Images stay as they are."""
    from ocria_compress.cli.output import print_json
    from ocria_compress.pages.convert import Faulty
    from ocria_compress.pages.convert import convert as run
    from ocria_compress.pages.convert.common import Options

    if references is not None and not references.is_dir():
        raise OcriaError("there is no such folder of references", where=str(references), fix="check --references")
    options = Options(licence.strip(), split, origin, dpi, references)
    try:
        with _progress("converting pages", not as_json) as advance:
            done = run(
                source, out, format=format, options=options, count=count, skip_faulty=skip_faulty, advance=advance
            )
    except Faulty as error:
        if as_json:
            faults = [{"where": fault.where, "what": fault.what} for fault in error.faults]
            print_json({"error": {"what": error.what, "where": error.where, "fix": error.fix}, "faults": faults})
            raise typer.Exit(2) from None
        _show_faults([(fault.where or "", fault.what) for fault in error.faults], ["where", "what"])
        raise
    _converted(done, as_json)


@pages.command()
def check(page_set: Set, as_json: Json = False) -> None:
    """List everything that is wrong with a page set: files, hashes, images, references. Exit 2 if anything is."""
    from ocria_compress.cli.output import print_json
    from ocria_compress.pages.pageset import check_set

    with _progress("checking pages", not as_json) as advance:
        good, faults = check_set(page_set, advance)
    if as_json:
        rows = [{"line": fault.line, "file": fault.file, "what": fault.what} for fault in faults]
        print_json({"pages": len(good), "faults": rows})
    elif faults:
        _show_faults([(fault.line or "", fault.file, fault.what) for fault in faults], ["line", "file", "what"])
        typer.echo(f"{_count(len(faults), 'fault')}; nothing is wrong with {_count(len(good), 'page')}.")
    else:
        typer.echo(f"Nothing is wrong with the {_count(len(good), 'page')} of {page_set}.")
    if faults:
        raise typer.Exit(2)


def _sheet(out: Path, name: str, shown: list, summary: Summary, columns: int) -> None:
    import io

    if out.suffix.lower() == ".html":
        from ocria_compress.pages.inspect_html import contact_html

        about = f"{len(shown)} of {_count(summary.pages, 'page')}"
        content = contact_html(shown, f"Page set {name}", about, columns).encode()
    else:
        from ocria_compress.pages.inspect_png import contact_png

        buffer = io.BytesIO()
        contact_png(shown, columns).save(buffer, "PNG")
        content = buffer.getvalue()
    try:
        out.write_bytes(content)
    except OSError as error:
        raise OcriaError(
            f"the contact sheet cannot be written: {error.strerror}", where=str(out), fix="give another --out"
        ) from error


def _show_summary(name: str, sha256: str, summary: Summary) -> None:
    from rich.markup import escape

    from ocria_compress.cli.output import console, table

    rows: list[list[Any]] = [
        ["pages", f"{summary.pages} ({', '.join(f'{n} {kind}' for kind, n in summary.kinds.items())})"],
        ["width", f"{summary.widths} pixels"],
        ["height", f"{summary.heights} pixels"],
        ["all pages", f"{summary.megapixels:.1f} megapixels"],
        ["references", f"{summary.references} of {summary.pages}"],
    ]
    if summary.characters is not None:
        rows += [["  characters", summary.characters], ["  tokens (mini's)", summary.tokens]]
    rows += [[f"  with {what}", count] for what, count in summary.contents.items()]
    for key, values in summary.said.items():
        rows.append([key, ", ".join(f"{escape(value)} ({n})" for value, n in list(values.items())[:12])])
    for what, groups in (("same reference", summary.same_reference), ("same pixels", summary.same_pixels)):
        listed = "; ".join(" = ".join(map(escape, group)) for group in groups[:6])
        rows.append([what, f"[yellow]{listed}[/]" + " ..." * (len(groups) > 6) if groups else "none twice"])
    shown = table(f"Page set {escape(name)}, SHA-256 {sha256[:12]}", ["", ""], rows)
    shown.show_header = False
    console().print(shown)


def _show_faults(rows: list[tuple], columns: list[str]) -> None:
    from rich.markup import escape

    from ocria_compress.cli.output import console, table

    screen = console()
    screen.print(table("", columns, [[escape(str(cell)) for cell in row] for row in rows[:_SHOWN]]))
    if len(rows) > _SHOWN:
        screen.print(f"and {len(rows) - _SHOWN} more (--json lists all)")


def _converted(done: Converted, as_json: bool) -> None:
    from ocria_compress.cli.output import print_json

    if as_json:
        faults = [{"where": fault.where, "what": fault.what} for fault in done.faults]
        print_json(
            {
                "folder": str(done.folder),
                "format": done.format,
                "pages": done.pages,
                "without_reference": done.without_reference,
                "licence": done.licence,
                "cautions": done.cautions,
                "left_out": faults,
            }
        )
        return
    typer.echo(f"Format: {done.format}")
    for caution in done.cautions:
        typer.echo(f"Caution: {caution}")
    if done.faults:
        typer.echo(f"Left out, {_count(len(done.faults), 'fault')}:")
        _show_faults([(fault.where or "", fault.what) for fault in done.faults], ["where", "what"])
    bare = f", {done.without_reference} without a reference" if done.without_reference else ""
    typer.echo(f"Wrote {done.folder}: {_count(done.pages, 'page')}{bare}.")
    typer.echo(f"Look at it:  ocria-compress pages inspect {done.folder} --out contact.html")


def _made(out: Path, count: int, seconds: float, as_json: bool) -> None:
    from ocria_compress.cli.output import print_json

    if as_json:
        print_json({"folder": str(out), "pages": count, "seconds": round(seconds, 2)})
        return
    typer.echo(f"Wrote {out}: {_count(count, 'page')} in {seconds:.1f} s ({count / max(seconds, 1e-9):.1f} a second).")
    typer.echo(f"Look at it:  ocria-compress pages inspect {out} --out contact.html")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _choice(option: str, value: str, known: list[str]) -> None:
    if value not in known:
        raise OcriaError(f"{option} is '{value}', which is not known", where=option, fix=nearest(value, known))


def _size(size: str) -> tuple[int, int] | None:
    if size == "random":
        return None
    match = re.fullmatch(r"(\d{2,5})[xX](\d{2,5})", size.strip())
    if match is None:
        raise OcriaError(f"--size is '{size}'", where="--size", fix="write WIDTHxHEIGHT, such as 640x800, or random")
    return int(match[1]), int(match[2])


@contextmanager
def _progress(what: str, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar with time left on stderr, gone when done; nothing where no one watches."""
    if not (shown and sys.stderr.isatty()):
        yield lambda done, total: None
        return
    from ocria_compress.cli.output import bars

    with bars(counted=True) as made:
        task = made.add_task(what, total=None)
        yield lambda done, total: made.update(task, completed=done, total=total)
