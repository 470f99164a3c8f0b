"""Page templates in four groups that share no template: what stands on a page, and in which order.

`make_document` draws a template of the split's group and has it make a document. See `need.py` for what can be asked
for, `writing.py`, `forms.py`, `grids.py`, `matrices.py` and `formulas.py` for the makers of blocks that all groups use,
and `train.py`, `draft.py`, `calibration.py` and `benchmark.py` for the groups.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, cast

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth.document import Document
from ocria_compress.pages.synth.splits import Split
from ocria_compress.pages.synth.templates import groups
from ocria_compress.pages.synth.templates.need import SHOWN, Need, Stratum, Template
from ocria_compress.pages.synth.templates.order import ends, promoted

if TYPE_CHECKING:
    from ocria_compress.pages.synth.lexicon import Language, Lexicon

__all__ = ["GROUPS", "Need", "Stratum", "Template", "make_document"]

GROUPS: dict[Split, tuple[Template, ...]] = groups.GROUPS

EARLY = 0.6
_TRIALS = 6


def make_document(rng: Random, split: Split, need: Need, language: str) -> Document:
    """A document of about 1.0 to 1.4 times `need.budget` reference characters.

    What `need.strata` asks for comes within the first `EARLY` of the budget where it is large enough for that (from
    about 350 characters on, less what a wide table takes), else at the top of the page.

    Args:
        rng: draws everything.
        split: whose templates and words.
        need: what the page must be.
        language: one of the lexicon's languages.

    Raises:
        OcriaError: no template of the group shows all that is asked for.
    """
    asked = need.strata & SHOWN
    fit = [each for each in GROUPS[split] if asked <= each.provides and each.least <= need.budget]
    if not fit:
        raise OcriaError(
            f"no template of the '{split}' pages shows {', '.join(sorted(asked)) or 'so little'}",
            where=f"a page of about {need.budget} characters",
            fix="ask for fewer strata or a larger budget",
        )
    lexicon = _lexicon(language, split)
    best, least = None, float("inf")
    for trial in range(_TRIALS * 4):
        template = rng.choices(fit, [each.weight for each in fit])[0]
        document = template.make(rng, lexicon, need)
        if not asked:
            return document
        end = ends(document, asked)
        if end is not None and end > EARLY * need.budget:
            document = promoted(document, asked)
            end = ends(document, asked)
        if end is not None and end < least:
            best, least = document, end
        if best is not None and (least <= EARLY * need.budget or trial >= _TRIALS):
            return best
    raise OcriaError(
        f"a page that shows {', '.join(sorted(asked))} could not be made",
        where=f"{split} pages, about {need.budget} characters, {need.width_em:g} em wide",
        fix="ask for fewer strata, a larger budget or a wider column",
    )


@lru_cache(maxsize=32)
def _lexicon(language: str, split: Split) -> Lexicon:
    from ocria_compress.pages.synth.lexicon import Lexicon

    return Lexicon(cast("Language", language), split)
