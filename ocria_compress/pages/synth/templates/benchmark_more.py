"""More templates of benchmark pages: schools, hospitals, offices, journals."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ocria_compress.pages.synth.document import Document, Item, ListBlock, Run, text
from ocria_compress.pages.synth.templates import writing as w
from ocria_compress.pages.synth.templates.forms import fields
from ocria_compress.pages.synth.templates.grids import records
from ocria_compress.pages.synth.templates.matrices import matrix
from ocria_compress.pages.synth.templates.need import Need
from ocria_compress.pages.synth.templates.sheet import Sheet

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Lexicon


def exam(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Name and class by hand, numbered questions with points, formulas between them."""
    s = Sheet("exam", rng, lexicon, need)
    w.furnish(s, 0.4)
    s.add(w.title(s, f"{s.say('exam')} – {s.words(1, 2)}"))
    if not need.strata or s.chance(0.3):
        s.add(fields(s, "name class date points", count=rng.randint(1, 4), hand=0.7))
    first = bool(need.strata)
    while not s.full:
        number = s.count("question")
        s.add(w.heading(s, 2, f"{s.say('question')} {number} ({rng.randint(2, 12)} {s.say('points')})"))
        draw = rng.random()
        if first or draw < 0.45:
            s.add(w.formula_sentence(s, 70), w.formula(s))
        elif draw < 0.75:
            s.add(w.paragraph(s, 80))
            choices = tuple(Item(text(s.words(1, 3))) for _ in range(rng.randint(2, 4)))
            s.add(ListBlock(choices, True, 1, ")"))
        else:
            s.add(w.paragraph(s, min(max(s.left, 40), 170)))
        first = False
    return s.document()


