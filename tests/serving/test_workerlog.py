from __future__ import annotations

from pathlib import Path

import pytest

from ocria_compress.serving import workerlog

LOG = """
(EngineCore pid=12) INFO 12-01 10:00:00 [__init__.py:797] Selected OcriaCpuFp8LinearKernel for CompressedTensorsW8A8Fp8
(EngineCore pid=12) INFO 12-01 10:00:00 [__init__.py:797] Selected OcriaCpuFp8LinearKernel for CompressedTensorsW8A8Fp8
INFO 12-01 10:00:01 [nvfp4.py:1] Using OcriaCpuNvFp4LinearKernel for NVFP4 GEMM
(Worker pid=13) WARNING 12-01 10:00:02 [kv_cache.py:9] Using KV cache scaling factor 1.0 for fp8_e4m3.
(Worker pid=13) ERROR 12-01 10:00:03 [core.py:1] Traceback (most recent call last):
(Worker pid=13) ERROR 12-01 10:00:03 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB
RuntimeError: Engine core initialization failed. See root cause above.
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_text(LOG)
    return path


def test_the_cause_is_found_behind_vllms_prefixes(log: Path) -> None:
    assert workerlog.last_error(log) == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"


def test_kernels_and_warnings_are_listed_once(log: Path) -> None:
    assert workerlog.selected_kernels(log) == [
        "Selected OcriaCpuFp8LinearKernel for CompressedTensorsW8A8Fp8",
        "Using OcriaCpuNvFp4LinearKernel for NVFP4 GEMM",
    ]
    assert workerlog.warnings(log) == ["Using KV cache scaling factor 1.0 for fp8_e4m3."]


def test_without_an_exception_the_last_line_is_shown(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\n\nlibgomp: cannot create thread\n\n")
    assert workerlog.last_error(tmp_path / "log") == "libgomp: cannot create thread"


def test_no_log_and_an_empty_log_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert workerlog.last_error(tmp_path / "empty") is None and workerlog.last_error(tmp_path / "none") is None


def test_advice_where_it_is_known() -> None:
    assert "doctor" in (workerlog.fix_for("ValueError: Failed to find a kernel that can implement") or "")
    assert workerlog.fix_for("something new") is None
