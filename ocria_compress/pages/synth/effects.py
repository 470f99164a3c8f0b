"""What a scanner does to a page: a slight turn, blur, uneven light, contrast, noise, JPEG."""

from __future__ import annotations

import io
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image


def scanned(rng: Random, image: Image.Image, paper: int) -> Image.Image:
    """The page, mode L, with some of the effects, each drawn by chance.

    Training adds the same family of effects to whole batches on the GPU (tools/mini).

    Args:
        rng: where the draws come from; their order is part of the generator.
        image: the clean page, mode L.
        paper: the grey value that fills the corners of a turned page.
    """
    import numpy as np
    from PIL import Image, ImageFilter

    if rng.random() < 0.4:
        turn = rng.uniform(-0.8, 0.8)
        image = image.rotate(turn, Image.Resampling.BICUBIC, fillcolor=paper)
    if rng.random() < 0.25:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.7)))
    grey: Any = np.asarray(image, np.float32)
    if rng.random() < 0.3:
        across, down = rng.uniform(-14, 14), rng.uniform(-14, 14)
        grey = grey + across * np.linspace(-1, 1, grey.shape[1])[None]
        grey = grey + down * np.linspace(-1, 1, grey.shape[0])[:, None]
    if rng.random() < 0.3:
        grey = 128 + (grey - 128) * rng.uniform(0.75, 1.1) + rng.uniform(-10, 10)
    if rng.random() < 0.5:
        noise = np.random.default_rng(rng.getrandbits(32))
        grey = grey + noise.normal(0, rng.uniform(1, 9), grey.shape)
    return Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    """The page, mode L, after JPEG compression at `quality` (1 to 95)."""
    from PIL import Image

    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    buffer.seek(0)
    return Image.open(buffer).convert("L")
