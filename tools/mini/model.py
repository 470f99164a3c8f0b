"""`mini` in training: a packed forward pass over the very parameters of the Hugging Face model.

The forward of transformers is exact but slow to train with (Python loops, norms one by one, other shapes for every
page). `Net` computes the same function for rows of pages packed one behind the other, in shapes that never change;
tests/tools/test_mini_net.py holds the two together.

Shapes: N = rows x length tokens, P patches, P / 4 image tokens, M positions with a loss, 256 values each (C).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ocria_compress.pages import torchvision_cpu
from tools.mini import pieces
from tools.mini.architecture import HIDDEN, PATCH, Mtp, initialize, make_config, token_ids
from tools.mini.attention import Attention, Pages, by_page
from tools.mini.delta_rule import HEAD, DeltaRule, plain_delta_rule


class Inputs(NamedTuple):
    """A packed batch on the device; packing.py says what each is.

    Attributes:
        pixels: [P, 768], -1 to 1, in the net's dtype: 16 x 16 x 3 values of a patch, colour last.
        places: [4, P] integers; patch_bounds: [pages + 1] int32.
        ids, inside: [N]; positions: [3, N]; bounds: [pages + 1] int32.
        image_to: [P / 4]: the token that each image token is; N: none.
        targets, labels, next_labels: [M].
    """

    pixels: Tensor
    places: Tensor
    patch_bounds: Tensor
    ids: Tensor
    inside: Tensor
    positions: Tensor
    bounds: Tensor
    image_to: Tensor
    targets: Tensor
    labels: Tensor
    next_labels: Tensor


class Losses(NamedTuple):
    """Summed cross-entropies in nats and numbers of right guesses; of the MTP layer only where it was asked for."""

    loss: Tensor
    hits: Tensor
    mtp_loss: Tensor | None = None
    mtp_hits: Tensor | None = None


class Net(nn.Module):
    """The model that is trained.

    Args:
        base: a folder with `mini`'s tokenizer.
        length: tokens of a row.
        longest, longest_patches: of one page.
        dtype: of the activations; parameters are fp32.
        delta_rule, attention: how the layers are computed; plain torch by default.
    """

    def __init__(
        self, base: Path, length: int, longest: int = 1600, longest_patches: int = 4096,
        dtype: torch.dtype = torch.bfloat16, delta_rule: DeltaRule | None = None, attention: Attention | None = None,
    ) -> None:  # fmt: skip
        torchvision_cpu.activate()
        from transformers import Qwen3_5ForConditionalGeneration

        super().__init__()
        self.config, self.ids = make_config(base), token_ids(base)
        self.hf: Any = Qwen3_5ForConditionalGeneration(self.config).float()
        self.mtp: Any = Mtp(self.config.text_config).float()
        initialize(self.hf)
        initialize(self.mtp, seed=3)
        self.length, self.longest, self.longest_patches = length, longest, longest_patches
        self.dtype = dtype
        self.delta_rule = delta_rule or plain_delta_rule
        self.attention = attention or by_page()
        self.patch = nn.Parameter(_first_patch_weight())
        projection = self.hf.model.visual.patch_embed.proj
        projection.weight.requires_grad_(False)
        projection.bias.data.zero_()
        self.register_buffer("axes", torch.tensor(pieces.AXES), persistent=False)
        self.sync()

    @torch.no_grad()
    def sync(self) -> None:
        """Writes the patch embedding into the Hugging Face model: half of it for each of a page's two equal frames."""
        weight = self.hf.model.visual.patch_embed.proj.weight
        halves = (self.patch / 2).view(HIDDEN, PATCH, PATCH, 3).permute(0, 3, 1, 2)
        weight.copy_(halves[:, :, None].expand_as(weight))

    def exported(self) -> dict[str, Tensor]:
        """All tensors of a checkpoint under their names in it, fp32."""
        self.sync()
        tensors = {name: t.detach() for name, t in self.hf.state_dict().items() if name != "lm_head.weight"}
        return tensors | {f"mtp.{name}": tensor.detach() for name, tensor in self.mtp.state_dict().items()}

    @torch.no_grad()
    def load_exported(self, tensors: dict[str, Tensor]) -> None:
        """Takes the tensors of a checkpoint over.

        Raises:
            ValueError: they are not of this model.
        """
        mtp = {name[4:]: tensor.float() for name, tensor in tensors.items() if name.startswith("mtp.")}
        rest = {name: tensor.float() for name, tensor in tensors.items() if not name.startswith("mtp.")}
        found = self.hf.load_state_dict(rest, strict=False)
        if found.unexpected_keys or set(found.missing_keys) - {"lm_head.weight"}:
            raise ValueError(f"these tensors are not of this model: {found}")
        self.mtp.load_state_dict(mtp)
        weight = self.hf.model.visual.patch_embed.proj.weight
        self.patch.copy_(weight.sum(2).permute(0, 2, 3, 1).reshape(HIDDEN, -1))

    def vision(self, inputs: Inputs) -> Tensor:
        """The image tokens, [P / 4, C]."""
        visual = self.hf.model.visual
        pages = self.attention.pages(inputs.patch_bounds, inputs.pixels.shape[0], self.longest_patches, causal=False)
        cos, sin = pieces.vision_rotation(inputs.places, visual.rotary_pos_emb.inv_freq)
        x = pieces.embed_patches(
            inputs.pixels, self.patch, visual.patch_embed.proj.bias, visual.pos_embed.weight, inputs.places
        )
        for block in visual.blocks:
            norm1, norm2, qkv, proj = block.norm1, block.norm2, block.attn.qkv, block.attn.proj
            fc1, fc2 = block.mlp.linear_fc1, block.mlp.linear_fc2
            query, key, value = pieces.vision_qkv(x, norm1.weight, norm1.bias, qkv.weight, qkv.bias, cos, sin)
            attended = self.attention(query, key, value, pages)
            x = pieces.vision_rest(
                x, attended, proj.weight, proj.bias, norm2.weight, norm2.bias,
                fc1.weight, fc1.bias, fc2.weight, fc2.bias,
            )  # fmt: skip
        m = visual.merger
        return pieces.merge(
            x, m.norm.weight, m.norm.bias, m.linear_fc1.weight, m.linear_fc1.bias,
            m.linear_fc2.weight, m.linear_fc2.bias,
        )  # fmt: skip

    def embedded(self, inputs: Inputs) -> Tensor:
        """What the decoder starts from: embeddings of the text, image tokens in their places, [N, C]."""
        tokens = inputs.ids.shape[0]
        ids = F.pad(inputs.ids, (0, 1))  # one row more takes the image tokens that no page has
        text = F.embedding(ids, self.hf.model.language_model.embed_tokens.weight).to(self.dtype)
        return text.index_copy(0, inputs.image_to, self.vision(inputs))[:tokens]

    def _rotation(self, inputs: Inputs, like: Tensor) -> tuple[Tensor, Tensor]:
        frequencies = self.hf.model.language_model.rotary_emb.inv_freq
        return pieces.text_rotation(inputs.positions, frequencies, self.axes, like)

    def hidden(self, inputs: Inputs) -> Tensor:
        """The hidden states before the last norm, [N, C]."""
        return self._decoded(self.embedded(inputs), inputs)

    def _text_pages(self, inputs: Inputs) -> Pages:
        return self.attention.pages(inputs.bounds, inputs.ids.shape[0], self.longest, causal=True)

    def _decoded(self, x: Tensor, inputs: Inputs) -> Tensor:
        rotation, pages = self._rotation(inputs, x), self._text_pages(inputs)
        for layer in self.hf.model.language_model.layers:
            if layer.block_type == "linear_attention":
                x = self._delta_layer(layer, x, inputs.inside)
            else:
                x = self._attention_layer(layer, x, rotation, pages)
        return x

    def _delta_layer(self, layer: Any, x: Tensor, inside: Tensor) -> Tensor:
        a = layer.linear_attn
        *packed, z = pieces.delta_inputs(
            x, inside, layer.input_layernorm.weight, a.in_proj_qkv.weight, a.in_proj_z.weight, a.in_proj_b.weight,
            a.in_proj_a.weight, a.conv1d.weight, a.A_log, a.dt_bias,
        )  # fmt: skip
        rows = [part.view(-1, self.length, *part.shape[1:]) for part in packed]
        output = self.delta_rule(rows[0], rows[1], rows[2], rows[3], rows[4]).reshape(x.shape[0], -1, HEAD)
        return pieces.delta_rest(x, output, z, a.norm.weight, a.out_proj.weight, *_mlp(layer))

    def _attention_layer(self, layer: Any, x: Tensor, rotation: tuple[Tensor, Tensor], pages: Pages) -> Tensor:
        a = layer.self_attn
        query, key, value, gate = pieces.attention_inputs(
            x, layer.input_layernorm.weight, a.q_proj.weight, a.k_proj.weight, a.v_proj.weight,
            a.q_norm.weight, a.k_norm.weight, *rotation,
        )  # fmt: skip
        attended = self.attention(query, key, value, pages)
        return pieces.attention_rest(x, attended, gate, a.o_proj.weight, *_mlp(layer))

    def mtp_hidden(self, embedded: Tensor, hidden: Tensor, inputs: Inputs) -> Tensor:
        """The multi-token-prediction layer before its last norm, as vLLM's qwen3_5_mtp.py computes it.

        At each position: the model's normed hidden state there and the embedding (or image token) of the next
        position, at this position's place. Nothing here reaches the model's own weights.

        Args:
            embedded: what the decoder started from; hidden: what came out, before the last norm; [N, C].

        Returns:
            [N, C]: at position t, behind `mtp.norm` and the head, it predicts the token at t + 2.
        """
        norm = self.hf.model.language_model.norm.weight.detach()
        normed = pieces.rms_norm(hidden.detach(), norm)
        following = embedded.detach().roll(-1, 0)
        m = self.mtp
        x = pieces.mtp_inputs(
            following, normed, m.pre_fc_norm_embedding.weight, m.pre_fc_norm_hidden.weight, m.fc.weight
        )
        return self._attention_layer(m.layers[0], x, self._rotation(inputs, x), self._text_pages(inputs))

    def losses(self, inputs: Inputs, mtp: bool = False) -> Losses:
        """Over the transcriptions; of the multi-token-prediction layer too if `mtp`."""
        language = self.hf.model.language_model
        embedded = self.embedded(inputs)
        x = self._decoded(embedded, inputs)
        table = language.embed_tokens.weight
        loss, hits = pieces.loss_and_hits(x.index_select(0, inputs.targets), language.norm.weight, table, inputs.labels)
        if not mtp:
            return Losses(loss, hits)
        y = self.mtp_hidden(embedded, x, inputs)
        ahead = pieces.loss_and_hits(
            y.index_select(0, inputs.targets), self.mtp.norm.weight, table.detach(), inputs.next_labels
        )
        return Losses(loss, hits, *ahead)

    def logits(self, inputs: Inputs) -> Tensor:
        """[N, vocabulary]"""
        language = self.hf.model.language_model
        normed = pieces.rms_norm(self.hidden(inputs), language.norm.weight)
        return pieces.linear(normed, language.embed_tokens.weight)


def _first_patch_weight() -> Tensor:
    """[C, 768]: mostly equal for the three colours, since most pages are nearly grey, and a little of each colour."""
    generator = torch.Generator().manual_seed(2)
    grey = torch.randn(HIDDEN, PATCH * PATCH, 1, generator=generator) * 0.06
    colours = torch.randn(HIDDEN, PATCH * PATCH, 3, generator=generator) * 0.01
    return (grey / 3 + colours).flatten(1)


def _mlp(layer: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    mlp = layer.mlp
    return layer.post_attention_layernorm.weight, mlp.gate_proj.weight, mlp.up_proj.weight, mlp.down_proj.weight
