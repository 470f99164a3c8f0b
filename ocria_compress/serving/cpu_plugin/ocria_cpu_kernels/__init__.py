"""A vLLM plugin that lets vLLM's CPU build run FP8 and NVFP4 checkpoints, for checking them where there is no GPU.

vLLM's CPU build has no kernel for NVFP4, cannot re-quantize the fused shards of per-tensor FP8, multiplies per-token
FP8 with `torch._scaled_mm`, a scalar loop there, and cuts FP8 KV-cache values off instead of rounding them. The
kernels here compute what the formats mean: the product of the quantized operands, each exactly as stored. vLLM finds
this folder by the `entry_points.txt` beside it when the folder above is on PYTHONPATH; nothing is installed. On any
other platform than CPU it does nothing.
"""

from __future__ import annotations

_done = False


def register() -> None:
    """Called by vLLM in each of its processes, possibly more than once."""
    global _done
    from vllm.platforms import current_platform

    if _done or not current_platform.is_cpu():
        return
    _done = True
    from ocria_cpu_kernels import fp8, kv_cache, nvfp4

    fp8.install()
    kv_cache.install()
    nvfp4.install()
