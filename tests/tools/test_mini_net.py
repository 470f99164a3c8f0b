"""The training of `mini`: its packed forward is the Hugging Face model's, and its parts do what they say."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ocria_compress.bundled import mini_folder
from tools.mini import check_delta_rule, delta_rule, pieces
from tools.mini.attention import BOUND, by_page, dense, errors, flexible
from tools.mini.augment import changed, draw, normalized
from tools.mini.check_packing import SHAPES, hugging_face_inputs, packed, random_pages
from tools.mini.model import Inputs, Net
from tools.mini.optimizer import Optimizer, orthogonalized
from tools.mini.packing import NO_LABEL, Page, Shapes, pack
from tools.mini.prompts import Requests

SIZES = [(16, 20), (10, 8), (24, 18)]
"""Rows and columns of patches of three pages: one of each request."""


@pytest.fixture(scope="module")
def net() -> Net:
    return Net(mini_folder(), SHAPES.length, dtype=torch.float32)


@pytest.fixture(scope="module")
def requests() -> Requests:
    return Requests.of(mini_folder())


@pytest.fixture(scope="module")
def pages(requests: Requests) -> list[Page]:
    return random_pages(requests, SIZES)


@pytest.fixture(scope="module")
def inputs(pages: list[Page], requests: Requests) -> Inputs:
    return packed([pages], SHAPES, requests, "cpu", torch.float32)


@pytest.fixture(scope="module")
def exact(net: Net, pages: list[Page], requests: Requests) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """By transformers, page by page: logits [tokens, vocabulary] and the multi-token-prediction layer's logits."""
    net.hf.eval()
    found = []
    for page in pages:
        arguments = hugging_face_inputs(page, requests)
        with torch.no_grad():
            output = net.hf.model(**arguments)
            logits = net.hf.lm_head(output.last_hidden_state)
            positions, _ = net.hf.model.get_rope_index(
                arguments["input_ids"], arguments["mm_token_type_ids"], arguments["image_grid_thw"]
            )
            found.append((logits[0], _ahead(net, arguments, output.last_hidden_state, positions)))
    return found


