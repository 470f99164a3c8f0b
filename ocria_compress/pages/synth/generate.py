"""Makes synthetic pages: a document tree, drawn, and its exact reference.

A page is a function of (split, seed, options). Splits never share a page: the split's name is part of every draw, each
has templates of its own, and benchmark pages use fonts and words that no other split draws (splits.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from ocria_compress.errors import OcriaError, nearest
from ocria_compress.pages.synth.document import Document
from ocria_compress.pages.synth.markdown import tables_markdown, to_markdown
from ocria_compress.pages.synth.splits import SPLITS, Split
from ocria_compress.pages.synth.templates.need import STRATA, Stratum, strata_of

if TYPE_CHECKING:
    from PIL import Image

    from ocria_compress.pages.synth.draw.look import Look

VERSION = "2.0"
"""Of the generator: pages of one seed are the same for one version (and the same Pillow and FreeType)."""

Route = Literal["fast", "faithful"]
SIDES = (256, 1024)
"""The shortest and the longest side of a page, pixels."""

LANGUAGE_WEIGHTS = {"en": 56, "de": 12, "fr": 10, "es": 8, "it": 6, "nl": 4, "pt": 4}
SCANNED = 0.45
"""Share of pages with scan effects, where they are not asked for."""

LONGEST = 1300
"""About how many characters a reference has at most."""

ATTEMPTS = 12


@dataclass(frozen=True)
class SynthPage:
    """One synthetic page.

    Attributes:
        image: RGB.
        reference: everything on it, Markdown with HTML tables.
        tables: its tables alone; empty if it has none.
        document: what was drawn.
        meta: JSON values: seed, split, language, template, strata, effects, dpi, body_px, fonts, route, generator.
    """

    image: Image.Image
    reference: str
    tables: str
    document: Document
    meta: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What is asked of a page.

    Attributes:
        split: what it is for.
        seed: any whole number.
        want: what it must show.
        size: width and height in pixels; drawn if None.
        language: one of the lexicon's; drawn if None.
        level: 0 (small pages of a few words) to 1 (everything); the training curriculum.
    """

    split: Split
    seed: int
    want: frozenset[Stratum] = field(default_factory=frozenset)
    size: tuple[int, int] | None = None
    language: str | None = None
    level: float = 1.0

    def rng(self, attempt: int) -> Random:
        """The source of every draw of one attempt."""
        return Random(f"{VERSION}/{self.split}/{self.seed}/{attempt}")


@dataclass(frozen=True)
class Prepared:
    """A page before it is drawn: the document, how it looks and what a scanner will do to it."""

    request: Request
    attempt: int
    document: Document
    look: Look
    scan: bool
    effects: Random


def sample(
    seed: int,
    split: Split = "train",
    *,
    want: Collection[Stratum] = (),
    size: tuple[int, int] | None = None,
    language: str | None = None,
    level: float = 1.0,
    route: Route = "fast",
) -> SynthPage:
    """Makes one page.

    Args:
        seed: which page of the split.
        split, want, size, language, level: see Request. `languages` among `want` means: not English.
        route: drawn by Pillow, or printed by Chromium.

    Raises:
        OcriaError: an unknown split, stratum or language; a size outside 64..4096; no page in 12 attempts showed
            what is wanted (on a page too small for it); Chromium is needed and missing.
    """
    return next(sample_many([Request(split, seed, frozenset(want), size, language, level)], route))


def sample_many(requests: Sequence[Request], route: Route = "fast") -> Iterator[SynthPage]:
    """Makes pages in the order of the requests; the faithful route prints them all at once."""
    for request in requests:
        check_request(request)
    pages: dict[int, SynthPage] = {}
    waiting = list(range(len(requests)))
    why: dict[int, OcriaError] = {}
    for attempt in range(ATTEMPTS):
        prepared: dict[int, Prepared] = {}
        for i in waiting:
            try:
                prepared[i] = prepare(requests[i], attempt)
            except OcriaError as error:  # no room for what is wanted: the next attempt draws another size
                why[i] = error
        ones = list(prepared.values())
        for (i, one), drawn in zip(prepared.items(), _drawn(ones, route) if ones else (), strict=True):
            page = finish(one, drawn.image, drawn.document, route)
            if page is not None:
                pages[i] = page
                waiting.remove(i)
        if not waiting:
            break
    for i, request in enumerate(requests):
        if i not in pages:
            size = f", {request.size[0]} x {request.size[1]} pixels" if request.size else ""
            raise OcriaError(
                f"no page with {', '.join(sorted(request.want)) or 'any text'} came out of {ATTEMPTS} attempts",
                where=f"page {request.seed} of split {request.split}{size}",
                fix="ask for a larger page, or for less on it",
            ) from why.get(i)
        yield pages[i]


def sample_text(seed: int, split: Split = "train") -> str:
    """The reference of a document that is not drawn (for the tokenizer's training)."""
    return to_markdown(prepare(Request(split, seed), 0).document)


