"""Tables out of Markdown: HTML and pipe tables, whole and broken."""

from __future__ import annotations

import random
import time

import pytest

from ocria_compress.evaluate.tables import Table, find_tables, markup_tokens


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def one(text: str) -> Table:
    (table,) = find_tables(text)
    return table


def test_a_table_among_other_text() -> None:
    text = 'Before.\n\n<table>\n<tr><th colspan="2">A  b</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>\n\nAfter.'
    table = one(text)
    assert texts(table) == [["A b"], ["1", "2"]]
    assert (table.rows[0][0].colspan, table.rows[0][0].header, table.rows[1][0].header) == (2, True, False)
    assert text[table.start : table.end].startswith("<table>") and text[table.start : table.end].endswith("</table>")
    assert table.closed and not table.nested


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("<b>Total</b> <i>net</i>", "Total net"),
        ("a<br>b<br/>c", "a b c"),
        ("  a \n\t b\u00a0c ", "a b c"),
        ("R&amp;D &#8364; &lt;5", "R&D € <5"),
        ("AT&T &copy 5", "AT&T &copy 5"),
        ("p < 0.05 and x > 3", "p < 0.05 and x > 3"),
        ("<LOD", "<LOD"),
        ("<5 mg/l>", "<5 mg/l>"),
        ("**Total** 5", "Total 5"),
        ("0.03** and 0.04**", "0.03** and 0.04**"),
        ("*a*", "*a*"),
        ("x<!-- note -->y", "x y"),
    ],
)
def test_what_is_read_in_a_cell(raw: str, expected: str) -> None:
    assert texts(one(f"<table><tr><td>{raw}</td></tr></table>")) == [[expected]]


@pytest.mark.parametrize(
    ("attributes", "rowspan", "colspan"),
    [
        ('rowspan="2" colspan="3"', 2, 3),
        ("ROWSPAN=2 colspan='3'", 2, 3),
        ('colspan="0" rowspan="-1"', 1, 1),
        ('colspan="many"', 1, 1),
        ('colspan="999999999"', 1, 1000),
        ('class="x" rowspan="2"', 2, 1),
    ],
)
def test_spans(attributes: str, rowspan: int, colspan: int) -> None:
    cell = one(f"<table><tr><td {attributes}>x</td></tr></table>").rows[0][0]
    assert (cell.rowspan, cell.colspan) == (rowspan, colspan)


def test_sections() -> None:
    table = one(
        "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody><tr><td>c</td></tr></table>"
    )
    assert [(section.tag, len(section.rows)) for section in table.sections] == [("thead", 1), ("tbody", 1), ("", 1)]


def test_end_tags_left_out() -> None:
    assert texts(one("<table><tr><td>a<td>b<tr><td>c<td>d</table>")) == [["a", "b"], ["c", "d"]]
    assert texts(one("<table><td>a</td><td>b</td></table>")) == [["a", "b"]]
    assert texts(one("<table><tr></tr><tr><td></td></tr></table>")) == [[], [""]]


def test_a_table_never_closed_ends_at_an_empty_line_or_at_the_next_table() -> None:
    table = one("<table><tr><td>a</td><td>b\n\n# Heading\n\nText.")
    assert texts(table) == [["a", "b"]] and not table.closed
    first, second = find_tables("<table><tr><td>a</td></tr>\n\n<table><tr><td>b</td></tr></table>")
    assert (texts(first), first.closed, texts(second), second.closed) == ([["a"]], False, [["b"]], True)
    assert find_tables("The <table> tag.") == []


def test_a_table_in_a_cell_becomes_text() -> None:
    table = one("<table><tr><td>a<table><tr><td>b</td><td>c</td></tr></table></td><td>d</td></tr></table>")
    assert texts(table) == [["a b c", "d"]] and table.nested and table.closed
    between = one("<table><tr><td>a</td></tr><table><tr><td>b</td></tr></table></table>")
    assert texts(between) == [["a"], ["b"]] and between.nested


def test_pipe_tables() -> None:
    text = "x | y\n\n| **Item** | Price |\n|:---|---:|\n| a \\| b | 5 € |\n| c |\n| d | 6 | 7 |\n\nText | more"
    table = one(text)
    assert texts(table) == [["Item", "Price"], ["a | b", "5 €"], ["c", ""], ["d", "6", "7"]]
    assert table.kind == "pipe" and [cell.header for cell in table.rows[0]] == [True, True]
    assert text[table.start : table.end].startswith("| **Item") and text[table.start : table.end].endswith("7 |")
    assert find_tables("A | b\n---\nc | d") == []


def test_both_kinds_in_order_and_not_within_each_other() -> None:
    text = "|a|b|\n|-|-|\n|1|2|\n\n<table><tr><td>|x|\n|-|\n|y|</td></tr></table>\n\n|c|d|\n|-|-|\n"
    assert [table.kind for table in find_tables(text)] == ["pipe", "html", "pipe"]


def test_equal_tables_are_equal_wherever_they_stand() -> None:
    table = "<table><tr><td>{}</td></tr></table>"
    assert one(table.format("a ")) == one("Text. " + table.format("<b>a</b>"))
    assert one(table.format("a")) != one(table.format("b"))


def test_the_grid_covers_spans() -> None:
    table = one('<table><tr><td rowspan="3">a<td colspan="2">b<tr><td>c<td>d</table>')
    assert [[cell and cell.text for cell in row] for row in table.grid()] == [["a", "b", "b"], ["a", "c", "d"]]
    ragged = one("<table><tr><td>a<tr><td>b<td>c</table>").grid()
    assert [[cell and cell.text for cell in row] for row in ragged] == [["a", None], ["b", "c"]]


def test_markup_tokens() -> None:
    assert markup_tokens('a<B class="x">&amp;</b><0') == ["a", "<b>", "&", "</b>", "<", "0"]


def test_no_text_breaks_it_or_takes_long() -> None:
    rng = random.Random(0)
    parts = [
        "<table>",
        "</table>",
        "<tr>",
        "</tr>",
        "<td>",
        "</td>",
        '<th rowspan="2">',
        "<thead>",
        "</tbody>",
        "|",
        "\n",
    ]
    parts += ["-|-", "<", "&", "**", "a", "\ud800", "<!--", "-->", "\n\n"]
    for _ in range(300):
        find_tables("".join(rng.choice(parts) for _ in range(rng.randint(0, 60))))
    started = time.monotonic()
    for part in ("<table><tr><td>", "<table>", "<td>", "<", "**a ", "<!--", "|", "-|", "|-|\n", "&", "<table"):
        for table in find_tables(part * (200_000 // len(part))):
            table.grid()
    assert time.monotonic() - started < 10
