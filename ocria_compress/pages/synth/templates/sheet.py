"""The sheet a template writes on: blocks so far, characters left, width of the column, footnotes to come."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import (
    Block,
    Chart,
    Columns,
    Document,
    Fields,
    Formula,
    Furniture,
    Heading,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Run,
    Stamp,
    Table,
    Text,
)
from ocria_compress.pages.synth.lexicon.phrases import template_label
from ocria_compress.pages.synth.markdown import block_markdown
from ocria_compress.pages.synth.templates.need import Need, Stratum

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon

GUTTER_EM = 2.0
EM_PER_CHARACTER = 0.5

# What Markdown would read at the start of a line as a list, heading, quotation, rule or code.
_STRUCTURE = re.compile(r"\d{1,9}[.)](\s|$)|[-+*#>|=_~`:](\s|$)|[-*_=~`#>|]")
_MARKUP = re.compile(r"[*_`~\\|\[\]{}$#^]")
FULL = 30


def plain_start(content: str) -> bool:
    """Whether a line may begin with this text, and no character in it is Markdown's."""
    return bool(content) and not _STRUCTURE.match(content) and not _MARKUP.search(content)


class Sheet:
    """One page being written.

    Attributes:
        rng, lexicon, need: what the template was given.
        target: how many reference characters the document is to have.
        used: how many it has.
        width: of the present column, in ems.
    """

    def __init__(self, name: str, rng: Random, lexicon: Lexicon, need: Need) -> None:
        self.name, self.rng, self.lexicon, self.need = name, rng, lexicon, need
        self.target = need.budget * rng.uniform(1.06, 1.3)
        self.used = 0
        self.width = need.width_em
        self.blocks: list[Block] = []
        self.notes: list[tuple[str, Text]] = []
        self.numbered: dict[str, int] = {}
        self.head = self.foot = self.watermark = ""

    @property
    def left(self) -> int:
        """Reference characters still to write."""
        return int(self.target - self.used)

    @property
    def full(self) -> bool:
        """Whether nothing more fits."""
        return self.left < FULL

    @property
    def small(self) -> bool:
        """Whether there is room for little more than one block."""
        return self.need.budget < 320

    def chance(self, share: float) -> bool:
        """True in that share of the calls."""
        return self.rng.random() < share

    def wants(self, stratum: Stratum, natural: float) -> bool:
        """Whether to show a stratum: asked for, or by chance."""
        return stratum in self.need.strata or self.chance(natural)

    def say(self, key: str) -> str:
        """The label `key` in the page's language."""
        return template_label(self.lexicon.language, key)

    def says(self, *keys: str) -> str:
        """One of the labels in the page's language."""
        return self.say(self.rng.choice(keys))

    def count(self, key: str) -> int:
        """1, 2, 3... for each key: numbers of tables, figures, headings."""
        self.numbered[key] = self.numbered.get(key, 0) + 1
        return self.numbered[key]

    def words(self, least: int, most: int) -> str:
        """A noun phrase beginning with a capital, safe at the start of a line."""
        for _ in range(8):
            made = self.lexicon.noun_phrase(self.rng, least, most)
            if plain_start(made):
                return made[0].upper() + made[1:]
        return self.say("notes")

    def safe(self, make: Callable[[Random], str]) -> str:
        """A text of a lexicon method that may begin a line."""
        for _ in range(8):
            made = make(self.rng)
            if plain_start(made):
                return made
        return self.words(1, 2)

    def fitting(self, make: Callable[[Random], str], most: int) -> str:
        """The first text of at most `most` characters in a few trials, else the shortest of them."""
        best = make(self.rng)
        for _ in range(4):
            if len(best) <= most:
                break
            best = min(best, make(self.rng), key=len)
        return best

    def add(self, *blocks: Block | None) -> None:
        """Append blocks; a list directly after a list is left out, because Markdown would read them as one."""
        for block in blocks:
            if block is None or (
                isinstance(block, ListBlock) and self.blocks and isinstance(self.blocks[-1], ListBlock)
            ):
                continue
            self.blocks.append(block)
            self.used += len(block_markdown(block)) + 2

    def note(self, content: str) -> Run:
        """A footnote's marker, to be put into a text; the note itself comes at the foot of its column."""
        marker = str(len(self.notes) + 1)
        self.notes.append((marker, (Run(content),)))
        self.used += len(content) + 12
        return Run(marker, "note")

    def columns(self, fill: Callable[[], None]) -> None:
        """What `fill` adds, set in two columns of about equal height."""
        before, self.blocks = self.blocks, []
        width, self.width = self.width, (self.width - GUTTER_EM) / 2
        fill()
        inner, self.blocks = self.blocks, before
        left, right = _balanced(inner, self.width)
        sides = tuple((*side, *self._notes_of(side)) for side in (left, right) if side)
        self.width = width
        if len(sides) < 2:
            self.blocks.extend(sides[0] if sides else ())
        else:
            self.blocks.append(Columns(sides, rule=self.chance(0.25)))

    def document(self) -> Document:
        """The document of all that was added."""
        self.blocks += self._notes_of(self.blocks)
        furniture = Furniture(self.head, self.foot, self.watermark)
        return Document(tuple(self.blocks), furniture, self.lexicon.language, self.name)

    def _notes_of(self, blocks: list[Block]) -> list[Block]:
        held = {
            run.text
            for block in blocks
            if isinstance(block, Paragraph | Heading)
            for run in block.content
            if run.style == "note"
        }
        notes = tuple(note for note in self.notes if note[0] in held)
        return [Notes(notes)] if notes else []


def _balanced(blocks: list[Block], width: float) -> tuple[list[Block], list[Block]]:
    """Blocks in two columns: the cut that makes the higher one least high; a heading is not left at a foot."""
    heights = [height(block, width) for block in blocks]
    whole, best, cut, first = sum(heights), float("inf"), 1, 0.0
    for place in range(1, len(blocks)):
        first += heights[place - 1]
        higher = max(first, whole - first) + (6 if isinstance(blocks[place - 1], Heading) else 0)
        if higher < best:
            best, cut = higher, place
    return blocks[:cut], blocks[cut:]


def _lines(characters: int, width: float, size: float = 1.0) -> int:
    return max(1, -int(-characters * EM_PER_CHARACTER * size // max(width, 1)))


def _length(content: Text) -> int:
    return sum(len(run.text) for run in content)


def height(block: Block, width: float) -> float:
    """About how high a block is, in body lines."""
    if isinstance(block, Heading):
        size = (1.8, 1.4, 1.2, 1.0)[block.level - 1]
        return _lines(_length(block.content), width, size) * size + 0.8
    if isinstance(block, Paragraph):
        return _lines(_length(block.content), width) + 0.6
    if isinstance(block, Lines):
        return len(block.lines) + 0.6
    if isinstance(block, ListBlock):
        return sum(
            _lines(_length(item.content), width - 2) + 0.2 + (height(item.below, width - 2) if item.below else 0)
            for item in block.items
        )
    if isinstance(block, Table):
        lines = (max((_lines(_length(c.content), width / len(row)) for c in row), default=1) for row in block.rows)
        return 0.8 + 1.4 * sum(lines)
    if isinstance(block, Fields):
        return len(block.fields) / block.columns * (2.2 if block.layout == "boxes" else 1.3) + 0.6
    if isinstance(block, Chart):
        return 11.0
    if isinstance(block, Formula):
        return 2.8
    if isinstance(block, Stamp):
        return 1.6 * len(block.lines) + 1.2
    assert not isinstance(block, Columns)
    return sum(_lines(_length(content), width, 0.8) for _, content in block.notes)
