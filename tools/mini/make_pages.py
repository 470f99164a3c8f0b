"""Makes the bundled page sets `calibration` and `eval` out of the synthetic page generator.

    python -m tools.mini.make_pages calibration --out calibration
    python -m tools.mini.make_pages eval --out eval

Seeds are disjoint: `eval` uses 900,000 and on, `calibration` 2,000,000,000 and on; training of `mini` used
10**12 and on, its tokenizer 10,000,000 and on and 0 to 299. Each image is stored as the smaller of an optimized grey
PNG and a grey JPEG of quality 80.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.pages import synth
from ocria_compress.pages.pageset import MANIFEST

if TYPE_CHECKING:
    from PIL import Image

JPEG_QUALITY = 80


class Plan(NamedTuple):
    """A bundled set: the seed of its first page, and how many pages it has."""

    first_seed: int
    pages: int


PLANS = {"calibration": Plan(2_000_000_000, 16), "eval": Plan(900_000, 64)}


def smallest_file(image: Image.Image) -> tuple[str, bytes]:
    """The file ending and content of the smaller of PNG and JPEG, for an image of mode L."""
    png, jpeg = io.BytesIO(), io.BytesIO()
    image.save(png, "PNG", optimize=True)
    image.save(jpeg, "JPEG", quality=JPEG_QUALITY, optimize=True)
    if len(png.getvalue()) <= len(jpeg.getvalue()):
        return "png", png.getvalue()
    return "jpg", jpeg.getvalue()


def make_page(split: str, index: int, encode: synth.Encode, out: Path) -> dict[str, Any]:
    """Writes the image and reference of one page; returns its line of the manifest."""
    seed = PLANS[split].first_seed + index
    height, width = synth.SIZES[index % len(synth.SIZES)]
    limit = synth.max_tokens(height, width)
    page = synth.sample(seed, height, width, encode, limit, effects=True)
    ending, content = smallest_file(page.image)
    name = f"{index:03d}"
    (out / f"{name}.{ending}").write_bytes(content)
    (out / f"{name}.md").write_text(page.markdown, "utf-8", newline="\n")
    return {
        "id": name,
        "image": f"{name}.{ending}",
        "reference": f"{name}.md",
        "source": f"ocria_compress.pages.synth, seed {seed}",
        "licence": "Apache-2.0",
        "split": split,
        "sha256": hashlib.sha256(content).hexdigest(),
        "width": width,
        "height": height,
        "meta": {
            "seed": seed,
            "table": "<table>" in page.markdown,
            "max_tokens": limit,
            "tokens": len(page.ids or []) + 1,
            "effects": True,
        },
    }


def make_set(split: str, out: Path) -> None:
    """Writes the page set `split` into `out`: images, references, then the manifest.

    Raises:
        OcriaError: `out` holds a page set already.
    """
    from tokenizers import Tokenizer

    if (out / MANIFEST).exists():
        raise OcriaError("there is a page set already", where=str(out), fix="remove it, or give another folder")
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(mini_folder() / "tokenizer.json"))

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text).ids

    records = [make_page(split, index, encode, out) for index in range(PLANS[split].pages)]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    (out / MANIFEST).write_text(lines, "utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes a bundled page set.")
    parser.add_argument("split", choices=sorted(PLANS))
    parser.add_argument("--out", type=Path, required=True, help="the folder to write into")
    arguments = parser.parse_args()
    try:
        make_set(arguments.split, arguments.out)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
