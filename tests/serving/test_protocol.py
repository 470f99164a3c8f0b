from __future__ import annotations

import math

import pytest

from ocria_compress.serving import protocol
from ocria_compress.serving.protocol import PageRequest, PageResult, Parameter, ScoreRequest, ScoreResult

MESSAGES: list[protocol.Message] = [
    protocol.Start("/models/a b", {"max_model_len": 64, "compilation_config": {"mode": 0}}),
    protocol.Ready("cpu", 1.5),
    protocol.ReadPages([PageRequest("a", "/x.png", "<|im_start|>é\n", 5), PageRequest("b", "/y.png", "", 1, 3)]),
    PageResult("a", "| ü \u2028|\n", [1, 2], 9, "stop", 0.25, [-0.5, -math.inf], [{"1": -0.5}, {"2": -math.inf}]),
    protocol.ScoreTexts([ScoreRequest("a", "p", "text"), ScoreRequest("b", "p", answer_ids=[1], image_path="/x.png")]),
    ScoreResult("a", [3], [-1.0], 2),
    protocol.Describe(),
    protocol.Description(
        versions={"vllm": "0.32.0"},
        device="cpu",
        gpus=[],
        engine_args={"seed": 0},
        model_class="M",
        packed_modules_mapping={"qkv_proj": ["q_proj"]},
        quantization=None,
        max_model_len=8,
        kernels={"unquantized": 1},
        layer_kernels={},
        kv_cache={"attn": {"dtype": "fp8", "k_scale": 0.5, "v_scale": 1.0}},
        parameters={"w": Parameter("float8_e4m3fn", [2, 3])},
    ),
    protocol.Failure("read", "ValueError: no", "a", fatal=False),
    protocol.Done(),
    protocol.Stop(),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_way_there_as_one_line(message: protocol.Message) -> None:
    line = protocol.encode(message)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert protocol.decode(line) == message


def test_every_message_kind_is_tried() -> None:
    assert {type(message).__name__ for message in MESSAGES} == set(protocol._KINDS)


@pytest.mark.parametrize(
    "line",
    [b"INFO 12-01 loading\n", b"\n", b"[]\n", b'"Done"\n', b'{"say": "Nothing"}\n', b'{"say": "Ready"}\n',
     b"\xff\xfe\n", b'{"say": "Done", "more": 1}\n', b'{"say": "ReadPages", "pages": [{"id": "a"}]}\n',
     b'{"say": ["Done"]}\n'],
)  # fmt: skip
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(protocol.ProtocolError, match="not a message"):
        protocol.decode(line)
