"""Checkpoints of every way of saving load in real vLLM and mean what the source means."""

from __future__ import annotations

from pathlib import Path

import pytest

from ocria_compress.model.source import open_source
from ocria_compress.quantize.plan import make_plan
from ocria_compress.quantize.run import quantize
from ocria_compress.recipes import load_recipe

pytestmark = pytest.mark.vllm

WORDS = "<|im_start|>user\nTranscribe this page to Markdown.<|im_end|>\n<|im_start|>assistant\n"
ANSWER = "# Invoice\n\nThe total amount is 12.50 and due on 3 May.\n\n- one\n- two\n- three\n" * 3


def scored(folder: Path, log: Path):
    """Log probabilities of a fixed text, and what vLLM made of the folder."""
    from ocria_compress.serving.client import VllmWorker
    from ocria_compress.serving.protocol import ScoreRequest

    with VllmWorker(folder, log=log, engine_args={"max_model_len": 512}) as worker:
        (result,) = worker.prompt_logprobs([ScoreRequest("text", WORDS, answer_text=ANSWER)])
        return result.logprobs, worker.describe()


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({"mtp": "own_shard", "shards": 2}, []),
        ({"tied": False, "layout": "vllm"}, ["part.lm_head.scheme=fp8"]),
    ],
)
def test_it_loads_and_means_what_the_source_means(options, settings, models, tmp_path):
    canonical = models(**{k: v for k, v in options.items() if k != "layout"})
    plan = make_plan(open_source(str(models(**options))), load_recipe("fp8", settings))
    folder = quantize(plan, tmp_path / "out", command="test").folder
    before, _ = scored(canonical, tmp_path / "before.log")
    after, said = scored(folder, tmp_path / "after.log")
    dtypes = {name: p.dtype for name, p in said.parameters.items() if name.endswith(".weight")}
    assert "float8_e4m3fn" in dtypes["language_model.model.layers.0.mlp.gate_up_proj.weight"]
    assert "bfloat16" in dtypes["language_model.model.layers.0.linear_attn.in_proj_ba.weight"]
    if settings:
        assert "float8" in dtypes["language_model.lm_head.weight"]
    # random weights: every token is about as likely as any other, so the differences are those of the rounding
    difference = sum(abs(a - b) for a, b in zip(after, before, strict=True)) / len(before)
    assert difference < 0.5
    assert sum(before) / len(before) == pytest.approx(sum(after) / len(after), abs=0.1)
