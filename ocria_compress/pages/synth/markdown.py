"""The reference of a document tree: Markdown with HTML tables.

Blocks are separated by an empty line. Tables are HTML, one row a line, without attributes other than `rowspan` and
`colspan`; header cells are `th`. Formulas are LaTeX, `$...$` in text and `$$...$$` displayed. Footnotes are
`[^1]` in text and `[^1]: ...` where they stand. `<`, `>` and `&` are written as printed, in tables too (as OCRia does).
"""

from __future__ import annotations

from itertools import zip_longest

from ocria_compress.pages.synth.document import (
    Block,
    Chart,
    Columns,
    Document,
    Fields,
    Formula,
    Heading,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Stamp,
    Table,
    Text,
    walk,
)

_AROUND = {"plain": "", "hand": "", "bold": "**", "italic": "*", "formula": "$"}


def to_markdown(document: Document) -> str:
    """The whole reference; no line break at its end."""
    return "\n\n".join(block_markdown(block) for block in document.blocks)


def tables_markdown(document: Document) -> str:
    """The reference of the prompt that asks for tables alone: the tables (charts included), in reading order."""
    tables = [_chart_table(block) if isinstance(block, Chart) else block for block in walk(document.blocks)]
    return "\n\n".join(_table(block) for block in tables if isinstance(block, Table))


def inline(content: Text) -> str:
    """Text with its emphasis, formulas and note markers. The spaces at the ends of emphasized runs go outside."""
    parts = []
    for run in content:
        if run.style == "note":
            parts.append(f"[^{run.text}]")
            continue
        mark = _AROUND[run.style]
        bare = run.text.strip(" ")
        lead = run.text[: len(run.text) - len(run.text.lstrip(" "))]
        tail = run.text[len(run.text.rstrip(" ")) :]
        parts.append(f"{lead}{mark}{bare}{mark}{tail}" if bare else run.text)
    return "".join(parts)


def block_markdown(block: Block) -> str:
    """One block's part of the reference."""
    if isinstance(block, Heading):
        return "#" * block.level + " " + inline(block.content)
    if isinstance(block, Paragraph):
        return inline(block.content)
    if isinstance(block, Lines):
        return "\n".join(inline(line) for line in block.lines)
    if isinstance(block, ListBlock):
        return "\n".join(_list(block, ""))
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Fields):
        around = "**" if block.bold else ""
        return "\n".join(f"{around}{each.label}:{around} {each.value}".rstrip() for each in block.fields)
    if isinstance(block, Formula):
        return f"$${block.latex}$$"
    if isinstance(block, Chart):
        return f"{block.title}\n\n{_table(_chart_table(block))}"
    if isinstance(block, Stamp):
        return " ".join(block.lines)
    if isinstance(block, Notes):
        return "\n".join(f"[^{marker}]: {inline(content)}" for marker, content in block.notes)
    assert isinstance(block, Columns)
    return "\n\n".join(block_markdown(each) for column in block.columns for each in column)


def _list(block: ListBlock, indent: str) -> list[str]:
    lines = []
    for number, item in enumerate(block.items, block.start):
        mark = f"{number}." if block.ordered else "-"
        lines.append(f"{indent}{mark} {inline(item.content)}")
        if item.below is not None:
            lines += _list(item.below, indent + " " * (len(mark) + 1))
    return lines


def _table(table: Table) -> str:
    lines = ["<table>"]
    for row in table.rows:
        cells = []
        for cell in row:
            tag = "th" if cell.header else "td"
            spans = f' rowspan="{cell.rowspan}"' * (cell.rowspan > 1) + f' colspan="{cell.colspan}"' * (
                cell.colspan > 1
            )
            cells.append(f"<{tag}{spans}>{inline(cell.content)}</{tag}>")
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _chart_table(chart: Chart) -> Table:
    from ocria_compress.pages.synth.document import Cell, text

    head = tuple(Cell(text(name), header=True) for name in (chart.corner, *(name for name, _ in chart.series)))
    columns = [chart.categories, *(values for _, values in chart.series)]
    body = (tuple(Cell(text(value)) for value in row) for row in zip_longest(*columns, fillvalue=""))
    return Table((head, *body))
