"""What a page set is said to hold, and its contact sheets."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from ocria_compress.errors import OcriaError
from ocria_compress.pages.inspect import choose, summarize
from ocria_compress.pages.inspect_draw import draw_reference
from ocria_compress.pages.inspect_html import contact_html, to_html
from ocria_compress.pages.inspect_png import SIDE, contact_png
from ocria_compress.pages.pageset import PageSet
from ocria_compress.pages.pageset_write import NewPage, PageSetWriter
from tests.pages.makers import TABLE, image, pdf

RICH = "# Head\n\nA [note][^1] with $x_1$ & <b>bold</b>.\n\n1. one\n   - two\n\n"
RICH += f"{TABLE}\n\n$$\\frac{{a}}{{b}}$$\n\n[^1]: Note"


@pytest.fixture
def pages(tmp_path: Path) -> PageSet:
    """Five pages: two alike, one of a PDF, one with tests instead of a reference, one blank."""
    white, red = image(tmp_path / "white.png"), image(tmp_path / "red.jpg", (90, 200), "red")
    tests = {"tests": [{"id": "t1", "type": "present", "text": "a <b> & `c` * $x$", "checked": "verified"}]}
    with PageSetWriter(tmp_path / "set") as writer:
        for new in (
            NewPage("a", white, RICH, "made", "CC0-1.0", "test", {"language": "de", "strata": ["spans", "formulas"]}),
            NewPage("twin", white, RICH, "made", "CC0-1.0", "test", {"language": "en"}),
            NewPage("pdf", pdf(tmp_path / "p.pdf"), "plain", "made", "CC0-1.0", "test", page=1, dpi=72),
            NewPage("tests", red, None, "made", "MIT", "test", tests),
            NewPage("blank", red, "", "made", "MIT", "other", {"blank": True}),
        ):
            assert writer.add(new) == []
    return PageSet.load(tmp_path / "set")


def test_what_is_in_a_set_is_counted(pages: PageSet) -> None:
    seen: list[tuple[int, int]] = []
    summary = summarize(pages, lambda done, total: seen.append((done, total)))
    assert (summary.pages, summary.kinds, seen[-1]) == (5, {"PNG": 2, "JPG": 2, "of PDFs": 1}, (5, 5))
    assert (summary.widths.least, summary.heights.most) == (64, 200)
    assert summary.references == 4 and summary.characters and summary.characters.most == len(RICH)
    assert summary.contents["tables with spans"] == summary.contents["formulas"] == summary.contents["lists"] == 2
    assert summary.contents["tests instead of a reference"] == 1
    assert summary.said["licence"] == {"CC0-1.0": 3, "MIT": 2} and summary.said["language"] == {"de": 1, "en": 1}
    assert summary.said["strata"] == {"spans": 1, "formulas": 1}
    assert summary.same_reference == [["a", "twin"]] and summary.same_pixels == [["a", "twin"], ["tests", "blank"]]


def test_pages_are_chosen_all_over_the_set_or_by_name(pages: PageSet) -> None:
    assert [page.id for page in choose(pages, 2)] == ["a", "pdf"]
    assert len(choose(pages, 99)) == 5
    assert [page.id for page in choose(pages, 1, ["blank", "a"])] == ["blank", "a"]
    with pytest.raises(OcriaError, match="no page 'twins'") as caught:
        choose(pages, 1, ["twins"])
    assert "twin" in caught.value.what


class Tags(HTMLParser):
    """Sees that every element is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_sheet_as_html_has_every_image_beside_its_reference(pages: PageSet) -> None:
    html = contact_html(list(pages), "A <set>", "5 pages", 2)
    tags = Tags()
    tags.feed(html)
    assert tags.open == [] and tags.count["img"] == tags.count["section"] == 5
    assert "A &lt;set&gt;" in html and '<th colspan="2">Sum</th>' in html and "no reference; 1 test<" in html
    assert "present (text: a &lt;b&gt; &amp; `c` * $x$)" in html and "empty: a page without text" in html
    assert not re.search(r'(?:src|href)="(?!data:image/webp)', html), "nothing is loaded from elsewhere"
    first = re.search(r"base64,([^\"]+)", html)
    assert first and Image.open(io.BytesIO(base64.b64decode(first[1]))).size == (64, 48)


def test_a_reference_cannot_bring_a_script_into_the_sheet() -> None:
    table = "<table><tr><td><script>1</script></td></tr></table>"
    html = to_html(f'<script>alert(1)</script>\n\n<img src=x onerror="alert(1)">\n\n{table}')
    assert "<script" not in html and "<img" not in html and "&lt;script&gt;" in html


def test_the_sheet_as_image_shows_pages_as_they_are(pages: PageSet) -> None:
    sheet = contact_png(list(pages), 2)
    assert sheet.mode == "RGB" and sheet.width > 4 * SIDE
    red, green, _ = sheet.split()
    marked = ImageChops.subtract(red, green).point(lambda value: 255 if value > 220 else 0)
    assert marked.histogram()[255] > 2 * 90 * 200 * 0.9, "the two red pages"
    assert contact_png(list(pages), 1).width < sheet.width


def test_a_sheet_that_is_too_large_is_refused(pages: PageSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocria_compress.pages.inspect_png._MAX_PIXELS", 10_000)
    with pytest.raises(OcriaError, match="contact sheet of 5 pages") as caught:
        contact_png(list(pages))
    assert "--count" in str(caught.value.fix)


def ink(picture: Image.Image) -> tuple[int, int, int, int]:
    """The box around what is drawn."""
    box = picture.convert("L").point(lambda value: 255 if value < 200 else 0).getbbox()
    assert box
    return box


def test_a_reference_is_drawn_within_its_width() -> None:
    for text in (
        "word " * 60,
        "W" * 300,
        RICH,
        "| " + " | ".join(["Donaudampfschiff"] * 9) + " |\n" + "|---" * 9 + "|",
    ):
        picture = draw_reference(text, 300)
        assert picture.width == 300 and ink(picture)[2] <= 300
    assert draw_reference("one\n\ntwo\n\nthree", 300).height > draw_reference("one", 300).height


def test_a_cell_over_two_columns_is_as_wide_as_both() -> None:
    wide = draw_reference('<table><tr><td colspan="2">x</td></tr><tr><td>aaaa</td><td>bbbb</td></tr></table>', 300)
    lines = [x for x in range(wide.width) if wide.getpixel((x, 10)) == (176, 184, 194)]
    below = [x for x in range(wide.width) if wide.getpixel((x, wide.height - 20)) == (176, 184, 194)]
    assert len(lines) == 2 and len(below) == 3 and (lines[0], lines[-1]) == (below[0], below[-1])


def test_a_long_reference_is_cut_and_says_so() -> None:
    whole = draw_reference("line\n\n" * 100, 300)
    cut = draw_reference("line\n\n" * 100, 300, max_height=400)
    assert whole.height > 1000 and cut.height == 400
    assert ink(cut.crop((0, 372, 300, 400)))
