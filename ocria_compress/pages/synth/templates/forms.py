"""Makers of labelled fields."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

from ocria_compress.pages.synth.document import Field, Fields, Paragraph, Run
from ocria_compress.pages.synth.templates.sheet import EM_PER_CHARACTER, Sheet, plain_start
from ocria_compress.pages.synth.templates.values import value
from ocria_compress.pages.synth.templates.writing import handwritten

_KINDS = {
    "name": "name", "contact": "name", "responsible": "name", "patient": "name", "doctor": "name", "chair": "name",
    "speaker": "name", "signature": "name", "from": "name", "to": "name", "copy_to": "name",
    "company": "company", "customer": "company", "supplier": "company", "bank": "company",
    "date": "date", "due_date": "date", "deadline": "date", "birth_date": "date", "start": "date", "end": "date",
    "time": "time", "departure": "time", "arrival": "time",
    "reference": "reference", "order_no": "reference", "invoice_no": "reference", "customer_no": "reference",
    "document_no": "reference", "serial_no": "part", "part_no": "part", "model": "part", "type": "part",
    "amount": "amount", "total": "amount", "subtotal": "amount", "balance": "amount", "price": "amount",
    "salary": "amount", "income": "amount", "expenses": "amount", "opening_balance": "amount",
    "closing_balance": "amount", "budget": "amount", "credit": "amount", "debit": "amount",
    "vat": "rate", "discount": "rate", "share": "percent",
    "weight": "quantity", "length": "quantity", "width": "quantity", "height": "quantity", "temperature": "quantity",
    "pressure": "quantity", "distance": "quantity", "dose": "quantity", "duration": "quantity",
    "age": "small", "quantity": "small", "points": "small", "pulse": "small", "servings": "small", "count": "integer",
    "room": "shelf", "location": "shelf", "ward": "shelf", "class": "shelf", "version": "decimal", "year": "year",
    "range": "range", "limit": "range", "status": "status", "inspected": "yes",
}  # fmt: skip

GENERAL = [
    "name",
    "date",
    "reference",
    "company",
    "contact",
    "phone",
    "email",
    "address",
    "city",
    "department",
    "order_no",
    "customer_no",
    "amount",
    "total",
    "due_date",
    "model",
    "serial_no",
    "weight",
    "length",
    "status",
    "room",
    "version",
    "description",
    "colour",
    "material",
    "birth_date",
    "country",
    "tax_id",
    "account",
    "website",
    "subject",
    "duration",
    "temperature",
    "quantity",
    "place",
    "responsible",
    "type",
    "deadline",
]


def maker(s: Sheet, key: str) -> Callable[[Random], str]:
    """What draws the value of a field."""
    x = s.lexicon
    methods: dict[str, Callable[[Random], str]] = {
        "phone": x.phone,
        "email": x.email,
        "website": x.url,
        "address": x.street,
        "city": x.city_line,
        "place": x.city_line,
        "country": x.country,
        "tax_id": x.tax_id,
        "account": x.iban,
        "surname": lambda rng: x.name(rng).split(" ")[-1],
        "first_name": lambda rng: x.name(rng).split(" ")[0],
    }
    if key in methods:
        return methods[key]
    if key == "version":
        return lambda rng: f"{rng.randint(1, 9)}.{rng.randint(0, 20)}"
    kind = _KINDS.get(key, "words")
    return lambda rng: value(s, kind)


def fields(
    s: Sheet,
    keys: str = "",
    *,
    count: int = 0,
    hand: float = 0.0,
    layout: Literal["behind", "column", "boxes", ""] = "",
    columns: int = 0,
    bold: bool | None = None,
) -> Fields:
    """Fields of a form.

    Args:
        s: the page.
        keys: labels in order, apart by spaces; drawn from the usual ones when empty.
        count: how many of them at most; 0 takes all (or 3 to 7 drawn ones).
        hand: the chance of each value to be in handwriting (one in ten of those is left empty).
        layout, columns, bold: see `Fields`; by chance when not given.
    """
    names = keys.split()
    if not names:
        names = s.rng.sample(GENERAL, count or s.rng.randint(3, 7))
    room = max(2, s.left // 28)
    names = names[: min(count or len(names), room)]
    columns = columns or (2 if s.chance(0.2) else 1)
    if s.width < 26:
        columns = 1
    made = []
    for key in names:
        label, most = _label(s, key), int(s.width / columns / EM_PER_CHARACTER) - 2
        make = maker(s, key)
        if s.chance(hand):
            content = "" if s.chance(0.1) else handwritten(s, lambda rng, make=make: s.fitting(make, 18))  # type: ignore[misc]
            made.append(Field(label, content, hand=True))
        else:
            content = s.fitting(make, max(6, most - len(label)))
            made.append(Field(label, content if content and plain_start("x" + content) else "–"))
    usual: tuple[Literal["behind", "column", "boxes"], ...] = ("behind", "behind", "column", "boxes")
    chosen = layout if layout else s.rng.choice(usual)
    bold = s.chance(0.6) if bold is None else bold
    return Fields(tuple(made), bold, chosen, columns)


def _label(s: Sheet, key: str) -> str:
    if s.chance(0.08):
        drawn = s.lexicon.label(s.rng).rstrip(":")
        if plain_start(drawn):
            return drawn
    return s.say(key)


def ticks(s: Sheet, keys: str) -> Paragraph:
    """A line of labels one of which is bold: the one that holds."""
    names = [s.say(key) for key in keys.split()]
    chosen = s.rng.randrange(len(names))
    runs = []
    for place, name in enumerate(names):
        runs.append(Run(name, "bold" if place == chosen else "plain"))
        if place < len(names) - 1:
            runs.append(Run(" / "))
    return Paragraph(tuple(runs))
