"""The elementwise and matrix parts of `mini`'s layers, each one compiled as a whole on a GPU.

Shapes: N tokens or P patches of packed pages, 256 values each (C); heads of 64. Parameters are fp32 and cast to the
dtype of the activations; norms, rotations and decays are computed in fp32.
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

FORGET = -40.0
"""Log decay at the first token of a page: exp(-40) wipes the state. Two in one chunk of 64 stay within fp32's range."""

AXES = (0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0)
"""Which position (time, row, column) turns each of the 16 frequencies: interleaved sections of 6, 5 and 5."""


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


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates the two halves of the last axis against each other; cos and sin have half its size."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def text_rotation(positions: Tensor, frequencies: Tensor, axes: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """[3, N] positions, [16] frequencies, AXES as a tensor -> cos, sin [N, 1, 16] in the dtype of `like`."""
    angles = positions.float()[axes].T * frequencies
    return angles.cos()[:, None].to(like.dtype), angles.sin()[:, None].to(like.dtype)


def vision_rotation(places: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """[4, P] places, [16] frequencies -> cos, sin [P, 1, 32]."""
    angles = torch.cat([places[0].float()[:, None] * frequencies, places[1].float()[:, None] * frequencies], -1)
    return angles.cos()[:, None], angles.sin()[:, None]


def _taps(place: Tensor, size: Tensor, side: int) -> Tensor:
    """[P] rows (or columns) of grids of `size` -> [P, side] weights of linear interpolation in a table."""
    source = place.float() * (side - 1) / (size.float() - 1).clamp(min=1)
    return (1 - (source[:, None] - torch.arange(side, device=place.device)).abs()).clamp(min=0)


def embed_patches(pixels: Tensor, weight: Tensor, bias: Tensor, table: Tensor, places: Tensor) -> Tensor:
    """Patch embedding plus the position table, interpolated bilinearly (as a matrix product: gathers train slowly).

    Args:
        pixels: [P, 768] in -1..1; weight: [C, 768]; bias: [C]; table: [side * side, C].
        places: [4, P]: row, column, and the page's rows and columns of patches.
    """
    side = round(table.shape[0] ** 0.5)
    rows, columns = _taps(places[0], places[2], side), _taps(places[1], places[3], side)
    mixture = (rows[:, :, None] * columns[:, None]).flatten(1).to(pixels.dtype)
    return linear(pixels, weight, bias) + mixture @ table.to(pixels.dtype)


def vision_qkv(
    x: Tensor, norm: Tensor, norm_bias: Tensor, qkv: Tensor, qkv_bias: Tensor, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """[P, C] -> query, key (rotated) and value, [P, heads, 64]."""
    packed = linear(layer_norm(x, norm, norm_bias), qkv, qkv_bias)
    query, key, value = packed.view(x.shape[0], 3, VISION_HEADS, -1).unbind(1)
    query, key = (_turned(part.float(), cos, sin).to(x.dtype) for part in (query, key))
    return query.contiguous(), key.contiguous(), value.contiguous()


def vision_rest(
    x: Tensor, attended: Tensor, proj: Tensor, proj_bias: Tensor, norm: Tensor, norm_bias: Tensor,
    fc1: Tensor, fc1_bias: Tensor, fc2: Tensor, fc2_bias: Tensor,
) -> Tensor:  # fmt: skip
    """The rest of a vision block behind its attention."""
    x = x + linear(attended.reshape(x.shape), proj, proj_bias)
    inner = F.gelu(linear(layer_norm(x, norm, norm_bias), fc1, fc1_bias), approximate="tanh")
    return x + linear(inner, fc2, fc2_bias)


def merge(x: Tensor, norm: Tensor, norm_bias: Tensor, fc1: Tensor, b1: Tensor, fc2: Tensor, b2: Tensor) -> Tensor:
    """[P, C] -> [P / 4, C]: four patches become one image token."""
    x = layer_norm(x, norm, norm_bias).view(-1, 4 * HIDDEN)
    return linear(F.gelu(linear(x, fc1, b1)), fc2, b2)


def delta_inputs(
    x: Tensor, inside: Tensor, norm: Tensor, w_qkv: Tensor, w_z: Tensor, w_b: Tensor, w_a: Tensor,
    conv: Tensor, a_log: Tensor, dt_bias: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """[N, C] -> query, key, value, log decay and beta for the delta rule, and the output gate.

    `inside` [N] is each token's number in its page: the convolution does not reach before the page's first token,
    and there the state is wiped.
    """
    tokens = x.shape[0]
    h = rms_norm(x, norm)
    mixed = linear(h, w_qkv)
    taps = conv[:, 0].to(mixed.dtype)
    padded = F.pad(mixed, (0, 0, 3, 0))
    mixed = mixed * taps[:, 3]
    for back in (1, 2, 3):
        seen = (inside >= back)[:, None]
        mixed = mixed + torch.where(seen, padded[3 - back : tokens + 3 - back], 0) * taps[:, 3 - back]
    keys = KEY_HEADS * HEAD
    query, key, value = F.silu(mixed).split([keys, keys, VALUE_HEADS * HEAD], -1)
    beta = linear(h, w_b).sigmoid()
    decay = -a_log.float().exp() * F.softplus(linear(h, w_a).float() + dt_bias)
    decay = torch.where((inside == 0)[:, None], FORGET, decay)
    query, key = (part.reshape(tokens, KEY_HEADS, HEAD).contiguous() for part in (query, key))
    value = value.reshape(tokens, VALUE_HEADS, HEAD).contiguous()
    return query, key, value, decay, beta, linear(h, w_z)


def _with_mlp(x: Tensor, norm: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    h = rms_norm(x, norm)
    return x + linear(F.silu(linear(h, gate)) * linear(h, up), down)


def delta_rest(
    x: Tensor, output: Tensor, z: Tensor, norm: Tensor, w_out: Tensor,
    mlp_norm: Tensor, gate: Tensor, up: Tensor, down: Tensor,
) -> Tensor:  # fmt: skip
    """The rest of a linear-attention layer behind its delta rule; output: [N, heads, 64]."""
    wide = output.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
    wide = (norm * wide) * F.silu(z.view(output.shape).float())
    x = x + linear(wide.to(x.dtype).reshape(x.shape), w_out)
    return _with_mlp(x, mlp_norm, gate, up, down)


def attention_inputs(
    x: Tensor, norm: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
    q_norm: Tensor, k_norm: Tensor, cos: Tensor, sin: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """[N, C] -> query, key, value [N, heads, 64] (each key head for two queries) and the output gate [N, C]."""
    tokens = x.shape[0]
    h = rms_norm(x, norm)
    query, gate = linear(h, w_q).view(tokens, QUERY_HEADS, 2 * HEAD).chunk(2, -1)
    key = linear(h, w_k).view(tokens, KV_HEADS, HEAD)
    value = linear(h, w_v).view(tokens, KV_HEADS, HEAD)
    rotary = 2 * cos.shape[-1]

    def rotated(part: Tensor, part_norm: Tensor) -> Tensor:
        part = rms_norm(part, part_norm)
        return torch.cat([_turned(part[..., :rotary], cos, sin), part[..., rotary:]], -1).to(x.dtype)

    repeats = QUERY_HEADS // KV_HEADS
    key = rotated(key, k_norm).repeat_interleave(repeats, 1).contiguous()
    value = value.repeat_interleave(repeats, 1).contiguous()
    return rotated(query, q_norm).contiguous(), key, value, gate.reshape(tokens, HIDDEN)


def attention_rest(
    x: Tensor, attended: Tensor, gate: Tensor, w_o: Tensor,
    mlp_norm: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor,
) -> Tensor:  # fmt: skip
    """The rest of a full-attention layer behind its attention."""
    gated = attended.reshape(x.shape) * torch.sigmoid(gate)
    return _with_mlp(x + linear(gated, w_o), mlp_norm, w_gate, w_up, w_down)


def mtp_inputs(embedded: Tensor, hidden: Tensor, norm_embedded: Tensor, norm_hidden: Tensor, fc: Tensor) -> Tensor:
    """What the multi-token-prediction layer starts from: [N, C] of the next token and of this one -> [N, C]."""
    return linear(torch.cat([rms_norm(embedded, norm_embedded), rms_norm(hidden, norm_hidden)], -1), fc)


def loss_and_hits(hidden: Tensor, norm: Tensor, embedding: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """[M, C] -> the summed cross-entropy (nats) and how many tokens the largest logit gets right; -100 is no label."""
    logits = F.linear(rms_norm(hidden, norm), embedding.to(hidden.dtype)).float()
    loss = F.cross_entropy(logits, labels, reduction="sum", ignore_index=-100)
    return loss, (logits.argmax(-1) == labels).sum()


COMPILED = (
    "embed_patches", "vision_rotation", "text_rotation", "vision_qkv", "vision_rest", "merge", "delta_inputs",
    "delta_rest", "attention_inputs", "attention_rest", "mtp_inputs", "loss_and_hits",
)  # fmt: skip


_plain = {name: globals()[name] for name in COMPILED}


def compile_pieces() -> None:
    """Replaces the pieces by compiled ones; every shape is fixed, so each compiles once (loss_and_hits twice)."""
    import torch._dynamo

    torch._dynamo.config.cache_size_limit = 64
    for name, piece in _plain.items():
        setattr(sys.modules[__name__], name, torch.compile(piece, dynamic=False))


def do_not_compile() -> None:
    """Takes `compile_pieces` back."""
    for name, piece in _plain.items():
        setattr(sys.modules[__name__], name, piece)
