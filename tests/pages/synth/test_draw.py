"""Drawing documents: what is drawn is what the returned document says, inside the page, nothing over anything else."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from ocria_compress.pages.synth.document import (
    Block,
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
    Text,
    text,
    walk,
)
from ocria_compress.pages.synth.draw import Drawn, Look, draw
from ocria_compress.pages.synth.draw.charts import number
from ocria_compress.pages.synth.draw.colors import LEAST_TEXT_CONTRAST, MOST_WATERMARK_CONTRAST, contrast
from ocria_compress.pages.synth.draw.marks import Mark, Picture, TextMark, Turned
from ocria_compress.pages.synth.draw.tables import grid
from ocria_compress.pages.synth.draw.visible import note_markers, note_texts

SIZES = [(448, 448), (640, 800), (1000, 1300)]
TEXT = "the river report of water energy system change public method value small century market Über façade first"
WORDS = TEXT.split(" ")


def words_of(rng: Random, least: int, most: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def paragraph(rng: Random, notes: list[tuple[str, Text]]) -> Paragraph:
    runs = [Run(words_of(rng, 5, 25) + " ")]
    runs.append(Run(words_of(rng, 1, 3), rng.choice(["plain", "bold", "italic"])))
    if rng.random() < 0.3:
        runs += [Run(" "), Run(r"x_i^2 = \frac{a}{b}", "formula"), Run(" " + words_of(rng, 1, 5))]
    if rng.random() < 0.4:
        notes.append((str(len(notes) + 1), text(words_of(rng, 3, 12))))
        runs.append(Run(notes[-1][0], "note"))
    return Paragraph((*runs, Run(".")), rng.choice(["left", "justify", "center", "right"]))


def a_list(rng: Random, depth: int = 0) -> ListBlock:
    items = tuple(
        Item(text(words_of(rng, 1, 9)), a_list(rng, depth + 1) if depth < 2 and rng.random() < 0.3 else None)
        for _ in range(rng.randint(2, 4))
    )
    ordered = rng.random() < 0.5
    return ListBlock(items, ordered, rng.choice([1, 8]), rng.choice(".)") if ordered else rng.choice("•–■"))


def header(content: str, rowspan: int = 1, colspan: int = 1) -> Cell:
    return Cell(text(content), rowspan, colspan, True, "center")


def table(rng: Random, body: int = 5) -> Table:
    """Two header rows with spans, groups of rows, a cell across columns, empty cells."""
    rows = [(header("Group", rowspan=2), header("Item", rowspan=2), header("Both halves", colspan=2))]
    rows.append((header("Q1"), header("Q2")))
    for row in range(body):
        cells = [Cell(text(words_of(rng, 1, 4))), Cell(text(str(rng.randint(1, 9999))), align="right")]
        cells.append(Cell(() if rng.random() < 0.2 else text("12.5"), align="right"))
        if row % 2 == 0:
            cells.insert(0, Cell(text(words_of(rng, 1, 2)), rowspan=min(2, body - row)))
        rows.append(tuple(cells))
    rows.append((Cell(text("Total"), colspan=3), Cell(text("99"), align="right")))
    return Table(tuple(rows), rng.choice(["grid", "rows", "head", "none"]), rng.random() < 0.5, rng.random() < 0.5)


def fields(rng: Random) -> Fields:
    hand = rng.random() < 0.5
    made = [("Name", "Anna Kovacs"), ("Date of birth", "12.03.1987"), ("Address", "12 Main Street"), ("Signature", "")]
    return Fields(
        tuple(Field(label, value, hand) for label, value in made),
        rng.random() < 0.5,
        rng.choice(["behind", "column", "boxes"]),
        rng.choice([1, 2]),
    )


def chart(rng: Random) -> Chart:
    count = rng.randint(2, 4)
    series = tuple(
        (f"Series {name}", tuple(f"{rng.uniform(5, 90):.1f}" for _ in range(count)))
        for name in "AB"[: rng.randint(1, 2)]
    )
    return Chart(
        rng.choice(["bar", "hbar", "line"]), "Water by year", "Year", ("2019", "2020", "2021", "2022")[:count], series
    )


def block(rng: Random, notes: list[tuple[str, Text]]) -> Block:
    made: list[Block] = [
        Heading(text(words_of(rng, 1, 5)), rng.randint(2, 4), rng.choice(["left", "center"])),
        paragraph(rng, notes),
        a_list(rng),
        table(rng),
        fields(rng),
        Formula(r"\sigma = \sqrt{\frac{1}{N}\sum_{i=1}^{N}(x_i-\mu)^2}"),
        chart(rng),
        Stamp(("PAID", "12 MAR 2021"), turn=rng.uniform(-6, 6)),
        Lines((text("Acme Ltd"), text("12 Long Road")), rng.choice(["left", "right"])),
    ]
    return rng.choice(made)


def a_document(rng: Random, columns: int) -> Document:
    notes: list[tuple[str, Text]] = []
    blocks: list[Block] = [Heading(text(words_of(rng, 1, 5)), 1)]
    if columns == 1:
        blocks += [block(rng, notes) for _ in range(12)]
    else:
        blocks.append(Columns(tuple(tuple(block(rng, notes) for _ in range(6)) for _ in range(columns)), True))
    if notes:
        blocks.append(Notes(tuple(notes)))
    return Document(tuple(blocks), Furniture("Report", "Page 3", rng.choice(["", "DRAFT"])))


def printed(document: Document, look: Look) -> list[str]:
    """What each block prints, without spaces; of a chart its labels, sorted."""
    found = []
    for each in walk(document.blocks):
        if not isinstance(each, Columns):
            parts = _parts(each)
            found.append("".join(sorted(parts) if isinstance(each, Chart) else parts).replace(" ", ""))
    return found


def _plain(content: Text) -> str:
    return "".join(run.text for run in content)


def _list_parts(each: ListBlock) -> list[str]:
    parts = []
    for place, item in enumerate(each.items, each.start):
        parts += [f"{place}{each.mark}" if each.ordered else each.mark, _plain(item.content)]
        parts += _list_parts(item.below) if item.below else []
    return parts


def _parts(each: Block) -> list[str]:
    if isinstance(each, Heading | Paragraph):
        return [_plain(each.content)]
    if isinstance(each, Lines):
        return [_plain(line) for line in each.lines]
    if isinstance(each, ListBlock):
        return _list_parts(each)
    if isinstance(each, Table):
        return [_plain(cell.content) for row in each.rows for cell in row]
    if isinstance(each, Fields):
        colon = "" if each.layout == "boxes" else ":"
        return [part for one in each.fields for part in (one.label + colon, one.value)]
    if isinstance(each, Formula):
        return [each.latex]
    if isinstance(each, Chart):
        return [
            each.title,
            each.corner,
            *each.categories,
            *(part for name, values in each.series for part in (name, *values)),
        ]
    if isinstance(each, Stamp):
        return list(each.lines)
    assert isinstance(each, Notes)
    return [part for marker, content in each.notes for part in (marker, _plain(content))]


def _texts(marks: list[Mark]) -> list[str]:
    found = []
    for mark in marks:
        if isinstance(mark, TextMark | Picture):
            found.append(mark.text)
        elif isinstance(mark, Turned):
            found += [part.text for part in mark.marks if isinstance(part, TextMark)]
    return found


def check(drawn: Drawn, look: Look) -> None:
    """Everything that must hold of a drawn page."""
    furniture = drawn.document.furniture
    outside = sum(bool(one) for one in (furniture.watermark, furniture.head, furniture.foot))
    texts = _texts(drawn.marks)[outside:]
    shown = printed(drawn.document, look)
    blocks = [each for each in walk(drawn.document.blocks) if not isinstance(each, Columns)]
    assert blocks == [each for each, _ in drawn.blocks]
    stream = "".join(texts).replace(" ", "")
    for each, expected in zip(blocks, shown, strict=True):
        got, stream = stream[: len(expected)], stream[len(expected) :]
        if isinstance(each, Chart):
            got, expected = "".join(sorted(got)), "".join(sorted(expected))
        assert got == expected
    assert not stream
    boxes = [box for _, box in drawn.blocks]
    for place, one in enumerate(boxes):
        assert one[0] >= 0 and one[1] >= 0 and one[2] <= look.width and one[3] <= look.height
        for other in boxes[:place]:
            assert not (one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])
    inks = [_ink(mark) for mark in drawn.marks if isinstance(mark, TextMark | Picture)]
    for place, one in enumerate(inks):
        assert one[0] >= -1 and one[1] >= -1 and one[2] <= look.width + 1 and one[3] <= look.height + 1
        for other in inks[:place]:
            assert not (one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])
    assert set(note_markers(drawn.document.blocks)) == set(note_texts(drawn.document.blocks))


def _ink(mark: TextMark | Picture) -> tuple[float, float, float, float]:
    """About where a mark has ink: of text from the height of small letters to the baseline; a pixel less each way."""
    if isinstance(mark, TextMark):
        return mark.x + 1, mark.y - mark.face.low + 1, mark.x + mark.face.width(mark.text) - 1, mark.y - 1
    return mark.x + 1, mark.y + 1, mark.x + mark.mask.width - 1, mark.y + mark.mask.height - 1


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("columns", [1, 2])
def test_what_is_drawn_is_what_the_document_says(width: int, height: int, columns: int) -> None:
    kinds = set()
    for seed in range(12):
        rng = Random(f"{seed} {width} {columns}")
        look = Look.draw(rng, width, height, held_out=seed % 2 == 0, columns=columns)
        drawn = draw(rng, a_document(rng, columns), look)
        assert drawn.image.size == (width, height) and drawn.image.mode == "RGB"
        check(drawn, look)
        kinds |= {type(each) for each, _ in drawn.blocks}
    assert len(kinds) >= 7


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_kind_of_block_alone(width: int, height: int) -> None:
    rng = Random(5)
    notes = (Paragraph((Run("Text"), Run("1", "note"))), Notes((("1", text("A note.")),)))
    blocks: list[tuple[Block, ...]] = [
        (Heading(text("A title"), level),) for level in (1, 2, 3, 4)
    ]  # fmt: skip
    blocks += [
        (paragraph(rng, []),), (a_list(rng),), (table(rng),), (fields(rng),), (Formula(r"\frac{a}{b}"),), (chart(rng),),
        (Stamp(("PAID",), turn=4.0),), (Lines((text("a"), text("b"))),), notes,
        (Columns(((Paragraph(text("one")),), (Paragraph(text("two")),))),),
    ]  # fmt: skip
    look = Look.for_tests(width, height, 14.0)
    for each in blocks:
        each = tuple(replace(one, content=tuple(r for r in one.content if r.style != "note")) if isinstance(
            one, Paragraph) and len(each) == 1 else one for one in each)  # fmt: skip
        drawn = draw(Random(0), Document(each), look)
        assert len(drawn.document.blocks) == len(each)
        check(drawn, look)


def test_the_same_seed_draws_the_same_page() -> None:
    def once() -> Drawn:
        rng = Random(11)
        return draw(rng, a_document(rng, 1), Look.draw(rng, 640, 800))

    one, other = once(), once()
    assert one.document == other.document and one.image.tobytes() == other.image.tobytes()


def test_nothing_fits_on_a_tiny_page() -> None:
    look = Look.for_tests(60, 30)
    assert draw(Random(0), Document((Paragraph(text("Some words that do not fit")),)), look).document.blocks == ()


def test_the_first_block_that_is_too_high_ends_the_page_and_its_heading_goes_too() -> None:
    look = Look.for_tests(400, 200)
    blocks = (
        Paragraph(text("Short.")),
        Heading(text("Next"), 2),
        Paragraph(text("word " * 200 + "end")),
        Paragraph(text("Z")),
    )
    drawn = draw(Random(0), Document(blocks), look)
    assert drawn.document.blocks == blocks[:1]
    check(drawn, look)


def test_a_block_with_too_wide_a_word_is_skipped() -> None:
    blocks = (Paragraph(text("One.")), Paragraph(text("w" * 200)), Paragraph(text("Two.")))
    assert draw(Random(0), Document(blocks), Look.for_tests()).document.blocks == (blocks[0], blocks[2])


def test_lists_are_cut_at_items() -> None:
    look = Look.for_tests(400, 220)
    below = ListBlock(tuple(Item(text(f"below {place}")) for place in range(40)))
    whole = ListBlock((Item(text("one")), Item(text("two"), below), Item(text("three"))))
    drawn = draw(Random(0), Document((whole, Paragraph(text("After")))), look)
    (cut,) = drawn.document.blocks
    assert isinstance(cut, ListBlock) and len(cut.items) == 2
    inner = cut.items[1].below
    assert inner is not None and 0 < len(inner.items) < 40
    check(drawn, look)


def test_tables_are_cut_at_rows_that_no_span_crosses() -> None:
    whole = table(Random(2), body=30)
    for height in range(150, 400, 10):
        look = Look.for_tests(640, height)
        blocks = draw(Random(0), Document((whole,)), look).document.blocks
        if blocks:
            (cut,) = blocks
            assert isinstance(cut, Table) and 4 <= len(cut.rows) < 33
            assert all(row + cell.rowspan <= len(cut.rows) for row, _, cell in grid(cut.rows))
            assert cut.rows == whole.rows[: len(cut.rows)]


def test_spans_are_placed_as_in_html() -> None:
    rows = ((header("a", rowspan=2), header("b", colspan=2)), (header("c"), header("d")), (Cell(), Cell(), Cell()))
    assert [(row, column) for row, column, _ in grid(rows)] == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]


def test_notes_and_their_markers_go_together() -> None:
    marked = Paragraph((Run("Marked"), Run("1", "note")))
    unmarked = Paragraph(text("Plain."))
    orphan = Document((marked, unmarked))
    assert draw(Random(0), orphan, Look.for_tests()).document.blocks == (Paragraph((Run("Marked"),)), unmarked)
    late = Document((unmarked, Paragraph((Run("word " * 900), Run("1", "note"))), Notes((("1", text("A note.")),))))
    assert draw(Random(0), late, Look.for_tests()).document.blocks == (unmarked,)
    long = Document((marked, Notes((("1", text("word " * 900 + "end")),))))
    assert draw(Random(0), long, Look.for_tests()).document.blocks == (Paragraph((Run("Marked"),)),)
    drawn = draw(
        Random(0), Document((marked, Notes((("1", text("A note.")), ("2", text("Not marked.")))))), Look.for_tests()
    )
    assert drawn.document.blocks == (marked, Notes((("1", text("A note.")),)))
    assert drawn.blocks[1][1][3] <= 800 - 40 and drawn.blocks[1][1][1] > 600


def test_emphasis_that_cannot_be_seen_is_taken_out() -> None:
    look = Look.for_tests()
    bold = (Run("A "), Run("bold", "bold"), Run(" word"))
    drawn = draw(Random(0), Document((Heading(bold, 3), Paragraph(bold))), look)
    assert look.headings[2].bold
    assert drawn.document.blocks == (Heading((Run("A bold word"),), 3), Paragraph(bold))


def test_looks_are_readable() -> None:
    for seed in range(300):
        look = Look.draw(Random(seed), 640, 800)
        behind = [
            look.paper,
            *([look.table.zebra] if look.table.zebra else []),
            *([look.fields.box_fill] if look.fields.box_fill else []),
        ]
        assert all(contrast(look.ink, one) >= LEAST_TEXT_CONTRAST for one in behind)
        for color in (look.accent, look.muted, look.hand_ink, look.fields.label_color):
            assert contrast(color, look.paper) >= LEAST_TEXT_CONTRAST
        assert contrast(look.table.head_ink, look.table.head_fill) >= LEAST_TEXT_CONTRAST
        assert 1.02 < contrast(look.watermark, look.paper) <= MOST_WATERMARK_CONTRAST
        assert 10.5 <= look.size <= 30 and look.column_em() >= 23.9


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("12.5", 12.5),
        ("1,204", 1204),
        ("1.204,50 €", 1204.5),
        ("€ 3,2 %", 3.2),
        ("−7", -7),
        ("12 345", 12345),
        ("–", 0),
    ],
)
def test_numbers_as_printed(content: str, value: float) -> None:
    assert number(content) == value
