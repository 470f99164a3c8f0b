"""Page sets: a folder of page images with their reference transcriptions.

The folder holds `manifest.jsonl`, one JSON object a line and no header line::

    {"id": "000", "image": "000.png", "reference": "000.md", "source": "...", "licence": "Apache-2.0",
     "split": "eval", "sha256": "...", "width": 448, "height": 640, "meta": {"seed": 900000}}

`image` and `reference` are paths relative to the folder; `reference` may be null; `sha256` is of the image file;
`width` and `height` are in pixels; `meta` is free and may be left out. `image` may be a PDF: then `page` says which of
its pages, from 1, and `dpi` (150 if left out) at how many pixels an inch it is drawn. The manifest is a JSON Lines file
as `datasets.load_dataset("json", data_files=...)` reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.bundled import bundled
from ocria_compress.errors import OcriaError, nearest
from ocria_compress.pages.page_record import DPI, MANIFEST, MAX_PAGE_PIXELS, Files, Page, examine
from ocria_compress.pages.pageset_write import NewPage, PageSetWriter, write_page_set

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = [
    "BUNDLED",
    "DPI",
    "MANIFEST",
    "MAX_PAGE_PIXELS",
    "NewPage",
    "Page",
    "PageSet",
    "PageSetWriter",
    "SetFault",
    "check_set",
    "write_page_set",
]

BUNDLED = ("calibration", "eval")

_IMAGE_FILES: tuple[str, ...] = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif")
_IMAGE_FILES += (".ppm", ".pgm", ".pbm", ".jp2", ".avif")
_ABOUT = ("readme", "license", "licence", "notice", "sources", "copying", "third_party")


@dataclass(frozen=True)
class PageSet:
    """Pages in the order of their manifest."""

    folder: Path
    pages: list[Page]

    @classmethod
    def load(cls, folder_or_name: Path | str) -> PageSet:
        """Reads a page set and checks every file of it (images by hash and head: `check_set` decodes them too).

        Args:
            folder_or_name: a folder with a `manifest.jsonl`, or the name of a bundled set: `calibration`, `eval`
                (a folder of that name in the current directory is given as `./eval`).

        Raises:
            OcriaError: no such folder or manifest; a line that is not JSON, lacks a key, has a wrong one or no
                licence; an id twice; a path that leaves the folder; a missing file; an image whose SHA-256 or size is
                not the manifest's, or that is larger than MAX_PAGE_PIXELS; a PDF with a password or without that
                page; a reference that is broken (`check_reference`); an image or PDF that no line names; no page at
                all.
        """
        folder = locate(folder_or_name)
        pages: list[Page] = []
        seen: dict[str, int] = {}
        lines = list(_lines(folder / MANIFEST))
        with Files() as files:
            for number, line in lines:
                where = f"{folder / MANIFEST}, line {number}"
                page, faults = examine(folder, line, where, files)
                if page is None:
                    raise faults[0][1]
                if page.id in seen:
                    raise _twice(page.id, where, seen[page.id])
                seen[page.id] = number
                pages.append(page)
        if not pages:
            raise _no_pages(folder)
        for name in _unnamed(folder, lines, (*_IMAGE_FILES, ".pdf")):
            raise OcriaError(
                "this image belongs to no page: no line of the manifest names it",
                where=f"{folder / name}, {folder / MANIFEST}",
                fix="add a line for it to the manifest, or move the file out of the page set",
            )
        return cls(folder, pages)

    @property
    def sha256(self) -> str:
        """SHA-256, hex, of the set: over every page's record, image and reference, in order."""
        return hashlib.sha256("\n".join(page.fingerprint() for page in self.pages).encode()).hexdigest()

    def take(self, n: int) -> PageSet:
        """The first `n` pages as a set (with its own `sha256`).

        Raises:
            OcriaError: `n` is not between 1 and the number of pages.
        """
        if not 1 <= n <= len(self.pages):
            raise OcriaError(
                f"{n} pages were asked for and the set has {len(self.pages)}",
                where=str(self.folder),
                fix=f"ask for 1 to {len(self.pages)} pages, or give a larger page set",
            )
        return PageSet(self.folder, self.pages[:n])

    def to_dataset(self) -> Dataset:
        """The pages as a `datasets.Dataset`, one row a page.

        Returns:
            Columns `id`, `image` (a `datasets.Image`; pages of PDFs are drawn now and held in memory as PNG),
            `reference`, `source`, `licence`, `split`, `width`, `height` and `meta` (JSON text, since it is free).

        Raises:
            OcriaError: as `Page.open`, for pages of PDFs.
        """
        from datasets import Dataset, Features, Image, Value

        names = ("id", "reference", "source", "licence", "split", "width", "height")
        columns: dict[str, list[Any]] = {name: [getattr(page, name) for page in self.pages] for name in names}
        columns["meta"] = [json.dumps(page.meta, ensure_ascii=False, sort_keys=True) for page in self.pages]
        columns["image"] = [_cell(page) for page in self.pages]
        kinds = {name: Value("int64" if name in ("width", "height") else "string") for name in columns}
        return Dataset.from_dict(columns, features=Features(kinds | {"image": Image()}))

    def __len__(self) -> int:
        return len(self.pages)

    def __iter__(self) -> Iterator[Page]:
        return iter(self.pages)


