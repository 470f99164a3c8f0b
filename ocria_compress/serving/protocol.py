"""What the two sides of the vLLM worker say to each other: one JSON object a line, standard library only.

This side (`client.py`) runs in the package's interpreter, the other (`worker.py`) in vLLM's; both use these classes, so
neither can send what the other does not know. A line is ``{"say": <class name>, ...fields}``.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any


class ProtocolError(ValueError):
    """A line that is not a message: not JSON, of an unknown kind, or with the wrong fields."""


@dataclass(frozen=True)
class PageRequest:
    """One page to be read, greedily.

    Attributes:
        id: comes back with the result; unique within one call.
        image_path: the page image; opened in the worker.
        prompt_text: the rendered chat template with one image placeholder, up to where the model begins to write.
        max_tokens: the most tokens to write.
        logprobs: how many of the best tokens to report at every step; 0 reports none.
    """

    id: str
    image_path: str
    prompt_text: str
    max_tokens: int
    logprobs: int = 0


@dataclass(frozen=True)
class PageResult:
    """What was read on one page.

    Attributes:
        id: of the request.
        text: the transcription, special tokens left out.
        token_ids: the tokens written, the end token included when there was one.
        prompt_tokens: how many tokens the prompt had, image tokens included.
        finish_reason: `stop` (the model ended by itself) or `length` (it was cut by max_tokens or the model's length).
        seconds: from handing the page to the engine to its last token; pages share the engine, so these overlap.
        logprobs: natural log probability of each written token; None unless asked for.
        top_logprobs: per written token the best tokens as {id: log probability}; None unless asked for.
    """

    id: str
    text: str
    token_ids: list[int]
    prompt_tokens: int
    finish_reason: str
    seconds: float
    logprobs: list[float] | None = None
    top_logprobs: list[dict[str, float]] | None = None


@dataclass(frozen=True)
class ScoreRequest:
    """Text to be scored without writing any: the log probability of every token of it, given those before.

    Attributes:
        id: comes back with the result; unique within one call.
        prompt_text: what comes before, with the image placeholder when there is an image.
        answer_text: what is scored; tokenized by itself, so no token straddles the border.
        answer_ids: instead of `answer_text`, its tokens.
        image_path: the page image, or None for text alone.
    """

    id: str
    prompt_text: str
    answer_text: str | None = None
    answer_ids: list[int] | None = None
    image_path: str | None = None


@dataclass(frozen=True)
class ScoreResult:
    """`logprobs[i]` is the natural log probability of `token_ids[i]` (the answer's tokens)."""

    id: str
    token_ids: list[int]
    logprobs: list[float]
    prompt_tokens: int


@dataclass(frozen=True)
class Start:
    """First message to the worker: what to load. `engine_args` override the worker's defaults for its device."""

    model: str
    engine_args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ready:
    """The model is loaded. `device` is `cpu` or `cuda`; `load_seconds` includes importing vLLM."""

    device: str
    load_seconds: float


@dataclass(frozen=True)
class ReadPages:
    """Read these pages; answered by one PageResult each, as they finish, then Done."""

    pages: list[PageRequest]


@dataclass(frozen=True)
class ScoreTexts:
    """Score these texts; answered by one ScoreResult each, as they finish, then Done."""

    texts: list[ScoreRequest]


@dataclass(frozen=True)
class Describe:
    """Say what is loaded; answered by a Description."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the loaded model: dtype as torch names it without `torch.`, e.g. `float8_e4m3fn`."""

    dtype: str
    shape: list[int]


@dataclass(frozen=True)
class Description:
    """What vLLM made of the model.

    Attributes:
        versions: of python, vllm, torch, transformers, compressed_tensors.
        device: `cpu` or `cuda`.
        gpus: their names.
        engine_args: the arguments the engine was started with, defaults included.
        model_class: vLLM's class of the model.
        packed_modules_mapping: fused module -> its members, as the loaded model class has it.
        quantization: vLLM's quantization method, or None.
        max_model_len: the longest sequence the engine takes, tokens.
        kernels: `scheme -> kernel` with the number of layers that use it; `unquantized` for those without a scheme.
        layer_kernels: module name -> kernel, for the layers that have a scheme.
        kv_cache: attention layer -> {dtype, k_scale, v_scale}.
        parameters: name (vLLM's) -> dtype and shape, after loading.
        selected: what vLLM's log said about the kernels it chose.
        warnings: warnings in vLLM's log so far.
    """

    versions: dict[str, str]
    device: str
    gpus: list[str]
    engine_args: dict[str, Any]
    model_class: str
    packed_modules_mapping: dict[str, list[str]]
    quantization: str | None
    max_model_len: int
    kernels: dict[str, int]
    layer_kernels: dict[str, str]
    kv_cache: dict[str, dict[str, Any]]
    parameters: dict[str, Parameter]
    selected: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Done:
    """Everything asked for by the last message has been answered."""


@dataclass(frozen=True)
class Failure:
    """The last request cannot be answered.

    Attributes:
        during: `load`, `read`, `score` or `describe`.
        error: the exception's class name and message, on one line.
        id: the page or text it happened on, where it was one.
        fatal: the engine is gone; the worker ends.
    """

    during: str
    error: str
    id: str | None = None
    fatal: bool = True


@dataclass(frozen=True)
class Stop:
    """End the worker."""


Message = (
    PageResult | ScoreResult | Start | Ready | ReadPages | ScoreTexts | Describe | Description | Done | Failure | Stop
)

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        PageResult,
        ScoreResult,
        Start,
        Ready,
        ReadPages,
        ScoreTexts,
        Describe,
        Description,
        Done,
        Failure,
        Stop,
    )
}


def encode(message: Message) -> bytes:
    """The message as one line, newline included."""
    fields = dataclasses.asdict(message)
    return json.dumps({"say": type(message).__name__, **fields}, ensure_ascii=True).encode("ascii") + b"\n"


def decode(line: bytes) -> Message:
    """The message on a line.

    Raises:
        ProtocolError: the line is no message.
    """
    try:
        data = json.loads(line)
        kind = _KINDS[data.pop("say")]
        if kind is ReadPages:
            data["pages"] = [PageRequest(**page) for page in data["pages"]]
        elif kind is ScoreTexts:
            data["texts"] = [ScoreRequest(**text) for text in data["texts"]]
        elif kind is Description:
            data["parameters"] = {name: Parameter(**value) for name, value in data["parameters"].items()}
        return kind(**data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        shown = line[:120].decode("utf-8", "replace").strip()
        raise ProtocolError(f"not a message: {shown!r}") from error
