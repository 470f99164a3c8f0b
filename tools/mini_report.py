"""Scores what a model read on a page set: edit distance, tables, loops, each with a bootstrap interval.

    python -m tools.mini_report eval --predictions a.jsonl [--against b.jsonl] [--gates] [--json out.json]
        [--markdown out.md]

Predictions are JSON lines, `{"id", "text", "finished"}`, as `tools.predict_vllm` writes them. The page set's `meta` may
have `strata` (a list), `language`, `template` and `tokens` (of the reference). A page without a prediction has NED 1
and TEDS 0, and is counted. `--against` sets a second model's (or engine's) predictions beside the first. `--gates` says
which of the stand-in model's thresholds hold; exit code 1 when one does not, or could not be tried.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.evaluate.loops import new_loop
from ocria_compress.evaluate.ned import normalized_edit_distance
from ocria_compress.evaluate.teds import page_tables
from ocria_compress.pages.pageset import Page, PageSet

NED, NED_OF_A_STRATUM, TEDS, LOOPS = 0.04, 0.12, 0.95, 0.005
STRATA = ("spans", "columns", "formulas", "scans", "languages")
"""The strata that have a threshold."""
RESAMPLES, SEED = 2000, 0


@dataclass(frozen=True)
class Prediction:
    """What was read on a page; `finished`: the model ended by itself."""

    text: str
    finished: bool


@dataclass(frozen=True)
class PageScore:
    """A page's scores.

    Attributes:
        id: of the page.
        ned: normalized edit distance.
        exact: the text is the reference.
        teds, structure: of its tables; None where neither side has one.
        loop: it repeats itself as the reference does not, or was cut by the token limit.
        repeated: what it repeats.
        finished: it was not cut.
        missing: there is no prediction.
    """

    id: str
    ned: float
    exact: bool
    teds: float | None
    structure: float | None
    loop: bool
    repeated: str | None
    finished: bool
    missing: bool


@dataclass(frozen=True)
class Figure:
    """A mean and its 95 % interval (percentile bootstrap over pages); None where there is nothing to average."""

    mean: float | None
    ci95: tuple[float, float] | None


@dataclass(frozen=True)
class Group:
    """Scores of the pages of one kind. `tables` of the `pages` have a table on either side."""

    pages: int
    missing: int
    tables: int
    unfinished: int
    ned: Figure
    ned_median: float
    ned_p90: float
    exact: Figure
    teds: Figure
    structure: Figure
    loops: Figure


@dataclass(frozen=True)
class Side:
    """Two predictions of the same pages: share of identical texts; NED and TEDS of both, and the change."""

    pages: int
    identical: Figure
    ned: tuple[Figure, Figure, Figure]
    teds: tuple[Figure, Figure, Figure]


@dataclass(frozen=True)
class Gate:
    """A threshold: `passed` is None where no page tries it."""

    name: str
    bound: str
    found: float | None
    passed: bool | None


def load_predictions(path: Path, pages: PageSet) -> dict[str, Prediction]:
    """Predictions by page id.

    Raises:
        OcriaError: no such file, a line that is no prediction, an id twice or of no page of the set.
    """
    known = {page.id for page in pages}
    found: dict[str, Prediction] = {}
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise OcriaError(f"these predictions cannot be read: {error}", where=str(path)) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
            name, text, finished = record["id"], record["text"], record.get("finished", True)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise OcriaError("this line is not a prediction", where=where, fix='{"id", "text", "finished"}') from error
        if not isinstance(text, str) or not isinstance(finished, bool):
            raise OcriaError("'text' must be text, and 'finished' true or false", where=where)
        if name in found or name not in known:
            what = "is there twice" if name in found else "is not in the page set"
            raise OcriaError(f"page '{name}' {what}", where=where, fix="score predictions with their own page set")
        found[name] = Prediction(text, finished)
    return found


def score_page(page: Page, prediction: Prediction | None) -> PageScore:
    """Scores one page, which must have a reference."""
    reference = page.reference or ""
    text = prediction.text if prediction else ""
    tables = page_tables(text, reference)
    loop = new_loop(text, reference)
    finished = prediction.finished if prediction else True
    return PageScore(
        id=page.id,
        ned=normalized_edit_distance(text, reference) if prediction else 1.0,
        exact=prediction is not None and text == reference,
        teds=tables.teds if tables else None,
        structure=tables.structure if tables else None,
        loop=loop is not None or not finished,
        repeated=loop.unit if loop else None,
        finished=finished,
        missing=prediction is None,
    )


def score_pages(pages: PageSet, predictions: dict[str, Prediction]) -> list[PageScore]:
    """Scores of every page that has a reference, in the set's order."""
    scores = [score_page(page, predictions.get(page.id)) for page in pages if page.reference is not None]
    if not scores:
        raise OcriaError("no page of this set has a reference", where=str(pages.folder), fix="use another page set")
    return scores


