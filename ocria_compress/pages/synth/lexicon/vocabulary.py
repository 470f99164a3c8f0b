"""The word lists of a language, and which of their words are held out for the benchmark.

Two text files per language are read on first use: `data/written_*.txt` (our own) and `data/listed_*.txt` (made by
`tools/make_lexicon.py`). Each line is `key: entries`, entries are parted by spaces, `_` is a space inside one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, get_args
from zlib import crc32

from ocria_compress.pages.synth.lexicon.forms import adjective_forms, plural

Language = Literal["en", "de", "fr", "es", "it", "nl", "pt"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

DATA = Path(__file__).parent / "data"
CONTENT = ("nouns.", "adjectives", "participles", "verbs", "infinitives", "adverbs", "first", "surnames", "cities")
"""Keys (or their beginnings) whose words can be held out. All other keys are common to every split."""

WRITTEN_SHARE = 0.3
"""How much of what is drawn comes from our own lists, whose words are those of documents, if there are others too."""

TOKEN = re.compile(r"[^\W\d_]+")
SHORTEST_HELD_OUT = 4

Entry = str | tuple[str, ...]
Pool = tuple[tuple[Entry, ...], tuple[Entry, ...]]
"""The common and the held-out entries of a key."""


def by_hash(text: str) -> bool:
    """Whether the hash of any longer word of a text falls into the held-out fifth; a plural's -s does not count."""
    return any(
        len(token) >= SHORTEST_HELD_OUT and crc32(token.casefold().rstrip("s").encode()) % 5 == 0
        for token in TOKEN.findall(text)
    )


def read(path: Path) -> dict[str, list[str]]:
    """The entries of a word file by key; lines with the same key are joined."""
    entries: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            key, _, words = line.partition(": ")
            entries.setdefault(key, []).extend(word.replace("_", " ") for word in words.split(" "))
    return entries


def words_of(entries: Iterable[Entry]) -> Iterator[str]:
    """All words of some entries, in small letters."""
    for entry in entries:
        text = entry if isinstance(entry, str) else " ".join(entry)
        yield from (token.casefold() for token in TOKEN.findall(text))


class Vocabulary:
    """All entries of one language.

    Attributes:
        fixed: entries of the keys that are common to all splits (articles, prepositions, patterns, months, ...).
        pools: common and held-out entries of the content words. Adjectives are tuples of their forms
            (:func:`adjective_forms`), all others are strings.
        common_words: the words, in small letters, that any split may show.
    """

    def __init__(self, language: Language) -> None:
        from ocria_compress.pages.synth.lexicon.phrases import texts

        self.language = language
        entries = read(DATA / f"written_{language}.txt")
        for key, words in read(DATA / f"listed_{language}.txt").items():
            written = entries.get(key, [])
            known = set(written)
            listed = [word for word in words if word not in known]
            times = max(1, round(WRITTEN_SHARE / (1 - WRITTEN_SHARE) * len(listed) / max(1, len(written))))
            entries[key] = written * times + listed
        self.fixed = {key: tuple(words) for key, words in entries.items() if not key.startswith(CONTENT)}
        if language in ("fr", "es", "it", "pt"):
            for gender in ("m", "f"):
                entries[f"nouns.{gender}p"] = entries[f"nouns.{gender}"]
        families = {key: self.families(key, words) for key, words in entries.items() if key.startswith(CONTENT)}
        self.pools: dict[str, Pool] = {}
        common_words = set(words_of((*(word for words in self.fixed.values() for word in words), *texts(language))))
        held_words: set[str] = set()
        for key, members in families.items():
            apart = {base: by_hash(base) for base in {base for base, _ in members}}
            common = tuple(entry for base, entry in members if not apart[base])
            held = tuple(entry for base, entry in members if apart[base])
            self.pools[key] = common, held
            common_words.update(words_of(set(common)))
            held_words.update(words_of(set(held)))
        self.common_words = frozenset(common_words)
        self._held_words = frozenset(word for word in held_words if len(word) >= SHORTEST_HELD_OUT)

    @cached_property
    def held_out(self) -> frozenset[str]:
        """The words, in small letters, that only benchmark pages may show: those that are common in no language."""
        return self._held_words - _common_words()

    def families(self, key: str, words: Iterable[str]) -> list[tuple[str, Entry]]:
        """Each word's base, whose hash decides, and its entry."""
        if key in ("adjectives", "participles"):
            return [(word, adjective_forms(self.language, word)) for word in words]
        if key in ("nouns.mp", "nouns.fp"):
            return [(word, plural(self.language, word)) for word in words]
        return [(word, word) for word in words]

    def is_held_out(self, text: str) -> bool:
        """Whether any word of `text` is held out for the benchmark, in this language or in another."""
        return any(word in _held_out_words() for word in words_of((text,)))


@cache
def vocabulary(language: Language) -> Vocabulary:
    """The vocabulary of a language, read once per process."""
    return Vocabulary(language)


@cache
def _common_words() -> frozenset[str]:
    """The words of all languages that any split may show."""
    return frozenset().union(*(vocabulary(language).common_words for language in LANGUAGES))


@cache
def _held_out_words() -> frozenset[str]:
    """The held-out words of all languages."""
    return frozenset().union(*(vocabulary(language).held_out for language in LANGUAGES))
