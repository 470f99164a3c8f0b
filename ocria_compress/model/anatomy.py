"""The one table of names: config -> tensors, parts, layers, fused groups, and vLLM's view of them.

Everything that needs to know how a Qwen3.5 checkpoint is spelled asks here: plans, recipe rules, the saved `ignore`
list. The table is computed from `config.json` alone (no torch, no transformers), with every tensor's shape, so that a
checkpoint that does not match its own config is found before a weight is read.

Canonical names are those of the released checkpoints: `model.language_model.*`, `model.visual.*`, `mtp.*`,
`lm_head.weight`. Checkpoints saved under the other layout in use (`language_model.model.*`, `visual.*`,
`language_model.lm_head.*`) are read too.

Shape suffixes: H hidden, I intermediate, V vocabulary, Q query width, K key/value width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ocria_compress.errors import OcriaError

PARTS = ("vision", "embeddings", "attention", "linear_attention", "mlp", "lm_head", "mtp")
"""The named pieces of a model, in the order in which they are printed."""

PACKED_MODULES = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "in_proj_qkvz": ("in_proj_qkv", "in_proj_z"),
    "in_proj_ba": ("in_proj_b", "in_proj_a"),
}
"""vLLM's `packed_modules_mapping` for Qwen3.5 (0.32): members are loaded into one matrix and share one scheme."""

VLLM_PREFIXES = (
    ("model.visual.", "visual."),
    ("model.language_model.", "language_model.model."),
    ("lm_head.", "language_model.lm_head."),
)
"""How vLLM renames module prefixes of these checkpoints (its `hf_to_vllm_mapper`)."""

MOST_LAYERS, MOST_WIDTH = 2048, 1 << 26
"""What a configuration may ask for; a damaged one must not build an endless table."""

OTHER_LAYOUT = (
    ("language_model.model.", "model.language_model."),
    ("language_model.lm_head.", "lm_head."),
    ("model.lm_head.", "lm_head."),
    ("visual.", "model.visual."),
)
"""Prefixes of the other layout in use, and the canonical ones."""


@dataclass(frozen=True)
class Tensor:
    """One tensor that the config says a checkpoint has."""

    name: str
    """Canonical name."""
    shape: tuple[int, ...]
    part: str
    kind: str
    """`linear` (the weight of a Linear), `bias`, `embedding`, `conv`, `norm` or `parameter`."""
    layer: int | None = None

    @property
    def module(self) -> str:
        """The module that owns it: the name without `.weight` or `.bias`."""
        return self.name.rsplit(".", 1)[0]


@dataclass(frozen=True)
class FusedGroup:
    """Modules that vLLM loads into one matrix: they share one scheme."""

    name: str
    members: tuple[str, ...]


def vllm_name(module: str) -> str:
    """The name under which vLLM knows a module (prefix only; fused members keep their own last name)."""
    for old, new in VLLM_PREFIXES:
        if module.startswith(old):
            return new + module[len(old) :]
    return module


def canonical(name: str) -> str:
    """A tensor's canonical name, whichever of the two prefix layouts the checkpoint was saved with."""
    for old, new in OTHER_LAYOUT:
        if name.startswith(old):
            return new + name[len(old) :]
    return name


