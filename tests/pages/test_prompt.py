"""The reader: a page as the model sees it, never cut."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.pages.images import open_page
from ocria_compress.pages.pageset import PageSet
from ocria_compress.pages.prompt import MESSAGES, PROMPT, Reader

SIDE_FILES = [path for path in mini_folder().iterdir() if path.suffix not in (".safetensors", ".md")]


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(mini_folder())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of mini's side files, to break."""
    for path in SIDE_FILES:
        shutil.copy(path, tmp_path)
    return tmp_path


def allow_large_images(folder: Path) -> None:
    path = folder / "preprocessor_config.json"
    config = json.loads(path.read_text())
    config["size"]["longest_edge"] = 16 * 1024 * 1024
    path.write_text(json.dumps(config))


def test_the_prompt_is_the_one_mini_was_trained_on(reader: Reader) -> None:
    assert reader.prompt_text == (
        "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>" + PROMPT + "<|im_end|>\n<|im_start|>assistant\n"
    )
    assert reader.end == "<|im_end|>"


def test_the_ids_are_the_processors_own(reader: Reader) -> None:
    page = PageSet.load("eval").pages[0]
    image = open_page(page.image)
    ours = reader.encode(image)
    direct = reader.processor(text=[reader.prompt_text], images=[image], return_tensors="pt")
    assert set(ours) == set(direct)
    for name, tensor in ours.items():
        assert tensor.equal(direct[name]), name
    messages = [{"role": "user", "content": [{"type": "image", "image": image}, MESSAGES[0]["content"][1]]}]
    templated = reader.processor.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    assert ours["input_ids"].equal(templated["input_ids"])
    assert reader.image_tokens(ours) == page.width * page.height // 1024


def test_an_answer_is_what_the_tokenizer_makes_of_it_and_ends(reader: Reader) -> None:
    page = PageSet.load("eval").pages[1]
    assert page.reference and page.meta["table"]
    image = open_page(page.image)
    prompt = reader.encode(image)["input_ids"][0].tolist()
    whole = reader.encode(image, page.reference)["input_ids"][0].tolist()
    answer = reader.tokenizer(page.reference)["input_ids"]
    assert whole == [*prompt, *answer, reader.tokenizer.eos_token_id]
    assert len(answer) + 1 == page.meta["tokens"]


def test_a_3584_pixel_page_at_2048_tokens_is_refused_not_cut(folder: Path) -> None:
    """trl#5904, vllm#36653: 'Image features and image tokens do not match', because a length limit cut the image."""
    allow_large_images(folder)
    reader = Reader(folder)
    page = Image.new("RGB", (3584, 3584), "white")
    with pytest.raises(OcriaError, match=r"12560 tokens \(12544 of them for its image\) and 2048 are allowed"):
        reader.encode(page, max_tokens=2048)


def test_the_image_budget_of_the_model_itself_is_kept(reader: Reader) -> None:
    batch = reader.encode(Image.new("RGB", (3584, 3584), "white"), max_tokens=2048)
    assert reader.image_tokens(batch) == 1024


def test_the_limit_is_exact_with_and_without_an_answer(reader: Reader) -> None:
    image = Image.new("RGB", (448, 448), "white")
    for answer in (None, "Total"):
        needed = reader.encode(image, answer)["input_ids"].shape[1]
        assert reader.encode(image, answer, max_tokens=needed)["input_ids"].shape[1] == needed
        with pytest.raises(OcriaError, match=f"needs {needed} tokens") as caught:
            reader.encode(image, answer, max_tokens=needed - 1)
        assert "448 x 448" in str(caught.value.where) and str(needed) in str(caught.value.fix)


def test_an_image_placeholder_in_the_text_of_a_page_is_refused(reader: Reader) -> None:
    with pytest.raises(OcriaError, match="placeholder"):
        reader.encode(Image.new("RGB", (64, 64)), "a <|image_pad|> b")


def test_a_strip_of_a_page_is_refused(reader: Reader) -> None:
    with pytest.raises(OcriaError, match="cannot be processed") as caught:
        reader.encode(Image.new("RGB", (6000, 20)))
    assert "6000 x 20" in str(caught.value.where)


@pytest.mark.parametrize("name", ["preprocessor_config.json", "tokenizer.json", "chat_template.jinja"])
def test_a_model_that_lost_its_processor_files_is_refused(folder: Path, name: str) -> None:
    """transformers#44623, llm-compressor#1305: folders without processor files or chat template."""
    (folder / name).unlink()
    config = folder / "tokenizer_config.json"
    if name == "chat_template.jinja":
        content = json.loads(config.read_text())
        del content["chat_template"]
        config.write_text(json.dumps(content))
    if name == "tokenizer.json":
        (folder / "vocab.json").unlink()
    with pytest.raises(OcriaError) as caught:
        Reader(folder)
    assert caught.value.where == str(folder) and caught.value.fix


def test_a_chat_template_that_drops_the_image_is_refused(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages[0].role }}")
    with pytest.raises(OcriaError, match="0 image placeholders"):
        Reader(folder).encode(Image.new("RGB", (64, 64)))


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="no such model folder"):
        Reader(tmp_path / "none")


def test_code_in_a_model_folder_is_never_run(folder: Path) -> None:
    mark = folder / "was_run"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    path = folder / "preprocessor_config.json"
    config = json.loads(path.read_text())
    config["auto_map"] = {"AutoProcessor": "evil.Evil", "AutoImageProcessor": "evil.Evil"}
    path.write_text(json.dumps(config))
    with contextlib.suppress(OcriaError):
        Reader(folder)
    assert not mark.exists()


def test_torchvision_works_after_activation_and_pages_import_nothing_heavy() -> None:
    """'operator torchvision::nms does not exist': PyPI's torchvision beside a CPU build of torch."""
    code = """
import sys
from ocria_compress.pages import images, pageset, prompt, synth
heavy = {"torch", "torchvision", "transformers", "numpy", "PIL"} & set(sys.modules)
assert not heavy, heavy
from ocria_compress.pages.torchvision_cpu import activate
first = activate()
import torch, torchvision
from torchvision.transforms.v2 import functional
assert functional.resize(torch.zeros(3, 8, 8), [4, 4]).shape == (3, 4, 4)
assert activate() == first
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