@dataclass(frozen=True)
class SetFault:
    """Something wrong with a page set.

    Attributes:
        line: of the manifest, from 1; None if no line is to blame.
        file: the file concerned, relative to the folder.
        what: one sentence.
    """

    line: int | None
    file: str
    what: str


def check_set(
    folder_or_name: Path | str, advance: Callable[[int, int], None] = lambda done, total: None
) -> tuple[list[Page], list[SetFault]]:
    """Everything that is wrong with a page set, where `PageSet.load` stops at the first.

    Beyond what `load` looks at, every image is decoded and every page of a PDF drawn, and files of pages (images, PDFs,
    text) that no line of the manifest names are faults; README, LICENSE and their like may lie there.

    Args:
        folder_or_name: as for `PageSet.load`.
        advance: called after each page with how many are done, and how many there are.

    Returns:
        The pages with which nothing is wrong, and the faults in the order of their lines.

    Raises:
        OcriaError: no such folder, or no manifest that can be read.
    """
    folder = locate(folder_or_name)
    lines = list(_lines(folder / MANIFEST))
    pages: list[Page] = []
    faults: list[SetFault] = []
    seen: dict[str, int] = {}
    with Files() as files:
        for done, (number, line) in enumerate(lines, 1):
            where = f"{folder / MANIFEST}, line {number}"
            page, found = examine(folder, line, where, files, deep=True)
            if page is not None and page.id in seen:
                found = [("", _twice(page.id, where, seen[page.id]))]
            elif page is not None:
                seen[page.id] = number
                pages.append(page)
            faults += [SetFault(number, file or MANIFEST, error.what) for file, error in found]
            advance(done, len(lines))
    if not lines:
        faults.append(SetFault(None, MANIFEST, _no_pages(folder).what))
    faults += [
        SetFault(None, name, "no line of the manifest names this file")
        for name in _unnamed(folder, lines, (*_IMAGE_FILES, ".pdf", ".md", ".txt"))
    ]
    return pages, faults


def _cell(page: Page) -> Any:
    if page.page is None:
        return str(page.image)
    import io

    buffer = io.BytesIO()
    page.open().save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": None}


def _named(line: str) -> list[str]:
    """The files that a line names, as far as it can be read."""
    try:
        record = json.loads(line)
        return [str(Path(record[key])) for key in ("image", "reference") if isinstance(record.get(key), str)]
    except (ValueError, AttributeError, RecursionError):
        return []


def _unnamed(folder: Path, lines: list[tuple[int, str]], suffixes: tuple[str, ...]) -> list[str]:
    """The files of a set that end so and that no line names; hidden ones, README, LICENSE and their like are none."""
    named = {name for _, line in lines for name in _named(line)}
    found = []
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        aside = any(part.startswith(".") for part in relative.parts) or path.stem.lower().startswith(_ABOUT)
        if path.suffix.lower() in suffixes and not aside and str(relative) not in named and path.is_file():
            found.append(str(relative))
    return sorted(found)


def locate(folder_or_name: Path | str) -> Path:
    """The folder of a page set, or of a bundled one by its name.

    Raises:
        OcriaError: there is no such folder.
    """
    if isinstance(folder_or_name, str) and folder_or_name in BUNDLED:
        return bundled(folder_or_name)
    folder = Path(folder_or_name)
    if folder.is_dir():
        return folder
    if folder.exists():
        raise OcriaError(
            "a page set is a folder, and this is a file",
            where=str(folder),
            fix=f"give the folder that holds {MANIFEST}",
        )
    raise OcriaError(
        "there is no such page set",
        where=str(folder),
        fix=f"give a folder with a {MANIFEST}, or a bundled set ({nearest(str(folder_or_name), list(BUNDLED))})",
    )


def _lines(manifest: Path) -> Iterator[tuple[int, str]]:
    try:
        text = manifest.read_text("utf-8")
    except FileNotFoundError as error:
        raise OcriaError(
            f"this folder has no {MANIFEST}, so it is not a page set",
            where=str(manifest.parent),
            fix=f"write a {MANIFEST} with one JSON object a page (`ocria-compress pages convert` makes one)",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise OcriaError(f"the manifest of this page set cannot be read: {error}", where=str(manifest)) from error
    # Not splitlines(): a JSON string may hold U+2028 or U+0085 as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def _twice(name: str, where: str, first: int) -> OcriaError:
    return OcriaError(
        f"the page id '{name}' occurs twice: it is that of line {first}, too",
        where=where,
        fix="give each page an id of its own",
    )


def _no_pages(folder: Path) -> OcriaError:
    return OcriaError("this page set has no pages", where=str(folder / MANIFEST), fix="add one JSON object a line")
