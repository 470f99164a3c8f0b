"""The document tree: what is on a synthetic page, before it is drawn.

One tree makes the page (`draw/`: fast, with Pillow; `faithful/`: HTML printed by Chromium) and its reference
(`markdown.py`), so that the reference is exact by construction.

Text is what is printed, character by character: no markup, no line breaks, no two spaces in a row, none at either end
of a block. Inline runs carry style only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text in one style.

    Attributes:
        text: what is printed; of a formula its LaTeX, without dollar signs; of a note the marker (a number).
        style: how it is set. Bold and italic are in the reference; `hand` (a handwriting face) is not.
    """

    text: str
    style: Literal["plain", "bold", "italic", "hand", "formula", "note"] = "plain"


Text = tuple[Run, ...]
"""Runs one after the other, nothing between them: spaces are part of the runs' texts."""


def text(content: str) -> Text:
    """Plain text as runs."""
    return (Run(content),)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of `level` 1 (the page's title) to 4."""

    content: Text
    level: int = 1
    align: Literal["left", "center"] = "left"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    content: Text
    align: Literal["left", "justify", "center", "right"] = "left"


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that are kept as they are, one below the other: an address, a signature."""

    lines: tuple[Text, ...]
    align: Literal["left", "right"] = "left"


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a list, and the list below it, if any."""

    content: Text
    below: ListBlock | None = None


@dataclass(frozen=True, slots=True)
class ListBlock:
    """A list; at most three levels deep.

    Attributes:
        ordered: numbered from `start`, or with bullets.
        mark: the bullet as printed ("•", "–", "■"), or what stands behind a number (".", ")"). The reference always has
            "-" and ".".
    """

    items: tuple[Item, ...]
    ordered: bool = False
    start: int = 1
    mark: str = "•"


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell; it is in the row where it begins."""

    content: Text = ()
    rowspan: int = 1
    colspan: int = 1
    header: bool = False
    align: Literal["left", "center", "right"] = "left"


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        rows: the cells that begin in each row, left to right, as in HTML; spans fill the grid exactly.
        rules: which lines are drawn.
        shade: whether header cells are shaded.
        stretch: whether it is as wide as the column.
    """

    rows: tuple[tuple[Cell, ...], ...]
    rules: Literal["grid", "rows", "head", "none"] = "grid"
    shade: bool = False
    stretch: bool = False

    @property
    def has_spans(self) -> bool:
        """Whether a cell covers more than one place."""
        return any(cell.rowspan > 1 or cell.colspan > 1 for row in self.rows for cell in row)


@dataclass(frozen=True, slots=True)
class Field:
    """A label and its value; `hand` values are set in a handwriting face."""

    label: str
    value: str
    hand: bool = False


@dataclass(frozen=True, slots=True)
class Fields:
    """Labelled fields of a form, one a line, in the reference too.

    Attributes:
        bold: whether labels are bold (then they are in the reference).
        layout: values behind their labels, values in a column of their own, or each field in a box of its own.
        columns: fields side by side (row by row in the reference), 1 or 2.
    """

    fields: tuple[Field, ...]
    bold: bool = True
    layout: Literal["behind", "column", "boxes"] = "behind"
    columns: int = 1


@dataclass(frozen=True, slots=True)
class Formula:
    """A displayed formula: LaTeX that both KaTeX and matplotlib's mathtext can set."""

    latex: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart whose values are printed on it; its reference is a table of them.

    Attributes:
        kind: bars side by side, bars lying down, or lines.
        title: above the chart; a paragraph in the reference.
        corner: the reference's first header cell, printed at the category axis.
        categories: one a row of the reference.
        series: names and values as printed, one a column of the reference.
    """

    kind: Literal["bar", "hbar", "line"]
    title: str
    corner: str
    categories: tuple[str, ...]
    series: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """A stamp in a place of its own, a line or two in a frame, maybe turned by up to 6 degrees; a paragraph in the
    reference, lines joined by a space."""

    lines: tuple[str, ...]
    color: tuple[int, int, int] = (170, 30, 40)
    turn: float = 0.0


@dataclass(frozen=True, slots=True)
class Notes:
    """Footnotes at the foot of their column: marker and text each."""

    notes: tuple[tuple[str, Text], ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns side by side, read one after the other."""

    columns: tuple[tuple[Block, ...], ...]
    rule: bool = False


Block = Heading | Paragraph | Lines | ListBlock | Table | Fields | Formula | Chart | Stamp | Notes | Columns


@dataclass(frozen=True, slots=True)
class Furniture:
    """What the reference leaves out: running head, foot with page number, a watermark across the page."""

    head: str = ""
    foot: str = ""
    watermark: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One page's content.

    Attributes:
        blocks: in reading order. Drawing keeps as many whole blocks from the front as fit.
        language: ISO 639-1.
        template: the name of the template that made it.
    """

    blocks: tuple[Block, ...]
    furniture: Furniture = field(default_factory=Furniture)
    language: str = "en"
    template: str = ""


def walk(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Every block, those inside columns too, in reading order."""
    for block in blocks:
        yield block
        if isinstance(block, Columns):
            for column in block.columns:
                yield from walk(column)
