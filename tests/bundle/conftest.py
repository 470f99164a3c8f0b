"""Checkpoints made by hand, copied afresh for each test that breaks one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ocria_compress.bundle.verify.report import Check, State
from ocria_compress.bundle.verify.run import Options, open_checkpoint, static_checks
from tests.bundle.checkpoints import make_result, make_source


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source. Do not change it."""
    return make_source(tmp_path_factory.mktemp("source") / "model")


@pytest.fixture(scope="session")
def _right(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    at = tmp_path_factory.mktemp("right")
    made = {"fp8": {}, "fp8-kv": {"kv": True}, "nvfp4": {"scheme": "nvfp4"}}
    return {name: make_result(source, at / name, **options) for name, options in made.items()}  # type: ignore[arg-type]


@pytest.fixture
def result(_right: dict[str, Path], tmp_path: Path) -> Path:
    """A right FP8 result that a test may change."""
    return Path(shutil.copytree(_right["fp8"], tmp_path / "fp8"))


@pytest.fixture
def with_kv(_right: dict[str, Path], tmp_path: Path) -> Path:
    """A right FP8 result with KV scales that a test may change."""
    return Path(shutil.copytree(_right["fp8-kv"], tmp_path / "fp8-kv"))


@pytest.fixture
def nvfp4(_right: dict[str, Path], tmp_path: Path) -> Path:
    """A right NVFP4 result that a test may change."""
    return Path(shutil.copytree(_right["nvfp4"], tmp_path / "nvfp4"))


@pytest.fixture
def found() -> Callable[..., dict[str, Check]]:
    """`found(folder)`: the checks that did not pass, by name."""

    def run(folder: Path, **options: object) -> dict[str, Check]:
        ctx = open_checkpoint(folder, Options(**options))  # type: ignore[arg-type]
        done = static_checks(ctx)
        for opened in (ctx.result, ctx.source, ctx.base):
            if opened is not None:
                opened.close()
        return {check.name: check for check in done if check.state is not State.PASSED}

    return run
