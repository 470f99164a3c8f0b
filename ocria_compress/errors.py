"""What can go wrong, said once: every refusal names what, where and what to do.

The command line prints an :class:`OcriaError` as one panel and exits with 2 (the request cannot be done);
a :class:`CheckFailed` is printed by the command that found it and exits with 1 (a gate or check failed).
"""

from __future__ import annotations


class OcriaError(Exception):
    """The request cannot be done.

    Args:
        what: one sentence, without jargon of our own code, saying what is wrong.
        where: the file, tensor, recipe line, page or option it is about.
        fix: what the user can do about it.
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"where: {self.where}")
        if self.fix:
            parts.append(f"what to do: {self.fix}")
        return "\n".join(parts)


class CheckFailed(Exception):
    """A check or a gate was run and failed; the report has been printed already."""


def nearest(name: str, known: list[str]) -> str:
    """A hint for a mistyped ``name``: the closest of ``known``, else all of them."""
    from rapidfuzz.distance import OSA  # counts a swap of two letters as one slip

    best = max(known, key=lambda one: OSA.normalized_similarity(name, one), default="")
    if best and OSA.normalized_similarity(name, best) >= 0.5:
        return f"did you mean '{best}'?"
    return "known: " + ", ".join(sorted(known))
