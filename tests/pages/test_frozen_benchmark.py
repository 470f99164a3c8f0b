"""The benchmark that was frozen before `mini` was trained is whole, keeps its quotas, and can be made again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ocria_compress.errors import OcriaError
from tools.make_page_sets import BUNDLED, COUNT, QUOTAS, TOKENS, frozen, frozen_pages, wanted

ROOT = Path(__file__).resolve().parents[2]
EVAL = ROOT / "eval"
PAGES_SHA256 = "198fdacce5cd2db6ed0b46c39752609f0d0d2dc738f94acfaf8e59cfd6f2b24b"
"""Of all records, as they were committed before training. Another value means another benchmark."""


def test_the_records_are_those_that_were_frozen() -> None:
    settings = json.loads((EVAL / "benchmark.json").read_text("utf-8"))
    assert settings["pages_sha256"] == PAGES_SHA256
    assert settings["quotas_at_least"] == QUOTAS
    assert (settings["count"], settings["bundled"], settings["tokens"]) == (COUNT, BUNDLED, list(TOKENS))
    assert len(frozen(EVAL)) == COUNT


def test_the_quotas_hold_in_all_pages_and_in_those_to_be_bundled() -> None:
    lines = frozen(EVAL)
    for some in (lines, lines[:BUNDLED]):
        for stratum, least in QUOTAS.items():
            assert sum(stratum in line["strata"] for line in some) >= least * len(some)
    assert all(TOKENS[0] <= line["tokens"] <= TOKENS[1] for line in lines)
    assert all(sorted(wanted(line["number"])) == line["want"] for line in lines)
    assert all(set(line["want"]) <= set(line["strata"]) for line in lines)
    assert len({line["reference_sha256"] for line in lines}) == COUNT


def test_the_generator_still_writes_the_frozen_references() -> None:
    pages = list(frozen_pages(EVAL, 60))
    assert [line["strata"] for line, _ in pages] == [page.meta["strata"] for _, page in pages]


def test_other_records_are_refused(tmp_path: Path) -> None:
    for name in ("benchmark.json", "benchmark.jsonl"):
        shutil.copy(EVAL / name, tmp_path)
    lines = (tmp_path / "benchmark.jsonl").read_text("utf-8")
    (tmp_path / "benchmark.jsonl").write_text(lines.replace('"tokens": ', '"tokens": 1', 1), "utf-8")
    with pytest.raises(OcriaError, match="not the frozen ones"):
        frozen(tmp_path)
