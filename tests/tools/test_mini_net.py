"""The training of `mini`: its fast forward is the Hugging Face model's, and its parts do what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ocria_compress.bundled import mini_folder
from ocria_compress.pages import synth
from ocria_compress.pages.prompt import Reader
from tools.mini import check_delta_rule, delta_rule
from tools.mini.augment import augment
from tools.mini.loader import Request, held_out, load_tokenizer, make_buckets
from tools.mini.model import Net
from tools.mini.optimizer import Optimizer, orthogonalized


@pytest.fixture(scope="module")
def net() -> Net:
    """With the bundled weights, in fp32."""
    from safetensors.torch import load_file

    net = Net(mini_folder(), torch.float32)
    state = {}
    for shard in sorted(mini_folder().glob("*.safetensors")):
        state |= load_file(shard)
    loaded = net.hf.load_state_dict({name: tensor.float() for name, tensor in state.items()}, strict=False)
    assert not loaded.unexpected_keys and set(loaded.missing_keys) <= {"lm_head.weight"}
    projection = net.hf.model.visual.patch_embed.proj.weight
    with torch.no_grad():
        net.grey_patch.copy_(projection.sum((1, 2)).view(256, 256))
    return net


def test_the_training_forward_equals_the_hugging_face_forward(net: Net) -> None:
    reader = Reader(mini_folder())
    tokenizer = load_tokenizer(mini_folder())
    request = Request.of(tokenizer)
    bucket = make_buckets()["B2"]
    page = synth.sample(5, bucket.height, bucket.width, lambda text: tokenizer.encode(text).ids, bucket.max_tokens)
    batch = reader.encode(page.image.convert("RGB"), page.markdown)
    row = torch.tensor([request.row(bucket, page.ids or [])])
    length = batch["input_ids"].shape[1]
    assert row[:, :length].equal(batch["input_ids"])
    pixels = torch.from_numpy(np.asarray(page.image).copy())[None].float() / 127.5 - 1
    net.hf.eval()
    with torch.no_grad():
        expected = net.hf(**batch).logits[0]
        found = net.logits(pixels, row)[0, :length]
        loss, tokens, hits = net.loss(pixels, row, torch.tensor([len(page.ids or []) + 1]))
    # The bundled patch weights are rounded to bf16 one colour at a time, and so are equal; sums differ in order only.
    assert (found - expected).abs().max() < 1e-3
    assert expected.abs().max() > 5
    start = 16 + bucket.image_tokens
    labels = batch["input_ids"][0, start:]
    exact = torch.nn.functional.cross_entropy(expected[start - 1 : -1], labels, reduction="sum")
    assert tokens == len(labels) and loss.item() == pytest.approx(exact.item(), rel=1e-3)
    assert int(hits) > 0.9 * tokens, "mini does not read its own kind of page"


def test_the_image_is_seen(net: Net) -> None:
    ids = torch.randint(0, 4000, (1, 128))
    with torch.no_grad():
        white, black = (net.hidden(torch.full((1, 64, 384), value), ids) for value in (1.0, -1.0))
    assert (white[:, 40:] - black[:, 40:]).abs().max() > 0.1


def test_the_replaced_backward_piece_matches_autograd() -> None:
    """flash-linear-attention issue 640: wrong gradients on Hopper. One chunk, no state: plain attention with decay."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 64, 2, 64, generator=generator, dtype=torch.float32) for _ in range(2))
    value, d_out = (torch.randn(1, 64, 4, 64, generator=generator) for _ in range(2))
    decay = -torch.rand(1, 64, 4, generator=generator).mul(0.2).cumsum(1)
    leaves = [tensor.clone().requires_grad_() for tensor in (query, key, decay)]
    wide_q, wide_k = (leaf.repeat_interleave(2, 2).transpose(1, 2) for leaf in leaves[:2])
    g = leaves[2].transpose(1, 2)
    mask = torch.ones(64, 64, dtype=torch.bool).tril()
    weights = torch.exp2((g[..., :, None] - g[..., None, :]).masked_fill(~mask, float("-inf")))
    scores = (wide_q @ wide_k.mT) * 64**-0.5 * weights
    (scores @ value.transpose(1, 2)).backward(d_out.transpose(1, 2))
    nothing = torch.zeros(1, 1, 4, 64, 64)
    d_query, d_key, d_w, d_decay = delta_rule._chunk_backward(
        query, key, value, d_out, nothing, nothing, torch.zeros(1, 64, 4, 64), decay, torch.zeros(1, 64, 4, 64)
    )
    # The kernel's decay gradient is by natural logarithm of the decay, autograd's by log2.
    expected = [leaves[0].grad, leaves[1].grad, leaves[2].grad / np.log(2)]
    for found, exact in zip((d_query, d_key, d_decay), expected, strict=True):
        assert torch.allclose(found, exact, atol=1e-3, rtol=1e-3)
    assert not d_w.any()


