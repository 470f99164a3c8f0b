"""FP8 KV cache on a CPU: what vLLM stores is what rounding to nearest gives, as on GPUs."""

from __future__ import annotations

import json
import subprocess

import pytest

from ocria_compress.serving.client import worker_environment
from ocria_compress.serving.environment import find_vllm_python

STORE = """
import json
import torch
from ocria_cpu_kernels.kv_cache import rounded
from vllm import _custom_ops as ops
from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

isa = _get_attn_isa(torch.bfloat16, 32, 64, "fp8_e4m3")
torch.manual_seed(0)
wrong = {"plain": 0, "rounded": 0}
for scale in (1.0, 0.0235595703125, 0.0625, 0.3, 0.07177734375):
    for spread in (1e-3, 0.05, 3.0, 40.0):
        states = (torch.randn(32, 2, 64) * spread).bfloat16()
        want = (states.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float().flatten().sort().values
        for name, stored in (("plain", states), ("rounded", rounded(states, scale))):
            cache = torch.zeros(1, 2, 64, 64, dtype=torch.uint8)
            keys, values = cache.chunk(2, dim=2)
            ops.cpu_attn_reshape_and_cache(
                stored, stored, keys, values, torch.arange(32), isa,
                k_scale=scale, v_scale=scale, kv_cache_dtype="fp8_e4m3",
            )
            got = values.contiguous().view(torch.float8_e4m3fn).float().flatten().sort().values
            wrong[name] += int((got != want).sum())
print("\\n" + json.dumps(wrong))
"""


@pytest.mark.vllm
def test_values_are_rounded_to_nearest_and_not_cut_off():
    done = subprocess.run(
        [str(find_vllm_python()), "-c", STORE], capture_output=True, text=True, timeout=300, env=worker_environment()
    )
    assert done.returncode == 0, done.stderr[-2000:]
    wrong = json.loads(done.stdout.splitlines()[-1])
    assert wrong["rounded"] == 0
    assert wrong["plain"] > 0, "vLLM rounds by itself now: the plugin's rounding can go"
