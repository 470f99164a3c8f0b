"""Page sets: a folder of page images with their reference transcriptions.

The folder holds `manifest.jsonl`, one JSON object a line and no header line::

    {"id": "000", "image": "000.png", "reference": "000.md", "source": "...", "licence": "Apache-2.0",
     "split": "eval", "sha256": "...", "width": 448, "height": 640, "meta": {"seed": 900000}}

`image` and `reference` are paths relative to the folder; `reference` may be null; `sha256` is of the image file;
`width` and `height` are in pixels; `meta` is free and may be left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ocria_compress.bundled import bundled
from ocria_compress.errors import OcriaError, nearest

MANIFEST = "manifest.jsonl"
BUNDLED = ("calibration", "eval")

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


@dataclass(frozen=True)
class Page:
    """One page of a set.

    Attributes:
        id: its name, unique in the set.
        image: the image file.
        reference: what is written on it, as Markdown with HTML tables; None where that is not known.
        source: where the page comes from.
        licence: under what terms it may be used (an SPDX expression, or a few words).
        split: what the page is for: `calibration`, `eval`, ...
        sha256: of the image file, hex.
        width, height: of the image, pixels.
        meta: anything else the set's maker wrote down.
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

    def fingerprint(self) -> str:
        """SHA-256, hex, over the page's record and the contents of its files; not over where they lie on disk."""
        record = [self.id, self.sha256, self.reference, self.source, self.licence, self.split, self.width, self.height]
        text = json.dumps([*record, self.meta], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class PageSet:
    """Pages in the order of their manifest."""

    folder: Path
    pages: list[Page]

    @classmethod
    def load(cls, folder_or_name: Path | str) -> PageSet:
        """Reads a page set and checks every file of it.

        Args:
            folder_or_name: a folder with a `manifest.jsonl`, or the name of a bundled set: `calibration`, `eval`
                (a folder of that name in the current directory is given as `./eval`).

        Raises:
            OcriaError: no such folder or manifest; a line that is not JSON, lacks a key, has a wrong one or no
                licence; an id twice; a path that leaves the folder; a missing file; an image whose SHA-256 is not
                the manifest's; no page at all.
        """
        folder = _locate(folder_or_name)
        manifest = folder / MANIFEST
        pages: list[Page] = []
        seen: set[str] = set()
        for number, line in _lines(manifest):
            page = _read_page(folder, line, where=f"{manifest}, line {number}")
            if page.id in seen:
                raise OcriaError(f"the page id '{page.id}' occurs twice", where=f"{manifest}, line {number}")
            seen.add(page.id)
            pages.append(page)
        if not pages:
            raise OcriaError("this page set has no pages", where=str(manifest), fix="add one JSON object a line")
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

    def __len__(self) -> int:
        return len(self.pages)

    def __iter__(self) -> Iterator[Page]:
        return iter(self.pages)


def _locate(folder_or_name: Path | str) -> Path:
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
            fix=f"write a {MANIFEST} with one JSON object a page",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise OcriaError(f"the manifest of this page set cannot be read: {error}", where=str(manifest)) from error
    # Not splitlines(): a JSON string may hold U+2028 or U+0085 as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def _read_page(folder: Path, line: str, where: str) -> Page:
    record = _read_record(line, where)
    image = _inside(folder, record["image"], where)
    reference = None
    if record["reference"] is not None:
        path = _inside(folder, record["reference"], where)
        try:
            with path.open(encoding="utf-8", newline="") as file:
                reference = file.read()
        except UnicodeDecodeError as error:
            raise OcriaError("the reference of this page is not UTF-8 text", where=str(path)) from error
    found = hashlib.sha256(image.read_bytes()).hexdigest()
    if found != record["sha256"]:
        raise OcriaError(
            f"the image of page '{record['id']}' is not the one the manifest names: "
            f"SHA-256 {found[:12]}... instead of {record['sha256'][:12]}...",
            where=str(image),
            fix="restore the image, or write its new hash into the manifest",
        )
    values = {key: record[key] for key in _KINDS if key not in ("image", "reference")}
    return Page(image=image, reference=reference, meta=record.get("meta", {}), **values)


def _read_record(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise OcriaError(f"this line of the manifest is not JSON: {error}", where=where) from error
    if not isinstance(record, dict):
        raise OcriaError("this line of the manifest is not a JSON object", where=where)
    for key, kinds in _KINDS.items():
        if key not in record:
            raise OcriaError(
                f"this page has no '{key}'", where=where, fix=f"every page needs: {', '.join(_KINDS)}; 'meta' is free"
            )
        if not isinstance(record[key], kinds) or isinstance(record[key], bool):
            expected = "a whole number" if int in kinds else "a string"
            raise OcriaError(f"'{key}' of this page is {record[key]!r}, where {expected} belongs", where=where)
    for key in record:
        if key not in _KINDS and key != "meta":
            raise OcriaError(f"unknown key '{key}' ({nearest(key, [*_KINDS, 'meta'])})", where=where)
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
    if not isinstance(record.get("meta", {}), dict):
        raise OcriaError("'meta' of this page is not a JSON object", where=where)


def _inside(folder: Path, relative: str, where: str) -> Path:
    parts = PurePosixPath(relative)
    if not relative or parts.is_absolute() or ".." in parts.parts or "\\" in relative or "\0" in relative:
        raise OcriaError(
            f"the path '{relative}' is not inside the page set", where=where, fix="use paths relative to its folder"
        )
    path = folder / parts
    if not path.is_file():
        raise OcriaError("a file that the manifest names is missing", where=str(path), fix=f"restore it; see {where}")
    return path
