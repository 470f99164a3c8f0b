"""`ocria-compress pages` as a user meets it: what is printed, exit codes, and that nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from ocria_compress.cli.app import run
from ocria_compress.pages.pageset import MANIFEST, PageSet
from tests.cli.test_cli import REPOSITORY, flat, ocria
from tests.pages.makers import contents, image, pdf, three_pages, write


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)


def test_help_loads_nothing_heavy_and_names_the_commands(tmp_path: Path) -> None:
    script = """
import sys
from ocria_compress.cli.app import run
code = run(["pages", "--help"])
heavy = sys.modules.keys() & {"torch", "transformers", "datasets", "numpy", "PIL", "pypdfium2"}
sys.exit(f"{heavy} {code}" if heavy or code else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for command in ("synth", "inspect", "convert", "check"):
        assert command in done.stdout
        assert run(["pages", command, "--help"]) == 0


def test_synth_inspect_and_check(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--count", "3", "--seed", "7", "--split", "benchmark", "--want", "spans,scans"]
    assert run(["pages", "synth", "--out", "set", *options]) == 0
    assert "Wrote set: 3 pages" in capsys.readouterr().out
    pages = PageSet.load(Path("set"))
    assert [page.meta["seed"] for page in pages] == [7, 8, 9]
    assert all({"spans", "scans"} <= set(page.meta["strata"]) for page in pages)
    assert run(["pages", "synth", "--out", "again", *options]) == 0
    assert PageSet.load(Path("again")).sha256 == pages.sha256
    capsys.readouterr()
    assert run(["pages", "inspect", "set", "--out", "sheet.png", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["sha256"] == pages.sha256 and said["pages"] == 3 and said["sheet"] == "sheet.png"
    assert said["contents"]["tables with spans"] == 3
    assert Image.open("sheet.png").width > 2000
    assert run(["pages", "inspect", "set", "--out", "sheet.html", "--id", "benchmark-0001"]) == 0
    assert Path("sheet.html").read_text().count("<section") == 1
    out = capsys.readouterr().out
    assert "Contact sheet of 1 page: sheet.html" in out and "benchmark (3)" in out
    assert run(["pages", "check", "set"]) == 0
    assert "Nothing is wrong with the 3 pages of set." in capsys.readouterr().out


def test_two_workers_make_the_same_pages_as_one(tmp_path: Path) -> None:
    for workers in ("1", "2"):
        done = ocria(
            "pages", "synth", "--out", workers, "--count", "12", "--size", "320x400", "--workers", workers, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    assert PageSet.load(tmp_path / "1").sha256 == PageSet.load(tmp_path / "2").sha256


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["synth", "--out", "x", "--split", "bench"], "benchmark"),
        (["synth", "--out", "x", "--route", "slow"], "--route is 'slow'"),
        (["synth", "--out", "x", "--want", "tables"], "--want is 'tables'"),
        (["synth", "--out", "x", "--size", "big"], "WIDTHxHEIGHT"),
        (["synth", "--out", "x", "--size", "10x10"], "10"),
        (["synth", "--out", "x", "--language", "xx"], "xx"),
        (["synth", "--out", "x", "--count", "0"], "--count"),
        (["synth", "--out", "x", "--count", "many"], "--count"),
        (["synth", "--out", "file.txt/x", "--count", "1"], "cannot be written"),
        (["inspect", "full", "--out", "folder.png"], "cannot be written"),
        (["inspect", "evaluation"], "eval"),
        (["inspect", "full", "--out", "sheet.pdf"], ".html or .png"),
        (["inspect", "full", "--out", "none/sheet.png"], "no such folder"),
        (["inspect", "full", "--out", "full/sheet.png"], "would lie in the page set"),
        (["inspect", "full", "--id", "page-9"], "no page 'page-9'"),
        (["check", "empty"], MANIFEST),
        (["check", "file.txt"], "a page set is a folder"),
        (["convert", "none", "--out", "x"], "no such source"),
        (["convert", "empty", "--out", "x"], "no format that is known"),
        (["convert", "full", "--out", "x", "--format", "pdf"], "there is no format 'pdf'"),
        (["convert", "full", "--out", "full"], "nothing is overwritten"),
        (["convert", "full", "--out", "x"], "--licence"),
        (["convert", "full", "--out", "x", "--references", "none"], "no such folder of references"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_panel_and_nothing_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
) -> None:
    write(tmp_path / "full", three_pages(tmp_path / "full"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file.txt").write_text("text")
    before = contents(tmp_path)
    assert run(["pages", *arguments]) == 2
    said = capsys.readouterr()
    assert what in flat(said.err) and "Traceback" not in said.err and said.out == ""
    assert contents(tmp_path) == before and not (tmp_path / "x").exists()


def test_the_place_for_new_pages_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "full", three_pages(tmp_path / "full"))
    before = contents(tmp_path)
    assert run(["pages", "synth", "--out", "full", "--count", "1"]) == 2
    assert "full" in flat(capsys.readouterr().err) and contents(tmp_path) == before


def test_check_lists_every_fault_with_line_and_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = three_pages(tmp_path / "set")
    records[0]["sha256"] = "0" * 64
    write(tmp_path / "set", records)
    (tmp_path / "set" / "1.md").write_text("<table><tr><td>")
    image(tmp_path / "set" / "stray.png")
    with (tmp_path / "set" / MANIFEST).open("a") as file:
        file.write("{\n")
    before = contents(tmp_path)
    assert run(["pages", "check", "set"]) == 2
    out = capsys.readouterr().out
    for said in ("0.png", "1.md", "stray.png", "SHA-256", "<table> is not closed", "not JSON"):
        assert said in out
    assert "nothing is wrong with 1 page." in out
    assert run(["pages", "check", "set", "--json"]) == 2
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert {(fault["line"], fault["file"]) for fault in faults} >= {
        (1, "0.png"),
        (2, "1.md"),
        (4, MANIFEST),
        (None, "stray.png"),
    }
    assert run(["pages", "inspect", "set", "--out", "sheet.html"]) == 2
    error = flat(capsys.readouterr().err)
    assert "0.png" in error and f"{MANIFEST}, line 1" in error
    assert contents(tmp_path) == before


def test_convert_lists_what_is_wrong_and_leaves_it_out_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image(tmp_path / "in" / "a.png")
    pdf(tmp_path / "pdfs" / "locked.pdf", locked=True)
    (tmp_path / "in" / "a.md").write_text("# A")
    image(tmp_path / "in" / "b.png")
    (tmp_path / "in" / "b.md").write_text("| a | b |\n|---|\n")
    command = ["pages", "convert", "in", "--out", "x", "--licence", "ours"]
    assert run(command) == 2
    said = capsys.readouterr()
    assert "in/b.md" in said.out and "line 2" in said.out and "--skip-faulty" in flat(said.err)
    assert not (tmp_path / "x").exists()
    assert run([*command, "--json"]) == 2
    assert [fault["where"] for fault in json.loads(capsys.readouterr().out)["faults"]] == ["in/b.md"]
    assert run([*command, "--skip-faulty", "--json"]) == 0
    said_json = json.loads(capsys.readouterr().out)
    assert (said_json["pages"], said_json["format"], len(said_json["left_out"])) == (1, "images", 1)
    assert run(["pages", "convert", "pdfs", "--out", "y", "--licence", "ours"]) == 2
    said = capsys.readouterr()
    assert "locked.pdf" in said.out and "password" in said.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "pdfs", "x"]


def test_ctrl_c_while_pages_are_made_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ocria_compress", "pages", "synth", "--out", "big", "--count", "20000"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 120
    while not list(tmp_path.glob(".big-*/*.webp")):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Interrupted. Nothing was written." in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
