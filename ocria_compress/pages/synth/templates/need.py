"""What a page is asked to be, and what a template is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Literal, get_args

from ocria_compress.pages.synth.document import Block, Chart, Columns, Document, Formula, Run, Table, walk

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon

Stratum = Literal["spans", "columns", "formulas", "charts", "languages", "scans"]
"""What a page shows. `languages` and `scans` are not the templates' business: both are drawn outside."""

STRATA: tuple[Stratum, ...] = get_args(Stratum)

SHOWN: frozenset[Stratum] = frozenset({"spans", "columns", "formulas", "charts"})
"""The strata that a template makes."""


@dataclass(frozen=True, slots=True)
class Need:
    """What the page must be.

    Attributes:
        strata: what it must show; the rest comes in natural shares.
        budget: about how many characters of reference fit on the page (150 to 1300); the document has somewhat more.
        columns_ok: whether it may be set in two columns. `columns` in `strata` wins over it.
        width_em: width of the text in ems of the body size, 14 (narrow) to 50 (wide).
    """

    strata: frozenset[Stratum] = frozenset()
    budget: int = 800
    columns_ok: bool = True
    width_em: float = 36.0


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of page.

    Attributes:
        name: unique over all groups.
        make: draws one document.
        provides: the strata it can show when asked.
        weight: how often it is drawn within its group.
        least: the smallest budget at which it makes sense.
    """

    name: str
    make: Callable[[Random, Lexicon, Need], Document]
    provides: frozenset[Stratum] = frozenset()
    weight: float = 1.0
    least: int = 0


def shows(block: Block) -> frozenset[Stratum]:
    """What a block shows of the strata in `SHOWN`; of columns only that they are columns, not what stands in them."""
    found: set[Stratum] = set()
    if isinstance(block, Columns):
        return frozenset({"columns"} if sum(map(bool, block.columns)) >= 2 else ())
    if isinstance(block, Table) and block.has_spans:
        found.add("spans")
    if isinstance(block, Chart):
        found.add("charts")
    if isinstance(block, Formula) or any(run.style == "formula" for run in _runs(block)):
        found.add("formulas")
    return frozenset(found)


def strata_of(document: Document) -> set[Stratum]:
    """What a document shows, scan effects apart."""
    found: set[Stratum] = {"languages"} if document.language != "en" else set()
    return found.union(*(shows(block) for block in walk(document.blocks)))


def _runs(part: Any) -> Iterator[Run]:
    """Every run anywhere inside a part of a document tree."""
    if isinstance(part, Run):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _runs(each)
    elif hasattr(part, "__dataclass_fields__"):
        for name in part.__dataclass_fields__:
            yield from _runs(getattr(part, name))
