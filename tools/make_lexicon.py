"""Make the word files `listed_*.txt` of the page generator from other people's free lists.

Needs, unpacked or installed beside the project (none is needed to use the files): the PyPI packages `faker` (MIT) and
`bip-utils` (MIT; it carries the BIP-39 and Monero word lists), and for English the Debian packages `scowl` and
`wordnet-base`, unpacked with `dpkg -x`:

    python tools/make_lexicon.py --wheels DIR --debian DIR

where DIR of --wheels holds `faker/` and `bip_utils/`, and DIR of --debian holds `usr/share/dict/scowl`.
"""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path
from unicodedata import normalize
from zlib import crc32

OUT = Path(__file__).parents[1] / "ocria_compress" / "pages" / "synth" / "lexicon" / "data"
HEADER = "# Made by tools/make_lexicon.py; sources and licences: ../README.md.\n"
LOCALES = {"en": ("en_GB", "en_US"), "de": ("de_DE",), "fr": ("fr_FR",), "es": ("es_ES",), "it": ("it_IT",),
           "nl": ("nl_NL",), "pt": ("pt_PT", "pt_BR")}  # fmt: skip
NAMES = 700
CITIES = 400
LISTS = {
    "de": ("monero/mnemonic_legacy/wordlist/german.txt",),
    "nl": ("monero/mnemonic_legacy/wordlist/dutch.txt",),
    "fr": ("bip/bip39/wordlist/french.txt", "monero/mnemonic_legacy/wordlist/french.txt"),
    "es": ("bip/bip39/wordlist/spanish.txt", "monero/mnemonic_legacy/wordlist/spanish.txt"),
    "it": ("bip/bip39/wordlist/italian.txt", "monero/mnemonic_legacy/wordlist/italian.txt"),
    # Monero's Portuguese list has lost its accents, so its words would be misspelt.
    "pt": ("bip/bip39/wordlist/portuguese.txt",),
}
INFINITIVES = {"fr": ("er", "ir", "oir", "dre", "tre"), "es": ("ar", "er", "ir"), "it": ("are", "ere", "ire"),
               "pt": ("ar", "er", "ir")}  # fmt: skip
ADJECTIVES = {
    "de": "ig lich isch sam bar los haft voll ant ent iv al ell är ös", "nl": "ig lijk isch baar loos zaam",
    "fr": "eux if ique able ible al el ois ien ant", "es": "oso ivo able ible ico ado ido",
    "it": "oso ivo abile ibile ico ato uto",
    "pt": "oso ivo ável ível ico ado ido",
}  # fmt: skip
FEMININE = {
    "de": "ung heit keit schaft ion tät ik ur e", "fr": "ion té ance ence ure ette esse ade ie ée elle ine ise ude",
    "es": "a ión dad tud umbre ez", "it": "a ione tà tù ice", "pt": "a ção dade gem tude são",
}  # fmt: skip
NEUTER = {"de": ("chen", "lein", "um", "ment", "nis", "tel"), "nl": ("je", "um", "isme", "sel", "schap", "ment")}
ADVERBS = {
    "fr": ("amment", "emment", "lement", "vement", "usement"),
    "es": ("mente",),
    "it": ("mente",),
    "pt": ("mente",),
}


def constants(path: Path) -> dict[str, list[str]]:
    """The tables of strings of a Faker provider module, by name; read, not run."""
    found: dict[str, list[str]] = {}
    if not path.exists():
        return found
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if not isinstance(target, ast.Name) or node.value is None:  # type: ignore[attr-defined]
            continue
        texts = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # type: ignore[attr-defined]
        found.setdefault(target.id, []).extend(texts)
    return found


def left_out(key: str) -> list[str]:
    """The words under a key of `data/left_out.txt`."""
    lines = (OUT / "left_out.txt").read_text(encoding="utf-8").splitlines()
    return [word for line in lines if line.startswith(key + ": ") for word in line.split(": ")[1].split(" ")]


def thinned(words: list[str], most: int) -> list[str]:
    """At most `most` different words, chosen by hash, in alphabetical order."""
    unique = sorted(set(words), key=lambda w: crc32(w.encode()))
    return sorted(unique[:most])


def printable(word: str) -> bool:
    """Whether a name can be used: letters, spaces, hyphens and apostrophes; each word more than a letter."""
    return (
        bool(re.fullmatch(r"[^\W\d_]+(?:[ '-][^\W\d_]+){0,2}", word))
        and len(word) > 2
        and not word.endswith(" II")
        and max(map(ord, word)) < 0x180
    )


def names(wheels: Path, language: str) -> dict[str, list[str]]:
    """First names, surnames and towns of a language."""
    first: list[str] = []
    last: list[str] = []
    cities: list[str] = []
    for locale in LOCALES[language]:
        people = constants(wheels / "faker/providers/person" / locale / "__init__.py")
        places = constants(wheels / "faker/providers/address" / locale / "__init__.py")
        for key, words in people.items():
            if key.startswith("first_names") and "format" not in key:
                first += words
            elif key.startswith("last_names") and "format" not in key:
                last += words
        for key in ("cities", "concelhos", "cap_city_province"):
            cities += places.get(key, [])
    return {
        "first": thinned([w for w in first if printable(w) and w[0].isupper()], NAMES),
        "surnames": thinned([w for w in last if printable(w) and w[0].isupper()], NAMES),
        "cities": thinned([w for w in cities if printable(w) and w[0].isupper() and not w.isupper()], CITIES),
    }


