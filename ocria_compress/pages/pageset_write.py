"""Writes page sets: into a folder beside the place, made durable, the manifest last, then renamed."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.page_record import DPI, MANIFEST, Files, examine


@dataclass(frozen=True)
class NewPage:
    """A page to be written.

    Attributes:
        id: its name, unique in the set; files are named after it.
        image: an image or PDF file, copied byte for byte (a PDF once for all its pages), or the bytes of an image.
        reference, source, licence, split, meta: as in `Page`.
        page, dpi: of a PDF, which page, from 1, and at how many pixels an inch.
        origin: the file (and line) that the page was read from, for messages; `source` where left out.
    """

    id: str
    image: Path | bytes
    reference: str | None
    source: str
    licence: str
    split: str
    meta: dict[str, Any] = field(default_factory=dict)
    page: int | None = None
    dpi: int = DPI
    origin: str = ""


def check_new(folder: Path) -> None:
    """Raises OcriaError if `folder` is there already (an empty folder may be), or its parent cannot be written to."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise OcriaError(
            "the place for the page set is taken, and nothing is overwritten",
            where=str(folder),
            fix="give another folder with --out, or remove this one",
        )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Says in words why a page set cannot be written: no room on the disk, no right to ..."""
    try:
        yield
    except OSError as error:
        raise OcriaError(
            f"the page set cannot be written: {error.strerror or error}",
            where=str(folder),
            fix="make room or give another place with --out",
        ) from error


class PageSetWriter:
    """Writes a page set page by page; it has its name only when it is whole.

    Use as a context manager: left with an exception, nothing remains.

    Args:
        folder: the set's folder; must not exist, or be empty.
        deep: decode every image and draw every page of a PDF, to be sure of them; else only heads are read.

    Raises:
        OcriaError: the folder exists; at the end: no page was added.
    """

    def __init__(self, folder: Path, deep: bool = True) -> None:
        check_new(folder)
        self.folder, self.deep = folder, deep
        self._files = Files()
        self._lines: list[str] = []
        self._ids: dict[str, str] = {}  # and where each comes from
        self._names: set[str] = set()  # as taken: in small letters
        self._pdfs: dict[Path, str] = {}
        self._used: set[str] = set()

    def __enter__(self) -> PageSetWriter:
        with _writing(self.folder):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self._work = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}-", dir=self.folder.parent))
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._files.__exit__()
        try:
            if kind is None:
                with _writing(self.folder):
                    self._finish()
        finally:
            shutil.rmtree(self._work, ignore_errors=True)

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, page: NewPage, size: dict[str, int] | None = None) -> list[OcriaError]:
        """Adds a page, or nothing of it if something is wrong with it.

        Args:
            page: the page.
            size: `width` and `height`, if known: then they must be the image's.

        Returns:
            What is wrong with it, as `examine` finds it: a broken reference, a damaged image ...
        """
        if page.id in self._ids:
            what = f"the page id '{page.id}' occurs twice: it is that of {self._ids[page.id]}, too"
            return [OcriaError(what, where=page.origin or page.source, fix="rename one of the files")]
        record: dict[str, Any] = {"id": page.id, "image": "", "reference": None}
        record |= {"source": page.source, "licence": page.licence, "split": page.split}
        with _writing(self.folder):
            try:
                return self._add(page, record, size or {})
            except OcriaError as error:
                return [error]

    def _add(self, page: NewPage, record: dict[str, Any], size: dict[str, int]) -> list[OcriaError]:
        record["image"] = name = self._place(page)
        try:
            width, height = self._files.size(self._work / name, page.page, page.dpi, self.deep)
        except OcriaError as error:
            given = page.image if isinstance(page.image, Path) else page.origin or page.source
            return [OcriaError(error.what, where=str(given), fix=error.fix)]
        if page.reference is not None:
            record["reference"] = self._free(_safe(page.id), ".md")
            try:
                (self._work / record["reference"]).write_bytes(page.reference.encode("utf-8"))
            except UnicodeEncodeError:
                what = "the reference has half a character (a lone surrogate, \\ud800 ...)"
                return [OcriaError(what, where=page.origin or page.source, fix="correct the reference")]
        record |= {"sha256": self._files.sha256(self._work / name), "width": width, "height": height} | size
        if page.page is not None:
            record |= {"page": page.page, "dpi": page.dpi}
        if page.meta:
            record["meta"] = page.meta
        line = json.dumps(record, ensure_ascii=False)
        _, faults = examine(self._work, line, "", self._files)
        if faults:
            # The temporary folder is gone when this is read: the source is where the fault is.
            return [OcriaError(error.what, where=page.origin or page.source, fix=error.fix) for _, error in faults]
        self._lines.append(line)
        self._ids[page.id] = page.origin or page.source
        self._used |= {name, record["reference"] or name}
        return []

    def _place(self, page: NewPage) -> str:
        if isinstance(page.image, bytes):
            name = self._free(_safe(page.id), _suffix(page.image))
            (self._work / name).write_bytes(page.image)
            return name
        path = page.image
        if page.page is not None and path in self._pdfs:
            return self._pdfs[path]
        name = self._free(_safe(path.stem if page.page is not None else page.id), path.suffix.lower())
        try:
            path.open("rb").close()
        except OSError as error:
            raise OcriaError(f"the file of a page cannot be read: {error.strerror}", where=str(path)) from error
        shutil.copyfile(path, self._work / name)
        if page.page is not None:
            self._pdfs[path] = name
        return name

    def _free(self, stem: str, suffix: str) -> str:
        """A file name that is not taken, whatever the case of its letters: some file systems do not tell them apart."""
        name, number = f"{stem}{suffix}", 1
        while name.lower() in self._names:
            number += 1
            name = f"{stem}-{number}{suffix}"
        self._names.add(name.lower())
        return name

    def _finish(self) -> None:
        if not self._lines:
            raise OcriaError("no page is left, so no page set was written", where=str(self.folder))
        for path in self._work.iterdir():
            if path.name in self._used:
                _sync(path)
            else:  # of a page that was refused
                path.unlink()
        manifest = self._work / MANIFEST
        manifest.write_text("".join(line + "\n" for line in self._lines), "utf-8")
        _sync(manifest)
        self._work.chmod(0o755)  # mkdtemp makes it for its owner alone
        _sync(self._work)
        check_new(self.folder)
        self._work.rename(self.folder)
        _sync(self.folder.parent)


def write_page_set(
    folder: Path, pages: Iterable[tuple[dict[str, Any], Path | bytes, str | None]], deep: bool = False
) -> None:
    """Writes a page set: all pages, or nothing.

    Args:
        folder: must not exist, or be empty.
        pages: of each page its record (`id`, `source`, `licence`, `split`; where wanted `meta`, `page` and `dpi`, and
            `width` and `height` to be compared with the image's), its image or PDF file (or an image's bytes), and its
            reference.
        deep: as for `PageSetWriter`.

    Raises:
        OcriaError: the folder exists; the first thing that is wrong with a page; no pages.
    """
    with PageSetWriter(folder, deep) as writer:
        for record, image, reference in pages:
            size: dict[str, int] = {key: record[key] for key in ("width", "height") if key in record}
            rest = {key: value for key, value in record.items() if key not in size}
            for fault in writer.add(NewPage(image=image, reference=reference, **rest), size):
                raise fault


def _suffix(image: bytes) -> str:
    """How the name of an image file ends, by its first bytes."""
    if image.startswith(b"\xff\xd8"):
        return ".jpg"
    if image[:4] == b"RIFF" and image[8:12] == b"WEBP":
        return ".webp"
    return ".tif" if image[:4] in (b"II*\0", b"MM\0*") else ".png"


def _safe(name: str) -> str:
    """A file name out of an id; file systems take 255 bytes."""
    safe = re.sub(r"[^\w.-]+", "_", name).strip("._").encode("utf-8", "ignore")
    return safe[:180].decode("utf-8", "ignore") or "page"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
