"""From a trained state to a model folder, read with transformers, and how well its last layer guesses ahead."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.model.checkpoint import open_tensors
from tools.mini import mtp_acceptance
from tools.mini.architecture import make_config
from tools.mini.check_packing import SHAPES, hugging_face_inputs, packed, random_pages
from tools.mini.export import MOST_BYTES, export, write_weights
from tools.mini.model import Net
from tools.mini.prompts import Requests


@pytest.fixture(scope="module")
def net() -> Net:
    """Random weights that bf16 holds exactly, and that tell each page from another."""
    net = Net(mini_folder(), SHAPES.length, dtype=torch.float32)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith(("layernorm.weight", "norm.weight", "bias")):
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
            parameter.copy_(parameter.to(torch.bfloat16))
        net.sync()
    return net


@pytest.fixture(scope="module")
def state(net: Net, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "state.pt"
    torch.save({"parameters": {n: p.detach() for n, p in net.named_parameters()}, "progress": {"step": 1}}, path)
    return path


@pytest.fixture(scope="module")
def folder(state: Path) -> Path:
    out = state.parent / "new" / "mini"
    export(state, mini_folder(), out)
    return out


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Any, dict]:
    from transformers import Qwen3_5ForConditionalGeneration

    kind: Any = Qwen3_5ForConditionalGeneration
    return kind.from_pretrained(str(folder), dtype=torch.float32, output_loading_info=True)


def test_transformers_loads_every_tensor(loaded: tuple[Any, dict]) -> None:
    model, told = loaded
    assert not told["missing_keys"] and not told["unexpected_keys"] and not told["mismatched_keys"]
    assert model.lm_head.weight is model.model.language_model.embed_tokens.weight


def test_the_exported_model_computes_what_was_trained(loaded: tuple[Any, dict], net: Net) -> None:
    model, _ = loaded
    requests = Requests.of(mini_folder())
    pages = random_pages(requests, [(16, 20), (10, 8), (24, 18)])
    with torch.no_grad():
        # The trainer computes with its own patch weights, which a checkpoint holds in halves, one for each frame.
        ours = net.logits(packed([pages], SHAPES, requests, "cpu", torch.float32))
        begin = 0
        for page in pages:
            theirs = model(**hugging_face_inputs(page, requests)).logits[0]
            assert (ours[begin : begin + page.tokens] - theirs).abs().max() < 1e-3 < 1e-2 * theirs.abs().max()
            assert (ours[begin : begin + page.tokens] - theirs).abs().mean() < 1e-4
            begin += page.tokens


def test_names_shapes_and_sizes_are_those_of_a_released_checkpoint(folder: Path) -> None:
    from tools.random_checkpoint import tensor_shapes

    config = json.loads((folder / "config.json").read_text("utf-8"))
    tensors, _ = open_tensors(folder)
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == tensor_shapes(config)
    assert {tensor.dtype for tensor in tensors.values()} == {"BF16"}
    assert sum(name.startswith("mtp.") for name in tensors) == 15
    shards = sorted(folder.glob("*.safetensors"))
    assert len(shards) > 1 and all(shard.stat().st_size <= 15_100_000 for shard in shards)
    index = json.loads((folder / "model.safetensors.index.json").read_text("utf-8"))
    assert index["metadata"]["total_size"] <= MOST_BYTES
    assert set(index["weight_map"].values()) == {shard.name for shard in shards}


def test_the_config_is_the_trainer_s_and_tells_of_the_mtp_layer(folder: Path, loaded: tuple[Any, dict]) -> None:
    expected, found = make_config(mini_folder()).to_dict(), loaded[0].config.to_dict()
    apart = {"dtype", "partial_rotary_factor", "_name_or_path", "architectures"}  # the second: rope_parameters rule
    for part in ("text_config", "vision_config"):
        assert {k: found[part].get(k) for k in expected[part] if k not in apart} == {
            k: v for k, v in expected[part].items() if k not in apart
        }
    ids = [key for key in expected if key.endswith("_id")]
    assert len(ids) >= 4 and [found[key] for key in ids] == [expected[key] for key in ids]
    text = json.loads((folder / "config.json").read_text("utf-8"))["text_config"]
    assert text["mtp_num_hidden_layers"] == 1 and text["mtp_use_dedicated_embeddings"] is False


def test_a_state_that_does_not_fit_is_refused_and_leaves_nothing(state: Path, tmp_path: Path) -> None:
    content = torch.load(state, weights_only=True)
    name = "mtp.fc.weight"
    broken = {
        "missing": {n: p for n, p in content["parameters"].items() if n != name},
        "shape": content["parameters"] | {name: torch.zeros(2, 2)},
        "strange": content["parameters"] | {"hf.strange": torch.zeros(2)},
        "nan": content["parameters"] | {name: torch.full_like(content["parameters"][name], float("nan"))},
    }
    for kind, parameters in broken.items():
        path = tmp_path / f"{kind}.pt"
        torch.save({"parameters": parameters}, path)
        with pytest.raises(OcriaError, match="no number" if kind == "nan" else "not of this model"):
            export(path, mini_folder(), tmp_path / "out")
    (tmp_path / "text.pt").write_text("not a state")
    with pytest.raises(OcriaError, match="cannot be read"):
        export(tmp_path / "text.pt", mini_folder(), tmp_path / "out")
    with pytest.raises(OcriaError, match="no such file"):
        export(tmp_path / "none.pt", mini_folder(), tmp_path / "out")
    with pytest.raises(OcriaError, match=r"no \w+.jinja"):
        export(state, tmp_path, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_a_folder_that_exists_is_not_overwritten(state: Path, tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="exists"):
        export(state, mini_folder(), tmp_path)


def test_weights_over_the_limit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="29,360,130 bytes"):
        write_weights({"a": torch.zeros(MOST_BYTES // 2 + 1, dtype=torch.bfloat16)}, tmp_path)


# -- the acceptance of the multi-token-prediction layer


def _jobs(requests: Requests, answers: list[np.ndarray] | None = None) -> list[mtp_acceptance._Job]:
    from tools.mini.augment import normalized

    pages = random_pages(requests, [(16, 20), (10, 8), (24, 18)], answer=12)
    jobs = []
    for number, page in enumerate(pages):
        if answers is not None:
            page = replace(page, answer=answers[number]).measured(requests)
        jobs.append(mtp_acceptance._Job(f"p{number}", page, normalized(torch.from_numpy(page.patches), torch.float32)))
    return jobs


def test_what_the_model_wrote_itself_is_its_own(folder: Path, loaded: tuple[Any, dict], net: Net) -> None:
    """By the packed pass every token that `generate` wrote is the model's own, and the layer's guesses are right."""
    model, requests = loaded[0], Requests.of(folder)
    answers = []
    for job in _jobs(requests):
        arguments = hugging_face_inputs(job.page, requests)
        begin = arguments["input_ids"].shape[1] - job.page.targets
        prompt = {n: t[:, :begin] if t.shape[:2] == arguments["input_ids"].shape else t for n, t in arguments.items()}
        with torch.no_grad():
            written = model.generate(**prompt, do_sample=False, max_new_tokens=8, eos_token_id=None)
        answers.append(written[0, begin:].numpy().astype(np.int16))
    jobs = _jobs(requests, answers)
    served = mtp_acceptance.load_net(folder, "cpu", 384)
    found = {each.id: each for each in mtp_acceptance.measure(served, jobs, requests, "cpu", 2, 384)}
    for job in jobs:
        each = found[job.id]
        assert (each.tokens, each.drafted) == (9, 8)
        assert each.own >= 8, "the end, which was put behind, need not be the model's own"
    total = mtp_acceptance.summary(list(found.values()))
    assert total["drafted"] == 24 and total["accepted_length"] == 1 + total["acceptance"]
    job = jobs[0]
    own, drafts = mtp_acceptance.guesses(net, mtp_acceptance.inputs_of_jobs([[job]], SHAPES, requests, net, "cpu"))
    assert own[:8].tolist() == answers[0].tolist()
    inputs = packed([[job.page]], SHAPES, requests, "cpu", torch.float32)
    with torch.no_grad():
        embedded = net.embedded(inputs)
        ahead = model.lm_head(net.mtp.norm(net.mtp_hidden(embedded, net._decoded(embedded, inputs), inputs))).argmax(-1)
    first = job.page.tokens - job.page.targets - 1  # from here the answer's first token is predicted
    assert drafts[:9].tolist() == ahead[first : first + 9].tolist()


def test_a_layer_that_guesses_right_is_accepted_and_one_that_does_not_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = Requests.of(folder)
    net = mtp_acceptance.load_net(folder, "cpu", 384)

    def measured(wrong: int) -> dict[str, Any]:
        def guesses(net: Net, inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
            ahead = inputs.next_labels.clone()
            ahead[:wrong] = -1
            return inputs.labels, ahead

        monkeypatch.setattr(mtp_acceptance, "guesses", guesses)
        return mtp_acceptance.summary(list(mtp_acceptance.measure(net, _jobs(requests), requests, "cpu", 3, 384)))

    assert measured(0)["acceptance"] == 1 and measured(0)["own_tokens"] == 1
    assert measured(3)["accepted"] == measured(0)["accepted"] - 3


def test_a_model_without_the_layer_or_of_another_shape_is_refused(folder: Path, tiny: Path, tiny_no_mtp: Path) -> None:
    with pytest.raises(OcriaError, match=r"mtp\.\*"):
        mtp_acceptance.load_net(tiny_no_mtp, "cpu", 384)
    with pytest.raises(OcriaError, match="not the weights of mini"):
        mtp_acceptance.load_net(tiny, "cpu", 384)


def test_a_page_longer_than_a_row_is_named(folder: Path) -> None:
    requests = Requests.of(folder)
    net = mtp_acceptance.load_net(folder, "cpu", 128)
    with pytest.raises(OcriaError, match="'p2'"):
        list(mtp_acceptance.measure(net, _jobs(requests), requests, "cpu", 1, 128))


def test_the_command_writes_every_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ocria_compress.pages.pageset import PageSet

    out = tmp_path / "acceptance.json"
    mtp_acceptance.main([str(folder), "--pages", "eval", "--count", "2", "--length", "1024", "--json", str(out)])
    found = json.loads(out.read_text("utf-8"))
    assert [each["id"] for each in found["each"]] == [page.id for page in PageSet.load("eval").take(2)]
    assert sum(each["drafted"] for each in found["each"]) == found["total"]["drafted"] > 50
    assert "drafted tokens accepted" in capsys.readouterr().out
