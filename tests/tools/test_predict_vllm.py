"""Reading pages in vLLM: what is refused before vLLM is started, and going on where a run was stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset import PageSet
from tools import predict_vllm
from tools.predict_vllm import fingerprint, main, predict, resume

MADE_BY = {"model": "a", "pages": "b", "max_tokens": 5}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none", "eval"], "no such model folder"),
        (["mini", "none"], "no such page set"),
        (["mini", "eval", "--batch", "0"], "at least 1"),
        (["mini", "eval", "--max-tokens", "0"], "at least 1"),
        (["mini", "eval", "--count", "0"], "0 pages were asked for"),
    ],
)
def test_wrong_arguments_are_told_with_exit_code_2(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(predict_vllm, "_read", lambda *_, **__: pytest.fail("vLLM was started"))
    monkeypatch.setattr(sys, "argv", ["predict_vllm", *arguments, "--out", str(tmp_path / "out.jsonl")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert resume(out, MADE_BY) == set()
    out.write_text('{"id": "a", "text": "\\u2028"}\n{"id": "b", "te')
    assert resume(out, MADE_BY) == {"a"}
    assert out.read_text() == '{"id": "a", "text": "\\u2028"}\n', "the line that was cut is gone"


def test_predictions_of_something_else_are_not_added_to(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    resume(out, MADE_BY)
    out.write_text('{"id": "a", "text": ""}\n')
    with pytest.raises(OcriaError, match="another model and max_tokens"):
        resume(out, MADE_BY | {"model": "c", "max_tokens": 6})
    out.with_name("out.jsonl.run.json").unlink()
    with pytest.raises(OcriaError, match="another"):
        resume(out, MADE_BY)
    assert out.read_text() == '{"id": "a", "text": ""}\n'


def test_a_broken_line_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    resume(out, MADE_BY)
    out.write_text('{"text": ""}\n')
    with pytest.raises(OcriaError, match="broken"):
        resume(out, MADE_BY)


def test_only_pages_without_a_line_are_read(tmp_path: Path, mini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(model: Path, left: list, out: Path, **_: object) -> None:
        asked.extend(page.id for page in left)
        with out.open("a") as file:
            file.writelines(json.dumps({"id": page.id, "text": ""}) + "\n" for page in left)

    monkeypatch.setattr(predict_vllm, "_read", read)
    pages, out = PageSet.load("eval"), tmp_path / "out.jsonl"
    assert predict(mini, pages, out, count=2) == 2
    assert predict(mini, pages, out, count=4) == 2
    assert predict(mini, pages, out, count=4) == 0
    assert asked == [page.id for page in pages.take(4)]


def test_another_model_has_another_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"a" * 10)
    before = fingerprint(tmp_path)
    (tmp_path / "weights").write_bytes(b"b" * 10)
    assert before != fingerprint(tmp_path)


def test_pages_of_pdfs_are_drawn_for_the_worker(tmp_path: Path) -> None:
    from dataclasses import replace

    from PIL import Image

    one = PageSet.load("eval").pages[0]
    Image.new("RGB", (72, 36), "red").save(tmp_path / "a.pdf", resolution=72)
    of_pdf = replace(one, image=tmp_path / "a.pdf", page=1, dpi=144, width=144, height=72)
    folder = tmp_path / "drawn"
    folder.mkdir()
    (folder / "9.png").write_bytes(b"of the last call")
    files = predict_vllm.image_files([one, of_pdf], folder)
    assert files == [str(one.image), str(folder / "1.png")] and [p.name for p in folder.iterdir()] == ["1.png"]
    with Image.open(files[1]) as drawn:
        red = drawn.convert("RGB").getpixel((70, 30))
        assert drawn.size == (144, 72) and red[0] > 200 > 50 > red[1]  # type: ignore[index]