def dutch_adjective(word: str) -> str:
    """The form with -e of a Dutch adjective."""
    for ending, changed in (("loos", "loze"), ("baar", "bare"), ("zaam", "zame")):
        if word.endswith(ending):
            return word[: -len(ending)] + changed
    return word + "e"


def classified(wheels: Path, language: str) -> dict[str, list[str]]:
    """The words of a language's lists by kind, told by their endings."""
    words: set[str] = set()
    for name in LISTS[language]:
        text = (wheels / "bip_utils" / name).read_text(encoding="utf-8")
        words.update(normalize("NFC", line.strip()) for line in text.splitlines() if not line.startswith("#"))
    if language == "it":  # the only one of Faker's lists whose own source has a licence (MIT)
        lorem = constants(wheels / "faker/providers/lorem/it_IT/__init__.py")["word_list"]
        words.update(w for w in lorem if printable(w) and " " not in w and "'" not in w)
        words -= set(left_out("function.it"))
    unfit = set(left_out("unfit"))
    people = {name.lower() for kind in names(wheels, language).values() for name in kind}
    words = {w for w in words if w.lower() not in unfit and (language == "de" or w not in people)}
    kinds: dict[str, list[str]] = {}
    for word in sorted(words):
        if len(word) > 2:
            kind = kind_of(language, word)
            if kind:
                kinds.setdefault(kind, []).append(
                    dutch_adjective(word) if (language, kind) == ("nl", "adjectives") else word
                )
    return kinds


def kind_of(language: str, word: str) -> str | None:
    """The key under which a word is listed, or None."""
    if word.endswith(ADVERBS.get(language, ())) and len(word) > 7:
        return "adverbs"
    if language in INFINITIVES and word.endswith(INFINITIVES[language]) and len(word) > 4:
        return "infinitives"
    nouns_capital = language == "de"
    if (not nouns_capital or word.islower()) and word.endswith(tuple(ADJECTIVES[language].split())) and len(word) > 4:
        return "adjectives"
    if nouns_capital and word.islower():
        return "infinitives" if word.endswith("en") else None
    if language == "nl":
        if word.endswith("en") and len(word) > 5:
            return "infinitives"
        return "nouns.n" if word.endswith(NEUTER["nl"]) or crc32(word.encode()) % 4 == 0 else "nouns.f"
    if (language == "it" and word[-1] in "ir") or (language != "de" and len(word) < 4):
        return None
    if word.endswith(tuple(FEMININE[language].split())):
        return "nouns.f"
    if language == "de":
        if word.endswith(NEUTER["de"]):
            return "nouns.n"
        return "nouns.n" if crc32(word.encode()) % 3 == 0 and not word.endswith("er") else "nouns.m"
    return "nouns.m"


def wordnet_kinds(debian: Path) -> dict[str, dict[str, int]]:
    """For each word of WordNet, how many tagged senses it has as noun, verb, adj and adv."""
    kinds: dict[str, dict[str, int]] = {}
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (debian / "usr/share/wordnet" / f"index.{kind}").read_text(encoding="utf-8").splitlines():
            if not line.startswith(" "):
                fields = line.split()
                pointers = int(fields[3])
                kinds.setdefault(fields[0], {})[kind] = int(fields[5 + pointers]) + 1
    return kinds


def english(debian: Path) -> dict[str, list[str]]:
    """English words by kind: SCOWL's sizes 10 and 20 and a third of size 35, told apart with WordNet."""
    folder = debian / "usr/share/dict/scowl"
    words: dict[str, int] = {}
    for size in (10, 20, 35):
        for name in (f"english-words.{size}", f"british-words.{size}"):
            for word in (folder / name).read_text(encoding="latin-1").split():
                if re.fullmatch("[a-z]{3,14}", word) and (size < 35 or crc32(word.encode()) % 9 == 1):
                    words.setdefault(word, size)
    senses = wordnet_kinds(debian)
    unfit = set(left_out("unfit"))
    kinds: dict[str, list[str]] = {}
    for word in sorted(words):
        kind = english_kind(word, senses)
        if kind and word not in unfit:
            kinds.setdefault(kind, []).append(word)
    return kinds


def english_kind(word: str, senses: dict[str, dict[str, int]]) -> str | None:
    """The key under which an English word is listed, or None."""
    own = senses.get(word)
    if word.endswith(("ed", "ing")) and (not own or max(own.values()) < 3):
        return "participles"
    if own:
        best = max(own, key=lambda kind: own[kind])
        return {"noun": "nouns.s", "verb": "infinitives", "adj": "adjectives", "adv": "adverbs"}[best]
    for ending, stem in (("ies", "y"), ("es", ""), ("es", "e"), ("s", "")):
        base = senses.get(word[: -len(ending)] + stem) if word.endswith(ending) else None
        if base:
            return "nouns.p" if base.get("noun", 0) >= base.get("verb", 0) else "verbs.s"
    if word.endswith(("ed", "ing")):
        return "participles"
    return None


def write(language: str, kinds: dict[str, list[str]]) -> None:
    """One `listed_*.txt`; long keys are spread over several lines."""
    lines = []
    for key, words in kinds.items():
        for start in range(0, len(words), 200):
            lines.append(f"{key}: " + " ".join(w.replace(" ", "_") for w in words[start : start + 200]))
    (OUT / f"listed_{language}.txt").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(language, {key: len(words) for key, words in kinds.items()})


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--debian", type=Path, required=True)
    given = parser.parse_args()
    for language in LOCALES:
        kinds = english(given.debian) if language == "en" else classified(given.wheels, language)
        write(language, {**kinds, **names(given.wheels, language)})


if __name__ == "__main__":
    main()
