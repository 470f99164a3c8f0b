"""The process that holds vLLM: loads one model, reads pages, scores texts, describes what it loaded.

Runs in vLLM's own interpreter, started by file path, and imports only what vLLM brings, the standard library, and the
standard-library-only modules of this package. Messages come on standard input and go out on a descriptor of their own;
standard output belongs to vLLM, which prints there, and ends in the log.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ in ("__main__", "__mp_main__"):
    runpy.run_path(str(Path(__file__).with_name("adopt.py")))["adopt_package"]()

from ocria_compress.serving import protocol
from ocria_compress.serving.protocol import Failure, PageRequest, PageResult, ScoreRequest, ScoreResult

# Pages whose images are decoded and queued beyond those being read: enough to keep the engine full, little memory.
AHEAD = 2


def default_engine_args(device: str) -> dict[str, Any]:
    """What the engine is started with unless the caller says otherwise.

    On a GPU: decode-only CUDA graphs without compilation, and Triton for the linear-attention prefill: starts in
    seconds and needs no code generator beside vLLM's own.
    """
    common: dict[str, Any] = {
        "dtype": "bfloat16",
        "max_num_seqs": 16,
        "limit_mm_per_prompt": {"image": 1, "video": 0},
        "enable_prefix_caching": False,
        "seed": 0,
        "trust_remote_code": False,
        "max_logprobs": 20,
    }
    if device == "cpu":
        return common | {"enforce_eager": True}
    return common | {
        "gpu_memory_utilization": 0.85,
        "gdn_prefill_backend": "triton",
        "compilation_config": {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"},
    }


class Channel:
    """Messages out on a descriptor; messages in from standard input, read by a thread that never waits for vLLM."""

    def __init__(self, descriptor: int) -> None:
        self._out = descriptor
        self._in: queue.SimpleQueue[protocol.Message] = queue.SimpleQueue()

    def listen(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin.buffer:
            self._in.put(protocol.decode(line))
        # Whoever asked is gone: stop at once, in the middle of a page or not, helpers of vLLM included.
        os.killpg(os.getpgrp(), signal.SIGKILL)

    def receive(self) -> protocol.Message:
        return self._in.get()

    def send(self, message: protocol.Message) -> None:
        data = memoryview(protocol.encode(message))
        while data:
            data = data[os.write(self._out, data) :]


def one_line(error: BaseException) -> str:
    """Class and message, without the input dump and the link that pydantic adds."""
    message = re.sub(r" \[type=\w+, input_value=.*", "", " ".join(str(error).split()))
    return f"{type(error).__name__}: {message}"


def device_of_vllm() -> str:
    """`cpu` or `cuda`, as this vLLM build sees the machine."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        return "cpu"
    if current_platform.is_cuda():
        return "cuda"
    raise RuntimeError("this vLLM is a build for GPUs and finds no GPU that it can use")


