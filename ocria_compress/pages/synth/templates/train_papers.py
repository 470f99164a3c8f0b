"""More templates of training pages that look like kinds of documents: lists of prices, findings, figures, clauses."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import Document, Item, ListBlock, Run, text
from ocria_compress.pages.synth.templates import writing as w
from ocria_compress.pages.synth.templates.forms import fields
from ocria_compress.pages.synth.templates.grids import records
from ocria_compress.pages.synth.templates.matrices import matrix, years
from ocria_compress.pages.synth.templates.need import Need
from ocria_compress.pages.synth.templates.sheet import Sheet

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon


def price_list(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Sections with a table of prices each, or one table with sections."""
    s = Sheet("price_list", rng, lexicon, need)
    w.furnish(s)
    s.add(w.title(s, s.say("price_list") + (f" {rng.randint(2005, 2026)}" if s.chance(0.5) else "")))
    keys = rng.choice(
        ("article unit? price", "part_no article colour? price", "product dimensions? weight? price discount??")
    )
    one = "spans" in need.strata or s.chance(0.5)
    while not s.full:
        if not one and s.left > 150:
            s.add(w.heading(s, 2))
        s.add(records(s, keys, size=s.left if one else rng.randint(200, 400), ways=("section", "groups", "head")))
        if s.left < 150:
            break
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 140)))
    return s.document()


def lab_report(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Sample data, results against limits, a finding."""
    s = Sheet("lab_report", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s, s.say("lab_report")))
    if not s.small:
        count = 2 if need.strata else rng.randint(2, 6)
        s.add(fields(s, "sample date document_no customer method temperature", count=count))
    keys = rng.choice(
        ("parameter method?? result unit? limit", "sample mean deviation? status?", "test condition?? value unit")
    )
    s.add(records(s, keys, size=int(s.left * rng.uniform(0.5, 0.85)), ways=("groups", "head", "merge")))
    if s.left > 80:
        s.add(w.heading(s, 2, s.says("remarks", "summary", "conclusion")))
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 200)))
    return s.document()


def statistics(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """A page of figures: text, a chart, a table of years."""
    s = Sheet("statistics", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s))
    if not need.strata and not s.small:
        s.add(w.paragraph(s, 130))
    charted = s.wants("charts", 0.5)
    if charted:
        s.add(w.chart(s))
    if "spans" in need.strata or (s.left > 220 and (not charted or s.chance(0.6))):
        names = list(dict.fromkeys(s.words(1, 2) for _ in range(9)))
        subs = rng.choice((("count", "share"), ("women", "men"), ("plan", "actual")))
        s.add(
            matrix(
                s, names, years(s, rng.randint(2, 4)), corner=s.says("category", "region"), subs=list(map(s.say, subs)),
                kind=rng.choice(("integer", "number", "percent")), sub_kinds=("integer", "percent"),
                size=int(s.left * rng.uniform(0.6, 0.9)), pairs=[s.say(k) for k in ("north", "south", "east", "west")],
                total=s.say("total") if s.chance(0.5) else "",
            )
        )  # fmt: skip
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 220)))
    return s.document()


def glossary(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Terms and what they mean: bold terms in paragraphs, fields, or bullets with pairs."""
    s = Sheet("glossary", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.title(s, s.say("glossary") if s.chance(0.6) else ""))
    kind = rng.choice(("bold", "fields", "list"))
    while not s.full:
        if kind == "bold":
            s.add(w.Paragraph((Run(s.words(1, 2), "bold"), Run(f" – {w.sentence(s, 5, 12)}"))))
        elif kind == "fields":
            s.add(w.heading(s, rng.randint(2, 3)), fields(s, count=rng.randint(3, 8)))
        else:
            s.add(w.heading(s, 3, s.words(1, 1)), w.listing(s, 160, kind="pairs", ordered=False))
    return s.document()


def contract(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Clauses: headings with sections, numbered paragraphs, nested numbered lists."""
    s = Sheet("contract", rng, lexicon, need)
    w.furnish(s, 0.5)
    if s.chance(0.5):
        s.add(w.title(s, s.say("contract")))
    topics = rng.sample(("scope", "payment", "liability", "termination", "law", "warranty", "price"), 7)
    style = rng.choice(("section", "nested", "letters"))
    clause = rng.randint(1, 12)
    for topic in topics * 2:
        if s.full:
            break
        if style == "section":
            s.add(w.heading(s, 2, s.say(topic), number=f"§ {clause}"))
            for part in range(1, rng.randint(2, 4)):
                if not s.full:
                    s.add(w.Paragraph(text(f"({part}) {w.sentences(s, min(s.left, rng.randint(70, 180)))}")))
        elif style == "letters":
            s.add(w.heading(s, 2, s.say(topic), number=f"{clause}."))
            for part in range(1, rng.randint(2, 4)):
                if not s.full:
                    s.add(w.Paragraph(text(f"{clause}.{part} {w.sentences(s, min(s.left, rng.randint(70, 180)))}")))
        else:
            items = [
                Item(
                    text(s.say(each)), w.listing(s, min(max(s.left, 60), 150), ordered=True, kind="sentences", mark=".")
                )
                for each in rng.sample(topics, 2 if s.left < 400 else 3)
            ]
            items = [
                Item(item.content, ListBlock(item.below.items[:3], True)) if item.below else item for item in items
            ]
            s.add(ListBlock(tuple(items), True, 1, "."))
            s.add(w.paragraph(s, min(max(s.left, 40), 160)))
        clause += 1
    return s.document()


def slip(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """A label, ticket or receipt: few short lines."""
    s = Sheet("slip", rng, lexicon, need)
    s.add(w.lines(s, lexicon.company(rng), lexicon.city_line(rng), bold_first=s.chance(0.5)))
    if s.chance(0.5):
        s.add(w.heading(s, rng.randint(1, 2), s.says("receipt", "ticket", "copy", "packing_list")))
    if s.chance(0.6):
        s.add(fields(s, count=rng.randint(2, 4), columns=1))
    if s.left > 160 and s.chance(0.7):
        s.add(records(s, rng.choice(("article price", "qty article price", "item amount")), size=s.left, rules="none"))
    if not s.full and s.chance(0.5):
        s.add(fields(s, "subtotal vat total", layout="column", columns=1))
    if s.chance(0.15):
        s.add(w.stamp(s, "paid", "copy"))
    while not s.full:
        s.add(w.lines(s, *(s.words(1, 3) for _ in range(rng.randint(1, 3)))))
        s.add(fields(s, count=rng.randint(2, 5)) if not s.full else None)
    return s.document()
