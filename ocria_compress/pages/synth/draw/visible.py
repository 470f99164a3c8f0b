"""Makes a document say only what can be seen: emphasis that the fonts cannot show, and note markers without notes (or
notes without markers), are taken out before a page is laid out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from ocria_compress.pages.synth.document import (
    Block,
    Columns,
    Document,
    Heading,
    Item,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Run,
    Table,
    Text,
    walk,
)
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.fonts import FontFamily

Change = Callable[[Text], Text]


def change_text(block: Block, running: Change, heading: Change, header: Change) -> Block:
    """The block with its running text, heading text or header cells' text changed."""
    if isinstance(block, Heading):
        return replace(block, content=heading(block.content))
    if isinstance(block, Paragraph):
        return replace(block, content=running(block.content))
    if isinstance(block, Lines):
        return replace(block, lines=tuple(running(line) for line in block.lines))
    if isinstance(block, ListBlock):
        return _change_list(block, running)
    if isinstance(block, Table):
        rows = tuple(
            tuple(replace(cell, content=(header if cell.header else running)(cell.content)) for cell in row)
            for row in block.rows
        )
        return replace(block, rows=rows)
    if isinstance(block, Notes):
        return Notes(tuple((marker, running(content)) for marker, content in block.notes))
    if isinstance(block, Columns):
        inside = (tuple(change_text(each, running, heading, header) for each in column) for column in block.columns)
        return replace(block, columns=tuple(inside))
    return block


def _change_list(block: ListBlock, running: Change) -> ListBlock:
    items = tuple(
        Item(running(item.content), None if item.below is None else _change_list(item.below, running))
        for item in block.items
    )
    return replace(block, items=items)


def without(content: Text, styles: Collection[str]) -> Text:
    """Runs of these styles become plain; plain neighbours become one run."""
    if not any(run.style in styles for run in content):
        return content
    merged: list[Run] = []
    for run in content:
        plain = Run(run.text) if run.style in styles else run
        if merged and plain.style == "plain" and merged[-1].style == "plain":
            merged[-1] = Run(merged[-1].text + plain.text)
        else:
            merged.append(plain)
    return tuple(merged)


def _unseen(family: FontFamily, bold: bool, italic: bool = False) -> frozenset[str]:
    """The styles that a family cannot show beside text that is itself bold or italic."""
    styles = set()
    if bold or italic or not family.has_italic:
        styles.add("italic")
    if bold or not family.has_bold:
        styles.add("bold")
    return frozenset(styles)


def bold_headers(table: Table, look: Look) -> bool:
    """Whether a table's header cells are bold: always where neither a shade nor a rule tells them from the others."""
    in_body = any(cell.header for row in table.rows for cell in row if not all(each.header for each in row))
    return look.table.head_bold or not (table.shade or (table.rules == "head" and not in_body))


def visible(document: Document, look: Look) -> Document:
    """The document without emphasis that its look cannot show."""
    body = _unseen(look.body, False)

    def change(block: Block) -> Block:
        if isinstance(block, Heading):
            style = look.headings[block.level - 1]
            unseen = _unseen(look.heading, style.bold, style.italic)
            return replace(block, content=without(block.content, unseen))
        if isinstance(block, Columns):
            return replace(block, columns=tuple(tuple(change(each) for each in column) for column in block.columns))
        head = _unseen(look.body, bold_headers(block, look)) if isinstance(block, Table) else body
        return change_text(block, lambda one: without(one, body), lambda one: one, lambda one: without(one, head))

    return replace(document, blocks=tuple(change(block) for block in document.blocks))


def _texts(blocks: tuple[Block, ...]) -> Iterator[Text]:
    found: list[Text] = []

    def note(content: Text) -> Text:
        found.append(content)
        return content

    for block in walk(blocks):
        if not isinstance(block, Columns):
            change_text(block, note, note, note)
    return iter(found)


def note_markers(blocks: tuple[Block, ...]) -> list[str]:
    """The markers of notes in text, in reading order."""
    return [run.text for content in _texts(blocks) for run in content if run.style == "note"]


def note_texts(blocks: tuple[Block, ...]) -> list[str]:
    """The markers of the notes themselves."""
    return [marker for block in walk(blocks) if isinstance(block, Notes) for marker, _ in block.notes]


def with_notes(document: Document, kept: frozenset[str]) -> Document:
    """The document with these notes and their markers only."""

    def strip(content: Text) -> Text:
        return tuple(run for run in content if run.style != "note" or run.text in kept)

    def change(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        changed: list[Block] = []
        for block in blocks:
            if isinstance(block, Columns):
                changed.append(replace(block, columns=tuple(change(column) for column in block.columns)))
            elif isinstance(block, Notes):
                notes = tuple(note for note in block.notes if note[0] in kept)
                if notes:
                    changed.append(change_text(Notes(notes), strip, strip, strip))
            else:
                changed.append(change_text(block, strip, strip, strip))
        return tuple(changed)

    return replace(document, blocks=change(document.blocks))
