"""Reads a page set with transformers, greedily and many pages at a time.

    python -m tools.mini.read_pages MODEL --pages SET --out predictions [--device cuda] [--batch 128] [--request plain]

MODEL is a model folder or `mini`, SET a folder with a manifest or the name of a bundled set. `predictions` becomes a
folder with `predictions.jsonl` (a line a page: `{"id", "text", "finished", "tokens"}`, for `tools.mini_report`), one
Markdown file a page, and `run.json`: settings, versions, time, and why each page ended.

Pages are read in order of their size, padded on the left. That changes nothing but the order of sums: transformers
masks the padding in full attention, and zeroes it before Gated DeltaNet's convolution, where a zero leaves the empty
state empty; tests/tools/test_mini_read_pages.py holds batches and single pages together.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset import Page, PageSet
from ocria_compress.pages.prompt import REQUESTS, Reader

if TYPE_CHECKING:
    import torch

MAX_TOKENS = 1024
"""Tokens that a page may take: the generator's longest have about 720."""

DTYPES = ("bfloat16", "float32")


@dataclass(frozen=True)
class Reading:
    """What was read on a page.

    Attributes:
        id: of the page.
        text: without the end token.
        ids: the tokens, the end token included where there is one.
        finished: the model ended by itself; otherwise the token limit cut it.
        prompt_tokens: of the request, image tokens included.
    """

    id: str
    text: str
    ids: list[int]
    finished: bool
    prompt_tokens: int


