"""The hub that other tests rely on answers the real client as the real hub does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub import FakeHub, build_cache, commit_of
from tests.models import weight_files

REPO = "someone/tiny"


@pytest.fixture
def client(hub: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with hub.in_process(monkeypatch, tmp_path / "home"):
        yield hub


def test_snapshot_download_brings_every_byte(client: FakeHub, tiny_sharded: Path) -> None:
    from huggingface_hub import snapshot_download

    commit = client.add(REPO, tiny_sharded)
    found = Path(snapshot_download(REPO))
    assert found.name == commit == commit_of(tiny_sharded)
    expected = {p.name: p.read_bytes() for p in tiny_sharded.iterdir()}
    assert {p.name: p.read_bytes() for p in found.iterdir()} == expected
    assert client.served_of(REPO) == sum(map(len, expected.values()))
    assert (found.parent.parent / "refs" / "main").read_text() == commit


def test_safetensors_metadata_is_read_from_headers_only(client: FakeHub, models) -> None:
    from huggingface_hub import get_safetensors_metadata

    folder = models(hidden=256, shards=2)
    client.add(REPO, folder)
    found = get_safetensors_metadata(REPO)
    assert "model.language_model.layers.3.self_attn.q_proj.weight" in found.weight_map
    total = sum(f.stat().st_size for f in weight_files(folder))
    assert 0 < client.served_of(REPO, suffix=".safetensors") <= 2 * 100_001 < total / 10


def test_a_tag_and_a_commit_are_found_and_another_revision_is_not(client: FakeHub, tiny: Path) -> None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import RevisionNotFoundError

    commit = client.add(REPO, tiny, tags=("v1.0",))
    for revision in ("v1.0", commit):
        path = hf_hub_download(REPO, "config.json", revision=revision)
        assert Path(path).read_bytes() == (tiny / "config.json").read_bytes()
    with pytest.raises(RevisionNotFoundError):
        hf_hub_download(REPO, "config.json", revision="v2.0")


def test_what_is_not_there_is_refused_by_kind(client: FakeHub, tiny: Path) -> None:
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

    client.add(REPO, tiny)
    with pytest.raises(EntryNotFoundError):
        hf_hub_download(REPO, "nothing.json")
    with pytest.raises(RepositoryNotFoundError):
        snapshot_download("someone/else")


def test_a_gated_repository_needs_the_token(client: FakeHub, tiny: Path) -> None:
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import GatedRepoError

    client.add(REPO, tiny, token="hf_right")
    for token in (None, "hf_wrong"):
        with pytest.raises(GatedRepoError):
            hf_hub_download(REPO, "config.json", token=token)
    assert client.served_of(REPO) == 0
    assert Path(snapshot_download(REPO, token="hf_right"), "config.json").is_file()


def test_a_private_repository_does_not_exist_without_the_token(client: FakeHub, tiny: Path) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    client.add(REPO, tiny, token="hf_right", private=True)
    with pytest.raises(RepositoryNotFoundError):
        HfApi(token=False).model_info(REPO)
    assert HfApi(token="hf_right").model_info(REPO).private


def test_a_connection_that_breaks_is_taken_up_again(client: FakeHub, tiny: Path) -> None:
    from huggingface_hub import hf_hub_download

    client.add(REPO, tiny)
    client.cut[f"{REPO}/model.safetensors"] = 1000
    path = hf_hub_download(REPO, "model.safetensors")
    assert Path(path).read_bytes() == (tiny / "model.safetensors").read_bytes()
    assert client.requests.count(f"GET /{REPO}/resolve/main/model.safetensors") == 2


def test_another_process_is_led_here_by_its_environment_alone(hub: FakeHub, tiny: Path, tmp_path: Path) -> None:
    hub.add(REPO, tiny, token="hf_right")
    code = f"from huggingface_hub import snapshot_download; print(snapshot_download({REPO!r}, allow_patterns='*.json'))"
    environment = hub.environment(tmp_path / "home", token="hf_right")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = Path(done.stdout.strip())
    assert (tmp_path / "home") in found.parents
    assert json.loads((found / "config.json").read_text())["model_type"] == "qwen3_5"
    assert hub.served_of(REPO, suffix=".safetensors") == 0


def test_a_cache_on_disk_is_found_offline(tiny_sharded: Path, tmp_path: Path) -> None:
    snapshot = build_cache(tmp_path / "hub", REPO, tiny_sharded)
    from huggingface_hub import snapshot_download

    found = snapshot_download(REPO, cache_dir=tmp_path / "hub", local_files_only=True)
    assert Path(found) == snapshot
    assert commit_of(snapshot) == commit_of(tiny_sharded)


def test_a_partial_cache_is_known_by_its_listing(tiny_sharded: Path, tmp_path: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    name = weight_files(tiny_sharded)[1].name
    build_cache(tmp_path / "hub", REPO, tiny_sharded, leave_out=(name,), listing=True)
    with pytest.raises(LocalEntryNotFoundError, match="incomplete"):
        snapshot_download(REPO, cache_dir=tmp_path / "hub", local_files_only=True)


def test_a_hub_that_is_down_answers_503(client: FakeHub, tiny: Path) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    client.add(REPO, tiny)
    client.down = True
    with pytest.raises(HfHubHTTPError, match="503"):
        HfApi().model_info(REPO)
