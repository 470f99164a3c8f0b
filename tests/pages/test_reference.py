"""What is wrong with a reference, and what only looks wrong; tables read; references read back into blocks."""

from __future__ import annotations

import pytest

from ocria_compress.pages.html_tables import read_tables
from ocria_compress.pages.markup import Code, parse
from ocria_compress.pages.reference import MAX_CHARACTERS, check_reference
from ocria_compress.pages.synth.document import Formula, Heading, Lines, ListBlock, Notes, Paragraph, Run, Table
from ocria_compress.pages.synth.generate import sample
from tests.pages.makers import TABLE

FAULTS = [
    ("", 1, "empty"),
    ("a\n\n<table>\n<tr><td>1</td></tr>", 3, "<table> is not closed"),
    ("<table><tr><td>1<td>2</td></tr></table>", 1, "<td> inside <td>"),
    ("<table>\n<tr><td>1</td>\n</table>", 2, "<tr> is not closed before </table> in line 3"),
    ("</table>", 1, "</table> closes nothing"),
    ("<table></table>", 1, "a table without cells"),
    ('<table><tr><td colspan="two">1</td></tr></table>', 1, 'colspan="two" is not a number'),
    ('<table><tr><td colspan="0">1</td></tr></table>', 1, 'colspan="0"'),
    ('<table>\n<tr><td rowspan="2">1</td></tr>\n</table>', 2, "goes below the last row"),
    ("<table>\n<tr><td>1</td><td>2</td></tr>\n<tr><td>1</td></tr>\n</table>", 3, "row 2 has 1 columns"),
    (
        '<table><tr><td>1</td><td rowspan="2">2</td></tr>\n<tr><td colspan="2">3</td></tr></table>',
        2,
        "cells overlap",
    ),
    ("a\n```python\nx = 1\n", 2, "code block"),
    ("Energy is $$E = mc^2.", 1, "$$ is not closed"),
    ("one\n\nEnergy is $E = \\frac{m}{c}.", 3, "$ is not closed"),
    ("A note[^1] is missing.", 1, "[^1] has no note"),
    ("[^1]: of nothing", 1, "[^1] has no marker"),
    ("| a | b |\n|---|\n| 1 | 2 |", 2, "ruler has 1 columns and its head 2"),
    ("a\x07b", 1, "U+0007"),
    ("ok\nCafe\u0301", 2, "NFC"),
    ("x" * (MAX_CHARACTERS + 1), 1, "characters"),
]


@pytest.mark.parametrize(("text", "line", "what"), FAULTS)
def test_what_is_broken_is_named_with_its_line(text: str, line: int, what: str) -> None:
    faults = check_reference(text)
    assert faults and faults[0].line == line and what in faults[0].what


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5, or $1,200.50 and US$ 30.",
        "Between $3 and $4 each",
        "a < b and c > d; x <y@example.org>",
        "A formula $x^2 + y_1$ and one that stands alone:\n\n$$\\frac{a}{b}$$",
        "Text[^1].\n\n[^1]: The note.",
        "A pattern [^a-z] is no footnote.",
        "Escaped \\$x_{1} is no formula",
        "`<table>` and ``` ` ``` are code",
        "```\n<table><tr>\n$$\n```",
        "~~~text\n```\n~~~",
        TABLE,
        '<table><tr><td rowspan="2">a</td><td>b</td></tr><tr><td>c</td></tr></table>',
        "<table><tr><td><table><tr><td>in</td></tr></table></td></tr></table>",
        "| a | b |\n|---|:-:|\n| 1 | 2 |",
        "Preis: 5 €, Größe: 3 m²",
    ],
)
def test_what_only_looks_broken(text: str) -> None:
    assert check_reference(text) == []


@pytest.mark.parametrize("split", ["train", "draft", "calibration", "benchmark"])
def test_references_of_the_generator_are_sound(split: str) -> None:
    for seed in range(12):
        assert check_reference(sample(seed, split).reference) == []  # type: ignore[arg-type]


def test_two_faults_in_one_line_come_in_the_order_in_which_they_stand() -> None:
    assert [fault.what for fault in check_reference("<td>1</td>")] == ["<td> outside a table", "</td> closes nothing"]


def test_tables_are_read_with_their_spans_inner_ones_first() -> None:
    text = f'x\n<table><caption>T</caption><tr><th rowspan="2">a</th><td>{TABLE}</td></tr><tr><td>b</td></tr></table>'
    tables, faults = read_tables(text)
    assert faults == [] and [len(table.rows) for table in tables] == [2, 2]
    outer = tables[1]
    assert outer.caption == "T" and outer.line == 2 and text[outer.start : outer.end].startswith("<table><caption>")
    cell = outer.rows[0][0]
    assert (cell.content, cell.header, cell.rowspan, cell.colspan) == ("a", True, 2, 1)
    assert tables[0].rows[0][0].colspan == 2


def test_a_reference_is_read_back_into_blocks() -> None:
    text = (
        "# Head **bold**\n\nA *line* with $x_1$ and a note[^1].\nNext line\n\n3. three\n4. four\n   - inner\n\n"
        f"{TABLE}\n\n$$\nE = mc^2\n$$\n\n```\ncode <b>\n```\n\n[^1]: The note."
    )
    blocks = parse(text)
    kinds = [type(block) for block in blocks]
    assert kinds == [Heading, Lines, ListBlock, Table, Formula, Code, Notes]
    heading, lines, listing, table, formula, code, notes = blocks
    assert isinstance(heading, Heading) and heading.content == (Run("Head "), Run("bold", "bold"))
    assert isinstance(lines, Lines) and Run("x_1", "formula") in lines.lines[0] and Run("1", "note") in lines.lines[0]
    assert isinstance(listing, ListBlock) and listing.start == 3 and listing.items[1].below is not None
    assert isinstance(table, Table) and table.rows[0][0].colspan == 2 and table.rows[0][0].header
    assert isinstance(formula, Formula) and formula.latex == "E = mc^2"
    assert isinstance(code, Code) and code.content == "code <b>"
    assert isinstance(notes, Notes) and notes.notes[0][0] == "1"


def test_a_broken_reference_is_shown_as_text() -> None:
    blocks = parse("Before\n\n<table><tr><td>1</td></tr>\n\nAfter $$x")
    assert [type(block) for block in blocks] and all(isinstance(block, Paragraph | Lines) for block in blocks)
    assert "After" in str(blocks[-1])