def check_request(request: Request) -> None:
    """Raises OcriaError for a request that makes no sense."""
    from ocria_compress.pages.synth.lexicon import LANGUAGES

    for given, allowed, what in (
        ([request.split], SPLITS, "split"),
        (sorted(request.want), STRATA, "kind of content"),
        ([request.language] if request.language else [], LANGUAGES, "language"),
    ):
        for one in given:
            if one not in allowed:
                raise OcriaError(f"there is no {what} '{one}'", fix=nearest(str(one), list(allowed)))
    if request.size and not all(64 <= side <= 4096 for side in request.size):
        raise OcriaError(f"a page of {request.size[0]} x {request.size[1]} pixels", fix="give sides from 64 to 4096")
    if "languages" in request.want and request.language == "en":
        raise OcriaError("'languages' means pages that are not in English", fix="leave out --language en")


def prepare(request: Request, attempt: int) -> Prepared:
    """Draws everything about a page but its pixels."""
    from ocria_compress.pages.synth.draw.look import Look
    from ocria_compress.pages.synth.templates import Need, make_document

    rng = request.rng(attempt)
    language = request.language or _language(rng, "languages" in request.want)
    width, height = request.size or _size(rng, request.level)
    two_columns = "columns" in request.want
    if two_columns and request.size is None:
        width, height = max(width, rng.randint(576, 960)), max(height, rng.randint(480, 960))
    look = Look.draw(rng, width, height, held_out=request.split == "benchmark", columns=2 if two_columns else 1)
    budget = min(rng.uniform(160, LONGEST), 250 + (LONGEST - 250) * request.level, 0.8 * look.capacity())
    need = Need(
        strata=frozenset(request.want - {"languages", "scans"}),
        budget=max(60, round(budget)),
        columns_ok=look.column_em(2) >= 13,
        width_em=look.column_em(),
    )
    document = make_document(rng, request.split, need, language)
    if request.size is None:
        look = _shortened(rng, look, document)
    scan = "scans" in request.want or rng.random() < SCANNED
    return Prepared(request, attempt, document, look, scan, Random(rng.getrandbits(64)))


def finish(prepared: Prepared, image: Image.Image, document: Document, route: Route) -> SynthPage | None:
    """Scans the drawn page and writes its reference; None if it does not show what was wanted."""
    from ocria_compress.pages.synth.effects import scanned

    request, look = prepared.request, prepared.look
    reference = to_markdown(document)
    shown = strata_of(document)
    if len(reference) < 24 or not (request.want - {"scans"}) <= shown:
        return None
    effects: list[str] = []
    if prepared.scan:
        image, effects = scanned(prepared.effects, image)
        shown |= {"scans"}
    meta = {
        "seed": request.seed,
        "split": request.split,
        "language": document.language,
        "template": document.template,
        "strata": [stratum for stratum in STRATA if stratum in shown],
        "effects": effects,
        "dpi": round(look.dpi),
        "body_px": look.size,
        "fonts": sorted({look.body.name, look.heading.name}),
        "route": route,
        "generator": VERSION,
    }
    return SynthPage(image, reference, tables_markdown(document), document, meta)


def _drawn(prepared: Sequence[Prepared], route: Route) -> Iterator[Any]:
    if route == "faithful":
        from ocria_compress.pages.synth.faithful import print_pages

        return iter(print_pages([(one.document, one.look) for one in prepared]))
    from ocria_compress.pages.synth.draw import draw

    return (draw(one.request.rng(1000 + one.attempt), one.document, one.look) for one in prepared)


def _language(rng: Random, foreign: bool) -> str:
    weights = {name: weight for name, weight in LANGUAGE_WEIGHTS.items() if not (foreign and name == "en")}
    return rng.choices(list(weights), list(weights.values()))[0]


def _size(rng: Random, level: float) -> tuple[int, int]:
    """Width and height: mostly upright pages, some wide ones, some crops; small ones early in the curriculum."""
    if rng.random() >= level:
        return rng.randint(SIDES[0], 416), rng.randint(SIDES[0], 352)
    kind = rng.random()
    if kind < 0.55:
        width = round(rng.triangular(352, 800, 560))
        height = width * rng.uniform(1.15, 1.45)
    elif kind < 0.7:
        width = rng.randint(480, SIDES[1])
        height = width * rng.uniform(0.5, 0.85)
    else:
        width, height = rng.randint(SIDES[0], 800), rng.randint(SIDES[0], 800)
    return width, min(SIDES[1], max(SIDES[0], round(height)))


def _shortened(rng: Random, look: Look, document: Document) -> Look:
    """Mostly no taller than what is on the page: an empty half of a page teaches nothing."""
    from ocria_compress.pages.synth.draw import used_height

    room = rng.uniform(0.0, 0.12) * look.height
    if rng.random() < 0.15:
        return look
    needed = round(used_height(document, look) + room)
    return replace(look, height=min(look.height, max(SIDES[0], needed)))


def seeds(request: Request, count: int) -> list[Request]:
    """`count` requests like this one, from its seed on."""
    return [replace(request, seed=request.seed + i) for i in range(count)]
