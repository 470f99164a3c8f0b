"""The tree must stay small enough to travel to a GPU machine, weights included."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST = 42 * 2**20
MOST_OF_A_FILE = 16 * 2**20


def test_tracked_files_are_at_most_42_mib() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files are tracked is not known")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    sizes = {name: (ROOT / name.decode()).lstat().st_size for name in listed.split(b"\0") if name}
    assert len(sizes) > 300
    assert sum(sizes.values()) <= MOST
    assert [name for name, size in sizes.items() if size >= MOST_OF_A_FILE] == []
