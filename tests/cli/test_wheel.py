"""The installed wheel, away from any checkout: recipes, pages and the bundled model are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the unpacked wheel, as an installation has it."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(REPOSITORY)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,) = place.glob("*.whl")
    site = place / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return site


def in_wheel(site, *command, cwd):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "OCRIA_MODEL")} | {
        "PYTHONPATH": str(site)
    }
    # -P keeps the current folder out; the wheel's folder comes before an editable installation
    return subprocess.run(
        [sys.executable, "-P", *command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_wheel_is_used_and_finds_everything(installed, tmp_path):
    where = in_wheel(installed, "-c", "import ocria_compress; print(ocria_compress.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(installed)), where.stdout + where.stderr
    names = in_wheel(installed, "-m", "ocria_compress", "recipes", "--json", cwd=tmp_path)
    assert {r["name"] for r in json.loads(names.stdout)} == {"fp8", "fp8-kv"}
    count = (
        "from ocria_compress.pages.pageset import PageSet; "
        "print(len(PageSet.load('calibration')), len(PageSet.load('eval')))"
    )
    assert in_wheel(installed, "-c", count, cwd=tmp_path).stdout.split() == ["16", "64"]


def test_the_wheel_quantizes_and_verifies(installed, tmp_path):
    done = in_wheel(installed, "-m", "ocria_compress", "quantize", "--recipe", "fp8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    proof = in_wheel(
        installed, "-m", "ocria_compress", "verify", "exports/mini-fp8", "--static", "--json", cwd=tmp_path
    )
    assert proof.returncode == 0, proof.stdout[-2000:] + proof.stderr[-2000:]


def test_what_vllm_needs_is_in_the_wheel(installed):
    serving = installed / "ocria_compress" / "serving"
    for name in ("worker.py", "requirements-cpu.txt", "requirements-cuda.txt", "cpu_plugin"):
        assert (serving / name).exists()
    assert list((serving / "cpu_plugin").glob("*.dist-info/entry_points.txt"))
