"""Recipes: what ships loads, and every mistake is named with its nearest right word."""

from __future__ import annotations

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.recipes import load_recipe, recipe_paths

GOOD = "part: {mlp: {scheme: fp8}}\n"


def write(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_what_ships_loads():
    assert set(recipe_paths()) == {"fp8", "fp8-kv"}
    for name in recipe_paths():
        recipe = load_recipe(name)
        assert recipe.name == name
        assert recipe.description


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("part: {mlp: {schme: fp8}}", "unknown key 'part.mlp.schme': did you mean 'scheme'"),
        ("prt: {mlp: {scheme: fp8}}", "unknown key 'prt': did you mean 'part'"),
        (GOOD + "calibration: {pagse: calibration}", "did you mean 'pages'"),
        (GOOD + "gates: {recovry: {min: 1}}", "did you mean 'recovery'"),
        ("part: {mpl: {scheme: fp8}}", "no such part; did you mean 'mlp'"),
        ("part: {mlp: {scheme: pf8}}", "cannot be 'pf8': did you mean 'fp8'"),
        ("part: {mlp: {scheme: nvfp4}}", "'part.mlp.scheme' cannot be 'nvfp4'"),
        ("part: {vision: {scheme: fp8}}", "part.vision: scheme fp8 is not possible here"),
        ("part: {embeddings: {scheme: fp8}}", "no FP8 embedding lookup"),
        ("part: {mtp: {scheme: fp8}}", "part.mtp: scheme fp8 is not possible"),
        ("part: {linear_attention: {scheme: fp8, modules: [in_proj_a]}}", "'in_proj_a' cannot have scheme fp8"),
        (GOOD + "kv_cache: {scheme: nvfp4}", "'kv_cache.scheme' cannot be 'nvfp4'"),
        (GOOD + "kv_cache: {scheme: fp8}", "kv_cache needs a calibration section"),
        (GOOD + "calibration: {count: 0}", "calibration.count"),
        (GOOD + "keep: [{match: 're:([', reason: because}]", "no regular expression"),
        (GOOD + "keep: [{match: lm_head}]", "'keep.0.reason' is missing"),
        (GOOD + "gates: {recovery: {}}", "a gate needs min or max"),
        ("name: x", "'part' is missing"),
        ("", "empty"),
        ("- a\n- b", "not a mapping"),
        ("part: [", "not readable YAML"),
        ("part: 3", "part"),
        ("part: {mlp: {scheme: fp8}, mlp: {scheme: keep}}", "'mlp' is given twice"),
        (GOOD + "gates: {recovery: {min: .nan}}", "gates.recovery.min"),
        (GOOD + "gates: {recovery: {min: 99, max: 1}}", "min is above its max"),
        (GOOD + "when: 2020-13-45", "not readable YAML"),
        ("[" * 20000, "not readable YAML"),
    ],
)
def test_a_wrong_recipe_is_refused_in_words(text, words, tmp_path):
    with pytest.raises(OcriaError) as caught:
        load_recipe(write(tmp_path, text))
    assert words in caught.value.what
    assert "pydantic" not in str(caught.value).lower()


def test_an_unknown_recipe_is_refused_with_the_nearest():
    with pytest.raises(OcriaError) as caught:
        load_recipe("fp8kv")
    assert "fp8-kv" in caught.value.fix


def test_set_overrides_one_value():
    assert load_recipe("fp8", ["part.mlp.scheme=keep"]).part["mlp"].scheme == "keep"
    assert load_recipe("fp8-kv", ["calibration.count=4"]).calibration.count == 4
    assert load_recipe("fp8", ["gates.recovery.min=90"]).gates.recovery.min == 90


@pytest.mark.parametrize(
    "setting",
    ["part.mlp.scheme", "=fp8", "part..scheme=fp8", "part.mlp.scheme=[", "part.mlp.scheme=2020-99-99", "part.mlp.x=1"],
)
def test_a_wrong_override_is_refused(setting):
    with pytest.raises(OcriaError) as caught:
        load_recipe("fp8", [setting])
    assert "--set" in (caught.value.where or "")


def test_an_override_through_a_plain_value_is_refused():
    with pytest.raises(OcriaError):
        load_recipe("fp8", ["part.mlp.scheme.deeper=1"])


def test_gates_and_descriptions_do_not_change_the_result():
    assert load_recipe("fp8").digest() == load_recipe("fp8", ["gates.recovery.min=1", "description=x"]).digest()
    assert load_recipe("fp8").digest() != load_recipe("fp8", ["part.mlp.scheme=keep"]).digest()


@pytest.mark.parametrize("name", ["a" * 5000, "~nobody-here/x", "a\0b"])
def test_what_cannot_be_a_path_is_refused(name):
    with pytest.raises(OcriaError):
        load_recipe(name)
