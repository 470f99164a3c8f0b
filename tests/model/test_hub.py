"""Models by hub id, against a hub on the loopback interface and a cache on disk."""

from __future__ import annotations

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.model.source import open_source
from tests.hub import FakeHub, build_cache, commit_of

REPO = "llamaindex/OCRia-1"


@pytest.fixture
def hub():
    with FakeHub() as served:
        yield served


def test_a_plan_by_hub_id_reads_headers_only(hub, tiny_sharded, tmp_path, monkeypatch):
    hub.add(REPO, tiny_sharded)
    with hub.in_process(monkeypatch, tmp_path):
        source = open_source(REPO, weights=False)
    assert source.revision == commit_of(tiny_sharded)
    local = open_source(str(tiny_sharded))
    assert {n: (t.dtype, t.shape) for n, t in source.tensors.items()} == {
        n: (t.dtype, t.shape) for n, t in local.tensors.items()
    }
    weights = sum(p.stat().st_size for p in tiny_sharded.glob("*.safetensors"))
    assert 0 < hub.served_of(REPO, suffix=".safetensors") < weights / 2


@pytest.mark.parametrize(("mtp", "count"), [("mixed", 15), ("own_shard", 15), ("none", 0)])
def test_q4_by_hub_id_mtp_is_carried_as_by_path(mtp, count, hub, models, tmp_path, monkeypatch):
    folder = models(mtp=mtp, shards=2)
    hub.add(REPO, folder)
    with hub.in_process(monkeypatch, tmp_path):
        source = open_source(REPO)
    assert source.revision == commit_of(folder)
    assert sum(n.startswith("mtp.") for n in source.tensors) == count
    assert set(source.tensors) == set(open_source(str(folder)).tensors)


def test_a_model_that_is_refused_costs_no_download(hub, tiny_no_mtp, tmp_path):
    """`quantize` plans from headers first: a recipe that does not fit is told before any weight is fetched."""
    import subprocess
    import sys
    from pathlib import Path

    hub.add(REPO, tiny_no_mtp)
    environment = hub.environment(tmp_path) | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-m", "ocria_compress", "quantize", "--model", REPO, "--out", str(tmp_path / "out")]
    refused = subprocess.run(
        [*command, "--set", "part.mtp.scheme=keep"], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert refused.returncode == 2, refused.stderr
    weights = sum(p.stat().st_size for p in tiny_no_mtp.glob("*.safetensors"))
    assert hub.served_of(REPO, suffix=".safetensors") < weights / 2
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "ocria.json").is_file()


def test_the_cache_serves_when_the_hub_cannot_be_reached(tiny_sharded, tmp_path, monkeypatch):
    build_cache(tmp_path / "hub", REPO, tiny_sharded)
    with FakeHub() as gone:
        with gone.in_process(monkeypatch, tmp_path):
            monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
            source = open_source(REPO)
            assert len(source.revision) == 40
            assert sum(n.startswith("mtp.") for n in source.tensors) == 15
            with pytest.raises(OcriaError, match="not in the local cache"):
                open_source("llamaindex/other")


def test_a_gated_model_asks_for_a_token(hub, tiny, tmp_path, monkeypatch):
    hub.add(REPO, tiny, token="let-me-in")
    with hub.in_process(monkeypatch, tmp_path):
        with pytest.raises(OcriaError) as caught:
            open_source(REPO, weights=False)
    assert "HF_TOKEN" in caught.value.fix
    with hub.in_process(monkeypatch, tmp_path, token="let-me-in"):
        assert open_source(REPO, weights=False).revision == commit_of(tiny)


def test_a_model_that_is_not_on_the_hub_is_said(hub, tmp_path, monkeypatch):
    with hub.in_process(monkeypatch, tmp_path):
        with pytest.raises(OcriaError, match="no such model on the hub"):
            open_source("nobody/nothing", weights=False)


def test_a_revision_that_is_not_there_is_said(hub, tiny, tmp_path, monkeypatch):
    hub.add(REPO, tiny)
    with hub.in_process(monkeypatch, tmp_path):
        with pytest.raises(OcriaError, match="no revision 'v9'"):
            open_source(REPO, revision="v9", weights=False)


def test_a_shard_that_the_hub_lacks_is_said(hub, tiny_sharded, breakable, tmp_path, monkeypatch):
    folder = breakable(tiny_sharded)
    (folder / "model-00002-of-00002.safetensors").unlink()
    hub.add(REPO, folder)
    with hub.in_process(monkeypatch, tmp_path):
        for weights in (False, True):
            with pytest.raises(OcriaError, match="weight file"):
                open_source(REPO, weights=weights)
