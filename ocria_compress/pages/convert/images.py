"""A folder of images, each a page; references from `.md` or `.txt` files of the same name.

Of `scan.png` the reference is in `scan.md`, `scan.txt` or `scan.gold.txt`, beside it or in the folder of references.
"""

from __future__ import annotations

from pathlib import Path

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import (
    IMAGES,
    Items,
    Options,
    check_whole,
    files_below,
    page_id,
    read_text,
)

ORIGIN = ""
LICENCE = ("", "")
_TEXTS = (".md", ".txt", ".gold.txt")


def matches(source: Path) -> bool:
    """Whether there are images."""
    return bool(_images(source))


def _images(source: Path) -> list[Path]:
    if source.is_file():
        return [source] if source.suffix.lower() in IMAGES else []
    return files_below(source, IMAGES)


def read(source: Path, options: Options) -> Items:
    """Every image, in the order of their names."""
    root = source if source.is_dir() else source.parent
    items: Items = []
    used: set[Path] = set()
    for image in _images(source):
        found = _texts(image, options)
        used |= set(found)
        relative = str(image.relative_to(root))
        try:
            if len(found) > 1:
                both = " and ".join(str(path) for path in found)
                raise OcriaError(f"this page has two references: {both}", where=str(image), fix="keep one")
            check_whole(image)
            text = read_text(found[0]) if found else None
        except OcriaError as error:
            items.append(error)
            continue
        meta = {"plain_text": True} if found and found[0].suffix == ".txt" else {}
        origin = str(found[0] if found else image)
        items.append(options.page(page_id(relative), image, relative, text, meta=meta, origin=origin))
    folders = ([source] if source.is_dir() else []) + ([options.references] if options.references else [])
    left = {path for folder in folders for path in files_below(folder, (".md", ".txt"))} - used
    return items + [
        OcriaError("this reference belongs to no image", where=str(path), fix="remove the reference, or add its image")
        for path in sorted(left)
    ]


def _texts(image: Path, options: Options) -> list[Path]:
    folders = [image.parent] + ([options.references] if options.references else [])
    return [path for folder in folders for end in _TEXTS if (path := folder / f"{image.stem}{end}").is_file()]
