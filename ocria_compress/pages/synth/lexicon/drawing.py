"""Drawing of words: common, held-out and made-up ones."""

from __future__ import annotations

from random import Random
from typing import cast

from ocria_compress.errors import OcriaError, nearest
from ocria_compress.pages.synth.lexicon.forms import VOWELS
from ocria_compress.pages.synth.lexicon.vocabulary import LANGUAGES, Entry, Language, vocabulary
from ocria_compress.pages.synth.splits import SPLITS, Split

HELD_OUT_SHARE = 0.35
"""How often the benchmark draws from the held-out words of a kind: about a third of its content words are such."""

PSEUDO_SHARE = 0.11
"""How often a noun outside the benchmark is a made-up word: about 8 % of the content words."""

ONSETS = {
    "en": "b br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sh sk sl sp st str t th tr v w wh y",
    "de": "b bl br d dr f fl fr g gl gr h j k kl kn kr l m n p pf pl qu r s sch schl schm schw sp st str t tr v w z zw",
    "fr": "b bl br c ch cl cr d dr f fl fr g gl gr h j l m n p pl pr qu r s t tr v",
    "es": "b bl br c ch cl cr d f fl fr g gr gu h j l ll m n p pl pr qu r s t tr v z",
    "it": "b bl br c ch cl cr d f fl fr g gh gl gr l m n p pl pr qu r s sc sp st str t tr v z",
    "nl": "b bl br d dr g gl gr h j k kl kn kr l m n p pl pr r s sch schr sl sn sp st str t tr v vl vr w wr z zw",
    "pt": "b bl br c ch cl cr d f fl fr g gr l lh m n nh p pl pr qu r s t tr v x z",
}
NUCLEI = {
    "en": "a a e e e i i o o u ea ee oo ou ai oi", "de": "a a e e e i i o u ä ö ü ei ie au eu",
    "fr": "a a e i i o u ou ai eu oi é é è ê â î ô au", "es": "a a a e e e i i o o o u ie ue á é í ó ú",
    "it": "a a a e e e i i i o o o u ia io ie", "nl": "a a e e e i o u aa ee oo uu ij ie oe ui eu ei",
    "pt": "a a a e e e i i o o o u ei ou ã ão é á ó ê ç",
}  # fmt: skip
CODAS = {
    "en": "b ck d ft g l ld m n nd ng nk nt p r rd rk rt s sh ss st t th x",
    "de": "b ch ck d f g l lt m n nd ng nk nz r rg rt s ss st t tz ß", "fr": "c f l n nt r rd rt s t x lle nne che que",
    "es": "l n r s d z", "it": "l n r", "nl": "cht d f g k l lk m n nd ng nk p r rt s st t", "pt": "l m r s z",
}  # fmt: skip
ENDINGS = {
    "en": " er ing ed ly s ness able tion", "de": " en er ung heit lich ig el chen",
    "fr": " er ion té eux ique e es ment",
    "es": "o a os as ción dad ar ero ista", "it": "o a i e zione tà are ino ezza", "nl": " en er ing heid lijk je baar",
    "pt": "o a os as ção dade ar eiro inho",
}  # fmt: skip


class Drawing:
    """A language and a split, and the drawing of single words.

    Args:
        language: one of `LANGUAGES`.
        split: one of `SPLITS`.

    Raises:
        OcriaError: the language or the split is unknown.
    """

    def __init__(self, language: Language, split: Split) -> None:
        for what, name, known in (("language", language, LANGUAGES), ("split", split, SPLITS)):
            if name not in known:
                raise OcriaError(f"Unknown {what} of a lexicon", where=str(name), fix=nearest(str(name), list(known)))
        self.language = language
        self.split = split
        self.benchmark = split == "benchmark"
        self.vocabulary = vocabulary(language)
        self.syllables = [table[language].split(" ") for table in (ONSETS, NUCLEI, CODAS, ENDINGS)]

    def is_held_out(self, text: str) -> bool:
        """Whether `text` has a word that only benchmark pages may show."""
        return self.vocabulary.is_held_out(text)

    def pick(self, rng: Random, key: str) -> str:
        """An entry that all splits share: an article, a month, a street name."""
        words = self.vocabulary.fixed[key]
        return words[int(rng.random() * len(words))]

    def draw(self, rng: Random, key: str) -> Entry:
        """A content word of a kind: common, or by chance held out (benchmark only)."""
        common, held = self.vocabulary.pools[key]
        words = held if self.benchmark and held and rng.random() < HELD_OUT_SHARE else common
        return words[int(rng.random() * len(words))]

    def draw_word(self, rng: Random, key: str) -> str:
        """:meth:`draw` for the kinds whose entries are single texts."""
        return cast(str, self.draw(rng, key))

    def pseudo_word(self, rng: Random) -> str:
        """A made-up word of 2 to 4 syllables that looks like the language, in small letters."""
        onsets, nuclei, codas, endings = self.syllables
        random = rng.random
        while True:
            text = "" if random() < 0.15 else onsets[int(random() * len(onsets))]
            for _ in range(1 + (random() < 0.65) + (random() < 0.15)):
                text += nuclei[int(random() * len(nuclei))]
                if random() < 0.3:
                    text += codas[int(random() * len(codas))]
                text += onsets[int(random() * len(onsets))]
            ending = endings[int(random() * len(endings))]
            if not ending or ending[0] not in VOWELS:
                text += nuclei[int(random() * len(nuclei))]
            text += ending or codas[int(random() * len(codas))]
            if len(text) > 3 and not self.vocabulary.is_held_out(text):
                return text
