"""How often the multi-token-prediction layer guesses the model's next token: the acceptance of a draft of one.

    python -m tools.mini.mtp_acceptance MODEL --pages SET [--predictions predictions.jsonl] [--device cuda]
        [--json out.json]

MODEL is an exported folder of `mini`, with `mtp.*`. At each place of a transcription the layer sees the model's hidden
state and the token that follows, and proposes the one after that; it is accepted if the model, which sees both tokens,
would write it too. That is vLLM's rule for greedy decoding with `num_speculative_tokens` 1. Transcriptions are the
pages' references or, with `--predictions` (of `tools.mini.read_pages` or `tools.predict_vllm`), what the model wrote
itself. The packed forward pass of the trainer computes it, on the pixels that the model folder's processor makes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset import Page, PageSet
from ocria_compress.pages.prompt import REQUESTS, Reader

if TYPE_CHECKING:
    from torch import Tensor

    from tools.mini.model import Inputs, Net
    from tools.mini.packing import Page as PackedPage
    from tools.mini.packing import Shapes
    from tools.mini.prompts import Requests


@dataclass(frozen=True)
class Acceptance:
    """Of one page.

    Attributes:
        id: of the page.
        drafted: places at which the layer proposed a token and the model wrote one.
        accepted: of those, proposals that the model would have written too.
        own: tokens of the transcription, the end included, that the model's largest logit gives; of `tokens`.
    """

    id: str
    drafted: int
    accepted: int
    own: int
    tokens: int


class _Job(NamedTuple):
    """A page to be computed: as packing.py lays it out, and its pixels [patches, 768], -1 to 1."""

    id: str
    page: PackedPage
    pixels: Tensor


def load_net(folder: Path, device: str, length: int) -> Net:
    """The trainer's net with the tensors of an exported folder.

    Raises:
        OcriaError: the folder holds no weights, none of `mtp.*`, or those of another model.
    """
    import torch
    from safetensors.torch import load_file

    from tools.mini.model import Net
    from tools.mini.setup import choose_ways

    tensors: dict[str, Tensor] = {}
    for shard in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(shard)
    if not any(name.startswith("mtp.") for name in tensors):
        raise OcriaError(
            "this model has no multi-token-prediction layer: no tensor is named mtp.*",
            where=str(folder),
            fix="give a folder that `python -m tools.mini.export` wrote",
        )
    kind = "cpu" if device == "cpu" else "cuda"
    dtype = torch.float32 if kind == "cpu" else torch.bfloat16
    rule, attention = choose_ways(kind, dtype, True, "fla", None)
    net = Net(folder, length, length, 4096, dtype, rule, attention)
    try:
        net.load_exported(tensors)
    except (RuntimeError, ValueError) as error:
        raise OcriaError(f"these are not the weights of mini: {error}", where=str(folder)) from error
    return net.to(device)


def job_of(page: Page, text: str, reader: Reader, kind: str, requests: Requests) -> _Job:
    """A page and a transcription of it, encoded as the model folder's processor does."""
    import numpy as np
    import torch

    from tools.mini.packing import Page as Packed

    batch = reader.encode(page.open())
    rows, columns = batch["image_grid_thw"][0, 1:].tolist()
    # Both frames of the processor's patches are the same; the net takes one, colour last.
    pixels = batch["pixel_values"].view(-1, 3, 2, 16, 16)[:, :, 0].permute(0, 2, 3, 1).reshape(rows * columns, -1)
    ids = np.array(reader.tokenizer.encode(text, add_special_tokens=False), np.int16)
    blank = np.zeros((rows * columns, pixels.shape[1]), np.uint8)
    return _Job(page.id, Packed(0, 1.0, rows, columns, kind, ids, blank).measured(requests), pixels.to(torch.float32))


def batches(jobs: Sequence[_Job], shapes: Shapes) -> Iterator[list[list[_Job]]]:
    """The rows of each batch, until every job was in one.

    Raises:
        OcriaError: a page does not fit into a row.
    """
    from tools.mini.packing import pack

    left = list(jobs)
    for job in left:
        if job.page.tokens > shapes.length:
            raise OcriaError(
                f"page '{job.id}' and its transcription have {job.page.tokens} tokens, and {shapes.length} are allowed",
                fix="allow more tokens: --length",
            )
    while left:
        rows = pack([job.page for job in left], 0, shapes)
        chosen = {i for row in rows for i in row}
        yield [[left[i] for i in row] for row in rows]
        left = [job for i, job in enumerate(left) if i not in chosen]


def inputs_of_jobs(rows: list[list[_Job]], shapes: Shapes, requests: Requests, net: Net, device: str) -> Inputs:
    """The net's inputs for a batch."""
    import torch

    from tools.mini.feed import inputs_of, on_device
    from tools.mini.packing import Arrays, fill

    arrays = Arrays.empty(shapes)
    fill(arrays, [[job.page for job in row] for row in rows], shapes, requests)
    pixels = torch.zeros(arrays.patches.shape, dtype=net.dtype)
    given = torch.cat([job.pixels for row in rows for job in row])
    pixels[: len(given)] = given.to(net.dtype)
    return inputs_of(on_device(arrays, device), pixels.to(device))


