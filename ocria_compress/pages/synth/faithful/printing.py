"""Documents through Chromium into images: HTML of a batch, one PDF, one image a page."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.pdf import draw_exactly, open_pdf
from ocria_compress.pages.synth.document import Columns, Document, walk
from ocria_compress.pages.synth.draw import Drawn
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.draw.visible import note_markers, note_texts, visible, with_notes
from ocria_compress.pages.synth.faithful.blocks import page_html, sheet, sheet_name
from ocria_compress.pages.synth.faithful.chromium import Chromium
from ocria_compress.pages.synth.faithful.furniture import fitting_furniture
from ocria_compress.pages.synth.faithful.style import Faces
from ocria_compress.pages.synth.faithful.trim import trimmed

if TYPE_CHECKING:
    from PIL import Image

BATCH = 100
"""Pages of one PDF."""

_HERE = Path(__file__).parent
_POINTS = 0.75  # a CSS pixel in points


def print_pages(
    jobs: Sequence[tuple[Document, Look]], batch: int = BATCH, browser: Chromium | None = None, keep: Path | None = None
) -> list[Drawn]:
    """Sets and prints documents with Chromium.

    Args:
        jobs: each page's document and its look, whose width and height are the image's.
        batch: how many pages are printed at once.
        browser: a running one, for several calls; started and stopped here if None.
        keep: a folder for the PDFs, `pages-0000.pdf` and so on, a page for each job.

    Returns:
        For each job the image (RGB) and the document with the blocks that fitted, as `draw` does. Where no block fits,
        that document is empty.

    Raises:
        OcriaError: Chromium is not found, does not run, or takes too long; KaTeX cannot set a formula; pypdfium2 is not
            installed.
    """
    if not jobs:
        return []
    drawn: list[Drawn] = []
    with ExitStack() as stack:
        if browser is None:
            browser = stack.enter_context(Chromium())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ocria-pages-")))
        for start in range(0, len(jobs), batch):
            pdf = (keep or folder) / f"pages-{start // batch:04d}.pdf"
            part = [(_printable(document, look), look) for document, look in jobs[start : start + batch]]
            drawn += _print_batch(part, browser, folder, pdf)
    return drawn


def _print_batch(jobs: Sequence[tuple[Document, Look]], browser: Chromium, folder: Path, pdf: Path) -> list[Drawn]:
    html = folder / "pages.html"
    faces = Faces()
    html.write_text(batch_html(jobs, faces), "utf-8")
    told = browser.load(html, "layOut()")
    if told["errors"]:
        first = told["errors"][0]
        raise OcriaError(
            f"KaTeX cannot set the formula {first['latex']!r}: {first['message']}",
            where=f"document {first['page'] + 1} of {len(jobs)} (template '{jobs[first['page']][0].template}')",
            fix="use LaTeX that KaTeX supports (https://katex.org/docs/supported)",
        )
    if told["missing"]:
        raise OcriaError(
            "Chromium cannot load the fonts of these pages",
            where=", ".join(str(file) for name in sorted(set(told["missing"])) for file in faces.files(name)),
            fix="reinstall the package",
        )
    pdf.write_bytes(browser.pdf())
    with open_pdf(pdf) as printed:
        if len(printed) != len(jobs):
            raise OcriaError(f"Chromium printed {len(jobs)} documents on {len(printed)} pages", where=str(pdf))
        return [
            _drawn(_image(printed, pdf, index, look), trimmed(document, page["kept"], page["notes"]), page["boxes"])
            for index, ((document, look), page) in enumerate(zip(jobs, told["pages"], strict=True))
        ]


def batch_html(jobs: Sequence[tuple[Document, Look]], faces: Faces) -> str:
    """The HTML of a batch: a section for each page; the fonts that it needs are added to `faces`."""
    sections = [page_html(number, document, look, faces) for number, (document, look) in enumerate(jobs)]
    sheets = {sheet_name(look): (sheet(look.width), sheet(look.height)) for _, look in jobs}
    papers = "\n".join(f"@page {name}{{size:{wide}px {high}px;margin:0}}" for name, (wide, high) in sheets.items())
    katex = (_HERE / "katex").resolve().as_uri()
    return "\n".join(
        [
            '<!DOCTYPE html><html><head><meta charset="utf-8"><title>pages</title>',
            f'<link rel="stylesheet" href="{katex}/katex.min.css"><script src="{katex}/katex.min.js"></script>',
            f"<style>{papers}\n{faces.css()}\n{(_HERE / 'page.css').read_text('utf-8')}</style>",
            f"<script>{(_HERE / 'layout.js').read_text('utf-8')}</script></head><body>",
            *sections,
            "</body></html>",
        ]
    )


def _image(printed: Any, pdf: Path, index: int, look: Look) -> Image.Image:
    wide, high = sheet(look.width), sheet(look.height)
    found = printed[index].get_size()
    if any(abs(side - want * _POINTS) > 0.1 for side, want in zip(found, (wide, high), strict=True)):
        raise OcriaError(
            f"Chromium printed a page of {found[0]:g} x {found[1]:g} points instead of {wide * _POINTS:g} x "
            f"{high * _POINTS:g}",
            where=f"{pdf}, page {index + 1}",
        )
    image = draw_exactly(printed, pdf, index, (wide, high))
    return image.crop((0, 0, look.width, look.height))


def _drawn(image: Image.Image, document: Document, boxes: list[list[float]]) -> Drawn:
    blocks = [block for block in walk(document.blocks) if not isinstance(block, Columns)]
    return Drawn(image, document, [(block, tuple(box)) for block, box in zip(blocks, boxes, strict=True)], [])  # type: ignore[misc]


def _printable(document: Document, look: Look) -> Document:
    """The document without what its look cannot show, as `draw` does it: see `draw/visible.py`."""
    shown = fitting_furniture(visible(document, look), look)
    return with_notes(shown, frozenset(note_markers(shown.blocks)) & frozenset(note_texts(shown.blocks)))
