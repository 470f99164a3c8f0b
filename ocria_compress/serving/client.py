"""Drives vLLM from the compression side: starts the worker in vLLM's interpreter, asks it, and always reaps it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError
from ocria_compress.serving import protocol, workerlog
from ocria_compress.serving.environment import find_vllm_python
from ocria_compress.serving.protocol import Description, PageRequest, PageResult, ScoreRequest, ScoreResult

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"
CPU_PLUGIN = HERE / "cpu_plugin"

START_TIMEOUT = 600.0
"""Seconds until the model must be loaded: a first start on a GPU compiles for minutes."""
PAGE_TIMEOUT = 600.0
"""Seconds within which some page must finish."""
LONGEST = 8192
"""The longest sequence, tokens, unless the caller or the model says otherwise."""

_FORCED = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "PYTHONUNBUFFERED": "1",
}
_DEFAULT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_USE_DEEP_GEMM": "0",
    "TOKENIZERS_PARALLELISM": "false",
    # vLLM pins its CPU threads and they spin while they wait; where anything else runs on the machine, every
    # step then waits for a thread that is not running: 10 to 15 times slower on two busy cores.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
    "KMP_BLOCKTIME": "0",
}
# They would bring the compression side's packages, or another interpreter's, into vLLM's.
_REMOVED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def worker_environment(**more: str) -> dict[str, str]:
    """The environment variables of a process that runs vLLM: offline, without telemetry, with the CPU kernels."""
    environment = {name: value for name, value in os.environ.items() if name not in _REMOVED}
    environment = _DEFAULT | environment | _FORCED | more
    environment["PYTHONPATH"] = str(CPU_PLUGIN)
    return environment


def default_max_model_len(model: Path) -> int:
    """min(8192, the model's own limit), from its config.json."""
    try:
        config = json.loads((model / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise OcriaError(
            f"this folder's config.json cannot be read: {error}", where=str(model), fix="check the model folder"
        ) from error
    text = config.get("text_config") or config
    return min(LONGEST, int(text.get("max_position_embeddings") or LONGEST))


class VllmWorker:
    """A model loaded in vLLM, in a process of its own; use as a context manager.

    Args:
        model: a model folder.
        python: vLLM's interpreter; found as :func:`find_vllm_python` does when None.
        engine_args: override the defaults (greedy reading in bfloat16, one image a prompt; `worker.py` lists them).
        log: where everything that vLLM prints goes; kept.
        start_timeout: seconds until the model must be loaded.
        page_timeout: seconds within which some page or text must finish.
        env: environment variables for the process, over everything else.

    Raises:
        OcriaError: no interpreter, the model cannot be loaded, a page cannot be read, the process died or hung. It
            shows the last error line of the log, and the log's path.
    """

    def __init__(
        self,
        model: Path,
        *,
        log: Path,
        python: Path | None = None,
        engine_args: dict[str, Any] | None = None,
        start_timeout: float = START_TIMEOUT,
        page_timeout: float = PAGE_TIMEOUT,
        env: dict[str, str] | None = None,
    ) -> None:
        self.model = Path(model).resolve()
        if not self.model.is_dir():
            raise OcriaError("there is no such model folder", where=str(model), fix="check the path")
        self.python = find_vllm_python(python)
        self.log = Path(log).resolve()
        self.engine_args = dict(engine_args or {})
        if self.engine_args.get("trust_remote_code"):
            raise OcriaError(
                "code in a model folder is never run", where="trust_remote_code", fix="leave this option out"
            )
        self.engine_args.setdefault("max_model_len", default_max_model_len(self.model))
        self.start_timeout, self.page_timeout = start_timeout, page_timeout
        self.ready: protocol.Ready | None = None
        self._env = worker_environment(**(env or {}))
        self._process: subprocess.Popen[bytes] | None = None
        self._channel = -1
        self._buffer = b""

    def __enter__(self) -> VllmWorker:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._channel, theirs = os.pipe()
        try:
            with self.log.open("wb") as log:
                # A session of its own: Ctrl-C reaches this side only, which then ends the whole group.
                self._process = subprocess.Popen(
                    [str(self.python), "-P", str(WORKER), "--channel", str(theirs)],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=self._env,
                    pass_fds=(theirs,),
                    start_new_session=True,
                )
        except OSError as error:
            raise OcriaError(
                f"vLLM's interpreter cannot be started: {error}",
                where=str(self.python),
                fix="ocria-compress doctor --install-vllm",
            ) from error
        finally:
            os.close(theirs)
        self._send(protocol.Start(str(self.model), self.engine_args), "load")
        ready = self._receive("load", self.start_timeout)
        if not isinstance(ready, protocol.Ready):
            raise self._unexpected(ready)
        self.ready = ready

    def read_pages(
        self, pages: list[PageRequest], on_page: Callable[[PageResult, int, int], None] | None = None
    ) -> Iterator[PageResult]:
        """Reads pages, greedily and continuously batched, and yields each as it finishes (in no fixed order).

        Args:
            pages: what to read; ids must differ.
            on_page: called with (result, pages done, pages in all), for a progress bar.
        """
        for done, result in enumerate(self._ask(protocol.ReadPages(list(pages)), "read", pages, PageResult), 1):
            if on_page:
                on_page(result, done, len(pages))
            yield result

    def prompt_logprobs(self, texts: list[ScoreRequest]) -> list[ScoreResult]:
        """Teacher-forced log probabilities of the answers' tokens, in the order asked."""
        results = self._ask(protocol.ScoreTexts(list(texts)), "score", texts, ScoreResult)
        found = {result.id: result for result in results}
        return [found[text.id] for text in texts]

    def describe(self) -> Description:
        """Versions, kernels, parameters, KV cache: what vLLM made of the model."""
        self._send(protocol.Describe(), "describe")
        answer = self._receive("describe", self.page_timeout)
        if not isinstance(answer, Description):
            raise self._unexpected(answer)
        return replace(answer, selected=workerlog.selected_kernels(self.log), warnings=workerlog.warnings(self.log))

    def close(self) -> None:
        """Ends the worker and everything it started; safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None and self.ready is not None and process.stdin:
                with contextlib.suppress(OSError):
                    process.stdin.write(protocol.encode(protocol.Stop()))
                    process.stdin.flush()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(2)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                if process.stdin:
                    process.stdin.close()
            process.wait()
        if self._channel >= 0:
            os.close(self._channel)
            self._channel = -1

    def _ask(self, question: Any, during: str, items: list[Any], kind: Any) -> Iterator[Any]:
        waiting = {item.id for item in items}
        if len(waiting) != len(items):
            raise OcriaError("two pages have the same id", fix="give every page an id of its own")
        if not items:
            return
        self._send(question, during)
        while True:
            answer: Any = self._receive(during, self.page_timeout)
            if isinstance(answer, protocol.Done) and not waiting:
                return
            if not isinstance(answer, kind) or answer.id not in waiting:
                raise self._unexpected(answer)
            waiting.discard(answer.id)
            yield answer

    def _send(self, message: protocol.Message, during: str) -> None:
        if self._process is None or self._process.stdin is None:
            raise OcriaError("vLLM is not running", fix="use the worker inside its `with` block")
        try:
            self._process.stdin.write(protocol.encode(message))
            self._process.stdin.flush()
        except OSError:
            raise self._died(during) from None

    def _receive(self, during: str, timeout: float) -> protocol.Message:
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._error(f"vLLM did not answer within {timeout:.0f} s {_DOING[during]}", during)
            readable, _, _ = select.select([self._channel], [], [], min(left, 0.5))
            chunk = os.read(self._channel, 1 << 20) if readable else b""
            self._buffer += chunk
            if not chunk and (readable or (self._process is not None and self._process.poll() is not None)):
                raise self._died(during)
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            message = protocol.decode(line)
        except protocol.ProtocolError as error:
            raise self._error(f"vLLM's process sent something that is {error}", during) from error
        if isinstance(message, protocol.Failure):
            page = f" ({message.id})" if message.id else ""
            what = f"vLLM failed {_DOING[message.during]}{page}: {message.error}"
            raise self._error(what, during, shown=not workerlog.is_uninformative(message.error))
        return message

    def _died(self, during: str) -> OcriaError:
        code: int | None = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(5)
        return self._error(f"vLLM's process {workerlog.how_it_ended(code)} {_DOING[during]}", during)

    def _unexpected(self, message: protocol.Message) -> OcriaError:
        return self._error(f"vLLM's process sent an unexpected {type(message).__name__}", "read")

    def _error(self, what: str, during: str, *, shown: bool = False) -> OcriaError:
        """An error with the last error line of the log, unless `what` holds it already."""
        line = None if shown else workerlog.last_error(self.log)
        text = f"{what}\nthe log's last error: {line}" if line else what
        fix = workerlog.fix_for(text)
        if fix is None and "memory ran out" in text:
            fix = "free some memory, or pass a shorter max_model_len"
        if fix is None and "did not answer" in text:
            fix = "give it more time, or look in the log for what it was doing"
        fix = fix or "look in the log; `ocria-compress doctor` checks vLLM"
        return OcriaError(text, where=f"log: {self.log}", fix=fix)


_DOING = {
    "load": "while loading the model",
    "read": "while reading pages",
    "score": "while scoring text",
    "describe": "while describing the model",
}
