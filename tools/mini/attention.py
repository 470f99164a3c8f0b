"""Attention over packed pages: every token sees its own page only.

Shapes: N tokens (or patches) of many pages one behind the other, H heads, D values a head. `bounds` [pages + 1] holds
where each page begins and, last, N; unused entries repeat N, so that its size never changes.

Several ways to compute it, best first; `choose` takes the first that exists here and agrees with plain attention.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

BOUND = 0.03
"""Relative error above which a kernel is taken for wrong: bf16 gives less than a third of it."""

BLOCK = 128


class Pages(NamedTuple):
    """Where the pages of a batch lie.

    Attributes:
        bounds: [pages + 1] int32, on the device.
        longest: tokens of the longest page there can be.
        causal: whether a token sees only those before it.
        plan: what the implementation prepared once for all layers.
    """

    bounds: Tensor
    longest: int
    causal: bool
    plan: Any = None


class Attention:
    """One way to compute packed attention: softmax(Q K^T / sqrt(D)) V inside each page.

    Args:
        name: for the log.
        call: (query, key, value [N, H, D], pages) -> [N, H, D].
        prepare: makes `Pages.plan` from the pages and N.
    """

    def __init__(
        self,
        name: str,
        call: Callable[[Tensor, Tensor, Tensor, Pages], Tensor],
        prepare: Callable[[Pages, int], Any] | None = None,
    ) -> None:
        self.name, self._call, self._prepare = name, call, prepare

    def pages(self, bounds: Tensor, tokens: int, longest: int, causal: bool) -> Pages:
        """The pages of a batch, for every layer's call."""
        pages = Pages(bounds, longest, causal)
        return pages._replace(plan=self._prepare(pages, tokens)) if self._prepare else pages

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, pages: Pages) -> Tensor:
        return self._call(query, key, value, pages)


def by_page() -> Attention:
    """Page after page with scaled_dot_product_attention: right everywhere, and slow on a GPU (it waits for it)."""

    def call(query: Tensor, key: Tensor, value: Tensor, pages: Pages) -> Tensor:
        outputs = []
        for begin, end in pages.plan:
            q, k, v = (x[begin:end].transpose(0, 1)[None] for x in (query, key, value))
            outputs.append(F.scaled_dot_product_attention(q, k, v, is_causal=pages.causal)[0].transpose(0, 1))
        return torch.cat(outputs)

    def prepare(pages: Pages, tokens: int) -> list[tuple[int, int]]:
        edges = pages.bounds.tolist()
        return [(begin, end) for begin, end in pairwise(edges) if end > begin]

    return Attention("page by page", call, prepare)


def varlen() -> Attention:
    """torch.nn.attention.varlen, whose arguments have changed from release to release."""
    from torch.nn.attention.varlen import varlen_attn

    known = inspect.signature(varlen_attn).parameters

    def call(query: Tensor, key: Tensor, value: Tensor, pages: Pages) -> Tensor:
        extra: dict[str, Any] = {}
        if pages.causal:
            extra = {"is_causal": True} if "is_causal" in known else {"window_size": (-1, 0)}
        longest = pages.longest
        return varlen_attn(query, key, value, pages.bounds, pages.bounds, longest, longest, **extra)  # type: ignore[return-value]

    return Attention("torch.nn.attention.varlen", call)


def flash() -> Attention:
    """PyTorch's flash attention with cumulative lengths, as an operator."""
    operator = torch.ops.aten._flash_attention_forward

    def call(query: Tensor, key: Tensor, value: Tensor, pages: Pages) -> Tensor:
        bounds, longest = pages.bounds, pages.longest
        return operator(query, key, value, bounds, bounds, longest, longest, 0.0, pages.causal, False)[0]

    return Attention("aten._flash_attention_forward", call)