def newsletter(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """A name and an issue across the page, stories below in two columns."""
    s = Sheet("newsletter", rng, lexicon, need)
    w.furnish(s, 0.3)
    s.add(w.title(s, f"{s.say('newsletter')} {s.words(1, 2)}"))
    s.add(
        w.Paragraph((Run(f"{s.say('number')} {rng.randint(1, 90)} · {lexicon.date(rng)}"),)) if s.chance(0.7) else None
    )

    def body() -> None:
        while not s.full:
            s.add(w.heading(s, 2))
            for _ in range(rng.randint(1, 2)):
                if not s.full:
                    s.add(w.paragraph(s, min(s.left, rng.randint(90, 210))))
            if s.chance(0.2) and s.left > 100:
                s.add(w.listing(s, 90, ordered=False, kind="pairs"))
            elif s.chance(0.12) and s.left > 80:
                s.add(w.lines(s, lexicon.name(rng), lexicon.email(rng), lexicon.phone(rng)))

    if "columns" in need.strata or (need.columns_ok and s.width > 26 and s.chance(0.85)):
        s.columns(body)
    else:
        body()
    return s.document()


def clinical_chart(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Patient, measurements by time of day, medicines, remarks by hand."""
    s = Sheet("clinical_chart", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.heading(s, 1, s.say("medical_record")))
    s.add(fields(s, "patient birth_date ward doctor diagnosis", count=1 if need.strata else rng.randint(3, 5)))
    if "spans" in need.strata or s.chance(0.6):
        rows = [f"{rng.randint(1, 28)}/{month}" for month in rng.sample(range(1, 13), 9)]
        groups = [s.say(key) for key in ("morning", "noon", "evening")]
        subs = [s.say("pulse"), s.say("temperature") if s.width > 36 else s.say("dose")]
        table = matrix(s, rows, groups, corner=s.say("date"), subs=subs, kind="small", sub_kinds=("small", "number"),
                       size=int(s.left * 0.6), side=s.chance(0.5))  # fmt: skip
        s.add(table)
    if s.left > 190:
        s.add(w.heading(s, 2, s.say("medicine")))
        s.add(records(s, "medicine dose? time", size=min(s.left, 300), ways=("groups", "merge")))
    if s.chance(0.3) and s.left > 70:
        s.add(w.Paragraph((Run(w.handwritten(s, lambda r: lexicon.noun_phrase(r, 2, 3)), "hand"),)))
    while not s.full:
        s.add(w.paragraph(s, min(s.left, 140)))
    return s.document()


def survey(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Questions, a chart of the answers, a table of marks."""
    s = Sheet("survey", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.title(s, f"{s.say('survey')} {rng.randint(1999, 2026)}"))
    if not need.strata:
        s.add(w.paragraph(s, 90))
    if s.wants("charts", 0.4):
        s.add(w.chart(s))
    if "spans" in need.strata or (s.left > 220 and s.chance(0.7)):
        names = [f"{s.say('question')} {number}" for number in range(1, 10)]
        marks = [s.say(key) for key in ("very_good", "good", "fair", "poor")]
        groups = rng.choice((marks, [s.say("women"), s.say("men")]))
        subs = [s.say("count"), s.say("share")]
        pairs = [s.words(1, 1) for _ in range(3)]
        kinds = ("small", "percent")
        s.add(matrix(s, names, groups, corner=s.say("answer"), subs=subs, kind="percent", sub_kinds=kinds, pairs=pairs,
                     size=int(s.left * 0.7)))  # fmt: skip
    while not s.full:
        s.add(
            w.listing(s, min(s.left, 220), ordered=True, kind="sentences", mark=")")
            if s.left > 90 and s.chance(0.4)
            else None
        )
        s.add(w.paragraph(s, min(max(s.left, 30), 160)))
    return s.document()


def memo(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """From, to and subject, text with footnotes, decisions as nested bullets."""
    s = Sheet("memo", rng, lexicon, need)
    w.furnish(s, 0.3)
    s.add(w.heading(s, 1, s.say("memo")))
    s.add(
        fields(
            s,
            "to from copy_to date subject",
            count=rng.randint(2, 5),
            layout=rng.choice(("behind", "column")),
            columns=1,
        )
    )
    while not s.full:
        s.add(w.paragraph(s, min(s.left, rng.randint(120, 260)), 0.5))
        if s.chance(0.3) and s.left > 120:
            s.add(w.heading(s, 3, s.says("decision", "deadline", "summary")))
            s.add(w.listing(s, min(s.left, 200), ordered=False, depth=2, mark="–"))
    return s.document()


def statutes(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Articles with numbered sentences and lettered items below."""
    s = Sheet("statutes", rng, lexicon, need)
    w.furnish(s, 0.5)
    article = rng.randint(1, 30)
    while not s.full:
        s.add(w.heading(s, 2, f"{s.say('article')} {article} – {s.words(1, 2)}"))
        if s.chance(0.5):
            s.add(w.paragraph(s, min(max(s.left, 40), 150), 0.15))
        items = []
        for _ in range(max(1, min(3, s.left // 110))):
            below = tuple(Item(text(s.words(2, 4))) for _ in range(rng.randint(2, 3)))
            items.append(
                Item(text(w.sentence(s, 5, 10)), ListBlock(below, s.chance(0.3), 1, ")") if s.chance(0.5) else None)
            )
        s.add(ListBlock(tuple(items), True, 1, rng.choice(".)")) if s.left > 60 else None)
        article += 1
    return s.document()


def proceedings(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """A page out of a journal: no title, unnumbered headings, formulas with what their letters mean, a table."""
    s = Sheet("proceedings", rng, lexicon, need)
    w.furnish(s, 0.8)
    asked = set(need.strata)

    def body() -> None:
        if s.chance(0.5):
            s.add(w.heading(s, 2, number=f"{rng.randint(1, 6)}.{rng.randint(1, 4)}"))
        if not asked:
            s.add(w.paragraph(s, 140, 0.3))
        if "formulas" in asked or (not asked and s.chance(0.6)):
            s.add(w.formula_sentence(s, 60), w.formula(s), w.formula_paragraph(s, rng.randint(1, 3)))
        if "charts" in asked or s.chance(0.06):
            s.add(w.chart(s, 6))
        if "spans" in asked or s.chance(0.15):
            keys = rng.choice(("symbol mean? deviation?? range", "model parameter? result", "test count? value"))
            s.add(records(s, keys, size=int(need.budget * 0.42), ways=("head", "groups", "section")))
            s.add(w.Paragraph(text(f"{s.say('table')} {rng.randint(1, 9)} – {s.words(1, 3)}")))
        while not s.full:
            s.add(w.paragraph(s, min(s.left, rng.randint(130, 300)), 0.2))
            if s.chance(0.2) and s.left > 120:
                s.add(w.formula(s))

    if "columns" in need.strata or (need.columns_ok and s.width > 28 and s.chance(0.65)):
        s.columns(body)
    else:
        body()
    return s.document()


def gazette(rng: Random, lexicon: Lexicon, need: Need) -> Document:
    """Notices in two columns below a date: short headings, lines, little tables."""
    s = Sheet("gazette", rng, lexicon, need)
    w.furnish(s, 0.5)
    s.add(w.Paragraph((Run(lexicon.city_line(rng), "bold"), Run(f" – {lexicon.date(rng)}"))) if s.chance(0.6) else None)
    asked = set(need.strata)

    def body() -> None:
        while not s.full:
            s.add(w.heading(s, 3, s.words(1, 3)))
            if "charts" in asked:
                s.add(w.chart(s, 4))
            if "formulas" in asked:
                s.add(w.formula(s), w.formula_sentence(s, 60))
            if "spans" in asked or (s.chance(0.2) and s.left > 170):
                s.add(
                    records(
                        s, rng.choice(("start topic", "article price", "date place? amount")), size=need.budget // 3
                    )
                )
            asked.clear()
            s.add(w.paragraph(s, min(s.left, 150)) if s.chance(0.7) or s.left < 60 else fields(s, count=3, columns=1))
            if s.chance(0.25) and not s.full:
                s.add(w.lines(s, lexicon.company(rng), lexicon.street(rng)))

    if "columns" in need.strata or (need.columns_ok and s.width > 26 and s.chance(0.6)):
        s.columns(body)
    else:
        body()
    return s.document()
