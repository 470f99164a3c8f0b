"""Loops: a model that writes the same thing again and again.

A repetition is a stretch of text in which a unit stands at least three times in a row, to the character; the last one
may be cut. All of them are found, whatever the unit's length: characters, words, table rows and paragraphs alike.
`find_loop` takes the longest one; a page may repeat itself rightly (a dotted line, a table of zeros), so `new_loop`
asks whether the reference does so too.

How: texts of g characters, g = 8, 16, 32, ..., are numbered by hashing (numbers of 2g from those of g: R. Karp, R.
Miller and A. Rosenberg, 1972), and each place is linked to the next place with the same text. In a repetition with a
unit of p characters, p <= g < 2p, neighbouring places are all linked over the same distance, p: since g >= p a shorter
link would be a shorter unit (N. Fine and H. Wilf, 1965), and since g < 2p three units are long enough to be seen.
O(n log^2 n) for n characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LEAST_REPEATS = 4.0
"""How often a unit must stand in a row (beyond the reference, where there is one) to be a loop."""
LEAST_LENGTH = 100
"""How many characters that must make."""

LEAST_SCATTERED = 8
"""From how many characters on it matters that the reference has a unit elsewhere: everything has many an "e"."""

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Loop:
    """A unit repeated in a row.

    Attributes:
        unit: what is repeated, as it stands at `start`.
        repeats: how often, in units: 4.5 is four and a half.
        start: where it begins, in characters.
        length: of the whole stretch, in characters.
        counting: the repetitions differ in numbers ("Item 1", "Item 2", ...).
    """

    unit: str
    repeats: float
    start: int
    length: int
    counting: bool = False


def find_loop(
    text: str, *, least_repeats: float = LEAST_REPEATS, least_length: int = LEAST_LENGTH, counting: bool = False
) -> Loop | None:
    """The longest repetition of a text that is long enough, anywhere in it; None where there is none.

    Args:
        text: what was read.
        least_repeats: at least 3.
        least_length: in characters.
        counting: repetitions that differ in numbers only are taken for repetitions. Rows of a table of figures often
            do, so this makes sense beside a reference only.
    """
    found = repetitions(text, counting=counting)
    found = [each for each in found if each.repeats >= least_repeats and each.length >= least_length]
    return max(found, key=lambda each: (each.length, -each.start), default=None)


def new_loop(
    text: str, reference: str, *, least_repeats: float = LEAST_REPEATS, least_length: int = LEAST_LENGTH
) -> Loop | None:
    """The longest repetition of `text` that the reference does not have.

    It counts when the unit stands `least_repeats` times and `least_length` characters more often in a row than (a) it
    stands in the whole reference, in a row or not, and (b) a similar unit stands in a row there: so a dotted line or a
    column of zeros that is misread everywhere in the same way is no loop. Repetitions that differ in numbers count
    likewise, with twice `least_repeats`. Text that follows other rules than its reference (pipe tables where that has
    HTML) may repeat itself where the reference cannot: bring both into one form first.
    """
    if text == reference:
        return None
    for counting, least in ((False, least_repeats), (True, 2 * least_repeats)):
        found = [each for each in repetitions(text, counting=counting) if each.length >= least_length]
        found = [each for each in found if each.repeats >= least]
        if not found:
            continue
        compared = _DIGITS.sub("0", reference) if counting else reference
        known = repetitions(compared)
        for loop in sorted(found, key=lambda each: -each.length):
            unit = _DIGITS.sub("0", loop.unit) if counting else loop.unit
            there = max((_equivalent(unit, each) for each in known), default=0.0)
            scattered = compared.count(unit) if len(unit) >= LEAST_SCATTERED else 0
            excess = loop.repeats - max(scattered, there)
            if excess >= least and excess * len(loop.unit) >= least_length:
                return loop
    return None


def loops(text: str, reference: str, finished: bool) -> bool:
    """Whether a page counts as a loop: a new repetition, or text that was cut by the token limit instead of ending.

    A page may be cut without repeating itself, by a limit shorter than the page: give enough tokens.
    """
    return not finished or new_loop(text, reference) is not None


def repetitions(text: str, *, counting: bool = False) -> list[Loop]:
    """Every maximal stretch in which a unit stands three times or more in a row, in the order of their starts.

    With `counting`, numbers are all taken for the same number. Of a unit of p characters at least p + 8 are needed.
    """
    if not counting:
        return [Loop(text[s : s + p], n / p, s, n) for s, n, p in _runs(text)]
    at, shown = 0, []
    places: list[int] = []  # of each shown character in the text
    for number in _DIGITS.finditer(text):
        shown.append(text[at : number.start()] + "0")
        places += range(at, number.start() + 1)
        at = number.end()
    shown.append(text[at:])
    places += range(at, len(text) + 1)
    return [
        Loop(text[places[s] : places[s + p]], n / p, places[s], places[s + n] - places[s], counting=True)
        for s, n, p in _runs("".join(shown))
    ]


def _runs(text: str) -> list[tuple[int, int, int]]:
    """(start, length, period) of every repetition, in the order of their starts."""
    import numpy as np

    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    found = {}
    multiplier = 0x9E3779B97F4A7C15  # any odd numbers of 64 bits will do
    numbers = codes.astype(np.uint64) + np.uint64(1)
    size = 1
    while (size <= 8 or 3 * (size // 2 + 1) <= len(codes)) and len(numbers):
        if size >= 8:
            least = 1 if size == 8 else size // 2 + 1  # shorter units than 5 are seen at 8, too
            for start, length, period in _linked(numbers, size):
                again = start + period
                if (
                    least <= period
                    and length >= 3 * period
                    and text.startswith(text[start : start + length - period], again)
                ):
                    found[start, length] = period
        numbers = _mixed(numbers[:-size] * np.uint64(multiplier) ^ numbers[size:])
        multiplier = (multiplier * 0xD6E8FEB86659FD93 | 1) % 2**64
        size *= 2
    return [(start, length, period) for (start, length), period in sorted(found.items())]


def _mixed(numbers):
    import numpy as np

    numbers = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return numbers ^ (numbers >> np.uint64(29))


def _linked(numbers, size: int) -> list[tuple[int, int, int]]:
    """(start, length, distance) of the stretches in which neighbours are linked over the same distance."""
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    same = numbers[order[:-1]] == numbers[order[1:]]
    distance = np.zeros(len(numbers), dtype=np.int64)
    distance[order[:-1][same]] = (order[1:] - order[:-1])[same]
    borders = np.flatnonzero(np.diff(distance, prepend=-1, append=-1))
    starts, ends, values = borders[:-1], borders[1:], distance[borders[:-1]]
    kept = (values > 0) & (values <= size)
    lengths = ends - starts + size - 1 + values
    return [(int(s), int(n), int(d)) for s, n, d in zip(starts[kept], lengths[kept], values[kept], strict=True)]


def _equivalent(unit: str, known: Loop) -> float:
    """How many repeats of `unit` a repetition of the reference is worth: 0 where the units are not similar."""
    from rapidfuzz import fuzz

    leaders = not any(character.isalnum() for character in unit + known.unit)
    shorter, longer = sorted((unit, known.unit), key=len)
    if not leaders and (len(longer) > 2 * len(shorter) or fuzz.partial_ratio(shorter, longer * 2) < 60):
        return 0.0
    return known.length / len(unit)
