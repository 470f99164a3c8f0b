"""Templates of benchmark pages: trade, money and travel. See also `benchmark_more.py`."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import Cell, Document, Item, ListBlock, Run, text
from ocria_compress.pages.synth.templates import benchmark_more as more
from ocria_compress.pages.synth.templates import writing as w
from ocria_compress.pages.synth.templates.forms import fields, ticks
from ocria_compress.pages.synth.templates.grids import Grid, records
from ocria_compress.pages.synth.templates.matrices import comparison, matrix
from ocria_compress.pages.synth.templates.need import SHOWN, Need, Template
from ocria_compress.pages.synth.templates.sheet import Sheet
from ocria_compress.pages.synth.templates.values import value

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon


def _purchase_order(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("purchase_order", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s, s.say("purchase_order")))
    s.add(fields(s, "order_no date supplier", count=1 if need.strata else 3, layout="column", columns=1))
    keys = rng.choice(("position? part_no? description qty price", "qty unit? article unit_price? total"))
    totals = rng.choice((("subtotal", "discount", "total"), ("total",), ("subtotal", "total")))
    s.add(
        records(s, keys, size=int(s.left * rng.uniform(0.55, 0.8)), ways=("total", "head"), totals=totals, empties=0.0)
    )
    if s.left > 100:
        s.add(w.heading(s, 3, s.say("delivery_note") if s.chance(0.3) else s.say("address")), w.recipient(s))
    s.add(w.listing(s, min(s.left, 200), ordered=True, kind="sentences") if s.left > 90 else None)
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 130)))
    return s.document()


def _delivery_note(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("delivery_note", rng, lexicon, need)
    w.furnish(s, 0.5)
    if not need.strata and not s.small:
        s.add(w.recipient(s), w.sender(s, right=True))
    s.add(w.title(s, f"{s.say('delivery_note')} {lexicon.reference_number(rng)}"))
    keys = rng.choice(("number article qty location? weight?", "part_no colour? quantity unit"))
    s.add(
        records(s, keys, size=int(s.left * rng.uniform(0.55, 0.85)), ways=("groups", "section", "merge"), empties=0.08)
    )
    s.add(w.stamp(s, "received", "inspected") if s.chance(0.2) else None)
    while s.left > 100:
        s.add(
            fields(s, "transport weight count vehicle", count=rng.randint(2, 4))
            if s.chance(0.5)
            else w.paragraph(s, 110)
        )
    s.add(w.Paragraph(text(f"{s.say('received')} – {lexicon.date(rng)}")), w.signature(s, hand=s.chance(0.5)))
    return s.document()


def _bank_statement(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("bank_statement", rng, lexicon, need)
    w.furnish(s, 0.6)
    s.add(w.heading(s, 2, s.say("statement")))
    s.add(fields(s, "account name date", count=1 if need.strata else rng.randint(1, 3), layout="behind", columns=1))
    keys = rng.choice(
        ("date description debit? credit balance?", "date item amount", "date reference?? description amount")
    )
    totals = ("opening_balance", "closing_balance") if s.chance(0.4) else ("closing_balance",)
    s.add(
        records(
            s, keys, size=int(s.left * rng.uniform(0.7, 0.95)), ways=("total", "groups"), totals=totals, empties=0.15
        )
    )
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 170)))
    return s.document()


def _timetable(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("timetable", rng, lexicon, need)
    w.furnish(s, 0.3)
    s.add(w.title(s, f"{s.say('timetable')} – {s.say('line')} {rng.randint(1, 480)}"))
    spans = s.wants("spans", 0.6)
    size = min(int(s.left * rng.uniform(0.6, 0.9)), 900)
    runs = max(2, min(6, int((s.width - 8) / 4)))
    stops = max(2, min(11, int((size - 90) / (25 + 14 * runs))))
    clock = [rng.randint(300, 1100)]
    for _ in range(runs - 1):
        clock.append(clock[-1] + rng.choice((10, 15, 20, 30, 60)))
    rows: list[list[Cell | None]] = []
    minute = 0
    for _ in range(stops):
        row: list[Cell | None] = [Cell(text(s.words(1, 1)))]
        for start in clock:
            at = start + minute
            row.append(Cell(text(f"{at // 60 % 24}:{at % 60:02d}" if s.chance(0.92) else "–"), align="right"))
        rows.append(row)
        minute += rng.randint(2, 9)
    done = Grid(rows)
    head: list[Cell | None] = [Cell(text(s.say("stop")), header=True)]
    if spans:
        cut = rng.randint(1, runs - 1)
        head = [Cell(text(s.say("stop")), 1, 1, True)]
        for label, length in ((s.say("weekdays"), cut), (s.say("weekend"), runs - cut)):
            head += [Cell(text(label), 1, length, True, "center"), *[None] * (length - 1)]
        if runs == 2:
            done.places.append([Cell(text(s.words(1, 2)), 1, 3), None, None])
    else:
        head += [Cell(text(str(number)), header=True, align="right") for number in range(1, runs + 1)]
    done.places.insert(0, head)
    s.add(done.table(s, "grid" if spans else None))
    s.add(w.listing(s, min(s.left, 180), ordered=False, kind="pairs", mark="–") if s.left > 60 else None)
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 130)))
    return s.document()


def _product_comparison(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("product_comparison", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.title(s, f"{s.say('comparison')} {s.words(1, 2)}"))
    s.add(w.paragraph(s, 100) if not need.strata and s.left > 350 else None)
    products = [f"{s.say('model')} {letter}" if s.width > 30 else letter for letter in rng.sample("ABCDEFGHKLMNPRS", 4)]
    features = rng.sample(("weight", "length", "height", "colour", "material", "price", "warranty", "standard"), 3)
    names = [s.say(key) for key in features] + list(dict.fromkeys(s.words(1, 2) for _ in range(7)))
    s.add(
        comparison(
            s,
            names,
            products[: rng.randint(2, 4)],
            size=int(s.left * rng.uniform(0.55, 0.85)),
            spans=s.wants("spans", 0.5),
        )
    )
    s.add(w.heading(s, 2, s.say("summary")) if s.left > 100 else None)
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 180)) if s.chance(0.7) else w.listing(s, min(s.left, 150), ordered=False))
    return s.document()


def _inventory(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("inventory", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.heading(s, 1, s.say("inventory")))
    keys = rng.choice(
        ("location part_no description? stock status?", "room item count value", "group article stock unit? value??")
    )
    while s.left > 170:
        size = int(need.budget * 0.5) if need.strata else rng.randint(220, 700)
        s.add(records(s, keys, size=size, ways=("groups", "section", "total")))
        s.add(w.heading(s, 2, f"{s.say('location')} {value(s, 'shelf')}") if s.left > 200 else None)
    s.add(fields(s, "inspected date responsible", columns=1) if s.left > 60 and s.chance(0.5) else None)
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 120)))
    return s.document()


def _travel_claim(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("travel_claim", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.title(s, s.say("travel_expenses")))
    s.add(fields(s, "name purpose start end", count=1 if need.strata else 4, hand=0.25, layout="boxes"))
    days = [lexicon.weekday(rng) for _ in range(8)]
    heads = [s.say(key) for key in ("transport", "hotel", "meals", "total")]
    s.add(
        matrix(s, days, heads, corner=s.say("day"), kind="number", total=s.say("total"), size=int(s.left * 0.6),
               pairs=[f"{s.say('week')} {number}" for number in range(rng.randint(1, 40), 60)])
    )  # fmt: skip
    s.add(w.Paragraph((Run(f"{s.say('distance')}: "), Run(lexicon.quantity(rng), "bold"))) if s.left > 80 else None)
    while s.left > 90:
        s.add(w.paragraph(s, min(s.left, 120)))
    s.add(w.signature(s, s.chance(0.5)) if not s.full else None)
    return s.document()


def _tax_form(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("tax_form", rng, lexicon, need)
    w.furnish(s, 0.6)
    s.add(w.heading(s, 1, f"{s.say('tax_return')} {rng.randint(2000, 2026)}"))
    hand = rng.choice((0.0, 0.0, 0.9))
    part = 0
    while not s.full:
        part += 1
        if part != 2:
            s.add(
                w.heading(
                    s, 2, s.says("income", "expenses", "name", "tax_id", "assets"), number=f"{chr(64 + min(part, 26))}."
                )
            )
            keys = rng.choice(
                ("surname first_name birth_date tax_id", "income expenses vat total", "address city account bank")
            )
            s.add(
                fields(
                    s,
                    keys,
                    count=2 if need.strata else 4,
                    hand=hand,
                    layout=rng.choice(("column", "boxes")),
                    bold=False,
                )
            )
        elif s.left > 150:
            size = int(need.budget * 0.4) if need.strata else min(s.left, 350)
            s.add(records(s, "line description amount", size=size, ways=("section", "total", "groups"), rules="grid"))
        s.add(ticks(s, "yes no") if s.chance(0.25) else None)
    return s.document()


def _programme(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    s = Sheet("programme", rng, lexicon, need)
    w.furnish(s, 0.3)
    s.add(
        w.title(s, s.say("programme")),
        w.Paragraph(text(f"{lexicon.weekday(rng)} – {s.say('room')} {rng.randint(1, 40)}")),
    )
    if "spans" in need.strata or s.chance(0.6):
        keys = rng.choice(("time topic speaker? room??", "session start? speaker", "day topic room?"))
        s.add(
            records(
                s, keys, size=int(s.left * rng.uniform(0.5, 0.8)), ways=("section", "groups", "merge"), rules="grid"
            )
        )
    while not s.full:
        s.add(w.heading(s, 2, f"{s.say('session')} {s.count('session')}") if s.left > 110 else None)
        items = []
        for _ in range(max(2, min(4, s.left // 60))):
            speaker = ListBlock((Item(text(lexicon.name(rng))),))
            items.append(
                Item(
                    text(f"{rng.randint(8, 19)}:{rng.choice(('00', '30'))} {s.words(1, 3)}"),
                    speaker if s.chance(0.5) else None,
                )
            )
        s.add(ListBlock(tuple(items)))
        s.add(w.paragraph(s, min(s.left, 90)) if not s.full else None)
    return s.document()


TEMPLATES = (
    Template("purchase_order", _purchase_order, frozenset({"spans"}), 4, least=250),
    Template("delivery_note", _delivery_note, frozenset({"spans"}), 3, least=250),
    Template("bank_statement", _bank_statement, frozenset({"spans"}), 4, least=200),
    Template("timetable", _timetable, frozenset({"spans"}), 3, least=200),
    Template("product_comparison", _product_comparison, frozenset({"spans"}), 4, least=200),
    Template("inventory", _inventory, frozenset({"spans"}), 4),
    Template("travel_claim", _travel_claim, frozenset({"spans"}), 3, least=300),
    Template("tax_form", _tax_form, frozenset({"spans"}), 3),
    Template("programme", _programme, frozenset({"spans"}), 3, least=200),
    Template("exam", more.exam, frozenset({"formulas"}), 4),
    Template("newsletter", more.newsletter, frozenset({"columns"}), 4),
    Template("clinical_chart", more.clinical_chart, frozenset({"spans"}), 3, least=250),
    Template("survey", more.survey, frozenset({"charts", "spans"}), 4),
    Template("memo", more.memo, frozenset(), 4),
    Template("statutes", more.statutes, frozenset(), 3, least=200),
    Template("proceedings", more.proceedings, SHOWN, 6),
    Template("gazette", more.gazette, SHOWN, 4),
)
