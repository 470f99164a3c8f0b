"""Makes the model folder out of a trained state: bf16 in shards of 15 MB, with tokenizer, processor and chat template.

    python -m tools.mini.export run/state.pt --base base --out new_mini

The tensors have the names of Qwen3.5's released checkpoints, `mtp.*` among them: transformers loads the rest and leaves
those aside, vLLM drafts with them.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError

if TYPE_CHECKING:
    from torch import Tensor

SHARD_BYTES = 15_000_000
MOST_BYTES = 28 * 2**20
"""Of all weights, so that the whole repository stays small enough to travel."""

MAX_NEW_TOKENS = 1024

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
        state: what the trainer saved; loaded as tensors and plain values only.
        base: the folder of tokenizer and processor files that the state was trained with.
        out: must not exist; it appears when it is whole.

    Raises:
        OcriaError: `out` exists; the state cannot be read or is not this model's; a file of `base` is missing; the
            weights are larger than MOST_BYTES or hold a value that is no number.
    """
    if out.exists():
        raise OcriaError("this folder exists already", where=str(out), fix="remove it, or give another --out")
    missing = [name for name in PROCESSOR_FILES if not (base / name).is_file()]
    if missing:
        raise OcriaError(
            f"there is no {missing[0]} in the tokenizer's folder",
            where=str(base),
            fix="give the folder that `python -m tools.mini.build_tokenizer` wrote",
        )
    tensors = tensors_of(state, base)
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write_weights(tensors, part)
    for name, config in configs(base).items():
        (part / name).write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    for name in PROCESSOR_FILES:
        shutil.copyfile(base / name, part / name)
    part.rename(out)


def tensors_of(state: Path, base: Path) -> dict[str, Tensor]:
    """All tensors of the checkpoint, bf16, under their names in it; raises OcriaError as `export` does."""
    import torch

    from tools.mini.checkpoint import load
    from tools.mini.model import Net

    try:
        content = load(state)
    except Exception as error:  # whatever unpickling a file that is none raises
        raise OcriaError(f"this file cannot be read as a saved state: {error}", where=str(state)) from error
    if content is None:
        raise OcriaError("there is no such file", where=str(state), fix="give the state.pt in the folder of a run")
    net = Net(base, length=128, dtype=torch.float32)
    parameters = dict(net.named_parameters())
    given = content.get("parameters", {}) if isinstance(content, dict) else {}
    strange = [n for n in (*parameters, *given) if n not in given or n not in parameters]
    strange += [n for n in parameters if n in given and given[n].shape != parameters[n].shape]
    if strange:
        raise OcriaError(
            f"this state is not of this model: '{strange[0]}' is missing, unknown or of another shape",
            where=str(state),
            fix="export with the version of the trainer that made it",
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(given[name])
    tensors = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in net.exported().items()}
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise OcriaError(f"the tensor {name} holds a value that is no number", where=str(state))
    return tensors


def write_weights(tensors: dict[str, Tensor], out: Path) -> None:
    """Writes shards of at most SHARD_BYTES, and their index; raises OcriaError if all are over MOST_BYTES."""
    from safetensors.torch import save_file

    total = sum(tensor.nbytes for tensor in tensors.values())
    if total > MOST_BYTES:
        raise OcriaError(f"the weights have {total:,} bytes, and {MOST_BYTES:,} are the most they may have")
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        if size + tensor.nbytes > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        save_file(shard, out / file, metadata={"format": "pt"})
        places |= dict.fromkeys(shard, file)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n", "utf-8")


def configs(base: Path) -> dict[str, dict[str, Any]]:
    """config.json, with the keys of a released Qwen3.5 checkpoint, and generation_config.json."""
    import transformers

    from tools.mini.architecture import TEXT, VISION, token_ids
    from tools.random_checkpoint import config_of

    ids = token_ids(base)
    names = {"image": "<|image_pad|>", "video": "<|video_pad|>", "vision_start": "<|vision_start|>"}
    names |= {"vision_end": "<|vision_end|>", "eos": "<|im_end|>", "pad": "<|endoftext|>"}
    text: dict[str, Any] = {key: value for key, value in TEXT.items() if key != "rope_parameters"}
    rope: dict[str, Any] = dict(TEXT["rope_parameters"])  # type: ignore[call-overload]
    # Readers of older configs look for the factor beside the rest of the text's settings.
    text["partial_rotary_factor"] = rope["partial_rotary_factor"]
    config = config_of(text, VISION, ids={name: ids[token] for name, token in names.items()}, rope=rope, tied=True)
    generation = {
        "do_sample": False,
        "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
        "max_new_tokens": MAX_NEW_TOKENS,
        "pad_token_id": ids["<|endoftext|>"],
        "transformers_version": transformers.__version__,
    }
    return {
        "config.json": config | {"transformers_version": transformers.__version__},
        "generation_config.json": generation,
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Makes the model folder of mini.")
    parser.add_argument("state", type=Path, help="the state.pt of a run")
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist yet")
    parser.add_argument("--base", type=Path, default=mini_folder(), help="folder with tokenizer and processor files")
    options = parser.parse_args()
    try:
        export(options.state, options.base, options.out)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
