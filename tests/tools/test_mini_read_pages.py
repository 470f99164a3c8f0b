"""Pages read side by side with transformers are read as they are one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ocria_compress.bundled import mini_folder
from ocria_compress.pages.pageset import Page, PageSet
from ocria_compress.pages.prompt import REQUESTS, Reader
from tools.mini import read_pages
from tools.mini.read_pages import BatchReader, by_size, file_names, read_set

SHORT = 40


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    """Three pages of three sizes."""
    pages = {(page.width, page.height): page for page in PageSet.load("eval")}
    sizes = sorted(pages, key=lambda size: size[0] * size[1])
    assert len(sizes) >= 3
    return [pages[size] for size in (sizes[0], sizes[len(sizes) // 2], sizes[-1])]


@pytest.fixture(scope="module")
def reader() -> BatchReader:
    return BatchReader(mini_folder())


@pytest.mark.parametrize("request_name", ["plain", "system"])
def test_a_batch_reads_what_single_pages_read(pages: list[Page], reader: BatchReader, request_name: str) -> None:
    reader.prompt = Reader(mini_folder(), REQUESTS[request_name])
    together = {one.id: one for some in read_set(reader, pages, 8, SHORT) for one in some}
    for page in pages:
        assert reader.read([page], SHORT) == [together[page.id]]
    assert len({one.prompt_tokens for one in together.values()}) == 3, "nothing was padded"


def test_what_is_read_is_what_the_model_writes_alone(pages: list[Page], reader: BatchReader) -> None:
    import torch

    reader.prompt = Reader(mini_folder())
    batch = reader.prompt.encode(pages[0].open())
    ids = batch["input_ids"]
    with torch.no_grad():  # without a cache: every token from all that stand before it
        for _ in range(6):
            kinds = torch.nn.functional.pad(batch["mm_token_type_ids"], (0, ids.shape[1] - batch["input_ids"].shape[1]))
            given = {"pixel_values": batch["pixel_values"], "image_grid_thw": batch["image_grid_thw"]}
            logits = reader.model(input_ids=ids, mm_token_type_ids=kinds, **given).logits[:, -1]
            ids = torch.cat([ids, logits.argmax(-1)[None]], 1)
    (found,) = reader.read(pages[:1], 6)
    assert found.ids == ids[0, -6:].tolist() and not found.finished


def test_a_page_ends_where_the_model_ends_it(pages: list[Page], reader: BatchReader) -> None:
    ids = reader.read(pages[:2], 12)[0].ids
    stop = next(token for place, token in enumerate(ids) if place > 2 and token not in ids[:place])
    config = reader.model.generation_config
    before, config.eos_token_id = config.eos_token_id, [stop, *config.eos_token_id]
    try:
        first, second = reader.read(pages[:2], 12)
    finally:
        config.eos_token_id = before
    assert first.finished and first.ids == ids[: ids.index(stop) + 1]
    assert len(second.ids) == 12 or second.finished


def test_the_largest_pages_come_first(pages: list[Page]) -> None:
    assert by_size(pages) == pages[::-1]


def test_files_are_named_after_pages_and_never_one_twice(pages: list[Page]) -> None:
    from dataclasses import replace

    ids = ["a/b", "a_b", "A_B", "../../x", "..", "é"]
    names = file_names([replace(pages[0], id=name) for name in ids])
    assert list(names) == ids
    assert len({name.lower() for name in names.values()}) == len(ids)
    assert all("/" not in name and name.endswith(".md") and not name.startswith(".") for name in names.values())


def test_the_command_writes_predictions_that_the_report_scores(tmp_path: Path) -> None:
    from tools.mini_report import report

    out = tmp_path / "predictions"
    arguments = ["mini", "--pages", "eval", "--count", "2", "--out", str(out), "--max-tokens", "24"]
    read_pages.main(arguments)
    run = json.loads((out / "run.json").read_text("utf-8"))
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text("utf-8").splitlines()]
    assert {line["id"] for line in lines} == set(run["readings"]) and len(lines) == 2
    for line in lines:
        told = run["readings"][line["id"]]
        assert (out / told["file"]).read_text("utf-8") == line["text"]
        assert told["finish_reason"] == ("stop" if line["finished"] else "length")
        assert told["tokens"] == line["tokens"] == 24 and told["prompt_tokens"] > 100
    assert run["settings"]["request"] == "plain" and run["tokens"] == 48 and run["cut"] == 2
    found = report(PageSet.load("eval"), [out / "predictions.jsonl"], 2)
    assert found["runs"][0]["groups"]["all"].missing == 0
    with pytest.raises(SystemExit) as ended:  # nothing is overwritten
        read_pages.main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none", "--pages", "eval"], "no such model folder"),
        (["mini", "--pages", "none"], "no such page set"),
        (["mini", "--pages", "eval", "--batch", "0"], "at least 1"),
        (["mini", "--pages", "eval", "--max-tokens", "0"], "at least 1"),
        (["mini", "--pages", "eval", "--count", "0"], "0 pages were asked for"),
        (["mini", "--pages", "eval", "--request", "chat"], "invalid choice"),
    ],
)
def test_wrong_arguments_are_told_and_nothing_is_written(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_pages.main([*arguments, "--out", str(tmp_path / "out")])
    assert ended.value.code == 2 and said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
