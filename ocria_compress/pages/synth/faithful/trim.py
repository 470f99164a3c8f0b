"""The document that was printed: the whole one without what Chromium's layout (layout.js) took away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ocria_compress.pages.synth.document import Block, Columns, Document, Fields, Item, ListBlock, Table
from ocria_compress.pages.synth.draw.visible import with_notes


def trimmed(document: Document, kept: list[Any], notes: list[str]) -> Document:
    """A document with the blocks and parts of blocks that were kept (the tree that layout.js tells); of footnotes and
    their markers with these only."""
    return with_notes(replace(document, blocks=_blocks(document.blocks, kept)), frozenset(notes))


def _blocks(blocks: tuple[Block, ...], kept: list[Any]) -> tuple[Block, ...]:
    return tuple(_part(block, part) for block, part in zip(blocks, kept, strict=True) if part != 0)


def _part(block: Block, part: Any) -> Block:
    if part == 1:
        return block
    if isinstance(block, Columns):
        columns = zip(block.columns, part["columns"], strict=True)
        drawn = (_blocks(column, kept) for column, kept in columns)
        return replace(block, columns=tuple(column for column in drawn if column))
    if isinstance(block, ListBlock):
        return _list(block, part)
    n = part["n"]
    if isinstance(block, Table):
        return replace(block, rows=block.rows[:n])
    assert isinstance(block, Fields)
    return replace(block, fields=block.fields[: n * max(1, block.columns)])


def _list(block: ListBlock, part: dict[str, Any]) -> ListBlock:
    items = block.items[: part["n"]]
    below = part["below"]
    if below is not None:
        last = items[-1]
        assert last.below is not None
        items = (*items[:-1], Item(last.content, _list(last.below, below) if below else None))
    return replace(block, items=items)
