"""Text content of synthetic pages: words, sentences, phrases, and fields such as dates, amounts and addresses.

Every function draws from the `random.Random` it is given. The order and number of the draws are part of the generator:
changing them changes every page.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from random import Random

from ocria_compress.pages.synth.lexicon import (
    BUSINESS_WORDS,
    CITIES,
    COMMON_WORDS,
    COMPANY_KINDS,
    FIRST_NAMES,
    MONTHS,
    STREET_KINDS,
    SURNAMES,
    dictionary,
    short_words,
)

_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # no I: it reads as 1 or l in some of the fonts
_DIGITS = "0123456789"
_CODE_PREFIXES = ["INV", "PO", "REF", "SKU", "ORD", "ID", "CN"]


def money(rng: Random) -> str:
    """An amount from about 2 to 300,000, log-uniform, mostly with a currency sign and cents."""
    value = 10 ** rng.uniform(0.3, 5.5)
    amount = f"{value:,.2f}" if rng.random() < 0.75 else f"{int(value):,}"
    return rng.choice(["$", "$", "$", "€", "£", ""]) + amount


def date(rng: Random) -> str:
    """A date in one of six notations."""
    year, month, day = rng.randint(1985, 2032), rng.randint(1, 12), rng.randint(1, 28)
    name = MONTHS[month - 1]
    notation = rng.randrange(6)
    return (
        f"{year}-{month:02d}-{day:02d}",
        f"{name} {day}, {year}",
        f"{day} {name} {year}",
        f"{month:02d}/{day:02d}/{year}",
        f"{day:02d}.{month:02d}.{year}",
        f"{name[:3]} {day}, {year}",
    )[notation]


def code(rng: Random) -> str:
    """A reference number in one of five shapes (all five are drawn, one is used)."""
    shape = rng.randrange(5)
    return (
        f"{rng.choice(_CODE_PREFIXES)}-{_draw(rng, _DIGITS, rng.randint(3, 6))}",
        f"{_draw(rng, _LETTERS, 2)}{_draw(rng, _DIGITS, 4)}",
        f"{_draw(rng, _DIGITS, 3)}-{_draw(rng, _DIGITS, 4)}",
        f"{_draw(rng, _LETTERS, 3)}-{_draw(rng, _DIGITS, 2)}{_draw(rng, _LETTERS, 1)}",
        f"#{_draw(rng, _DIGITS, rng.randint(3, 5))}",
    )[shape]


def _draw(rng: Random, alphabet: str, n: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(n))


def name(rng: Random) -> str:
    """A person: `Anna Novak` or `A. Novak`."""
    if rng.random() < 0.8:
        return f"{rng.choice(FIRST_NAMES)} {rng.choice(SURNAMES)}"
    return f"{rng.choice(FIRST_NAMES)[0]}. {rng.choice(SURNAMES)}"


def company(rng: Random) -> str:
    """A company: a surname or a dictionary word, and its kind."""
    if rng.random() < 0.6:
        return f"{rng.choice(SURNAMES)} {rng.choice(COMPANY_KINDS)}"
    return f"{rng.choice(dictionary()).capitalize()} {rng.choice(COMPANY_KINDS)}"


def phone(rng: Random) -> str:
    """A telephone number, international or North American."""
    if rng.random() < 0.5:
        return f"+{rng.randint(1, 99)} {rng.randint(100, 999)} {rng.randint(100, 999)} {rng.randint(1000, 9999)}"
    return f"({rng.randint(200, 989)}) {rng.randint(100, 999)}-{rng.randint(1000, 9999)}"


def email(rng: Random) -> str:
    """An e-mail address with a dictionary word for a host."""
    person = f"{rng.choice(FIRST_NAMES).lower()}.{rng.choice(SURNAMES).lower()}"
    return f"{person}@{rng.choice(short_words())}.{rng.choice(['com', 'org', 'net', 'io', 'co.uk'])}"


def address(rng: Random) -> str:
    """A street address with its city."""
    return f"{rng.randint(1, 999)} {rng.choice(SURNAMES)} {rng.choice(STREET_KINDS)}, {rng.choice(CITIES)}"


def number(rng: Random) -> str:
    """A whole number, a decimal or a percentage (all six are drawn, one is used)."""
    kind = rng.randrange(6)
    return (
        str(rng.randint(0, 99)),
        str(rng.randint(100, 9999)),
        f"{rng.uniform(0, 100):.1f}",
        f"{rng.uniform(0, 10):.2f}",
        f"{rng.randint(1, 100)}%",
        f"{rng.uniform(0, 100):.1f}%",
    )[kind]


@functools.cache
def _common_word_cumulative() -> list[float]:
    import numpy as np

    weights = np.array([1.0 / (rank + 8) ** 0.8 for rank in range(len(COMMON_WORDS))])
    return list(np.cumsum(weights / weights.sum()))


def common_word(rng: Random) -> str:
    """One of the most frequent words, frequent ones more often."""
    cumulative = _common_word_cumulative()
    # The last sum may fall short of 1 by rounding; a draw beyond it takes the last word.
    return COMMON_WORDS[bisect_left(cumulative, rng.random(), hi=len(cumulative) - 1)]


def word(rng: Random) -> str:
    """One word: frequent, of business, short, or any of the dictionary."""
    draw = rng.random()
    if draw < 0.40:
        return common_word(rng)
    if draw < 0.55:
        return rng.choice(BUSINESS_WORDS)
    if draw < 0.82:
        return rng.choice(short_words())
    return rng.choice(dictionary())


def term(rng: Random) -> str:
    """What stands between two spaces of running text: nine times in ten a word, else a name, an amount, a date ..."""
    draw = rng.random()
    if draw < 0.90:
        return word(rng)
    if draw < 0.93:
        return rng.choice(FIRST_NAMES) if rng.random() < 0.5 else rng.choice(CITIES)
    if draw < 0.945:
        return name(rng)
    if draw < 0.96:
        return money(rng)
    if draw < 0.97:
        return date(rng)
    if draw < 0.975:
        return code(rng)
    if draw < 0.985:
        return f"{rng.choice(short_words())}-{rng.choice(short_words())}"
    return number(rng)


def capitalized(text: str) -> str:
    """`text` with its first letter in upper case and the rest as it was."""
    return text[:1].upper() + text[1:]


def sentence(rng: Random, shortest: int = 4, longest: int = 16) -> str:
    """A sentence of `shortest` to `longest` terms with some punctuation inside and a mark at its end."""
    length = rng.randint(shortest, longest)
    terms = []
    for position in range(length):
        text = term(rng)
        if 0 < position < length - 1:
            text = _punctuated(text, rng.random())
        terms.append(text)
    text = capitalized(" ".join(terms))
    draw = rng.random()
    return text + ("." if draw < 0.9 else "?" if draw < 0.94 else "!" if draw < 0.96 else ".")


def _punctuated(text: str, draw: float) -> str:
    if draw < 0.07:
        return text + ","
    if draw < 0.08:
        return text + ";"
    if draw < 0.09:
        return text + ":"
    if draw < 0.10:
        return f"({text})"
    if draw < 0.11:
        return f'"{text}"'
    return text


def phrase(rng: Random, shortest: int = 1, longest: int = 4, title: float = 0.5) -> str:
    """A few words in Title Case (with probability `title`), UPPER CASE (0.06) or Sentence case."""
    words = [word(rng) for _ in range(rng.randint(shortest, longest))]
    draw = rng.random()
    if draw < title:
        return " ".join(capitalized(w) for w in words)
    if draw < title + 0.06:
        return " ".join(words).upper()
    return capitalized(" ".join(words))