class BatchReader:
    """A model that reads pages.

    Args:
        folder: a Hugging Face model folder. No code in it is run.
        device: "cuda", "cuda:1", "cpu" ...
        dtype: one of DTYPES: of weights and arithmetic.
        request: one of `REQUESTS`.

    Raises:
        OcriaError: there is no such device; the folder has no processor or model that transformers can load.
    """

    def __init__(self, folder: Path, device: str = "cpu", dtype: str = "float32", request: str = "plain") -> None:
        import torch

        self.prompt = Reader(folder, REQUESTS[request])
        from transformers import AutoModelForImageTextToText

        if device.startswith("cuda") and not torch.cuda.is_available():
            raise OcriaError("there is no GPU that this PyTorch can use", fix="give --device cpu")
        try:
            self.model: Any = AutoModelForImageTextToText.from_pretrained(
                str(folder), dtype=getattr(torch, dtype), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:
            raise OcriaError(f"this model cannot be loaded: {error}", where=str(folder)) from error
        self.device = device
        self.model.eval().to(device)

    def read(self, pages: Sequence[Page], max_tokens: int = MAX_TOKENS) -> list[Reading]:
        """Reads some pages at once.

        Args:
            pages: of any sizes.
            max_tokens: tokens that each may take.
        """
        import torch

        prompt, images = self.prompt, [page.open() for page in pages]
        # One by one first: a page that does not fit is refused with its size.
        encoded = [prompt.encode(image) for image in images]
        batch = _padded(encoded, prompt.tokenizer.pad_token_id)
        config = self.model.generation_config
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        with torch.inference_mode():
            made = self.model.generate(
                **{name: tensor.to(self.device) for name, tensor in batch.items()},
                do_sample=False,
                num_beams=1,
                max_new_tokens=max_tokens,
                pad_token_id=prompt.tokenizer.pad_token_id,
            )
        width = batch["input_ids"].shape[1]
        readings = []
        for page, inputs, row in zip(pages, encoded, made[:, width:].tolist(), strict=True):
            end = next((place for place, token in enumerate(row) if token in ends), None)
            ids = row if end is None else row[: end + 1]
            text = prompt.tokenizer.decode(ids, skip_special_tokens=True)
            readings.append(Reading(page.id, text, ids, end is not None, inputs["input_ids"].shape[1]))
        return readings


def _padded(encoded: Sequence[dict[str, torch.Tensor]], padding: int) -> dict[str, torch.Tensor]:
    """Single pages as one batch: texts padded on the left, patches one behind the other."""
    import torch

    width = max(one["input_ids"].shape[1] for one in encoded)
    fillers = {"input_ids": padding, "attention_mask": 0, "mm_token_type_ids": 0}
    batch = {}
    for name in encoded[0]:
        parts = [one[name] for one in encoded]
        if name in fillers:
            value = fillers[name]
            parts = [torch.nn.functional.pad(part, (width - part.shape[1], 0), value=value) for part in parts]
        batch[name] = torch.cat(parts)
    return batch


def by_size(pages: Sequence[Page]) -> list[Page]:
    """Largest first: what does not fit into memory fails at once."""
    return sorted(pages, key=lambda page: (-page.width * page.height, page.id))


def read_set(
    reader: BatchReader, pages: Sequence[Page], batch: int, max_tokens: int = MAX_TOKENS
) -> Iterator[list[Reading]]:
    """Reads pages in batches, largest pages first."""
    ordered = by_size(pages)
    for first in range(0, len(ordered), batch):
        yield reader.read(ordered[first : first + batch], max_tokens)


def file_names(pages: Sequence[Page]) -> dict[str, str]:
    """The Markdown file of each page id: the id, with what no file name may hold replaced, and never one twice."""
    names: dict[str, str] = {}
    for number, page in enumerate(pages):
        name = re.sub(r"[^\w.-]", "_", page.id).strip(".")[:100] or "page"
        taken = {each.lower() for each in names.values()}
        names[page.id] = f"{name}.md" if f"{name}.md".lower() not in taken else f"{name}-{number}.md"
    return names


def predict(options: argparse.Namespace) -> None:
    """The command, parsed; raises OcriaError."""
    import torch
    import transformers

    if options.batch < 1 or options.max_tokens < 1:
        raise OcriaError("--batch and --max-tokens must be at least 1", fix="give a larger number")
    model = mini_folder() if options.model == "mini" else Path(options.model)
    out: Path = options.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OcriaError("there is something at this place already", where=str(out), fix="give another --out")
    pages = PageSet.load(options.pages)
    wanted = pages.take(options.count) if options.count is not None else pages
    began = time.monotonic()
    reader = BatchReader(model, options.device, options.dtype, options.request)
    loaded = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    names, readings = file_names(wanted.pages), []
    with (out / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for some in read_set(reader, wanted.pages, options.batch, options.max_tokens):
            for one in some:
                (out / names[one.id]).write_text(one.text, "utf-8")
                line = {"id": one.id, "text": one.text, "finished": one.finished, "tokens": len(one.ids)}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            readings += some
            seconds = time.monotonic() - loaded
            left = seconds / len(readings) * (len(wanted) - len(readings))
            print(f"{len(readings)} of {len(wanted)} pages, {seconds:.0f} s, about {left:.0f} s left", file=sys.stderr)
    seconds = time.monotonic() - loaded
    tokens = sum(len(one.ids) for one in readings)
    settings = {name: getattr(options, name) for name in ("request", "device", "dtype", "batch", "max_tokens")}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    run = {
        "model": model.resolve().name,
        "pages": {"sha256": wanted.sha256, "count": len(wanted)},
        "settings": settings | {"greedy": True},
        "versions": versions,
        "seconds": {"loading": round(loaded - began, 1), "reading": round(seconds, 1)},
        "tokens": tokens,
        "tokens_per_s": round(tokens / seconds, 1),
        "cut": sum(not one.finished for one in readings),
        "readings": {
            one.id: {
                "file": names[one.id],
                "tokens": len(one.ids),
                "prompt_tokens": one.prompt_tokens,
                "finish_reason": "stop" if one.finished else "length",
            }
            for one in readings
        },
    }
    (out / "run.json").write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{len(readings)} pages, {tokens} tokens, {seconds:.0f} s, {run['cut']} cut at {options.max_tokens} tokens")


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Reads a page set with transformers.")
    parser.add_argument("model", help="a model folder, or mini")
    parser.add_argument("--pages", required=True, help="a folder with a manifest.jsonl, or calibration, or eval")
    parser.add_argument("--out", type=Path, required=True, help="a folder, empty or not there yet")
    parser.add_argument("--count", type=int, help="only this many pages from the front")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=DTYPES, help="bfloat16 on a GPU and float32 on a CPU by default")
    parser.add_argument("--batch", type=int, help="pages at once; 128 on a GPU and 8 on a CPU by default")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help="tokens that a page may take")
    parser.add_argument("--request", choices=list(REQUESTS), default="plain")
    options = parser.parse_args(arguments)
    cpu = options.device == "cpu"
    options.dtype = options.dtype or ("float32" if cpu else "bfloat16")
    options.batch = options.batch if options.batch is not None else (8 if cpu else 128)
    try:
        predict(options)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
