"""opendataloader-bench: a Markdown file a document in `ground-truth/markdown/`, PDFs of one page in `pdfs/`."""

from __future__ import annotations

from pathlib import Path

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import Items, Options, existing, read_text

ORIGIN = "opendataloader-bench"
LICENCE = ("MIT", "the documents come from DP-Bench (MIT) and others: see its THIRD_PARTY_NOTICES")


def matches(source: Path) -> bool:
    """Whether there is a folder `ground-truth/markdown`."""
    return (source / "ground-truth" / "markdown").is_dir()


def read(source: Path, options: Options) -> Items:
    """The documents in the order of their names."""
    items: Items = []
    texts = {path.stem: path for path in sorted((source / "ground-truth" / "markdown").glob("*.md"))}
    for name, path in texts.items():
        try:
            pdf = existing(source, f"{name}.pdf", str(path), "pdfs")
            items.append(options.page(name, pdf, f"{name}.pdf", read_text(path), _only(pdf), origin=str(path)))
        except OcriaError as error:
            items.append(error)
    left = [pdf for pdf in sorted((source / "pdfs").glob("*.pdf")) if pdf.stem not in texts]
    return items + [OcriaError("this document has no reference", where=str(pdf)) for pdf in left]


def _only(pdf: Path) -> int:
    from ocria_compress.pages.pdf import page_count

    pages = page_count(pdf)
    if pages != 1:
        raise OcriaError(f"this document has {pages} pages and one reference", where=str(pdf))
    return 1
