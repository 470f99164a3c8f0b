"""Makers of text blocks: paragraphs, headings, lists, lines, footnotes, formulas in text, stamps, charts, furniture."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

from ocria_compress.pages.synth.document import (
    Chart,
    Formula,
    Heading,
    Item,
    Lines,
    ListBlock,
    Paragraph,
    Run,
    Stamp,
    Text,
    text,
)
from ocria_compress.pages.synth.templates.formulas import display_formula, inline_formula
from ocria_compress.pages.synth.templates.sheet import Sheet, plain_start

HAND_EXTRA = frozenset(" .,:-/()&%€")
_STAMP_INKS = ((170, 30, 40), (30, 60, 150), (20, 110, 60), (90, 40, 120))


def sentence(s: Sheet, least: int = 5, most: int = 16) -> str:
    """A sentence that may begin a line, sometimes with a date, figure or reference in parentheses in it."""
    made = s.lexicon.sentence(s.rng, least, most)
    for _ in range(6):
        if plain_start(made):
            break
        made = s.lexicon.sentence(s.rng, least, most)
    if s.chance(0.1):
        words = made.split(" ")
        place = s.rng.randint(1, max(1, len(words) - 1))
        lexicon = s.lexicon
        inside = s.rng.choice(
            (
                lexicon.date,
                lexicon.percent,
                lexicon.quantity,
                lexicon.amount,
                lexicon.part_number,
                lexicon.reference_number,
            )
        )(s.rng)
        if plain_start("x" + inside) and words[place - 1][-1:].isalnum():
            words.insert(place, f"({inside})")
            made = " ".join(words)
    return made


def sentences(s: Sheet, size: int) -> str:
    """Sentences of about `size` characters in all, one at least."""
    made = sentence(s, 4, max(5, min(16, size // 7)))
    while len(made) < size - 35:
        room = size - len(made)
        made += " " + sentence(s, 4, max(5, min(16, room // 6)))
    return made


def emphasized(s: Sheet, content: str, bold: float = 0.1, italic: float = 0.04) -> Text:
    """Runs of a text, one or two of its words bold or italic by chance. Emphasized words stand between spaces."""
    draw = s.rng.random()
    words = content.split(" ")
    if draw >= bold + italic or len(words) < 4:
        return text(content)
    length = s.rng.randint(1, 3)
    first = s.rng.randint(0, max(0, len(words) - length - 1))
    inside = words[first : first + length]
    if not all(word.isalnum() for word in inside):
        return text(content)
    runs = (
        Run(" ".join([*words[:first], ""])),
        Run(" ".join(inside), "bold" if draw < bold else "italic"),
        Run(" ".join(["", *words[first + length :]])),
    )
    return tuple(run for run in runs if run.text)


def paragraph(s: Sheet, size: int = 0, notes: float = 0.0) -> Paragraph:
    """Running text of about `size` characters, never much more than is left of the page.

    Args:
        s: the page.
        size: characters; 0 draws 80 to 320.
        notes: the chance of a footnote.
    """
    size = size or s.rng.randint(80, 320)
    content = emphasized(s, sentences(s, max(30, min(size, s.left + 20))))
    if s.chance(notes) and content[-1].style == "plain" and s.left > 200:
        content = with_note(s, content)
    align: Literal["left", "justify"] = "justify" if s.chance(0.25) and s.width > 24 else "left"
    return Paragraph(content, align)


def with_note(s: Sheet, content: Text) -> Text:
    """The text with a footnote after one of the words of its last run."""
    last = content[-1].text
    words = last.split(" ")
    places = [place for place in range(1, len(words)) if words[place - 1].isalnum()]
    if not places:
        return content
    place = s.rng.choice(places)
    note = s.note(s.lexicon.sentence(s.rng, 4, 9))
    return (*content[:-1], Run(" ".join(words[:place])), note, Run(" " + " ".join(words[place:])))


def formula_paragraph(s: Sheet, terms: int = 0) -> Paragraph:
    """What the letters of a formula stand for, the formulas in the text."""
    terms = terms or s.rng.randint(1, 3)
    runs = [Run(s.say("where")[0].upper() + s.say("where")[1:] + " " if s.chance(0.5) else s.say("where") + " ")]
    for number in range(terms):
        runs.append(Run(inline_formula(s.rng), "formula"))
        tail = "." if number == terms - 1 else (", " if number < terms - 2 else f" {s.say('and')} ")
        runs.append(Run(f" {s.lexicon.noun_phrase(s.rng, 1, 3)}{tail}"))
    return Paragraph(tuple(runs))


def formula_sentence(s: Sheet, size: int = 0) -> Paragraph:
    """A sentence or two with formulas between the words."""
    words = sentences(s, min(size or s.rng.randint(60, 160), max(40, s.left - 20))).split(" ")
    places = sorted(s.rng.sample(range(1, len(words)), min(len(words) - 1, s.rng.randint(1, 3))))
    runs, start = [], 0
    for place in places:
        runs += [Run(" ".join(words[start:place]) + " "), Run(inline_formula(s.rng), "formula")]
        start = place
        words[place] = " " + words[place]
    return Paragraph((*runs, Run(" ".join(words[start:]))))


def formula(s: Sheet) -> Formula:
    """A displayed formula that the column is wide enough for."""
    return Formula(display_formula(s.rng, int(min(60, max(16, s.width * 1.9), max(16, s.left)))))


def title(s: Sheet, content: str = "", level: int = 1) -> Heading:
    """A heading; centred by chance."""
    content = content or s.safe(lambda rng: s.lexicon.title(rng, 2, 3 if s.width < 20 else 5))
    align: Literal["left", "center"] = "center" if level == 1 and s.chance(0.25) else "left"
    return Heading(text(content), level, align)


def heading(s: Sheet, level: int = 2, content: str = "", number: str = "") -> Heading:
    """A section's heading, numbered when `number` is given."""
    content = content or s.safe(s.lexicon.heading)
    return Heading(text(f"{number} {content}" if number else content), level)


