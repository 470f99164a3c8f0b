"""FP8 KV-cache scales for the full-attention layers, measured on page images.

Every page goes through the whole model as it is served (processor, chat template, image, then the page's transcript),
and the keys (after rotary embedding) and values that the cache would hold are watched by compressed-tensors' cache
hooks. A scale is that library's `calculate_qparams` over the smallest and largest value of all pages: the
`static_minmax` observer.

Shape suffixes: B batch (1), N heads, T tokens, D head dimension.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.errors import OcriaError
from ocria_compress.model.anatomy import OTHER_LAYOUT
from ocria_compress.model.writer import writing
from ocria_compress.quantize.plan import Plan
from ocria_compress.quantize.resources import FORWARD_MEMORY, gigabytes

if TYPE_CHECKING:
    from torch import Tensor

    from ocria_compress.pages.pageset import Page, PageSet


def kv_scales(plan: Plan, pages: PageSet, state: Path, advance: Callable[[int, str], None]) -> dict[str, bytes]:
    """Measures one key and one value scale per full-attention layer.

    Args:
        plan: names the layers.
        pages: the calibration pages.
        state: folder where the figures of finished pages are kept: a killed run continues after them.
        advance: called with 1 and the page's id after each page.

    Returns:
        The bytes of each `...k_scale` and `...v_scale` tensor, by name, in the dtype that the plan gives it.

    Raises:
        OcriaError: a page cannot be read or needs more tokens than allowed, the vision tower or a layer was
        not reached,
            or a key or value is not finite.
    """
    path = state / "calibration.jsonl"
    seen = _read_state(path)
    todo = [page for page in pages.pages if page.id not in seen]
    for _ in range(len(pages.pages) - len(todo)):
        advance(1, "")
    if todo:
        _run_pages(plan, todo, path, seen, advance)
    return _scales(plan, [seen[page.id] for page in pages.pages])


def _read_state(path: Path) -> dict[str, dict]:
    seen: dict[str, dict] = {}
    if path.is_file():
        for line in path.read_text().split("\n"):
            try:
                entry = json.loads(line)
                seen[entry["page"]] = entry
            except (ValueError, KeyError, TypeError):
                continue  # a line that a kill cut short: its page is run again
    return seen


def _run_pages(plan: Plan, todo: list[Page], path: Path, seen: dict, advance: Callable[[int, str], None]) -> None:
    from ocria_compress.pages.images import open_page
    from ocria_compress.pages.prompt import Reader

    assert plan.recipe.calibration is not None
    limit = plan.recipe.calibration.max_tokens
    reader = Reader(_processor_folder(plan, path.parent / "processor"))

    def encode(page: Page) -> dict[str, Tensor]:
        try:
            return reader.encode(open_page(page.image), page.reference, limit)
        except OcriaError as error:
            raise OcriaError(error.what, where=f"calibration page '{page.id}' ({page.image})", fix=error.fix) from error

    for page in todo:  # a bad page is found before the model is loaded; its pixels are not kept
        encode(page)
    model = load_model(plan)
    watch = _Watch(model, plan.kv_layers)
    for page in todo:
        batch = encode(page)
        entry = {"page": page.id, "image_tokens": reader.image_tokens(batch)} | watch.run(batch, page.id)
        with writing(path), path.open("a") as file:
            file.write("\n" + json.dumps(entry))
        seen[page.id] = entry
        advance(1, page.id)


def _processor_folder(plan: Plan, folder: Path) -> Path:
    """A folder with the side files that the result will have, wherever each comes from."""
    with writing(folder):
        folder.mkdir(exist_ok=True)
        for name, path in plan.source.side_files.items():
            link = folder / name
            link.unlink(missing_ok=True)
            link.symlink_to(path.resolve())
        (folder / "config.json").write_text(json.dumps(plan.source.config))
    return folder


def load_model(plan: Plan) -> Any:
    """The source model in transformers, in its stored dtype, with every weight accounted for.

    Raises:
        OcriaError: transformers would initialise a weight by itself, or leave one out.
    """
    from ocria_compress.pages.torchvision_cpu import activate

    activate()
    from transformers import Qwen3_5ForConditionalGeneration
    from transformers.utils import logging

    # Its bars would cross ours, and its hints about faster kernels are no news to a run of a few pages.
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    options: dict[str, Any] = {"dtype": "auto", "local_files_only": True, "output_loading_info": True}
    if plan.source.renamed:
        options["key_mapping"] = {"^" + re.escape(old): new for old, new in OTHER_LAYOUT}
    load: Any = Qwen3_5ForConditionalGeneration.from_pretrained
    model, info = load(plan.source.folder, **options)
    wrong = sorted(info["missing_keys"]) + sorted(k for k in info["unexpected_keys"] if not k.startswith("mtp."))
    if wrong:
        raise OcriaError(
            f"transformers does not load {len(wrong)} tensors of this model, such as '{wrong[0]}'.",
            where=str(plan.source.folder),
            fix="this model's names do not fit the installed transformers; see `ocria-compress doctor`",
        )
    return model.eval().to(_device(plan.bytes_before))


def _device(nbytes: int) -> str:
    """The GPU where the model and its pages fit on it, else the CPU.

    Where there is a GPU, transformers takes Triton kernels for Gated DeltaNet, and those cannot run on the CPU.
    """
    import torch

    if not torch.cuda.is_available():
        return "cpu"
    free, _ = torch.cuda.mem_get_info()
    if free > nbytes + FORWARD_MEMORY:
        return "cuda"
    raise OcriaError(
        f"The model does not fit on the GPU: {gigabytes(nbytes + FORWARD_MEMORY)} needed, {gigabytes(free)} free.",
        where="calibration",
        fix="free the GPU; or hide it (CUDA_VISIBLE_DEVICES=) to calibrate on the CPU",
    )


class _Watch:
    """Watches the smallest and largest key and value of each layer, page by page."""

    def __init__(self, model: Any, layers: list[int]) -> None:
        from compressed_tensors.modeling.kvcache import (
            initialize_hooked_kv_cache,
            register_key_hook,
            register_value_hook,
        )

        self.model = model
        self.layers = layers
        self.found: dict[str, list[float]] = {}
        self.tokens: dict[int, int] = {}
        self.vision_calls = 0
        for i in layers:
            attention = model.model.language_model.layers[i].self_attn
            initialize_hooked_kv_cache(model, attention)
            register_key_hook(attention, self._hook(i, "k"))
            register_value_hook(attention, self._hook(i, "v"))
        model.model.visual.register_forward_hook(self._count_vision)

    def _count_vision(self, *_: Any) -> None:
        self.vision_calls += 1

    def _hook(self, layer: int, which: str) -> Callable[[Any, Tensor], None]:
        def watch(_: Any, states_BNTD: Tensor) -> None:
            low, high = states_BNTD.aminmax()
            self.found[f"{layer}.{which}"] = [low.item(), high.item()]
            self.tokens[layer] = states_BNTD.shape[2]

        return watch

    def run(self, batch: dict[str, Tensor], page: str) -> dict:
        import torch

        self.found.clear()
        self.tokens.clear()
        self.vision_calls = 0
        inputs = {k: v.to(self.model.device) for k, v in batch.items()}
        with torch.inference_mode():
            self.model(**inputs, use_cache=False, logits_to_keep=1)
        expected = batch["input_ids"].shape[1]
        if self.vision_calls != 1:
            raise OcriaError(f"The vision tower ran {self.vision_calls} times for one page.", where=f"page '{page}'")
        for i in self.layers:
            if self.tokens.get(i) != expected:
                raise OcriaError(
                    f"Calibration did not reach layer {i}: it saw {self.tokens.get(i, 0)} of {expected} tokens.",
                    where=f"page '{page}'",
                )
        for name, (low, high) in self.found.items():
            if not (abs(low) < float("inf") and abs(high) < float("inf")):
                raise OcriaError(
                    f"Layer {name.partition('.')[0]} makes NaN or infinite keys or values.", where=f"page '{page}'"
                )
        return {"tokens": expected, "range": dict(self.found)}


def _scales(plan: Plan, entries: list[dict]) -> dict[str, bytes]:
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.utils import calculate_qparams

    from ocria_compress.quantize.schemes import KV_FP8, torch_dtype

    args = QuantizationArgs(**KV_FP8)
    outputs = {out.name: out for tensor in plan.tensors for out in tensor.outputs}
    scales = {}
    for i in plan.kv_layers:
        for which in ("k", "v"):
            name = f"model.language_model.layers.{i}.self_attn.{which}_scale"
            low = torch.tensor(
                [min(e["range"][f"{i}.{which}"][0] for e in entries)], dtype=torch_dtype(outputs[name].dtype)
            )
            high = torch.tensor([max(e["range"][f"{i}.{which}"][1] for e in entries)], dtype=low.dtype)
            scale, _ = calculate_qparams(low, high, args)
            if low == 0 and high == 0:
                raise OcriaError(f"Layer {i} made only zeros on the calibration pages.", where=name)
            scales[name] = scale.reshape(1).view(torch.uint8).numpy().tobytes()
    return scales