def _ahead(net: Net, arguments: dict, hidden: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """The layer as Qwen3.5's checkpoints mean it, with transformers' own modules: [tokens - 1, vocabulary]."""
    model, m = net.hf.model, net.mtp
    embedded = model.language_model.embed_tokens(arguments["input_ids"]).clone()
    image = model.get_image_features(arguments["pixel_values"], arguments["image_grid_thw"]).pooler_output
    embedded[arguments["mm_token_type_ids"] == 1] = torch.cat(list(image))
    following, normed = m.pre_fc_norm_embedding(embedded[:, 1:]), m.pre_fc_norm_hidden(hidden[:, :-1])
    x = m.fc(torch.cat([following, normed], -1))
    rotation = model.language_model.rotary_emb(x, positions[:, :, :-1])
    mask = torch.full((x.shape[1],) * 2, float("-inf")).triu(1)[None, None]
    y = m.layers[0](x, position_embeddings=rotation, attention_mask=mask)
    return net.hf.lm_head(m.norm(y))[0]


def test_the_packed_forward_is_the_hugging_face_forward(
    net: Net, pages: list[Page], inputs: Inputs, exact: list[tuple[torch.Tensor, torch.Tensor]]
) -> None:
    with torch.no_grad():
        found = net.logits(inputs)
    begin = 0
    for page, (expected, _) in zip(pages, exact, strict=True):
        part = found[begin : begin + page.tokens]
        assert (part - expected).abs().max() < 1e-4 < 1e-2 * expected.abs().max()
        begin += page.tokens


def test_the_packed_mtp_layer_is_the_one_that_checkpoints_mean(
    net: Net, pages: list[Page], inputs: Inputs, exact: list[tuple[torch.Tensor, torch.Tensor]]
) -> None:
    with torch.no_grad():
        embedded = net.embedded(inputs)
        y = net.mtp_hidden(embedded, net._decoded(embedded, inputs), inputs)
        found = pieces.linear(pieces.rms_norm(y, net.mtp.norm.weight), net.hf.lm_head.weight)
    begin = 0
    for page, (_, expected) in zip(pages, exact, strict=True):
        part = found[begin : begin + page.tokens - 1]
        assert (part - expected).abs().max() < 1e-4 < 1e-2 * expected.abs().max()
        begin += page.tokens


def test_losses_count_answers_and_their_ends_only(
    net: Net, pages: list[Page], inputs: Inputs, exact: list[tuple[torch.Tensor, torch.Tensor]], requests: Requests
) -> None:
    with torch.no_grad():
        found = net.losses(inputs, mtp=True)
    loss = ahead = 0.0
    for page, (logits, next_logits) in zip(pages, exact, strict=True):
        ids = torch.tensor([*page.answer.tolist(), requests.end])
        loss += F.cross_entropy(logits[-page.targets - 1 : -1], ids, reduction="sum").item()
        ahead += F.cross_entropy(next_logits[-page.targets :][:-1], ids[1:], reduction="sum").item()
    assert found.loss.item() == pytest.approx(loss, rel=1e-5)
    assert found.mtp_loss is not None and found.mtp_loss.item() == pytest.approx(ahead, rel=1e-5)


def test_the_mtp_loss_leaves_the_model_alone(net: Net, inputs: Inputs) -> None:
    found = net.losses(inputs, mtp=True)
    assert found.mtp_loss is not None
    found.mtp_loss.backward()
    touched = {name for name, parameter in net.named_parameters() if parameter.grad is not None}
    net.zero_grad(set_to_none=True)
    assert touched == {name for name, _ in net.named_parameters() if name.startswith("mtp.")}


def test_exported_tensors_are_taken_over_unchanged(net: Net, inputs: Inputs) -> None:
    other = Net(mini_folder(), SHAPES.length, dtype=torch.float32)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.1)
        other.load_exported({name: tensor.clone() for name, tensor in net.exported().items()})
        assert (other.logits(inputs) - net.logits(inputs)).abs().max() < 1e-4
    with pytest.raises(ValueError, match="not of this model"):
        other.load_exported({"model.visual.strange": torch.zeros(1)})


def test_pages_in_a_row_do_not_see_each_other(net: Net, pages: list[Page], requests: Requests) -> None:
    with torch.no_grad():
        together = net.logits(packed([pages[:2]], SHAPES, requests, "cpu", torch.float32))
        alone = net.logits(packed([pages[1:2]], SHAPES, requests, "cpu", torch.float32))
    begin, length = pages[0].tokens, pages[1].tokens
    assert (together[begin : begin + length] - alone[:length]).abs().max() < 1e-4


def test_the_image_is_seen(net: Net, inputs: Inputs, pages: list[Page]) -> None:
    with torch.no_grad():
        white, black = (net.hidden(inputs._replace(pixels=torch.full_like(inputs.pixels, v))) for v in (1.0, -1.0))
    assert (white - black)[pages[0].tokens - 5].abs().max() > 1e-3


def test_packing_wastes_little_and_keeps_no_page_waiting() -> None:
    draw_ = np.random.default_rng(1)
    shapes = Shapes(rows=2, length=1024, patches=4096, targets=1024, pages=64, longest=600)
    sizes = draw_.integers(40, 400, 40)
    pages = [Page(i, 1.0, 4, 4, "plain", np.zeros(20), np.zeros((16, 1)), tokens=int(n)) for i, n in enumerate(sizes)]
    rows = pack(pages, 3, shapes)
    used = [sum(pages[i].tokens for i in row) for row in rows]
    assert all(900 < each <= 1024 for each in used)
    chosen = [i for row in rows for i in row]
    assert len(set(chosen)) == len(chosen) and {0, 1, 2} <= set(chosen)
    tight = Shapes(rows=2, length=1024, patches=48, targets=1024, pages=64, longest=600)
    assert sum(map(len, pack(pages, 0, tight))) == 3, "48 patches are three pages of 16"


