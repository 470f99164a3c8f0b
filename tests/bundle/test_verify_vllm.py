"""The judgement over what vLLM did, with a worker that only plays its part."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ocria_compress.bundle.verify import names, serving
from ocria_compress.bundle.verify.report import State
from ocria_compress.bundle.verify.run import Options, open_checkpoint
from ocria_compress.errors import OcriaError
from ocria_compress.serving.protocol import PageRequest

TEXTS = {
    "a": "# Quarterly report\n\nThe harvest brought seventeen baskets of apples to the village market.",
    "b": "Dear customer, your invoice number 4711 is overdue since Wednesday last week.",
}
PAGES = [SimpleNamespace(id=key, reference=text) for key, text in TEXTS.items()]
REQUESTS = [PageRequest(key, f"{key}.png", "prompt", 100) for key in TEXTS]


@dataclass
class Worker:
    """Reads what it is told to have read."""

    model: Path
    log: Path
    texts: dict[str, str] = field(default_factory=lambda: dict(TEXTS))
    finish: str = "stop"
    said: str = "INFO all is well"
    error: OcriaError | None = None
    described: Any = None

    def __enter__(self):
        self.log.write_text(self.said + "\n")
        if self.error:
            raise self.error
        return self

    def __exit__(self, *_):
        pass

    def read_pages(self, requests):
        for request in reversed(requests):  # in no fixed order
            yield SimpleNamespace(id=request.id, text=self.texts[request.id], finish_reason=self.finish)

    def describe(self):
        return self.described


def _described(ctx, **changes):
    quantized = [m for m in ctx.quantized if not names.is_mtp(m)]
    kv = {"language_model.model.layers.3.self_attn.attn": {"dtype": "auto", "k_scale": 0.02, "v_scale": 0.1}}
    said = {
        "versions": {"vllm": "0.32.0"},
        "packed_modules_mapping": dict(names.FUSED),
        "layer_kernels": dict.fromkeys(names.vllm_modules(quantized), "kernel"),
        "kv_cache": kv,
    }
    return SimpleNamespace(**{**said, **changes})


@pytest.fixture
def judge(result, tmp_path):
    """`judge(result=..., original=..., folder=...)`: the checks by name, given how each worker behaves."""

    def run(folder: Path = result, describe: dict | None = None, original: dict | None = None, **ours: Any):
        ctx = open_checkpoint(folder, Options())
        readings = []
        for name, behaviour in (("original", original or {}), ("result", ours)):
            behaviour = {"described": _described(ctx, **(describe or {})), **behaviour}
            made = serving.read(
                lambda model, log, b=behaviour: Worker(model, log, **b),
                folder,
                tmp_path / f"{name}.log",
                REQUESTS,
                lambda _: None,
            )
            readings.append(made)
        checks, rows = serving.checks(ctx, PAGES, *readings)
        with contextlib.suppress(AttributeError):
            ctx.result.close()
        return {check.name: check for check in checks}, rows

    return run


def _states(checks) -> dict[str, State]:
    return {name: check.state for name, check in checks.items() if check.state is not State.PASSED}


def test_a_checkpoint_that_reads_as_the_original_passes(judge):
    checks, rows = judge()
    assert _states(checks) == {} and set(checks) == {"vllm-loads", "vllm-modules", "vllm-reads", "recovery"}
    assert rows[0]["original"] == rows[0]["result"] == TEXTS["a"] and rows[0]["result_ned"] == 0
    assert checks["recovery"].detail.startswith("100.00 %")


def test_gibberish_does_not_pass_because_some_text_came_out(judge):
    checks, rows = judge(texts=dict.fromkeys(TEXTS, "!!!!! qwzx vlorp " * 5))
    assert _states(checks) == {"vllm-reads": State.FAILED, "recovery": State.FAILED}
    assert rows[0]["original"] == TEXTS["a"]  # both readings are kept


def test_empty_reading(judge):
    checks, _ = judge(texts={"a": "  ", "b": TEXTS["b"]})
    assert checks["vllm-reads"].items == ["page a: nothing was read"]


def test_reading_that_loops(judge):
    checks, _ = judge(texts={"a": TEXTS["a"] + " the market" * 30, "b": TEXTS["b"]})
    assert checks["vllm-reads"].items == ["page a: the reading repeats itself without end"]


def test_reading_that_was_cut(judge):
    checks, _ = judge(finish="length")
    assert len(checks["vllm-reads"].items) == 2 and "did not come to an end" in checks["vllm-reads"].items[0]


def test_table_of_equal_rows_is_no_loop():
    assert not serving.loops("<table>" + "<tr><td>1</td></tr>" * 5 + "</table>")
    assert serving.loops("x" * 200) and not serving.loops("") and not serving.loops("-" * 40)


def test_recovery_below_the_recipe_s_gate(judge, result):
    import json

    from tests.bundle.checkpoints import write_manifest

    almost = {key: text.replace("e", "c", 2) for key, text in TEXTS.items()}
    assert judge(texts=almost)[0]["recovery"].state is State.PASSED  # 97 % of the original: the default gate is 95
    known = json.loads((result / "ocria.json").read_text())
    write_manifest(result, {**known, "recipe": {"gates": {"recovery": {"min": 99.5}}}})
    check = judge(texts=almost)[0]["recovery"]
    assert check.state is State.FAILED and "gate 99.5" in check.detail and check.data["gate"] == 99.5


def test_pages_that_the_original_cannot_read_prove_nothing(judge):
    noise = dict.fromkeys(TEXTS, "zzz")
    checks, _ = judge(texts=noise, original={"texts": noise})
    assert checks["vllm-reads"].state is State.NOT_RUN and "--pages" in checks["vllm-reads"].detail


def test_weights_that_were_not_initialized(judge):
    checks, _ = judge(said="WARNING Following weights were not initialized from checkpoint: {'visual.x'}")
    assert checks["vllm-loads"].state is State.FAILED and "visual.x" in checks["vllm-loads"].items[0]


def test_kv_scales_dropped_and_served_at_one(judge, with_kv):
    line = "WARNING Using KV cache scaling factor 1.0 for fp8_e4m3. If this is unintended, verify that ..."
    served = {"language_model.model.layers.3.self_attn.attn": {"dtype": "auto", "k_scale": 1.0, "v_scale": 1.0}}
    checks, _ = judge(with_kv, describe={"kv_cache": served}, said=line)
    assert _states(checks) == {"vllm-loads": State.FAILED, "vllm-kv-scales": State.FAILED}
    assert "vLLM serves 1" in checks["vllm-kv-scales"].items[0]
    assert _states(judge(with_kv)[0]) == {}


def test_kv_scales_that_vllm_has_no_layer_for(judge, with_kv):
    checks, _ = judge(with_kv, describe={"kv_cache": {"elsewhere": {}}})
    assert "vLLM serves without it" in checks["vllm-kv-scales"].items[0]


def test_vllm_fuses_other_modules_than_the_checker_thinks(judge):
    checks, _ = judge(describe={"packed_modules_mapping": {**names.FUSED, "in_proj_all": ["in_proj_qkv", "in_proj_a"]}})
    assert "in_proj_all" in checks["vllm-modules"].items[0]


def test_quantized_module_that_vllm_serves_unquantized(judge):
    checks, _ = judge(describe={"layer_kernels": {}})
    assert any("gate_up_proj is quantized here" in item for item in checks["vllm-modules"].items)


def test_vllm_that_is_not_installed_leaves_its_checks_not_run(result, tmp_path):
    def absent(model, log):
        raise OcriaError("vLLM's environment was not found", fix="run: ocria-compress doctor --install-vllm")

    ctx = open_checkpoint(result, Options())
    reading = serving.read(absent, result, tmp_path / "log", REQUESTS, lambda _: None)
    checks, _ = serving.checks(ctx, PAGES, reading, reading)
    assert {check.state for check in checks} == {State.NOT_RUN}
    assert all("doctor --install-vllm" in check.detail for check in checks)


def test_checkpoint_that_vllm_refuses_fails_and_says_why(judge):
    checks, _ = judge(error=OcriaError("vLLM failed: KeyError in_proj_z", where="log"))
    assert _states(checks)["vllm-loads"] is State.FAILED and "in_proj_z" in checks["vllm-loads"].detail
    assert checks["recovery"].state is State.NOT_RUN


def test_vllm_that_cannot_load_the_original_either_says_nothing_about_the_checkpoint(judge):
    broken = OcriaError("memory ran out")
    checks, _ = judge(error=broken, original={"error": broken})
    assert set(_states(checks).values()) == {State.NOT_RUN}


def test_original_that_cannot_be_read_leaves_recovery_not_run(judge):
    checks, _ = judge(original={"error": OcriaError("memory ran out")})
    assert _states(checks) == {"recovery": State.NOT_RUN}
