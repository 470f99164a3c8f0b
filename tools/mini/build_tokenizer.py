"""Trains `mini`'s tokenizer (byte-level BPE, 4096 tokens) and writes the tokenizer and processor files.

    python -m tools.mini.build_tokenizer --out base [--workers 2]

The text is that of the page generator's training split, and of the requests. Another tokenizer means another model:
everything has to be trained anew on it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages.prompt import REQUESTS
from tools.mini.architecture import VOCABULARY
from tools.mini.patches import LEAST_PIXELS, MOST_PIXELS

DOCUMENTS = 12_000
FIRST_SEED = 10_000_000
"""Of the tokenizer's documents: far from the seeds of training (loader.py), and of the training split too."""

REPEATS = 200
"""How often the requests stand in the text, so that their words are tokens."""

SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<|mask|>",
]  # fmt: skip
TAGS = ["<think>", "</think>", "<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", "<th>", "</th>"]
TABLE_TAG = re.compile(r"</?(table|tr|td|th)>")
PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How text is cut before the merges: Qwen's own pattern."""


def document(seed: int) -> tuple[str, str]:
    """The transcription of one document, without table tags (those are tokens of their own), and why there is none."""
    from ocria_compress.pages.synth.generate import sample_text

    try:
        return TABLE_TAG.sub("\n", sample_text(seed, "train")), ""
    except Exception as error:  # one bad document is told, and counted
        return "", f"{type(error).__name__}: {error}"


def corpus(documents: int, workers: int) -> Iterator[str]:
    """Transcriptions of documents of the training split, and the words of the requests.

    Raises:
        OcriaError: more than one document in a hundred cannot be written.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + documents)
    failed: list[str] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for seed, (text, problem) in zip(seeds, pool.map(document, seeds, chunksize=64), strict=True):
            if problem:
                failed.append(f"document {seed}: {problem}")
            else:
                yield text
    if failed:
        print(f"{len(failed)} of {documents} documents are left out; the first, {failed[0]}", file=sys.stderr)
    if len(failed) > documents / 100:
        raise OcriaError(f"{len(failed)} of {documents} documents cannot be written", where=failed[0])
    for messages in REQUESTS.values():
        for message in messages:
            content = message["content"]
            texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            yield from [f"{message['role']}\n{' '.join(texts)}\nassistant\n"] * REPEATS


def train_tokenizer(documents: int = DOCUMENTS, workers: int = 1) -> Any:
    """The tokenizer, added tokens included: the same one for the same number of documents."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=None, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFC()
    cut = pre_tokenizers.Split(Regex(PIECES), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, to_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL) - len(TAGS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(documents, workers), trainer)
    if tokenizer.get_vocab_size() != trainer.vocab_size:
        raise OcriaError(
            f"the text has merges for {tokenizer.get_vocab_size()} tokens only, not for {trainer.vocab_size}",
            fix="train on more documents: --documents",
        )
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in TAGS])
    return tokenizer


def tokenizer_config(tokenizer: Any, chat_template: str) -> dict[str, Any]:
    """The content of tokenizer_config.json."""
    added = {
        str(tokenizer.token_to_id(token)): {
            "content": token,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "single_word": False,
            "special": token in SPECIAL,
        }
        for token in SPECIAL + TAGS
    }
    return {
        "tokenizer_class": "Qwen2Tokenizer",
        "add_prefix_space": False,
        "add_bos_token": False,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "mask_token": "<|mask|>",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": False,
        "errors": "replace",
        "model_max_length": 4096,
        "chat_template": chat_template,
        "additional_special_tokens": [token for token in SPECIAL if token not in ("<|endoftext|>", "<|mask|>")],
        "added_tokens_decoder": added,
    }


def processor_configs() -> tuple[dict[str, Any], dict[str, Any]]:
    """The contents of preprocessor_config.json and video_preprocessor_config.json."""
    common: dict[str, Any] = {
        "do_resize": True,
        "do_rescale": True,
        "do_normalize": True,
        "do_convert_rgb": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "rescale_factor": 1 / 255,
        "resample": 3,
    }
    image_size = {"shortest_edge": LEAST_PIXELS, "longest_edge": MOST_PIXELS}
    video_size = {"shortest_edge": 4096, "longest_edge": 8 * 1024 * 1024}
    kind = {"processor_class": "Qwen3VLProcessor"}
    image = {**common, "size": image_size, "image_processor_type": "Qwen2VLImageProcessorFast", **kind}
    video = {**common, "size": video_size, **kind, "video_processor_type": "Qwen3VLVideoProcessor"}
    return image, {**video, "fps": 2, "min_frames": 4, "max_frames": 16}


def write(tokenizer: Any, out: Path) -> None:
    """Writes all files of tokenizer and processor into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    chat_template = Path(__file__).with_name("chat_template.jinja").read_text("utf-8")
    (out / "chat_template.jinja").write_text(chat_template, "utf-8")
    tokenizer.save(str(out / "tokenizer.json"))
    model = json.loads((out / "tokenizer.json").read_text("utf-8"))["model"]
    (out / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False), "utf-8")
    merges = (merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"])
    (out / "merges.txt").write_text("\n".join(merges) + "\n", "utf-8")
    image, video = processor_configs()
    configs = {
        "tokenizer_config.json": tokenizer_config(tokenizer, chat_template),
        "preprocessor_config.json": image,
        "video_preprocessor_config.json": video,
    }
    for name, config in configs.items():
        (out / name).write_text(json.dumps(config, indent=1), "utf-8")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Trains mini's tokenizer.")
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist yet")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--workers", type=int, default=2, help="processes that write documents")
    options = parser.parse_args()
    try:
        if options.out.exists():
            raise OcriaError(
                "this folder exists already", where=str(options.out), fix="remove it, or give another --out"
            )
        write(train_tokenizer(options.documents, options.workers), options.out)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
