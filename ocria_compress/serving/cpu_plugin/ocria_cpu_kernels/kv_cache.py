"""FP8 KV cache on a CPU, rounded to nearest as on GPUs.

vLLM 0.32's CPU build cuts keys and values off towards zero when it stores them as E4M3 (seen with its `vec` kernels:
stored magnitudes are 4 % too small in the mean), which doubles the error of the format and shifts it to one side.
CUDA's conversion rounds to nearest. Here keys and values are rounded first; cutting off then changes nothing.

Shape suffixes: T tokens, N KV heads, D head dimension.
"""

from __future__ import annotations

import torch

LIMIT = torch.finfo(torch.float8_e4m3fn).max
_NUDGE = 1 + 2**-7
"""Between one bfloat16 step and the smallest E4M3 step (2^-4): keeps the quotient that the kernel computes from
landing just below the rounded value, where cutting off would lose a whole step."""


def rounded(states_TND: torch.Tensor, scale: float) -> torch.Tensor:
    """Values whose quotient by `scale` is cut off to what `states_TND / scale` rounds to, in the same dtype."""
    steps_TND = (states_TND.float() / scale).clamp_(-LIMIT, LIMIT).to(torch.float8_e4m3fn).float()
    return (steps_TND * (scale * _NUDGE)).to(states_TND.dtype)


def install() -> None:
    """Puts the rounding before vLLM's own store."""
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl as Backend

    store = Backend.do_kv_cache_update

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        if self.is_fp8_kv_cache:
            key, value = rounded(key, layer._k_scale_float), rounded(value, layer._v_scale_float)
        return store(self, layer, key, value, kv_cache, slot_mapping)

    Backend.do_kv_cache_update = do_kv_cache_update
