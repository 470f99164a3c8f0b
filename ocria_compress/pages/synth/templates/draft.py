"""Templates of the pages that the draft head is trained on."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import Document, Item, ListBlock, Run, text
from ocria_compress.pages.synth.templates import writing as w
from ocria_compress.pages.synth.templates.forms import fields
from ocria_compress.pages.synth.templates.grids import records
from ocria_compress.pages.synth.templates.matrices import matrix, years
from ocria_compress.pages.synth.templates.need import SHOWN, Need, Template
from ocria_compress.pages.synth.templates.sheet import Sheet

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon


def _manual(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("manual", rng, lexicon, need)
    w.furnish(s, 0.6)
    s.add(w.title(s, f"{s.say('manual')} {lexicon.part_number(rng)}"))
    if "spans" in need.strata or s.chance(0.25):
        s.add(records(s, "parameter condition? value unit?", size=int(need.budget * 0.45), ways=("groups", "section")))
    while not s.full:
        s.add(w.heading(s, 2, number=str(s.count("chapter")) if s.chance(0.5) else ""))
        if s.chance(0.3) and s.left > 120:
            s.add(w.Paragraph((Run(s.say("warning"), "bold"), Run(f" – {w.sentence(s, 4, 9)}"))))
        if s.chance(0.3) and s.left > 150:
            s.add(w.Paragraph(text(s.say("tools"))), w.listing(s, 90, ordered=False, kind="words", mark="•"))
            s.add(w.paragraph(s, 70))
        if not s.full:
            s.add(w.listing(s, min(s.left, 330), ordered=True, kind="sentences", depth=2, mark="."))
            s.add(w.paragraph(s, 90) if s.left > 60 else None)
    return s.document()


def _catalogue(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("catalogue", rng, lexicon, need)
    w.furnish(s, 0.6)
    s.add(w.title(s, s.say("catalogue")) if s.chance(0.5) else None)
    asked = "spans" in need.strata

    def body() -> None:
        nonlocal asked
        while not s.full:
            s.add(w.heading(s, 2, f"{s.words(1, 2)} {lexicon.part_number(rng)}"))
            if asked or (s.left > 200 and s.chance(0.4)):
                keys = "model colour weight? price"
                s.add(records(s, keys, size=min(int(need.budget * 0.45), 260), ways=("head", "groups", "merge")))
                asked = False
            elif s.chance(0.5):
                s.add(fields(s, "part_no colour dimensions material price", count=rng.randint(3, 5), columns=1))
            else:
                s.add(w.listing(s, 100, ordered=False, kind="words"))
            s.add(w.paragraph(s, min(s.left, 110)) if not s.full else None)

    if "columns" in need.strata or (need.columns_ok and s.width > 30 and s.chance(0.25)):
        s.columns(body)
    else:
        body()
    return s.document()


def _work_order(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("work_order", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.lines(s, lexicon.company(rng), lexicon.phone(rng)))
    s.add(w.heading(s, 1, s.say("work_order")))
    keys = "order_no customer location date responsible"
    s.add(fields(s, keys, count=2 if need.strata else 5, layout="boxes", hand=0.3))
    s.add(
        records(
            s, "task duration? responsible? inspected", size=int(s.left * 0.5), ways=("groups", "section"), empties=0.1
        )
    )
    s.add(w.heading(s, 3, s.say("material")) if s.left > 200 else None)
    s.add(records(s, "qty article price", size=min(s.left, 280)) if s.left > 170 else None)
    while s.left > 90:
        s.add(w.paragraph(s, min(s.left, 140)))
    s.add(w.signature(s, hand=s.chance(0.6)))
    return s.document()


def _press_release(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("press_release", rng, lexicon, need)
    w.furnish(s, 0.3)
    s.add(w.Paragraph((Run(s.say("press_release"), "bold"), Run(f" – {lexicon.date(rng)}"))))
    s.add(w.title(s))
    s.add(w.Paragraph((Run(s.words(4, 6), "italic"),)) if s.chance(0.4) else None)
    charted = s.wants("charts", 0.12)
    while s.left > 150:
        if charted:
            s.add(w.chart(s, 6))
            charted = False
        s.add(w.paragraph(s, rng.randint(120, 300)))
    s.add(w.heading(s, 3, s.say("contact")))
    s.add(w.lines(s, lexicon.name(rng), lexicon.company(rng), lexicon.phone(rng), lexicon.email(rng)))
    return s.document()


def _vacancy(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("vacancy", rng, lexicon, need)
    w.furnish(s, 0.25)
    s.add(w.heading(s, 3, s.say("vacancy")), w.title(s))
    s.add(w.paragraph(s, min(s.left // 4, 160)))
    for key in ("tasks", "profile"):
        s.add(w.heading(s, 2, s.say(key)))
        s.add(
            w.listing(s, max(60, int(s.left * 0.35)), ordered=False, kind=rng.choice(("words", "sentences")), mark="■")
        )
    s.add(fields(s, "start salary department place contact email", count=max(2, min(6, s.left // 30)), columns=1))
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 180)))
    return s.document()


def _balance_sheet(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("balance_sheet", rng, lexicon, need)
    w.furnish(s, 0.6)
    s.add(w.title(s, s.say("balance_sheet") + f" {rng.randint(1995, 2026)}"))
    if not s.small and not need.strata:
        s.add(w.Paragraph(text(lexicon.company(rng))))
    names = list(dict.fromkeys(s.words(1, 2) for _ in range(10)))
    pairs = [s.say("assets"), s.say("liabilities")]
    many = rng.randint(2, 4)
    s.add(
        matrix(
            s, names, years(s, many), corner=s.say("item"), pairs=pairs, kind="number", total=s.say("total"),
            size=int(s.left * rng.uniform(0.6, 0.9)), side=True, rules=rng.choice(("grid", "rows")),
        )
    )  # fmt: skip
    s.add(w.heading(s, 2, s.say("notes")) if s.left > 120 else None)
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 200), 0.3 if s.chance(0.2) else 0.0))
    return s.document()


def _packing_list(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("packing_list", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.heading(s, 2, s.say("packing_list")))
    if not s.small and not need.strata:
        s.add(w.recipient(s))
    keys = rng.choice(("number article qty weight?", "part_no qty unit dimensions?", "location article quantity"))
    s.add(records(s, keys, size=int(s.left * rng.uniform(0.6, 0.9)), ways=("groups", "total", "merge")))
    s.add(fields(s, "weight count date inspected", layout="column", hand=0.3, columns=1) if not s.full else None)
    s.add(w.stamp(s, "approved", "copy") if s.chance(0.2) else None)
    while not s.full:
        s.add(w.listing(s, min(s.left, 160), ordered=False, kind="pairs"))
        s.add(w.paragraph(s, min(s.left, 120)) if not s.full else None)
    return s.document()


def _recipe(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("recipe", rng, lexicon, need)
    w.furnish(s, 0.2)
    s.add(w.title(s, s.words(2, 3)))
    s.add(w.Paragraph(text(f"{rng.randint(2, 8)} {s.say('servings')} · {rng.randint(10, 90)} min")))
    s.add(w.heading(s, 2, s.say("ingredients")))
    items = tuple(
        Item(text(f"{s.safe(lexicon.quantity)} {lexicon.noun_phrase(rng, 1, 2)}"))
        for _ in range(max(2, min(8, s.left // 60)))
    )
    s.add(ListBlock(items, mark="–"))
    s.add(w.heading(s, 2, s.say("preparation")))
    ordered = s.chance(0.6)
    while not s.full:
        if ordered:
            s.add(w.listing(s, min(s.left, 400), ordered=True, kind="sentences"))
            ordered = False
        s.add(w.paragraph(s, min(s.left, 200)) if not s.full else None)
    return s.document()


def _lecture_notes(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("lecture_notes", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.heading(s, 1, s.safe(lexicon.heading), number=f"{rng.randint(1, 14)}"))
    first = need.strata
    while not s.full:
        name = rng.choice(("definition", "theorem", "example", "proof"))
        label = f"{lexicon.phrase(name)} {s.count('statement')}"
        s.add(w.Paragraph((Run(label, "bold"), Run(f" {w.sentences(s, min(max(s.left, 40), 130))}"))))
        if first or s.chance(0.7):
            s.add(w.formula(s))
            s.add(w.formula_paragraph(s) if s.chance(0.5) else None)
        if ("charts" in first) or s.chance(0.04):
            s.add(w.chart(s, 5))
        if "spans" in first:
            s.add(records(s, "symbol value? unit range", size=int(need.budget * 0.35), ways=("head", "groups")))
        first = frozenset()
        if not s.full and s.chance(0.4):
            s.add(w.formula_sentence(s))
    return s.document()


def _digest(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("digest", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s, f"{s.say('year')} {rng.randint(1998, 2026)}") if s.chance(0.6) else None)
    asked = set(need.strata)

    def body() -> None:
        while not s.full:
            if "spans" in asked:
                keys = rng.choice(("year value change", "region count share", "product amount"))
                s.add(records(s, keys, size=int(need.budget * 0.4)))
            if "charts" in asked:
                s.add(w.chart(s, 4))
            if "formulas" in asked or s.chance(0.05):
                s.add(w.formula(s), w.formula_sentence(s, 60))
            asked.clear()
            if s.left > 100 and s.chance(0.5):
                s.add(w.heading(s, 3))
            s.add(w.listing(s, 130) if s.chance(0.12) else w.paragraph(s, min(max(s.left, 40), rng.randint(80, 200))))

    if "columns" in need.strata or (need.columns_ok and s.width > 28 and s.chance(0.7)):
        s.columns(body)
    else:
        body()
    return s.document()


def _questionnaire(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("questionnaire", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.title(s, s.say("questionnaire")), fields(s, "name date age", count=rng.randint(1, 3), hand=0.5))
    number = 1
    while not s.full:
        items: list[Item] = []
        while len(items) < 3 and (not items or s.left > 120 * len(items)):
            below = tuple(Item(text(s.words(1, 2))) for _ in range(rng.randint(2, 4)))
            items.append(Item(text(w.sentence(s, 4, 9)), ListBlock(below, mark="–")))
        s.add(ListBlock(tuple(items), True, number, "."))
        number += len(items)
        if not s.full:  # a list right behind a list would be left out, and the page never be full
            s.add(w.heading(s, 2) if s.left > 60 and s.chance(0.5) else w.paragraph(s, min(s.left, 70)))
    return s.document()


TEMPLATES = (
    Template("manual", _manual, frozenset({"spans"}), 4),
    Template("catalogue", _catalogue, frozenset({"spans", "columns"}), 4),
    Template("work_order", _work_order, frozenset({"spans"}), 3, least=300),
    Template("press_release", _press_release, frozenset({"charts"}), 3),
    Template("vacancy", _vacancy, frozenset(), 2, least=250),
    Template("balance_sheet", _balance_sheet, frozenset({"spans"}), 4, least=200),
    Template("packing_list", _packing_list, frozenset({"spans"}), 4),
    Template("recipe", _recipe, frozenset(), 2, least=200),
    Template("lecture_notes", _lecture_notes, frozenset({"formulas", "charts", "spans"}), 4),
    Template("digest", _digest, SHOWN, 6),
    Template("questionnaire", _questionnaire, frozenset(), 2, least=200),
)
