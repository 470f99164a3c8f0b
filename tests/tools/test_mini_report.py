"""The report on what a model read: scores, groups, and thresholds that a model which misses them fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset import PageSet, write_page_set
from tools.mini_report import (
    LOOPS,
    NED,
    NED_OF_A_STRATUM,
    STRATA,
    TEDS,
    Prediction,
    check_gates,
    lines_of,
    load_predictions,
    main,
    report,
    score_page,
    score_pages,
)  # fmt: skip

PAGES = 40
TABLE = "<table>\n<tr><th>item</th><th>price</th></tr>\n<tr><td>{}</td><td>4.50</td></tr>\n</table>"
Write = Callable[..., Path]


def _reference(number: int) -> str:
    text = f"# Page {number}\n\nThe quick brown fox counts {number} lazy dogs near the river bank of town."
    return f"{text}\n\n{TABLE.format(f'thing {number}')}" if number % 2 else text


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> PageSet:
    """Forty pages; each stratum has eight, every other page a table."""
    out = tmp_path_factory.mktemp("set") / "pages"
    image = out.parent / "white.png"
    Image.new("RGB", (64, 64), "white").save(image)
    write_page_set(
        out,
        (
            (
                {
                    "id": f"p{n:02}", "source": "a test", "licence": "CC0-1.0", "split": "benchmark",
                    "width": 64, "height": 64,
                    "meta": {"strata": [STRATA[n % 5]], "language": ("en", "de")[n % 5 == 4], "template": f"t{n % 3}"},
                },
                image.read_bytes(),
                _reference(n),
            )
            for n in range(PAGES)
        ),
    )  # fmt: skip
    return PageSet.load(out)


@pytest.fixture
def write(pages: PageSet, tmp_path: Path) -> Write:
    """`write(change)`: predictions that are the references but for what `change(number, text)` makes of them."""
    count = iter(range(100))

    def written(change: Callable[[int, str], str | None] = lambda number, text: text, finished: bool = True) -> Path:
        path = tmp_path / f"predictions{next(count)}.jsonl"
        lines = []
        for number, page in enumerate(pages):
            text = change(number, page.reference or "")
            if text is not None:
                lines.append(json.dumps({"id": page.id, "text": text, "finished": finished or number > 0}) + "\n")
        path.write_text("".join(lines), "utf-8")
        return path

    return written


def _failed(pages: PageSet, path: Path) -> set[str]:
    (run,) = report(pages, [path])["runs"]
    return {gate.name for gate in run["gates"] if gate.passed is False}


def test_a_perfect_model_passes_every_threshold(pages: PageSet, write: Write) -> None:
    (run,) = report(pages, [write()])["runs"]
    assert {gate.passed for gate in run["gates"]} == {True} and len(run["gates"]) == 3 + len(STRATA)
    overall = run["groups"]["all"]
    assert (overall.ned.mean, overall.exact.mean, overall.teds.mean, overall.tables) == (0.0, 1.0, 1.0, PAGES // 2)


def test_a_model_that_is_a_little_wrong_everywhere_fails_over_all_only(pages: PageSet, write: Write) -> None:
    path = write(
        lambda number, text: text.replace("quick brown", "quack bruwn").replace("near", "mear") + " of it, too"
    )
    assert _failed(pages, path) == {"NED over all"}


@pytest.mark.parametrize("stratum", STRATA)
def test_a_model_that_is_wrong_in_one_stratum_fails_there_only(pages: PageSet, write: Write, stratum: str) -> None:
    number_of = STRATA.index(stratum)
    path = write(lambda n, text: text.replace("fox counts", "dog doubts about") if n % 5 == number_of else text)
    found = report(pages, [path])["runs"][0]["groups"]
    assert found[f"stratum {stratum}"].ned.mean > 0 and found["all"].ned.mean < NED
    worse = write(lambda n, text: text[: int(len(text) * 0.85)] if n % 5 == number_of and n % 2 == 0 else text)
    worse_found = report(pages, [worse])["runs"][0]["groups"]
    assert worse_found[f"stratum {stratum}"].ned.mean == pytest.approx(0.075, abs=0.02)
    worst = write(lambda n, text: text[: int(len(text) * 0.72)] if n % 5 == number_of and n % 2 == 0 else text)
    half = report(pages, [worst])["runs"][0]["groups"][f"stratum {stratum}"].ned.mean
    assert half == pytest.approx(0.14, abs=0.02) and half > NED_OF_A_STRATUM
    assert _failed(pages, worst) == {f"NED, {stratum}"}


def test_a_model_that_misreads_tables_fails_there_only(pages: PageSet, write: Write) -> None:
    path = write(lambda number, text: text.replace("price", "prise").replace("4.50", "17"))
    found = report(pages, [path])["runs"][0]["groups"]["all"]
    assert found.ned.mean < NED and 0.7 < found.teds.mean < TEDS and found.structure.mean == 1
    assert _failed(pages, path) == {"TEDS of tables"}


def test_a_model_that_loops_on_one_page_fails(pages: PageSet, write: Write) -> None:
    path = write(lambda number, text: text + " and so on" * 12 if number == 0 else text)
    (run,) = report(pages, [path])["runs"]
    assert run["groups"]["all"].loops.mean == 1 / PAGES > LOOPS
    assert "pages that loop" in _failed(pages, path)
    assert [score.id for score in run["scores"] if score.loop] == ["p00"]
    assert "and so on" in (run["scores"][0].repeated or "") * 2


def test_a_page_that_the_token_limit_cut_counts_as_a_loop(pages: PageSet, write: Write) -> None:
    assert _failed(pages, write(finished=False)) == {"pages that loop"}


def test_a_page_without_a_prediction_scores_nothing_and_is_counted(pages: PageSet, write: Write) -> None:
    path = write(lambda number, text: None if number == 1 else text)
    (run,) = report(pages, [path])["runs"]
    score = run["scores"][1]
    assert (score.ned, score.teds, score.exact, score.missing) == (1.0, 0.0, False, True)
    overall = run["groups"]["all"]
    assert overall.missing == 1 and overall.ned.mean == pytest.approx(1 / PAGES)
    assert overall.teds.mean == pytest.approx(1 - 1 / (PAGES // 2))
    assert _failed(pages, write(lambda number, text: None if number < 4 else text)) >= {
        "NED over all",
        "TEDS of tables",
    }


def test_an_empty_prediction_is_no_exact_one(pages: PageSet) -> None:
    score = score_page(pages.pages[0], Prediction("", True))
    assert (score.ned, score.exact, score.missing) == (1.0, False, False)


def test_a_threshold_that_no_page_tries_has_not_passed(pages: PageSet, write: Write) -> None:
    (run,) = report(pages, [write()], count=3)["runs"]
    states = {gate.name: gate.passed for gate in run["gates"]}
    assert states["NED, scans"] is None and states["NED, languages"] is None and states["NED, spans"] is True


def test_thresholds_hold_at_their_bounds() -> None:
    from dataclasses import replace

    from tools.mini_report import Figure, summarize

    one = score_page(PageSet.load("eval").pages[0], Prediction("", True))
    group = summarize([replace(one, ned=0.0, teds=1.0, loop=False)] * 3)

    def gates(ned: float, teds: float, loops: float) -> dict[str, bool | None]:
        figures = (Figure(value, (value, value)) for value in (ned, teds, loops))
        changed: dict[str, Any] = dict(zip(("ned", "teds", "loops"), figures, strict=True))
        return {gate.name: gate.passed for gate in check_gates({"all": replace(group, **changed)})}

    at = gates(NED, TEDS, LOOPS)
    assert (at["NED over all"], at["TEDS of tables"], at["pages that loop"]) == (True, True, False)
    beyond = gates(NED + 1e-6, TEDS - 1e-6, LOOPS - 1e-6)
    assert (beyond["NED over all"], beyond["TEDS of tables"], beyond["pages that loop"]) == (False, False, True)


def test_the_interval_holds_the_mean_and_narrows_with_pages(pages: PageSet, write: Write) -> None:
    (run,) = report(pages, [write(lambda number, text: text[: 40 + number])])["runs"]
    wide, narrow = run["groups"]["stratum spans"].ned, run["groups"]["all"].ned
    for figure in (wide, narrow):
        assert figure.ci95[0] < figure.mean < figure.ci95[1]
    assert narrow.ci95[1] - narrow.ci95[0] < wide.ci95[1] - wide.ci95[0]


def test_two_predictions_are_compared_page_by_page(pages: PageSet, write: Write) -> None:
    one = write(lambda number, text: None if number == 0 else text)
    other = write(lambda number, text: text[:-9] if number == 3 else text)
    found = report(pages, [one, other])["comparison"]
    overall = found["groups"]["all"]
    assert overall.pages == PAGES - 1 and overall.identical.mean == pytest.approx(1 - 1 / (PAGES - 1))
    assert overall.ned[2].mean > 0 and found["most_changed"][0]["id"] == "p03"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "line 1"),
        ('{"id": "p00"}', "line 1"),
        ('{"id": "p00", "text": 5}', "'text' must be text"),
        ('{"id": "p00", "text": "a", "finished": "no"}', "'finished' true or false"),
        ('{"id": "other", "text": "a"}', "'other' is not in the page set"),
        ('{"id": "p00", "text": "a"}\n{"id": "p00", "text": "a"}', "'p00' is there twice"),
    ],
)
def test_broken_predictions_are_refused(pages: PageSet, tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(OcriaError) as raised:
        load_predictions(path, pages)
    assert said in str(raised.value)


def test_a_set_without_references_cannot_be_scored(pages: PageSet) -> None:
    from dataclasses import replace

    bare = PageSet(pages.folder, [replace(page, reference=None) for page in pages])
    with pytest.raises(OcriaError, match="no page of this set has a reference"):
        score_pages(bare, {})


def test_the_command_says_what_failed_by_its_exit_code(
    pages: PageSet, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["mini_report", str(pages.folder), *arguments])
        try:
            main()
        except SystemExit as error:
            return int(error.code or 0)
        return 0

    good, bad = str(write()), str(write(lambda number, text: text[::-1]))
    out = tmp_path / "report.json"
    assert ended("--predictions", good, "--gates", "--json", str(out), "--markdown", str(tmp_path / "r.md")) == 0
    assert json.loads(out.read_text("utf-8"))["runs"][0]["groups"]["all"]["ned"]["mean"] == 0
    assert "| NED over all | <= 0.04 | 0.0000 | passed |" in (tmp_path / "r.md").read_text("utf-8")
    assert ended("--predictions", bad) == 0 and ended("--predictions", bad, "--gates") == 1
    assert "FAILED" in capsys.readouterr().out
    assert ended("--predictions", good, "--gates", "--count", "3") == 1, "a threshold that was not tried has not passed"
    assert ended("--predictions", str(tmp_path / "none.jsonl")) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_report_names_the_worst_pages(pages: PageSet, write: Write) -> None:
    found = report(pages, [write(lambda number, text: text[:30] if number == 7 else text)])
    text = "\n".join(lines_of(found, markdown=False, gates=True))
    assert "highest NED: p07" in text and "threshold" in text


@pytest.mark.parametrize("tool", ["mini_report", "predict_vllm", "mini.read_pages", "mini.mtp_acceptance"])
def test_the_tools_explain_themselves(tool: str) -> None:
    done = subprocess.run([sys.executable, "-m", f"tools.{tool}", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "pages" in done.stdout and not done.stderr