class Anatomy:
    """The table of one model's tensors, computed from its `config.json`.

    Args:
        config: the parsed `config.json`.
        where: what to name in an error (the file).

    Raises:
        OcriaError: the model is not a dense Qwen3.5 vision-language model, or the config lacks a needed value.
    """

    def __init__(self, config: dict, where: str = "config.json") -> None:
        _refuse_other_models(config, where)
        self.where = where
        self.text = config["text_config"]
        self.vision = config["vision_config"]
        self.tied = self._tied(config)
        self.layers = self._int("num_hidden_layers")
        self.layer_types = self._layer_types()
        self.mtp_layers = self.text.get("mtp_num_hidden_layers") or 0
        if not isinstance(self.mtp_layers, int) or not 0 <= self.mtp_layers <= MOST_LAYERS:
            raise OcriaError(
                f"text_config.mtp_num_hidden_layers is {self.mtp_layers!r}.",
                where=where,
                fix="1 in the released models",
            )

    def _tied(self, config: dict) -> bool:
        """Whether lm_head is the embedding table; transformers reads one place, vLLM the other, so they must agree."""
        top, text = config.get("tie_word_embeddings"), self.text.get("tie_word_embeddings")
        if top is not None and text is not None and bool(top) != bool(text):
            raise OcriaError(
                f"tie_word_embeddings is {top} for the model and {text} in text_config.",
                where=self.where,
                fix="set both to what the weights are: true if there is no lm_head.weight of its own",
            )
        return bool(text if top is None else top)

    def _int(self, key: str, of: str = "text_config") -> int:
        value = (self.text if of == "text_config" else self.vision).get(key)
        most = MOST_LAYERS if key in ("num_hidden_layers", "depth") else MOST_WIDTH
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
            raise OcriaError(
                f"The model's configuration gives no usable {of}.{key} (found {value!r}).",
                where=self.where,
                fix="restore config.json from the model this one was fine-tuned from",
            )
        return value

    def _layer_types(self) -> list[str]:
        types = self.text.get("layer_types")
        if types is None:
            every = int(self.text.get("full_attention_interval") or 4)
            types = ["full_attention" if (i + 1) % every == 0 else "linear_attention" for i in range(self.layers)]
        if len(types) != self.layers or set(types) - {"full_attention", "linear_attention"}:
            raise OcriaError(
                f"text_config.layer_types is no list of {self.layers} full_attention and linear_attention.",
                where=self.where,
                fix="restore config.json from the model this one was fine-tuned from",
            )
        return list(types)

    @property
    def full_attention_layers(self) -> list[int]:
        """Indices of the layers with a KV cache; all others are Gated DeltaNet."""
        return [i for i, kind in enumerate(self.layer_types) if kind == "full_attention"]

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the model by canonical name, in model order."""
        found = [*self._text_tensors(), *self._vision_tensors(), *self._mtp_tensors()]
        return {tensor.name: tensor for tensor in found}

    @cached_property
    def linears(self) -> dict[str, Tensor]:
        """The weight of every Linear, by module name; MTP's are listed too."""
        return {t.module: t for t in self.tensors.values() if t.kind == "linear"}

    @cached_property
    def fused_groups(self) -> list[FusedGroup]:
        """Every group that vLLM fuses, with members in vLLM's order."""
        groups = []
        for fused, leaves in PACKED_MODULES.items():
            for module in self.linears:
                stem, _, leaf = module.rpartition(".")
                if leaf == leaves[0]:
                    groups.append(FusedGroup(f"{stem}.{fused}", tuple(f"{stem}.{other}" for other in leaves)))
        return groups

    # ---- the table itself

    def _text_tensors(self) -> Iterator[Tensor]:
        hidden, vocab, root = self._int("hidden_size"), self._int("vocab_size"), "model.language_model"
        yield Tensor(f"{root}.embed_tokens.weight", (vocab, hidden), "embeddings", "embedding")
        for i, kind in enumerate(self.layer_types):
            yield from self._decoder_layer(f"{root}.layers.{i}", kind, i)
        yield Tensor(f"{root}.norm.weight", (hidden,), "lm_head", "norm")
        if not self.tied:
            yield Tensor("lm_head.weight", (vocab, hidden), "lm_head", "linear")

    def _decoder_layer(self, stem: str, kind: str, layer: int | None, part: str | None = None) -> Iterator[Tensor]:
        hidden, inner = self._int("hidden_size"), self._int("intermediate_size")
        mixer = "attention" if kind == "full_attention" else "linear_attention"
        yield Tensor(f"{stem}.input_layernorm.weight", (hidden,), part or mixer, "norm", layer)
        rows = self._attention(f"{stem}.self_attn") if mixer == "attention" else self._gdn(f"{stem}.linear_attn")
        for name, shape, what in rows:
            yield Tensor(name, shape, part or mixer, what, layer)
        yield Tensor(f"{stem}.post_attention_layernorm.weight", (hidden,), part or "mlp", "norm", layer)
        for leaf, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
            yield Tensor(f"{stem}.mlp.{leaf}_proj.weight", shape, part or "mlp", "linear", layer)

    def _attention(self, stem: str) -> Iterator[tuple[str, tuple[int, ...], str]]:
        hidden, head = self._int("hidden_size"), self._int("head_dim")
        q_width, k_width = self._int("num_attention_heads") * head, self._int("num_key_value_heads") * head
        gate = 2 if self.text.get("attn_output_gate", True) else 1  # q_proj holds the output gate as well
        shapes = {"q": (gate * q_width, hidden), "k": (k_width, hidden), "v": (k_width, hidden), "o": (hidden, q_width)}
        for leaf, shape in shapes.items():
            yield f"{stem}.{leaf}_proj.weight", shape, "linear"
            if self.text.get("attention_bias"):
                yield f"{stem}.{leaf}_proj.bias", shape[:1], "bias"
        yield f"{stem}.q_norm.weight", (head,), "norm"
        yield f"{stem}.k_norm.weight", (head,), "norm"

    def _gdn(self, stem: str) -> Iterator[tuple[str, tuple[int, ...], str]]:
        hidden, heads, width = (
            self._int("hidden_size"),
            self._int("linear_num_value_heads"),
            self._int("linear_value_head_dim"),
        )
        keys = self._int("linear_num_key_heads") * self._int("linear_key_head_dim")
        values = heads * width
        mixed = 2 * keys + values
        yield f"{stem}.A_log", (heads,), "parameter"
        yield f"{stem}.conv1d.weight", (mixed, 1, self._int("linear_conv_kernel_dim")), "conv"
        yield f"{stem}.dt_bias", (heads,), "parameter"
        yield f"{stem}.in_proj_a.weight", (heads, hidden), "linear"
        yield f"{stem}.in_proj_b.weight", (heads, hidden), "linear"
        yield f"{stem}.in_proj_qkv.weight", (mixed, hidden), "linear"
        yield f"{stem}.in_proj_z.weight", (values, hidden), "linear"
        yield f"{stem}.norm.weight", (width,), "norm"
        yield f"{stem}.out_proj.weight", (hidden, values), "linear"

    def _vision_tensors(self) -> Iterator[Tensor]:
        def size(key: str) -> int:
            return self._int(key, "vision_config")

        hidden, inner, out = size("hidden_size"), size("intermediate_size"), size("out_hidden_size")
        patch, merged = size("patch_size"), size("hidden_size") * size("spatial_merge_size") ** 2
        root = "model.visual"

        def both(stem: str, shape: tuple[int, ...], kind: str) -> Iterator[Tensor]:
            yield Tensor(f"{stem}.weight", shape, "vision", kind)
            yield Tensor(f"{stem}.bias", shape[:1], "vision", "norm" if kind == "norm" else "bias")

        shape = (hidden, int(self.vision.get("in_channels", 3)), size("temporal_patch_size"), patch, patch)
        yield from both(f"{root}.patch_embed.proj", shape, "conv")
        yield Tensor(f"{root}.pos_embed.weight", (size("num_position_embeddings"), hidden), "vision", "embedding")
        for i in range(size("depth")):
            stem = f"{root}.blocks.{i}"
            yield from both(f"{stem}.norm1", (hidden,), "norm")
            yield from both(f"{stem}.norm2", (hidden,), "norm")
            yield from both(f"{stem}.attn.qkv", (3 * hidden, hidden), "linear")
            yield from both(f"{stem}.attn.proj", (hidden, hidden), "linear")
            yield from both(f"{stem}.mlp.linear_fc1", (inner, hidden), "linear")
            yield from both(f"{stem}.mlp.linear_fc2", (hidden, inner), "linear")
        yield from both(f"{root}.merger.norm", (hidden,), "norm")
        yield from both(f"{root}.merger.linear_fc1", (merged, merged), "linear")
        yield from both(f"{root}.merger.linear_fc2", (out, merged), "linear")

    def _mtp_tensors(self) -> Iterator[Tensor]:
        if not self.mtp_layers:
            return
        hidden, vocab = self._int("hidden_size"), self._int("vocab_size")
        yield Tensor("mtp.fc.weight", (hidden, 2 * hidden), "mtp", "linear")
        for i in range(self.mtp_layers):
            yield from self._decoder_layer(f"mtp.layers.{i}", "full_attention", None, part="mtp")
        for leaf in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
            yield Tensor(f"mtp.{leaf}.weight", (hidden,), "mtp", "norm")
        if self.text.get("mtp_use_dedicated_embeddings"):
            yield Tensor("mtp.embed_tokens.weight", (vocab, hidden), "mtp", "embedding")


