"""A reference read back into blocks, to be shown: Markdown by markdown-it-py, HTML tables by `html_tables`.

The blocks are those of the document tree that synthetic pages are made from (`pages/synth/document.py`), and `Code`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from ocria_compress.pages.html_tables import RawTable, read_tables
from ocria_compress.pages.reference import without_code
from ocria_compress.pages.synth.document import (
    Block,
    Cell,
    Formula,
    Heading,
    Item,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Run,
    Table,
    Text,
)

_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\$)\$(?![\s$])([^$\n]*?[^\s$\\])\$(?![\d$])", re.DOTALL)
_MARKER = re.compile(r"\[\^([\w-]{1,20})\]")
_NOTE = re.compile(r"\[\^([\w-]{1,20})\]:\s*(.*)", re.DOTALL)
_DISPLAYED = re.compile(r"^[ \t]*\$\$(.+?)\$\$[ \t]*$", re.DOTALL | re.MULTILINE)
_PLAIN = {"sup", "sub", "u", "s", "span", "p", "div", "small", "del", "ins", "mark", "a", "img", "ul", "li"}
"""Tags that change nothing that is shown here."""
_STYLES = {"b": "bold", "strong": "bold", "i": "italic", "em": "italic"}


@dataclass(frozen=True, slots=True)
class Code:
    """A block of code, as it is."""

    content: str


Shown = Block | Code


def parse(markdown: str) -> list[Shown]:
    """The blocks of a reference, in order. Nothing fails: what is broken is text."""
    blank, _ = without_code(markdown)
    tables, _ = read_tables(blank)
    places = [(t.start, t.end, t) for t in tables if not any(o.start < t.start and t.end < o.end for o in tables)]
    places += [
        (m.start(), m.end(), m[1])  # type: ignore[misc]
        for m in _DISPLAYED.finditer(blank)
        if not any(start <= m.start() < end for start, end, _ in places)
    ]
    blocks: list[Shown] = []
    at = 0
    for start, end, found in sorted(places, key=lambda place: place[0]):
        if start < at:
            continue
        blocks += _markdown(markdown[at:start])
        at = end
        blocks.append(_table(found) if isinstance(found, RawTable) else Formula(" ".join(found.split())))
    return blocks + _markdown(markdown[at:])


def inline(source: str) -> Text:
    """A line of Markdown as runs; line breaks are runs whose text is "\\n"."""
    tokens = _parser().parseInline(source.strip())
    return _runs(tokens[0].children or []) if tokens else ()


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    # A note would be taken for a link's definition, indented text for code, and "<" in the text for a block of HTML.
    parser.disable(["reference", "code", "html_block"])
    parser.inline.ruler.before("escape", "formula", _formula_rule)
    parser.inline.ruler.before("link", "note", _note_rule)
    return parser


def _formula_rule(state: Any, silent: bool) -> bool:
    if state.src[state.pos] != "$":
        return False
    match = _FORMULA.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("formula", "", 0).content = (match[1] or match[2]).strip()
    state.pos = match.end()
    return True


def _note_rule(state: Any, silent: bool) -> bool:
    match = _MARKER.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("note", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _markdown(source: str) -> list[Shown]:
    if not source.strip():
        return []
    tokens = _parser().parse(source)
    return _blocks(tokens, 0, len(tokens))


def _end(tokens: list[Any], start: int) -> int:
    """Where what is opened at `start` is closed."""
    return next(i for i in range(start + 1, len(tokens)) if tokens[i].level == tokens[start].level)


def _blocks(tokens: list[Any], i: int, stop: int) -> list[Shown]:
    blocks: list[Shown] = []
    while i < stop:
        token = tokens[i]
        if token.type in ("fence", "code_block"):
            blocks.append(Code(token.content.rstrip("\n")))
        elif token.type == "heading_open":
            blocks.append(Heading(_runs(tokens[i + 1].children), min(int(token.tag[1]), 4)))
            i += 2
        elif token.type == "paragraph_open":
            blocks += _paragraph(tokens[i + 1])
            i += 2
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            end = _end(tokens, i)
            blocks.append(_list(tokens, i, end))
            i = end
        elif token.type == "table_open":
            end = _end(tokens, i)
            blocks.append(_pipe_table(tokens[i:end]))
            i = end
        i += 1  # quotations are gone into; rules are left out
    return blocks


def _paragraph(token: Any) -> list[Shown]:
    if _NOTE.match(token.content):
        notes = []
        for part in re.split(r"\n(?=\[\^[\w-]{1,20}\]:)", token.content):
            match = _NOTE.match(part)
            assert match is not None
            notes.append((match[1], inline(match[2].replace("\n", " "))))
        return [Notes(tuple(notes))]
    lines = _lines(_runs(token.children))
    return [Paragraph(lines[0])] if len(lines) == 1 else [Lines(tuple(lines))]


def _lines(runs: Text) -> list[Text]:
    lines: list[list[Run]] = [[]]
    for run in runs:
        if run.text == "\n" and run.style == "plain":
            lines.append([])
        else:
            lines[-1].append(run)
    return [tuple(line) for line in lines]


def _list(tokens: list[Any], start: int, end: int) -> ListBlock:
    items: list[Item] = []
    i = start + 1
    while i < end:
        if tokens[i].type != "list_item_open":
            i += 1
            continue
        close = _end(tokens, i)
        inner = _blocks(tokens, i + 1, close)
        texts = [_plain(block) for block in inner if not isinstance(block, ListBlock)]
        content = tuple(run for n, text in enumerate(texts) for run in ((Run(" "),) if n else ()) + text)
        below = next((block for block in inner if isinstance(block, ListBlock)), None)
        items.append(Item(content, below))
        i = close
    ordered = tokens[start].type == "ordered_list_open"
    return ListBlock(tuple(items), ordered, int(tokens[start].attrGet("start") or 1), "." if ordered else "•")


def _plain(block: Shown) -> Text:
    if isinstance(block, Heading | Paragraph):
        return block.content
    if isinstance(block, Lines):
        return tuple(run for n, line in enumerate(block.lines) for run in ((Run(" "),) if n else ()) + line)
    return (Run(block.content),) if isinstance(block, Code) else ()


def _pipe_table(tokens: list[Any]) -> Table:
    rows: list[list[Cell]] = []
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(Cell(_runs(tokens[i + 1].children), header=token.type == "th_open"))
    return Table(tuple(tuple(row) for row in rows))


def _table(table: RawTable) -> Table:
    rows = []
    for row in table.rows:
        cells = []
        for cell in row:
            content = re.sub(r"\s*\n\s*", " ", re.sub(r"</?t(?:able|head|body|foot|r|d|h)\b[^<>]*>", " ", cell.content))
            cells.append(Cell(inline(content), cell.rowspan, cell.colspan, cell.header))
        rows.append(tuple(cells))
    return Table(tuple(rows))


def _runs(tokens: list[Any] | None) -> Text:
    runs: list[Run] = []
    open_styles: list[str] = []

    def add(text: str, style: str = "") -> None:
        style = style or (open_styles[-1] if open_styles else "plain")
        joins = style in ("plain", "bold", "italic") and text != "\n"
        if joins and runs and runs[-1].style == style and runs[-1].text != "\n":
            runs[-1] = Run(runs[-1].text + text, style)  # type: ignore[arg-type]
        elif text:
            runs.append(Run(text, style))  # type: ignore[arg-type]

    for token in tokens or []:
        if token.type in ("text", "code_inline", "text_special"):
            add(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            add("\n", "plain")
        elif token.type in ("formula", "note"):
            add(token.content, token.type)
        elif token.type in ("strong_open", "em_open"):
            open_styles.append("bold" if token.type == "strong_open" else "italic")
        elif token.type in ("strong_close", "em_close") and open_styles:
            open_styles.pop()
        elif token.type == "image":
            add(token.content)
        elif token.type == "html_inline":
            _html(token.content, open_styles, add)
    return tuple(runs)


def _html(tag: str, open_styles: list[str], add: Any) -> None:
    match = re.match(r"<(/?)([A-Za-z]+)\b", tag)
    name = match[2].lower() if match else ""
    if name == "br":
        add("\n", "plain")
    elif name in _STYLES:
        if match and match[1]:
            if open_styles:
                open_styles.pop()
        else:
            open_styles.append(_STYLES[name])
    elif name not in _PLAIN:
        add(tag)