def flexible(compiled: bool = True) -> Attention:
    """flex_attention with a block mask made from the bounds: N has to be a multiple of 128."""
    from torch.nn.attention.flex_attention import BlockMask, flex_attention

    attend = torch.compile(flex_attention, dynamic=False) if compiled else flex_attention

    def call(query: Tensor, key: Tensor, value: Tensor, pages: Pages) -> Tensor:
        q, k, v = (x.transpose(0, 1)[None] for x in (query, key, value))
        return attend(q, k, v, block_mask=pages.plan)[0].transpose(0, 1)  # type: ignore[union-attr]

    def prepare(pages: Pages, tokens: int) -> BlockMask:
        bounds = pages.bounds
        numbers = torch.arange(tokens, device=bounds.device)
        page = torch.bucketize(numbers, bounds[1:], right=True)
        first = bounds[page[::BLOCK]] // BLOCK
        last = (numbers if pages.causal else bounds[page + 1] - 1)[BLOCK - 1 :: BLOCK] // BLOCK
        blocks = tokens // BLOCK
        counts = (last - first + 1).to(torch.int32)[None, None]
        columns = (first[:, None] + torch.arange(blocks, device=bounds.device)).clamp(max=blocks - 1)
        causal = pages.causal

        def visible(batch: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
            same = page[q] == page[k]
            return same & (k <= q) if causal else same

        indices = columns.to(torch.int32)[None, None].contiguous()
        return BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=BLOCK, mask_mod=visible)

    return Attention("flex_attention", call, prepare)


WAYS: dict[str, Callable[[], Attention]] = {
    "varlen": varlen,
    "flash": flash,
    "flex": flexible,
    "pages": by_page,
}


def dense(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, causal: bool) -> Tensor:
    """Plain attention with an [N, N] mask: the reference."""
    numbers = torch.arange(query.shape[0], device=query.device)
    page = torch.bucketize(numbers, bounds[1:], right=True)
    mask = page[:, None] == page[None]
    if causal:
        mask = mask & (numbers[:, None] >= numbers[None])
    scores = torch.einsum("qhd,khd->hqk", query, key) * query.shape[-1] ** -0.5
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(~mask, float("-inf")).softmax(-1), value)


def errors(way: Attention, device: str, dtype: torch.dtype, tokens: int = 1024) -> dict[str, float]:
    """Relative errors of output and gradients against `dense` in fp32, the worst over causal and not."""
    generator = torch.Generator().manual_seed(0)
    edges = [0, 130, 131, 500, 897, tokens, tokens, tokens, tokens]  # pages of one token and of none are among them
    bounds = torch.tensor(edges, dtype=torch.int32, device=device)
    given = torch.randn(tokens, 4, 64, generator=generator).to(device)
    inputs = [torch.randn(tokens, 4, 64, generator=generator).to(device, dtype) for _ in range(3)]
    worst = dict.fromkeys(("output", "d query", "d key", "d value"), 0.0)
    for causal in (True, False):
        leaves = [tensor.float().requires_grad_() for tensor in inputs]
        exact = dense(*leaves, bounds, causal)
        exact.backward(given)
        ours = [tensor.clone().requires_grad_() for tensor in inputs]
        found = way(*ours, way.pages(bounds, tokens, 512, causal))
        found.backward(given.to(dtype))
        pairs = [(found, exact)] + [(a.grad, b.grad) for a, b in zip(ours, leaves, strict=True)]
        for name, (a, b) in zip(worst, pairs, strict=True):
            assert a is not None and b is not None
            error = ((a.float() - b).norm() / b.norm()).item()
            worst[name] = max(worst[name], error) if error == error else float("inf")
    return worst


def choose(device: str, dtype: torch.dtype, first: str | None = None) -> Attention:
    """The best way that exists on this device and is right; prints which.

    Args:
        device, dtype: of the queries.
        first: name of the way to try first (a key of WAYS).
    """
    if device == "cpu":
        return by_page()
    order = [first, *(name for name in WAYS if name != first)] if first else list(WAYS)
    for name in order:
        try:
            way = WAYS[name]()
            worst = max(errors(way, device, dtype).values())
        except Exception as error:  # whatever a kernel says when it does not fit this machine: the next one is tried
            print(f"attention: {name} does not work here: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        if worst < BOUND:
            print(f"attention: {way.name} (largest relative error {worst:.4f})", flush=True)
            return way
        print(f"attention: {name} is wrong here (relative error {worst:.4f})", flush=True)
    print("attention: nothing agrees with plain attention; page by page it is", flush=True)
    return by_page()
