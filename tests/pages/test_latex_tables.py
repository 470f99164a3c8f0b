"""LaTeX tables as HTML tables: spans, header rows, text, and what cannot be read."""

from __future__ import annotations

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.latex_tables import latex_table
from ocria_compress.pages.convert.latex_text import latex_text


def rows(body: str, columns: str = "lll") -> list[str]:
    """The rows of a table of this body."""
    html = latex_table(rf"\begin{{tabular}}{{{columns}}}{body}\end{{tabular}}", "here")
    lines = html.split("\n")
    assert (lines[0], lines[-1]) == ("<table>", "</table>")
    return lines[1:-1]


def test_rows_above_the_first_inner_rule_are_header_rows() -> None:
    assert rows(r"\toprule A & B \\ \midrule 1 & 2 \\ \bottomrule") == [
        "<tr><th>A</th><th>B</th></tr>",
        "<tr><td>1</td><td>2</td></tr>",
    ]
    assert rows(r"A & B \\ 1 & 2 \\ \hline") == ["<tr><td>A</td><td>B</td></tr>", "<tr><td>1</td><td>2</td></tr>"]


def test_spans() -> None:
    body = r"\multirow{2}{*}{a} & \multicolumn{2}{c}{\textbf{b}} \\ \cmidrule(lr){2-3} & c & d \\"
    assert rows(body) == [
        '<tr><td rowspan="2">a</td><td colspan="2">**b**</td></tr>',
        "<tr><td>c</td><td>d</td></tr>",
    ]
    assert rows(r" & x \\ \multirow{-2}{*}{up} & y \\") == [
        '<tr><td rowspan="2">up</td><td>x</td></tr>',
        "<tr><td>y</td></tr>",
    ]
    assert rows(r"\multirow{3}{*}{a} & 1 \\ b & 2 \\") == [
        "<tr><td>a</td><td>1</td></tr>",
        "<tr><td>b</td><td>2</td></tr>",
    ]


def test_short_rows_get_empty_cells() -> None:
    assert rows(r"a & b & c \\ d \\") == [
        "<tr><td>a</td><td>b</td><td>c</td></tr>",
        "<tr><td>d</td><td></td><td></td></tr>",
    ]


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"50\,\% \& more", "50 % & more"),
        (r"\emph{it} and {\bf all}", "*it* and **all**"),
        (r"Caf\'e, na\"{\i}ve, \v{s}", "Café, naïve, š"),
        (r"$x_{1}$ \pm 3", "$x_{1}$ ±3"),
        (r"``q'' -- r~s", "“q” – r s"),
        (r"H\textsubscript{2}O", "H<sub>2</sub>O"),
        (r"\textcolor{red}{red} \cellcolor{blue} cell", "red cell"),
    ],
)
def test_text_is_what_is_printed(latex: str, text: str) -> None:
    assert latex_text(latex, "here") == text


@pytest.mark.parametrize(
    ("latex", "what"),
    [
        ("no table", "no tabular"),
        (r"\begin{tabular}{l} a \\", "not closed"),
        (r"\begin{tabular}{l} \unheardof{a} \\ \end{tabular}", r"\unheardof is not known"),
        (r"\begin{tabular}{l} \textbf{a \\ \end{tabular}", "not closed"),
        (r"\begin{tabular}{l} $a \\ \end{tabular}", "$ is not closed"),
        (r"\begin{tabular}{l} \hline \end{tabular}", "without rows"),
        (r"\begin{tabular}{ll} \multicolumn{x}{c}{a} \\ \end{tabular}", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_place(latex: str, what: str) -> None:
    with pytest.raises(OcriaError) as caught:
        latex_table(latex, "file.json, block 3")
    assert what in caught.value.what and caught.value.where == "file.json, block 3"
