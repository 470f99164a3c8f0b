"""One page of a page set: its line of the manifest, read and checked, and its files.

See `pageset.py` for the format.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ocria_compress.errors import OcriaError, nearest

if TYPE_CHECKING:
    from PIL import Image

MANIFEST = "manifest.jsonl"
DPI = 150
"""Pixels an inch at which a page of a PDF is drawn, unless its line says otherwise."""

MAX_PAGE_PIXELS = 25_000_000
"""The largest page of a set: A4 at 500 dpi. A larger one is a poster, or scanned at a resolution that no model sees."""

_KINDS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "image": (str,),
    "reference": (str, type(None)),
    "source": (str,),
    "licence": (str,),
    "split": (str,),
    "sha256": (str,),
    "width": (int,),
    "height": (int,),
}
_OPTIONAL: dict[str, tuple[type, ...]] = {"page": (int,), "dpi": (int,), "meta": (dict,)}
_NAMES = {int: "a whole number", str: "a string", dict: "a JSON object"}


@dataclass(frozen=True)
class Page:
    """One page of a set.

    Attributes:
        id: its name, unique in the set.
        image: the image file, or the PDF file whose page `page` it is.
        reference: what is written on it, as Markdown with HTML tables; None where that is not known.
        source: where the page comes from.
        licence: under what terms it may be used (an SPDX expression, or a few words).
        split: what the page is for: `calibration`, `eval`, ...
        sha256: of the image file, hex.
        width, height: of the image, pixels; of a page of a PDF as it is drawn.
        meta: anything else the set's maker wrote down.
        page: of a PDF, which page, from 1; None if `image` is an image.
        dpi: of a PDF, pixels an inch at which it is drawn.
    """

    id: str
    image: Path
    reference: str | None
    source: str
    licence: str
    split: str
    sha256: str
    width: int
    height: int
    meta: dict[str, Any] = field(default_factory=dict, hash=False)
    page: int | None = None
    dpi: int = DPI

    def fingerprint(self) -> str:
        """SHA-256, hex, over the page's record and the contents of its files; not over where they lie on disk."""
        record = [self.id, self.sha256, self.reference, self.source, self.licence, self.split, self.width, self.height]
        where = [] if self.page is None else [self.page, self.dpi]
        text = json.dumps([*record, self.meta, *where], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def open(self) -> Image.Image:
        """The page as a model is shown it: RGB, upright, `width` x `height` pixels.

        Raises:
            OcriaError: as `open_page` and `render_page`; the image has another size than the page's.
        """
        if self.page is None:
            from ocria_compress.pages.images import open_page

            image = open_page(self.image)
        else:
            from ocria_compress.pages.pdf import render_page

            image = render_page(self.image, self.page - 1, self.dpi, max_pixels=MAX_PAGE_PIXELS)
        if image.size != (self.width, self.height):
            raise OcriaError(_wrong_size(self.id, image.size, (self.width, self.height)), where=str(self.image))
        return image


class Files:
    """The files of one set, each read or opened once: many pages may be of one PDF. Use as a context manager."""

    def __init__(self) -> None:
        self._hashes: dict[Path, str] = {}
        self._pdfs: dict[Path, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def sha256(self, path: Path) -> str:
        """Of the file, hex."""
        if path not in self._hashes:
            with path.open("rb") as file:
                self._hashes[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._hashes[path]

    def pdf(self, path: Path) -> Any:
        """The PDF, opened; closed with this object. Raises OcriaError as `open_pdf` does."""
        if path not in self._pdfs:
            from ocria_compress.pages.pdf import open_pdf

            if len(self._pdfs) >= 32:  # not every file of a large set at once
                self._stack.close()
                self._pdfs.clear()
            self._pdfs[path] = self._stack.enter_context(open_pdf(path))
        return self._pdfs[path]

    def size(self, path: Path, page: int | None, dpi: int, deep: bool) -> tuple[int, int]:
        """Width and height of a page in pixels, upright.

        Args:
            path: an image, or a PDF.
            page: of a PDF, from 1.
            dpi: of a PDF.
            deep: decode the image or draw the page whole, so that damage is found; else only the image's head or
                the PDF's list of pages is read.

        Raises:
            OcriaError: not readable, damaged, no such page, or larger than MAX_PAGE_PIXELS.
        """
        if page is None:
            size = _image_size(path, False)
        else:
            from ocria_compress.pages.pdf import draw_page

            document = self.pdf(path)
            if deep or not 1 <= page <= len(document):
                size = draw_page(document, path, page - 1, dpi, max_pixels=MAX_PAGE_PIXELS).size
            else:
                opened = document[page - 1]
                points = opened.get_size()
                opened.close()
                size = (max(1, round(points[0] * (dpi / 72))), max(1, round(points[1] * (dpi / 72))))  # as drawn
        if size[0] * size[1] > MAX_PAGE_PIXELS:
            raise OcriaError(_too_large(*size), where=str(path), fix="scale it down, or cut it into pages")
        return _image_size(path, True) if deep and page is None else size


def _image_size(path: Path, deep: bool) -> tuple[int, int]:
    from ocria_compress.pages.images import FORMATS, open_page

    try:
        if not deep:
            from PIL import Image

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # its size is refused later, in words
                with Image.open(path, formats=FORMATS) as image:
                    turned = image.getexif().get(0x0112, 1) >= 5  # EXIF orientation: on its side
                    return image.size[::-1] if turned else image.size
    except Exception:
        pass  # open_page says what is wrong, if anything is
    return open_page(path).size


def _too_large(width: int, height: int) -> str:
    return (
        f"the page has {width} x {height} pixels, {width * height / 1e6:.1f} megapixels, "
        f"where {MAX_PAGE_PIXELS / 1e6:g} are the most"
    )


def _wrong_size(name: str, found: tuple[int, int], said: tuple[int, int]) -> str:
    return f"page '{name}' has {found[0]} x {found[1]} pixels and the manifest says {said[0]} x {said[1]}"


def read_record(line: str, where: str) -> dict[str, Any]:
    """A line of a manifest, its keys and values checked.

    Raises:
        OcriaError: not a JSON object; a key is missing, unknown or of the wrong kind; an empty id; no licence; no size,
            or more than MAX_PAGE_PIXELS; a path that leaves the folder.
    """
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise OcriaError(f"this line of the manifest is not JSON: {error}", where=where) from error
    if any("\ud800" <= char <= "\udfff" for char in json.dumps(record, ensure_ascii=False)):
        raise OcriaError("this line of the manifest has half a character (a lone surrogate, \\ud800 ...)", where=where)
    if not isinstance(record, dict):
        raise OcriaError("this line of the manifest is not a JSON object", where=where)
    kinds = _KINDS | {key: kind for key, kind in _OPTIONAL.items() if key in record}
    for key, kind in kinds.items():
        if key not in record:
            free = ", ".join(f"'{name}'" for name in _OPTIONAL)
            raise OcriaError(
                f"this page has no '{key}'",
                where=where,
                fix=f"every page needs: {', '.join(_KINDS)}; {free} may be left out",
            )
        if not isinstance(record[key], kind) or isinstance(record[key], bool):
            raise OcriaError(f"'{key}' of this page is {record[key]!r}, where {_NAMES[kind[0]]} belongs", where=where)
    for key in record:
        if key not in kinds:
            raise OcriaError(f"unknown key '{key}' ({nearest(key, [*_KINDS, *_OPTIONAL])})", where=where)
    _check_values(record, where)
    return record


def _check_values(record: dict[str, Any], where: str) -> None:
    if not record["id"].strip():
        raise OcriaError("this page has an empty 'id'", where=where)
    if not record["licence"].strip() or record["licence"].strip().lower() in ("unknown", "none", "?"):
        raise OcriaError(
            f"the licence of page '{record['id']}' is not known",
            where=where,
            fix="write under what terms the page may be used (an SPDX name, or a few words), or leave the page out",
        )
    if record["width"] < 1 or record["height"] < 1:
        raise OcriaError(f"page '{record['id']}' has no width or height", where=where, fix="write them in pixels")
    if record["width"] * record["height"] > MAX_PAGE_PIXELS:
        raise OcriaError(
            _too_large(record["width"], record["height"]),
            where=f"{record['image']}, {where}",
            fix="scale it down, or cut it into pages",
        )
    if record.get("page", 1) < 1 or record.get("dpi", DPI) < 1:
        raise OcriaError(f"'page' and 'dpi' of page '{record['id']}' count from 1", where=where)
    is_pdf = record["image"].lower().endswith(".pdf")
    if is_pdf != ("page" in record):
        raise OcriaError(
            f"the image of page '{record['id']}' is a PDF and no 'page' is named"
            if is_pdf
            else f"page '{record['id']}' names a 'page' of an image that is not a PDF",
            where=where,
            fix="'page' is the number, from 1, of the page of a PDF, and for PDFs only",
        )
    for key in ("image", "reference"):
        if record[key] is not None:
            _check_path(record[key], where)


def _check_path(relative: str, where: str) -> None:
    parts = PurePosixPath(relative)
    if not relative or parts.is_absolute() or ".." in parts.parts or "\\" in relative or "\0" in relative:
        raise OcriaError(
            f"the path '{relative}' is not inside the page set", where=where, fix="use paths relative to its folder"
        )


def examine(
    folder: Path, line: str, where: str, files: Files, deep: bool = False
) -> tuple[Page | None, list[tuple[str, OcriaError]]]:
    """Reads one line of a manifest and the files it names.

    Returns:
        The page (None if something is wrong), and everything that is wrong: the file concerned ("" for the line
        itself) and the error, whose `where` names file and line.
    """
    try:
        record = read_record(line, where)
    except OcriaError as error:
        return None, [("", error)]
    faults: list[tuple[str, OcriaError]] = []
    reference = None
    try:
        _check_image(folder, record, where, files, deep)
    except OcriaError as error:
        faults.append((record["image"], error))
    if record["reference"] is not None:
        try:
            reference = _read_reference(folder, record, where)
        except OcriaError as error:
            faults.append((record["reference"], error))
        else:
            faults += [(record["reference"], error) for error in _reference_faults(folder, record, reference, where)]
    if faults:
        return None, faults
    values = {key: record[key] for key in _KINDS if key not in ("image", "reference")}
    values |= {key: record[key] for key in _OPTIONAL if key in record}
    return Page(image=folder / record["image"], reference=reference, **values), []


def _check_image(folder: Path, record: dict[str, Any], where: str, files: Files, deep: bool) -> None:
    path = _existing(folder, record["image"], where)
    place = f"{path}, {where}"
    found = files.sha256(path)
    if found != record["sha256"]:
        raise OcriaError(
            f"the image of page '{record['id']}' is not the one the manifest names: "
            f"SHA-256 {found[:12]}... instead of {record['sha256'][:12]}...",
            where=place,
            fix="restore the image, or write its new hash into the manifest",
        )
    try:
        size = files.size(path, record.get("page"), record.get("dpi", DPI), deep)
    except OcriaError as error:
        raise OcriaError(error.what, where=place, fix=error.fix) from error
    if size != (record["width"], record["height"]):
        raise OcriaError(
            _wrong_size(record["id"], size, (record["width"], record["height"])),
            where=place,
            fix="write the size of the upright image into the manifest",
        )


def _read_reference(folder: Path, record: dict[str, Any], where: str) -> str:
    path = _existing(folder, record["reference"], where)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise OcriaError("the reference of this page is not UTF-8 text", where=f"{path}, {where}") from error


def _reference_faults(folder: Path, record: dict[str, Any], reference: str, where: str) -> list[OcriaError]:
    from ocria_compress.pages.reference import check_reference

    if record.get("meta", {}).get("blank") is True and not reference.strip():
        return []
    path = folder / record["reference"]
    fix = "correct the reference, or write null where it is not known"
    if not reference.strip():
        fix = 'write null where it is not known, or "blank": true in the meta of a page without text'
    return [
        OcriaError(
            f"the reference of page '{record['id']}' is broken in its line {fault.line}: {fault.what}",
            where=f"{path}, {where}",
            fix=fix,
        )
        for fault in check_reference(reference)
    ]


def _existing(folder: Path, relative: str, where: str) -> Path:
    path = folder / PurePosixPath(relative)
    try:
        there = path.is_file()
    except OSError:  # a name too long for the file system
        there = False
    if not there:
        raise OcriaError("a file that the manifest names is missing", where=f"{path}, {where}", fix="restore it")
    return path
