"""A page image as patches, the way the model's image processor makes them, with NumPy and Pillow only."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from PIL import Image

PATCH, FACTOR = 16, 32
LEAST_PIXELS, MOST_PIXELS = 4 * 32 * 32, 1024 * 1024
"""`size` of the preprocessor_config.json that build_tokenizer.py writes."""

VALUES = PATCH * PATCH * 3


def fitted_size(height: int, width: int) -> tuple[int, int]:
    """The height and width that Qwen's image processors resize a page to (their `smart_resize`).

    Raises:
        ValueError: one side is more than 200 times the other.
    """
    if max(height, width) > 200 * min(height, width):
        raise ValueError(f"a page of {width} x {height} pixels: the sides are in a ratio over 200")
    fitted = [round(side / FACTOR) * FACTOR for side in (height, width)]
    pixels = fitted[0] * fitted[1]
    if pixels > MOST_PIXELS:
        by = math.sqrt(height * width / MOST_PIXELS)
        fitted = [max(FACTOR, math.floor(side / by / FACTOR) * FACTOR) for side in (height, width)]
    elif pixels < LEAST_PIXELS:
        by = math.sqrt(LEAST_PIXELS / (height * width))
        fitted = [math.ceil(side * by / FACTOR) * FACTOR for side in (height, width)]
    return fitted[0], fitted[1]


def resized(pixels: np.ndarray) -> np.ndarray:
    """[H, W, 3] uint8 -> the same page with sides that are multiples of 32, bicubic as in the processor."""
    height, width = pixels.shape[:2]
    size = fitted_size(height, width)
    if size == (height, width):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((size[1], size[0]), Image.Resampling.BICUBIC))


def patchify(pixels: np.ndarray, out: np.ndarray) -> tuple[int, int]:
    """Writes a page's patches into the front of `out`.

    Args:
        pixels: [H, W, 3] uint8, sides multiples of 32.
        out: [at least H * W / 256, 768] uint8; a patch is 16 rows of 16 pixels of 3 colours. Four patches that become
            one image token lie together.

    Returns:
        Rows and columns of patches.
    """
    rows, columns = pixels.shape[0] // PATCH, pixels.shape[1] // PATCH
    split = pixels.reshape(rows // 2, 2, PATCH, columns // 2, 2, PATCH, 3).transpose(0, 3, 1, 4, 2, 5, 6)
    out[: rows * columns].reshape(split.shape)[...] = split
    return rows, columns


@lru_cache(maxsize=2048)
def places(rows: int, columns: int) -> np.ndarray:
    """[4, patches] int16: each patch's row and column, and the page's rows and columns, in the order of `patchify`."""
    row, column = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")

    def ordered(numbers: np.ndarray) -> np.ndarray:
        return numbers.reshape(rows // 2, 2, columns // 2, 2).transpose(0, 2, 1, 3).ravel()

    fixed = np.ones(rows * columns)
    return np.stack([ordered(row), ordered(column), fixed * rows, fixed * columns]).astype(np.int16)
