from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ocria_compress import doctor
from ocria_compress.doctor import OK, WARNING, WRONG, Check, Gpu
from ocria_compress.errors import OcriaError
from ocria_compress.serving.environment import VllmInfo

VERSIONS = {"vllm": "0.32.0", "torch": "2.13.0+cpu", "torchvision": "0.28.0", "transformers": "5.17.0"}


def named(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


@pytest.fixture
def no_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: object) -> Path:
        raise OcriaError("vLLM's environment was not found", fix=doctor.INSTALL_VLLM)

    monkeypatch.setattr(doctor, "find_vllm_python", absent)


def pretend(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    real = doctor.installed
    names = {name.replace("_", "-"): version for name, version in versions.items()}
    monkeypatch.setattr(doctor, "installed", lambda name: names[name] if name in names else real(name))


def test_this_environment_is_ready_and_a_missing_vllm_is_a_warning_with_its_command(no_vllm: None) -> None:
    found = doctor.diagnose()
    assert found.ready, [check for check in found.checks if check.state == WRONG]
    vllm = named(found.checks, "vLLM")
    assert (vllm.state, vllm.fix) == (WARNING, "ocria-compress doctor --install-vllm")
    assert {ability.runs for ability in found.abilities} == {"unknown"}


@pytest.mark.parametrize("version", ["0.17.0", "0.20.1", None])
def test_a_version_clash_is_found_before_any_load(
    no_vllm: None, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    pretend(monkeypatch, compressed_tensors=version)
    found = doctor.diagnose()
    clash = named(found.checks, "compressed-tensors")
    assert clash.state == WRONG and clash.found == (version or "missing") and not found.ready
    assert clash.fix == "pip install 'compressed-tensors==0.19.0'"


def test_every_requirement_of_the_project_is_checked() -> None:
    import tomllib

    project = tomllib.loads((doctor.CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    assert doctor.requirements() == project["dependencies"]
    assert len(doctor.check_packages()) == len(project["dependencies"])


def test_an_installed_wheel_knows_its_requirements_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "CHECKOUT", tmp_path)
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda _: ["torch>=2.11", "pytest>=8; extra == 'dev'"])
    assert doctor.requirements() == ["torch>=2.11"]


@pytest.mark.parametrize(
    ("torch", "vision", "state"),
    [("2.13.0+cpu", "0.28.0", OK), ("2.13.0", "0.28.1", OK), ("2.13.0", "0.27.0", WRONG), ("2.11.0", "0.26.0", OK)],
)
def test_torchvision_must_belong_to_torch(monkeypatch: pytest.MonkeyPatch, torch: str, vision: str, state: str) -> None:
    pretend(monkeypatch, torch=torch, torchvision=vision)
    found = named(doctor.check_torch(), "torchvision for torch")
    assert found.state == state and bool(found.fix) == (state == WRONG)


@pytest.mark.parametrize(
    ("version", "build"),
    [("2.13.0+cpu", "CPU"), ("2.13.0+cu130", "CUDA 13.0"), ("2.13.0+rocm6.4", "ROCm 6.4")],
)
def test_the_build_of_torch_is_told_from_its_version(version: str, build: str) -> None:
    assert doctor.build_of(version) == build


def test_the_token_is_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_vllm: None) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HF_TOKEN_PATH", raising=False)
    assert "none" in named(doctor.check_hub(), "hub token").found
    (tmp_path / "token").write_text("hf_secret")
    assert "in its file" in named(doctor.check_hub(), "hub token").found
    monkeypatch.setenv("HF_TOKEN", "hf_other_secret")
    assert "from the environment" in named(doctor.check_hub(), "hub token").found
    assert "secret" not in repr(doctor.diagnose())


def test_versions_of_vllm_other_than_the_tested_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    info = VllmInfo(Path("/v/bin/python"), VERSIONS | {"vllm": "0.33.0"}, "cpu", [], False)
    monkeypatch.setattr(doctor, "find_vllm_python", lambda _: info.python)
    monkeypatch.setattr(doctor, "probe", lambda _: info)
    found, checks = doctor.check_vllm(None, [])
    assert found is info and named(checks, "vLLM's vllm").state == WARNING
    assert named(checks, "vLLM's torch").state == OK


def test_a_cuda_vllm_without_a_gpu_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    info = VllmInfo(Path("/v/bin/python"), VERSIONS, "cuda", [], False)
    monkeypatch.setattr(doctor, "find_vllm_python", lambda _: info.python)
    monkeypatch.setattr(doctor, "probe", lambda _: info)
    _, checks = doctor.check_vllm(None, [])
    assert checks[0].state == WARNING and "no GPU" in checks[0].found
    assert {ability.runs for ability in doctor.abilities(info, [])} == {"no"}


@pytest.mark.parametrize("amx", [False, True])
def test_block_fp8_on_a_cpu_needs_amx(amx: bool) -> None:
    info = VllmInfo(Path("/v/bin/python"), VERSIONS, "cpu", [], amx)
    runs = {ability.scheme: ability.runs for ability in doctor.abilities(info, [])}
    assert runs["FP8 block"] == ("yes" if amx else "no")
    assert all(answer == "yes" for scheme, answer in runs.items() if scheme != "FP8 block")


@pytest.mark.parametrize(
    ("capability", "fp8", "nvfp4"),
    [
        (10.0, "native", "native"),
        (9.0, "native", "weights only"),
        (8.0, "weights only", "weights only"),
        (7.0, "too old", "too old"),
    ],
)
def test_on_hopper_nvfp4_is_weight_only_and_says_so(capability: float, fp8: str, nvfp4: str) -> None:
    info = VllmInfo(Path("/v/bin/python"), VERSIONS, "cuda", ["a GPU"], False)
    how = {a.scheme: a.how for a in doctor.abilities(info, [Gpu("a GPU", "1 MiB", "1", capability)])}
    assert fp8 in how["FP8 dynamic"] and nvfp4 in how["NVFP4"]


@pytest.mark.parametrize(
    ("script", "state", "found"),
    [
        ("echo 'NVIDIA B200, 183359 MiB, 580.1, 10.0'", OK, "NVIDIA B200, 183359 MiB, driver 580.1"),
        ("echo 'NVIDIA-SMI has failed'; exit 9", WARNING, "NVIDIA-SMI has failed"),
    ],
)
def test_gpus_are_asked_of_nvidia_smi(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, state: str, found: str
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    gpus, check = doctor.find_gpus()
    assert (check.state, check.found) == (state, found) and len(gpus) == (state == OK)


def command(*arguments: str, vllm: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    import os

    environment = os.environ | {"OCRIA_VLLM_PYTHON": vllm, "PYTHONPATH": str(doctor.CHECKOUT)}
    return subprocess.run(
        [sys.executable, "-m", "ocria_compress", "doctor", *arguments],
        capture_output=True, text=True, env=environment, cwd=cwd, timeout=120, check=False,
    )  # fmt: skip


def test_the_command_prints_json_and_says_what_is_missing(tmp_path: Path) -> None:
    result = command("--json", vllm=str(tmp_path / "no"), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["ready"] and {check["state"] for check in found["checks"]} >= {"ok", "warning"}


def test_the_command_loads_nothing_heavy(tmp_path: Path) -> None:
    script = (
        "import sys; from ocria_compress.doctor import diagnose; diagnose()\n"
        "heavy = {'torch', 'transformers', 'numpy', 'llmcompressor', 'compressed_tensors', 'vllm'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(doctor.CHECKOUT), "OCRIA_VLLM_PYTHON": "/nowhere"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


def test_exit_2_when_quantizing_cannot_work(monkeypatch: pytest.MonkeyPatch, no_vllm: None) -> None:
    import typer

    from ocria_compress.cli.doctor import doctor as run

    pretend(monkeypatch, llmcompressor=None)
    with pytest.raises(typer.Exit) as caught:
        run(install_vllm=False, vllm_python=None, device=None, as_json=True)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"install_vllm": True, "vllm_python": Path("x")}])
def test_options_that_contradict_each_other_are_refused(options: dict[str, object]) -> None:
    from ocria_compress.cli.doctor import doctor as run

    with pytest.raises(OcriaError):
        run(**{"install_vllm": False, "vllm_python": None, "device": None, "as_json": False, **options})  # type: ignore[arg-type]
