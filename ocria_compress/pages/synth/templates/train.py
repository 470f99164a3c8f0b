"""Templates of training pages: a free mixture of everything, and crops of plain blocks. See also `train_office.py`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import Block, Document, ListBlock, Table
from ocria_compress.pages.synth.templates import train_office as office
from ocria_compress.pages.synth.templates import train_papers as papers
from ocria_compress.pages.synth.templates import writing as w
from ocria_compress.pages.synth.templates.forms import fields
from ocria_compress.pages.synth.templates.grids import records
from ocria_compress.pages.synth.templates.matrices import comparison, matrix, week, years
from ocria_compress.pages.synth.templates.need import SHOWN, Need, Template
from ocria_compress.pages.synth.templates.sheet import Sheet

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon

_LISTS_OF_COLUMNS = (
    "position?? description qty? unit_price? amount",
    "part_no description stock location? price?",
    "name department? phone? room",
    "date description amount",
    "parameter symbol? min? typ? max unit",
    "product type?? weight? price",
    "task responsible deadline? status",
    "sample method? result unit? limit?",
    "category count share change?",
    "year income?? value change",
    "article colour? quantity",
    "term meaning",
    "start end? topic room?",
    "number name age? result",
    "city distance departure? arrival?",
    "item plan actual deviation?",
)


def any_table(s: Sheet, size: int = 0) -> Table:
    """A table of any kind the width has room for."""
    spans = s.wants("spans", 0.42)
    draw = s.rng.random()
    if draw < 0.66:
        keys = s.rng.choice(_LISTS_OF_COLUMNS)
        return records(s, keys, size=size, spans=spans, header=s.chance(0.93))
    names = list(dict.fromkeys(s.words(1, 2) for _ in range(9)))
    if draw < 0.86:
        regions = [s.say(key) for key in ("north", "south", "east", "west")]
        groups = s.rng.choice(
            (years(s, s.rng.randint(2, 5)), regions, [s.say("women"), s.say("men")], [s.say("plan"), s.say("actual")])
        )
        subs = s.rng.choice(
            (("count", "share"), ("min", "max"), ("plan", "actual"), ("mean", "deviation"), ("min", "typ", "max"))
        )
        return matrix(
            s, names, groups, corner=s.says("category", "region", "product", "group", "item"),
            kind=s.rng.choice(("number", "integer", "percent", "small")), subs=[s.say(key) for key in subs],
            sub_kinds=[{"count": "integer", "share": "percent"}.get(key, "number") for key in subs], size=size,
            spans=spans, pairs=[s.words(1, 1) for _ in range(4)], total=s.say("total") if s.chance(0.4) else "",
            side=s.chance(0.4),
        )  # fmt: skip
    if draw < 0.93 and s.width > 20:
        days = [s.lexicon.weekday(s.rng) for _ in range(8)]
        times = sorted({f"{s.rng.randint(7, 19):02d}:{s.rng.choice(('00', '15', '30', '45'))}" for _ in range(9)})
        return week(s, list(dict.fromkeys(days)), times, size=size, spans=spans)
    products = [f"{s.rng.choice('ABCDEFGHKLMNPRSTVX')}{s.rng.randint(1, 900)}" for _ in range(s.rng.randint(2, 4))]
    return comparison(s, names, products, size=size, spans=spans)


def _mixture(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("mixture", rng, lexicon, need)
    w.furnish(s)
    parts: list[tuple[bool, Callable[[], None]]] = []

    def part(share: float, make: Callable[[], tuple[Block | None, ...]], stratum: str = "") -> None:
        if stratum in need.strata or s.chance(share):
            parts.append((stratum not in need.strata, lambda: s.add(*make())))

    part(0.4, lambda: (_caption(s), any_table(s, int(need.budget * rng.uniform(0.3, 0.7)))), "spans")
    part(0.1, lambda: tuple(_mathematics(s)), "formulas")
    part(0.05, lambda: (w.chart(s),), "charts")
    part(0.35, lambda: (w.listing(s, depth=rng.choice((1, 1, 2, 3))),))
    part(0.25, lambda: (fields(s, hand=0.8 if s.chance(0.15) else 0.0),))
    part(0.05, lambda: (w.stamp(s),))
    part(0.06, lambda: (w.lines(s, lexicon.name(rng), lexicon.street(rng), lexicon.city_line(rng)),))
    rng.shuffle(parts)
    parts.sort(key=lambda each: each[0])  # what the page must show comes first
    notes = 0.5 if s.chance(0.05) else 0.0

    def running() -> None:
        s.add(w.paragraph(s, rng.choice((0, 0, 60)), notes))

    def body() -> None:
        for spare, make in parts:
            if spare and s.left < 70:
                break
            if spare and s.chance(0.45):
                s.add(w.heading(s, rng.randint(2, 3))) if s.chance(0.3) else running()
            if not (spare and s.left < 70):
                make()
        while not s.full:
            if s.chance(0.2) and s.left > 150:
                s.add(w.heading(s, rng.randint(2, 4)))
            running()

    if s.chance(0.55):
        s.add(w.title(s, level=1 if s.chance(0.8) else 2))
    if "columns" in need.strata or (need.columns_ok and s.width > 28 and s.chance(0.17)):
        s.columns(body)
    else:
        body()
    return s.document()


def _caption(s: Sheet) -> Block | None:
    if not s.chance(0.25):
        return None
    return w.Paragraph(w.text(f"{s.say('table')} {s.count('table')}: {s.words(1, 3)}"))


def _mathematics(s: Sheet) -> list[Block]:
    made: list[Block] = []
    for _ in range(s.rng.randint(1, 2)):
        made.append(w.formula(s))
        if s.chance(0.5):
            made.append(w.formula_paragraph(s) if s.chance(0.6) else w.formula_sentence(s))
    return made


def _running_text(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("running_text", rng, lexicon, need)
    w.furnish(s, 0.3)
    if s.chance(0.35):
        s.add(w.heading(s, rng.randint(1, 3)))
    size, notes = rng.randint(90, 420), 0.5 if s.chance(0.15) else 0.0

    def body() -> None:
        while not s.full:
            s.add(w.paragraph(s, int(size * rng.uniform(0.5, 1.3)), notes))

    if "columns" in need.strata or (need.columns_ok and s.width > 28 and s.chance(0.4)):
        s.columns(body)
    else:
        body()
    return s.document()


def _formulas_only(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("formulas_only", rng, lexicon, need)
    while not s.full:
        s.add(w.formula(s))
        if s.chance(0.25):
            s.add(w.formula_paragraph(s, 1) if s.chance(0.5) else w.formula_sentence(s))
    return s.document()


def _tables_only(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("tables_only", rng, lexicon, need)
    w.furnish(s, 0.2)
    while not s.full:
        s.add(any_table(s, max(int(need.budget * rng.uniform(0.5, 1.0)), 150)))
        if s.left < 160:
            break
        if s.chance(0.5):
            s.add(_caption(s) or w.heading(s, 3))
    if not s.full:
        s.add(w.paragraph(s, s.left))
    return s.document()


def _lists_only(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("lists_only", rng, lexicon, need)
    w.furnish(s, 0.3)
    while not s.full:
        if not s.blocks or isinstance(s.blocks[-1], ListBlock):
            s.add(w.heading(s, rng.randint(1, 3)) if s.chance(0.6) else w.paragraph(s, 60))
        s.add(w.listing(s, rng.randint(150, 450), depth=rng.choice((1, 2, 2, 3))))
    return s.document()


TEMPLATES = (
    Template("mixture", _mixture, SHOWN, 30),
    Template("running_text", _running_text, frozenset({"columns"}), 8),
    Template("formulas_only", _formulas_only, frozenset({"formulas"}), 4),
    Template("tables_only", _tables_only, frozenset({"spans"}), 7),
    Template("lists_only", _lists_only, frozenset(), 4),
    Template("letter", office.letter, frozenset(), 5),
    Template("invoice", office.invoice, frozenset({"spans"}), 5, least=300),
    Template("quotation", office.quotation, frozenset({"spans"}), 3, least=350),
    Template("report", office.report, frozenset({"spans", "formulas", "charts"}), 7),
    Template("article", office.article, SHOWN, 9, least=250),
    Template("data_sheet", office.data_sheet, frozenset({"spans"}), 4),
    Template("hand_form", office.hand_form, frozenset(), 4),
    Template("minutes", office.minutes, frozenset(), 4, least=250),
    Template("price_list", papers.price_list, frozenset({"spans"}), 4),
    Template("lab_report", papers.lab_report, frozenset({"spans"}), 4, least=250),
    Template("statistics", papers.statistics, frozenset({"spans", "charts"}), 5, least=250),
    Template("glossary", papers.glossary, frozenset(), 3),
    Template("contract", papers.contract, frozenset(), 4, least=250),
    Template("slip", papers.slip, frozenset(), 4),
)