def test_the_reference_of_the_gpu_check_has_every_gradient() -> None:
    inputs, gradient = check_delta_rule.example("cpu", batch=1, tokens=64)
    exact = check_delta_rule.outcome(delta_rule.plain_delta_rule, inputs, gradient, torch.float32)
    assert len(exact) == len(check_delta_rule.NAMES)
    assert all(tensor.isfinite().all() and tensor.any() for tensor in exact)


def test_buckets_are_whole_chunks() -> None:
    for bucket in make_buckets().values():
        assert bucket.length % 64 == 0 and bucket.batch % bucket.shard == 0
        assert bucket.image_tokens + synth.PROMPT_TOKENS + bucket.max_tokens == bucket.length


def test_held_out_batches_hold_the_request_around_each_page() -> None:
    buckets = make_buckets()
    request = Request.of(load_tokenizer(mini_folder()))
    (pixels, ids, lengths), *_ = held_out(buckets, mini_folder(), 2)
    bucket = buckets["P448x448"]
    assert pixels.shape == (1, 448, 448) and ids.shape == (1, bucket.length)
    end = bucket.image_tokens + 16 + int(lengths[0]) - 1
    assert ids[0, end] == request.end and (ids[0, end + 1 :] == request.padding).all()
    assert (ids[0] == request.image).sum() == bucket.image_tokens


def test_muon_updates_are_about_orthogonal() -> None:
    torch.manual_seed(0)
    for shape in ((3, 32, 96), (3, 96, 32)):
        singular = torch.linalg.svdvals(orthogonalized(torch.randn(shape), torch.float32))
        assert singular.min() > 0.6 and singular.max() < 1.3


def test_the_optimizer_lowers_a_loss() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(16, 16)
    optimizer = Optimizer(layer.named_parameters(), 2e-2, 1e-2, torch.float32)
    inputs, goal = torch.randn(64, 16), torch.randn(64, 16)
    losses = []
    for _ in range(30):
        loss = (layer(inputs) - goal).pow(2).mean()
        loss.backward()
        optimizer.step(1.0)
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


def test_scan_effects_change_pages_but_not_what_is_on_them() -> None:
    torch.manual_seed(0)
    page = synth.sample(3, 224, 512, None, 140)
    batch = torch.from_numpy(np.stack([np.asarray(page.image)] * 8))
    seen = augment(batch, torch.float32)
    clean = batch.float() / 127.5 - 1
    assert seen.shape == clean.shape and seen.abs().max() <= 1
    assert len({round(float(one.mean()), 6) for one in seen}) > 4
    for one in seen:
        assert np.corrcoef(one.flatten(), clean[0].flatten())[0, 1] > 0.2


def test_a_folder_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    from ocria_compress.errors import OcriaError
    from tools.mini.export import export

    with pytest.raises(OcriaError, match="exists"):
        export(tmp_path / "state.pt", mini_folder(), tmp_path)
