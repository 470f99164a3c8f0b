"""TEDS and TEDS-S: how far a table that was read is the table of the reference, and the same for all tables of a page.

Definition (X. Zhong, E. ShafieiBavani, A. Jimeno Yepes: Image-based table recognition: data, model, and evaluation,
ECCV 2020): tables are ordered trees, TEDS(A, B) = 1 - d(A, B) / max(|A|, |B|). |T| counts the nodes below the root. d
is the tree edit distance: to insert or delete a node costs 1; to replace one costs 1 when the tags or spans differ,
otherwise, for cells, the Levenshtein distance of their texts over the longer one's length, and 0 for other nodes.
TEDS-S ("structure") leaves the texts out. 1 is equal, 0 nothing in common (a distance above max(|A|, |B|) counts as 0,
too; two tables without any row score 1).

The code published with the paper (github.com/ibm-aur-nlp/PubTabNet) differs from ours; `PUBLISHED` scores as it does:

- it never compares the texts of `th`: two tables with other headers score 1. Ours takes `th` for a cell like any other.
- it has `thead` and `tbody` as nodes. Ours drops them: a pipe table, or a model that leaves them out, is not worse.
- it compares markup inside cells and counts its tags as nodes. Ours compares what is read (`tables.clean_text`).
- `th` where `td` belongs (or the other way round) costs 1 and the cell's text there; here it is free, because
  references do not agree on which cells are headers (PubTabNet itself has no `th` at all), and the text is what is
  read. `Choices.header_cost` gives it a price where references and model share one rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ocria_compress.evaluate.tables import Cell, Table, find_tables, markup_tokens


@dataclass(frozen=True)
class Choices:
    """What is compared.

    Attributes:
        header_text: compare the texts of `th`.
        header_cost: what it costs, 0 to 1, that one cell is `th` and the other `td`; the greater of this and the cost
            of the texts counts.
        sections: keep `thead`, `tbody` and `tfoot` as nodes.
        markup: compare cells as characters and tags, whitespace untouched, and count the tags as nodes.
    """

    header_text: bool = True
    header_cost: float = 0.0
    sections: bool = False
    markup: bool = False


OURS = Choices()
PUBLISHED = Choices(header_text=False, header_cost=1.0, sections=True, markup=True)
"""The published code's choices, to the last digit for tables without `th` that are not broken."""


@dataclass(frozen=True)
class PageTables:
    """The tables of a page against the reference's.

    Attributes:
        teds, structure: sum of the pairs' TEDS and TEDS-S over the number of tables on the side that has more of them,
            so that missing and invented tables count as 0.
        pairs: (index of the table read, index in the reference, its TEDS), paired so that the sum of TEDS is greatest.
        missing: how many tables of the reference were not read.
        invented: how many were read that the reference does not have.
        unclosed: how many of those read are never closed.
    """

    teds: float
    structure: float
    pairs: tuple[tuple[int, int, float], ...]
    missing: int
    invented: int
    unclosed: int


def teds(read: Table, reference: Table, *, structure_only: bool = False, choices: Choices = OURS) -> float:
    """TEDS (or TEDS-S) of two tables, 0 to 1; symmetric."""
    if read == reference and (not choices.markup or _raw(read) == _raw(reference)):
        return 1.0
    first, second = _flat(read, choices), _flat(reference, choices)
    nodes = max(first.counted, second.counted)
    if not nodes:
        return 1.0
    distance = _distance(first, second, _replacement(first, second, structure_only, choices))
    return max(0.0, 1.0 - distance / nodes)


def page_tables(
    read: str | Sequence[Table], reference: str | Sequence[Table], *, choices: Choices = OURS
) -> PageTables | None:
    """Scores all tables of a page; None where neither side has one. A text is searched for its tables."""
    mine = find_tables(read) if isinstance(read, str) else list(read)
    theirs = find_tables(reference) if isinstance(reference, str) else list(reference)
    if not mine and not theirs:
        return None
    known: dict[tuple[Table, Table], float] = {}
    scores = []
    for one in mine:
        for other in theirs:
            if (one, other) not in known:  # loops write one table over and over again
                known[one, other] = teds(one, other, choices=choices)
        scores.append([known[one, other] for other in theirs])
    pairs = tuple((i, j, scores[i][j]) for i, j in best_pairs(scores))
    structure = sum(teds(mine[i], theirs[j], structure_only=True, choices=choices) for i, j, _ in pairs)
    most = max(len(mine), len(theirs))
    return PageTables(
        teds=sum(score for _, _, score in pairs) / most,
        structure=structure / most,
        pairs=pairs,
        missing=len(theirs) - len(pairs),
        invented=len(mine) - len(pairs),
        unclosed=sum(not table.closed for table in mine),
    )


