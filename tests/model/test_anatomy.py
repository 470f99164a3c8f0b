"""The table of names against transformers' own model and against vLLM's own mapping."""

from __future__ import annotations

import copy
import json
import subprocess

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.model.anatomy import PACKED_MODULES, Anatomy, canonical, is_mtp, vllm_name
from tools.random_checkpoint import SHAPES as MADE

SHAPES = ("mini", "tiny", "qwen3.5-4b", "untied")


def config_of(shape: str, mini) -> dict:
    return json.loads((mini / "config.json").read_text()) if shape == "mini" else MADE[shape]()


def meta_model(config: dict):
    from ocria_compress.pages.torchvision_cpu import activate

    activate()
    import torch
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    with torch.device("meta"):
        return Qwen3_5ForConditionalGeneration(Qwen3_5Config.from_dict(copy.deepcopy(config)))


@pytest.mark.parametrize("shape", SHAPES)
def test_names_shapes_and_linears_are_those_of_transformers(shape, mini):
    import torch

    config = config_of(shape, mini)
    anatomy, model = Anatomy(config), meta_model(config)
    theirs = {n: tuple(p.shape) for n, p in model.state_dict().items()}
    if anatomy.tied:
        del theirs["lm_head.weight"]
    ours = {t.name: t.shape for t in anatomy.tensors.values() if not is_mtp(t.name)}
    assert ours == theirs
    linears = {n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
    assert {m for m in anatomy.linears if not is_mtp(m)} == linears - ({"lm_head"} if anatomy.tied else set())


def test_qwen3_5_4b_has_the_layers_that_its_card_says():
    anatomy = Anatomy(MADE["qwen3.5-4b"]())
    assert anatomy.full_attention_layers == [3, 7, 11, 15, 19, 23, 27, 31]
    assert anatomy.mtp_layers == 1
    assert sum(is_mtp(name) for name in anatomy.tensors) == 15
    # 24 GDN layers with two groups, 8 full ones with one, gate/up in all 32, and the MTP layer's two
    assert len(anatomy.fused_groups) == 24 * 2 + 8 + 32 + 2


def test_every_tensor_has_a_part_and_a_kind(mini):
    for shape in SHAPES:
        for tensor in Anatomy(config_of(shape, mini)).tensors.values():
            assert tensor.part in ("vision", "embeddings", "attention", "linear_attention", "mlp", "lm_head", "mtp")
            assert tensor.kind in ("linear", "bias", "embedding", "conv", "norm", "parameter")


def test_both_prefix_layouts_have_one_canonical_name():
    for name, other in {
        "model.language_model.layers.0.mlp.up_proj.weight": "language_model.model.layers.0.mlp.up_proj.weight",
        "model.visual.merger.norm.bias": "visual.merger.norm.bias",
        "lm_head.weight": "language_model.lm_head.weight",
        "mtp.fc.weight": "mtp.fc.weight",
    }.items():
        assert canonical(other) == name
        assert canonical(name) == name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "qwen3_5_moe", "architectures": ["Qwen3_5MoeForConditionalGeneration"]}, "mixture-of-experts"),
        ({"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"]}, "text-only"),
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "not a Qwen3.5"),
        ({"auto_map": {"AutoModel": "modeling.Evil"}}, "never run"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False for the model and True"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantized already"),
    ],
)
def test_other_models_are_refused_by_name(change, words):
    with pytest.raises(OcriaError, match=words):
        Anatomy(MADE["tiny"]() | change)


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "head_dim"])
def test_a_config_without_a_needed_value_is_refused(key):
    config = copy.deepcopy(MADE["tiny"]())
    config["text_config"][key] = None
    with pytest.raises(OcriaError, match=f"text_config.{key}|layer_types"):
        _ = Anatomy(config).tensors


VLLM_SAYS = """
import json
from vllm.model_executor.models.qwen3_5 import Qwen3_5ForConditionalGeneration as M
m = M.hf_to_vllm_mapper
names = json.loads(input())
print("\\n" + json.dumps({"packed": M.packed_modules_mapping, "mapped": {n: m.map_name(n) for n in names}}))
"""


@pytest.mark.vllm
def test_vllm_fuses_and_renames_as_the_table_says(mini):
    from ocria_compress.serving.client import worker_environment
    from ocria_compress.serving.environment import find_vllm_python

    anatomy = Anatomy(config_of("qwen3.5-4b", mini))
    modules = [m for m in anatomy.linears if not is_mtp(m)]
    command = [str(find_vllm_python()), "-c", VLLM_SAYS]
    done = subprocess.run(
        command, input=json.dumps(modules), capture_output=True, text=True, timeout=300, env=worker_environment()
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    packed = {k: tuple(v) for k, v in said["packed"].items() if k != "qkv"}  # `qkv` is the vision tower's, already one
    assert packed == PACKED_MODULES
    assert said["mapped"] == {m: vllm_name(m) for m in modules}
