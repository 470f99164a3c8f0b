"""Templates of the pages that quantizations are calibrated on."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import Document, Item, ListBlock, Run, Text
from ocria_compress.pages.synth.templates import writing as w
from ocria_compress.pages.synth.templates.forms import fields, ticks
from ocria_compress.pages.synth.templates.grids import records
from ocria_compress.pages.synth.templates.matrices import matrix, week
from ocria_compress.pages.synth.templates.need import SHOWN, Need, Template
from ocria_compress.pages.synth.templates.sheet import Sheet

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon


def _budget_report(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("budget_report", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s, f"{s.say('budget')} {rng.randint(2001, 2027)}"))
    charted = s.wants("charts", 0.3)
    if charted:
        s.add(w.chart(s, 5))
    if "spans" in need.strata or (not charted and s.chance(0.8)):
        names = list(dict.fromkeys(s.words(1, 2) for _ in range(10)))
        quarters = [f"{s.say('quarter')} {number}" for number in range(1, 5)]
        subs = [s.say("plan"), s.say("actual")]
        pairs = [s.say("income"), s.say("expenses")]
        s.add(
            matrix(s, names, quarters, corner=s.say("department"), subs=subs, pairs=pairs, kind="integer",
                   sub_kinds=("integer", "integer"), size=int(s.left * 0.7), total=s.say("balance"))
        )  # fmt: skip
    s.add(w.heading(s, 2, s.say("remarks")) if s.left > 100 else None)
    if s.left > 60:
        s.add(w.listing(s, min(s.left, 260), ordered=True, kind="sentences", mark=")"))
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 150)))
    return s.document()


def _checklist(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("checklist", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s, s.say("checklist")))
    s.add(ticks(s, rng.choice(("morning noon evening", "yes no", "standard optional"))) if s.chance(0.4) else None)
    keys = rng.choice(("number task inspected remarks?", "item condition inspected", "group test result?"))
    s.add(
        records(
            s, keys, size=int(s.left * rng.uniform(0.5, 0.8)), ways=("section", "groups"), empties=0.15, rules="grid"
        )
    )
    s.add(fields(s, "inspected date signature", hand=0.7, layout="behind", columns=1) if s.left > 60 else None)
    while not s.full:
        s.add(w.listing(s, min(s.left, 180), ordered=False, depth=2))
        s.add(w.paragraph(s, min(s.left, 100)) if not s.full else None)
    return s.document()


def _warranty(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("warranty", rng, lexicon, need)
    w.furnish(s, 0.3)
    s.add(
        w.heading(s, 1, s.say("warranty")), fields(s, "model serial_no date customer address", hand=0.6, layout="boxes")
    )
    s.add(w.stamp(s, "received", "paid") if s.chance(0.4) else None)
    while not s.full:
        s.add(w.heading(s, 2, s.says("scope", "liability", "defect")) if s.left > 100 else None)
        s.add(w.paragraph(s, min(s.left, 220)))
    return s.document()


def _certificate(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("certificate", rng, lexicon, need)
    w.furnish(s, 0.15)
    s.add(w.lines(s, lexicon.company(rng), right=s.chance(0.4)))
    s.add(w.title(s, s.say("certificate")), w.Paragraph((Run(lexicon.name(rng), "bold"),), "center"))
    s.add(w.paragraph(s, min(s.left, 180)))
    while s.left > 100:
        s.add(
            fields(s, "class points start end duration", count=rng.randint(2, 5))
            if s.chance(0.5)
            else w.paragraph(s, 150)
        )
    s.add(w.lines(s, lexicon.city_line(rng), f"{s.say('date')} {lexicon.date(rng)}"), w.signature(s, s.chance(0.6)))
    return s.document()


def _textbook(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("textbook", rng, lexicon, need)
    w.furnish(s, 0.6)
    chapter = rng.randint(1, 12)
    s.add(w.title(s, f"{chapter}.{rng.randint(1, 9)} {s.words(2, 3)}"))
    asked = bool(need.strata)
    notes = 0.3 if s.chance(0.2) else 0.0
    while not s.full:
        if asked or s.chance(0.5):
            s.add(w.formula_sentence(s, 90), w.formula(s))
            asked = False
        if s.chance(0.3) and s.left > 130:
            s.add(w.heading(s, 3, f"{s.say('exercise')} {chapter}.{s.count('exercise')}"))
            items = [Item(_exercise(s)) for _ in range(rng.randint(2, 4))]
            s.add(ListBlock(tuple(items), True, 1, ")"))
        if not s.full:
            s.add(w.paragraph(s, min(s.left, 240), notes))
    return s.document()


def _exercise(s: Sheet) -> Text:
    return (Run(s.words(1, 3) + " "), Run(w.inline_formula(s.rng), "formula"))


def _encyclopedia(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("encyclopedia", rng, lexicon, need)
    w.furnish(s, 0.7)
    notes = 0.3 if s.chance(0.25) else 0.0

    def body() -> None:
        while not s.full:
            s.add(
                w.Paragraph(
                    (Run(s.words(1, 1), "bold"), Run(f" ({lexicon.noun_phrase(rng, 1, 2)}) {w.sentences(s, 90)}"))
                )
            )
            if s.chance(0.3) and not s.full:
                s.add(w.paragraph(s, min(s.left, 130), notes))

    if "columns" in need.strata or (need.columns_ok and s.width > 28 and s.chance(0.8)):
        s.columns(body)
    else:
        body()
    return s.document()


def _lessons(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("lessons", rng, lexicon, need)
    w.furnish(s, 0.3)
    s.add(w.title(s, f"{s.say('class')} {rng.randint(1, 12)}{rng.choice('abcd')}"))
    days = list(dict.fromkeys(lexicon.weekday(rng) for _ in range(14)))[:5]
    hours = [f"{hour}:{rng.choice(('00', '45'))}" for hour in range(rng.randint(7, 9), 20)]
    s.add(week(s, days, hours, size=int(s.left * rng.uniform(0.6, 0.95))))
    s.add(fields(s, "room contact start", columns=1, layout="column") if s.left > 70 and s.chance(0.6) else None)
    while not s.full:
        s.add(w.listing(s, min(s.left, 170), ordered=False, kind="pairs"), w.paragraph(s, 50))
    return s.document()


def _test_protocol(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("test_protocol", rng, lexicon, need)
    w.furnish(s, 0.6)
    s.add(w.heading(s, 1, f"{s.say('test')} {lexicon.reference_number(rng)}"))
    if not need.strata:
        s.add(w.heading(s, 2, s.say("scope")), w.paragraph(s, 120))
    if s.wants("formulas", 0.3):
        s.add(w.formula(s), w.formula_paragraph(s, 2))
    if "spans" in need.strata or s.chance(0.75):
        keys = rng.choice(
            ("test min? max? result status", "number value deviation limit?", "sample temperature? pressure? result")
        )
        s.add(records(s, keys, size=int(s.left * rng.uniform(0.5, 0.8)), ways=("head", "merge", "groups")))
    s.add(w.chart(s, 6) if "charts" in need.strata or (s.chance(0.1) and s.left > 250) else None)
    s.add(w.heading(s, 2, s.say("result")) if s.left > 90 else None)
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 160)))
    return s.document()


def _directory(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("directory", rng, lexicon, need)
    w.furnish(s, 0.5)

    def body() -> None:
        letter = rng.randint(0, 20)
        while not s.full:
            if s.chance(0.3) and s.left > 90:
                s.add(w.heading(s, 3, chr(65 + letter)))
                letter = min(25, letter + 1)
            contents = [
                lexicon.company(rng) if s.chance(0.5) else lexicon.name(rng),
                lexicon.street(rng),
                lexicon.city_line(rng),
            ]
            contents += [lexicon.phone(rng)] if s.chance(0.5) else []
            s.add(w.lines(s, *contents, bold_first=s.chance(0.8)))

    if "columns" in need.strata or (need.columns_ok and s.width > 26 and s.chance(0.7)):
        s.columns(body)
    else:
        body()
    return s.document()


def _review(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("review", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s))
    s.add(w.Paragraph((Run(lexicon.name(rng), "italic"), Run(f" – {lexicon.date(rng)}"))) if s.chance(0.6) else None)
    asked = set(need.strata)

    def body() -> None:
        if "formulas" in asked:
            s.add(w.formula(s), w.formula_paragraph(s, 2))
        if "charts" in asked:
            s.add(w.chart(s, 5))
        if "spans" in asked or s.chance(0.2):
            s.add(
                records(
                    s, rng.choice(("method mean result", "category count value?", "topic value")), size=need.budget // 3
                )
            )
        while not s.full:
            s.add(w.paragraph(s, min(s.left, rng.randint(150, 330)), 0.15))
            if s.chance(0.2) and s.left > 120:
                s.add(w.heading(s, 2), w.listing(s, 120, kind="words"))

    if "columns" in need.strata or (need.columns_ok and s.width > 30 and s.chance(0.4)):
        s.columns(body)
    else:
        body()
    return s.document()


TEMPLATES = (
    Template("budget_report", _budget_report, frozenset({"spans", "charts"}), 4, least=200),
    Template("checklist", _checklist, frozenset({"spans"}), 4),
    Template("warranty", _warranty, frozenset(), 3),
    Template("certificate", _certificate, frozenset(), 3, least=250),
    Template("textbook", _textbook, frozenset({"formulas"}), 4),
    Template("encyclopedia", _encyclopedia, frozenset({"columns"}), 3),
    Template("lessons", _lessons, frozenset({"spans"}), 3, least=200),
    Template("test_protocol", _test_protocol, frozenset({"spans", "charts", "formulas"}), 4),
    Template("directory", _directory, frozenset({"columns"}), 2),
    Template("review", _review, SHOWN, 6),
)
