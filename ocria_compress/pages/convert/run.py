"""Chooses the format, reads it, and writes the set: all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError, nearest
from ocria_compress.pages.convert.common import IMAGES, Items, Options, files_below
from ocria_compress.pages.pageset_write import NewPage, PageSetWriter, check_new

FORMATS = {
    "omnidocbench": "OmniDocBench.json with images",
    "olmocr-bench": "olmOCR-bench JSONL with pdfs",
    "parsebench": "ParseBench JSONL with docs",
    "pubtabnet": "PubTabNet JSONL with images of tables",
    "pdf-parse-bench": "ground_truth JSON with pdfs",
    "opendataloader": "ground-truth/markdown with pdfs",
    "pdfs": "PDFs, with references in .md files",
    "images": "images, with references in .md or .txt files",
}
"""In the order in which they are tried: what is told by its own files first."""


class Faulty(OcriaError):
    """Pages that cannot be converted; `faults` are what is wrong with each, every one with its place."""

    def __init__(self, faults: list[OcriaError], pages: int, where: str) -> None:
        super().__init__(
            f"{len(faults)} fault{'s' * (len(faults) != 1)} in the source, so nothing was written "
            f"({pages} page{'s' * (pages != 1)} would be good)",
            where=where,
            fix=_advice(faults, pages),
        )
        self.faults = faults


def _advice(faults: list[OcriaError], pages: int) -> str:
    fixes = {fault.fix for fault in faults}
    one = fixes.pop() if len(fixes) == 1 else None  # all the same: say it once, here
    return (one or "mend what is listed above") + (", or leave those pages out with --skip-faulty" if pages else "")


@dataclass(frozen=True)
class Converted:
    """What was written.

    Attributes:
        folder: the set.
        format: which format the source was taken for.
        pages: how many pages it has.
        without_reference: how many of them have no reference.
        licence: of the pages.
        cautions: what to know before the pages are passed on.
        faults: what is wrong with the pages that were left out.
    """

    folder: Path
    format: str
    pages: int
    without_reference: int
    licence: str
    cautions: list[str]
    faults: list[OcriaError]


def _module(name: str) -> Any:
    return import_module(f"ocria_compress.pages.convert.{name.replace('-', '_')}")


def detect(source: Path) -> str:
    """The format of a source, by its files.

    Raises:
        OcriaError: it is of no known format.
    """
    for name in FORMATS:
        if _module(name).matches(source):
            return name
    known = "; ".join(f"{name} ({what})" for name, what in FORMATS.items())
    raise OcriaError(
        "the source is of no format that is known here", where=str(source), fix=f"give one of these layouts: {known}"
    )


def convert(
    source: Path,
    out: Path,
    *,
    format: str = "auto",
    options: Options,
    count: int | None = None,
    skip_faulty: bool = False,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> Converted:
    """Makes a page set out of a source.

    Args:
        source: a folder, or a file of annotations.
        out: the set's folder; must not exist.
        format: one of FORMATS, or `auto`.
        options: licence, split and so on; without a licence the format's own is taken, where there is one.
        count: take only so many pages, from the front.
        skip_faulty: leave pages out with which something is wrong.
        advance: called with how many pages are done, and how many there are.

    Raises:
        Faulty: something is wrong with a page, and `skip_faulty` is off.
        OcriaError: no such source or format; no licence; `out` exists; no page (is left).
    """
    if not source.exists():
        raise OcriaError("there is no such source", where=str(source), fix="check the path")
    if format not in (*FORMATS, "auto"):
        raise OcriaError(f"there is no format '{format}'", fix=nearest(format, [*FORMATS, "auto"]))
    check_new(out)
    if out.resolve().is_relative_to(source.resolve()):
        raise OcriaError("the page set would lie inside its source", where=str(out), fix="give another --out")
    name = detect(source) if format == "auto" else format
    module = _module(name)
    licence, cautions = _licence(module, options, name, source)
    options = replace(options, licence=licence, source=options.source or module.ORIGIN or source.resolve().name)
    items = module.read(source, options)
    cautions += _without_page(source, items)
    if count is not None:
        items = items[:count]
    if not items:
        raise OcriaError(f"the source has no pages ({FORMATS[name]})", where=str(source), fix="check --format")
    faults: list[OcriaError] = []
    bare = 0
    with PageSetWriter(out) as writer:
        for done, item in enumerate(items, 1):
            found = writer.add(item) if isinstance(item, NewPage) else [item]
            bare += isinstance(item, NewPage) and not found and item.reference is None
            faults += found
            advance(done, len(items))
        if faults and not (skip_faulty and len(writer)):
            raise Faulty(faults, len(writer), str(source))
    return Converted(out, name, len(writer), bare, licence, cautions, faults)


def _without_page(source: Path, items: Items) -> list[str]:
    """Says which images and PDFs of the source are of no page (a benchmark's own copies of others, for one)."""
    if source.is_file():
        return []
    used = {item.image for item in items if isinstance(item, NewPage)}
    blamed = " ".join(item.where or "" for item in items if isinstance(item, OcriaError))
    left = [path for path in files_below(source, (*IMAGES, ".pdf")) if path not in used and str(path) not in blamed]
    if not left:
        return []
    shown = ", ".join(str(path.relative_to(source)) for path in left[:5]) + ", ..." * (len(left) > 5)
    many = "images or PDFs belong" if len(left) > 1 else "image or PDF belongs"
    return [f"{len(left)} {many} to no page and stayed where they are: {shown}"]


def _licence(module: Any, options: Options, name: str, source: Path) -> tuple[str, list[str]]:
    known, caution = module.LICENCE
    cautions = [caution] if caution else []
    if options.licence:
        return options.licence, cautions
    if not known:
        raise OcriaError(
            f"the licence of the pages is not known (the source was taken for: {FORMATS[name]})",
            where=str(source),
            fix='say under what terms they may be used: --licence "CC-BY-4.0", or a few words such as '
            '--licence "ours, internal use"',
        )
    return known, [f"licence as the benchmark states it: {known}", *cautions]
