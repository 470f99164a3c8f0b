"""A sheet being filled from top to bottom: its typography, what is drawn on it and its transcription so far."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from random import Random
from typing import NamedTuple

from ocria_compress.pages.synth.glyphs import FAMILIES, FAMILY_WEIGHTS, Face, Mark, Text, face


class Term(NamedTuple):
    """What stands between two spaces, and whether it is set in bold."""

    text: str
    bold: bool = False


def plain(text: str) -> list[Term]:
    """The terms of `text`, none of them bold."""
    return [Term(word) for word in text.split(" ")]


def to_markdown(terms: Sequence[Term]) -> str:
    """The terms as Markdown, runs of bold ones between double asterisks."""
    parts = []
    for bold, run in groupby(terms, key=lambda term: term.bold):
        text = " ".join(term.text for term in run)
        parts.append(f"**{text}**" if bold else text)
    return " ".join(parts)


class Sheet:
    """A page of `height` x `width` pixels.

    The constructor draws the typography from `rng`: family, size, leading, margins, paper and ink.

    Attributes:
        y: where the next block begins, pixels from the top.
        left, right: the text column, pixels.
        base: the size of body text, pixels; `leading`: from line to line, pixels.
        marks: what is drawn.
        blocks: the transcription, one Markdown block each; `characters`: their length in all.
    """

    def __init__(self, rng: Random, height: int, width: int, small: bool = False) -> None:
        self.rng, self.height, self.width = rng, height, width
        self.family = rng.choices(FAMILIES, FAMILY_WEIGHTS)[0]
        base = rng.choices([13, 14, 15, 16, 17, 18], [0.1, 0.22, 0.26, 0.2, 0.14, 0.08])[0]
        self.base = max(12, round(base * self.family.scale))
        self.regular, self.bold = face(self.family.regular, self.base), face(self.family.bold, self.base)
        self.leading = round(self.base * rng.uniform(1.22, 1.5))
        if small:
            margin, self.y, self.bottom_margin = rng.randint(3, 14), rng.randint(2, 6), 2
        else:
            margin, self.y, self.bottom_margin = rng.randint(14, 40), rng.randint(10, 34), rng.randint(6, 16)
        self.paper = rng.randint(236, 255) if rng.random() < 0.6 else 255
        self.ink = rng.choice([0, 0, 10, 25, 40, 60, 80])
        self.left, self.right = margin, width - margin
        self.marks: list[Mark] = []
        self.blocks: list[str] = []
        self.characters = 0

    @property
    def column(self) -> int:
        """The width of the text column, pixels."""
        return self.right - self.left

    @property
    def left_over(self) -> int:
        """Pixels from `y` to the bottom margin."""
        return self.height - self.bottom_margin - self.y

    def has_room(self, height: int) -> bool:
        """Whether `height` more pixels fit."""
        return self.y + height <= self.height - self.bottom_margin

    def add_block(self, markdown: str) -> None:
        """Adds a block to the transcription."""
        self.blocks.append(markdown)
        self.characters += len(markdown)

    def add_text(self, x: int, y: int, text: str, text_face: Face | None = None) -> None:
        """Sets `text` with its top left corner at (x, y), in the regular face unless another is given."""
        self.marks.append(Text(x, y, text, text_face or self.regular))

    def skip(self, lines: float) -> None:
        """Leaves about `lines` lines free."""
        self.y += round(self.leading * lines * self.rng.uniform(0.8, 1.4))

    def face_of(self, bold: bool) -> Face:
        """The face of body text."""
        return self.bold if bold else self.regular

    def wrapped(self, terms: Sequence[Term], left: int, right: int) -> list[list[Term]]:
        """The terms broken into lines no wider than `right - left`, unless one term alone is."""
        space = self.regular.width(" ")
        lines: list[list[Term]] = []
        line: list[Term] = []
        width = 0.0
        for term in terms:
            term_width = self.face_of(term.bold).width(term.text)
            if line and width + space + term_width > right - left:
                lines.append(line)
                line, width = [term], term_width
            else:
                width += (space if line else 0) + term_width
                line.append(term)
        if line:
            lines.append(line)
        return lines

    def add_line(self, terms: Sequence[Term], x: float, y: int) -> None:
        """Sets one line of terms from (x, y) on."""
        space = self.regular.width(" ")
        for bold, run in groupby(terms, key=lambda term: term.bold):
            text = " ".join(term.text for term in run)
            self.add_text(round(x), y, text, self.face_of(bold))
            x += self.face_of(bold).width(text) + space

    def add_lines(self, lines: Sequence[Sequence[Term]], x: int) -> None:
        """Sets lines of terms one below the other from the current position on."""
        for line in lines:
            self.add_line(line, x, self.y)
            self.y += self.leading
