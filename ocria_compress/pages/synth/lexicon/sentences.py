"""Phrases, sentences and headings by simple grammar, and `Lexicon`, which has all that can be drawn."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import NamedTuple

from ocria_compress.pages.synth.lexicon.contacts import Contacts
from ocria_compress.pages.synth.lexicon.drawing import PSEUDO_SHARE
from ocria_compress.pages.synth.lexicon.forms import onset

GENDERS = {
    "en": (("s", 0.62), ("p", 0.38)),
    "de": (("m", 0.27), ("f", 0.32), ("n", 0.21), ("p", 0.2)),
    "nl": (("f", 0.5), ("n", 0.28), ("p", 0.22)),
}
ROMANCE_GENDERS = (("m", 0.36), ("f", 0.36), ("mp", 0.14), ("fp", 0.14))
ADJECTIVE_BEHIND = ("fr", "es", "it", "pt")
QUOTES = {
    "en": ("“”", "“”", "‘’", '""'), "de": ("„“", "„“", "»«", '""'), "fr": ("«  »", "«  »", "“”"),
    "es": ("«»", "“”", '""'), "it": ("«»", "“”", '""'), "nl": ("“”", "‘’", "„”", '""'), "pt": ("«»", "“”", '""'),
}  # fmt: skip
SMALL_IN_TITLES = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "per", "the", "to", "with")
)


class Cases(NamedTuple):
    """What a noun phrase is used as: where its article comes from and how German declines it."""

    article: str
    accusative: bool = False


SUBJECT, OBJECT, PREPOSITIONAL = Cases("det"), Cases("det", accusative=True), Cases("pp")


@cache
def genders(language: str) -> tuple[str, ...]:
    """The genders of nouns, each as often as it is drawn of 50."""
    return tuple(name for name, share in GENDERS.get(language, ROMANCE_GENDERS) for _ in range(round(share * 50)))


class Lexicon(Contacts):
    """Everything that can be drawn for a page in one language and split.

    Building one reads the language's word files the first time (about 0.1 s), later ones share them. All methods take
    the `rng` first. In the benchmark about a third of the content words are held-out words; in all other splits
    none is, and about 8 % are made-up words.
    """

    # --- words ---

    def noun(self, rng: Random, gender: str | None = None) -> str:
        """A noun; `gender` is a key of the language's word files ("m", "f", "n", "s", plural "p", "mp", "fp")."""
        names = genders(self.language)
        gender = gender or names[int(rng.random() * len(names))]
        if not self.benchmark and rng.random() < PSEUDO_SHARE:
            word = self.pseudo_word(rng)
            return word.capitalize() if self.language == "de" else word
        roll = rng.random()
        if roll < 0.1 and "compound.first" in self.vocabulary.fixed:
            return self.compound(rng, gender)
        word = self.draw_word(rng, "nouns." + gender)
        if roll > 0.98 and self.language in ("en", "de", "nl", "fr"):
            return f"{word}-{self.draw_word(rng, 'nouns.' + gender)}"
        return word

    def compound(self, rng: Random, gender: str) -> str:
        """A German or Dutch compound such as Rechnungsnummer."""
        head = self.pick(rng, "compound." + gender)
        word = self.pick(rng, "compound.first") + head
        if not self.benchmark and self.is_held_out(word):
            return head.capitalize() if self.language == "de" else head
        return word

    def adjective(self, rng: Random, gender: str, ending: str = "en") -> str:
        """An adjective in the form for a gender; `ending` is one of `forms.GERMAN_FORMS` and for German only."""
        participle = "participles" in self.vocabulary.pools and rng.random() < 0.2
        forms = self.draw(rng, "participles" if participle else "adjectives")
        if len(forms) == 1:
            return forms[0]
        if self.language == "de":
            return forms[("e", "en", "er", "es").index(ending)]
        return forms[("m", "f", "mp", "fp").index(gender)]

    def word(self, rng: Random) -> str:
        """A single content word, mostly a noun."""
        roll = rng.random()
        if roll < 0.6:
            return self.noun(rng)
        if roll < 0.8:
            return self.adjective(rng, "m")
        return self.draw_word(rng, "infinitives")

    # --- phrases ---

    def with_article(self, rng: Random, case: Cases) -> tuple[str, str]:
        """A noun phrase with article or preposition, and its gender; 2 or 3 words."""
        names = genders(self.language)
        gender = names[int(rng.random() * len(names))]
        noun = self.noun(rng, gender)
        adjective = ""
        if rng.random() < 0.38:
            accusative = case.accusative and gender == "m"
            weak = "en" if case.article == "pp" or gender == "p" or accusative else "e"
            adjective = self.adjective(rng, gender, weak)
        behind = self.language in ADJECTIVE_BEHIND
        first = adjective if adjective and not behind else noun
        article = self.article(rng, case, gender, onset(self.language, first))
        text = noun if not adjective else f"{noun} {adjective}" if behind else f"{adjective} {noun}"
        return article + ("" if article.endswith("'") else " ") + text, gender

    def article(self, rng: Random, case: Cases, gender: str, variant: str) -> str:
        """An article (or a preposition with one) for a noun of a gender that begins in a certain way."""
        fixed = self.vocabulary.fixed
        key = f"{case.article}.{gender}"
        if key not in fixed:
            key = f"{case.article}.p"
        if variant and key + variant in fixed:
            key += variant
        elif case.accusative and key + ".a" in fixed:
            key += ".a"
        words = fixed[key]
        return words[int(rng.random() * len(words))]

    def noun_phrase(self, rng: Random, least: int = 1, most: int = 3) -> str:
        """About `least` to `most` words without an article, as in table cells and list items."""
        count = rng.randint(least, most)
        names = genders(self.language)
        gender = names[int(rng.random() * len(names))]
        text = self.noun(rng, gender)
        if count == 1:
            return text
        words = 1
        while words < count:
            left = count - words
            roll = rng.random()
            if left >= 3 and roll < 0.6:
                text += " " + self.with_article(rng, PREPOSITIONAL)[0]
                words += 3
            elif left == 2 and roll < 0.4:
                text += f" {self.pick(rng, 'coordinators')} {self.noun(rng)}"
                words += 2
            else:
                strong = {"m": "er", "f": "e", "n": "es"}.get(gender, "e")
                adjective = self.adjective(rng, gender, strong)
                text = f"{text} {adjective}" if self.language in ADJECTIVE_BEHIND else f"{adjective} {text}"
                words += 1
        return text

    def title(self, rng: Random, least: int = 2, most: int = 6) -> str:
        """A title without a full stop: title case in English (mostly), a sentence's case elsewhere."""
        text = self.noun_phrase(rng, least, most)
        if self.language == "en" and rng.random() < 0.7:
            words = text.split(" ")
            text = " ".join(w if w in SMALL_IN_TITLES else w[0].upper() + w[1:] for w in words)
        return text[0].upper() + text[1:]

    def heading(self, rng: Random) -> str:
        """A heading: one of the language's usual ones, or a title."""
        from ocria_compress.pages.synth.lexicon.phrases import HEADINGS

        if rng.random() < 0.3:
            return self.phrase(rng.choice(HEADINGS))
        return self.title(rng, 1, 5)

    def label(self, rng: Random) -> str:
        """A label of a form, such as "Invoice no." (without a colon)."""
        from ocria_compress.pages.synth.lexicon.phrases import LABELS

        return self.phrase(rng.choice(LABELS))

    def phrase(self, key: str) -> str:
        """A fixed text of the language; `key` is one of `PHRASES`.

        Raises:
            OcriaError: the key is unknown.
        """
        from ocria_compress.pages.synth.lexicon.phrases import phrase

        return phrase(self.language, key)

    # --- sentences ---

    def sentence(self, rng: Random, least: int = 5, most: int = 16) -> str:
        """A sentence of about `least` to `most` words, with a capital and a full stop (rarely ? or !)."""
        target = rng.randint(least, most)
        if target < 4:
            text = self.noun_phrase(rng, target, target)
        else:
            text = self.clause(rng, opener=target >= 8 and rng.random() < 0.3)
            missing = target - text.count(" ") - 1
            while missing > 1 or (missing == 1 and rng.random() < 0.5):
                more = self.extension(rng, missing, text)
                text += more
                missing -= more.count(" ")
        if "'" in text and rng.random() < 0.4:
            text = text.replace("'", "’")
        return self.punctuated(text, rng.random())

    def punctuated(self, text: str, roll: float) -> str:
        """`text` with a capital and what ends a sentence."""
        text = text[0].upper() + text[1:]
        if roll < 0.95 or text.endswith("."):
            return text if text.endswith(".") else text + "."
        end = "?" if roll < 0.98 else "!"
        if self.language == "es":
            return ("¿" if end == "?" else "¡") + text + end
        return text + end

    def clause(self, rng: Random, opener: bool = False) -> str:
        """Subject, verb and object; German and Dutch put the verb before the subject behind an opener."""
        subject, gender = self.with_article(rng, SUBJECT)
        number = ".p" if gender.endswith("p") else ""
        roll = rng.random()
        germanic = self.language in ("de", "nl")
        verb, rest = "", ""
        if roll < 0.55:
            verb = self.draw_word(rng, "verbs" + (number or ".s"))
            rest = self.with_article(rng, OBJECT)[0] if rng.random() < 0.8 else self.draw_word(rng, "adverbs")
        elif roll < 0.83:
            verb = self.pick(rng, "modals" + number)
            infinitive = self.draw_word(rng, "infinitives")
            thing = self.with_article(rng, OBJECT)[0]
            rest = f"{thing} {infinitive}" if germanic else f"{infinitive} {thing}"
        else:
            verb = self.pick(rng, "copula" + number)
            rest = self.predicate(rng, gender)
        if not opener:
            return f"{subject} {verb} {rest}"
        start = self.pick(rng, "openers")
        if germanic:
            return f"{start} {verb} {subject} {rest}"
        return f"{start}, {subject} {verb} {rest}"

    def predicate(self, rng: Random, gender: str) -> str:
        """What follows "is": an adjective, or a place or time."""
        if rng.random() < 0.6 and self.language not in ("de", "nl"):
            return self.adjective(rng, gender if gender != "p" else "mp")
        if rng.random() < 0.5:
            return self.fact(rng)
        return self.with_article(rng, PREPOSITIONAL)[0]

    def extension(self, rng: Random, missing: int, text: str) -> str:
        """Something to append to a clause `text` that still lacks `missing` words, with what parts them."""
        roll = rng.random()
        if missing >= 6 and roll < 0.45:
            if roll < 0.36:
                return f"{', ' if roll < 0.3 else ' '}{self.pick(rng, 'conjunctions')} {self.clause(rng)}"
            joint = "; " if roll < 0.4 else ": " if roll < 0.42 else " – "
            return joint + self.clause(rng)
        if missing == 1 or (roll < 0.22 and missing < 6):
            return " " + self.draw_word(rng, "adverbs")
        if roll < 0.3 and not text.endswith(")"):
            return f" {self.aside(rng)}"
        if roll < 0.76:
            return " " + self.with_article(rng, PREPOSITIONAL)[0]
        if roll < 0.9:
            return " " + self.fact(rng)
        if roll < 0.95:
            return f" {self.pick(rng, 'coordinators')} {self.with_article(rng, OBJECT)[0]}"
        if roll < 0.975:
            return f", {self.noun_phrase(rng, 1, 2)}, {self.noun_phrase(rng, 1, 2)}"
        return " " + self.quoted(rng, self.noun_phrase(rng, 1, 2))

    def quoted(self, rng: Random, text: str) -> str:
        """`text` in quotation marks of the language."""
        marks = rng.choice(QUOTES[self.language])
        half = len(marks) // 2
        return marks[:half] + text + marks[half:]

    def fact(self, rng: Random) -> str:
        """A short addition with a number, date, name or code."""
        return self.filled(rng, self.pick(rng, "facts"))

    def aside(self, rng: Random) -> str:
        """A short addition in parentheses."""
        return self.filled(rng, self.pick(rng, "asides"))

    def filled(self, rng: Random, pattern: str) -> str:
        """A pattern of the word files with its `{slots}` filled."""
        start = pattern.find("{")
        while start >= 0:
            end = pattern.index("}", start)
            value = self.slot(rng, pattern[start + 1 : end])
            pattern = pattern[:start] + value + pattern[end + 1 :]
            start = pattern.find("{", start + len(value))
        return pattern

    def slot(self, rng: Random, name: str) -> str:
        """What stands for a `{slot}` of a pattern."""
        if name in ("n", "m"):
            return str(1 + int(rng.random() ** 2 * 60))
        if name in ("year", "year2"):
            return str(1950 + int(rng.random() * 50) + (35 if name == "year2" else 0))
        if name == "integer":
            return str(2 + int(rng.random() ** 2 * 120))
        if name == "ref":
            return self.reference_number(rng)
        if name == "part":
            return self.part_number(rng)
        if name == "date" and self.language == "de" and rng.random() < 0.4:
            return f"{rng.randint(1, 31)}. {self.pick(rng, 'months')} {rng.randint(1985, 2031)}"
        value: str = getattr(self, name)(rng)
        return value

    def paragraph(self, rng: Random, words: int = 50) -> str:
        """Sentences of together about `words` words."""
        parts = []
        while words > 0:
            parts.append(self.sentence(rng, min(5, words), max(5, min(18, words))))
            words -= parts[-1].count(" ") + 1
        return " ".join(parts)

    def caps(self, text: str) -> str:
        """`text` in capitals; letters without a capital of their own (ß, and µ, the sign) stay as they are."""
        return "".join(c.upper() if len(c.upper()) == 1 and c != "µ" else c for c in text)
