"""A folder of PDFs: every page a page; references from `.md` files of the same name.

`NAME.md` belongs to a PDF of one page; of a longer one page 3 has its reference in `NAME_p3.md` or `NAME_pg3.md`.
"""

from __future__ import annotations

from pathlib import Path

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import Items, Options, check_whole, files_below, page_id, read_text

ORIGIN = ""
LICENCE = ("", "")


def matches(source: Path) -> bool:
    """Whether there are PDFs."""
    return bool(_pdfs(source))


def _pdfs(source: Path) -> list[Path]:
    if source.is_file():
        return [source] if source.suffix.lower() == ".pdf" else []
    return files_below(source, (".pdf",))


def read(source: Path, options: Options) -> Items:
    """Every page of every PDF, in the order of their names."""
    root = source if source.is_dir() else source.parent
    items: Items = []
    used: set[Path] = set()
    for pdf in _pdfs(source):
        try:
            items += _pages(pdf, root, options, used)
        except OcriaError as error:
            items.append(error)
    return items + _left_over(source, options, used)


def _pages(pdf: Path, root: Path, options: Options, used: set[Path]) -> Items:
    from ocria_compress.pages.pdf import page_count

    check_whole(pdf)
    pages = page_count(pdf)
    relative = str(pdf.relative_to(root))
    items: Items = []
    for page in range(1, pages + 1):
        names = [f"{pdf.stem}_p{page}.md", f"{pdf.stem}_pg{page}.md"] + [f"{pdf.stem}.md"] * (pages == 1)
        found = _find(pdf, names, options)
        used |= set(found)
        if len(found) > 1:
            both = " and ".join(str(path) for path in found)
            items.append(OcriaError(f"page {page} has two references: {both}", where=str(pdf), fix="keep one"))
            continue
        reference = read_text(found[0]) if found else None
        name = page_id(relative, page, pages)
        origin = f"{found[0] if found else pdf}"
        items.append(options.page(name, pdf, relative, reference, page, origin=origin))
    if pages > 1:
        for path in _find(pdf, [f"{pdf.stem}.md"], options):
            used.add(path)
            items.append(
                OcriaError(
                    f"this reference is of a PDF of {pages} pages, and a page needs one of its own",
                    where=str(path),
                    fix=f"write {pdf.stem}_p1.md to {pdf.stem}_p{pages}.md",
                )
            )
    return items


def _find(pdf: Path, names: list[str], options: Options) -> list[Path]:
    folders = [pdf.parent] + ([options.references] if options.references else [])
    return [path for name in names for folder in folders if (path := folder / name).is_file()]


def _left_over(source: Path, options: Options, used: set[Path]) -> Items:
    """References without a page: with a folder of their own each of them must belong to one."""
    folders = ([source] if source.is_dir() else []) + ([options.references] if options.references else [])
    left = {path for folder in folders for path in files_below(folder, (".md",))} - used
    return [
        OcriaError(
            "this reference belongs to no page of a PDF", where=str(path), fix="remove the reference, or add its PDF"
        )
        for path in sorted(left)
    ]
