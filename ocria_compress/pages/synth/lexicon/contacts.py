"""Names, companies, addresses, e-mail addresses and web addresses: random combinations, nobody's in particular."""

from __future__ import annotations

from random import Random
from unicodedata import normalize

from ocria_compress.pages.synth.lexicon.numbers import ASCII, DOMAINS, LETTERS, Numbers

MAILBOXES = ("info", "office", "mail", "service", "sales", "post", "team", "shop")


def plain(text: str) -> str:
    """`text` in ASCII small letters and digits, as in a web address."""
    text = normalize("NFD", text.lower().translate(ASCII))
    return "".join(c for c in text if c.isascii() and c.isalnum())


class Contacts(Numbers):
    """The drawing of names and addresses; a part of `Lexicon`."""

    def first_name(self, rng: Random) -> str:
        """A first name."""
        return self.draw_word(rng, "first")

    def surname(self, rng: Random) -> str:
        """A surname, sometimes made up."""
        if not self.benchmark and rng.random() < 0.1:
            return self.pseudo_word(rng).capitalize()
        return self.draw_word(rng, "surnames")

    def name(self, rng: Random) -> str:
        """A person's name, sometimes with a title, initials or a double surname."""
        first, last = self.first_name(rng), self.surname(rng)
        roll = rng.random()
        if roll < 0.12:
            return f"{self.pick(rng, 'titles')} {first} {last}"
        if roll < 0.2:
            return f"{first[0]}. {last}"
        if roll < 0.26:
            return f"{first} {LETTERS[int(rng.random() * 23)]}. {last}"
        if roll < 0.32:
            return f"{first} {last}-{self.surname(rng)}"
        if roll < 0.42 and self.language in ("es", "pt"):
            return f"{first} {last} {self.surname(rng)}"
        return f"{first} {last}"

    def company(self, rng: Random) -> str:
        """A company with its legal form."""
        form = self.pick(rng, "company")
        roll = rng.random()
        name = self.surname(rng)
        if roll < 0.25:
            name = f"{name} {self.pick(rng, 'trades')}"
        elif roll < 0.4:
            name = f"{self.surname(rng)} & {name}"
        elif roll < 0.6:
            name = f"{self.pseudo_word(rng).capitalize()} {self.pick(rng, 'trades')}"
        elif roll < 0.7:
            name = f"{self.fill(rng, rng.choice(('@@@', '@@', '@&@', '@@@@')))} {self.pick(rng, 'trades')}"
        return f"{name} {form}"

    def street(self, rng: Random) -> str:
        """A street with a house number, in the language's order."""
        name = self.street_name(rng)
        number = str(1 + int(160 * rng.random() ** 2))
        if rng.random() < 0.1:
            number += rng.choice("abcd") if rng.random() < 0.6 else f"-{int(number) + 2}"
        if self.language == "en":
            return f"{number} {name}"
        if self.language == "fr":
            return f"{number}{',' if rng.random() < 0.4 else ''} {name}"
        return f"{name}{', ' if self.language in ('es', 'it', 'pt') and rng.random() < 0.7 else ' '}{number}"

    def street_name(self, rng: Random) -> str:
        """A street without a number."""
        kind, name = self.pick(rng, "street.kinds"), self.pick(rng, "streets")
        if rng.random() < 0.45:
            name = self.surname(rng)
        if self.language in ("de", "nl"):
            if " " in name or (not self.benchmark and self.is_held_out(name + kind)):
                name = self.pick(rng, "streets")
            if not self.is_held_out(name + kind) or self.benchmark:
                return name + kind
            return f"{name}-{kind.capitalize()}"
        if self.language == "en":
            return f"{name} {kind}".replace("{surname}", self.surname(rng))
        return f"{kind} {name}"

    def city(self, rng: Random) -> str:
        """A town."""
        return self.draw_word(rng, "cities")

    def postal_code(self, rng: Random) -> str:
        """A postal code of the language's country."""
        if self.language == "en":
            return self.fill(rng, rng.choice(("@@# #@@", "@## #@@", "@# #@@", "@@## #@@")))
        patterns = {"nl": "#### @@", "pt": "####-###"}
        return str(rng.randint(1, 9)) + self.fill(rng, patterns.get(self.language, "#####")[1:])

    def city_line(self, rng: Random) -> str:
        """Postal code and town, in the language's order."""
        city, code = self.city(rng), self.postal_code(rng)
        return f"{city} {code}" if self.language == "en" else f"{code} {city}"

    def country(self, rng: Random) -> str:
        """A country's name."""
        return self.pick(rng, "countries")

    def weekday(self, rng: Random) -> str:
        """A weekday, as inside a sentence."""
        return self.pick(rng, "weekdays")

    def month(self, rng: Random) -> str:
        """A month, as inside a sentence."""
        return self.pick(rng, "months")

    def domain(self, rng: Random) -> str:
        """A host name without "www."; never one with a held-out word outside the benchmark."""
        while True:
            first = plain(self.surname(rng) if rng.random() < 0.4 else self.pseudo_word(rng))
            if rng.random() < 0.35:
                first += "-" + plain(self.pick(rng, "trades"))
            if first and (self.benchmark or not self.is_held_out(first)):
                return f"{first}.{rng.choice(DOMAINS[self.language])}"

    def email(self, rng: Random) -> str:
        """An e-mail address at a made-up domain."""
        domain = self.domain(rng)
        roll = rng.random()
        if roll < 0.35:
            return f"{rng.choice(MAILBOXES)}@{domain}"
        first, last = plain(self.first_name(rng)), plain(self.surname(rng))
        box = (
            f"{first}.{last}" if roll < 0.7 else f"{first[:1]}.{last}" if roll < 0.9 else f"{last}{rng.randint(1, 99)}"
        )
        if not self.benchmark and self.is_held_out(box):
            box = rng.choice(MAILBOXES)
        return f"{box}@{domain}"

    def url(self, rng: Random) -> str:
        """A web address at a made-up domain."""
        address = rng.choice(("www.", "www.", "https://www.", "https://", "")) + self.domain(rng)
        if rng.random() < 0.35:
            path = plain(self.pseudo_word(rng))
            if self.benchmark or not self.is_held_out(path):
                address += "/" + path + (f"/{rng.randint(1, 999)}" if rng.random() < 0.3 else "")
        return address
