"""Plans: the rules' hits, what is refused, and the names that are saved."""

from __future__ import annotations

import json
import re

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.model.anatomy import is_mtp, vllm_name
from ocria_compress.model.source import open_source
from ocria_compress.quantize.plan import make_plan, part_rows
from ocria_compress.quantize.schemes import FP8_DYNAMIC, KV_FP8, PRESETS
from ocria_compress.recipes import load_recipe


def plan_of(folder, *settings, recipe="fp8"):
    return make_plan(open_source(str(folder)), load_recipe(recipe, list(settings)))


def keep(*matches):
    return "keep=" + json.dumps([{"match": m, "reason": "a test"} for m in matches])


def hits(entry, name):
    return bool(re.match(entry[3:], name)) if entry.startswith("re:") else entry == name


@pytest.mark.parametrize("fixture", ["mini", "tiny", "tiny_untied", "tiny_no_mtp", "tiny_other_layout"])
def test_q1_each_linear_is_a_target_or_ignored_under_both_names(fixture, request):
    plan = plan_of(request.getfixturevalue(fixture))
    scheme = {t.name.removesuffix(".weight"): t.scheme for t in plan.tensors}
    for module in plan.source.anatomy.linears:
        for name in (module, vllm_name(module)):
            ignore = [e if e.startswith("re:") or name == module else vllm_name(e) for e in plan.ignore]
            ignored, target = any(hits(e, name) for e in ignore), any(hits(e, name) for e in plan.targets)
            assert (target and not ignored) == (scheme[module] == "fp8"), name
            assert ignored or target, name


@pytest.mark.parametrize("fixture", ["mini", "tiny", "tiny_untied"])
def test_q32_every_ignore_entry_hits_something(fixture, request):
    plan = plan_of(request.getfixturevalue(fixture))
    modules = [*plan.source.anatomy.linears, "lm_head"]  # a tied model has the module, not the weight
    for entry in [*plan.ignore, *plan.targets]:
        assert any(hits(entry, m) for m in modules), entry
    for part in ("mlp", "vision", "embeddings"):
        for entry in plan_of(request.getfixturevalue(fixture), f"part.{part}.scheme=keep").ignore:
            assert any(hits(entry, m) for m in modules), entry


def test_q3_a_recipe_that_quantizes_nothing_is_refused(tiny):
    keeps = [f"part.{part}.scheme=keep" for part in ("mlp", "attention")]
    with pytest.raises(OcriaError, match="quantizes no weight"):
        plan_of(tiny, *keeps, "part.linear_attention={scheme: keep}")


def test_q25_mtp_is_ignored_by_one_expression(tiny, tiny_no_mtp):
    assert "re:^mtp.*" in plan_of(tiny).ignore
    assert not any(is_mtp(e.removeprefix("re:^")) for e in plan_of(tiny_no_mtp).ignore)
    assert not any(e.startswith("mtp") for e in plan_of(tiny).ignore)


def test_the_saved_schemes_are_the_installed_librarys():
    from ocria_compress.pages.torchvision_cpu import activate

    activate()
    from compressed_tensors.quantization import QuantizationArgs, preset_name_to_scheme

    theirs = preset_name_to_scheme(PRESETS["fp8"], ["Linear"]).model_dump(mode="json")
    for what in ("weights", "input_activations"):
        ours = QuantizationArgs(**FP8_DYNAMIC[what]).model_dump(mode="json")
        assert {k: v for k, v in ours.items() if k != "observer"} == {
            k: v for k, v in theirs[what].items() if k != "observer"
        }
    theirs = QuantizationArgs(num_bits=8, type="float", strategy="tensor", dynamic=False, symmetric=True)
    ours = QuantizationArgs(**KV_FP8).model_dump(mode="json")
    assert {k: v for k, v in ours.items() if k != "observer"} == {
        k: v for k, v in theirs.model_dump(mode="json").items() if k != "observer"
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["part.lm_head.scheme=fp8"], "tie_word_embeddings"),
        (["part.mtp.scheme=keep"], None),
        ([keep("model.language_model.layers.9.mlp.up_proj")], "hits no module"),
        ([keep("re:visual.*")], "hits no module"),
        ([keep("re:.*visual.*")], "kept already"),
        ([keep("model.language_model.layers.0.mlp.gate_proj")], "splits a group"),
        ([keep("re:.*linear_attn.in_proj_z$")], "splits a group"),
        ([keep("re:.*self_attn.q_proj$")], "splits a group"),
        (["part.linear_attention.modules=[in_proj_qkv, out_proj]"], "splits a group"),
    ],
)
def test_rules_without_a_hit_and_split_groups_are_refused(settings, words, tiny):
    if words is None:
        plan_of(tiny, *settings)
        return
    with pytest.raises(OcriaError, match=words):
        plan_of(tiny, *settings)


def test_q16_a_pattern_that_misses_for_its_start_says_so(tiny):
    with pytest.raises(OcriaError) as caught:
        plan_of(tiny, keep("re:visual.*"))
    assert "begin it with .*" in caught.value.fix


def test_both_names_of_a_split_group_are_given(tiny):
    with pytest.raises(OcriaError) as caught:
        plan_of(tiny, keep("re:.*layers.0.mlp.up_proj$"))
    assert "layers.0.mlp.gate_proj" in caught.value.what
    assert "layers.0.mlp.up_proj" in caught.value.what


def test_a_part_that_the_model_lacks_is_no_hit(tiny_no_mtp):
    with pytest.raises(OcriaError, match="no multi-token"):
        plan_of(tiny_no_mtp, "part.mtp.scheme=keep")


def test_lm_head_can_be_quantized_where_it_has_weights_of_its_own(tiny_untied):
    plan = plan_of(tiny_untied, "part.lm_head.scheme=fp8")
    assert next(t for t in plan.tensors if t.name == "lm_head.weight").scheme == "fp8"
    assert any("DFlash2" in w for w in plan.warnings)
    assert "re:.*lm_head$" not in plan.ignore


def test_q11_shapes_that_the_kernels_cannot_take_are_refused(models):
    folder = models(hidden=96)
    plan_of(folder)  # 96 is a multiple of 16
    source = open_source(str(folder))
    name = "model.language_model.layers.0.mlp.up_proj.weight"
    import dataclasses

    source.tensors[name] = dataclasses.replace(source.tensors[name], shape=(200, 96))
    with pytest.raises(OcriaError, match=r"\[200, 96\].*multiples of 16"):
        make_plan(source, load_recipe("fp8"))


def test_bytes_add_up(mini):
    plan = plan_of(mini)
    rows = part_rows(plan)
    assert sum(r["bytes_before"] for r in rows) == plan.bytes_before == 27_946_512
    assert sum(r["bytes_after"] for r in rows) == plan.bytes_after
    fp8 = [t for t in plan.tensors if t.scheme == "fp8"]
    assert len(fp8) == 75
    halved = sum(plan.source.tensors[t.name].nbytes for t in fp8) // 2
    scales = sum(o.nbytes for t in fp8 for o in t.outputs if o.name.endswith("_scale"))
    assert plan.bytes_before - halved + scales == plan.bytes_after


def test_q6_kv_scales_belong_to_full_attention_layers_only(mini):
    plan = plan_of(mini, recipe="fp8-kv")
    names = [o.name for t in plan.tensors for o in t.outputs if o.name.endswith(("k_scale", "v_scale"))]
    assert len(names) == 2 * len(plan.source.anatomy.full_attention_layers) == 6
    assert all(".self_attn." in n for n in names)
    assert plan.quantization_config()["kv_cache_scheme"]["num_bits"] == 8
