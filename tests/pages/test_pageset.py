"""Page sets: what is read, and what is refused with its file and line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset import MANIFEST, PageSet, check_set
from tests.pages.makers import contents, image, pdf, sha256, three_pages, write


@pytest.fixture
def records(tmp_path: Path) -> list[dict[str, Any]]:
    """Three pages in `tmp_path`; the third has no reference."""
    return three_pages(tmp_path)


def refusal(folder: Path | str) -> OcriaError:
    with pytest.raises(OcriaError) as caught:
        PageSet.load(folder)
    return caught.value


def test_a_page_set_is_read_in_order(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    write(tmp_path, records)
    pages = PageSet.load(tmp_path)
    assert [page.id for page in pages] == ["page-0", "page-1", "page-2"]
    assert [page.reference for page in pages] == ["# Page 0\r\n", "# Page 1\r\n", None]
    assert pages.pages[0].image == tmp_path / "0.png" and pages.pages[1].meta == {"seed": 7}
    assert len(pages) == 3 and len(PageSet.load(str(tmp_path))) == 3


def test_the_hash_is_of_the_contents_not_of_the_place(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    write(tmp_path, records)
    pages = PageSet.load(tmp_path)
    copy = PageSet.load(shutil.copytree(tmp_path, tmp_path / "copy"))
    assert copy.sha256 == pages.sha256 and len(pages.sha256) == 64
    assert pages.take(2).sha256 != pages.sha256
    assert pages.take(3).sha256 == pages.sha256


@pytest.mark.parametrize("change", ["reference", "meta", "order"])
def test_the_hash_sees_a_change(tmp_path: Path, records: list[dict[str, Any]], change: str) -> None:
    write(tmp_path, records)
    before = PageSet.load(tmp_path).sha256
    if change == "reference":
        (tmp_path / "0.md").write_text("# Page 9\n")
    elif change == "meta":
        records[1]["meta"]["seed"] = 8
    else:
        records.reverse()
    write(tmp_path, records)
    assert PageSet.load(tmp_path).sha256 != before


@pytest.mark.parametrize("count", [0, -1, 4])
def test_more_pages_than_there_are_is_an_error(tmp_path: Path, records: list[dict[str, Any]], count: int) -> None:
    write(tmp_path, records)
    with pytest.raises(OcriaError, match="the set has 3"):
        PageSet.load(tmp_path).take(count)


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    assert MANIFEST in refusal(tmp_path).what


def test_no_such_set_names_the_bundled_one_that_is_near(tmp_path: Path) -> None:
    assert "calibration" in str(refusal("calibratoin").fix)
    assert refusal(tmp_path / "none").where == str(tmp_path / "none")


def test_a_file_is_no_set(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").touch()
    assert "folder" in refusal(tmp_path / "set.jsonl").what


def test_no_pages(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("\n\n")
    assert "no pages" in refusal(tmp_path).what


@pytest.mark.parametrize("line", ['{"id": "a"', "[]", '"page"', "null"])
def test_a_malformed_line_is_named_by_its_number(tmp_path: Path, records: list[dict[str, Any]], line: str) -> None:
    write(tmp_path, records)
    with (tmp_path / MANIFEST).open("a") as file:
        file.write(line + "\n")
    error = refusal(tmp_path)
    assert "JSON" in error.what and error.where and error.where.endswith("line 4")


def test_a_manifest_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in refusal(tmp_path).what


@pytest.mark.parametrize("key", ["id", "image", "reference", "source", "licence", "split", "sha256", "width", "height"])
def test_a_key_that_is_missing_is_named(tmp_path: Path, records: list[dict[str, Any]], key: str) -> None:
    del records[1][key]
    write(tmp_path, records)
    error = refusal(tmp_path)
    assert f"'{key}'" in error.what and error.where and error.where.endswith("line 2")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", 3),
        ("id", " "),
        ("image", None),
        ("width", "8"),
        ("width", True),
        ("height", 0),
        ("meta", []),
        ("licence", None),
        ("licence", ""),
        ("licence", "unknown"),
        ("licens", "MIT"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, records: list[dict[str, Any]], key: str, value: object) -> None:
    records[1][key] = value
    write(tmp_path, records)
    error = refusal(tmp_path)
    assert key in error.what and error.where and error.where.endswith("line 2")


def test_half_a_character_is_refused(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    records[1]["source"] = "\ud800"
    error = refusal(write(tmp_path, records))
    assert "half a character" in error.what and error.where and error.where.endswith("line 2")


def test_an_id_that_occurs_twice(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    records[2]["id"] = "page-0"
    write(tmp_path, records)
    error = refusal(tmp_path)
    assert (
        "'page-0' occurs twice: it is that of line 1" in error.what and error.where and error.where.endswith("line 3")
    )


@pytest.mark.parametrize("name", ["0.png", "1.md"])
def test_a_missing_file_is_named(tmp_path: Path, records: list[dict[str, Any]], name: str) -> None:
    write(tmp_path, records)
    (tmp_path / name).unlink()
    error = refusal(tmp_path)
    assert "missing" in error.what and error.where
    assert error.where.startswith(str(tmp_path / name)) and f"{MANIFEST}, line " in error.where


def test_an_image_that_was_changed_is_refused(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    write(tmp_path, records)
    shutil.copy(tmp_path / "1.png", tmp_path / "0.png")
    error = refusal(tmp_path)
    assert "page-0" in error.what and records[0]["sha256"][:12] in error.what


@pytest.mark.parametrize("path", ["../other.png", "/etc/hostname", "a/../../b.png", "", "..\\b.png", "a\0b"])
@pytest.mark.parametrize("key", ["image", "reference"])
def test_a_path_out_of_the_folder_is_refused(
    tmp_path: Path, records: list[dict[str, Any]], key: str, path: str
) -> None:
    records[0][key] = path
    write(tmp_path, records)
    assert "inside" in refusal(tmp_path).what


def test_a_reference_that_is_not_utf8(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    write(tmp_path, records)
    (tmp_path / "0.md").write_bytes(b"\xff\xff")
    assert "UTF-8" in refusal(tmp_path).what


BROKEN = {
    "<table><tr><td>1</td></tr>": "<table> is not closed",
    "a\n<tr><td>1</td></tr>": "<tr> outside a table",
    "<table><tr><td>1</td></tr><tr><td>1</td><td>2</td></tr></table>": "columns",
    '<table><tr><td rowspan="3">1</td></tr></table>': "below the last row",
    "```\ncode": "code block",
    "It is $$x^2": "$$ is not closed",
    "Text[^1].": "no note",
    " \n": "empty",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_reference_that_does_not_parse_is_named_with_its_file_and_line(
    tmp_path: Path, records: list[dict[str, Any]], text: str
) -> None:
    write(tmp_path, records)
    (tmp_path / "1.md").write_text(text)
    before = contents(tmp_path)
    error = refusal(tmp_path)
    assert BROKEN[text] in error.what and "page-1" in error.what and "its line" in error.what
    assert error.where == f"{tmp_path / '1.md'}, {tmp_path / MANIFEST}, line 2" and error.fix
    good, faults = check_set(tmp_path)
    assert [page.id for page in good] == ["page-0", "page-2"]
    assert {(fault.line, fault.file) for fault in faults} == {(2, "1.md")}
    assert contents(tmp_path) == before


def test_a_page_said_to_be_blank_may_have_an_empty_reference(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    records[1]["meta"] = {"blank": True}
    (tmp_path / "1.md").write_text("")
    assert PageSet.load(write(tmp_path, records)).pages[1].reference == ""


def test_an_image_without_a_page_is_named(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    write(tmp_path, records)
    image(tmp_path / "more" / "scan.png")
    error = refusal(tmp_path)
    assert "belongs to no page" in error.what and error.where and str(tmp_path / "more" / "scan.png") in error.where
    good, faults = check_set(tmp_path)
    assert len(good) == 3 and [(fault.line, fault.file) for fault in faults] == [(None, "more/scan.png")]


def test_what_lies_beside_pages_is_no_fault(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    write(tmp_path, records)
    for name in ("README.md", "LICENSE.txt", ".hidden.png", "benchmark.json"):
        (tmp_path / name).write_text("about")
    assert len(PageSet.load(tmp_path)) == 3 and check_set(tmp_path)[1] == []
    (tmp_path / "old.md").write_text("# of no page")
    assert len(PageSet.load(tmp_path)) == 3 and [fault.file for fault in check_set(tmp_path)[1]] == ["old.md"]


def test_every_fault_of_a_set_is_listed_with_its_line(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    records.append(records[0] | {"image": "2.png", "sha256": records[2]["sha256"], "width": 10})
    records[1]["sha256"] = "0" * 64
    records[2]["height"] = 5
    write(tmp_path, records)
    with (tmp_path / MANIFEST).open("a") as file:
        file.write("{not JSON\n")
    seen: list[tuple[int, int]] = []
    good, faults = check_set(tmp_path, lambda done, total: seen.append((done, total)))
    assert [page.id for page in good] == ["page-0"] and seen[-1] == (5, 5)
    found = {fault.line: fault.what for fault in faults}
    assert "SHA-256" in found[2] and "the manifest says 10 x 5" in found[3]
    assert "occurs twice" in found[4] and "not JSON" in found[5]


def test_a_damaged_image_is_found_when_looked_at_whole(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    picture = Image.effect_noise((200, 200), 90)
    picture.save(tmp_path / "0.png")
    cut = (tmp_path / "0.png").read_bytes()[:9000]
    (tmp_path / "0.png").write_bytes(cut)
    records[0] |= {"sha256": sha256(tmp_path / "0.png"), "width": 200, "height": 200}
    _, faults = check_set(write(tmp_path, records))
    assert [fault.line for fault in faults] == [1] and "damaged" in faults[0].what


@pytest.mark.parametrize("size", [(6000, 5000), (16000, 2000)])
def test_a_page_of_30_megapixels_is_refused_with_its_size(
    tmp_path: Path, records: list[dict[str, Any]], size: tuple[int, int]
) -> None:
    Image.new("1", size).save(tmp_path / "0.png")
    records[0] |= {"sha256": sha256(tmp_path / "0.png"), "width": size[0], "height": size[1]}
    error = refusal(write(tmp_path, records))
    assert f"{size[0] * size[1] / 1e6:.1f} megapixels" in error.what and "25 are the most" in error.what
    assert error.where and "0.png" in error.where and error.where.endswith("line 1")
    records[0] |= {"width": 8, "height": 4}  # a manifest that says less does not help
    assert "megapixels" in refusal(write(tmp_path, records)).what


class TestPdf:
    """Pages of PDFs."""

    @pytest.fixture
    def made(self, tmp_path: Path) -> list[dict[str, Any]]:
        path = pdf(tmp_path / "two.pdf", [(144, 72), (72, 144)])
        record: dict[str, Any] = {
            "image": "two.pdf",
            "reference": None,
            "source": "written for a test",
            "licence": "CC0-1.0",
        }
        record |= {"split": "test", "sha256": sha256(path), "dpi": 100}
        return [
            {"id": "a", "page": 1, "width": 200, "height": 100, **record},
            {"id": "b", "page": 2, "width": 100, "height": 200, **record},
        ]

    def test_are_drawn(self, tmp_path: Path, made: list[dict[str, Any]]) -> None:
        pages = PageSet.load(write(tmp_path, made))
        assert [page.open().size for page in pages] == [(200, 100), (100, 200)]
        assert check_set(tmp_path)[1] == []
        assert pages.to_dataset()[1]["image"].size == (100, 200)

    def test_the_set_knows_the_page(self, tmp_path: Path, made: list[dict[str, Any]]) -> None:
        before = PageSet.load(write(tmp_path, made)).sha256
        made[0] |= {"page": 2, "width": 100, "height": 200}
        assert PageSet.load(write(tmp_path, made)).sha256 != before

    def test_no_such_page(self, tmp_path: Path, made: list[dict[str, Any]]) -> None:
        made[1]["page"] = 3
        error = refusal(write(tmp_path, made))
        assert "no page 3" in error.what and error.where and error.where.endswith("line 2")

    def test_a_page_must_be_named(self, tmp_path: Path, made: list[dict[str, Any]]) -> None:
        del made[0]["page"]
        assert "no 'page' is named" in refusal(write(tmp_path, made)).what

    def test_a_poster_at_too_many_dpi(self, tmp_path: Path, made: list[dict[str, Any]]) -> None:
        pdf(tmp_path / "two.pdf", [(3000, 3000)])
        made[0] |= {"sha256": sha256(tmp_path / "two.pdf"), "dpi": 150, "width": 100, "height": 100}
        error = refusal(write(tmp_path, made[:1]))
        assert "megapixels" in error.what and error.where and "two.pdf" in error.where

    def test_with_a_password(self, tmp_path: Path, made: list[dict[str, Any]]) -> None:
        pdf(tmp_path / "two.pdf", locked=True)
        made[0]["sha256"] = sha256(tmp_path / "two.pdf")
        error = refusal(write(tmp_path, made[:1]))
        assert "password" in error.what and error.where and "two.pdf" in error.where

    def test_without_pages(self, tmp_path: Path, made: list[dict[str, Any]]) -> None:
        pdf(tmp_path / "two.pdf", [])
        made[0]["sha256"] = sha256(tmp_path / "two.pdf")
        assert "no pages" in refusal(write(tmp_path, made[:1])).what


def test_a_manifest_is_what_datasets_reads(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    from datasets import load_dataset

    write(tmp_path / "set", three_pages(tmp_path / "set"))
    rows = load_dataset(
        "json", data_files=str(tmp_path / "set" / MANIFEST), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert rows["id"] == ["page-0", "page-1", "page-2"] and rows["reference"][2] is None
    assert rows["sha256"][0] == records[0]["sha256"]


def test_a_set_as_a_dataset_has_images_and_references(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    rows = PageSet.load(write(tmp_path, records)).to_dataset()
    assert rows[1]["image"].size == (9, 4) and rows[1]["reference"] == "# Page 1\r\n"
    assert json.loads(rows[1]["meta"]) == {"seed": 7} and rows[2]["reference"] is None
