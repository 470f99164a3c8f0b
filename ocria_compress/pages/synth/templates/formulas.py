"""A seeded grammar of formulas, in LaTeX that both KaTeX and matplotlib's mathtext set.

One spelling for each look: braces around every script and argument, sums and relations spaced by one space outside
scripts and not at all inside them, factors side by side with one space between, parentheses that grow (`\\left(`) only
around fractions, roots of fractions and large operators, no spacing commands, `\\leq` rather than `\\le`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

_LATIN = "abcefghkmnpqrstuvwxyzABDEFGHKLMNPQRTXY"
_GREEK = [
    r"\alpha", r"\beta", r"\gamma", r"\delta", r"\epsilon", r"\eta", r"\theta", r"\lambda", r"\mu",
    r"\rho", r"\sigma", r"\tau", r"\phi", r"\omega", r"\Delta", r"\Phi", r"\Omega",
]  # fmt: skip
_INDEX = ["i", "j", "k", "n", "m"]
_FUNCTIONS = [r"\sin", r"\cos", r"\tan", r"\log", r"\ln", r"\exp"]
_WORDS = ["max", "min", "eff", "ref", "tot", "in", "out", "kin", "pot", "net", "avg", "rel"]
_UNITS = ["kg", "m", "s", "K", "N", "J", "W", "V", "A", "Pa", "Hz", "mol"]
_TALL = re.compile(r"\\(frac|sum|prod|int)")


def parenthesized(inside: str) -> str:
    """Parentheses, growing where what is inside is tall."""
    return rf"\left( {inside} \right)" if _TALL.search(inside) else f"({inside})"


class Grammar:
    """Draws parts of formulas; every method returns LaTeX."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def letter(self) -> str:
        """A Latin or Greek letter."""
        return self.rng.choice(_LATIN if self.rng.random() < 0.72 else _GREEK)

    def number(self) -> str:
        """A small number, sometimes a decimal fraction."""
        rng = self.rng
        return str(rng.randint(2, 12)) if rng.random() < 0.8 else f"{rng.randint(0, 9)}.{rng.randint(1, 99)}"

    def variable(self) -> str:
        """A letter, maybe with an accent, an index or an exponent."""
        rng, made = self.rng, self.letter()
        draw = rng.random()
        if draw < 0.08:
            made = rf"\{rng.choice(('bar', 'hat', 'vec'))}{{{made}}}"
        elif draw < 0.36:
            made += f"_{{{self._index()}}}"
        elif draw < 0.46:
            made += f"^{{{rng.choice(['2', '3', 'n', 'k', '-1', '2'])}}}"
        elif draw < 0.51:
            made += f"_{{{rng.choice(_INDEX)}}}^{{2}}"
        return made

    def _index(self) -> str:
        rng = self.rng
        draw = rng.random()
        if draw < 0.4:
            return rng.choice(_INDEX)
        if draw < 0.75:
            return str(rng.randint(0, 9))
        if draw < 0.85:
            return rng.choice(_INDEX) + rng.choice(("+1", "-1"))
        return rf"\mathrm{{{rng.choice(_WORDS)}}}"

    def factor(self, depth: int) -> str:
        """A variable, fraction, root, function, absolute value or parenthesis."""
        rng = self.rng
        draw = rng.random()
        if depth <= 0 or draw < 0.5:
            return self.variable()
        if draw < 0.68:
            return rf"\frac{{{self.sum(depth - 1)}}}{{{self.term(depth - 1)}}}"
        if draw < 0.78:
            root = rng.choice(("", "", "", "[3]"))
            return rf"\sqrt{root}{{{self.sum(depth - 1)}}}"
        if draw < 0.86:
            return f"{rng.choice(_FUNCTIONS)} {parenthesized(self.sum(depth - 1))}"
        if draw < 0.9:
            return f"|{self.variable()} - {self.variable()}|"
        power = rng.choice(("", "^{2}", "^{n}", "^{-1}"))
        return parenthesized(f"{self.term(0)} {rng.choice('+-')} {self.term(depth - 1)}") + power

    def term(self, depth: int) -> str:
        """A product of one or two factors, maybe with a number before them."""
        rng = self.rng
        parts = [self.number()] if rng.random() < 0.2 else []
        parts.append(self.factor(depth))
        if rng.random() < 0.35:
            parts.append(self.factor(depth - 1))
        joint = " " if rng.random() < 0.85 else rng.choice((r" \cdot ", r" \times "))
        return joint.join(parts)

    def sum(self, depth: int) -> str:
        """One or two terms."""
        made = self.term(depth)
        if self.rng.random() < 0.55:
            made += f" {self.rng.choice(('+', '+', '-', '-', chr(92) + 'pm'))} {self.term(depth - 1)}"
        return made

    def operator(self) -> str:
        """A large operator with its limits and what it acts on."""
        rng = self.rng
        draw, index = rng.random(), rng.choice(_INDEX[:3])
        if draw < 0.4:
            top = rng.choice(("n", "N", r"\infty", "m"))
            return rf"\sum_{{{index}={rng.randint(0, 1)}}}^{{{top}}} {self.indexed(index)}"
        if draw < 0.5:
            return rf"\prod_{{{index}=1}}^{{n}} {self.indexed(index)}"
        if draw < 0.8:
            low, high = rng.choice((("0", "1"), ("0", r"\infty"), ("a", "b"), ("0", "T"), (r"-\infty", r"\infty")))
            x = rng.choice(["x", "t", "u", "s"])
            inner = rng.choice((f"f({x})", f"{x}^{{{rng.randint(2, 5)}}}", f"g({x}) e^{{-{x}}}", rf"\frac{{1}}{{{x}}}"))
            return rf"\int_{{{low}}}^{{{high}}} {inner} d{x}"
        x = rng.choice(["x", "h", "n", "t"])
        to = rng.choice(("0", r"\infty"))
        return rf"\lim_{{{x} \rightarrow {to}}} \frac{{{self.letter()}}}{{{x}}}"

    def indexed(self, index: str) -> str:
        """A term that depends on an index."""
        rng = self.rng
        a, b = self.letter(), self.letter()
        return rng.choice(
            (
                f"{a}_{{{index}}}",
                f"{a}_{{{index}}} {b}_{{{index}}}",
                f"{a}_{{{index}}}^{{2}}",
                rf"({a}_{{{index}}} - \bar{{{a}}})^{{2}}",
                rf"\frac{{{a}_{{{index}}}}}{{{index}}}",
                f"{a}^{{{index}}}",
            )
        )

    def relation(self) -> str:
        """An equality most of the time."""
        return self.rng.choice(("=",) * 12 + (r"\leq", r"\geq", r"\approx", r"\neq", "<", ">"))

    def derivative(self) -> str:
        """A total or partial derivative."""
        rng = self.rng
        f, x = rng.choice(["f", "u", "y", "v", "p"]), rng.choice(["x", "t", "s", "z"])
        if rng.random() < 0.5:
            return rf"\frac{{d{f}}}{{d{x}}}"
        if rng.random() < 0.5:
            return rf"\frac{{\partial {f}}}{{\partial {x}}}"
        return rf"\frac{{\partial^{{2}} {f}}}{{\partial {x}^{{2}}}}"

    def growth(self) -> str:
        """Compound interest and the like."""
        a, b, n = self.letter(), self.letter(), self.rng.choice(_INDEX)
        if self.rng.random() < 0.5:
            return rf"{a}_{{{n}}} = {a}_{{0}} \left( 1 + \frac{{{b}}}{{{self.number()}}} \right)^{{{n}}}"
        return rf"{a}({self.rng.choice('txs')}) = {a}_{{0}} e^{{-{self.letter()} t}}"

    def quantity(self) -> str:
        """A quantity with its unit set upright."""
        rng = self.rng
        unit = rng.choice(_UNITS)
        if rng.random() < 0.4:
            unit += f"/{rng.choice(_UNITS)}"
        return rf"{self.variable()} = {rng.randint(1, 99)}.{rng.randint(0, 9)} \mathrm{{{unit}}}"


