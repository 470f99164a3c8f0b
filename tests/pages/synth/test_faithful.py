"""Pages printed by Chromium: on them is what the returned document says, in whole blocks, and nothing else."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth.document import (
    Cell,
    Chart,
    Columns,
    Document,
    Field,
    Fields,
    Formula,
    Furniture,
    Heading,
    Item,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Run,
    Stamp,
    Table,
    text,
    walk,
)
from ocria_compress.pages.synth.draw import Drawn
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.markdown import to_markdown

pdfium = pytest.importorskip("pypdfium2")

from ocria_compress.pages.synth.faithful import print_pages  # noqa: E402
from ocria_compress.pages.synth.faithful.charts import numbers  # noqa: E402
from ocria_compress.pages.synth.faithful.chromium import NAMES, Chromium, find_chromium  # noqa: E402


def _found() -> bool:
    try:
        find_chromium()
    except OcriaError:
        return False
    return True


needs_chromium = pytest.mark.skipif(
    not _found() and not os.environ.get("OCRIA_REQUIRE_CHROMIUM"),
    reason="no Chromium here (set OCRIA_REQUIRE_CHROMIUM to make that a failure)",
)

SENTENCE = "The efficient office near the river-bank paid 12.50 € on 3 May 2021; „Grüße“ were quoted."


def report() -> Document:
    return Document(
        (
            Heading(text("An Efficient Title"), 1, "center"),
            Paragraph(
                (
                    Run("A "),
                    Run("bold claim", "bold"),
                    Run(" and "),
                    Run("italic words", "italic"),
                    Run("1", "note"),
                    Run(", "),
                    Run("handwritten things", "hand"),
                    Run(" <tag> & more."),
                )
            ),
            Heading(text("Lists"), 2),
            ListBlock(
                (
                    Item(text("First")),
                    Item(text("Second"), ListBlock((Item(text("nested")), Item(text("again"))), True, 3, ")")),
                ),
                mark="■",
            ),
            Table(
                (
                    (Cell(text("Region"), 2, 1, True), Cell(text("Sales"), 1, 2, True, "center")),
                    (Cell(text("2020"), header=True), Cell(text("2021"), header=True)),
                    (Cell(text("North"), 2), Cell(text("1,200"), align="right"), Cell(text("1,310"), align="right")),
                    (Cell(text("900")), Cell()),
                ),
                shade=True,
            ),
            Lines((text("Acme GmbH"), text("Hauptstraße 5")), "right"),
            Notes((("1", text("See the annex.")), ("2", text("A note without a marker.")))),
        ),
        Furniture("Acme quarterly", "Page 3", "DRAFT"),
        template="report",
    )


def form(layout: str, columns: int) -> Document:
    fields = (
        Field("Name", "Anna Müller", True),
        Field("Date", "3 May 2021"),
        Field("Signature", ""),
        Field("City", "Köln"),
    )
    stamp = Stamp(("PAID", "IN FULL"), turn=-5.0)
    return Document((Fields(fields, True, layout, columns), stamp, Paragraph(text(SENTENCE))))  # type: ignore[arg-type]


def chart(kind: str, series: int) -> Document:
    names = ("Oslo", "Rome", "Paris")[:series]
    values = (("12.5", "18.0", "-7.5"), ("14.25", "16.0", "9.5"), ("9.75", "11.0", "10.5"))
    block = Chart(
        kind,  # type: ignore[arg-type]
        "Output of plants",
        "Plant",
        ("North", "South", "East"),
        tuple(zip(names, values, strict=False)),
    )
    return Document((block, Paragraph(text(SENTENCE))))


def two_columns() -> Document:
    left = (
        Paragraph(text(" ".join([SENTENCE] * 3))),
        Paragraph((Run("With a note."), Run("1", "note"))),
        Notes((("1", text("In the left column.")),)),
    )
    right = (Heading(text("Right"), 3), Paragraph(text(" ".join(["Other words stand here."] * 30))))
    return Document((Heading(text("Two")), Columns((left, right), rule=True)))


def long_page() -> Document:
    items = tuple(Item(text(f"Item {number}. {SENTENCE}")) for number in range(40))
    return Document((Heading(text("Long")), Paragraph(text(SENTENCE)), ListBlock(items), Paragraph(text("Gone."))))


def long_table() -> Document:
    rows: list[tuple[Cell, ...]] = [(Cell(text("Key"), header=True), Cell(text("Value"), header=True))]
    for number in range(40):
        rows.append((Cell(text(f"Group {number}"), rowspan=2), Cell(text(f"{number}.1"))))
        rows.append((Cell(text(f"{number}.2")),))
    return Document((Table(tuple(rows)), Paragraph(text("Gone."))))


DOCUMENTS = {
    "report": report(),
    **{f"form-{layout}-{n}": form(layout, n) for layout in ("behind", "column", "boxes") for n in (1, 2)},
    **{f"chart-{kind}-{n}": chart(kind, n) for kind in ("bar", "hbar", "line") for n in (1, 3)},
    "two-columns": two_columns(),
    "long-page": long_page(),
    "long-table": long_table(),
}
LOOKS = {name: Look.for_tests(640, 860) for name in DOCUMENTS}
DRAWN_LOOKS = {
    f"{name} {seed}": (document, Look.draw(Random(seed), 530 + 37 * seed, 811 + 10 * seed, columns=2))
    for name, document in DOCUMENTS.items()
    for seed in range(3)
}


class Printed:
    """Every document in several looks: one browser, one PDF."""

    def __init__(self, folder: Path) -> None:
        self.jobs = {name: (document, LOOKS[name]) for name, document in DOCUMENTS.items()} | DRAWN_LOOKS
        self.drawn = dict(zip(self.jobs, print_pages(list(self.jobs.values()), keep=folder), strict=True))
        self.pdf = pdfium.PdfDocument(folder / "pages-0000.pdf")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    return Printed(tmp_path_factory.mktemp("printed"))


def reference_words(document: Document) -> Counter[str]:
    content = re.sub(r"</?(table|tr|td|th)( (row|col)span=\"\d+\")*>", " ", to_markdown(document))
    content = re.sub(r"\[\^(\d+)\]:?", r" \1 ", content).replace("*", "")
    furniture = document.furniture
    return words(" ".join([content, furniture.head, furniture.foot, furniture.watermark]))


def words(content: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", content))


@needs_chromium
def test_the_words_on_each_page_are_those_of_its_reference(printed: Printed) -> None:
    for index, (name, drawn) in enumerate(printed.drawn.items()):
        found = printed.pdf[index].get_textpage().get_text_bounded()
        reference = reference_words(drawn.document)
        assert Counter("".join(words(found).elements())) == Counter("".join(reference.elements())), name
        if not drawn.document.furniture.watermark:  # with turned text, PDFium does not find the spaces
            assert words(found) == reference, name


@needs_chromium
def test_the_tests_look_prints_the_short_documents_whole(printed: Printed) -> None:
    for name, document in DOCUMENTS.items():
        if not name.startswith(("long", "report")):
            assert printed.drawn[name].document == document, name
    # Of the report, a footnote that nothing refers to is left out.
    shown = printed.drawn["report"].document
    assert shown.blocks[:-1] == report().blocks[:-1]
    assert shown.blocks[-1] == Notes((("1", text("See the annex.")),))


@needs_chromium
def test_images_are_as_large_as_the_look_says_and_nothing_touches_their_edges(printed: Printed) -> None:
    for name, drawn in printed.drawn.items():
        _, look = printed.jobs[name]
        image = drawn.image
        assert (image.mode, image.size) == ("RGB", (look.width, look.height))
        wide, high = image.size
        for edge in ((0, 0, wide, 1), (0, high - 1, wide, high), (0, 0, 1, high), (wide - 1, 0, wide, high)):
            colors = image.crop(edge).getcolors()
            assert colors is not None and [color for _, color in colors] == [look.paper], name
        for _, (left, top, right, bottom) in drawn.blocks:
            assert left >= look.left - 1 and right <= wide - look.right + 1, name
            assert top >= look.top - 1 and bottom <= high - look.bottom + 1, name


@needs_chromium
def test_every_block_of_the_document_has_its_box(printed: Printed) -> None:
    for name, drawn in printed.drawn.items():
        leaves = [block for block in walk(drawn.document.blocks) if not isinstance(block, Columns)]
        assert [block for block, _ in drawn.blocks] == leaves, name
        assert all(right > left and bottom > top for _, (left, top, right, bottom) in drawn.blocks), name


@needs_chromium
def test_a_list_that_is_too_long_ends_at_the_end_of_an_item(printed: Printed) -> None:
    for name in ("long-page", "long-page 0", "long-page 1", "long-page 2"):
        heading, paragraph, items = printed.drawn[name].document.blocks
        wanted = long_page().blocks
        assert (heading, paragraph) == wanted[:2]
        assert isinstance(items, ListBlock) and isinstance(wanted[2], ListBlock)
        assert 1 <= len(items.items) < 40 and items.items == wanted[2].items[: len(items.items)]


@needs_chromium
def test_a_table_that_is_too_long_ends_where_no_cell_crosses(printed: Printed) -> None:
    for name in ("long-table", "long-table 0", "long-table 1", "long-table 2"):
        (table,) = printed.drawn[name].document.blocks
        assert isinstance(table, Table)
        assert 3 <= len(table.rows) < 81 and len(table.rows) % 2 == 1
        left = printed.jobs[name][1].height - printed.jobs[name][1].bottom - printed.drawn[name].blocks[0][1][3]
        assert left < 4 * printed.jobs[name][1].leading  # about two rows with their padding


def one(document: Document, look: Look | None = None) -> Drawn:
    return print_pages([(document, look or Look.for_tests())])[0]


@needs_chromium
def test_formulas_are_set_and_the_rest_goes_on() -> None:
    inline = Paragraph((Run("Since "), Run(r"\frac{a}{b} < \alpha_1", "formula"), Run(", it holds.")))
    document = Document((inline, Formula(r"\int_0^1 x^2\,dx = \frac{1}{3}"), Paragraph(text("Done."))))
    drawn = one(document)
    assert drawn.document == document
    _, formula, _ = (box for _, box in drawn.blocks)
    dark = drawn.image.crop(tuple(map(round, formula))).convert("L").point(lambda value: 255 * (value < 128))  # type: ignore[arg-type]
    assert dark.histogram()[255] > 100


@needs_chromium
def test_a_formula_that_katex_cannot_set_is_named() -> None:
    broken = Document((Formula(r"\frac{a}{"),), template="broken")
    with pytest.raises(OcriaError) as caught:
        print_pages([(report(), Look.for_tests()), (broken, Look.for_tests())])
    assert r"\frac{a}{" in caught.value.what.replace("\\\\", "\\")
    assert caught.value.where and "document 2" in caught.value.where and "broken" in caught.value.where
    assert caught.value.fix


@needs_chromium
def test_a_block_wider_than_the_page_is_skipped_and_a_heading_never_ends_a_page() -> None:
    wide = Table(((Cell(text("W" * 90)), Cell(text("x"))),))
    assert one(Document((wide, Paragraph(text("After."))))).document.blocks == (Paragraph(text("After.")),)
    tall = Paragraph(text(" ".join([SENTENCE] * 80)))
    drawn = one(Document((Paragraph(text("Before.")), Heading(text("Alone"), 2), tall)))
    assert drawn.document.blocks == (Paragraph(text("Before.")),)
    assert one(Document((tall,))).document.blocks == ()


@needs_chromium
def test_a_marker_whose_note_does_not_fit_is_taken_away() -> None:
    notes = Notes((("1", text(" ".join([SENTENCE] * 60))),))
    drawn = one(Document((Paragraph((Run("Marked"), Run("1", "note"))), notes)))
    assert to_markdown(drawn.document) == "Marked"


@needs_chromium
def test_the_same_pages_come_out_again() -> None:
    jobs = list(DRAWN_LOOKS.values())[::5]
    with Chromium() as browser:
        first, second = print_pages(jobs, browser=browser), print_pages(jobs, batch=2, browser=browser)
    for one, other in zip(first, second, strict=True):
        assert one.document == other.document
        assert one.image.tobytes() == other.image.tobytes()


def test_no_jobs_need_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert print_pages([]) == []


def test_without_chromium_it_says_where_it_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OCRIA_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OcriaError) as caught:
        one(report())
    assert caught.value.where and all(name in caught.value.where for name in ("OCRIA_CHROMIUM", *NAMES))
    assert caught.value.fix and "apt install chromium" in caught.value.fix
    monkeypatch.setenv("OCRIA_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(OcriaError) as caught:
        one(report())
    assert caught.value.where == "OCRIA_CHROMIUM=/nowhere/chromium"


def fake(tmp_path: Path, script: str) -> Path:
    program = tmp_path / "chromium"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_a_browser_that_stops_is_told_with_its_last_words(tmp_path: Path) -> None:
    program = fake(tmp_path, "echo 'no usable sandbox' >&2; exit 1")
    with pytest.raises(OcriaError, match="no usable sandbox") as caught, Chromium(program):
        pass
    assert caught.value.where == str(program) and "stopped" in caught.value.what


def test_a_browser_that_hangs_is_given_up(tmp_path: Path) -> None:
    program = fake(tmp_path, "exec sleep 60")
    with pytest.raises(OcriaError, match=r"took longer than 0\.3 s"), Chromium(program, timeout_s=0.3):
        pass


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["12.5", "1.250"], [12.5, 1.25]),
        (["1.250", "980"], [1250, 980]),
        (["1.234,50 €", "980,00 €"], [1234.5, 980]),
        (["$1,234.5", "-3 %", "−4", "(5)", "n/a", ""], [1234.5, -3, -4, -5, 0, 0]),
    ],
)
def test_printed_values_are_read(values: list[str], expected: list[float]) -> None:
    assert numbers(values) == expected
