"""What the tests of page sets are made of: small images, PDFs written by hand, sets of three pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from ocria_compress.pages.page_record import MANIFEST

TABLE = '<table>\n<tr><th colspan="2">Sum</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>'
"""A table as references write it."""


def image(path: Path, size: tuple[int, int] = (64, 48), color: str = "white") -> Path:
    """An image of one colour; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)
    return path


def pdf(path: Path, pages: Sequence[tuple[float, float]] = ((144, 72),), locked: bool = False) -> Path:
    """A PDF of blank pages, sizes in points; `locked` with a password that no one knows."""
    kids = " ".join(f"{3 + i} 0 R" for i in range(len(pages)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    objects += [f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {w} {h}] >>" for w, h in pages]
    if locked:
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'5a' * 32}> /U <{'a5' * 32}> >>")
    text, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(text))
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    trailer = f"/Size {len(objects) + 1} /Root 1 0 R"
    if locked:
        trailer += f" /Encrypt {len(objects)} 0 R /ID [<{'00' * 16}> <{'00' * 16}>]"
    text += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< {trailer} >>\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + f"startxref\n{text.index('xref')}\n%%EOF\n", "ascii")
    return path


def sha256(path: Path) -> str:
    """Of a file, hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def three_pages(folder: Path) -> list[dict[str, Any]]:
    """Three pages in `folder` and their records; the third has no reference. `write` makes a set of them."""
    made: list[dict[str, Any]] = []
    for i in range(3):
        file = folder / f"{i}.png"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8 + i, 4), 40 * i).save(file)
        (folder / f"{i}.md").write_text(f"# Page {i}\r\n", "utf-8", newline="")
        made.append(
            {
                "id": f"page-{i}",
                "image": file.name,
                "reference": f"{i}.md" if i < 2 else None,
                "source": "drawn for a test",
                "licence": "CC0-1.0",
                "split": "test",
                "sha256": sha256(file),
                "width": 8 + i,
                "height": 4,
            }
        )
    (folder / "2.md").unlink()
    made[1]["meta"] = {"seed": 7}
    return made


def write(folder: Path, records: list[dict[str, Any]]) -> Path:
    """The manifest of these records."""
    (folder / MANIFEST).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, to see that nothing changed."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
