"""TEDS, against figures worked out by hand, a plain recursion, and the values published with PubTabNet."""

from __future__ import annotations

import functools
import itertools
import json
import random
import time
from pathlib import Path

import pytest

from ocria_compress.evaluate import teds as module
from ocria_compress.evaluate.tables import Cell, Section, Table, find_tables
from ocria_compress.evaluate.teds import OURS, PUBLISHED, Choices, best_pairs, page_tables, teds

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "pages" / "pubtabnet_examples" / "src"
PUBLISHED_VALUES = {
    "PMC2094709_004_00": 1.0,
    "PMC2871264_002_00": 1.0,
    "PMC2915972_003_00": 0.9298260149130074,
    "PMC3160368_005_00": 0.994615695248351,
    "PMC3568059_003_00": 0.9609420535891124,
    "PMC3707453_006_00": 0.8538903625110521,
    "PMC3765162_003_01": 0.9867342100509474,
    "PMC3872294_001_00": 0.9863636363636363,
    "PMC4196076_004_00": 0.9958653089334908,
    "PMC4219599_004_00": 0.6029978075326913,
    "PMC4297392_007_00": 0.8070175438596492,
    "PMC4311460_007_00": 0.6576923076923077,
    "PMC4357206_002_00": 0.9295181638546892,
    "PMC4445578_009_01": 0.6754965084868096,
    "PMC4969833_016_01": 1.0,
    "PMC5303243_003_00": 0.6494374120956399,
    "PMC5451934_004_00": 0.9978213507625272,
    "PMC5755158_010_01": 1.0,
    "PMC5849724_006_00": 0.9653439200120101,
    "PMC6022086_007_00": 1.0,
}


def html(*rows: str, cell: str = "td") -> str:
    """A table; cells of a row are parted by spaces."""
    lines = ("<tr>" + "".join(f"<{cell}>{each}</{cell}>" for each in row.split()) + "</tr>" for row in rows)
    return "<table>" + "".join(lines) + "</table>"


def score(read: str, reference: str, **options: object) -> float:
    (one,), (other,) = find_tables(read), find_tables(reference)
    found = teds(one, other, **options)  # type: ignore[arg-type]
    assert found == pytest.approx(teds(other, one, **options))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("read", "reference", "expected", "structure"),
    [
        (html("a b"), html("a b"), 1.0, 1.0),
        (html("abcd x"), html("abcx x"), 1 - 0.25 / 3, 1.0),  # 0.91667
        (html("a b"), html("a b", "c d"), 0.5, 0.5),
        (html("abcd", cell="th"), html("wxyz", cell="th"), 0.5, 1.0),  # the header's text counts
        (html("a", cell="th"), html("a"), 1.0, 1.0),
        ('<table><tr><td colspan="2">a</td></tr></table>', html("a"), 0.5, 0.5),
        ("<table></table>", "<table></table>", 1.0, 1.0),
        ("<table></table>", html("a"), 0.0, 0.0),
        ("<table><thead><tr><td>a</td></tr></thead></table>", html("a"), 1.0, 1.0),
        ("|a|b|\n|-|-|\n|c|d|", html("a b", "c d"), 1.0, 1.0),
        ("<table><tr><td>a<td>b", html("a b"), 1.0, 1.0),
        ("<table><tr><td><b>a</b></td></tr></table>", html("a"), 1.0, 1.0),
    ],
)
def test_worked_out_by_hand(read: str, reference: str, expected: float, structure: float) -> None:
    assert score(read, reference) == pytest.approx(expected)
    assert score(read, reference, structure_only=True) == pytest.approx(structure)


def test_th_has_a_price_when_it_is_asked_for() -> None:
    assert score(html("a b", cell="th"), html("a b"), choices=Choices(header_cost=0.1)) == pytest.approx(1 - 0.2 / 3)


def test_the_published_code_takes_tables_with_other_headers_for_equal() -> None:
    assert score(html("abcd", cell="th"), html("wxyz", cell="th"), choices=PUBLISHED) == 1.0


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="PubTabNet's samples are not beside the checkout")
def test_the_values_published_with_pubtabnet() -> None:
    """Sample files and printed values of PubTabNet's src/demo.ipynb (github.com/ibm-aur-nlp/PubTabNet)."""
    read, true = (json.loads((SAMPLES / f"sample_{name}.json").read_text("utf-8")) for name in ("pred", "gt"))
    assert {name.removesuffix(".png") for name in true} == set(PUBLISHED_VALUES)
    for name, expected in PUBLISHED_VALUES.items():
        found = score(read[f"{name}.png"], true[f"{name}.png"]["html"], choices=PUBLISHED)
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("read", "reference", "nodes", "distance"),
    [  # the b below each cell and thead or tbody are nodes, and a tag is one character of the text
        ("<table><tr><td><b>ab</b></td></tr></table>", "<table><tr><td>ab</td></tr></table>", 3, 2 / 4),
        ("<table><tr><td><b>ab</b></td></tr></table>", "<table><tr><td><i>ab</i></td></tr></table>", 3, 2 / 4),
        ("<table><tbody><tr><td>a</td></tr></tbody></table>", "<table><tr><td>a</td></tr></table>", 3, 1),
        ("<table><tr><td>a b</td></tr></table>", "<table><tr><td>a  b</td></tr></table>", 2, 1 / 4),
    ],
)
def test_the_published_choices_worked_out_by_hand(read: str, reference: str, nodes: int, distance: float) -> None:
    assert score(read, reference, choices=PUBLISHED) == pytest.approx(1 - distance / nodes)


