"""Page sets are written whole or not at all, and what is there already stays."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset import MANIFEST, PageSet, check_set
from ocria_compress.pages.pageset_write import NewPage, PageSetWriter, write_page_set
from tests.pages.makers import TABLE, contents, image, pdf


def page(path: Path | bytes, name: str = "a", reference: str | None = "# A", number: int | None = None) -> NewPage:
    return NewPage(name, path, reference, "made for a test", "CC0-1.0", "test", page=number, dpi=72)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (30, 20), "red").save(buffer, "WEBP")
    two = pdf(tmp_path / "two.pdf", [(144, 72), (72, 144)])
    with PageSetWriter(tmp_path / "set") as writer:
        assert writer.add(page(image(tmp_path / "a.png"), "a/b c", TABLE)) == []
        assert writer.add(page(buffer.getvalue(), "bytes")) == []
        assert [writer.add(page(two, f"pdf-{n}", None, n)) for n in (1, 2)] == [[], []]
    pages, faults = check_set(tmp_path / "set")
    assert faults == [] and [p.id for p in pages] == ["a/b c", "bytes", "pdf-1", "pdf-2"]
    assert [(p.width, p.height) for p in pages] == [(64, 48), (30, 20), (144, 72), (72, 144)]
    assert pages[0].reference == TABLE and pages[1].image.suffix == ".webp"
    assert pages[2].image == pages[3].image, "a PDF is copied once"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_names_that_differ_in_case_alone_are_two_files(tmp_path: Path) -> None:
    with PageSetWriter(tmp_path / "set") as writer:
        for name in ("Page", "page"):
            writer.add(page(image(tmp_path / "a.png"), name))
    assert len({p.image.name.lower() for p in PageSet.load(tmp_path / "set")}) == 2


def test_long_ids_make_names_that_a_file_can_have(tmp_path: Path) -> None:
    with PageSetWriter(tmp_path / "set") as writer:
        for name in ("ü" * 300 + "1", "ü" * 300 + "2"):
            assert writer.add(page(image(tmp_path / "a.png"), name)) == []
    assert [p.id[-1] for p in PageSet.load(tmp_path / "set")] == ["1", "2"]


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine.txt").write_text("mine")
    with pytest.raises(OcriaError, match="nothing is overwritten") as caught:
        PageSetWriter(tmp_path / "set")
    assert caught.value.where == str(tmp_path / "set") and caught.value.fix
    assert contents(tmp_path) == {"set/mine.txt": b"mine"}


def test_a_folder_that_fills_up_meanwhile_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="nothing is overwritten"):
        with PageSetWriter(tmp_path / "set") as writer:
            writer.add(page(image(tmp_path / "a.png")))
            (tmp_path / "set").mkdir()
            (tmp_path / "set" / "mine.txt").write_text("mine")
    assert sorted(contents(tmp_path)) == ["a.png", "set/mine.txt"]


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    with PageSetWriter(tmp_path / "set") as writer:
        writer.add(page(image(tmp_path / "a.png")))
    assert len(PageSet.load(tmp_path / "set")) == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_when_it_is_broken_off_nothing_remains(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        with PageSetWriter(tmp_path / "set") as writer:
            writer.add(page(image(tmp_path / "a.png")))
            raise error
    assert list(contents(tmp_path)) == ["a.png"]


def test_no_page_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="no page is left"):
        with PageSetWriter(tmp_path / "set"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_is_refused_leaves_nothing_and_the_others_stay(tmp_path: Path) -> None:
    with PageSetWriter(tmp_path / "set") as writer:
        good = image(tmp_path / "a.png")
        assert writer.add(page(good, "good")) == []
        faults = writer.add(page(good, "broken", "<table><tr><td>"))
        assert "not closed" in faults[0].what and faults[0].where == "made for a test"
        assert "occurs twice" in writer.add(page(good, "good"))[0].what
        (tmp_path / "text.png").write_text("no image")
        assert "not an image" in writer.add(page(tmp_path / "text.png", "text"))[0].what
        assert writer.add(page(tmp_path / "none.png", "none"))[0].where == str(tmp_path / "none.png")
    assert sorted(contents(tmp_path / "set")) == ["good.md", "good.png", MANIFEST]


def test_a_size_that_is_said_must_be_the_images(tmp_path: Path) -> None:
    record = {"id": "a", "source": "made", "licence": "CC0-1.0", "split": "test", "width": 64, "height": 47}
    with pytest.raises(OcriaError, match="64 x 48 pixels and the manifest says 64 x 47"):
        write_page_set(tmp_path / "set", [(record, image(tmp_path / "a.png"), None)])
    assert list(contents(tmp_path)) == ["a.png"]
    write_page_set(tmp_path / "set", [(record | {"height": 48}, tmp_path / "a.png", None)])
    assert PageSet.load(tmp_path / "set").pages[0].reference is None
