"""The elementwise and matrix parts of `mini`'s layers, each one compiled as a whole on a GPU.

Shapes: B pages, N patches or L tokens, 256 values each (C); heads of 64. Parameters are fp32 and cast to the dtype of
the activations; norms, rotations and decays are computed in fp32.
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import Tensor

from tools.mini.architecture import HIDDEN
from tools.mini.delta_rule import HEAD, KEY_HEADS, VALUE_HEADS

VISION_HEADS = 4
QUERY_HEADS, KV_HEADS = 4, 2
EPS = 1e-6


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias in the dtype of x."""
    return F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Qwen3.5's RMS norm: the stored weight is the scale less one."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS) * (1 + weight)).to(x.dtype)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Layer norm in fp32."""
    return F.layer_norm(x.float(), (x.shape[-1],), weight, bias, EPS).to(x.dtype)


def _turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def vision_qkv(
    x: Tensor, norm: Tensor, norm_bias: Tensor, qkv: Tensor, qkv_bias: Tensor, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """BNC -> query, key (rotated) and value, [B, heads, N, 64]."""
    batch, patches = x.shape[:2]
    packed = linear(layer_norm(x, norm, norm_bias), qkv, qkv_bias)
    query, key, value = packed.view(batch, patches, 3, VISION_HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
    wide_q, wide_k = query.float(), key.float()
    query = (wide_q * cos + _turned(wide_q) * sin).to(x.dtype)
    key = (wide_k * cos + _turned(wide_k) * sin).to(x.dtype)
    return query, key, value


def vision_rest(
    x: Tensor, attended: Tensor, proj: Tensor, proj_bias: Tensor, norm: Tensor, norm_bias: Tensor,
    fc1: Tensor, fc1_bias: Tensor, fc2: Tensor, fc2_bias: Tensor,
) -> Tensor:  # fmt: skip
    """The rest of a vision block behind its attention."""
    x = x + linear(attended.transpose(1, 2).reshape(x.shape), proj, proj_bias)
    inner = F.gelu(linear(layer_norm(x, norm, norm_bias), fc1, fc1_bias), approximate="tanh")
    return x + linear(inner, fc2, fc2_bias)


def delta_inputs(
    x: Tensor, norm: Tensor, w_qkv: Tensor, w_z: Tensor, w_b: Tensor, w_a: Tensor,
    conv: Tensor, a_log: Tensor, dt_bias: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """BLC -> query, key, value, log decay and beta for the delta rule, and the output gate."""
    batch, length = x.shape[:2]
    h = rms_norm(x, norm)
    mixed = linear(h, w_qkv)
    taps = conv[:, 0].to(mixed.dtype)
    padded = F.pad(mixed, (0, 0, 3, 0))
    mixed = (
        padded[:, 0:length] * taps[:, 0]
        + padded[:, 1 : length + 1] * taps[:, 1]
        + padded[:, 2 : length + 2] * taps[:, 2]
        + padded[:, 3 : length + 3] * taps[:, 3]
    )
    keys = KEY_HEADS * HEAD
    query, key, value = F.silu(mixed).split([keys, keys, VALUE_HEADS * HEAD], -1)
    beta = linear(h, w_b).sigmoid()
    decay = -a_log.float().exp() * F.softplus(linear(h, w_a).float() + dt_bias)
    query, key = (part.reshape(batch, length, KEY_HEADS, HEAD).contiguous() for part in (query, key))
    value = value.reshape(batch, length, VALUE_HEADS, HEAD).contiguous()
    return query, key, value, decay, beta, linear(h, w_z)


def _with_mlp(x: Tensor, norm: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    h = rms_norm(x, norm)
    return x + linear(F.silu(linear(h, gate)) * linear(h, up), down)


def delta_rest(
    x: Tensor, output: Tensor, z: Tensor, norm: Tensor, w_out: Tensor,
    mlp_norm: Tensor, gate: Tensor, up: Tensor, down: Tensor,
) -> Tensor:  # fmt: skip
    """The rest of a linear-attention layer behind its delta rule."""
    batch, length = x.shape[:2]
    wide = output.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
    wide = (norm * wide) * F.silu(z.view(batch, length, VALUE_HEADS, HEAD).float())
    x = x + linear(wide.to(x.dtype).reshape(batch, length, HIDDEN), w_out)
    return _with_mlp(x, mlp_norm, gate, up, down)


def attention_inputs(
    x: Tensor, norm: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
    q_norm: Tensor, k_norm: Tensor, cos: Tensor, sin: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """BLC -> query, key, value [B, heads, L, 64] (each key head for two queries) and the output gate."""
    batch, length = x.shape[:2]
    h = rms_norm(x, norm)
    query, gate = linear(h, w_q).view(batch, length, QUERY_HEADS, 2 * HEAD).chunk(2, -1)
    key = linear(h, w_k).view(batch, length, KV_HEADS, HEAD)
    value = linear(h, w_v).view(batch, length, KV_HEADS, HEAD)
    rotary = cos.shape[-1]

    def rotated(part: Tensor, part_norm: Tensor) -> Tensor:
        part = rms_norm(part, part_norm).transpose(1, 2)
        turned = part[..., :rotary] * cos + _turned(part[..., :rotary]) * sin
        return torch.cat([turned, part[..., rotary:]], -1).to(x.dtype)

    repeats = QUERY_HEADS // KV_HEADS
    key = rotated(key, k_norm).repeat_interleave(repeats, 1).contiguous()
    value = value.transpose(1, 2).repeat_interleave(repeats, 1).contiguous()
    return rotated(query, q_norm).contiguous(), key, value, gate.reshape(batch, length, HIDDEN)


def attention_rest(
    x: Tensor, attended: Tensor, gate: Tensor, w_o: Tensor,
    mlp_norm: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor,
) -> Tensor:  # fmt: skip
    """The rest of a full-attention layer behind its attention."""
    gated = attended.transpose(1, 2).reshape(x.shape) * torch.sigmoid(gate)
    return _with_mlp(x + linear(gated, w_o), mlp_norm, w_gate, w_up, w_down)


def loss_and_hits(hidden: Tensor, norm: Tensor, embedding: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """[tokens, C] -> the summed cross-entropy (nats) and how many tokens the largest logit gets right."""
    logits = F.linear(rms_norm(hidden, norm), embedding.to(hidden.dtype)).float()
    return F.cross_entropy(logits, labels, reduction="sum"), (logits.argmax(-1) == labels).sum()


COMPILED = ("vision_qkv", "vision_rest", "delta_inputs", "delta_rest", "attention_inputs", "attention_rest")


def compile_pieces() -> None:
    """Replaces the pieces by compiled ones, for every shape at once."""
    import torch._dynamo

    torch._dynamo.config.cache_size_limit = 64
    module = sys.modules[__name__]
    for name in COMPILED:
        setattr(module, name, torch.compile(getattr(module, name), dynamic=True))