def members(pages: PageSet) -> dict[str, list[int]]:
    """Group name -> which pages (counted over those with a reference): all, then strata, languages, templates."""
    found: dict[str, list[int]] = {}
    kept = [page for page in pages if page.reference is not None]
    for number, page in enumerate(kept):
        strata = page.meta.get("strata") or []
        names = [f"stratum {each}" for each in ([strata] if isinstance(strata, str) else strata)]
        names += [f"{key} {page.meta[key]}" for key in ("language", "template") if page.meta.get(key)]
        for name in names:
            found.setdefault(name, []).append(number)
    order = {"stratum": 0, "language": 1, "template": 2}
    return {"all": list(range(len(kept)))} | dict(sorted(found.items(), key=lambda e: (order[e[0].split()[0]], e[0])))


def summarize(scores: Sequence[PageScore]) -> Group:
    """Means, quantiles and intervals of some pages."""
    import numpy as np

    columns = ("ned", "exact", "teds", "structure", "loop")
    values = np.array([[np.nan if (v := getattr(s, c)) is None else float(v) for c in columns] for s in scores])
    ned, exact, teds, structure, loop = (_figure(values[:, number]) for number in range(len(columns)))
    return Group(
        pages=len(scores),
        missing=sum(score.missing for score in scores),
        tables=sum(score.teds is not None for score in scores),
        unfinished=sum(not score.finished for score in scores),
        ned=ned,
        ned_median=float(np.median(values[:, 0])),
        ned_p90=float(np.quantile(values[:, 0], 0.9)),
        exact=exact,
        teds=teds,
        structure=structure,
        loops=loop,
    )


def _figure(values: Any) -> Figure:
    import numpy as np

    values = values[~np.isnan(values)]
    if not len(values):
        return Figure(None, None)
    drawn = np.random.default_rng(SEED).multinomial(len(values), np.full(len(values), 1 / len(values)), size=RESAMPLES)
    low, high = np.quantile(drawn @ values / len(values), [0.025, 0.975])
    return Figure(float(values.mean()), (float(low), float(high)))


def check_gates(groups: dict[str, Group]) -> list[Gate]:
    """The thresholds of the stand-in model."""
    overall = groups["all"]
    strata = {name: groups[f"stratum {name}"].ned.mean if f"stratum {name}" in groups else None for name in STRATA}
    neds = {"NED over all": (overall.ned.mean, NED)}
    neds |= {f"NED, {name}": (found, NED_OF_A_STRATUM) for name, found in strata.items()}
    gates = [Gate(name, f"<= {most}", v, None if v is None else v <= most) for name, (v, most) in neds.items()]
    tables, loops = overall.teds.mean, overall.loops.mean
    gates.append(Gate("TEDS of tables", f">= {TEDS}", tables, None if tables is None else tables >= TEDS))
    return [*gates, Gate("pages that loop", f"< {LOOPS}", loops, None if loops is None else loops < LOOPS)]


HEAD = ("pages", "group", "NED [95 %]", "median", "p90", "exact", "tables", "TEDS [95 %]", "TEDS-S", "loops", "missing")


def rows_of(groups: dict[str, Group]) -> list[tuple[str, ...]]:
    """One row a group, as `HEAD` says."""
    return [
        (
            str(group.pages),
            name,
            _shown(group.ned),
            f"{group.ned_median:.4f}",
            f"{group.ned_p90:.4f}",
            _share(group.exact),
            str(group.tables),
            _shown(group.teds),
            "" if group.structure.mean is None else f"{group.structure.mean:.4f}",
            _share(group.loops),
            str(group.missing),
        )
        for name, group in groups.items()
    ]


def _shown(figure: Figure) -> str:
    if figure.mean is None or figure.ci95 is None:
        return ""
    return f"{figure.mean:.4f} [{figure.ci95[0]:.4f}, {figure.ci95[1]:.4f}]"


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the console."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join("  ".join(v.ljust(w) for v, w in zip(r, widths, strict=True)).rstrip() for r in (head, *rows))


