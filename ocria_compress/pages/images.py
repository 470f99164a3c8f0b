"""Opens the image of a page, or says why it cannot be read.

What is done to an image here (upright by its EXIF orientation, transparency over white, RGB) is what vLLM does to the
images it is sent, so that calibration, evaluation and serving see the same pixels.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ocria_compress.errors import OcriaError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF", "PPM", "JPEG2000", "AVIF")
"""Read in process by Pillow itself; others are refused (EPS, for one, would hand the file to Ghostscript)."""

MAX_SIDE = 16384
"""The longest side of a page image, in pixels: a longer one is a mistake, or a scroll that no model was trained on."""

MAX_PIXELS = 178_956_970
"""The largest page image, in pixels (Pillow's own limit for a decompression bomb; 0.5 GB as RGB)."""


def open_page(path: Path | str) -> Image.Image:
    """Reads one page image.

    Args:
        path: an image file in one of FORMATS; of several frames the first is read.

    Returns:
        The image, decoded whole, mode RGB, upright.

    Raises:
        OcriaError: the file is missing, a folder, empty, not readable, not an image, truncated, in a format with more
            than 8 bits a channel, longer than MAX_SIDE a side or larger than MAX_PIXELS.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    path = Path(path)
    _check_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                _check_size(path, *image.size)
                _check_depth(path, image.mode)
                image.load()
                return _rgb(ImageOps.exif_transpose(image))
    except UnidentifiedImageError as error:
        raise OcriaError(
            "this page is not an image in a format that is read here",
            where=str(path),
            fix=f"give an image of the page in one of: {', '.join(FORMATS)}",
        ) from error
    except Image.DecompressionBombError as error:
        raise _too_large(path, "more pixels than any page needs") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise OcriaError(
            f"this page image is damaged or cut short: {error}",
            where=str(path),
            fix="copy or render the image again",
        ) from error


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise OcriaError("this page is a folder, not an image", where=str(path), fix="give the path of one image file")
    if not path.exists():
        raise OcriaError("there is no such page image", where=str(path), fix="check the path")
    if not path.is_file():
        raise OcriaError("this page is not a regular file", where=str(path), fix="give the path of one image file")
    if path.stat().st_size == 0:
        raise OcriaError("this page image is empty (0 bytes)", where=str(path), fix="copy or render the image again")


def _check_size(path: Path, width: int, height: int) -> None:
    if max(width, height) > MAX_SIDE:
        raise _too_large(path, f"{width} x {height} pixels, where {MAX_SIDE} a side is the limit")
    if width * height > MAX_PIXELS:
        raise _too_large(path, f"{width} x {height} pixels, where {MAX_PIXELS:,} in all is the limit")


def _too_large(path: Path, size: str) -> OcriaError:
    return OcriaError(
        f"this page image is too large: {size}", where=str(path), fix="scale it down, or cut it into pages"
    )


def _check_depth(path: Path, mode: str) -> None:
    # Pillow clips these to 8 bits without a word, and the page would be read as a white sheet.
    if mode.startswith(("I", "F")):
        raise OcriaError(
            f"this page image has more than 8 bits a channel (Pillow mode {mode})",
            where=str(path),
            fix="save it as an 8-bit grey or RGB image",
        )


def _rgb(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode == "RGB":
        return image
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        paper = Image.new("RGB", layer.size, (255, 255, 255))
        paper.paste(layer, mask=layer.getchannel("A"))
        return paper
    return image.convert("RGB")
