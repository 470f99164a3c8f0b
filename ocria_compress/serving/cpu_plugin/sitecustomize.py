"""Run by Python at the start of every process that has this folder on PYTHONPATH, vLLM's helper processes included.

vLLM looks a model's class up in a process of its own, which imports torchvision before any plugin is loaded; beside a
CPU torch, PyPI's torchvision cannot be imported as it is. So it is made to load just before `vllm` is first imported.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import runpy
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


class _BeforeVllm(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname != "vllm":
            return
        sys.meta_path.remove(self)
        # Should this not work, vLLM's own import says why.
        with contextlib.suppress(Exception):
            runpy.run_path(str(HERE.parent / "adopt.py"))["adopt_package"]()
            from ocria_compress.pages import torchvision_cpu

            torchvision_cpu.activate()


def _run_the_environments_own() -> None:
    """This file hides a `sitecustomize` that the environment may have."""
    others = [place for place in sys.path if Path(place or ".").resolve() != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.origin:
        runpy.run_path(spec.origin)


sys.meta_path.insert(0, _BeforeVllm())
_run_the_environments_own()
