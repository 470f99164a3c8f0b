"""`mini` in training: a batched forward pass over the very parameters of the Hugging Face model.

The forward of transformers is exact but slow to train with (packed vision, Python loops, norms one by one). `Net`
computes the same function for a batch of equally large grey pages; tests/tools/test_mini_net.py holds the two together.

Shapes: B pages of H x W pixels, N = H * W / 1024 image tokens, L tokens in a sequence, 256 values a token (C).
A sequence is 4 tokens of prompt, N image tokens, 12 tokens of prompt, the transcription, `<|im_end|>`, padding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ocria_compress.pages import torchvision_cpu
from tools.mini import pieces
from tools.mini.architecture import HIDDEN, IMAGE_TOKEN, PATCH, initialize, make_config, token_ids
from tools.mini.delta_rule import DeltaRule, plain_delta_rule

HEAD_TOKENS = 4
PROMPT_TOKENS = 16


class Geometry(NamedTuple):
    """What a page size and sequence length fix: position embedding, rotations, image tokens."""

    position_indices: Tensor
    position_weights: Tensor
    vision_cos: Tensor
    vision_sin: Tensor
    text_cos: Tensor
    text_sin: Tensor
    image_tokens: int


class Net(nn.Module):
    """The model that is trained.

    Args:
        base: a folder with `mini`'s tokenizer.
        dtype: of the activations; parameters are fp32.
        delta_rule: of the linear-attention layers; plain torch by default.
    """

    def __init__(self, base: Path, dtype: torch.dtype = torch.bfloat16, delta_rule: DeltaRule | None = None) -> None:
        torchvision_cpu.activate()
        from transformers import Qwen3_5ForConditionalGeneration

        super().__init__()
        self.config, self.ids = make_config(base), token_ids(base)
        self.hf: Any = Qwen3_5ForConditionalGeneration(self.config).float()
        initialize(self.hf)
        self.dtype = dtype
        self.delta_rule = delta_rule or plain_delta_rule
        generator = torch.Generator().manual_seed(2)
        # Pages are grey: a patch is 16 x 16 values, and the 3 colours x 2 frames of the exported weight are equal.
        self.grey_patch = nn.Parameter(torch.randn(HIDDEN, PATCH * PATCH, generator=generator) * 0.06)
        projection = self.hf.model.visual.patch_embed.proj
        projection.weight.requires_grad_(False)
        projection.bias.data.zero_()
        self._geometries: dict[tuple[int, int, int], Geometry] = {}
        self.sync()

    @torch.no_grad()
    def sync(self) -> None:
        """Writes the grey patch embedding into the Hugging Face model."""
        weight = self.hf.model.visual.patch_embed.proj.weight
        weight.copy_((self.grey_patch / 6).view(HIDDEN, 1, 1, PATCH, PATCH).expand_as(weight))

    def geometry(self, height: int, width: int, length: int, device: torch.device) -> Geometry:
        """Of one page size (pixels) and sequence length; made once."""
        key = (height, width, length)
        if key not in self._geometries:
            self._geometries[key] = self._make_geometry(height, width, length, device)
        return self._geometries[key]

    def _make_geometry(self, height: int, width: int, length: int, device: torch.device) -> Geometry:
        from transformers.vision_utils import get_vision_interpolation_indices_and_weights, get_vision_position_ids

        grid = torch.tensor([[1, height // PATCH, width // PATCH]])
        image_tokens = height * width // IMAGE_TOKEN**2
        visual, language = self.hf.model.visual, self.hf.model.language_model
        indices, weights = get_vision_interpolation_indices_and_weights(
            grid,
            num_grid_per_side=visual.num_grid_per_side,
            mode=visual.interpolation_mode,
            align_corners=True,
            spatial_merge_size=2,
        )
        angles = get_vision_position_ids(grid, 2)[..., None].float() * visual.rotary_pos_emb.inv_freq.float().cpu()
        angles = torch.cat([angles[:, 0], angles[:, 1]], -1)
        angles = torch.cat([angles, angles], -1)
        kinds = torch.zeros(1, length, dtype=torch.int32)
        kinds[:, HEAD_TOKENS : HEAD_TOKENS + image_tokens] = 1
        blank = torch.zeros(1, length, dtype=torch.long)
        positions, _ = self.hf.model.get_rope_index(blank, kinds, image_grid_thw=grid)
        where = language.rotary_emb.inv_freq.device
        cos, sin = language.rotary_emb(torch.zeros(1, device=where), positions.to(where))
        return Geometry(
            indices.to(device),
            weights.float().to(device),
            angles.cos().to(device),
            angles.sin().to(device),
            cos[:, None].to(device, self.dtype),
            sin[:, None].to(device, self.dtype),
            image_tokens,
        )

    def vision(self, pixels: Tensor, geometry: Geometry) -> Tensor:
        """[B, H, W] -> [B, N, C]"""
        visual = self.hf.model.visual
        batch, height, width = pixels.shape
        x = pixels.view(batch, height // 32, 2, PATCH, width // 32, 2, PATCH)
        x = x.permute(0, 1, 4, 2, 5, 3, 6).reshape(batch, -1, PATCH * PATCH)
        x = pieces.linear(x, self.grey_patch, visual.patch_embed.proj.bias)
        position = visual.pos_embed.weight[geometry.position_indices] * geometry.position_weights[..., None]
        x = x + position.sum(1).to(self.dtype)
        for block in visual.blocks:
            norm1, norm2, qkv, proj = block.norm1, block.norm2, block.attn.qkv, block.attn.proj
            fc1, fc2 = block.mlp.linear_fc1, block.mlp.linear_fc2
            query, key, value = pieces.vision_qkv(
                x, norm1.weight, norm1.bias, qkv.weight, qkv.bias, geometry.vision_cos, geometry.vision_sin
            )
            attended = F.scaled_dot_product_attention(query, key, value)
            x = pieces.vision_rest(
                x, attended, proj.weight, proj.bias, norm2.weight, norm2.bias,
                fc1.weight, fc1.bias, fc2.weight, fc2.bias,
            )  # fmt: skip
        merger = visual.merger
        x = pieces.layer_norm(x, merger.norm.weight, merger.norm.bias).view(batch, -1, 4 * HIDDEN)
        x = F.gelu(pieces.linear(x, merger.linear_fc1.weight, merger.linear_fc1.bias))
        return pieces.linear(x, merger.linear_fc2.weight, merger.linear_fc2.bias)

    def hidden(self, pixels: Tensor, ids: Tensor) -> Tensor:
        """The hidden states before the last norm.

        Args:
            pixels: [B, H, W], -1 (black) to 1, in the net's dtype.
            ids: [B, L].

        Returns:
            [B, L, C]
        """
        _, height, width = pixels.shape
        geometry = self.geometry(height, width, ids.shape[1], ids.device)
        language = self.hf.model.language_model
        embedded = F.embedding(ids, language.embed_tokens.weight.to(self.dtype))
        behind = embedded[:, HEAD_TOKENS + geometry.image_tokens :]
        x = torch.cat([embedded[:, :HEAD_TOKENS], self.vision(pixels, geometry), behind], 1)
        for layer in language.layers:
            linear_attention = layer.block_type == "linear_attention"
            x = self._delta_layer(layer, x) if linear_attention else self._attention_layer(layer, x, geometry)
        return x

    def _delta_layer(self, layer: Any, x: Tensor) -> Tensor:
        a = layer.linear_attn
        *inputs, z = pieces.delta_inputs(
            x, layer.input_layernorm.weight, a.in_proj_qkv.weight, a.in_proj_z.weight, a.in_proj_b.weight,
            a.in_proj_a.weight, a.conv1d.weight, a.A_log, a.dt_bias,
        )  # fmt: skip
        return pieces.delta_rest(x, self.delta_rule(*inputs), z, a.norm.weight, a.out_proj.weight, *_mlp(layer))

    def _attention_layer(self, layer: Any, x: Tensor, geometry: Geometry) -> Tensor:
        a = layer.self_attn
        query, key, value, gate = pieces.attention_inputs(
            x, layer.input_layernorm.weight, a.q_proj.weight, a.k_proj.weight, a.v_proj.weight,
            a.q_norm.weight, a.k_norm.weight, geometry.text_cos, geometry.text_sin,
        )  # fmt: skip
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return pieces.attention_rest(x, attended, gate, a.o_proj.weight, *_mlp(layer))

    def logits(self, pixels: Tensor, ids: Tensor) -> Tensor:
        """[B, L, vocabulary]"""
        language = self.hf.model.language_model
        normed = pieces.rms_norm(self.hidden(pixels, ids), language.norm.weight)
        return pieces.linear(normed, language.embed_tokens.weight)

    def loss(self, pixels: Tensor, ids: Tensor, lengths: Tensor) -> tuple[Tensor, int, Tensor]:
        """Over the transcriptions.

        Args:
            pixels: [B, H, W]; ids: [B, L].
            lengths: [B], tokens of each transcription, its `<|im_end|>` included.

        Returns:
            The summed cross-entropy in nats, how many tokens that is, and how many were predicted right.
        """
        start = pixels.shape[1] * pixels.shape[2] // IMAGE_TOKEN**2 + PROMPT_TOKENS
        language = self.hf.model.language_model
        x = self.hidden(pixels, ids)[:, start - 1 : -1]
        labels = ids[:, start:]
        counted = torch.arange(labels.shape[1], device=ids.device)[None] < lengths[:, None]
        index = counted.flatten().nonzero()[:, 0]
        loss, hits = pieces.loss_and_hits(
            x.reshape(-1, x.shape[-1])[index],
            language.norm.weight,
            language.embed_tokens.weight,
            labels.flatten()[index],
        )
        return loss, index.numel(), hits


def _mlp(layer: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    mlp = layer.mlp
    return layer.post_attention_layernorm.weight, mlp.gate_proj.weight, mlp.up_proj.weight, mlp.down_proj.weight
