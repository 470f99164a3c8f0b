"""Names and rules: what the configuration says must be true of the tensors, for Hugging Face and for vLLM."""

from __future__ import annotations

import pytest

from ocria_compress.bundle.verify import names
from tests.bundle.checkpoints import TARGETS, TEXT, edit_config, edit_weights, read_weights


def _quantization(folder, change) -> None:
    edit_config(folder, lambda config: change(config["quantization_config"]))


def _dequantize(folder, source, module) -> None:
    """Puts the source's weight back, as if this Linear had never been quantized."""

    def change(stored):
        for parameter in ("weight", "weight_scale"):
            stored.pop(f"{module}.{parameter}")
        stored[f"{module}.weight"] = read_weights(source)[f"{module}.weight"]

    edit_weights(folder, change)


def test_source_key_changed(result, found):
    edit_config(result, lambda config: config["text_config"].update(hidden_size=65))
    assert found(result)["config"].items == ["text_config.hidden_size was 64, is 65"]


def test_source_key_lost(result, found):
    edit_config(result, lambda config: config.pop("vision_config"))
    assert found(result)["config"].items == ["vision_config is missing"]


def test_key_added_that_is_not_quantization(result, found):
    edit_config(result, lambda config: config.update(rope_scaling=2))
    assert found(result)["config"].items == ["rope_scaling was added: 2"]


def test_dtype_may_be_added(result, found):
    edit_config(result, lambda config: config.update(dtype="bfloat16"))
    assert found(result) == {}


def test_nothing_is_quantized_and_the_config_is_silent(result, found):
    edit_config(result, lambda config: config.pop("quantization_config"))
    assert "nothing in this folder is quantized" in found(result)["quantization-config"].detail


def test_targets_that_matched_nothing_leave_the_model_as_it_was(result, source, found):
    def restore(stored):
        stored.clear()
        stored.update(read_weights(source))

    edit_weights(result, restore)
    checks = found(result)
    assert "not one Linear is quantized" in checks["scales-or-ignore"].items
    assert f"group_0: target {TARGETS[0]} hits no quantized Linear" in checks["rules"].items


def test_format_that_cannot_be_proven(result, found):
    _quantization(result, lambda q: q["config_groups"]["group_0"]["weights"].update(num_bits=3))
    assert "3 bits" in found(result)["quantization-config"].items[0]


def test_format_name_of_another_layout(result, found):
    _quantization(result, lambda q: q["config_groups"]["group_0"].update(format="pack-quantized"))
    assert "'pack-quantized'" in found(result)["quantization-config"].items[0]


@pytest.mark.parametrize("change", [{"config_groups": []}, {"config_groups": {"g": 3}}, {"ignore": "lm_head"}])
def test_malformed_quantization_config_is_a_failed_check(result, found, change):
    _quantization(result, lambda q: q.update(change))
    assert "quantization-config" in found(result)


def test_ignore_typo(result, found):
    def typo(q):
        q["ignore"][0] = "model.visual.blocks.0.attn.qvk"

    _quantization(result, typo)
    checks = found(result)
    assert checks["rules"].items == ["ignore: model.visual.blocks.0.attn.qvk hits no module"]
    assert "model.visual.blocks.0.attn.qkv has no scales and is not in ignore" in checks["scales-or-ignore"].items[0]
    assert any("qvk" in item for item in checks["vllm-names"].items)


def test_ignore_expression_that_is_anchored_wrong_misses_the_vision_tower(result, found):
    _quantization(result, lambda q: q.update(ignore=[r for r in q["ignore"] if "visual" not in r] + ["re:visual.*"]))
    checks = found(result)
    assert "ignore: re:visual.* hits no module" in checks["rules"].items  # by Hugging Face's names
    assert len(checks["scales-or-ignore"].items) == 6
    assert "vllm-names" not in checks  # vLLM's names do begin with visual.


def test_ignore_hits_by_hugging_face_names_only(result, found):
    _quantization(
        result, lambda q: q.update(ignore=[r for r in q["ignore"] if "visual" not in r] + [r"re:^model\.visual\..*"])
    )
    checks = found(result)
    assert set(checks) == {"vllm-names"}
    assert r"ignore: re:^model\.visual\..* hits nothing by vLLM's names" in checks["vllm-names"].items


def test_ignore_in_vllm_names(result, found):
    _quantization(result, lambda q: q["ignore"].append("language_model.model.layers.0.linear_attn.in_proj_a"))
    assert "hits no module" in found(result)["rules"].items[0]


def test_target_that_hits_by_hugging_face_names_only(result, found):
    targets = [TARGETS[0].replace("re:.*", "re:model.")]
    _quantization(result, lambda q: q["config_groups"]["group_0"].update(targets=targets))
    checks = found(result)
    assert set(checks) == {"vllm-names"} and "no target hits it in vLLM" in checks["vllm-names"].items[0]


def test_target_that_hits_nothing(result, found):
    _quantization(result, lambda q: q["config_groups"]["group_0"]["targets"].append("re:.*experts.*"))
    assert found(result)["rules"].items == ["group_0: target re:.*experts.* hits no quantized Linear"]


