"""Each format is told by its files, and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert import detect
from ocria_compress.pages.pageset import PageSet, check_set
from tests.pages.makers import contents, image
from tests.pages.sources import MAKERS, REFERENCES, make_olmocr, run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", MAKERS)
def test_each_format_is_told_and_read(source: Path, name: str) -> None:
    MAKERS[name](source)
    before = contents(source)
    assert detect(source) == name
    done = run(source)
    assert (done.format, done.pages, done.faults) == (name, 2, [])
    pages, faults = check_set(done.folder)
    assert faults == []
    found = [page.reference for page in pages]
    assert found == REFERENCES[name]
    assert done.without_reference == found.count(None)
    assert contents(source) == before, "the source is only read"


@pytest.mark.parametrize("name", ["olmocr-bench", "parsebench", "pubtabnet"])
def test_a_benchmark_in_a_folder_of_its_repository_is_found(source: Path, name: str) -> None:
    (source / "data").mkdir()
    MAKERS[name](source / "data")
    assert detect(source) == name and run(source).pages == 2


def test_tests_and_rules_are_kept(source: Path) -> None:
    make_olmocr(source)
    pages = PageSet.load(run(source).folder).pages
    assert [[test["id"] for test in page.meta["tests"]] for page in pages] == [["a_1", "a_3"], ["a_2"]]
    assert [page.id for page in pages] == ["math-a_p1", "math-a_p2"]


@pytest.mark.parametrize("name", ["olmocr-bench", "omnidocbench", "parsebench", "pubtabnet", "opendataloader"])
def test_a_benchmark_says_its_licence_and_a_caution(source: Path, name: str) -> None:
    MAKERS[name](source)
    done = run(source, licence="")
    assert done.licence and done.licence in done.cautions[0] and len(done.cautions) >= 2
    assert all(page.licence == done.licence for page in PageSet.load(done.folder))


@pytest.mark.parametrize("name", ["images", "pdfs"])
def test_ones_own_pages_need_a_licence(source: Path, name: str) -> None:
    MAKERS[name](source)
    with pytest.raises(OcriaError, match="licence of the pages is not known") as caught:
        run(source, licence="")
    assert "--licence" in str(caught.value.fix) and not (source.parent / "out").exists()


def test_references_in_a_folder_of_their_own(source: Path) -> None:
    image(source / "a.png")
    (source.parent / "texts").mkdir()
    (source.parent / "texts" / "a.md").write_text("# A")
    run(source, references=source.parent / "texts")
    assert PageSet.load(source.parent / "out").pages[0].reference == "# A"