def is_mtp(name: str) -> bool:
    """Whether a tensor belongs to the multi-token-prediction block."""
    return name.startswith("mtp.")


def _refuse_other_models(config: dict, where: str) -> None:
    """Names what is wrong with a config that this tool does not compress."""
    kind, architectures = config.get("model_type"), config.get("architectures") or []
    names = ", ".join(map(str, architectures)) or "no architecture named"
    if "moe" in str(kind) or any("Moe" in str(a) for a in architectures):
        raise OcriaError(
            f"This is a mixture-of-experts model ({kind}; {names}), which is not supported.",
            where=where,
            fix="use a dense Qwen3.5 model (0.8B to 27B)",
        )
    if kind == "qwen3_5_text" or (kind == "qwen3_5" and "vision_config" not in config):
        raise OcriaError(
            f"This is a text-only model ({kind}; {names}): without a vision tower it cannot read pages.",
            where=where,
            fix="use the vision-language checkpoint (Qwen3_5ForConditionalGeneration) it was taken from",
        )
    if kind != "qwen3_5" or not isinstance(config.get("text_config"), dict):
        raise OcriaError(
            f"This is not a Qwen3.5 vision-language model (model_type {kind!r}; {names}).",
            where=where,
            fix="this tool compresses Qwen3_5ForConditionalGeneration and its fine-tunes, such as llamaindex/OCRia-1",
        )
    if config.get("auto_map"):
        raise OcriaError(
            "The model's configuration asks for Python code from its own folder (auto_map); it is never run.",
            where=where,
            fix="remove auto_map and the code: Qwen3.5 is part of transformers and vLLM",
        )
    if config.get("quantization_config"):
        method = config["quantization_config"].get("quant_method", "unknown method")
        raise OcriaError(
            f"This model is quantized already ({method}).",
            where=where,
            fix="start from the unquantized checkpoint",
        )
