"""Templates of training pages that look like kinds of documents."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal

from ocria_compress.pages.synth.document import Document, Run, text
from ocria_compress.pages.synth.templates import writing as w
from ocria_compress.pages.synth.templates.forms import fields
from ocria_compress.pages.synth.templates.grids import records
from ocria_compress.pages.synth.templates.need import Need
from ocria_compress.pages.synth.templates.sheet import Sheet

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon


def letter(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Sender, recipient, date, subject, text, signature."""
    s = Sheet("letter", rng, lexicon, need)
    w.furnish(s, 0.25)
    s.add(w.sender(s, right=s.chance(0.5)))
    if not s.small:
        s.add(w.recipient(s))
        s.add(fields(s, "date reference customer_no", count=rng.randint(1, 3), layout="behind", columns=1))
    s.add(w.Paragraph((Run(s.words(2, 4), "bold"),)) if s.chance(0.5) else w.heading(s, 2, s.words(2, 4)))
    while s.left > 110:
        s.add(w.paragraph(s, rng.randint(80, 260)))
        if s.chance(0.1) and s.left > 150:
            s.add(w.listing(s, 120))
    s.add(w.signature(s, s.chance(0.3)))
    if not s.full:
        s.add(w.paragraph(s, s.left))
    return s.document()


def invoice(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Sender, title, recipient and fields, items with sums, payment."""
    s = Sheet("invoice", rng, lexicon, need)
    w.furnish(s)
    spans = s.wants("spans", 0.5)
    short = spans and need.budget < 700
    if not short:
        s.add(w.sender(s, extra=not spans))
    s.add(w.title(s, f"{s.say('invoice')} {lexicon.reference_number(rng)}" if s.chance(0.5) else s.say("invoice")))
    if not s.small and not short:
        s.add(w.recipient(s) if s.chance(0.6) else None)
    if not s.small:
        s.add(
            fields(s, "invoice_no date customer_no due_date", count=rng.randint(1 if short else 2, 2 if short else 4))
        )
    totals = rng.choice((("total",), ("subtotal", "total"), ("subtotal", "vat", "total")))
    keys = rng.choice(("position?? description qty? unit_price? amount", "part_no?? article qty unit? price? amount"))
    s.add(
        records(
            s, keys, size=int(s.left * rng.uniform(0.6, 0.95)), spans=spans, ways=("total",), totals=totals, empties=0.0
        )
    )
    if s.chance(0.1) and not s.full:
        s.add(w.stamp(s, "paid", "copy", "received"))
    if not s.full and s.chance(0.7):
        s.add(fields(s, "bank account tax_id", layout="behind"))
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 180)))
    return s.document()


def quotation(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Title, a table per section or with sections, terms as a list, signature."""
    s = Sheet("quotation", rng, lexicon, need)
    w.furnish(s)
    s.add(w.title(s, s.say("quotation")))
    s.add(fields(s, "customer contact date reference", count=rng.randint(1, 2) if need.strata else 4, layout="column"))
    if not need.strata:
        s.add(w.paragraph(s, 120))
    keys = rng.choice(("description quantity unit? unit_price? total", "position?? product dimensions? weight? price"))
    s.add(records(s, keys, size=int(s.left * rng.uniform(0.4, 0.8)), ways=("section", "total", "groups")))
    if s.left > 90:
        s.add(w.listing(s, min(s.left, 220), kind="pairs"))
    while s.left > 70:
        s.add(w.paragraph(s, min(s.left, 200)))
    s.add(w.signature(s, s.chance(0.25)) if not s.full else None)
    return s.document()


def report(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Numbered headings of two levels, text, lists, tables with captions, charts."""
    s = Sheet("report", rng, lexicon, need)
    w.furnish(s, 0.6)
    if s.chance(0.6):
        s.add(w.title(s))
    chapter, section = rng.randint(1, 7), 0
    asked = bool(need.strata)
    dot = rng.choice(("", "."))
    notes = 0.4 if s.chance(0.12) else 0.0
    while not s.full:
        section += 1
        if section == 1 or s.chance(0.25):
            chapter, section = chapter + (section > 1), 1
            s.add(w.heading(s, 2, number=f"{chapter}{dot}"))
        if s.left > 120 and (section > 1 or not asked):
            s.add(w.heading(s, 3, number=f"{chapter}.{section}"))
        draw = rng.random()
        if asked and "charts" in need.strata:
            s.add(w.chart(s))
        if (asked and "spans" in need.strata) or draw < 0.22:
            s.add(w.Paragraph(text(f"{s.say('table')} {chapter}.{s.count('table')}: {s.words(1, 3)}")))
            keys = rng.choice(("category value? change", "parameter min? max unit", "task responsible status?"))
            s.add(records(s, keys, size=min(400, int(s.left * 0.6))))
        elif (asked and "formulas" in need.strata) or draw < 0.28:
            s.add(w.formula(s), w.formula_paragraph(s))
        elif draw < 0.45:
            s.add(w.paragraph(s, 90), w.listing(s, 180, depth=2))
        elif draw < 0.49:
            s.add(w.chart(s))
        else:
            s.add(w.paragraph(s, 0, notes))
        asked = False
        if not s.full:
            s.add(w.paragraph(s, min(s.left, rng.randint(80, 260)), notes))
    return s.document()


def article(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """A scientific article: title, authors, abstract, two columns with formulas, a table, footnotes."""
    s = Sheet("article", rng, lexicon, need)
    w.furnish(s, 0.6)
    notes = 0.4 if s.chance(0.35) else 0.0
    if not s.small and s.chance(0.75):
        s.add(w.title(s))
        s.add(w.Paragraph(text(f"{lexicon.name(rng)} {s.say('and')} {lexicon.name(rng)}"), "center"))
        if s.chance(0.5) and s.left > 450:
            s.add(w.heading(s, 2, s.say("abstract")), w.paragraph(s, 170))
    number = rng.randint(1, 4)
    names = ["introduction", "methods", "results", "discussion", "conclusion"]

    def body() -> None:
        nonlocal number
        place, first = rng.randrange(3), True
        while not s.full:
            if s.left > 130 and (first or s.chance(0.35)):
                s.add(
                    w.heading(
                        s,
                        2,
                        s.say(names[place % 5]) if s.chance(0.6) else "",
                        number=f"{number}" if s.chance(0.9) else "",
                    )
                )
                number, place = number + 1, place + 1
            if s.wants("formulas", 0.4) and (first or s.chance(0.5)):
                s.add(w.formula(s), w.formula_paragraph(s) if s.chance(0.7) else w.formula_sentence(s))
            if (first and "spans" in need.strata) or s.chance(0.08):
                s.add(w.Paragraph(text(f"{s.say('table')} {s.count('table')}: {s.words(1, 2)}")))
                s.add(records(s, "method mean? deviation? result", size=min(330, max(s.left, 150)), rules="rows"))
            if first and "charts" in need.strata:
                s.add(w.chart(s, 5))
            first = False
            if not s.full:
                s.add(w.paragraph(s, min(max(s.left, 60), rng.randint(90, 280)), notes))

    if "columns" in need.strata or (need.columns_ok and s.width > 28 and s.chance(0.75)):
        s.columns(body)
    else:
        body()
    return s.document()


def data_sheet(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Product, bullets, a table of values with units and groups of rows, notes."""
    s = Sheet("data_sheet", rng, lexicon, need)
    w.furnish(s, 0.6)
    s.add(w.title(s, f"{lexicon.part_number(rng)} {s.words(1, 2)}"))
    if not need.strata and not s.small:
        s.add(w.listing(s, 150, ordered=False, kind="words") if s.chance(0.6) else w.paragraph(s, 130))
        s.add(w.heading(s, 2, s.say("parameter") if s.chance(0.4) else ""))
    keys = rng.choice(
        ("parameter symbol? min? typ? max unit", "parameter condition?? value unit", "group parameter value unit?")
    )
    s.add(records(s, keys, size=int(s.left * rng.uniform(0.6, 0.9)), ways=("groups", "head", "section")))
    if s.left > 110 and s.chance(0.5):
        s.add(w.heading(s, 2, s.say("dimensions")))
        s.add(fields(s, "length width height weight", layout="column"))
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 160)))
    return s.document()


