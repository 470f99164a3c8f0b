"""What `mini` is trained on is what it is served: requests, tokens and pixels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from ocria_compress.bundled import mini_folder
from ocria_compress.pages.prompt import REQUESTS, Reader
from ocria_compress.pages.synth.generate import sample
from tools.mini import source
from tools.mini.augment import normalized
from tools.mini.packing import Arrays, Page, Shapes, fill
from tools.mini.patches import VALUES, patchify, resized
from tools.mini.prompts import Requests, load_tokenizer

ANSWER = '# Größe\n\n<table>\n<tr><th colspan="2">Prix</th></tr>\n<tr><td>9,50 €</td><td>$x^{2}$</td></tr>\n</table>'
SIZES = [(64, 96), (300, 211), (1024, 256), (640, 448), (17, 23), (1500, 1100)]
"""Width and height: multiples of 32 and others, one so small and one so large that the processor changes it."""


def _image(width: int, height: int) -> Image.Image:
    image = Image.new("RGB", (width, height), (250, 240, 225))
    pen = ImageDraw.Draw(image)
    for line in range(0, height, 14):
        pen.text((3, line), "Rechnung 2031 total 42.50 alpha beta gamma", fill=(20, 30, 120))
    return image


def _packed(request: str, image: Image.Image, answer: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, Page]:
    """The trainer's ids, positions and patches of one page, by the functions that its workers and loader use."""
    requests = Requests.of(mini_folder())
    slot = np.zeros((4096, VALUES), np.uint8)
    rows, columns = patchify(resized(np.asarray(image)), slot)
    ids = np.array(load_tokenizer(mini_folder()).encode(answer, add_special_tokens=False).ids, np.int16)
    page = Page(0, 1.0, rows, columns, request, ids, slot).measured(requests)
    shapes = Shapes(rows=1, length=2048, patches=4096, targets=512, pages=4, longest=2048)
    arrays = Arrays.empty(shapes)
    fill(arrays, [[page]], shapes, requests)
    return arrays.ids[: page.tokens], arrays.positions[:, : page.tokens], arrays.patches[: page.count], page


@pytest.fixture(scope="module")
def readers() -> dict[str, Reader]:
    return {name: Reader(mini_folder(), messages) for name, messages in REQUESTS.items()}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("request_name", list(REQUESTS))
def test_the_trainer_packs_the_ids_that_serving_makes(
    readers: dict[str, Reader], request_name: str, size: tuple[int, int]
) -> None:
    image = _image(*size)
    ids, *_, page = _packed(request_name, image, ANSWER)
    served = readers[request_name].encode(image)
    begin = len(ids) - page.targets
    assert ids[:begin].tolist() == served["input_ids"][0].tolist()
    taught = readers[request_name].encode(image, ANSWER)["input_ids"][0].tolist()
    assert ids.tolist() == taught
    assert served["image_grid_thw"].tolist() == [[1, page.rows, page.columns]]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_trainer_s_patches_are_the_processor_s(readers: dict[str, Reader], size: tuple[int, int]) -> None:
    image = _image(*size)
    _, _, patches, _ = _packed("plain", image, ANSWER)
    ours = normalized(torch.from_numpy(patches), torch.float32)
    frames = readers["plain"].encode(image)["pixel_values"].view(-1, 3, 2, 16, 16)
    assert torch.equal(frames[:, :, 0], frames[:, :, 1])
    theirs = frames[:, :, 0].permute(0, 2, 3, 1).flatten(1)
    # Pillow's and torchvision's bicubic round apart by a grey level or two, at edges; nothing is resized otherwise.
    grey = (ours - theirs).abs() * 127.5
    assert grey.max() <= (8 if size[0] % 32 or size[1] % 32 else 1e-3) and grey.mean() < 0.5


def test_the_trainer_s_positions_are_the_model_s(readers: dict[str, Reader]) -> None:
    from transformers import AutoConfig, Qwen3_5ForConditionalGeneration

    image = _image(300, 211)
    _, positions, _, _ = _packed("system", image, ANSWER)
    batch = readers["system"].encode(image, ANSWER)
    with torch.device("meta"):
        model = Qwen3_5ForConditionalGeneration(AutoConfig.from_pretrained(str(mini_folder())))
    expected, _ = model.model.get_rope_index(batch["input_ids"], batch["mm_token_type_ids"], batch["image_grid_thw"])
    assert positions.tolist() == expected[:, 0].tolist()


