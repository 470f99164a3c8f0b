"""What is wrong with a source is named with its file and line, and nothing half-done is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ocria_compress.errors import OcriaError
from ocria_compress.pages.convert import Faulty, convert, detect
from ocria_compress.pages.convert.common import Options
from ocria_compress.pages.pageset import PageSet
from tests.pages.makers import contents, image, pdf
from tests.pages.sources import (
    MAKERS,
    make_images,
    make_olmocr,
    make_omnidocbench,
    make_opendataloader,
    make_pdfs,
    make_pubtabnet,
    run,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def faults_of(source: Path, **more: Any) -> list[OcriaError]:
    """The faults of a source; nothing may be left of the attempt, and the source must be as before."""
    before = contents(source.parent)
    with pytest.raises(Faulty) as caught:
        run(source, **more)
    assert contents(source.parent) == before and not (source.parent / "out").exists()
    assert "nothing was written" in caught.value.what
    assert all(fault.where for fault in caught.value.faults)
    return caught.value.faults


def test_a_reference_that_does_not_parse(source: Path) -> None:
    make_images(source)
    (source / "a.md").write_text("text\n\n<table><tr><td>1</td></tr>")
    (fault,) = faults_of(source)
    assert fault.where == str(source / "a.md") and "in its line 3: <table> is not closed" in fault.what
    done = run(source, skip_faulty=True)
    assert done.pages == 1 and len(done.faults) == 1
    assert [page.id for page in PageSet.load(done.folder)] == ["sub-b"]


def test_a_reference_without_an_image(source: Path) -> None:
    make_images(source)
    (source / "c.md").write_text("# C")
    (fault,) = faults_of(source)
    assert fault.where == str(source / "c.md") and "belongs to no image" in fault.what


@pytest.mark.parametrize(
    ("name", "gone", "line"),
    [
        ("olmocr-bench", "pdfs/math/a.pdf", "tests.jsonl, line 1"),
        ("omnidocbench", "images/b.jpg", "OmniDocBench.json, page 2 of the list"),
        ("parsebench", "docs/text/b.png", "text_content.jsonl, line 1"),
        ("pubtabnet", "val/b.png", "PubTabNet.jsonl, line 2"),
        ("opendataloader", "pdfs/02.pdf", "02.md"),
        ("pdf-parse-bench", "pdfs/001.pdf", "001.json"),
    ],
)
def test_a_page_without_an_image(source: Path, name: str, gone: str, line: str) -> None:
    MAKERS[name](source)
    (source / gone).unlink()
    fault = faults_of(source)[0]
    assert "is missing" in fault.what and str(fault.where).endswith(line) and fault.fix


def test_an_image_without_a_page(source: Path) -> None:
    make_pubtabnet(source)
    image(source / "val" / "c.png")
    assert "val/c.png" in run(source).cautions[-1]
    assert not (source.parent / "out" / "c.png").exists()


def test_a_document_without_a_reference_in_a_benchmark_of_references(source: Path) -> None:
    make_opendataloader(source)
    pdf(source / "pdfs" / "03.pdf")
    (fault,) = faults_of(source)
    assert fault.where == str(source / "pdfs" / "03.pdf") and "no reference" in fault.what


@pytest.mark.parametrize(
    ("name", "file"),
    [("olmocr-bench", "tests.jsonl"), ("parsebench", "text_content.jsonl"), ("pubtabnet", "PubTabNet.jsonl")],
)
@pytest.mark.parametrize("line", ['{"pdf": "a', "[]", "{}"])
def test_a_broken_line_is_named(source: Path, name: str, file: str, line: str) -> None:
    MAKERS[name](source)
    with (source / file).open("a") as handle:
        handle.write(f"\n{line}\n")
    count = len((source / file).read_text().splitlines())
    (fault,) = faults_of(source)
    assert fault.where == f"{source / file}, line {count}"


@pytest.mark.parametrize(
    "text", ['[{"layout_dets": [', '[{"layout_dets": 3}, 4, {"page_info": {"image_path": "images/a.jpg"}}]']
)
def test_broken_annotations_of_omnidocbench(source: Path, text: str) -> None:
    make_omnidocbench(source)
    (source / "OmniDocBench.json").write_text(text)
    with pytest.raises(OcriaError) as caught:
        run(source)
    faults = caught.value.faults if isinstance(caught.value, Faulty) else [caught.value]
    assert all("OmniDocBench.json" in str(fault.where) for fault in faults)
    assert len(faults) in (1, 3) and not (source.parent / "out").exists()


@pytest.mark.parametrize("name", ["olmocr-bench", "parsebench", "pubtabnet"])
def test_a_broken_first_line_does_not_hide_the_format(source: Path, name: str) -> None:
    MAKERS[name](source)
    for file in source.glob("*.jsonl"):
        file.write_text("{broken\n" + file.read_text())
    assert detect(source) == name
    faults = faults_of(source)
    assert faults and all("not JSON" in fault.what and str(fault.where).endswith("line 1") for fault in faults)


def test_test_ids_that_occur_twice(source: Path) -> None:
    make_olmocr(source)
    text = (source / "tests.jsonl").read_text()
    (source / "tests.jsonl").write_text(text + text.splitlines()[0] + "\n")
    (fault,) = faults_of(source)
    assert "'a_1' occurs twice" in fault.what and str(fault.where).endswith("tests.jsonl, line 4")


def test_two_files_of_one_name_are_no_two_pages_of_one_id(source: Path) -> None:
    for name in ("a-b.png", "a/b.png"):
        image(source / name)
    (fault,) = faults_of(source)
    assert "'a-b' occurs twice" in fault.what and str(source / "a" / "b.png") in fault.what
    assert fault.where == str(source / "a-b.png")


def test_an_image_of_two_formats_with_one_reference(source: Path) -> None:
    for name in ("a.png", "a.jpg"):
        image(source / name)
    (fault,) = faults_of(source)
    assert "'a' occurs twice" in fault.what


@pytest.mark.parametrize(
    ("pages", "locked", "what"),
    [([(72, 72)], True, "password"), ([], False, "no pages"), ([(7200, 7200)], False, "megapixels")],
)
def test_a_pdf_that_cannot_be_drawn(source: Path, pages: list[tuple[float, float]], locked: bool, what: str) -> None:
    make_pdfs(source)
    pdf(source / "z.pdf", pages, locked)
    (fault,) = faults_of(source)
    assert what in fault.what and str(source / "z.pdf") in str(fault.where) and fault.fix
    assert run(source, skip_faulty=True).pages == 2


def test_a_pdf_that_is_damaged(source: Path) -> None:
    make_pdfs(source)
    (source / "z.pdf").write_bytes(b"%PDF-1.4\nnothing")
    (fault,) = faults_of(source)
    assert "damaged" in fault.what and fault.where == str(source / "z.pdf")


def test_an_image_of_30_megapixels(source: Path) -> None:
    make_images(source)
    Image.new("1", (6000, 5000)).save(source / "z.png")
    (fault,) = faults_of(source)
    assert "30.0 megapixels" in fault.what and fault.where == str(source / "z.png")


def test_an_image_file_of_several_pages(source: Path) -> None:
    make_images(source)
    pages = [Image.new("L", (9, 9), gray) for gray in (0, 99)]
    pages[0].save(source / "z.tif", save_all=True, append_images=pages[1:])
    (fault,) = faults_of(source)
    assert "2 pages" in fault.what and fault.where == str(source / "z.tif")


def test_a_file_that_git_lfs_left(source: Path) -> None:
    make_pdfs(source)
    (source / "z.pdf").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    (fault,) = faults_of(source)
    assert "Git LFS" in fault.what and fault.fix == "git lfs pull"


def test_a_reference_of_a_pdf_of_two_pages(source: Path) -> None:
    make_pdfs(source)
    (source / "two.md").write_text("# Both")
    (fault,) = faults_of(source)
    assert fault.where == str(source / "two.md") and "two_p1.md" in str(fault.fix)


def test_a_path_out_of_the_source(source: Path) -> None:
    make_pubtabnet(source)
    image(source.parent / "secret.png")
    text = (source / "PubTabNet.jsonl").read_text()
    (source / "PubTabNet.jsonl").write_text(text.replace("a.png", "../secret.png"))
    assert "outside the source" in faults_of(source)[0].what


def test_a_table_whose_cells_do_not_fit_its_structure(source: Path) -> None:
    make_pubtabnet(source)
    text = (source / "PubTabNet.jsonl").read_text()
    (source / "PubTabNet.jsonl").write_text(text.replace('"<td>", "</td>", "<td>", "</td>"', '"<td>", "</td>"', 1))
    (fault,) = faults_of(source)
    assert "2 cells and 3 are given" in fault.what and str(fault.where).endswith("line 1")


def test_the_place_is_taken(source: Path) -> None:
    make_images(source)
    image(source.parent / "out" / "mine.png")
    before = contents(source.parent)
    with pytest.raises(OcriaError, match="nothing is overwritten"):
        run(source)
    assert contents(source.parent) == before


def test_the_set_would_lie_in_its_source(source: Path) -> None:
    make_images(source)
    with pytest.raises(OcriaError, match="inside its source"):
        convert(source, source / "out", options=Options("CC0-1.0"))
    assert not (source / "out").exists()


def test_what_is_no_source(source: Path) -> None:
    with pytest.raises(OcriaError, match="no such source"):
        run(source / "none")
    (source / "notes.docx").write_text("x")
    with pytest.raises(OcriaError, match="no format that is known") as caught:
        run(source)
    assert "olmocr-bench" in str(caught.value.fix)
    with pytest.raises(OcriaError, match="no format 'olmocr'") as caught:
        run(source, format="olmocr")
    assert "olmocr-bench" in str(caught.value.fix)
    with pytest.raises(OcriaError, match="has no pages"):
        run(source, format="pdfs")


def test_only_faulty_pages_make_no_set_even_when_those_may_be_left_out(source: Path) -> None:
    image(source / "a.png")
    (source / "a.md").write_text("<table>")
    faults_of(source, skip_faulty=True)


def test_only_the_first_pages(source: Path) -> None:
    make_images(source)
    assert [page.id for page in PageSet.load(run(source, count=1).folder)] == ["a"]


@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [
        ("olmocr-bench", "tests.jsonl", '"page": 1', '"page": "one"'),
        ("olmocr-bench", "tests.jsonl", '"type": "present"', '"type": "presence"'),
        ("omnidocbench", "OmniDocBench.json", '"category_type": "title"', '"category_type": 3'),
        ("omnidocbench", "OmniDocBench.json", '"order": 1', '"order": "first"'),
        ("omnidocbench", "OmniDocBench.json", "</table>", "</tabel>"),
        ("parsebench", "table.jsonl", '"rule": "{}"', '"rule": "{"'),
        ("parsebench", "table.jsonl", '"tags": ["easy"]', '"tags": [{}]'),
        ("pubtabnet", "PubTabNet.jsonl", '"tokens": ["<b>"', '"tokens": [3'),
        ("pubtabnet", "PubTabNet.jsonl", '"<b>", "H"', r'"\ud800", "H"'),
        ("pdf-parse-bench", "ground_truth/000.json", '"type": "text"', '"type": null'),
        ("pdf-parse-bench", "ground_truth/000.json", '"type": "text"', '"type": "verse"'),
        ("pdf-parse-bench", "ground_truth/000.json", r"\\end{tabular}", ""),
    ],
)
def test_annotations_of_another_form_are_named(source: Path, name: str, file: str, old: str, new: str) -> None:
    MAKERS[name](source)
    text = (source / file).read_text("utf-8")
    assert old in text
    (source / file).write_text(text.replace(old, new, 1), "utf-8")
    faults = faults_of(source)
    assert any(file in str(fault.where) for fault in faults)
    assert run(source, skip_faulty=True).pages >= 1


def test_names_that_are_too_long_for_a_file(source: Path) -> None:
    make_pubtabnet(source)
    text = (source / "PubTabNet.jsonl").read_text()
    (source / "PubTabNet.jsonl").write_text(text.replace("a.png", "a" * 400 + ".png"))
    assert "is missing" in faults_of(source)[0].what