def best_pairs(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pairs (row, column), each row and column at most once, as many as there can be, with the greatest sum.

    The Hungarian method (H. Kuhn, 1955; with potentials and shortest paths as by J. Edmonds and R. Karp, 1972), in
    O(k^2 m) for k rows and columns on the shorter side and m on the longer one. Sorted by row.
    """
    if not scores or not scores[0]:
        return []
    if len(scores) > len(scores[0]):
        return sorted((i, j) for j, i in best_pairs(list(zip(*scores, strict=True))))
    import numpy as np

    costs = -np.asarray(scores, dtype=np.float64)
    rows, columns = costs.shape
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    owner = np.full(columns, -1)  # the row of each column
    for start in range(rows):
        reached, before = np.full(columns, np.inf), np.full(columns, -1)
        done = np.zeros(columns, dtype=bool)
        row, last, length = start, -1, 0.0
        while True:  # the shortest path from `start` to a column without a row
            through = length + costs[row] - row_price[row] - column_price
            better = ~done & (through < reached)
            reached[better], before[better] = through[better], last
            last = int(np.argmin(np.where(done, np.inf, reached)))
            length, done[last] = float(reached[last]), True
            if owner[last] < 0:
                break
            row = int(owner[last])
        row_price[start] += length
        inner = done & (owner >= 0)
        row_price[owner[inner]] += length - reached[inner]
        column_price[inner] -= length - reached[inner]
        while last >= 0:
            previous = int(before[last])
            owner[last] = start if previous < 0 else owner[previous]
            last = previous
    return sorted((int(row), column) for column, row in enumerate(owner) if row >= 0)


def _raw(table: Table) -> list[str]:
    return [cell.raw for row in table.rows for cell in row]


@dataclass
class _Flat:
    """A tree's nodes in postorder.

    Attributes:
        labels: what must be equal: tag and spans (`td` for `th`, too, where that is free).
        texts: of the cells; None for other nodes, and for cells whose text is not compared.
        headers: which nodes are `th`.
        first: the leftmost leaf below each node, by index.
        counted: nodes below the root, tags inside cells included where they count.
    """

    labels: list[tuple]
    texts: list[str | None]
    headers: list[bool]
    first: list[int]
    counted: int


def _flat(table: Table, choices: Choices) -> _Flat:
    flat = _Flat([], [], [], [], 0)

    def add(label: tuple, first: int, text: str | None = None, header: bool = False) -> None:
        flat.labels.append(label)
        flat.texts.append(text)
        flat.headers.append(header)
        flat.first.append(min(first, len(flat.labels) - 1))

    inside = 0
    for section in table.sections:
        section_first = len(flat.labels)
        for row in section.rows:
            row_first = len(flat.labels)
            for cell in row:
                text, tags = _content(cell, choices)
                inside += tags
                add(("cell", cell.rowspan, cell.colspan), len(flat.labels), text, cell.header)
            add(("tr",), row_first)
        if section.tag and choices.sections:
            add((section.tag,), section_first)
    add(("table",), 0)
    flat.counted = len(flat.labels) - 1 + inside
    return flat


_ONE_CHARACTER: dict[str, str] = {}


def _content(cell: Cell, choices: Choices) -> tuple[str | None, int]:
    """A cell's text, a character for each token, and how many tags in it count as nodes."""
    if cell.header and not choices.header_text:
        return None, 0
    if not choices.markup:
        return cell.text, 0
    tokens = markup_tokens(cell.raw)
    text = "".join(
        each if len(each) == 1 else _ONE_CHARACTER.setdefault(each, chr(0x100000 + len(_ONE_CHARACTER)))
        for each in tokens
    )
    return text, sum(len(each) > 1 and not each.startswith("</") for each in tokens)


def _replacement(first: _Flat, second: _Flat, structure_only: bool, choices: Choices) -> Any:
    """What it costs to replace each node of the first tree [rows] by each of the second [columns]."""
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    numbers = {label: number for number, label in enumerate({*first.labels, *second.labels})}
    labels = [np.array([numbers[label] for label in flat.labels]) for flat in (first, second)]
    costs = (labels[0][:, None] != labels[1][None, :]).astype(np.float64)
    if not structure_only:
        at = [np.array([i for i, text in enumerate(flat.texts) if text is not None], int) for flat in (first, second)]
        texts = [[text for text in flat.texts if text is not None] for flat in (first, second)]
        if texts[0] and texts[1]:
            unique = [{text: number for number, text in enumerate(dict.fromkeys(each))} for each in texts]
            apart = cdist(list(unique[0]), list(unique[1]), scorer=Levenshtein.distance, dtype=np.int32)
            lengths = [np.array([len(text) for text in each]) for each in unique]
            apart = apart / np.maximum(np.maximum(lengths[0][:, None], lengths[1][None, :]), 1)
            which = [np.array([known[text] for text in each]) for known, each in zip(unique, texts, strict=True)]
            cells = np.ix_(at[0], at[1])
            costs[cells] = np.maximum(costs[cells], apart[np.ix_(which[0], which[1])])
    if choices.header_cost:
        mixed = np.array(first.headers)[:, None] != np.array(second.headers)[None, :]
        costs[mixed] = np.maximum(costs[mixed], choices.header_cost)
    return costs


def _distance(first: _Flat, second: _Flat, costs_NM: Any) -> float:
    """The tree edit distance, N and M nodes.

    The recurrence is the one of K. Zhang and D. Shasha (1989): the distance of two subtrees out of those of all smaller
    ones. Tables are shallow (cells, rows, one or two levels above), so whole levels are computed at once: a leaf
    against a subtree is a minimum over its nodes; all pairs of rows run side by side; what is above rows runs row by
    row.
    O(N M) in all, for rows of equal length.
    """
    import numpy as np

    apart_NM = costs_NM.copy()  # of subtrees; right for two leaves
    one, two = (_Levels(np.array(flat.first)) for flat in (first, second))
    both_ways = ((one, two, costs_NM, apart_NM), (two, one, costs_NM.T, apart_NM.T))
    for mine, theirs, cost, apart in both_ways:
        from_leaves = cost[mine.leaves]
        for node in [*theirs.rows, *theirs.upper]:
            below = from_leaves[:, theirs.first[node] : node + 1].min(axis=1, initial=1.0)
            apart[mine.leaves, node] = node - theirs.first[node] + below
    if len(one.rows) and len(two.rows):
        _rows_against_rows(one, two, costs_NM, apart_NM)
    for mine, theirs, cost, apart in both_ways:
        if len(theirs.rows):
            for node in mine.upper:
                _node_against_rows(node, mine, theirs, cost, apart)
    for node in one.upper:
        for other in two.upper:
            _node_against_node(node, other, one, two, costs_NM, apart_NM)
    return float(apart_NM[-1, -1])


class _Levels:
    """A tree's nodes by height: leaves, rows (all children are leaves), and those above, in postorder.

    `cells` [rows, widest row] are the rows' children, filled up with any node; `widths` says how many there are.
    """

    def __init__(self, first: Any) -> None:
        import numpy as np

        nodes = np.arange(len(first))
        is_leaf = first == nodes
        leaves_before = np.concatenate([[0], np.cumsum(is_leaf)])
        flat = leaves_before[nodes] - leaves_before[first] == nodes - first
        self.first, self.leaves = first, nodes[is_leaf]
        self.rows, self.upper = nodes[~is_leaf & flat], nodes[~is_leaf & ~flat]
        self.widths = self.rows - first[self.rows]
        across = np.arange(self.widths.max(initial=0))
        self.cells = np.minimum(first[self.rows][:, None] + across, len(first) - 1)


def _rows_against_rows(mine: _Levels, theirs: _Levels, cost: Any, apart: Any) -> None:
    """All pairs of rows, R by S of them, with up to W and V cells; writes into `apart`."""
    import numpy as np

    across = (np.arange(len(mine.rows))[:, None], np.arange(len(theirs.rows))[None, :])
    widths_R, widths_S = mine.widths, theirs.widths
    cells_VRS = np.zeros((theirs.cells.shape[1] + 1, len(widths_R), len(widths_S)))  # the first i cells against j cells
    cells_VRS += np.arange(len(cells_VRS))[:, None, None]
    last_VRS = cells_VRS.copy()  # all cells of mine against j
    tree_RS = np.broadcast_to(widths_S + 1.0, cells_VRS.shape[1:])  # the first i cells against a whole row
    last_tree_RS = tree_RS.copy()
    for i, of_mine in enumerate(mine.cells.T):
        before = cells_VRS
        cells_VRS = before + 1
        for j, of_theirs in enumerate(theirs.cells.T, 1):
            replaced = before[j - 1] + cost[of_mine[:, None], of_theirs]
            np.minimum(cells_VRS[j], np.minimum(replaced, cells_VRS[j - 1] + 1), out=cells_VRS[j])
        inserted = cells_VRS[(widths_S[None, :], *across)] + 1
        tree_RS = np.minimum(np.minimum(tree_RS + 1, inserted), i + apart[of_mine[:, None], theirs.rows])
        ended = widths_R == i + 1
        last_VRS[:, ended], last_tree_RS[ended] = cells_VRS[:, ended], tree_RS[ended]
    result = np.minimum(
        last_VRS[(widths_S[None, :], *across)] + cost[mine.rows[:, None], theirs.rows], last_tree_RS + 1
    )
    whole_RS = np.broadcast_to(widths_R[:, None] + 1.0, result.shape)  # a whole row against the first j cells
    for j, of_theirs in enumerate(theirs.cells.T, 1):
        whole_RS = np.minimum(np.minimum(whole_RS, last_VRS[j]) + 1, j - 1 + apart[mine.rows[:, None], of_theirs])
        ended = widths_S == j
        result[:, ended] = np.minimum(result[:, ended], whole_RS[:, ended] + 1)
    apart[mine.rows[:, None], theirs.rows] = result


def _node_against_rows(root: int, mine: _Levels, theirs: _Levels, cost: Any, apart: Any) -> None:
    """One node above rows against all S rows of the other tree, with up to V cells; writes into `apart`."""
    import numpy as np

    steps_V = np.arange(theirs.cells.shape[1] + 1)
    rows_S = np.arange(len(theirs.rows))
    start = int(mine.first[root])
    forest_SV = np.broadcast_to(steps_V, (len(rows_S), len(steps_V))).astype(np.float64)
    tree_S = theirs.widths + 1.0
    kept = {start: forest_SV}  # the forest before each node that is a leftmost leaf
    wanted = set(mine.first[start : root + 1].tolist())
    for node in range(start, root + 1):
        before = kept[int(mine.first[node])] if mine.first[node] != node else forest_SV
        found = forest_SV + 1
        np.minimum(found[:, 1:], before[:, :-1] + apart[node, theirs.cells], out=found[:, 1:])
        found = np.minimum.accumulate(found - steps_V, axis=1) + steps_V
        inserted = found[rows_S, theirs.widths] + 1
        if node == root:
            replaced = forest_SV[rows_S, theirs.widths] + cost[root, theirs.rows]
        else:
            replaced = before[:, 0] + apart[node, theirs.rows]
        tree_S = np.minimum(np.minimum(tree_S + 1, inserted), replaced)
        forest_SV = found
        if node + 1 in wanted:
            kept[node + 1] = forest_SV
    apart[root, theirs.rows] = tree_S


def _node_against_node(root: int, other: int, mine: _Levels, theirs: _Levels, cost: Any, apart: Any) -> None:
    """Two nodes above rows, once all their smaller subtrees are known; writes into `apart`."""
    import numpy as np

    start, left = int(mine.first[root]), int(theirs.first[other])
    steps = np.arange(other - left + 2)
    leftmost = theirs.first[left : other + 1] - left
    forest = steps.astype(np.float64)
    kept = {start: forest}
    wanted = set(mine.first[start : root + 1].tolist())
    for node in range(start, root + 1):
        before = kept[int(mine.first[node])] if mine.first[node] != node else forest
        replaced = before[leftmost] + apart[node, left : other + 1]
        if node == root:
            replaced[-1] = forest[-2] + cost[root, other]
        found = forest + 1
        np.minimum(found[1:], replaced, out=found[1:])
        forest = np.minimum.accumulate(found - steps) + steps
        if node + 1 in wanted:
            kept[node + 1] = forest
    apart[root, other] = forest[-1]
