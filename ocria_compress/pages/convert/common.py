"""What every format needs: what was asked for, texts brought into one form, files found or refused."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.html_tables import RawTable, read_tables
from ocria_compress.pages.page_record import DPI
from ocria_compress.pages.pageset_write import NewPage

Items = list[NewPage | OcriaError]
"""What a format reads: pages, and what is wrong, each with its file and line."""

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".ppm", ".jp2", ".avif")
_ABOUT = ("readme", "license", "licence", "notice", "sources", "copying", "changelog", "third_party")


@dataclass(frozen=True)
class Options:
    """What was asked for.

    Attributes:
        licence, split: of every page.
        source: where the pages come from; the format's name where left out.
        dpi: at which pages of PDFs are drawn.
        references: a folder to look for references in, besides that of the pages.
    """

    licence: str
    split: str = "eval"
    source: str = ""
    dpi: int = DPI
    references: Path | None = None

    def page(
        self, name: str, image: Path, relative: str, reference: str | None = None, page: int | None = None, **more: Any
    ) -> NewPage:
        """A page of the set. `name` is its id, `relative` says which file of the source it is."""
        place = f"{relative}, page {page}" if page is not None else relative
        return NewPage(
            id=name, image=image, reference=None if reference is None else tidy(reference), licence=self.licence,
            split=self.split, source=f"{self.source}: {place}", page=page, dpi=self.dpi, **more,
        )  # fmt: skip


def tidy(text: str) -> str:
    """A reference as page sets hold it: Unicode's form NFC, line ends "\\n", nothing behind the last word."""
    text = unicodedata.normalize("NFC", text.removeprefix("\ufeff")).replace("\r\n", "\n").replace("\r", "\n")
    return text.rstrip().lstrip("\n")


def read_text(path: Path) -> str:
    """A text file. Raises OcriaError if it cannot be read or is not UTF-8."""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OcriaError("this file is not UTF-8 text", where=str(path), fix="save it as UTF-8") from error
    except OSError as error:
        raise OcriaError(f"this file cannot be read: {error.strerror}", where=str(path)) from error


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any] | OcriaError]]:
    """Of each line that is not empty, its place in words, and its object or what is wrong with it."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield where, OcriaError(f"this line is not JSON: {error}", where=where)
            continue
        if isinstance(record, dict):
            yield where, record
        else:
            yield where, OcriaError("this line is not a JSON object", where=where)


def peek(path: Path) -> dict[str, Any]:
    """The first object among the first lines of a JSON Lines file, broken ones passed over; {} if there is none. For
    telling formats apart."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in islice(file, 50):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(record, dict) and record:
                    return record
    except (OSError, ValueError):
        pass
    return {}


def data_files(source: Path, suffix: str) -> list[Path]:
    """The file itself; or the files of a folder whose names end so; or, if it has none, those of the folders in it."""
    if source.is_file():
        return [source] if source.suffix.lower() == suffix else []
    for pattern in ("*", "*/*"):
        found = [path for path in source.glob(pattern) if path.is_file() and path.suffix.lower() == suffix]
        if found:
            return sorted(found)
    return []


def about(path: Path) -> bool:
    """Whether a file is about the pages (README, LICENSE ...) and not of them."""
    return path.name.startswith(".") or path.stem.lower().startswith(_ABOUT)


def files_below(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Every file of a folder and those in it whose name ends so, hidden ones and READMEs left out, by name."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in suffixes
        and path.is_file()
        and not about(path)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def existing(root: Path, relative: object, where: str, *folders: str) -> Path:
    """The file that a line names, in `root` or in one of its `folders`.

    Raises:
        OcriaError: it is not there, leaves the folder, or is only the pointer that Git LFS leaves.
    """
    if not isinstance(relative, str) or not relative.strip():
        raise OcriaError(f"no file is named ({relative!r})", where=where)
    for folder in ("", *folders):
        path = root / folder / relative
        try:
            there = path.is_file()
        except OSError:  # a name too long for the file system
            there = False
        if there:
            if not path.resolve().is_relative_to(root.resolve()):
                raise OcriaError(f"the file '{relative}' lies outside the source", where=where)
            check_whole(path, where)
            return path
    places = ", ".join(str(root / folder) for folder in dict.fromkeys(("", *folders)))
    raise OcriaError(f"the page's file '{relative}' is missing", where=where, fix=f"put the file in one of: {places}")


def check_whole(path: Path, where: str = "") -> None:
    """Raises OcriaError if a file is a Git LFS pointer, or an image of several pages, of which one would be read."""
    with path.open("rb") as file:
        start = file.read(64)
    place = f"{path}, {where}" if where else str(path)
    if start.startswith(b"version https://git-lfs.github.com/spec/"):
        raise OcriaError("this file is a Git LFS pointer, not the page itself", where=place, fix="git lfs pull")
    if path.suffix.lower() in (".tif", ".tiff", ".gif", ".webp"):
        from PIL import Image

        try:
            with Image.open(path) as image:
                frames = getattr(image, "n_frames", 1)
        except Exception:
            return  # the image is decoded later, and what is wrong is said then
        if frames > 1:
            raise OcriaError(
                f"this image file has {frames} pages, and only the first would be read",
                where=place,
                fix="split it into a file per page, or save it as a PDF",
            )


def page_id(relative: str, page: int | None = None, pages: int = 1) -> str:
    """An id out of a file's path: without its suffix, folders joined by "-"; of a longer PDF with the page."""
    stem = re.sub(r"\.[A-Za-z0-9]{2,5}$", "", relative.replace("\\", "/"))
    return stem.replace("/", "-") + (f"_p{page}" if page is not None and pages > 1 else "")


def table_markdown(table: RawTable) -> str:
    """A table as references write it: one row a line, no attributes but spans, header cells `th`."""
    lines = []
    for row in table.rows:
        cells = []
        for cell in row:
            tag = "th" if cell.header else "td"
            spans = f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ""
            spans += f' colspan="{cell.colspan}"' if cell.colspan > 1 else ""
            content = re.sub(r"\s+", " ", re.sub(r"<br\s*/?>", " ", cell.content)).strip()
            cells.append(f"<{tag}{spans}>{content}</{tag}>")
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return "\n".join(["<table>", *lines, "</table>"])


def tidy_tables(html: str, where: str) -> str:
    """HTML with its tables written as references write them, and nothing around them.

    Raises:
        OcriaError: there is no table, or one is broken.
    """
    html = re.sub(r"</?(?:html|body)\s*>", "", html, flags=re.IGNORECASE)
    tables, faults = read_tables(html)
    if faults:
        raise OcriaError(f"the table is broken: {faults[0].what}", where=where)
    if not tables:
        raise OcriaError("there is no <table> where one belongs", where=where)
    outer = [t for t in tables if not any(o.start < t.start and t.end < o.end for o in tables)]
    return "\n\n".join(table_markdown(table) for table in sorted(outer, key=lambda table: table.start))
