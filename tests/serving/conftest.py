"""Stand-ins for vLLM's interpreter: small scripts that misbehave, each in one way; and the real one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_HEAD = """#!{python}
import json, os, signal, sys, time
channel = int(sys.argv[sys.argv.index("--channel") + 1]) if "--channel" in sys.argv else 1
def say(**message): os.write(channel, json.dumps(message).encode() + b"\\n")
def hear(): return json.loads(sys.stdin.readline())
def ready(): hear(); say(say="Ready", device="cpu", load_seconds=0.1)
"""


@pytest.fixture
def fake_python(tmp_path: Path) -> Callable[[str], Path]:
    """`fake_python(body)`: an executable that answers like an interpreter, running `body` instead of the worker.

    `body` may use `say(...)`, `hear()` and `ready()`.
    """

    def make(body: str) -> Path:
        path = tmp_path / "fake" / "bin" / "python"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_HEAD.format(python=sys.executable) + body)
        path.chmod(0o755)
        return path

    return make


@pytest.fixture(autouse=True)
def no_found_interpreter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests without the marker must not depend on what this machine has."""
    if request.node.get_closest_marker("vllm") is None:
        monkeypatch.delenv("OCRIA_VLLM_PYTHON", raising=False)


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The real interpreter; where there is none the test fails and says how to make one."""
    from ocria_compress.serving.environment import find_vllm_python

    return find_vllm_python()
