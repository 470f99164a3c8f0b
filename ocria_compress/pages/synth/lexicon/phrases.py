"""Fixed texts in all languages: form labels, column heads, headings, greetings, page furniture, templates' labels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ocria_compress.errors import OcriaError, nearest

COLUMNS = ("en", "de", "fr", "es", "it", "nl", "pt")
DATA = Path(__file__).parent / "data"


def _rows(path: Path) -> list[list[str]]:
    """The rows of a file of texts: a key and its text in every language, or the name of a group alone."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split(" | ") for line in lines if not line.startswith("#")]


@cache
def _tables() -> tuple[dict[str, dict[str, str]], dict[str, tuple[str, ...]]]:
    """The texts by language and key, and the keys by group."""
    by_language: dict[str, dict[str, str]] = {language: {} for language in COLUMNS}
    groups: dict[str, list[str]] = {}
    group = ""
    for key, *texts in _rows(DATA / "phrases.txt"):
        if not texts:
            group = key
            continue
        groups.setdefault(group, []).append(key)
        for language, text in zip(COLUMNS, texts, strict=True):
            by_language[language][key] = text
    return by_language, {name: tuple(keys) for name, keys in groups.items()}


def phrase(language: str, key: str) -> str:
    """The text of `key`.

    Raises:
        OcriaError: the key is unknown.
    """
    texts_by_key = _tables()[0][language]
    if key not in texts_by_key:
        raise OcriaError("Unknown phrase", where=key, fix=nearest(key, list(texts_by_key)))
    return texts_by_key[key]


@cache
def _labels() -> dict[str, dict[str, str]]:
    """The templates' labels by key and language."""
    return {key: dict(zip(COLUMNS, texts, strict=True)) for key, *texts in _rows(DATA / "labels.txt")}


def template_label(language: str, key: str) -> str:
    """The label `key` of the page templates.

    Raises:
        OcriaError: the key is unknown.
    """
    if key not in _labels():
        raise OcriaError("Unknown label", where=key, fix=nearest(key, list(_labels())))
    return _labels()[key][language]


def texts(language: str) -> tuple[str, ...]:
    """All fixed texts of a language, the templates' labels too: no word of theirs is held out."""
    return (*_tables()[0][language].values(), *(texts[language] for texts in _labels().values()))


LABELS: tuple[str, ...] = _tables()[1]["label"]
"""Keys of form labels, without colons."""

COLUMN_HEADS: tuple[str, ...] = _tables()[1]["column"]
"""Keys of column heads and row names of tables."""

HEADINGS: tuple[str, ...] = _tables()[1]["heading"]
"""Keys of document titles and headings."""

TEXTS: tuple[str, ...] = _tables()[1]["text"]
"""Keys of the rest: page furniture, greetings, notes. Some have `{slots}` that the caller fills with `str.format`."""

PHRASES: tuple[str, ...] = LABELS + COLUMN_HEADS + HEADINGS + TEXTS
"""All keys that `Lexicon.phrase` knows."""
