"""Page sets: what is read, what is refused, and the bundled ones."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ocria_compress.bundled import bundled
from ocria_compress.errors import OcriaError
from ocria_compress.pages.images import open_page
from ocria_compress.pages.pageset import MANIFEST, PageSet


@pytest.fixture
def records(tmp_path: Path) -> list[dict[str, Any]]:
    """Three pages in `tmp_path`; the third has no reference."""
    made = []
    for i in range(3):
        image = tmp_path / f"{i}.png"
        Image.new("L", (8 + i, 4), 40 * i).save(image)
        (tmp_path / f"{i}.md").write_text(f"# Page {i}\r\n", "utf-8", newline="")
        made.append(
            {
                "id": f"page-{i}",
                "image": image.name,
                "reference": f"{i}.md" if i < 2 else None,
                "source": "drawn for a test",
                "licence": "CC0-1.0",
                "split": "test",
                "sha256": hashlib.sha256(image.read_bytes()).hexdigest(),
                "width": 8 + i,
                "height": 4,
            }
        )
    made[1]["meta"] = {"seed": 7}
    return made


def write(folder: Path, records: list[dict[str, Any]]) -> None:
    (folder / MANIFEST).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


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


def test_an_id_that_occurs_twice(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    records[2]["id"] = "page-0"
    write(tmp_path, records)
    assert "'page-0' occurs twice" in refusal(tmp_path).what


@pytest.mark.parametrize("name", ["0.png", "1.md"])
def test_a_missing_file_is_named(tmp_path: Path, records: list[dict[str, Any]], name: str) -> None:
    write(tmp_path, records)
    (tmp_path / name).unlink()
    error = refusal(tmp_path)
    assert "missing" in error.what and error.where == str(tmp_path / name)


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


@pytest.mark.parametrize(("name", "count", "limit"), [("calibration", 16, 800_000), ("eval", 64, 3_000_000)])
def test_the_bundled_sets(name: str, count: int, limit: int) -> None:
    pages = PageSet.load(name)
    assert len(pages) == count
    assert sum(path.stat().st_size for path in bundled(name).iterdir()) < limit
    for page in pages:
        image = open_page(page.image)
        assert image.size == (page.width, page.height) and max(image.size) <= 640
        assert page.reference and page.split == name and page.licence == "Apache-2.0"
    named = {page.image.name for page in pages} | {f"{page.id}.md" for page in pages} | {MANIFEST, "README.md"}
    assert {path.name for path in bundled(name).iterdir()} == named


def test_no_page_is_both_calibrated_and_evaluated_on_or_trained_on() -> None:
    calibration, evaluation = PageSet.load("calibration"), PageSet.load("eval")
    seeds = [{page.meta["seed"] for page in pages} for pages in (calibration, evaluation)]
    assert not seeds[0] & seeds[1]
    assert not {page.sha256 for page in calibration} & {page.sha256 for page in evaluation}
    assert not {page.reference for page in calibration} & {page.reference for page in evaluation}
    assert all(10**6 < seed < 10**12 for seed in seeds[0]) and all(900_000 <= seed < 900_064 for seed in seeds[1])


@pytest.mark.parametrize("name", ["calibration", "eval"])
def test_the_bundled_references_are_what_the_generator_writes(name: str) -> None:
    from tokenizers import Tokenizer

    from ocria_compress.bundled import mini_folder
    from ocria_compress.pages import synth

    tokenizer = Tokenizer.from_file(str(mini_folder() / "tokenizer.json"))
    for page in PageSet.load(name).pages[:10]:
        made = synth.sample(
            page.meta["seed"], page.height, page.width, lambda text: tokenizer.encode(text).ids, page.meta["max_tokens"]
        )
        assert made.markdown == page.reference
