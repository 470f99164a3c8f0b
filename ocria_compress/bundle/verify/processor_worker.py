"""Run in a process of its own: what two model folders' processors make of one page, as JSON on standard output.

Usage: python -m ocria_compress.bundle.verify.processor_worker RESULT [SOURCE] IMAGE
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from ocria_compress.errors import OcriaError


def look(folder: str, image_path: str) -> dict[str, Any]:
    """The prompt as text, and token ids, pixel values and grid of the page, as counts, shapes and hashes."""
    from ocria_compress.pages.images import open_page
    from ocria_compress.pages.prompt import Reader

    try:
        reader = Reader(folder)
        batch = reader.encode(open_page(image_path))
        return {
            "prompt": reader.prompt_text,
            "ids": batch["input_ids"].flatten().tolist(),
            "grid": batch["image_grid_thw"].tolist(),
            "pixels": hashlib.sha256(batch["pixel_values"].contiguous().float().numpy().tobytes()).hexdigest(),
            "pixels_shape": list(batch["pixel_values"].shape),
        }
    except OcriaError as error:
        return {"error": error.what, "fix": error.fix}


def main(arguments: list[str]) -> None:
    """Looks at each folder in turn."""
    *folders, image = arguments
    found = [look(folder, image) for folder in folders]
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
