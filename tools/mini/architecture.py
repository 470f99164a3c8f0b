"""The shape of `mini` and how its parameters begin.

The weights of the exported model are bf16 and stay within 28 MiB, the multi-token-prediction layer included.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import Qwen3_5Config, Qwen3_5TextConfig

HIDDEN = 256
VOCABULARY = 4096
PATCH = 16
"""Pixels a side; 2 x 2 patches are merged to an image token."""

TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 512,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "full_attention_interval": 4,
    "mtp_num_hidden_layers": 1,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [6, 5, 5],
        "mrope_interleaved": True,
    },
}
VISION = {
    "depth": 6,
    "hidden_size": HIDDEN,
    "intermediate_size": 512,
    "num_heads": 4,
    "in_channels": 3,
    "patch_size": PATCH,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": HIDDEN,
    "num_position_embeddings": 144,
    "hidden_act": "gelu_pytorch_tanh",
}


def token_ids(base: Path) -> dict[str, int]:
    """Ids of the added tokens, from the `tokenizer_config.json` in `base`."""
    added = json.loads((base / "tokenizer_config.json").read_text("utf-8"))["added_tokens_decoder"]
    return {token["content"]: int(number) for number, token in added.items()}


def make_config(base: Path) -> Qwen3_5Config:
    """The configuration of `mini` with the token ids of the tokenizer in `base`."""
    ids = token_ids(base)
    text = {**TEXT, "eos_token_id": ids["<|im_end|>"], "pad_token_id": ids["<|endoftext|>"]}
    return Qwen3_5Config(
        text_config=text,
        vision_config=dict(VISION),
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )


class Mtp(nn.Module):
    """The multi-token-prediction layer: transformers ignores it, vLLM drafts with it.

    Its parameters have the names of Qwen3.5's checkpoints behind `mtp.`: `fc`, one full-attention layer `layers.0`,
    `norm`, `pre_fc_norm_hidden` and `pre_fc_norm_embedding`. The arithmetic is in model.py.
    """

    def __init__(self, config: Qwen3_5TextConfig) -> None:
        from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5DecoderLayer, Qwen3_5RMSNorm

        super().__init__()
        layer_types = config.layer_types or []
        full = layer_types.index("full_attention")
        width, eps = config.hidden_size, config.rms_norm_eps
        self.fc = nn.Linear(2 * width, width, bias=False)
        self.layers = nn.ModuleList([Qwen3_5DecoderLayer(config, full)])
        self.norm = Qwen3_5RMSNorm(width, eps=eps)
        self.pre_fc_norm_hidden = Qwen3_5RMSNorm(width, eps=eps)
        self.pre_fc_norm_embedding = Qwen3_5RMSNorm(width, eps=eps)


@torch.no_grad()
def initialize(model: nn.Module, seed: int = 1) -> None:
    """Draws every parameter that training starts from, in place.

    Fan-in scaled matrices; small outputs of the residual branches; and for Gated DeltaNet the decay of
    flash-linear-attention (A in 1..16, dt in 0.001..0.1), which remembers for long: transformers' own makes layers
    that forget within a few tokens.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        value = _initial(name, parameter, generator)
        if value is not None:
            parameter.copy_(value)


def _initial(name: str, parameter: Tensor, generator: torch.Generator) -> Tensor | None:
    shape = parameter.shape
    if name.endswith("A_log"):
        return torch.log(torch.empty(shape).uniform_(1, 16, generator=generator))
    if name.endswith("dt_bias"):
        low, high = math.log(0.001), math.log(0.1)
        dt = torch.exp(torch.rand(shape, generator=generator) * (high - low) + low)
        return dt + torch.log(-torch.expm1(-dt))  # the inverse of softplus
    if "embed_tokens" in name:
        return torch.randn(shape, generator=generator) * 0.04
    if "pos_embed" in name:
        return torch.randn(shape, generator=generator) * 0.02
    if "conv1d" in name:
        return torch.empty(shape).uniform_(-0.5, 0.5, generator=generator)
    if parameter.ndim >= 2 and "patch_embed" not in name:
        scale = 0.6 / math.sqrt(shape[1])
        if _ends_a_branch(name):
            scale *= 0.2
        return torch.randn(shape, generator=generator) * scale
    return None


def _ends_a_branch(name: str) -> bool:
    inside = any(part in name for part in ("o_proj", "out_proj", "down_proj", "attn.proj.", "blocks"))
    return inside and ("linear_fc2" in name or ("proj" in name and "qkv" not in name))