def random_table(rng: random.Random, most: int) -> Table:
    words = ["a", "bb", "abc", "abd", "xyz", "", "12.5", "12,5"]

    def cell() -> Cell:
        return Cell(rng.choice(words), rng.choice((1, 1, 2)), rng.choice((1, 1, 2)), rng.random() < 0.3)

    return Table(
        tuple(
            Section(
                rng.choice(("", "thead", "tbody")),
                tuple(tuple(cell() for _ in range(rng.randint(0, most))) for _ in range(rng.randint(0, most))),
            )
            for _ in range(rng.randint(0, 2))
        )
    )


def plain_distance(first: list[int], second: list[int], costs: object) -> float:
    """The definition of the tree edit distance of two forests given in postorder, by plain recursion."""

    @functools.cache
    def apart(start: int, end: int, left: int, right: int) -> float:
        if start == end or left == right:
            return float(end - start + right - left)
        one, other = end - 1, right - 1
        return min(
            apart(start, one, left, right) + 1,
            apart(start, end, left, other) + 1,
            apart(start, first[one], left, second[other])
            + apart(first[one], one, second[other], other)
            + costs[one, other],  # type: ignore[index]
        )

    return apart(0, len(first), 0, len(second))


def test_distances_are_those_of_the_definition() -> None:
    rng = random.Random(1)
    kinds = (OURS, Choices(header_cost=0.3), Choices(sections=True), Choices(header_text=False, header_cost=1.0))
    for _ in range(80):
        choices = rng.choice(kinds)
        one, other = (module._flat(random_table(rng, 3), choices) for _ in range(2))
        costs = module._replacement(one, other, rng.random() < 0.2, choices)
        expected = plain_distance(one.first, other.first, costs)
        assert module._distance(one, other, costs) == pytest.approx(expected, abs=1e-12)


def test_distances_are_those_of_apted() -> None:
    apted = pytest.importorskip("apted")

    class Node:
        def __init__(self, number: int, children: list[Node]) -> None:
            self.number, self.children = number, children

    def tree(first: list[int]) -> Node:
        stack: list[Node] = []
        for number, leftmost in enumerate(first):
            below = [node for node in stack if node.number >= leftmost]
            del stack[len(stack) - len(below) :]
            stack.append(Node(number, below))
        return stack[0]

    rng = random.Random(2)
    for _ in range(40):
        choices = Choices(sections=rng.random() < 0.5)
        one, other = (module._flat(random_table(rng, 4), choices) for _ in range(2))
        costs = module._replacement(one, other, False, choices)
        config = apted.Config()
        config.rename = lambda mine, theirs, costs=costs: costs[mine.number, theirs.number]
        expected = apted.APTED(tree(one.first), tree(other.first), config).compute_edit_distance()
        assert module._distance(one, other, costs) == pytest.approx(expected, abs=1e-12)


def test_missing_and_invented_tables_score_0() -> None:
    a, b, c = html("a b", "c d"), html("x y z"), html("1", "2", "3")
    assert page_tables("text", "text") is None
    found = page_tables(f"{b}\n\n{a}", f"{a}\n\n{b}")
    assert found is not None and found.teds == 1.0 and found.pairs == ((0, 1, 1.0), (1, 0, 1.0))
    for read, reference, expected, missing, invented in (
        (a, f"{a} {b}", 1 / 2, 1, 0),
        (f"{a} {b} {c}", c, 1 / 3, 0, 2),
        (a, "text", 0.0, 0, 1),
        ("", a, 0.0, 1, 0),
        (a * 30, a, 1 / 30, 0, 29),
    ):
        found = page_tables(read, reference)
        assert found is not None
        assert (found.teds, found.structure) == pytest.approx((expected, expected))
        assert (found.missing, found.invented) == (missing, invented)


def test_unclosed_tables_are_counted() -> None:
    found = page_tables("<table><tr><td>a", html("a"))
    assert found is not None and (found.teds, found.unclosed) == (1.0, 1)


def test_pairs_have_the_greatest_sum() -> None:
    rng = random.Random(3)
    for _ in range(150):
        rows, columns = rng.randint(1, 4), rng.randint(1, 5)
        scores = [[rng.choice((0.0, 0.5, 1.0, rng.random())) for _ in range(columns)] for _ in range(rows)]
        pairs = best_pairs(scores)
        assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == min(rows, columns)
        wide = scores if rows <= columns else [list(each) for each in zip(*scores, strict=True)]
        every = itertools.permutations(range(len(wide[0])), len(wide))
        best = max(sum(row[j] for row, j in zip(wide, order, strict=True)) for order in every)
        assert sum(scores[i][j] for i, j in pairs) == pytest.approx(best)
    assert best_pairs([]) == best_pairs([[]]) == []


def test_a_table_of_40_by_10_takes_milliseconds() -> None:
    rng = random.Random(4)
    one, other = (
        find_tables(html(*(" ".join(str(rng.randint(0, 9999)) for _ in range(10)) for _ in range(40))))
        for _ in range(2)
    )
    teds(one[0], other[0])  # imports
    started = time.monotonic()
    assert 0 < teds(one[0], other[0]) < 1
    assert time.monotonic() - started < 1  # 0.035 s where nothing else runs; apted takes 4 s
