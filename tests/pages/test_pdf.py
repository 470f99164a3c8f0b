"""PDFs are drawn at the size that was asked for, and what cannot be drawn is refused with file, page and a way out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PIL import Image

from ocria_compress.errors import OcriaError
from ocria_compress.pages.pdf import MAX_PIXELS, page_count, render_page

pypdf = pytest.importorskip("pypdf")  # of the extra [dev]
pytest.importorskip("pypdfium2")


@pytest.fixture
def two_pages(tmp_path: Path) -> Path:
    """A red page of 4 x 5 inches and a blue one of 5 x 4."""
    path = tmp_path / "two.pdf"
    red, blue = Image.new("RGB", (400, 500), "red"), Image.new("RGB", (500, 400), "blue")
    red.save(path, save_all=True, append_images=[blue], resolution=100)
    return path


def blank(path: Path, width: float, height: float, password: str | None = None) -> Path:
    """A PDF of one blank page, points."""
    writer = pypdf.PdfWriter()
    writer.add_blank_page(width, height)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


def refusal(path: Path, index: int = 0, **options: object) -> OcriaError:
    with pytest.raises(OcriaError) as caught:
        render_page(path, index, **options)  # type: ignore[arg-type]
    assert caught.value.where and path.name in caught.value.where
    assert caught.value.fix
    return caught.value


def test_pages_have_the_size_and_content_that_were_asked_for(two_pages: Path) -> None:
    assert page_count(two_pages) == 2
    red = render_page(two_pages, 0, dpi=100)
    assert (red.mode, red.size, red.getpixel((200, 250))) == ("RGB", (400, 500), (254, 0, 0))
    blue = render_page(two_pages, 1, dpi=50)
    assert blue.size == (250, 200)
    assert max(abs(a - b) for a, b in zip(blue.getpixel((9, 9)), (0, 0, 255), strict=True)) <= 2  # type: ignore[arg-type]


def test_a_long_side_lowers_the_dpi(two_pages: Path) -> None:
    assert render_page(two_pages, 0, dpi=600, max_side=100).size == (80, 100)
    assert render_page(two_pages, 0, dpi=10, max_side=100).size == (40, 50)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "no such" in refusal(tmp_path / "none.pdf").what
    with pytest.raises(OcriaError, match="no such"):
        page_count(tmp_path / "none.pdf")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "set.pdf").mkdir()
    assert "folder" in refusal(tmp_path / "set.pdf").what


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "page.pdf").touch()
    assert "empty" in refusal(tmp_path / "page.pdf").what


@pytest.mark.parametrize("content", [b"hello", b"\x89PNG\r\n\x1a\n", bytes(4096)])
def test_not_a_pdf(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "page.pdf"
    path.write_bytes(content)
    assert "not a PDF" in refusal(path).what


def test_a_damaged_pdf(tmp_path: Path, two_pages: Path) -> None:
    path = tmp_path / "damaged.pdf"
    path.write_bytes(two_pages.read_bytes()[:200])
    assert "damaged" in refusal(path).what


def test_an_encrypted_pdf_needs_its_password(tmp_path: Path) -> None:
    path = blank(tmp_path / "locked.pdf", 144, 72, password="open sesame")
    assert "needs a password" in refusal(path).what
    assert "wrong" in refusal(path, password="sesame").what
    assert page_count(path, password="open sesame") == 1
    assert render_page(path, 0, dpi=72, password="open sesame").size == (144, 72)


def test_a_pdf_without_pages(tmp_path: Path) -> None:
    parts = [b"%PDF-1.4\n", b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"]
    parts.append(b"2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n")
    offsets = [len(parts[0]), len(parts[0]) + len(parts[1])]
    table = b"xref\n0 3\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % each for each in offsets)
    table += b"trailer<</Size 3/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % sum(map(len, parts))
    path = tmp_path / "none.pdf"
    path.write_bytes(b"".join(parts) + table)
    assert "no pages" in refusal(path).what


@pytest.mark.parametrize("index", [2, -1, 99])
def test_a_page_that_is_not_there(two_pages: Path, index: int) -> None:
    error = refusal(two_pages, index)
    assert f"no page {index + 1}" in error.what
    assert error.fix and "pages 1 to 2" in error.fix


def test_a_page_that_would_be_too_large_says_what_fits(tmp_path: Path) -> None:
    path = blank(tmp_path / "poster.pdf", 72 * 40, 72 * 30)
    error = refusal(path, dpi=200)
    assert "8000 x 6000" in error.what and "48.0 megapixels" in error.what and "30 megapixels" in error.what
    assert error.where == f"{path}, page 1"
    assert error.fix == "draw it at 158 dpi or less"
    width, height = render_page(path, 0, dpi=158).size
    assert width * height <= MAX_PIXELS
    assert render_page(path, 0, dpi=200, max_side=400).size == (400, 300)
    assert "0.01 megapixels" in refusal(path, dpi=10, max_pixels=10_000).what


def test_a_long_scroll_is_too_large(tmp_path: Path) -> None:
    error = refusal(blank(tmp_path / "scroll.pdf", 7, 14000), dpi=144)
    assert "28000" in error.what and error.fix == "draw it at 84 dpi or less"


def test_without_pypdfium2_the_extra_is_named(two_pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(OcriaError) as caught:
        page_count(two_pages)
    assert caught.value.fix == 'pip install "ocria-compress[pages]"'


def test_filled_in_form_fields_are_drawn(tmp_path: Path) -> None:
    objects = [
        b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]/DR<</Font<</F 5 0 R>>>>/NeedAppearances true>>>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Annots[4 0 R]>>",
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(HHHHHH)/Rect[10 10 190 90]/DA(/F 40 Tf 0 g)/F 4/P 3 0 R>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    content = b"%PDF-1.7\n"
    offsets = []
    for number, each in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj%sendobj\n" % (number, each)
    table = b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % each for each in offsets)
    path = tmp_path / "form.pdf"
    path.write_bytes(content + table + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(content))
    dark = sum(render_page(path, 0, dpi=72).convert("L").histogram()[:64])
    assert dark > 500
