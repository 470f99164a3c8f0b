"""The gated delta rule of the linear-attention layers: flash-linear-attention's kernels, or plain torch.

Shapes: B rows, T tokens (a multiple of 64), H key heads, V value heads, D = 64 values a head. A row holds many pages:
at the first token of each the log decay is so low that the state is wiped (pieces.FORGET).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch import Tensor

DeltaRule = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""(query BTHD, key BTHD, value BTVD, log decay BTV, beta BTV) -> output BTVD; query and key get an L2 norm inside."""

KEY_HEADS, VALUE_HEADS, HEAD, CHUNK = 2, 4, 64, 64
SHARED = VALUE_HEADS // KEY_HEADS
SCALE = HEAD**-0.5


def plain_delta_rule(query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
    """The reference implementation of transformers, in plain torch."""
    from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule

    rule = inspect.unwrap(torch_chunk_gated_delta_rule)  # where fla is installed, transformers would call its kernel
    repeats = value.shape[2] // query.shape[2]
    query, key = query.repeat_interleave(repeats, 2), key.repeat_interleave(repeats, 2)
    return rule(query, key, value, g=decay, beta=beta, use_qk_l2norm_in_kernel=True)[0]


def fla_delta_rule(compiled: bool = True) -> DeltaRule:
    """The kernel of flash-linear-attention (fla-core 0.6.0) with one piece of its backward pass replaced.

    On Hopper with triton 3.4 to 3.7.0 its gated `chunk_bwd_dqkwg` computes wrong gradients and refuses to run
    (flash-linear-attention, issue 640). `chunk_backward` below does that piece by batched matrix products.

    Args:
        compiled: whether that piece is compiled.
    """
    import fla.ops.common.chunk_o as chunk_output
    import fla.ops.gated_delta_rule.chunk as kernel

    piece = torch.compile(_chunk_backward, dynamic=False) if compiled else _chunk_backward

    def chunk_backward(
        q, k, v, do, h, dh, w=None, g=None, g_gamma=None, dv=None, scale=None,
        state_v_first=False, cu_seqlens=None, chunk_size=64, chunk_indices=None, **_,
    ):  # fmt: skip
        shapes_fit = k.shape[2:] == (KEY_HEADS, HEAD) and v.shape[2:] == (VALUE_HEADS, HEAD) and k.shape[1] % CHUNK == 0
        if cu_seqlens is not None or state_v_first or not shapes_fit or chunk_size != CHUNK:
            raise NotImplementedError("written for the shapes of mini: whole chunks of 64, no packed sequences")
        if abs(scale - SCALE) >= 1e-9:
            raise NotImplementedError("written for the scale of mini's heads")
        return piece(q, k, v, do, h, dh, w, g, dv)

    kernel.chunk_bwd_dqkwg = chunk_backward
    chunk_output.chunk_bwd_dqkwg = chunk_backward

    def rule(query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
        return kernel.chunk_gated_delta_rule(query, key, value, decay, beta, use_qk_l2norm_in_kernel=True)[0]

    return rule


def _chunked(x: Tensor) -> Tensor:
    """[B, T, heads, D] -> [B, chunks, heads, CHUNK, D]"""
    return x.view(x.shape[0], -1, CHUNK, x.shape[2], x.shape[3]).transpose(2, 3)


def _unchunked(x: Tensor) -> Tensor:
    """[B, chunks, heads, CHUNK, D] -> [B, T, heads, D]"""
    return x.transpose(2, 3).reshape(x.shape[0], -1, x.shape[2], x.shape[4])


def _chunk_backward(
    q: Tensor, k: Tensor, v: Tensor, do: Tensor, h: Tensor, dh: Tensor, w: Tensor, g: Tensor, dv: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, key, w and the cumulated log2 decay, inside chunks; the argument names are the kernel's.

    h, dh: the state entering each chunk and its gradient, [B, chunks, V, D, D]; g: log2 decay cumulated in chunks.
    """
    dtype, (batch, tokens) = q.dtype, k.shape[:2]
    query, key = (_chunked(x).repeat_interleave(SHARED, 2) for x in (q, k))
    value, d_out, d_value = _chunked(v), _chunked(do), _chunked(dv)
    h, dh = (x.view(batch, tokens // CHUNK, VALUE_HEADS, HEAD, HEAD) for x in (h, dh))
    decay = g.view(batch, tokens // CHUNK, CHUNK, VALUE_HEADS).transpose(2, 3).float()
    last = decay[..., -1:]
    d_scores = (d_out @ value.transpose(-1, -2)).float()
    d_query = (d_out @ h.to(dtype).transpose(-1, -2)).float() * (torch.exp2(decay) * SCALE)[..., None]
    d_key = (value @ dh.to(dtype).transpose(-1, -2)).float() * torch.exp2(last - decay)[..., None]
    d_w = -(d_value.to(dtype) @ h.to(dtype).transpose(-1, -2))
    d_last = (h.float() * dh.float()).sum((-1, -2)) * torch.exp2(last[..., 0]) + (d_key * key.float()).sum((-1, -2))
    causal = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    between = torch.exp2(torch.where(causal, decay[..., :, None] - decay[..., None, :], 0.0))
    d_scores = (torch.where(causal, d_scores * between, 0.0) * SCALE).to(dtype)
    d_query = d_query + (d_scores @ key).float()
    d_key = d_key + (d_scores.transpose(-1, -2) @ query).float()
    d_decay = (d_query * query.float()).sum(-1) - (d_key * key.float()).sum(-1)
    d_decay = torch.cat([d_decay[..., :-1], d_decay[..., -1:] + d_last[..., None]], -1)
    d_query, d_key = (_unchunked(x).view(batch, tokens, KEY_HEADS, SHARED, HEAD).sum(3) for x in (d_query, d_key))
    d_decay = d_decay.transpose(2, 3).reshape(batch, tokens, VALUE_HEADS)
    return d_query.to(q.dtype), d_key.to(k.dtype), _unchunked(d_w).to(w.dtype), d_decay
