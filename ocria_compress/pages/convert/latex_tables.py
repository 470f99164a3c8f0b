"""LaTeX tables (`tabular` and its kin) as the HTML tables of references.

Rows above the first rule that has a row above it are header rows. `\\multirow` and `\\multicolumn` become spans; a cell
under a `\\multirow` that is not empty ends it, as it does on paper. Rows that are short get empty cells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert.common import table_markdown
from ocria_compress.pages.convert.latex_text import argument, group, latex_text, skip_space
from ocria_compress.pages.html_tables import RawCell, RawTable, grid_faults

_BEGIN = re.compile(r"\\begin\s*\{(tabular\*?|tabularx|tabulary|longtable|array|tabu)\}")
_PARTS = re.compile(r"\\\\\*?(?:\s*\[[^\]\n]*\])?|\\tabularnewline\b|\\(?:begin|end)\s*\{[^{}]*\}|\\.|[{}&]", re.DOTALL)
_RULE = re.compile(
    r"\s*\\(?:(?P<full>hline|toprule|midrule|bottomrule|Xhline|hdashline|specialrule)(?![A-Za-z])"
    r"|(?P<partial>cmidrule|cline|hhline|noalign|addlinespace|rowcolor|arrayrulecolor|morecmidrules|cdashline|rowcolors"
    r"|endhead|endfirsthead|endfoot|endlastfoot)(?![A-Za-z]))\*?"
)
_RULE_ARGUMENTS = {"specialrule": 3, "Xhline": 1, "cmidrule": 1, "cline": 1, "hhline": 1, "noalign": 1, "rowcolor": 1}
_RULE_ARGUMENTS |= {"arrayrulecolor": 1, "cdashline": 1, "rowcolors": 3}


@dataclass
class _Cell:
    text: str
    columns: int = 1
    rows: int = 1


def latex_table(latex: str, where: str) -> str:
    """The tables of a piece of LaTeX as HTML, one below the other.

    Raises:
        OcriaError: there is no table, or it cannot be read.
    """
    latex = re.sub(r"(?<!\\)%[^\n]*\n?", "", latex)
    tables: list[str] = []
    at = 0
    try:
        while match := _BEGIN.search(latex, at):
            body, at = _body(latex, match)
            tables.append(table_markdown(_table(body, where)))
    except (ValueError, RecursionError) as error:
        raise OcriaError(f"LaTeX of a table cannot be read: {error}", where=where) from error
    if not tables:
        raise OcriaError("there is no tabular where a LaTeX table belongs", where=where)
    return "\n\n".join(tables)


def _body(latex: str, begin: re.Match[str]) -> tuple[str, int]:
    at = begin.end()
    if begin[1] in ("tabular*", "tabularx", "tabulary"):
        _, at = argument(latex, at)
    _, at = argument(latex, at)
    depth, name = 1, re.escape(begin[1])
    for match in re.compile(rf"\\(begin|end)\s*\{{{name}\}}").finditer(latex, at):
        depth += 1 if match[1] == "begin" else -1
        if depth == 0:
            return latex[at : match.start()], match.end()
    raise ValueError(f"\\begin{{{begin[1]}}} is not closed")


def _split(body: str) -> list[list[str]]:
    """The rows of cells as written; `&` and line ends inside groups, formulas and inner tables do not count."""
    rows: list[list[str]] = [[]]
    depth = start = 0
    for match in _PARTS.finditer(body):
        part = match[0]
        if part == "{" or part.startswith("\\begin"):
            depth += 1
        elif part == "}" or part.startswith("\\end"):
            depth -= 1
        elif depth == 0 and part == "&":
            rows[-1].append(body[start : match.start()])
            start = match.end()
        elif depth == 0 and (part.startswith("\\\\") or part == "\\tabularnewline"):
            rows[-1].append(body[start : match.start()])
            rows.append([])
            start = match.end()
    rows[-1].append(body[start:])
    return rows


def _table(body: str, where: str) -> RawTable:
    rows: list[list[_Cell]] = []
    header = 0
    for cells in _split(body):
        cells[0], ruled = _without_rules(cells[0])
        empty = len(cells) == 1 and not cells[0].strip()
        if ruled and not header and rows:
            header = len(rows) if not empty else -1  # a rule below the last row is the table's end
        if not empty:
            rows.append([_cell(cell, where) for cell in cells])
    if not rows:
        raise ValueError("a table without rows")
    table = _grid(rows, max(header, 0))
    if faults := grid_faults(table):
        raise ValueError(faults[0].what)
    return table


def _without_rules(cell: str) -> tuple[str, bool]:
    """The first cell of a row without the rules and colours before it, and whether a rule goes right across."""
    ruled = False
    while match := _RULE.match(cell):
        name = match["full"] or match["partial"]
        ruled |= match["full"] is not None
        at = skip_space(cell, match.end())
        while cell[at : at + 1] in ("[", "("):
            at = skip_space(cell, group(cell, at, "[]" if cell[at] == "[" else "()")[1])
        for _ in range(_RULE_ARGUMENTS.get(name, 0)):
            _, at = argument(cell, at)
        cell = cell[at:]
    return cell, ruled


def _cell(source: str, where: str) -> _Cell:
    cell = _Cell(source)
    for name in ("multicolumn", "multirow", "multicolumn"):
        match = re.search(rf"\\{name}\s*(?=[\[{{])", cell.text)
        if match is None:
            continue
        number, at = argument(cell.text, match.end())
        _, at = argument(cell.text, at)
        inner, at = argument(cell.text, at)
        count = int(number.strip())  # of a multirow negative: it reaches upwards
        cell.text = cell.text[: match.start()] + "{" + inner + "}" + cell.text[at:]
        if name == "multicolumn":
            cell.columns = max(1, count)
        else:
            cell.rows = count or 1
    return _Cell(latex_text(cell.text, where), cell.columns, cell.rows)


def _grid(rows: list[list[_Cell]], header: int) -> RawTable:
    width = max(sum(cell.columns for cell in row) for row in rows)
    grid: list[list[_Cell | None]] = []  # a cell in its first column, None in the others
    for row in rows:
        row = row + [_Cell("") for _ in range(width - sum(cell.columns for cell in row))]
        grid.append([each for cell in row for each in (cell, *[None] * (cell.columns - 1))])
    for y, line in enumerate(grid):
        for x, cell in enumerate(line):
            if cell is not None and cell.rows < 0:
                _move_up(grid, y, x, cell)
    covered: set[tuple[int, int]] = set()
    table = RawTable(1, 0)
    for y, line in enumerate(grid):
        table.rows.append([])
        for x, cell in enumerate(line):
            if cell is None or (y, x) in covered:
                continue
            height = 1
            while height < cell.rows and y + height < len(grid) and _is_free(grid[y + height], x, cell.columns):
                covered |= {(y + height, x + i) for i in range(cell.columns)}
                height += 1
            if y < header < y + height:
                header = y + height
            table.rows[-1].append(RawCell(1, y < header, height, cell.columns, cell.text))
    return table


def _is_free(line: list[_Cell | None], x: int, columns: int) -> bool:
    """Whether the places are empty cells of their own, so that a cell above may reach over them."""
    if line[x] is None:
        return False
    if x + columns < len(line) and line[x + columns] is None:
        return False
    return all(cell is None or not cell.text for cell in line[x : x + columns])


def _move_up(grid: list[list[_Cell | None]], y: int, x: int, cell: _Cell) -> None:
    """`\\multirow{-3}` stands in the last of its rows: it moves to the first, as far as those above are empty."""
    height = 1
    while height < -cell.rows and y - height >= 0 and _is_free(grid[y - height], x, cell.columns):
        height += 1
    top = y - height + 1
    if top != y:
        empty = [_Cell("") if i == 0 else None for i in range(cell.columns)]
        empty[0] = _Cell("", cell.columns)
        grid[top][x : x + cell.columns], grid[y][x : x + cell.columns] = [cell, *[None] * (cell.columns - 1)], empty
    cell.rows = height