def hand_form(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """A form filled in by hand."""
    s = Sheet("hand_form", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.title(s, s.says("form", "application", "complaint")))
    groups = (
        "surname first_name birth_date address city phone email",
        "company department contact order_no date",
        "model serial_no date place defect",
        "account bank amount date signature",
        "start end duration subject remarks",
    )
    hand = rng.choice((0.7, 0.9, 1.0))
    layouts: tuple[Literal["behind", "column", "boxes"], ...] = ("behind", "column", "boxes")
    layout = rng.choice(layouts)
    for keys in rng.sample(groups, len(groups)):
        if s.full:
            break
        if s.chance(0.6) and s.left > 90:
            s.add(w.heading(s, rng.randint(2, 3)))
        s.add(fields(s, keys, hand=hand, layout=layout))
    if not s.full and s.chance(0.3):
        s.add(w.stamp(s, "received", "approved"))
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 120)))
    return s.document()


def minutes(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Meeting minutes: fields, numbered items with nested lists."""
    s = Sheet("minutes", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.title(s, f"{s.say('minutes')} – {s.words(1, 2)}"))
    s.add(fields(s, "date time place chair participants", count=rng.randint(2, 5), layout="behind", columns=1))
    nested = s.chance(0.6)
    while not s.full:
        s.add(w.heading(s, 2, number=f"{s.count('heading')}."))
        if nested:
            s.add(
                w.listing(s, min(s.left, 320), ordered=s.chance(0.3), depth=3, kind=rng.choice(("words", "sentences")))
            )
        else:
            s.add(w.paragraph(s, min(s.left, 150)))
            s.add(w.listing(s, 110, kind="sentences", ordered=False) if s.left > 80 else None)
    return s.document()