def test_references_are_cut_into_the_same_tokens_by_training_and_serving(readers: dict[str, Reader]) -> None:
    tokenizer = load_tokenizer(mini_folder())
    for seed in range(12):
        text = sample(seed, "train", size=(400, 400)).reference
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert ids == readers["plain"].tokenizer.encode(text, add_special_tokens=False)
        assert readers["plain"].tokenizer.decode(ids, skip_special_tokens=True) == text


def test_a_template_that_leaves_the_image_out_is_refused() -> None:
    with pytest.raises(ValueError, match="0 image placeholders"):
        Requests.of(mini_folder(), {"odd": [{"role": "user", "content": "no image"}]})


def test_pages_are_asked_for_in_the_shares_of_the_requests() -> None:
    asked = Counter(source.request_of(seed, seed % 20 < 9) for seed in range(20_000))
    assert set(asked) == set(REQUESTS)
    assert asked["plain"] / 20_000 == pytest.approx(0.8, abs=0.01)
    assert asked["system"] / 20_000 == pytest.approx(0.1, abs=0.01)
    assert asked["tables"] / 20_000 == pytest.approx(0.1, abs=0.01)
    assert all(source.request_of(seed, False) != "tables" for seed in range(1000))


def test_the_answer_to_a_request_for_tables_is_the_page_s_tables() -> None:
    seen = set()
    for seed in range(10**12, 10**12 + 200):
        if source.request_of(seed, True) == "plain" and "plain" in seen:
            continue
        pixels, request, answer = source.make(seed, 1.0)
        page = sample(seed, "train")
        assert answer == (page.tables if request == "tables" else page.reference) and answer
        assert pixels.shape == (page.image.height, page.image.width, 3) and pixels.dtype == np.uint8
        seen.add(request)
        if seen == set(REQUESTS):
            return
    pytest.fail(f"200 pages were never asked for in some way: only {sorted(seen)}")


def test_a_tokenizer_has_4096_tokens_and_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.mini import build_tokenizer

    monkeypatch.setattr(build_tokenizer, "ProcessPoolExecutor", _InThisProcess)
    build_tokenizer.write(build_tokenizer.train_tokenizer(700, 1), tmp_path / "base")
    reader = Reader(tmp_path / "base")
    assert len(reader.tokenizer) == 4096
    names = [*build_tokenizer.SPECIAL, *build_tokenizer.TAGS]
    assert [reader.tokenizer.convert_tokens_to_ids(name) for name in names] == list(range(4071, 4096))
    assert [Reader(mini_folder()).tokenizer.convert_tokens_to_ids(name) for name in names] == list(range(4071, 4096))
    batch = reader.encode(_image(300, 211), ANSWER)
    begin = int((batch["input_ids"][0] == reader.processor.image_token_id).nonzero()[-1]) + 1
    assert reader.tokenizer.decode(batch["input_ids"][0, begin:]).endswith(ANSWER + "<|im_end|>")
    sizes = reader.processor.image_processor.size
    assert (sizes["shortest_edge"], sizes["longest_edge"]) == (4096, 1024 * 1024)


def test_a_text_that_is_too_short_makes_no_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    from ocria_compress.errors import OcriaError
    from tools.mini import build_tokenizer

    monkeypatch.setattr(build_tokenizer, "ProcessPoolExecutor", _InThisProcess)
    with pytest.raises(OcriaError, match="tokens only"):
        build_tokenizer.train_tokenizer(5, 1)
    monkeypatch.setattr(build_tokenizer, "document", lambda seed: ("", "ValueError: a bug"))
    with pytest.raises(OcriaError, match="5 of 5 documents"):
        build_tokenizer.train_tokenizer(5, 1)


class _InThisProcess:
    """A pool without processes."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> _InThisProcess:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, function, items, chunksize: int = 1):
        return map(function, items)
