"""Texts of table cells and form fields, by kind."""

from __future__ import annotations

from collections.abc import Callable

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth.templates.sheet import Sheet


def value(s: Sheet, kind: str) -> str:
    """A cell's text of one kind."""
    rng, x = s.rng, s.lexicon
    simple: dict[str, Callable[..., str]] = {
        "unit": x.unit, "percent": x.percent, "quantity": x.quantity, "number": x.number, "integer": x.integer,
        "date": x.date, "time": x.time, "name": x.name, "company": x.company, "part": x.part_number,
        "reference": x.reference_number, "amount": x.amount, "word": x.word,
    }  # fmt: skip
    if kind in simple:
        return simple[kind](rng)
    if kind == "words":
        return s.words(1, 3 if s.width > 28 else 2)
    if kind == "small":
        return str(rng.randint(1, 99) if rng.random() < 0.8 else rng.randint(100, 999))
    if kind == "rate":
        return f"{rng.choice((0, 4, 5, 6, 7, 9, 10, 12, 19, 20, 21, 22, 23))} %"
    if kind == "change":
        return f"{rng.choice('+–')}{x.percent(rng)}"
    if kind == "range":
        low = rng.randint(0, 80)
        return rng.choice((f"{low}–{low + rng.randint(1, 90)}", f"≤ {low + 1}", f"≥ {low + 1}"))
    if kind == "shelf":
        return f"{rng.choice('ABCDEFGHK')}{rng.choice(('', '-', ' '))}{rng.randint(1, 320)}"
    if kind == "symbol":
        return rng.choice("ABCDEFGHKLMNPQRSTUVWbcdfghkmnpqrstvw")
    if kind == "status":
        return s.says("open", "done", "yes", "no", "optional", "standard")
    if kind == "yes":
        return rng.choice((s.say("yes"), s.say("yes"), s.say("no"), "–"))
    if kind == "dot":
        return rng.choice(("•", "•", "–", ""))
    if kind == "year":
        return str(rng.randint(1985, 2026))
    if kind == "ages":
        low = rng.choice((0, 15, 18, 25, 30, 40, 45, 50, 60, 65))
        return f"{low}–{low + rng.choice((4, 9, 14))}"
    raise OcriaError(f"no kind of cell '{kind}'", where="pages/synth/templates/values.py")
