"""Where training pages come from: the package's page generator, with the requests that `mini` learns."""

from __future__ import annotations

from random import Random

import numpy as np

SYSTEM = 0.1
"""Share of the pages that are asked for behind a system message."""

TABLES = 0.22
"""Share of the pages with tables that are asked for their tables alone: 45 % of all pages have some, so that makes a
tenth of all. Pages without a table are never asked so."""


def request_of(seed: int, has_tables: bool) -> str:
    """The name of a page's request, of `ocria_compress.pages.prompt.REQUESTS`: 80 % plain, 10 % system, 10 % tables."""
    drawn = Random(f"request/{seed}").random()
    if drawn < SYSTEM:
        return "system"
    return "tables" if has_tables and drawn < SYSTEM + TABLES else "plain"


def make(seed: int, level: float) -> tuple[np.ndarray, str, str]:
    """One training page.

    Args:
        seed: same seed and level, same page.
        level: 0 (small and easy) to 1 (everything the generator draws).

    Returns:
        Pixels [H, W, 3] uint8, the name of the request, and the answer.
    """
    from ocria_compress.pages.synth.generate import sample

    page = sample(seed, "train", level=level)
    request = request_of(seed, bool(page.tables))
    return np.asarray(page.image.convert("RGB")), request, page.tables if request == "tables" else page.reference