def lines(s: Sheet, *contents: str, right: bool = False, bold_first: bool = False) -> Lines:
    """Lines kept as they are; those that Markdown would read otherwise are left out."""
    kept = [content for content in contents if plain_start(content)] or [s.words(1, 2)]
    made = [text(content) for content in kept]
    if bold_first:
        made[0] = (Run(kept[0], "bold"),)
    return Lines(tuple(made), "right" if right else "left")


def sender(s: Sheet, right: bool = False, extra: bool = True) -> Lines:
    """A company's name and address; phone, e-mail or website by chance."""
    x, rng = s.lexicon, s.rng
    contents = [x.company(rng), x.street(rng), x.city_line(rng)]
    if extra and not s.small:
        contents += [make(rng) for make in (x.phone, x.email, x.url) if s.chance(0.35)]
    return lines(s, *contents, right=right, bold_first=s.chance(0.3))


def recipient(s: Sheet) -> Lines:
    """A person's name and address, maybe a company's."""
    x, rng = s.lexicon, s.rng
    contents = [x.name(rng), x.street(rng), x.city_line(rng)]
    if s.chance(0.3):
        contents.insert(0, x.company(rng))
    if s.chance(0.2):
        contents.append(x.country(rng))
    return lines(s, *contents)


def handwritten(s: Sheet, make: Callable[[Random], str]) -> str:
    """A text that handwriting faces can print."""
    for _ in range(8):
        made = make(s.rng)
        if all(c.isalnum() or c in HAND_EXTRA for c in made):
            return made
    return str(s.rng.randint(2, 400))


def signature(s: Sheet, hand: bool) -> Lines:
    """A name below a letter or form, above it the same in handwriting by chance."""
    name = handwritten(s, s.lexicon.name)
    under = text(name if s.chance(0.6) else s.say("signature"))
    return Lines(((Run(name, "hand"),), under) if hand else (under,))


