"""Real vLLM: the bundled model reads a bundled page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.evaluate.ned import normalized_edit_distance
from ocria_compress.pages.pageset import Page, PageSet
from ocria_compress.serving.client import VllmWorker
from ocria_compress.serving.protocol import PageRequest, ScoreRequest

pytestmark = pytest.mark.vllm

PROMPT = (
    "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Transcribe this page to Markdown.<|im_end|>\n"
    "<|im_start|>assistant\n"
)


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    return list(PageSet.load("eval").take(3).pages)


@pytest.fixture(scope="module")
def worker(vllm_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmWorker]:
    log = tmp_path_factory.mktemp("vllm") / "vllm.log"
    with VllmWorker(mini_folder(), python=vllm_python, log=log, engine_args={"max_model_len": 2048}) as w:
        yield w


def test_mini_reads_pages(worker: VllmWorker, pages: list[Page]) -> None:
    asked = [PageRequest(page.id, str(page.image), PROMPT, 1024) for page in pages]
    found = {result.id: result for result in worker.read_pages(asked)}
    distances = [normalized_edit_distance(found[p.id].text, p.reference or "") for p in pages]
    assert sum(distances) / len(distances) < 0.1, distances
    for result in found.values():
        assert result.finish_reason == "stop" and result.prompt_tokens > 100 and len(result.token_ids) > 10


def test_what_vllm_made_of_the_model(worker: VllmWorker) -> None:
    found = worker.describe()
    assert found.model_class == "Qwen3_5ForConditionalGeneration" and found.quantization is None
    assert found.packed_modules_mapping["in_proj_qkvz"] == ["in_proj_qkv", "in_proj_z"]
    assert found.max_model_len == 2048 and found.versions["vllm"] == "0.32.0"
    assert len(found.kv_cache) == 3, "every fourth of twelve layers attends to the whole text"
    embedding = found.parameters["language_model.model.embed_tokens.weight"]
    assert (embedding.dtype, embedding.shape[1]) == ("bfloat16", 256)


def test_the_pages_own_text_is_likelier_than_another_pages(worker: VllmWorker, pages: list[Page]) -> None:
    image = str(pages[0].image)
    texts = [ScoreRequest(p.id, PROMPT, p.reference or "", image_path=image) for p in pages[:2]]
    own, other = worker.prompt_logprobs(texts)
    assert sum(own.logprobs) / len(own.logprobs) > -0.6 > sum(other.logprobs) / len(other.logprobs)
    again = worker.prompt_logprobs([ScoreRequest("ids", PROMPT, answer_ids=own.token_ids, image_path=image)])[0]
    assert again.token_ids == own.token_ids and len(again.logprobs) == len(own.logprobs)


def test_log_probabilities_come_when_asked_for(worker: VllmWorker, pages: list[Page]) -> None:
    (found,) = worker.read_pages([PageRequest("x", str(pages[0].image), PROMPT, 4, logprobs=3)])
    assert found.finish_reason == "length" and found.logprobs is not None and found.top_logprobs is not None
    assert len(found.logprobs) == len(found.top_logprobs) == len(found.token_ids) == 4
    for token, value, top in zip(found.token_ids, found.logprobs, found.top_logprobs, strict=True):
        assert len(top) == 3 and value == max(top.values()) == top[str(token)], "greedy takes the best"


def test_a_bad_page_is_named_and_the_engine_goes_on(worker: VllmWorker, pages: list[Page], tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no image")
    good = PageRequest("good", str(pages[0].image), PROMPT, 8)
    with pytest.raises(OcriaError, match=r"\(bad\).*cannot identify image"):
        list(worker.read_pages([good, PageRequest("bad", str(tmp_path / "bad.png"), PROMPT, 8)]))
    with pytest.raises(OcriaError, match=r"\(long\).*maximum context length is 2048"):
        list(worker.read_pages([PageRequest("long", str(pages[0].image), PROMPT + "word " * 4000, 8)]))
    assert [result.id for result in worker.read_pages([good])] == ["good"]