def guesses(net: Net, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """The largest logits at every target: of the model for the next token, of the MTP layer for the one after it."""
    import torch

    from tools.mini import pieces

    language = net.hf.model.language_model
    table = language.embed_tokens.weight

    def largest(hidden: Tensor, norm: Tensor) -> Tensor:
        return pieces.linear(pieces.rms_norm(hidden.index_select(0, inputs.targets), norm), table).argmax(-1)

    with torch.inference_mode():
        embedded = net.embedded(inputs)
        hidden = net._decoded(embedded, inputs)
        ahead = net.mtp_hidden(embedded, hidden, inputs)
        return largest(hidden, language.norm.weight).cpu(), largest(ahead, net.mtp.norm.weight).cpu()


def measure(
    net: Net, jobs: Sequence[_Job], requests: Requests, device: str, rows: int, length: int
) -> Iterator[Acceptance]:
    """The acceptance of each page, in the order of the batches."""
    from tools.mini.packing import Shapes

    tokens = rows * length
    shapes = Shapes(rows, length, 4 * tokens, tokens, max(8, tokens // 16), length, 4096)
    for batch in batches(jobs, shapes):
        inputs = inputs_of_jobs(batch, shapes, requests, net, device)
        own, drafts = guesses(net, inputs)
        labels = inputs.labels.cpu()
        begin = 0
        for job in (job for row in batch for job in row):
            end = begin + job.page.targets
            accepted = int((drafts[begin : end - 1] == own[begin + 1 : end]).sum())
            right = int((own[begin:end] == labels[begin:end]).sum())
            yield Acceptance(job.id, end - begin - 1, accepted, right, end - begin)
            begin = end


def summary(found: Sequence[Acceptance]) -> dict[str, Any]:
    """Over all pages: `acceptance` is a share of the drafted tokens, `accepted_length` tokens a step, the bonus too."""
    drafted, accepted = (sum(getattr(each, name) for each in found) for name in ("drafted", "accepted"))
    tokens, own = (sum(getattr(each, name) for each in found) for name in ("tokens", "own"))
    share = accepted / drafted if drafted else None
    return {
        "pages": len(found),
        "drafted": drafted,
        "accepted": accepted,
        "acceptance": share,
        "accepted_length": None if share is None else 1 + share,
        "tokens": tokens,
        "own_tokens": own / tokens if tokens else None,
    }


def texts_of(pages: PageSet, predictions: Path | None) -> dict[str, str]:
    """Transcriptions by page id: references, or predictions that the model ended by itself.

    Raises:
        OcriaError: the predictions cannot be read; there is no transcription at all.
    """
    if predictions is None:
        found = {page.id: page.reference for page in pages if page.reference is not None}
    else:
        from tools.mini_report import load_predictions

        found = {name: each.text for name, each in load_predictions(predictions, pages).items() if each.finished}
    if not found:
        raise OcriaError("no page of this set has a transcription", where=str(predictions or pages.folder))
    return found


def acceptance(options: argparse.Namespace) -> dict[str, Any]:
    """The command, parsed: the summary and every page; raises OcriaError."""
    from tools.mini.prompts import Requests

    folder = mini_folder() if options.model == "mini" else Path(options.model)
    pages = PageSet.load(options.pages)
    texts = texts_of(pages, options.predictions)
    wanted = pages.take(options.count) if options.count is not None else pages
    reader = Reader(folder, REQUESTS[options.request])
    net = load_net(folder, options.device, options.length)
    requests = Requests.of(folder)
    jobs = [job_of(page, texts[page.id], reader, options.request, requests) for page in wanted if page.id in texts]
    if not jobs:
        raise OcriaError("none of these pages has a transcription", where=str(options.predictions or pages.folder))
    order = {page.id: number for number, page in enumerate(wanted)}
    found = []
    for each in measure(net, jobs, requests, options.device, options.rows, options.length):
        found.append(each)
        print(f"\r{len(found)} of {len(jobs)} pages", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    found.sort(key=lambda each: order[each.id])
    return {
        "model": folder.resolve().name,
        "pages": {"sha256": wanted.sha256, "count": len(wanted)},
        "transcriptions": "references" if options.predictions is None else "the model's own",
        "request": options.request,
        "device": options.device,
        "total": summary(found),
        "each": [asdict(each) for each in found],
    }


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Measures the acceptance of mini's multi-token-prediction layer.")
    parser.add_argument("model", help="an exported folder, or mini")
    parser.add_argument("--pages", required=True, help="a folder with a manifest.jsonl, or calibration, or eval")
    parser.add_argument("--predictions", type=Path, help="what the model wrote, instead of the references")
    parser.add_argument("--count", type=int, help="only this many pages from the front")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--request", choices=list(REQUESTS), default="plain", help="that the pages were read with")
    parser.add_argument("--rows", type=int, help="rows of pages at once; 16 on a GPU and 1 on a CPU by default")
    parser.add_argument("--length", type=int, default=2304, help="tokens of a row, a multiple of 128")
    parser.add_argument("--json", type=Path, help="write the figures, each page's too")
    options = parser.parse_args(arguments)
    options.rows = options.rows or (1 if options.device == "cpu" else 16)
    if options.length < 128 or options.length % 128 or options.rows < 1:
        parser.error("--length must be a multiple of 128, and --rows at least 1")
    try:
        found = acceptance(options)
    except OcriaError as error:
        parser.exit(2, f"{error}\n")
    total = found["total"]
    print(f"{total['accepted']} of {total['drafted']} drafted tokens accepted: {total['acceptance'] or 0:.4f}")
    print(f"accepted length {total['accepted_length'] or 1:.4f}; the model's own tokens: {total['own_tokens']:.4f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
