"""Draws a bundled page beside what a checkpoint reads on it in vLLM: the picture of the README.

python -m tools.draw_reading exports/mini-fp8 --page 002 --out docs/images/reading.png
"""

from __future__ import annotations

import argparse
import tempfile
import textwrap
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from ocria_compress.evaluate.ned import normalized_edit_distance
from ocria_compress.pages.images import open_page
from ocria_compress.pages.pageset import Page, PageSet

FONTS = Path(__file__).resolve().parent.parent / "ocria_compress" / "pages" / "synth" / "fonts"
SIZE, LINE, GAP, COLUMNS = 13, 18, 24, 78


def read(folder: Path, page: Page) -> str:
    """What vLLM reads on a page with this checkpoint, greedily."""
    from ocria_compress.pages.prompt import Reader
    from ocria_compress.serving.client import VllmWorker
    from ocria_compress.serving.protocol import PageRequest

    prompt = Reader(folder).prompt_text
    with tempfile.TemporaryDirectory() as logs, VllmWorker(folder, log=Path(logs) / "vllm.log") as worker:
        (result,) = worker.read_pages([PageRequest(page.id, str(page.image), prompt, 512)])
    return result.text


def draw(image: Image.Image, text: str, title: str) -> Image.Image:
    """The page on the left, the text on the right, what it is above."""
    plain = ImageFont.truetype(FONTS / "LiberationMono-Regular.ttf", SIZE)
    bold = ImageFont.truetype(FONTS / "LiberationSans-Bold.ttf", SIZE + 1)
    lines = [part for line in text.splitlines() for part in (textwrap.wrap(line, COLUMNS) or [""])]
    width = round(plain.getlength("m" * COLUMNS))
    height = max(image.height, len(lines) * LINE) + 3 * GAP
    sheet = Image.new("RGB", (image.width + width + 3 * GAP, height), "white")
    pen = ImageDraw.Draw(sheet)
    pen.text((GAP, GAP // 2), "the page", font=bold, fill="black")
    pen.text((image.width + 2 * GAP, GAP // 2), title, font=bold, fill="black")
    sheet.paste(image, (GAP, 2 * GAP - LINE // 2))
    pen.rectangle(
        (GAP - 1, 2 * GAP - LINE // 2 - 1, GAP + image.width, 2 * GAP - LINE // 2 + image.height), outline="gray"
    )
    for i, line in enumerate(lines):
        pen.text((image.width + 2 * GAP, 2 * GAP - LINE // 2 + i * LINE), line, font=plain, fill="black")
    return sheet


def main() -> None:
    """Parses, reads, draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--page", default="002", help="id of a bundled evaluation page")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    page = next(p for p in PageSet.load("eval") if p.id == options.page)
    text = read(options.checkpoint, page)
    distance = normalized_edit_distance(text, page.reference or "")
    title = f"what {options.checkpoint.name} reads on it in vLLM (normalized edit distance {distance:.3f})"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    draw(open_page(page.image), text, title).quantize(64).save(options.out, optimize=True)
    print(f"{options.out}: {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
