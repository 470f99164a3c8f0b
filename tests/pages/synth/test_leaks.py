"""Splits share nothing that could be learned by heart: no reference, no eight words in a row, no template, and the
benchmark has fonts and words of its own."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations

import pytest

from ocria_compress.pages.synth.fonts import families
from ocria_compress.pages.synth.generate import Prepared, Request, prepare
from ocria_compress.pages.synth.lexicon import LANGUAGES
from ocria_compress.pages.synth.lexicon.vocabulary import vocabulary, words_of
from ocria_compress.pages.synth.markdown import to_markdown
from ocria_compress.pages.synth.splits import SPLITS, Split
from ocria_compress.pages.synth.templates import GROUPS
from ocria_compress.pages.synth.templates.need import Stratum

PAGES: dict[Split, int] = {"train": 300, "draft": 150, "calibration": 64, "benchmark": 150}
WANTS: tuple[frozenset[Stratum], ...] = (
    frozenset(), frozenset({"spans"}), frozenset({"columns"}), frozenset({"formulas"}), frozenset({"languages"}),
)  # fmt: skip
LONG = 8
"""So many words in a row are a passage."""

MARKUP = re.compile(r"</?t[^>]*>|\[\^\d+\]:?")
# What is left out of the comparison. Running heads and feet are in no reference.
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]*\$")
"""LaTeX is notation: two integrals alike but for a letter share many "words" (int, 0, infty, dx)."""

FEWEST = 3
"""Passages of fewer different words are column heads repeated below groups of columns: "plan, actual, plan, actual".
"""

WORD = re.compile(r"[^\W_]+")


@cache
def prepared(split: Split) -> tuple[Prepared, ...]:
    """The first pages of a split before they are drawn; every fifth as drawn by chance, the others asked for more."""
    return tuple(prepare(Request(split, seed, WANTS[seed % len(WANTS)]), 0) for seed in range(PAGES[split]))


@cache
def references(split: Split) -> tuple[str, ...]:
    return tuple(to_markdown(one.document) for one in prepared(split))


def passages(markdown: str) -> set[tuple[str, ...]]:
    """All runs of `LONG` words without furniture."""
    found = set()
    for part in FORMULA.split(MARKUP.sub(" ", markdown)):
        words = [word.casefold() for word in WORD.findall(part)]
        found |= {tuple(words[i : i + LONG]) for i in range(len(words) - LONG + 1)}
    return {passage for passage in found if len(set(passage)) >= FEWEST}


def test_passages_are_found_over_cells_and_lines_and_furniture_is_not() -> None:
    a = "# The old bridge\n\n<table>\n<tr><th>was</th><td>closed in</td></tr>\n</table>\n\nMay 1998[^1] again"
    b = "he said THE OLD bridge was closed\nin May, 1998"
    assert passages(a) & passages(b) == {("the", "old", "bridge", "was", "closed", "in", "may", "1998")}
    assert passages(r"$\int_{0}^{1} g(t) e^{-t} dt$ and $a + b + c + d + e + f + g + h$") == set()
    assert passages("plan actual " * 6) == set()


@pytest.mark.parametrize(("one", "other"), list(combinations(SPLITS, 2)))
def test_splits_share_no_reference_and_no_passage(one: Split, other: Split) -> None:
    assert not set(references(one)) & set(references(other))
    shared = [set().union(*map(passages, references(split))) for split in (one, other)]
    assert min(map(len, shared)) > 2000
    assert shared[0] & shared[1] == set()


def test_no_page_of_a_split_comes_twice() -> None:
    for split in SPLITS:
        assert len(set(references(split))) == PAGES[split]


def test_pages_use_the_templates_of_their_split_only() -> None:
    used = {split: {one.document.template for one in prepared(split)} for split in SPLITS}
    for split in SPLITS:
        own = {template.name for template in GROUPS[split]}
        assert used[split] <= own and len(used[split]) >= 0.8 * len(own)
        assert not any(used[split] & used[other] for other in SPLITS if other != split)


def test_benchmark_pages_use_fonts_that_no_other_page_does() -> None:
    used = {
        split: {family.name for one in prepared(split) for family in (one.look.body, one.look.heading, one.look.hand)}
        for split in SPLITS
    }
    for split in ("train", "draft", "calibration"):
        assert not used["benchmark"] & used[split]
    assert used["benchmark"] == {family.name for family in families(True)}
    assert used["train"] == {family.name for family in families(False)}


def words_on(one: Prepared) -> set[str]:
    """All words on a page, running head, foot and watermark too; of formulas none."""
    furniture = one.document.furniture
    page = "\n".join((to_markdown(one.document), furniture.head, furniture.foot, furniture.watermark))
    return set(words_of((FORMULA.sub(" ", MARKUP.sub(" ", page)),)))


def test_held_out_words_are_on_benchmark_pages_and_on_no_others() -> None:
    """A word held out in one language is not on a page in another either."""
    held_out = frozenset().union(*(vocabulary(language).held_out for language in LANGUAGES))
    assert len(held_out) > 5000
    for split in ("train", "draft", "calibration"):
        assert held_out & set().union(*map(words_on, prepared(split))) == set()
    shares = [len(words_on(one) & held_out) / len(words_on(one)) for one in prepared("benchmark")]
    assert sum(map(bool, shares)) > 0.85 * len(shares)
    assert sum(shares) / len(shares) > 0.1
    for language in LANGUAGES:
        pages = [one for one in prepared("benchmark") if one.document.language == language]
        assert any(words_on(one) & vocabulary(language).held_out for one in pages)
