"""The fonts of the synthetic pages: which there are, what they can print, and the faces by size.

The files in `font_files/` are made by `tools/make_fonts.py` from freely licensed packages; `font_files/FONTS.md` lists
where each comes from and `font_files/LICENSES/` holds the licences. Importing this module reads one small JSON file.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ocria_compress.errors import OcriaError

if TYPE_CHECKING:
    from PIL import ImageFont

Kind = Literal["serif", "sans", "mono", "hand"]

FOLDER = Path(__file__).parent / "font_files"

X_HEIGHT = 0.5
"""The x-height, in ems, that every family has at its own `scale`: between Times (0.45) and Arial (0.52)."""

_ACCENTED = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿĄąĆćČčĘęĚěŁłŃńŐőŒœŘřŚśŠšŮůŰűŸŹźŻżŽž"
_ASCII = "".join(map(chr, range(0x20, 0x7F)))

CHARACTERS = frozenset(_ASCII + _ACCENTED + "¡¢£¥§©ª«¬®°±²³µ¶·¹º»¼½¾¿×÷–—‘’‚“”„†‡•…‰‹›€™−←→≠≤≥■□▪●○◦▸☐☑☒✓✗")
"""What every serif, sans and mono face prints."""

HAND_CHARACTERS = frozenset(_ASCII + _ACCENTED + "¡£§©«®°±·»¿–—‘’‚“”„•…€™✓✗")
"""What every handwriting face prints."""


@dataclass(frozen=True, slots=True)
class FontFamily:
    """One family and its faces.

    Attributes:
        name: the family's name.
        kind: what it looks like; `hand` is handwriting.
        held_out: kept for benchmark pages: training never draws it.
        regular, bold, italic: the files; `bold` and `italic` are `regular` where the family has no such face.
        scale: factor on the font size, so that all families' small letters are equally tall (`X_HEIGHT`).
        weight: how often to draw the family, relative to the others of its kind.
    """

    name: str
    kind: Kind
    held_out: bool
    regular: Path
    bold: Path
    italic: Path
    scale: float
    weight: float

    @property
    def has_bold(self) -> bool:
        """Whether bold text differs from plain text."""
        return self.bold != self.regular

    @property
    def has_italic(self) -> bool:
        """Whether italic text differs from plain text."""
        return self.italic != self.regular


def _read(folder: Path) -> tuple[FontFamily, ...]:
    """The families that `folder`/fonts.json lists."""
    file = folder / "fonts.json"
    try:
        rows = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise OcriaError(
            f"the list of the page generator's fonts cannot be read: {error}",
            where=str(file),
            fix="reinstall the package",
        ) from error
    return tuple(
        FontFamily(
            name=row["name"],
            kind=row["kind"],
            held_out=row["held_out"],
            regular=folder / row["regular"],
            bold=folder / row.get("bold", row["regular"]),
            italic=folder / row.get("italic", row["regular"]),
            scale=row["scale"],
            weight=row["weight"],
        )
        for row in rows
    )


FAMILIES = _read(FOLDER)
"""All families, by kind and name."""


def families(held_out: bool, kind: str | None = None) -> tuple[FontFamily, ...]:
    """The families for training (`held_out` False) or for the benchmark (True), of one kind or of all.

    Raises:
        OcriaError: there is no such kind.
    """
    if kind is not None and kind not in get_args(Kind):
        raise OcriaError(f"there is no kind of font {kind!r}", where="kind", fix=f"one of {', '.join(get_args(Kind))}")
    return tuple(family for family in FAMILIES if family.held_out == held_out and kind in (None, family.kind))


def load(path: Path, size_px: float) -> ImageFont.FreeTypeFont:
    """The face at `path`, `size_px` pixels to the em (multiply by the family's `scale` before), with basic layout.

    The size is rounded to a quarter of a pixel: opening a face takes about half a millisecond, so faces are kept.

    Raises:
        OcriaError: the file is missing or is no font, or the size is not above 0.
    """
    return _opened(path, round(4 * size_px) / 4)


@functools.lru_cache(maxsize=2048)
def _opened(path: Path, size_px: float) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont

    try:
        return ImageFont.truetype(str(path), size_px, layout_engine=ImageFont.Layout.BASIC)
    except (OSError, ValueError) as error:
        raise OcriaError(
            f"the font cannot be loaded at {size_px} px: {error}", where=str(path), fix="reinstall the package"
        ) from error


@functools.lru_cache(maxsize=256)
def _printable(path: Path) -> frozenset[str]:
    """The characters that the face at `path` has a glyph for."""
    face = load(path, 16.0)
    blank = bytes(face.getmask("\U0010fffe"))  # a code point that no font has: the box for missing characters
    wanted = CHARACTERS | HAND_CHARACTERS
    return frozenset(c for c in wanted if c == " " or bytes(face.getmask(c)) != blank)


def missing(text: str, path: Path) -> set[str]:
    """Those characters of `text` that the face at `path` cannot print (line breaks count too)."""
    return set(text) - _printable(path)
