"""Makes the model folder out of a trained state: bf16, two shards, with tokenizer, processor and chat template.

python -m tools.mini.export run/state.pt --out new_mini
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.pages import torchvision_cpu

PROCESSOR_FILES = (
    "chat_template.jinja",
    "merges.txt",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
    "vocab.json",
)


def export(state: Path, base: Path, out: Path) -> None:
    """Writes the folder `out`.

    Args:
        state: what train.py saved; loaded as tensors only.
        base: where the tokenizer and processor files come from.
        out: must not exist.

    Raises:
        OcriaError: `out` exists, or the state does not hold the model's parameters.
    """
    import torch

    torchvision_cpu.activate()
    from transformers import GenerationConfig, Qwen3_5ForConditionalGeneration

    from tools.mini.architecture import make_config, token_ids

    if out.exists():
        raise OcriaError("this folder exists already", where=str(out), fix="remove it, or give another --out")
    ids = token_ids(base)
    model = Qwen3_5ForConditionalGeneration(make_config(base))
    loaded = model.load_state_dict(torch.load(state, map_location="cpu", weights_only=True), strict=False)
    if loaded.unexpected_keys or set(loaded.missing_keys) - {"lm_head.weight"}:
        raise OcriaError(f"this state is not of this model: {loaded}", where=str(state))
    model.tie_weights()
    model.bfloat16()
    model.config.dtype = torch.bfloat16
    text_config: Any = model.config.text_config
    text_config.partial_rotary_factor = 0.5  # for readers; rope_parameters rules
    model.generation_config = GenerationConfig(
        do_sample=False,
        eos_token_id=[ids["<|im_end|>"], ids["<|endoftext|>"]],
        pad_token_id=ids["<|endoftext|>"],
        max_new_tokens=512,
    )
    model.save_pretrained(out, max_shard_size="15MB")
    for name in PROCESSOR_FILES:
        shutil.copyfile(base / name, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the model folder of mini.")
    parser.add_argument("state", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base", type=Path, default=mini_folder(), help="folder with tokenizer and processor files")
    options = parser.parse_args()
    try:
        export(options.state, options.base, options.out)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
