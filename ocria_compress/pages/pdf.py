"""Pages of PDF files as images, drawn by PDFium (pypdfium2, of the extra `[pages]`).

PDFium is not safe to use from several threads at once; use processes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.images import MAX_SIDE

if TYPE_CHECKING:
    from PIL import Image

DPI = 150
"""Pixels an inch unless told otherwise: what scanned office documents have at least."""

MAX_PIXELS = 30_000_000
"""The largest page, in pixels (an A3 sheet at 360 dpi is smaller): a larger one is a poster, a plan or a mistake."""

_POINTS = 72  # a PDF's unit: an inch has 72


def page_count(path: Path | str, password: str | None = None) -> int:
    """How many pages a PDF has; at least 1.

    Raises:
        OcriaError: as `open_pdf`.
    """
    with open_pdf(path, password) as document:
        return len(document)


def render_page(
    path: Path | str,
    index: int,
    dpi: float = DPI,
    max_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
    password: str | None = None,
) -> Image.Image:
    """Draws one page of a PDF as it looks on paper, with its annotations and filled-in form fields.

    Args:
        path: the file.
        index: of the page, from 0.
        dpi: pixels an inch.
        max_side: a page whose longer side would have more pixels than this is drawn at the lower dpi that gives it
            just so many.
        max_pixels: a page that would have more pixels than this (after `max_side`) is refused.
        password: of an encrypted file.

    Returns:
        The page, mode RGB, over white.

    Raises:
        OcriaError: as `open_pdf`; there is no such page; it is damaged; it would be too large.
    """
    with open_pdf(path, password) as document:
        return draw_page(document, path, index, dpi, max_side, max_pixels)


@contextmanager
def open_pdf(path: Path | str, password: str | None = None) -> Iterator[Any]:
    """A PDF opened with pypdfium2 and closed at the end: for several pages of one file, with `draw_page`.

    Yields:
        A `pypdfium2.PdfDocument` of one page or more.

    Raises:
        OcriaError: pypdfium2 is not installed; the file is missing, a folder, empty, not readable, not a PDF, damaged,
            without pages, or encrypted and the password missing or wrong.
    """
    pdfium = _pdfium()
    path = Path(path)
    _check_file(path)
    try:
        document = pdfium.PdfDocument(path, password=password)
    except pdfium.PdfiumError as error:
        raise _refusal(path, error, password) from error
    try:
        if document.get_formtype() in (1, 2):  # AcroForm: without this the filled-in values are not drawn
            document.init_forms()
        yield document
    finally:
        document.close()


def draw_page(
    document: Any,
    path: Path | str,
    index: int,
    dpi: float = DPI,
    max_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Image.Image:
    """`render_page` of a document that `open_pdf` opened; `path` is for messages."""
    if dpi <= 0 or (max_side is not None and max_side < 1):
        raise OcriaError(f"a page cannot be drawn at {dpi:g} dpi with a longest side of {max_side}", where=str(path))
    with _opened_page(document, path, index) as page:
        size = _size(page, _place(path, index), dpi, max_side, max_pixels)
        return _rasterize(page, *size)


def draw_exactly(document: Any, path: Path | str, index: int, size: tuple[int, int]) -> Image.Image:
    """One page of a document that `open_pdf` opened, stretched to exactly `size` (width and height, pixels), RGB."""
    with _opened_page(document, path, index) as page:
        return _rasterize(page, *size)


def _pdfium() -> Any:
    try:
        import pypdfium2
    except ImportError as error:
        raise OcriaError(
            "pages of PDF files are read with pypdfium2, which is not installed",
            fix='pip install "ocria-compress[pages]"',
        ) from error
    return pypdfium2


def _place(path: Path | str, index: int) -> str:
    return f"{path}, page {index + 1}"


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise OcriaError("this PDF is a folder, not a file", where=str(path), fix="give the path of one PDF file")
    if not path.exists():
        raise OcriaError("there is no such PDF", where=str(path), fix="check the path")
    if not path.is_file():
        raise OcriaError("this PDF is not a regular file", where=str(path), fix="give the path of one PDF file")
    try:
        with path.open("rb") as file:
            start = file.read(1024)
    except OSError as error:
        raise OcriaError(f"this PDF cannot be read: {error.strerror}", where=str(path)) from error
    if not start:
        raise OcriaError("this PDF is empty (0 bytes)", where=str(path), fix="copy the file again")
    if b"%PDF-" not in start:
        raise OcriaError("this file is not a PDF", where=str(path), fix="give a PDF, or the page as an image")


def _refusal(path: Path, error: Any, password: str | None) -> OcriaError:
    from pypdfium2 import raw

    code = error.err_code
    if _opens(path, password):  # PDFium opened it and pypdfium2 missed a page; the code is then of an earlier file
        return OcriaError("this PDF has no pages", where=str(path), fix="leave it out, or save the document again")
    if code == raw.FPDF_ERR_PASSWORD:
        what = "the password of this PDF is wrong" if password else "this PDF is encrypted and needs a password"
        return OcriaError(what, where=str(path), fix="give its password, or save it without one")
    if code == raw.FPDF_ERR_SECURITY:
        return OcriaError(
            "this PDF is encrypted in a way that PDFium cannot read", where=str(path), fix="save it without encryption"
        )
    return OcriaError(
        "this PDF is damaged or cut short", where=str(path), fix="copy the file again, or repair it (qpdf does)"
    )


def _opens(path: Path, password: str | None) -> bool:
    from pypdfium2 import raw

    encoded = None if password is None else password.encode() + b"\0"
    document = raw.FPDF_LoadDocument(os.fsencode(path) + b"\0", encoded)
    if document:
        raw.FPDF_CloseDocument(document)
    return bool(document)


@contextmanager
def _opened_page(document: Any, path: Path | str, index: int) -> Iterator[Any]:
    count = len(document)
    if not 0 <= index < count:
        # Page numbers in messages are as viewers count, from 1.
        pages = f"pages 1 to {count} (index 0 to {count - 1})" if count > 1 else "one page (index 0)"
        raise OcriaError(f"there is no page {index + 1} (index {index})", where=str(path), fix=f"it has {pages}")
    try:
        page = document[index]
    except _pdfium().PdfiumError as error:
        raise OcriaError(
            "this page of the PDF is damaged", where=_place(path, index), fix="repair the file (qpdf does)"
        ) from error
    try:
        yield page
    finally:
        page.close()


def _size(page: Any, where: str, dpi: float, max_side: int | None, max_pixels: int) -> tuple[int, int]:
    points = page.get_size()
    if not all(math.isfinite(side) and side > 0 for side in points):
        raise OcriaError(f"this page has no size: {points[0]:g} x {points[1]:g} points", where=where)
    scale = dpi / _POINTS
    if max_side is not None:
        scale = min(scale, max_side / max(points))
    width, height = (max(1, round(side * scale)) for side in points)
    if width * height > max_pixels or max(width, height) > MAX_SIDE:
        largest = min(math.sqrt(max_pixels / (points[0] * points[1])), MAX_SIDE / max(points)) * _POINTS
        inches = " x ".join(f"{side / _POINTS:.4g}" for side in points)
        raise OcriaError(
            f"this page would be {width} x {height} pixels ({width * height / 1e6:.1f} megapixels) at "
            f"{scale * _POINTS:.4g} dpi, where {max_pixels / 1e6:g} megapixels and {MAX_SIDE} a side are the limit "
            f"(it is {inches} inches)",
            where=where,
            fix=f"draw it at {_floor(largest)} dpi or less",
        )
    return width, height


def _floor(dpi: float) -> str:
    """Rounded down to a whole number, below 2 to two digits: what is suggested must fit."""
    if dpi >= 2:
        return str(math.floor(dpi))
    digits = 1 - math.floor(math.log10(dpi))
    return f"{math.floor(dpi * 10**digits) / 10**digits:.{digits}f}"


def _rasterize(page: Any, width: int, height: int) -> Image.Image:
    """Into exactly `width` x `height` pixels (PdfPage.render takes a scale, and rounds up)."""
    import pypdfium2
    from pypdfium2 import raw

    bitmap = pypdfium2.PdfBitmap.new_native(width, height, raw.FPDFBitmap_BGR)
    try:
        bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
        place = (0, 0, width, height, 0, raw.FPDF_ANNOT)
        raw.FPDF_RenderPageBitmap(bitmap, page, *place)
        if page.formenv:
            raw.FPDF_FFLDraw(page.formenv, bitmap, page, *place)
        return bitmap.to_pil().convert("RGB")  # a copy: the bitmap's own memory goes
    finally:
        bitmap.close()
