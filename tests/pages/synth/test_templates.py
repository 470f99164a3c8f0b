"""Templates: each split has its own, all end, make sound documents and show what they are asked for."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.pages.reference import check_reference
from ocria_compress.pages.synth.document import (
    Block,
    Cell,
    Chart,
    Columns,
    Document,
    Formula,
    Item,
    ListBlock,
    Paragraph,
    Run,
    Table,
    text,
    walk,
)
from ocria_compress.pages.synth.lexicon import LANGUAGES, Lexicon
from ocria_compress.pages.synth.markdown import to_markdown
from ocria_compress.pages.synth.splits import SPLITS, Split
from ocria_compress.pages.synth.templates import GROUPS, Need, Template, make_document
from ocria_compress.pages.synth.templates.grids import Grid, grid
from ocria_compress.pages.synth.templates.need import SHOWN, Stratum, strata_of
from ocria_compress.pages.synth.templates.sheet import FULL, height

ALL = [(split, template) for split in SPLITS for template in GROUPS[split]]


def made(split: Split, template: Template, number: int) -> tuple[Document, Need]:
    """A document of a template: another language, budget, width and request for each number."""
    rng = Random(f"{template.name}/{number}")
    asked = frozenset(rng.sample(sorted(template.provides), min(len(template.provides), number % 3)))
    budget = max(template.least, (60, 150, 300, 600, 1300)[number % 5])
    need = Need(asked, budget, rng.random() < 0.5, rng.uniform(12, 50))
    return template.make(rng, Lexicon(LANGUAGES[number % len(LANGUAGES)], split), need), need


def lists_together(blocks: tuple[Block, ...]) -> bool:
    """Whether a list stands right behind a list in one column: Markdown would read them as one."""
    inside = (column for block in blocks if isinstance(block, Columns) for column in block.columns)
    together = any(isinstance(a, ListBlock) and isinstance(b, ListBlock) for a, b in pairwise(blocks))
    return together or any(map(lists_together, inside))


def test_no_template_is_in_two_groups() -> None:
    names = [template.name for _, template in ALL]
    assert len(names) == len(set(names)) >= 50
    assert len({template.make for _, template in ALL}) == len(names)
    assert set(GROUPS) == set(SPLITS)


@pytest.mark.parametrize(("split", "template"), ALL, ids=[template.name for _, template in ALL])
def test_every_template_fills_its_budget_with_sound_blocks(split: Split, template: Template) -> None:
    """It ends too: a questionnaire with a little room left once added lists for ever."""
    for number in range(25):
        document, need = made(split, template, number)
        reference = to_markdown(document)
        assert check_reference(reference) == []
        assert document.template == template.name
        assert len(reference) >= 0.85 * (need.budget - FULL)
        assert not lists_together(document.blocks)
        for block in walk(document.blocks):
            if isinstance(block, Table):
                assert all(block.rows)
                grid(block)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("stratum", sorted(SHOWN))
def test_what_is_asked_for_comes_early(split: Split, stratum: Stratum) -> None:
    kinds = {"spans": Table, "columns": Columns, "formulas": Formula | Paragraph, "charts": Chart}
    for number in range(12):
        rng = Random(f"{split}/{stratum}/{number}")
        need = Need(frozenset({stratum}), 500)
        document = make_document(rng, split, need, LANGUAGES[number % len(LANGUAGES)])
        assert stratum in strata_of(document)
        assert any(isinstance(block, kinds[stratum]) for block in walk(document.blocks))
        # Something that shows it begins in the first two thirds of what fits on the page.
        lengths = 0
        for block in document.blocks:
            if stratum in strata_of(Document((block,))):
                break
            lengths += len(to_markdown(Document((block,)))) + 2
        assert lengths <= 0.67 * need.budget


def test_what_has_no_room_is_refused() -> None:
    with pytest.raises(OcriaError, match="shows charts, columns"):
        make_document(Random(1), "train", Need(frozenset({"charts", "columns"}), 1, width_em=43), "en")


def test_strata_are_found_wherever_they_stand() -> None:
    spans = Table(((Cell(text("a"), colspan=2),), (Cell(text("b")), Cell(text("c")))))
    formula = Paragraph((Run("where "), Run("x", "formula")))
    items = ListBlock((Item(formula.content),))
    plain = Paragraph(text("a"))
    assert strata_of(Document((plain,))) == set()
    assert strata_of(Document((plain,), language="de")) == {"languages"}
    assert strata_of(Document((Columns(((spans,), (formula,))),))) == {"columns", "spans", "formulas"}
    assert strata_of(Document((Columns(((items,), ())),))) == {"formulas"}
    assert strata_of(Document((Chart("bar", "t", "c", ("a",), (("s", ("1",)),)),))) == {"charts"}


def test_merging_never_leaves_a_row_without_cells() -> None:
    places: list[list[Cell | None]] = [[Cell(text(name)) for name in "ab"] for _ in range(3)]
    done = Grid(places)
    assert done.merge(0, 0, 2, 1)
    assert not done.merge(0, 1, 2, 1), "the second row would have no cell of its own"
    assert not done.merge(1, 1, 2, 2)
    assert [len([cell for cell in row if cell]) for row in done.places] == [2, 1, 2]
    assert not Grid([[Cell()], [Cell()]]).merge(0, 0, 2, 1)


def test_a_table_with_an_empty_row_still_has_a_height() -> None:
    table = Table(((Cell(text("a"), rowspan=2), Cell(text("b"), rowspan=2)), ()))
    assert height(table, 20) > height(Table((table.rows[0],)), 20)
