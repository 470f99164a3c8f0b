"""Words, names, numbers and sentences for synthetic documents in seven languages.

Everything is drawn from the `random.Random` that is passed in, so the same seed gives the same text. All texts are
plain: printable with `fonts.CHARACTERS`, on one line, without characters that mean something in Markdown. Where the
data comes from, and under which licences, is in `README.md` beside this file.
"""

from __future__ import annotations

from ocria_compress.pages.synth.lexicon.numbers import AmountStyle
from ocria_compress.pages.synth.lexicon.phrases import COLUMN_HEADS, HEADINGS, LABELS, PHRASES, TEXTS
from ocria_compress.pages.synth.lexicon.sentences import Lexicon
from ocria_compress.pages.synth.lexicon.vocabulary import LANGUAGES, Language

__all__ = [
    "COLUMN_HEADS",
    "HEADINGS",
    "LABELS",
    "LANGUAGES",
    "PHRASES",
    "TEXTS",
    "AmountStyle",
    "Language",
    "Lexicon",
]
