"""The lexicon: same seed, same text; only printable plain characters; held-out words only in the benchmark."""

from __future__ import annotations

import re
from random import Random

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth.fonts import CHARACTERS
from ocria_compress.pages.synth.lexicon import LANGUAGES, PHRASES, AmountStyle, Language, Lexicon
from ocria_compress.pages.synth.lexicon.numbers import DATE_STYLES
from ocria_compress.pages.synth.lexicon.vocabulary import vocabulary, words_of
from ocria_compress.pages.synth.splits import SPLITS, Split

ACTIVE = set("*_`<>#|$[]\\~^")
"""Characters with a meaning in Markdown, which no text may have."""

KINDS = (
    "word", "noun", "noun_phrase", "title", "sentence", "pseudo_word", "name", "company", "street", "city_line",
    "city", "country", "email", "phone", "url", "date", "time", "amount", "number", "integer", "percent",
    "quantity", "unit", "part_number", "reference_number", "iban", "tax_id", "weekday", "month", "label",
    "heading", "paragraph", "postal_code", "first_name", "surname",
)  # fmt: skip

GERMAN_LEXICON = Lexicon("de", "train")


def drawn(language: Language, split: Split, times: int, seed: int = 7) -> list[str]:
    """Some texts of every kind; sentences and noun phrases more often."""
    lexicon, rng = Lexicon(language, split), Random(seed)
    texts = [getattr(lexicon, kind)(rng) for kind in KINDS for _ in range(times)]
    return texts + [lexicon.sentence(rng) for _ in range(10 * times)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_same_seed_same_text(language: Language) -> None:
    assert drawn(language, "train", 3) == drawn(language, "train", 3)
    assert drawn(language, "train", 3) != drawn(language, "train", 3, seed=8)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("split", ("train", "benchmark"))
def test_texts_are_printable_plain_and_tidy(language: Language, split: Split) -> None:
    for text in drawn(language, split, 60):
        assert set(text) <= CHARACTERS, text
        assert not set(text) & ACTIVE, text
        assert text and text == text.strip() and "  " not in text, text
        assert not re.match(r"[-+] |\d+[.)] ", text), text
        assert ".." not in text, text


@pytest.mark.parametrize("language", LANGUAGES)
def test_capitals_are_printable_and_keep_the_length(language: Language) -> None:
    lexicon = Lexicon(language, "benchmark")
    for text in drawn(language, "benchmark", 10):
        capitals = lexicon.caps(text)
        assert set(capitals) <= CHARACTERS and len(capitals) == len(text)


def test_capitals_keep_the_sharp_s() -> None:
    assert GERMAN_LEXICON.caps("Straße über") == "STRAßE ÜBER"


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_words_are_only_in_the_benchmark(language: Language) -> None:
    held_out = vocabulary(language).held_out
    for split in SPLITS:
        words = list(words_of(drawn(language, split, 100 if split != "benchmark" else 10, seed=len(split))))
        if split == "benchmark":
            assert held_out & set(words)
        else:
            assert len(words) > 20_000
            assert not held_out & set(words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_about_a_third_of_the_benchmarks_content_words_are_held_out(language: Language) -> None:
    words = vocabulary(language)
    content = {word for pool in words.pools.values() for part in pool for word in words_of(part)}
    content -= set(words_of(text for texts in words.fixed.values() for text in texts))
    lexicon, rng = Lexicon(language, "benchmark"), Random(3)
    seen = [w for _ in range(1500) for w in words_of((lexicon.sentence(rng),)) if w in content and len(w) > 3]
    share = sum(map(lexicon.is_held_out, seen)) / len(seen)
    assert 0.25 < share < 0.42


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_fifth_of_the_words_is_held_out(language: Language) -> None:
    common, held = (sum(len(set(pool[part])) for pool in vocabulary(language).pools.values()) for part in (0, 1))
    assert 0.15 < held / (common + held) < 0.28


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_phrase_is_there_and_fits(language: Language) -> None:
    lexicon = Lexicon(language, "train")
    assert len(PHRASES) == len(set(PHRASES)) >= 120
    for key in PHRASES:
        text = lexicon.phrase(key)
        assert (
            text and text == text.strip() and set(text.format(n=1, m=2, name="x", date="x", currency="x")) <= CHARACTERS
        )
        assert not set(text) & ACTIVE


def test_every_date_style_can_be_asked_for() -> None:
    for language, styles in DATE_STYLES.items():
        lexicon = Lexicon(language, "train")  # type: ignore[arg-type]
        assert all(lexicon.date(Random(1), style) for style in styles)


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (AmountStyle("€", False, " ", ".", ","), "1.234,50 €"),
        (AmountStyle("£", True, "", ",", "."), "£1,234.50"),
        (AmountStyle("CHF", True, " ", "'", "."), "CHF 1'234.50"),
        (AmountStyle("", False, "", " ", ","), "1 234,50"),
    ],
)
def test_amounts_are_written_in_a_style(style: AmountStyle, text: str) -> None:
    assert GERMAN_LEXICON.format_amount(123450, style) == text
    assert GERMAN_LEXICON.amount_style(Random(1), currency="").currency == ""


def test_sentences_keep_to_their_length() -> None:
    rng = Random(5)
    lengths = [GERMAN_LEXICON.sentence(rng, 5, 16).count(" ") + 1 for _ in range(400)]
    assert 9 < sum(lengths) / len(lengths) < 13 and max(lengths) <= 26 and min(lengths) >= 4


def test_unknown_names_are_refused() -> None:
    with pytest.raises(OcriaError, match="language"):
        Lexicon("xx", "train")  # type: ignore[arg-type]
    with pytest.raises(OcriaError, match="split"):
        Lexicon("en", "test")  # type: ignore[arg-type]
    with pytest.raises(OcriaError, match="phrase"):
        GERMAN_LEXICON.phrase("invoise")
