"""What placing a block gives, and what all blocks share while a page is laid out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from random import Random

from ocria_compress.pages.synth.document import Block, Heading, Lines, Paragraph
from ocria_compress.pages.synth.draw.flow import Type, body_type
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.draw.marks import Box, Mark


class Miss(Enum):
    """Why a block is left out."""

    WIDE = "something in it is wider than its column"
    FULL = "the room left is too low"


@dataclass(frozen=True, slots=True)
class Placed:
    """A block as drawn.

    Attributes:
        block: what of it was drawn.
        marks: what is painted.
        box: where.
        cut: whether its end was left out; then nothing may follow.
        parts: the boxes of the blocks inside columns.
    """

    block: Block
    marks: list[Mark]
    box: Box
    cut: bool = False
    parts: tuple[tuple[Block, Box], ...] = ()


Outcome = Placed | Miss


@dataclass(frozen=True, slots=True)
class Room:
    """Where a block may go: its left and top edge, its width, and the bottom that it must not cross. Pixels."""

    x: float
    y: float
    width: float
    bottom: float


@dataclass
class Setting:
    """A page being laid out: its look, its own draws (jitter of handwriting, places of stamps), and its types."""

    look: Look
    rng: Random
    types: dict[object, Type] = field(default_factory=dict)

    @cached_property
    def body(self) -> Type:
        """The type of running text."""
        return body_type(self.look)

    def type(self, scale: float, color: tuple[int, int, int] | None = None, bold: bool = False) -> Type:
        """Another type of the body family."""
        key = (scale, color, bold)
        if key not in self.types:
            self.types[key] = body_type(self.look, scale, color, bold)
        return self.types[key]


def gap(look: Look, before: Block | None, after: Block) -> float:
    """The space between two blocks, pixels; none at the top of a column."""
    if before is None:
        return 0.0
    lines = 0.75
    if isinstance(before, Paragraph) and isinstance(after, Paragraph):
        aligned = {"left", "justify"}
        lines = look.paragraph_gap
        if not (before.align in aligned and after.align in aligned):
            lines = max(lines, 0.5)
    elif isinstance(before, Heading) and isinstance(after, Heading):
        lines = max(look.headings[after.level - 1].before, look.headings[before.level - 1].after)
    elif isinstance(before, Heading):
        lines = look.headings[before.level - 1].after
    elif isinstance(after, Heading):
        lines = look.headings[after.level - 1].before + max(0.0, look.paragraph_gap)
    elif isinstance(before, Paragraph) or isinstance(after, Paragraph):
        lines = max(0.45, look.paragraph_gap)
    elif isinstance(before, Lines) and isinstance(after, Lines):
        lines = max(0.8, look.paragraph_gap)
    return lines * look.leading
