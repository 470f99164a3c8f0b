"""The packed forward pass against the Hugging Face model, page by page."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tools.mini.attention import Attention
from tools.mini.augment import normalized
from tools.mini.delta_rule import DeltaRule
from tools.mini.feed import inputs_of, on_device
from tools.mini.model import Inputs, Net
from tools.mini.packing import Arrays, Page, Shapes, fill
from tools.mini.patches import VALUES
from tools.mini.prompts import Requests

SHAPES = Shapes(rows=1, length=1024, patches=2048, targets=256, pages=8)


def plain_transformers() -> None:
    """Makes transformers' Qwen3.5 compute with plain torch even where flash-linear-attention is installed."""
    from transformers.models.qwen3_5 import modeling_qwen3_5 as modeling

    names = ("causal_conv1d_update", "causal_conv1d_fn", "torch_chunk_gated_delta_rule")
    for name in (*names, "torch_recurrent_gated_delta_rule"):
        setattr(modeling, name, _only_known_arguments(modeling, name))


def _only_known_arguments(module: ModuleType, name: str) -> Callable[..., Any]:
    function = inspect.unwrap(getattr(module, name))
    known = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        return function
    return lambda *args, **kwargs: function(*args, **{k: v for k, v in kwargs.items() if k in known})


def random_pages(requests: Requests, sizes: list[tuple[int, int]], answer: int = 40) -> list[Page]:
    """Pages of noise with random answers; sizes: rows and columns of patches."""
    draw = np.random.default_rng(0)
    kinds = list(requests.kinds)
    pages = []
    for number, (rows, columns) in enumerate(sizes):
        patches = draw.integers(0, 256, (rows * columns, VALUES), dtype=np.uint8)
        ids = draw.integers(0, 4000, answer + 7 * number).astype(np.int16)
        pages.append(Page(number, 1.0, rows, columns, kinds[number % len(kinds)], ids, patches).measured(requests))
    return pages


def packed(pages: list[list[Page]], shapes: Shapes, requests: Requests, device: str, dtype: torch.dtype) -> Inputs:
    """The net's inputs for rows of pages."""
    arrays = Arrays.empty(shapes)
    fill(arrays, pages, shapes, requests)
    tensors = on_device(arrays, device)
    return inputs_of(tensors, normalized(tensors["patches"], dtype))


def hugging_face_inputs(page: Page, requests: Requests) -> dict[str, torch.Tensor]:
    """What the processor would make of this page, request and answer: arguments of the model's forward."""
    request = requests.kinds[page.kind]
    image = page.count // 4
    ids = [*request.head, *[requests.image] * image, *request.tail, *page.answer.tolist(), requests.end]
    kinds = [0] * len(request.head) + [1] * image + [0] * (len(ids) - len(request.head) - image)
    pixels = normalized(torch.from_numpy(page.patches[: page.count]), torch.float32)
    pixels = pixels.view(-1, 16, 16, 3).permute(0, 3, 1, 2)[:, :, None].expand(-1, 3, 2, 16, 16)
    return {
        "input_ids": torch.tensor([ids]),
        "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        "mm_token_type_ids": torch.tensor([kinds]),
        "pixel_values": pixels.flatten(1),
        "image_grid_thw": torch.tensor([[1, page.rows, page.columns]]),
    }


def hugging_face_loss(net: Net, page: Page, requests: Requests, device: str) -> torch.Tensor:
    """The summed cross-entropy of a page's answer and its end, by the Hugging Face forward."""
    arguments = {name: tensor.to(device) for name, tensor in hugging_face_inputs(page, requests).items()}
    logits = net.hf(**arguments).logits[0].float()
    labels = arguments["input_ids"][0, -page.targets :]
    return F.cross_entropy(logits[-page.targets - 1 : -1], labels, reduction="sum")


def loss_errors(base: Path, device: str, dtype: torch.dtype, rule: DeltaRule, attention: Attention) -> dict[str, float]:
    """Relative error of the packed loss, and of a few gradients, against the Hugging Face model in fp32."""
    plain_transformers()
    requests = Requests.of(base)
    pages = random_pages(requests, [(16, 20), (10, 8), (24, 18)])
    net = Net(base, SHAPES.length, dtype=dtype, delta_rule=rule, attention=attention).to(device)
    net.losses(packed([pages], SHAPES, requests, device, dtype)).loss.backward()
    names = ("mlp.down_proj", "linear_attn.in_proj_qkv", "self_attn.k_proj", "attn.qkv.weight", "embed_tokens")
    ours = {name: _gradient(net, name) for name in names}
    found = net.losses(packed([pages], SHAPES, requests, device, dtype)).loss.item()
    net.zero_grad()
    net.sync()
    exact = torch.stack([hugging_face_loss(net, page, requests, device) for page in pages]).sum()
    exact.backward()
    errors = {"loss": abs(found - exact.item()) / exact.item()}
    for name in names:
        reference = _gradient(net, name)
        errors[f"d {name}"] = ((ours[name] - reference).norm() / reference.norm()).item()
    return errors


def _gradient(net: Net, part: str) -> torch.Tensor:
    named = [p.grad.float().flatten() for name, p in net.hf.named_parameters() if part in name and p.grad is not None]
    return torch.cat(named).clone()