def test_padding_has_no_label(inputs: Inputs, pages: list[Page]) -> None:
    targets = sum(page.targets for page in pages)
    assert (inputs.labels[:targets] != NO_LABEL).all() and (inputs.labels[targets:] == NO_LABEL).all()


def test_attention_page_by_page_agrees_with_plain_attention() -> None:
    assert max(errors(by_page(), "cpu", torch.bfloat16).values()) < BOUND / 3


@pytest.mark.parametrize("causal", [True, False])
def test_the_block_mask_of_flex_attention_is_that_of_pages(causal: bool) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(512, 4, 64) for _ in range(3))
    bounds = torch.tensor([0, 130, 131, 400, 512, 512], dtype=torch.int32)
    way = flexible(compiled=False)  # there is no backward pass for a CPU
    found = way(query, key, value, way.pages(bounds, 512, 300, causal))
    assert (found - dense(query, key, value, bounds, causal)).abs().max() < 1e-5


def test_a_wrong_attention_is_found_out() -> None:
    way = by_page()
    way._call = partial(_forgetful, way._call)
    assert max(errors(way, "cpu", torch.bfloat16).values()) > BOUND


def _forgetful(call, query, key, value, pages):
    return call(query, key * 0.9, value, pages)


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
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    expected = [gradients[0], gradients[1], gradients[2] / np.log(2)]
    for found, exact in zip((d_query, d_key, d_decay), expected, strict=True):
        assert torch.allclose(found, exact, atol=1e-3, rtol=1e-3)
    assert not d_w.any()


def test_the_reference_of_the_gpu_check_has_every_gradient() -> None:
    inputs, gradient = check_delta_rule.example("cpu", batch=1, tokens=64)
    exact = check_delta_rule.outcome(delta_rule.plain_delta_rule, inputs, gradient, torch.float32)
    assert len(exact) == len(check_delta_rule.NAMES)
    assert all(tensor.isfinite().all() and tensor.any() for tensor in exact)


def test_muon_updates_are_about_orthogonal() -> None:
    torch.manual_seed(0)
    for shape in ((3, 32, 96), (3, 96, 32)):
        singular = torch.linalg.svdvals(orthogonalized(torch.randn(shape), torch.float32))
        assert singular.min() > 0.6 and singular.max() < 1.3


def _fitted(steps: int, poison: int | None = None) -> tuple[list[float], Optimizer]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(16, 16)
    optimizer = Optimizer(layer.named_parameters(), 2e-2, 1e-2, torch.float32)
    inputs, goal = torch.randn(64, 16), torch.randn(64, 16)
    losses = []
    for step in range(steps):
        loss = (layer(inputs) - goal).pow(2).mean()
        (loss * float("nan") if step == poison else loss).backward()
        optimizer.step(1.0)
        losses.append(loss.item())
    return losses, optimizer


def test_the_optimizer_lowers_a_loss() -> None:
    losses, _ = _fitted(30)
    assert losses[-1] < 0.9 * losses[0]


def test_a_step_without_a_gradient_that_is_a_number_is_skipped() -> None:
    losses, optimizer = _fitted(30, poison=5)
    assert int(optimizer.skipped) == 1
    assert losses[-1] < 0.9 * losses[0]


def test_changes_to_pages_leave_what_is_on_them() -> None:
    patches = torch.randint(0, 256, (64, 768), dtype=torch.uint8)
    bounds = torch.tensor([0, 16, 32, 48, 64], dtype=torch.int32)
    clean = normalized(patches, torch.float32)
    one, again, other = (changed(patches, draw(bounds, 64, 768, torch.float32, s), torch.float32) for s in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert one.shape == clean.shape and one.abs().max() <= 1.5
    for page in range(4):
        part = slice(16 * page, 16 * page + 16)
        assert np.corrcoef(one[part].flatten(), clean[part].flatten())[0, 1] > 0.9