def listing(
    s: Sheet, size: int = 0, *, ordered: bool | None = None, depth: int = 1, kind: str = "", mark: str = ""
) -> ListBlock:
    """A list of about `size` characters.

    Args:
        s: the page.
        size: characters; 0 draws it.
        ordered: numbered or with bullets; by chance when None.
        depth: levels at most.
        kind: "words", "sentences" or "pairs" (a term and words); by chance when empty.
        mark: bullet, or what stands behind the number; by chance when empty.
    """
    size = min(size or s.rng.randint(80, 320), max(60, s.left))
    ordered = s.chance(0.35) if ordered is None else ordered
    kind = kind or s.rng.choice(("words", "words", "sentences", "pairs"))
    mark = mark or (s.rng.choice((".", ".", ")")) if ordered else s.rng.choice(("•", "•", "–", "■")))
    items: list[Item] = []
    used = 0
    while (used < size - 15 or len(items) < 2) and len(items) < 9:
        content = _item(s, kind)
        below = None
        used += sum(len(run.text) for run in content) + 3
        if depth > 1 and s.chance(0.4) and size - used > 30:
            below = listing(s, max(30, (size - used) // 2), ordered=s.chance(0.25), depth=depth - 1, kind="words")
            below = ListBlock(below.items[: s.rng.randint(2, 4)], below.ordered, 1, below.mark)
            used += sum(len(run.text) + 6 for item in below.items for run in item.content)
        items.append(Item(content, below))
    start = s.rng.randint(2, 9) if ordered and s.chance(0.08) else 1
    return ListBlock(tuple(items), ordered, start, mark)


def _item(s: Sheet, kind: str) -> Text:
    if kind == "sentences":
        return emphasized(s, sentence(s, 4, 10))
    if kind == "pairs":
        value = s.rng.choice((s.lexicon.quantity, s.lexicon.date, s.lexicon.amount, s.lexicon.name, s.lexicon.percent))
        return text(f"{s.words(1, 2)}: {value(s.rng)}")
    return emphasized(s, s.words(1, 4))


def stamp(s: Sheet, *keys: str) -> Stamp:
    """A stamp with a label and maybe a date, a name or a number below."""
    contents = [s.says(*(keys or ("approved", "copy", "paid", "received", "urgent")))]
    if s.chance(0.6):
        x = s.lexicon
        contents.append(s.safe(s.rng.choice((x.date, x.date, x.reference_number, x.name))))
    if not plain_start(contents[-1]):
        contents.pop()
    return Stamp(tuple(contents), s.rng.choice(_STAMP_INKS), round(s.rng.uniform(-6, 6), 1))


def chart(s: Sheet, most: int = 8) -> Chart:
    """A chart of 3 to `most` categories and 1 to 3 series whose values are printed on it."""
    x, rng = s.lexicon, s.rng
    room = max(3, min(most, int(s.width / 4), (s.left - 60) // 24))
    many = rng.randint(3, room)
    corner, categories = _categories(s, many)
    count = 1 if s.width < 22 or s.left < 260 else rng.choice((1, 1, 2, 3))
    if count == 1:
        names = [s.says("count", "share", "amount", "value", "quantity", "mean")]
    elif s.chance(0.5):
        first = rng.randint(1998, 2022)
        names = [str(first + step) for step in range(count)]
    else:
        names = [s.say(key) for key in rng.sample(("women", "men", "plan", "actual", "income", "expenses"), count)]
    if corner == s.say("year") and names[0].isdigit():
        names = [s.say(key) for key in rng.sample(("plan", "actual", "income", "expenses"), count)]
    value = x.percent if s.chance(0.35) else lambda r: str(r.randint(10, 999)) if s.chance(0.98) else x.integer(r)
    series = tuple((name, tuple(value(rng) for _ in categories)) for name in names)
    kind: Literal["bar", "hbar", "line"] = rng.choice(("bar", "bar", "hbar", "line"))
    head = f"{s.say('figure')} {s.count('figure')}: {s.words(1, 3)}" if s.chance(0.5) else s.words(2, 4)
    return Chart(kind, head, corner, categories, series)


def _categories(s: Sheet, many: int) -> tuple[str, tuple[str, ...]]:
    rng, x = s.rng, s.lexicon
    draw = rng.random()
    if draw < 0.35:
        first = rng.randint(1990, 2024 - many)
        return s.say("year"), tuple(str(first + step) for step in range(many))
    if draw < 0.5 and many <= 4:
        return s.say("region"), tuple(s.say(key) for key in ("north", "south", "east", "west")[:many])
    if draw < 0.65 and many <= 4:
        return s.say("quarter"), tuple(f"{step} / {rng.randint(2001, 2024)}" for step in range(1, many + 1))
    found: dict[str, None] = {}
    for _ in range(60):
        word = x.word(rng)
        if 2 < len(word) < 10 and plain_start(word):
            found[word[0].upper() + word[1:]] = None
        if len(found) == many:
            break
    while len(found) < many:
        found[f"{s.say('group')} {len(found) + 1}"] = None
    return s.says("category", "group", "product", "region"), tuple(found)


def furnish(s: Sheet, share: float = 0.45) -> None:
    """Running head, foot and watermark, each by chance: not in the reference."""
    x, rng = s.lexicon, s.rng
    if s.chance(0.03):
        s.watermark = s.says("draft", "copy", "approved")
    if not s.chance(share):
        return
    page, pages = rng.randint(1, 9), rng.randint(9, 40)
    if s.chance(0.6):
        s.head = rng.choice(
            (
                lambda: x.title(rng, 2, 3),
                lambda: x.company(rng),
                lambda: f"{s.say('version')} {rng.randint(1, 9)}.{rng.randint(0, 9)}",
                lambda: f"{s.say('document_no')} {x.reference_number(rng)}",
                lambda: s.say("confidential"),
            )
        )()
    if s.chance(0.75) or not s.head:
        s.foot = rng.choice(
            (
                lambda: str(page),
                lambda: f"– {page} –",
                lambda: f"{s.say('page')} {page}",
                lambda: f"{s.say('page')} {page} {s.say('of')} {pages}",
                lambda: f"{page} / {pages}",
                lambda: f"{x.company(rng)} · {s.say('page')} {page}",
                lambda: s.say("internal"),
                lambda: f"{x.date(rng)} · {page}",
            )
        )()
