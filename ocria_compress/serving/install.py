"""Makes vLLM's environment: pinned packages into a virtual environment of its own.

An environment moves badly, so it is made in place: a marker is there from the first moment until the last step is done,
and one that still carries it is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ocria_compress.errors import OcriaError
from ocria_compress.serving.environment import COMPLETE, FOLDER, INSTALLING, probe

HERE = Path(__file__).resolve().parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NEEDED_BYTES = {"cpu": 6 << 30, "cuda": 16 << 30}
"""Free disk asked for before starting: the environment and pip's downloads."""
LONGEST_LINE = 120
"""Characters of one of pip's lines that are shown; the log beside has all of them."""


def requirements(device: str) -> Path:
    """The requirements file for `cpu` or `cuda`."""
    return HERE / f"requirements-{device}.txt"


def pinned(device: str) -> dict[str, str]:
    """Package -> version, as the requirements file has them, for the packages that it names first."""
    lines = requirements(device).read_text("utf-8").splitlines()
    first = lines[next(i for i, line in enumerate(lines) if line.startswith("# What [dependency-groups]")) + 1 :]
    found = {}
    for line in first:
        if not line.strip():
            break
        name, version = line.split("==")
        found[name] = version
    return found


def guess_device() -> str:
    """`cuda` where an NVIDIA GPU answers, else `cpu`."""
    if shutil.which("nvidia-smi") is None:
        return "cpu"
    result = subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False, timeout=60)
    return "cuda" if result.returncode == 0 and b"GPU" in result.stdout else "cpu"


def install(dest: Path | None = None, *, device: str | None = None, on_line: Callable[[str], None] = print) -> Path:
    """Makes vLLM's environment in `dest` and returns its interpreter; at once when it is there and complete.

    Args:
        dest: the environment's folder; `.venv-vllm` in the current directory when None.
        device: `cpu` or `cuda`; guessed when None.
        on_line: called with every line of progress.

    Raises:
        OcriaError: `dest` holds something else, the disk is too full, a package cannot be had, or the result does not
            work.
    """
    dest = (Path.cwd() / FOLDER if dest is None else Path(dest)).expanduser().absolute()
    device = device or guess_device()
    if device not in NEEDED_BYTES:
        raise OcriaError(f"there is no vLLM for '{device}'", where="--device", fix="cpu or cuda")
    python = dest / "bin" / "python"
    stamp = {"device": device, "requirements": hashlib.sha256(requirements(device).read_bytes()).hexdigest()}
    dest.parent.mkdir(parents=True, exist_ok=True)
    with _alone(dest.parent, on_line):
        if _stamp(dest) == stamp and python.exists():
            on_line(f"vLLM's environment is complete: {dest}")
            return python
        _clear(dest, on_line)
        _check_disk(dest.parent, device)
        dest.mkdir()
        (dest / INSTALLING).touch()
        _fill(dest, device, on_line)
        info = probe(python)
        if device == "cpu" and not info.versions["torch"].endswith("+cpu"):
            raise OcriaError(f"torch {info.versions['torch']} is not a CPU build", where=str(dest), fix=_again(device))
        _write_stamp(dest, stamp)
        (dest / INSTALLING).unlink()
    on_line(f"vLLM {info.versions['vllm']} for {device} is ready: {dest}")
    return python


def _again(device: str) -> str:
    return f"ocria-compress doctor --install-vllm --device {device}"


@contextlib.contextmanager
def _alone(folder: Path, on_line: Callable[[str], None]) -> Iterator[None]:
    """Two installations side by side take turns; the second then finds the work done."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_line("waiting for another installation in this folder")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _stamp(dest: Path) -> dict[str, str] | None:
    try:
        return json.loads((dest / COMPLETE).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _write_stamp(dest: Path, stamp: dict[str, str]) -> None:
    partial = dest / (COMPLETE + ".part")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(stamp, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(dest / COMPLETE)


def _clear(dest: Path, on_line: Callable[[str], None]) -> None:
    """Takes away what an earlier installation left; never anything else."""
    if not dest.exists() and not dest.is_symlink():
        return
    if dest.is_dir() and not dest.is_symlink():
        if (dest / INSTALLING).exists() or (dest / COMPLETE).exists():
            on_line(f"removing an incomplete or outdated environment: {dest}")
            shutil.rmtree(dest)
            return
        if not any(dest.iterdir()):
            dest.rmdir()
            return
    raise OcriaError(
        "there is something else in the place of vLLM's environment, and it is left alone",
        where=str(dest),
        fix="move it away, or use what is there with --vllm-python",
    )


def _check_disk(folder: Path, device: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES[device]:
        raise OcriaError(
            f"not enough disk for vLLM: {free / 2**30:.1f} GiB free, {NEEDED_BYTES[device] / 2**30:.0f} GiB needed",
            where=str(folder),
            fix="free some disk, or run the command in another folder",
        )


def _fill(dest: Path, device: str, on_line: Callable[[str], None]) -> None:
    log = dest / "install.log"
    on_line(f"making {dest}")
    _step([sys.executable, "-m", "venv", str(dest)], log, device, on_line)
    pip = [str(dest / "bin" / "python"), "-m", "pip", "install", "--progress-bar", "off", "--no-input"]
    if device == "cuda":
        _step([*pip, "-r", str(requirements(device))], log, device, on_line)
        return
    # A version that ends in +cpu cannot be satisfied by a CUDA build. Where the configured index has no such build,
    # PyTorch's own has.
    torch = f"torch=={pinned(device)['torch']}"
    try:
        _step([*pip, "--no-deps", torch], log, device, on_line)
    except OcriaError:
        on_line(f"{torch} is not on the configured index; trying PyTorch's")
        _step([*pip, "--no-deps", "--index-url", CPU_INDEX, torch], log, device, on_line)
    _step([*pip, "--no-deps", "-r", str(requirements(device))], log, device, on_line)
    for packages in dest.glob("lib/python3*/site-packages"):
        # Only in an environment of our own: vLLM started by hand there finds torchvision usable, and the CPU kernels.
        (packages / "ocria_cpu.pth").write_text(f"{HERE / 'cpu_plugin'}\n", "utf-8")


def _step(command: list[str], log: Path, device: str, on_line: Callable[[str], None]) -> None:
    """Runs one command, its output line by line to `on_line` and to the log."""
    unwanted = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_USER")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    last_error = ""
    with log.open("a", encoding="utf-8") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        )
        try:
            for raw in process.stdout or ():
                line = raw.rstrip()
                file.write(line + "\n")
                if line.startswith("ERROR"):
                    last_error = line
                if line.strip() and not line.startswith("WARNING: Location"):
                    on_line(line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " …")
            code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code != 0:
        raise OcriaError(
            f"vLLM could not be installed: {last_error or f'{Path(command[0]).name} ended with status {code}'}",
            where=f"log: {log}",
            fix=f"check the network and the disk, then run again: {_again(device)}",
        )