class Engine:
    """vLLM's engine with one model."""

    def __init__(self, start: protocol.Start) -> None:
        from ocria_compress.pages import torchvision_cpu

        torchvision_cpu.activate()
        self.device = device_of_vllm()
        from vllm import LLM

        self.args = {**default_engine_args(self.device), **start.engine_args, "model": start.model}
        self.llm: Any = LLM(**self.args)
        self.count = 0

    @property
    def max_running(self) -> int:
        return int(self.args["max_num_seqs"])

    def read(self, pages: list[PageRequest]) -> Iterator[PageResult]:
        """Reads pages, continuously batched; yields each as it finishes."""
        from vllm import SamplingParams

        def ask(page: PageRequest) -> tuple[Any, Any]:
            params = SamplingParams(temperature=0.0, max_tokens=page.max_tokens, logprobs=page.logprobs or None, seed=0)
            return self._prompt(page.prompt_text, page.image_path), params

        for page, output, seconds in self._run(pages, ask):
            written = output.outputs[0]
            chosen, top = None, None
            if page.logprobs and written.logprobs is not None:
                chosen = [step[t].logprob for step, t in zip(written.logprobs, written.token_ids, strict=True)]
                top = [{str(t): entry.logprob for t, entry in step.items()} for step in written.logprobs]
            yield PageResult(
                page.id,
                written.text,
                list(written.token_ids),
                len(output.prompt_token_ids),
                str(written.finish_reason),
                seconds,
                chosen,
                top,
            )

    def score(self, texts: list[ScoreRequest]) -> Iterator[ScoreResult]:
        """Log probabilities of the answers' tokens, teacher-forced."""
        from vllm import SamplingParams

        tokenizer = self.llm.get_tokenizer()
        answers: dict[str, list[int]] = {}

        def ask(text: ScoreRequest) -> tuple[Any, Any]:
            before = tokenizer.encode(text.prompt_text, add_special_tokens=False)
            answer = text.answer_ids
            if answer is None:
                answer = tokenizer.encode(text.answer_text or "", add_special_tokens=False)
            if not answer:
                raise ValueError("there is nothing to score: the answer has no tokens")
            answers[text.id] = list(answer)
            prompt = self._prompt([*before, *answer], text.image_path)
            return prompt, SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0, seed=0)

        for text, output, _ in self._run(texts, ask):
            answer = answers.pop(text.id)
            steps = output.prompt_logprobs[-len(answer) :]
            if list(output.prompt_token_ids[-len(answer) :]) != answer:
                raise RuntimeError("the engine changed the tokens it was given")
            values = [step[token].logprob for step, token in zip(steps, answer, strict=True)]
            yield ScoreResult(text.id, answer, values, len(output.prompt_token_ids) - len(answer))

    @staticmethod
    def _prompt(content: str | list[int], image_path: str | None) -> dict[str, Any]:
        prompt: dict[str, Any] = {"prompt": content} if isinstance(content, str) else {"prompt_token_ids": content}
        if image_path is not None:
            from PIL import Image

            with Image.open(image_path) as image:
                prompt["multi_modal_data"] = {"image": image.convert("RGB")}
        return prompt

    def _run(self, items: list[Any], ask: Any) -> Iterator[tuple[Any, Any, float]]:
        """Feeds the engine a few items ahead of what it is working on; yields (item, output, seconds) as they finish.

        Drives the engine's own loop rather than `LLM.generate`, which returns nothing before the last page is done.
        """
        engine = self.llm.llm_engine
        waiting = list(reversed(items))
        running: dict[str, tuple[Any, float]] = {}
        while waiting or running:
            while waiting and len(running) < self.max_running + AHEAD:
                item = waiting.pop()
                try:
                    prompt, params = ask(item)
                    engine_input = self.llm._preprocess_cmpl_one(prompt)
                    name = str(self.count)
                    self.count += 1
                    began = time.monotonic()
                    self._final_only(params)
                    engine.add_request(name, engine_input, params)
                except Exception as error:
                    self._abandon(list(running))
                    raise ItemError(item.id, error) from error
                running[name] = (item, began)
            for output in engine.step():
                if output.finished:
                    item, began = running.pop(output.request_id)
                    yield item, output, time.monotonic() - began

    @staticmethod
    def _final_only(params: Any) -> None:
        from vllm.sampling_params import RequestOutputKind

        params.output_kind = RequestOutputKind.FINAL_ONLY

    def _abandon(self, names: list[str]) -> None:
        """Takes requests out of the engine, so that the next call does not meet their results."""
        engine = self.llm.llm_engine
        if names:
            engine.abort_request(names)
        while engine.has_unfinished_requests():
            engine.step()


class ItemError(Exception):
    """One page or text cannot be given to the engine; the engine itself is well."""

    def __init__(self, item_id: str, error: Exception) -> None:
        super().__init__(one_line(error))
        self.item_id = item_id


def serve(channel: Channel, engine: Engine) -> None:
    """Answers messages until Stop; an error that the engine may not have survived ends the loop too."""
    from ocria_compress.serving.inspection import describe

    while True:
        message = channel.receive()
        during = "describe"
        try:
            if isinstance(message, protocol.Stop):
                return
            if isinstance(message, protocol.ReadPages):
                during = "read"
                for page in engine.read(message.pages):
                    channel.send(page)
                channel.send(protocol.Done())
            elif isinstance(message, protocol.ScoreTexts):
                during = "score"
                for text in engine.score(message.texts):
                    channel.send(text)
                channel.send(protocol.Done())
            elif isinstance(message, protocol.Describe):
                channel.send(describe(engine.llm, engine.args, engine.device))
            else:
                raise protocol.ProtocolError(f"not a request: {type(message).__name__}")
        except ItemError as error:
            traceback.print_exc()
            channel.send(Failure(during, str(error), id=error.item_id, fatal=False))
        except Exception as error:
            traceback.print_exc()
            channel.send(Failure(during, one_line(error)))
            return


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, required=True, help="descriptor that messages are written to")
    channel = Channel(parser.parse_args().channel)
    began = time.monotonic()
    channel.listen()
    start = channel.receive()
    try:
        if not isinstance(start, protocol.Start):
            raise protocol.ProtocolError(f"expected Start, got {type(start).__name__}")
        engine = Engine(start)
    except BaseException as error:  # vLLM may also call sys.exit; say why before going
        traceback.print_exc()
        channel.send(Failure("load", one_line(error)))
        raise SystemExit(1) from None
    channel.send(protocol.Ready(engine.device, time.monotonic() - began))
    serve(channel, engine)
    # vLLM's own shutdown can wait for threads; everything has been answered, so leave at once.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