def inline_formula(rng: Random) -> str:
    """A short formula for running text, at most 24 characters or so."""
    grammar = Grammar(rng)
    draw = rng.random()
    if draw < 0.35:
        return grammar.variable()
    if draw < 0.6:
        return f"{grammar.variable()} {grammar.relation()} {grammar.number()}"
    if draw < 0.75:
        return rf"{rng.choice(_INDEX)} \in {rng.choice(['A', 'B', 'D', 'M', 'S'])}"
    if draw < 0.88:
        return f"{grammar.variable()} = {grammar.variable()} {rng.choice('+-')} {grammar.variable()}"
    return rf"\{rng.choice(('Delta', 'nabla', 'partial'))} {rng.choice(['f', 'u', 'x', 'p'])}"


def display_formula(rng: Random, most: int = 60) -> str:
    """A displayed formula of 8 to `most` characters of LaTeX (8 to 24 at least can always be had)."""
    grammar = Grammar(rng)
    makers: tuple[Callable[[], str], ...] = (
        lambda: f"{grammar.variable()} {grammar.relation()} {grammar.sum(2)}",
        lambda: f"{grammar.variable()} {grammar.relation()} {grammar.sum(1)}",
        lambda: f"{grammar.variable()} {grammar.relation()} {grammar.operator()}",
        lambda: f"{grammar.variable()} = {grammar.term(0)} + {grammar.operator()}",
        lambda: f"{grammar.operator()} {grammar.relation()} {grammar.term(1)}",
        lambda: f"{grammar.derivative()} = {grammar.sum(1)}",
        lambda: f"{grammar.letter()}({rng.choice('xts')}) = {grammar.sum(2)}",
        grammar.growth,
        grammar.quantity,
    )
    weights = (5, 3, 3, 1, 1, 2, 3, 1, 1)
    made = ""
    for _ in range(12):
        made = rng.choices(makers, weights)[0]()
        if 8 <= len(made) <= most:
            return made
    return f"{grammar.letter()} = {grammar.letter()} + {grammar.letter()}"
