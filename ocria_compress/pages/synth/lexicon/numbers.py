"""Numbers, money, dates, codes and contact data as they are written in each language."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from ocria_compress.pages.synth.lexicon.drawing import Drawing

LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
SEPARATORS = {"en": (",", "."), "de": (".", ","), "fr": (" ", ","), "es": (".", ","), "it": (".", ","),
              "nl": (".", ","), "pt": (".", ",")}  # fmt: skip
"""Thousands separator and decimal separator."""

CURRENCIES = {"en": ("£", "£", "€", "GBP", "USD", "EUR"), "de": ("€", "€", "€", "EUR", "CHF")}
UNITS = (
    "kg", "g", "mg", "t", "m", "cm", "mm", "km", "m²", "m³", "cm²", "mm²", "l", "ml", "V", "A", "W", "kW", "kWh", "Hz",
    "MHz", "°C", "bar", "Pa", "kPa", "N", "Nm", "MB", "GB", "dB", "km/h", "m/s", "h", "min", "s", "µm", "mA", "kJ",
    "lm", "kg/m³", "mg/l", "%", "‰", "ha", "mol",
)  # fmt: skip
COUNTRY_CODES = {"en": "GB", "de": "DE", "fr": "FR", "es": "ES", "it": "IT", "nl": "NL", "pt": "PT"}
DOMAINS = {
    "en": ("co.uk", "com", "org", "net", "ie"), "de": ("de", "at", "ch", "com"), "fr": ("fr", "be", "ch", "com"),
    "es": ("es", "com", "org"), "it": ("it", "com", "eu"), "nl": ("nl", "be", "com"), "pt": ("pt", "com", "org"),
}  # fmt: skip
PHONES = {
    "en": ("020 #### ####", "0### ### ####", "+44 20 #### ####", "(01###) ######", "+1 ### ### ####", "###-###-####"),
    "de": ("0## #######", "0#### / ##### ##", "+49 ## #######", "0### ######-##", "+41 ## ### ## ##", "(0##) ## ## ##"),
    "fr": ("0# ## ## ## ##", "+33 # ## ## ## ##", "0#.##.##.##.##", "+32 # ### ## ##"),
    "es": ("9## ### ###", "+34 9## ### ###", "9## ## ## ##", "6## ### ###"),
    "it": ("0## #######", "+39 0## #######", "3## ### ####", "0##/######"),
    "nl": ("0##-#######", "+31 ## ### ## ##", "06-########", "0### - ### ###"),
    "pt": ("2## ### ###", "+351 2## ### ###", "9## ### ###", "2# ### ## ##"),
}  # fmt: skip
TAX_IDS = {
    "en": ("GB ### #### ##", "GB#########", "IE#######T"),
    "de": ("DE#########", "DE ### ### ###", "ATU########", "##/###/#####"),
    "fr": ("FR## ### ### ###", "FR###########", "### ### ### #####"),
    "es": ("ESB########", "B-########", "A########"),
    "it": ("IT###########", "###########"),
    "nl": ("NL#########B##", "NL ####.##.###.B##"),
    "pt": ("PT #########", "PT#########", "### ### ###"),
}  # fmt: skip
PARTS = ("@@-####-@", "@@ ####", "@###.##", "##-####/#", "@@@-##", "####-##", "@## @###", "@@##.###-#", "## ## ##-##",
         "@-#### @@", "@@#####", "#.###.##.@", "@@-##/##", "###-@@-###")  # fmt: skip
REFERENCES = ("20##/####", "@@-20##-#####", "########", "@@##/###", "####-####", "20##-##-###", "@ ## ## ###",
              "@@.####.##", "##/##-@@", "@@@##-####")  # fmt: skip
DATE_STYLES: dict[str, tuple[str, ...]] = {
    "en": ("{d} {M} {y}", "{d2}/{m2}/{y}", "{y}-{m2}-{d2}", "{M} {d}, {y}", "{d} {M3} {y}", "{d2}.{m2}.{y}",
           "{W}, {d} {M} {y}", "{m2}/{d2}/{y}", "{d2}-{M3}-{y}"),
    "de": ("{d2}.{m2}.{y}", "{d2}.{m2}.{y}", "{d}.{m}.{y}", "{y}-{m2}-{d2}", "{d2}.{m2}.{y2}", "{M} {y}",
           "{W}, {d}. {M} {y}"),
    "fr": ("{d} {M} {y}", "{d2}/{m2}/{y}", "le {d} {M} {y}", "{d2}.{m2}.{y}", "{y}-{m2}-{d2}", "{W} {d} {M} {y}",
           "{d2}-{m2}-{y2}"),
    "es": ("{d} de {M} de {y}", "{d2}/{m2}/{y}", "{d2}-{m2}-{y}", "{y}-{m2}-{d2}", "{W}, {d} de {M} de {y}",
           "{d2}.{m2}.{y2}"),
    "it": ("{d} {M} {y}", "{d2}/{m2}/{y}", "{d2}.{m2}.{y}", "{y}-{m2}-{d2}", "{W} {d} {M} {y}", "{d2}-{m2}-{y2}"),
    "nl": ("{d} {M} {y}", "{d2}-{m2}-{y}", "{d2}/{m2}/{y}", "{y}-{m2}-{d2}", "{W} {d} {M} {y}", "{d}-{m}-{y}"),
    "pt": ("{d} de {M} de {y}", "{d2}/{m2}/{y}", "{d2}-{m2}-{y}", "{y}-{m2}-{d2}", "{W}, {d} de {M} de {y}",
           "{d2}.{m2}.{y2}"),
}  # fmt: skip
"""`d` day, `m` month, `d2` and `m2` with two digits, `M` and `M3` the month's name, `W` the weekday's."""

ASCII = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l"})


class AmountStyle(NamedTuple):
    """How the amounts of one document are written.

    Attributes:
        currency: a sign or code, or "" for bare numbers.
        before: whether it stands in front of the number.
        gap: what parts it from the number: a space or nothing.
        thousands, decimal: the separators.
    """

    currency: str
    before: bool
    gap: str
    thousands: str
    decimal: str


def grouped(whole: int, separator: str) -> str:
    """An integer with a thousands separator."""
    return f"{whole:,}".replace(",", separator)


class Numbers(Drawing):
    """The drawing of numbers and codes; a part of `Lexicon`."""

    def fill(self, rng: Random, pattern: str) -> str:
        """`pattern` with each `#` a digit and each `@` a capital letter."""
        return "".join(
            str(int(rng.random() * 10)) if c == "#" else LETTERS[int(rng.random() * 23)] if c == "@" else c
            for c in pattern
        )

    def amount_style(self, rng: Random, currency: str | None = None) -> AmountStyle:
        """How to write amounts; with `currency` ("" for none) only the rest is drawn."""
        thousands, decimal = SEPARATORS[self.language]
        sign = rng.choice(CURRENCIES.get(self.language, ("€", "€", "€", "EUR"))) if currency is None else currency
        before = sign in "£¥" or rng.random() < {"en": 0.8, "nl": 0.8}.get(self.language, 0.12)
        gap = "" if before and len(sign) == 1 and self.language == "en" else " "
        if sign == "CHF":
            return AmountStyle(sign, True, " ", "'", ".")
        if thousands != " " and rng.random() < 0.15:
            thousands = ""
        elif self.language in ("es", "pt") and rng.random() < 0.3:
            thousands = " "
        return AmountStyle(sign, before, gap if sign else "", thousands, decimal)

    def format_amount(self, cents: int, style: AmountStyle, currency: bool = True) -> str:
        """`cents` hundredths written in a style, with or without its currency."""
        whole, rest = divmod(abs(cents), 100)
        number = f"{grouped(whole, style.thousands)}{style.decimal}{rest:02d}"
        if cents < 0:
            number = "–" + number
        if not currency or not style.currency:
            return number
        return style.currency + style.gap + number if style.before else number + style.gap + style.currency

    def amount(self, rng: Random, style: AmountStyle | None = None) -> str:
        """An amount of money with its currency, from 0.50 to 1,000,000."""
        cents = int(50 * 10 ** (rng.random() * 6.3))
        if cents > 50000 and rng.random() < 0.4:
            cents -= cents % 1000
        return self.format_amount(cents, style or self.amount_style(rng))

    def format_decimal(self, value: float, decimals: int) -> str:
        """A number with the language's separators."""
        thousands, decimal = SEPARATORS[self.language]
        return f"{value:,.{decimals}f}".replace(",", "\0").replace(".", decimal).replace("\0", thousands)

    def number(self, rng: Random, least: float = 0.1, most: float = 9999.0) -> str:
        """A number with 0 to 3 decimals."""
        value = least * (most / least) ** rng.random()
        return self.format_decimal(value, int(rng.random() * 4) if value < 1000 else int(rng.random() * 2))

    def integer(self, rng: Random, least: int = 1, most: int = 9999) -> str:
        """A whole number; small ones are more frequent."""
        return grouped(int(least + (most + 1 - least) ** rng.random() - 1), SEPARATORS[self.language][0])

    def percent(self, rng: Random) -> str:
        """A percentage, mostly below 100."""
        value = rng.choice((5, 7, 10, 19, 20, 21, 25, 50, 75, 100)) if rng.random() < 0.3 else rng.random() * 100
        text = self.format_decimal(value, 0 if isinstance(value, int) else rng.choice((0, 1, 1, 2)))
        return text + ("%" if self.language in ("en", "it", "pt", "nl") and rng.random() < 0.7 else " %")

    def unit(self, rng: Random) -> str:
        """A unit of measurement."""
        return UNITS[int(rng.random() * len(UNITS))]

    def quantity(self, rng: Random) -> str:
        """A number with a unit, sometimes a product or a range."""
        unit = self.unit(rng)
        roll = rng.random()
        if roll < 0.08:
            return f"{rng.randint(2, 12)} × {self.number(rng, 0.5, 50)} {unit}"
        if roll < 0.14:
            low = rng.randint(1, 60)
            return f"{low}–{low + rng.randint(1, 60)} {unit}"
        if roll < 0.18:
            return f"{self.number(rng, 1, 300)} ± {self.number(rng, 0.1, 3)} {unit}"
        return f"{self.number(rng, 0.5, 2000)} {unit}"

    def date(self, rng: Random, style: str | None = None) -> str:
        """A date between 1985 and 2031. `style` is one of `DATE_STYLES`, so that a document keeps to one.

        The German form "12. März 2024" is not among them: at the start of a paragraph it would be a Markdown list.
        """
        style = style or self.date_style(rng)
        day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1985, 2031)
        months, weekdays = self.vocabulary.fixed["months"], self.vocabulary.fixed["weekdays"]
        name = months[month - 1]
        return style.format(
            d=day, m=month, d2=f"{day:02d}", m2=f"{month:02d}", y=year, y2=f"{year % 100:02d}", M=name, M3=name[:3],
            W=weekdays[(day + month + year) % 7],
        )  # fmt: skip

    def date_style(self, rng: Random) -> str:
        """A format for :meth:`date`."""
        styles = DATE_STYLES[self.language]
        return styles[int(rng.random() * len(styles))]

    def time(self, rng: Random) -> str:
        """A time of day."""
        hour, minute = rng.randint(0, 23), rng.choice((0, 0, 15, 30, 45, rng.randint(0, 59)))
        roll = rng.random()
        if self.language == "en" and roll < 0.4:
            return f"{hour % 12 or 12}:{minute:02d} {'am' if hour < 12 else 'pm'}"
        if self.language == "fr" and roll < 0.6:
            return f"{hour} h {minute:02d}"
        if self.language in ("de", "nl", "it") and roll < 0.3:
            return f"{hour}.{minute:02d}"
        return f"{hour:02d}:{minute:02d}"

    def phone(self, rng: Random) -> str:
        """A telephone number."""
        return self.fill(rng, rng.choice(PHONES[self.language]))

    def tax_id(self, rng: Random) -> str:
        """Something like a VAT or company number."""
        return self.fill(rng, rng.choice(TAX_IDS[self.language]))

    def iban(self, rng: Random) -> str:
        """Something like an IBAN, in groups of four or in one."""
        code = COUNTRY_CODES[self.language] + self.fill(rng, "##" + "#" * rng.choice((12, 16, 18, 20)))
        if rng.random() < 0.2:
            return code
        return " ".join(code[start : start + 4] for start in range(0, len(code), 4))

    def part_number(self, rng: Random) -> str:
        """A part number such as AX-4471-B."""
        return self.fill(rng, PARTS[int(rng.random() * len(PARTS))])

    def reference_number(self, rng: Random) -> str:
        """An order, file or invoice number."""
        return self.fill(rng, REFERENCES[int(rng.random() * len(REFERENCES))])