def test_rule_that_is_no_expression(result, found):
    _quantization(result, lambda q: q["ignore"].append("re:(("))
    assert "no regular expression" in found(result)["quantization-config"].items[0]


def test_linear_that_is_a_target_of_two_groups(result, found):
    def second(q):
        q["config_groups"]["group_1"] = {**q["config_groups"]["group_0"], "targets": [r"re:.*mlp\.down_proj$"]}

    _quantization(result, second)
    items = found(result)["rules"].items
    assert len(items) == 4 and all("is a target of group_0 and group_1" in item for item in items)


def test_quantized_linear_that_is_in_ignore(result, found):
    module = f"{TEXT}layers.0.mlp.down_proj"
    _quantization(result, lambda q: q["ignore"].append(module))
    checks = found(result)
    assert f"{module} has scales and is in ignore" in checks["scales-or-ignore"].items[0]
    assert "vLLM ignores it" in checks["vllm-names"].items[0]


def test_in_proj_qkv_quantized_but_in_proj_z_not(result, source, found):
    module = f"{TEXT}layers.0.linear_attn.in_proj_z"
    _dequantize(result, source, module)
    _quantization(result, lambda q: q["ignore"].append(module))
    checks = found(result)
    assert set(checks) == {"vllm-names"}
    (item,) = checks["vllm-names"].items
    assert item.startswith("language_model.model.layers.0.linear_attn.in_proj_qkvz: in_proj_z not quantized")


def test_half_of_a_fused_group_in_ignore(result, found):
    _quantization(result, lambda q: q["ignore"].append(f"{TEXT}layers.0.mlp.gate_proj"))
    assert "up_proj not ignored, the other shards are" in found(result)["vllm-names"].items[0]


def test_shards_of_a_fused_group_in_two_config_groups(result, found):
    def split(q):
        group = q["config_groups"]["group_0"]
        group["targets"] = [TARGETS[0].replace(r"|mlp\.up_proj", "")]
        q["config_groups"]["group_1"] = {**group, "targets": [r"re:.*layers.*mlp\.up_proj$"]}
        q["ignore"][-1] = "re:^mtp.*"

    _quantization(result, split)
    checks = found(result)
    assert any("belong to group_0 and group_1" in item for item in checks["vllm-names"].items)
    assert len(checks["fused-scales"].items) == 4


def test_mtp_weights_lost_while_the_config_still_claims_them(result, found):
    edit_weights(result, lambda stored: [stored.pop(name) for name in list(stored) if name.startswith("mtp.")])
    checks = found(result)
    assert "config.json says 1 MTP layers, the tensors have none" in checks["mtp"].items
    assert "mtp.fc.weight is missing" in checks["tensors"].items
    assert "ignore: re:^mtp.* hits no module" in checks["rules"].items


def test_mtp_weights_there_and_the_config_says_none(result, found):
    edit_config(result, lambda config: config["text_config"].update(mtp_num_hidden_layers=0))
    checks = found(result)
    assert any("says there is no MTP block" in item for item in checks["mtp"].items)
    assert "config" in checks


def test_mtp_linears_listed_one_by_one_in_ignore(result, found):
    linears = [f"mtp.layers.0.mlp.{n}_proj" for n in ("gate", "up", "down")]
    linears += [f"mtp.layers.0.self_attn.{n}_proj" for n in "qkvo"] + ["mtp.fc"]
    _quantization(result, lambda q: q.update(ignore=[r for r in q["ignore"] if "mtp" not in r] + linears))
    checks = found(result)
    assert "write re:^mtp.*" in checks["mtp"].items[0]
    assert "vLLM drops mtp.layers.0.mlp.gate_proj" in " ".join(checks["vllm-names"].items)


def test_mtp_block_taken_as_quantized_by_a_target_of_class_linear(result, found):
    def change(q):
        q["config_groups"]["group_0"]["targets"] = ["Linear"]
        q["ignore"] = [r for r in q["ignore"] if "mtp" not in r]

    _quantization(result, change)
    checks = found(result)
    assert any("mtp.fc has no scales, and vLLM takes it as group_0" in item for item in checks["vllm-names"].items)


def test_class_linear_as_target_is_right_where_all_others_are_ignored(result, found):
    _quantization(result, lambda q: q["config_groups"]["group_0"].update(targets=["Linear"]))
    assert found(result) == {}


def test_vllm_names_of_modules():
    assert names.vllm_module(f"{TEXT}layers.0.self_attn.k_proj") == "language_model.model.layers.0.self_attn.qkv_proj"
    assert names.vllm_module("model.visual.blocks.1.attn.qkv") == "visual.blocks.1.attn.qkv"
    assert names.vllm_module("lm_head") == "language_model.lm_head"
    assert names.vllm_rule("lm_head") == "lm_head"  # no dot: vLLM does not rewrite it
    assert names.vllm_rule("mtp.fc") is None
