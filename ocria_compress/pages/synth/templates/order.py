"""Where on a page its strata stand, and moving them to its front."""

from __future__ import annotations

from dataclasses import replace

from ocria_compress.pages.synth.document import Block, Columns, Document, Heading, Paragraph
from ocria_compress.pages.synth.markdown import block_markdown
from ocria_compress.pages.synth.templates.need import Stratum, shows


def ends(document: Document, strata: frozenset[Stratum]) -> int | None:
    """Characters of reference down to the end of the first block of the stratum that comes last; None where one is
    missing. Of columns it is where they begin."""
    found: dict[Stratum, int] = {}
    place = 0

    def visit(blocks: tuple[Block, ...]) -> None:
        nonlocal place
        for block in blocks:
            if isinstance(block, Columns):
                found.setdefault("columns", place)
                for column in block.columns:
                    visit(column)
                continue
            place += len(block_markdown(block)) + 2
            for stratum in shows(block):
                found.setdefault(stratum, place)

    visit(document.blocks)
    return max((found[stratum] for stratum in strata), default=0) if strata <= found.keys() else None


def promoted(document: Document, strata: frozenset[Stratum]) -> Document:
    """The document with the first block of each stratum (and its caption) at the front, after a leading heading.

    What stands in columns goes to the front of the first column, but the columns stay where they are unless they are
    asked for too: then what comes before them, a leading heading apart, goes behind."""
    blocks = list(document.blocks)
    if "columns" in strata:
        place = next((p for p, block in enumerate(blocks) if isinstance(block, Columns)), None)
        if place is not None:
            columns = blocks.pop(place)
            assert isinstance(columns, Columns)
            first = _forward(list(columns.columns[0]), _taken(columns, strata), strata)
            rest = tuple(tuple(b for b in side if b not in first) for side in columns.columns[1:])
            if all(rest):
                columns = replace(columns, columns=(tuple(first), *rest))
            lead = 1 if blocks and isinstance(blocks[0], Heading) and place > 0 else 0
            blocks.insert(lead, columns)
            return replace(document, blocks=tuple(blocks))
    return replace(document, blocks=tuple(_forward(blocks, [], strata)))


def _taken(columns: Columns, strata: frozenset[Stratum]) -> list[Block]:
    """Blocks of the later columns that show what the first one lacks."""
    have = {stratum for block in columns.columns[0] for stratum in shows(block)}
    taken: list[Block] = []
    for side in columns.columns[1:]:
        for block in side:
            if (shows(block) & strata) - have:
                have |= shows(block)
                taken.append(block)
    return taken


def _forward(blocks: list[Block], more: list[Block], strata: frozenset[Stratum]) -> list[Block]:
    front: list[Block] = []
    open_strata = set(strata)
    for place, block in enumerate([*blocks, *more]):
        if shows(block) & open_strata:
            open_strata -= shows(block)
            before = blocks[place - 1] if 0 < place < len(blocks) else None
            if isinstance(before, Paragraph) and len(before.content) == 1 and len(before.content[0].text) < 60:
                front.append(before)
            front.append(block)
    rest = [block for block in blocks if not any(block is each for each in front)]
    lead = 1 if rest and blocks and isinstance(rest[0], Heading) and rest[0] is blocks[0] else 0
    return [*rest[:lead], *front, *rest[lead:]]