def as_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a document."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def compare(
    groups: dict[str, list[int]], texts: Sequence[dict[str, Prediction]], scores: Sequence[list[PageScore]]
) -> dict[str, Any]:
    """Two sets of predictions side by side, over the pages that both have; changes are the second minus the first."""
    import numpy as np

    one, other = scores
    both = {n for n in groups["all"] if not one[n].missing and not other[n].missing}
    same = {n: texts[0][one[n].id].text == texts[1][one[n].id].text for n in both}
    rows = {}
    for name, which in groups.items():
        kept = [n for n in which if n in both]
        first, second = (np.array([(s[n].ned, _or_nan(s[n].teds)) for n in kept]).reshape(-1, 2) for s in scores)
        rows[name] = Side(
            pages=len(kept),
            identical=_figure(np.array([same[n] for n in kept], dtype=float)),
            ned=(_figure(first[:, 0]), _figure(second[:, 0]), _figure(second[:, 0] - first[:, 0])),
            teds=(_figure(first[:, 1]), _figure(second[:, 1]), _figure(second[:, 1] - first[:, 1])),
        )
    most = sorted((n for n in both if one[n].ned != other[n].ned), key=lambda n: (-abs(one[n].ned - other[n].ned), n))
    changed = [{"id": one[n].id, "ned": one[n].ned, "against": other[n].ned} for n in most[:8]]
    return {"groups": rows, "most_changed": changed}


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def report(pages: PageSet, files: Sequence[Path], count: int | None = None) -> dict[str, Any]:
    """Everything: `runs`, one for each file of predictions, and `comparison` where there are two.

    Args:
        pages: the whole set.
        files: one or two files of predictions.
        count: score only this many pages from the front.
    """
    texts = [load_predictions(path, pages) for path in files]
    pages = pages.take(count) if count is not None else pages
    scores = [score_pages(pages, each) for each in texts]
    which = members(pages)
    groups = [{name: summarize([each[n] for n in kept]) for name, kept in which.items()} for each in scores]
    runs = [
        {"predictions": str(path), "groups": found, "gates": check_gates(found), "scores": each}
        for path, found, each in zip(files, groups, scores, strict=True)
    ]
    comparison = compare(which, texts, scores) if len(files) == 2 else None
    return {"pages": {"sha256": pages.sha256, "count": len(pages)}, "runs": runs, "comparison": comparison}


def lines_of(found: dict[str, Any], *, markdown: bool, gates: bool, worst: int = 8) -> list[str]:
    """The report in words and tables."""
    table = as_markdown if markdown else aligned
    lines = []
    for run in found["runs"]:
        lines += [f"{run['predictions']}: {found['pages']['count']} pages (set {found['pages']['sha256'][:12]})", ""]
        lines += [table(HEAD, rows_of(run["groups"])), ""]
        high = sorted((each for each in run["scores"] if each.ned), key=lambda each: -each.ned)[:worst]
        looping = [each.id for each in run["scores"] if each.loop]
        lines += ["highest NED: " + ", ".join(f"{each.id} {each.ned:.3f}" for each in high), ""] if high else []
        lines += [f"loops: {', '.join(looping[:20])}{' ...' if len(looping) > 20 else ''}", ""] if looping else []
        if gates:
            words = {True: "passed", False: "FAILED", None: "not run"}
            shown = [
                (g.name, g.bound, "" if g.found is None else f"{g.found:.4f}", words[g.passed]) for g in run["gates"]
            ]
            lines += [table(("threshold", "bound", "found", ""), shown), ""]
    if found["comparison"]:
        lines += _comparison_lines(found["comparison"], table)
    return lines


def _comparison_lines(found: dict[str, Any], table: Callable[..., str]) -> list[str]:
    head = (
        "pages",
        "group",
        "identical",
        "NED first",
        "second",
        "change [95 %]",
        "TEDS first",
        "second",
        "change [95 %]",
    )
    rows = [
        (str(side.pages), name, _share(side.identical), *_three(side.ned), *_three(side.teds))
        for name, side in found["groups"].items()
        if side.pages
    ]
    changed = ", ".join(f"{each['id']} {each['ned']:.4f} -> {each['against']:.4f}" for each in found["most_changed"])
    lines = ["first and second side by side, pages that both have:", "", table(head, rows), ""]
    return lines + ([f"NED changed most: {changed}", ""] if changed else [])


def _share(figure: Figure) -> str:
    return "" if figure.mean is None else f"{figure.mean:.1%}"


def _three(figures: tuple[Figure, Figure, Figure]) -> tuple[str, str, str]:
    first, second = ("" if figure.mean is None else f"{figure.mean:.4f}" for figure in figures[:2])
    return first, second, _shown(figures[2])


def main() -> None:
    """Parses, scores, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", help="a folder with a manifest.jsonl, or calibration, or eval")
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--against", type=Path, help="a second file of predictions, set beside the first")
    parser.add_argument("--count", type=int, help="only this many pages from the front of the set")
    parser.add_argument("--json", type=Path, help="write everything, each page's scores too")
    parser.add_argument("--markdown", type=Path, help="write the tables as Markdown")
    parser.add_argument("--gates", action="store_true", help="say which thresholds hold; exit code 1 if one does not")
    options = parser.parse_args()
    try:
        files = [path for path in (options.predictions, options.against) if path]
        found = report(PageSet.load(options.pages), files, options.count)
    except OcriaError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    print("\n".join(lines_of(found, markdown=False, gates=options.gates)))
    if options.json:
        options.json.write_text(json.dumps(found, default=asdict, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if options.markdown:
        options.markdown.write_text("\n".join(lines_of(found, markdown=True, gates=options.gates)) + "\n", "utf-8")
    if options.gates and not all(gate.passed for run in found["runs"] for gate in run["gates"]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
