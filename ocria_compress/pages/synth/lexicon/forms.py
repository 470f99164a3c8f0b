"""Inflected forms by simple rules: good enough to look like the language, not always right."""

from __future__ import annotations

VOWELS = frozenset("aeiouàâäáèéêëíîïóôöúûüyAEIOUÀÂÄÁÈÉÊËÍÎÏÓÔÖÚÛÜ")
GERMAN_FORMS = ("e", "en", "er", "es")
"""The endings of the forms that :func:`adjective_forms` gives for German, in this order."""


def onset(language: str, word: str) -> str:
    """Which articles a word takes by its first letters: "" (ordinary), ".v" (vowel) or ".z" (Italian `lo`)."""
    first = word[0]
    if first in VOWELS and first not in "yY":
        return "" if language == "en" and word.startswith(("uni", "use", "one", "eu")) else ".v"
    if language == "fr" and first in "hH":
        return ".v"
    if language == "it" and (
        first in "zZxXyY" or word[:2].lower() in ("gn", "ps", "pn") or (first in "sS" and word[1:2] not in VOWELS)
    ):
        return ".z"
    return ""


def adjective_forms(language: str, word: str) -> tuple[str, ...]:
    """The forms of an adjective.

    German: with the endings e, en, er, es. French, Spanish, Italian, Portuguese: masculine, feminine, and their
    plurals. English and Dutch: the word alone.
    """
    if language == "de":
        stem = word[:-2] + "l" if word.endswith("el") else word
        stem = stem[:-2] + "r" if stem.endswith(("uer", "eier")) else stem
        return tuple(stem + ending for ending in GERMAN_FORMS)
    if language in ("en", "nl"):
        return (word,)
    other = feminine(language, word)
    return word, other, plural(language, word), plural(language, other)


def feminine(language: str, word: str) -> str:
    """The feminine of a masculine adjective."""
    if language == "fr":
        return french_feminine(word)
    if word.endswith("o"):
        return word[:-1] + "a"
    if word.endswith(("és", "ês", "ol", "or")) and language != "it":
        if word in ("español", "protector"):
            return word + "a"
        if word.endswith(("és", "ês")):
            return word[:-2] + "esa"
    if language == "pt":
        return {"europeu": "europeia", "comum": "comum"}.get(word, word)
    return word


def french_feminine(word: str) -> str:
    """The feminine of a French adjective."""
    special = {"nouveau": "nouvelle", "blanc": "blanche", "sec": "sèche", "long": "longue", "public": "publique"}
    if word in special:
        return special[word]
    for ending, changed in (
        ("e", "e"), ("el", "elle"), ("il", "ille"), ("ien", "ienne"), ("éen", "éenne"), ("er", "ère"), ("eux", "euse"),
        ("if", "ive"), ("et", "ète"), ("s", "se"),
    ):  # fmt: skip
        if word.endswith(ending):
            return word[: -len(ending)] + changed
    return word + "e"


def plural(language: str, word: str) -> str:
    """The plural of a noun or adjective of French, Spanish, Italian or Portuguese."""
    if language == "fr":
        if word.endswith(("s", "x", "z")):
            return word
        if word.endswith("eau"):
            return word + "x"
        return word[:-1] + "ux" if word.endswith("al") else word + "s"
    if language == "it":
        return italian_plural(word)
    if language == "pt":
        if word.endswith("ção") or word.endswith(("são", "xão")):
            return word[:-2] + "ões"
        if word.endswith("m"):
            return word[:-1] + "ns"
        if word.endswith(("al", "el", "ol", "ul")):
            accented = {"e": "é", "o": "ó"}.get(word[-2], word[-2])
            return word[:-2] + accented + "is"
        if word.endswith("il"):
            return word[:-2] + "eis" if word.endswith(("ível", "ácil")) else word[:-1] + "s"
        if word.endswith("ês"):
            return word[:-2] + "eses"
        return word + "s" if word[-1] in VOWELS or word.endswith("ã") or word.endswith("ão") else word + "es"
    if word.endswith("z"):
        return word[:-1] + "ces"
    if word.endswith(("ión", "ón")):
        return word[:-2] + "ones"
    if word.endswith("s") and word[-2] not in "éáó":
        return word
    if word.endswith(("és", "ín", "án")):
        return word[:-2] + {"é": "e", "í": "i", "á": "a"}[word[-2]] + word[-1] + "es"
    return word + "s" if word[-1] in VOWELS else word + "es"


def italian_plural(word: str) -> str:
    """The plural of an Italian noun or adjective."""
    if word[-1] in "àèìòùi" or word[-1] not in "aeo":
        return word
    if word.endswith("io"):
        return word[:-1]
    if word.endswith(("ca", "ga")):
        return word[:-1] + "he"
    if word.endswith(("cia", "gia")):
        return word[:-2] + "e"
    if word.endswith(("co", "go")):
        return word[:-1] + ("i" if word.endswith("ico") else "hi")
    return word[:-1] + ("e" if word.endswith("a") else "i")
