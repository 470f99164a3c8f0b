"""The worker's failures, each from a stand-in interpreter that fails in that one way; the process must be gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.serving.client import CPU_PLUGIN, VllmWorker, default_max_model_len, worker_environment
from ocria_compress.serving.protocol import PageRequest, ScoreRequest

Fake = Callable[[str], Path]
PAGES = [PageRequest("a", "a.png", "prompt", 5), PageRequest("b", "b.png", "prompt", 5)]
RESULT = "say(say='PageResult', id='%s', text='t', token_ids=[1], prompt_tokens=2, finish_reason='stop', seconds=.1)\n"
TRACEBACK = """
for line in ('INFO 12-01 10:00:00 [model.py:1] loading',
             'Traceback (most recent call last):',
             '  File "x.py", line 1, in y',
             'ValueError: Failed to find a kernel for this layer',
             'RuntimeError: Engine core initialization failed. See root cause above.',
             'INFO 12-01 10:00:01 [model.py:1] going down'):
    print(line, flush=True)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"text_config": {"max_position_embeddings": 4096}}')
    return folder


@pytest.fixture
def worker(model: Path, tmp_path: Path, fake_python: Fake) -> Callable[..., VllmWorker]:
    def make(body: str, **options: object) -> VllmWorker:
        return VllmWorker(model, python=fake_python(body), log=tmp_path / "vllm.log", **options)  # type: ignore[arg-type]

    return make


def gone(pid: int, within: float = 5) -> bool:
    """Whether a process ends (a zombie has ended) within some seconds."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_pages_come_back_as_they_finish_with_progress(worker: Callable[..., VllmWorker]) -> None:
    seen: list[tuple[str, int, int]] = []
    with worker("ready(); hear()\n" + RESULT % "b" + RESULT % "a" + "say(say='Done'); hear()") as w:
        assert w.ready is not None and w.ready.device == "cpu"
        results = list(w.read_pages(PAGES, on_page=lambda r, done, total: seen.append((r.id, done, total))))
    assert [r.id for r in results] == ["b", "a"] and seen == [("b", 1, 2), ("a", 2, 2)]


def test_scores_come_back_in_the_order_asked(worker: Callable[..., VllmWorker]) -> None:
    body = "ready(); hear()\n" + "".join(
        f"say(say='ScoreResult', id='{i}', token_ids=[1], logprobs=[-.5], prompt_tokens=2)\n" for i in "ba"
    )
    with worker(body + "say(say='Done'); hear()") as w:
        found = w.prompt_logprobs([ScoreRequest("a", "p", "t"), ScoreRequest("b", "p", "t")])
    assert [result.id for result in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("sys.exit(3)", "ended with status 3 while loading the model"),
        ("hear(); os.kill(os.getpid(), signal.SIGKILL)", "was killed (SIGKILL), most likely because memory ran out"),
        ("hear(); os.kill(os.getpid(), signal.SIGSEGV)", "was killed (SIGSEGV) while loading"),
        ("hear(); os.write(channel, b'Loading weights: 100%\\n')", "not a message: 'Loading weights: 100%'"),
        ("hear(); os.write(channel, b'\\xff\\xfe\\n')", "not a message"),
        ("hear(); say(say='Done')", "an unexpected Done"),
        ("hear(); os.close(channel); time.sleep(60)", "stopped answering while loading"),
    ],
)
def test_a_worker_that_does_not_load_is_named_and_gone(
    worker: Callable[..., VllmWorker], body: str, what: str, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    w = worker(f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n" + body)
    with pytest.raises(OcriaError) as caught, w:
        pass
    assert what in caught.value.what
    assert caught.value.where == f"log: {tmp_path / 'vllm.log'}" and caught.value.fix
    assert gone(int(pid.read_text()))


def test_the_error_shown_is_the_cause_not_the_last_line_of_the_log(worker: Callable[..., VllmWorker]) -> None:
    with pytest.raises(OcriaError) as caught, worker(TRACEBACK + "sys.exit(1)"):
        pass
    assert caught.value.what.endswith("the log's last error: ValueError: Failed to find a kernel for this layer")
    assert caught.value.fix and "doctor" in caught.value.fix


def test_an_error_that_only_points_at_the_log_is_completed_from_it(worker: Callable[..., VllmWorker]) -> None:
    say = "hear(); say(say='Failure', during='load', error='ValueError: Please check the logs for details')"
    with pytest.raises(OcriaError, match="Failed to find a kernel"), worker(TRACEBACK + say):
        pass


def test_a_load_that_hangs_is_ended(worker: Callable[..., VllmWorker]) -> None:
    with pytest.raises(OcriaError, match="did not answer within 1 s while loading the model"):
        with worker("time.sleep(60)", start_timeout=1):
            pass


def test_a_page_that_hangs_is_ended_and_the_pages_before_it_are_kept(worker: Callable[..., VllmWorker]) -> None:
    kept = []
    with pytest.raises(OcriaError, match="did not answer within 1 s while reading pages"):
        with worker("ready(); hear()\n" + RESULT % "a" + "time.sleep(60)", page_timeout=1) as w:
            kept.extend(r.id for r in w.read_pages(PAGES))  # the error comes out of the generator
    assert kept == ["a"]


def test_a_worker_killed_between_pages_is_named(worker: Callable[..., VllmWorker]) -> None:
    body = "ready(); hear()\n" + RESULT % "a" + "os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(OcriaError, match=r"SIGKILL.*while reading pages"), worker(body) as w:
        list(w.read_pages(PAGES))


def test_a_page_that_cannot_be_read_is_named(worker: Callable[..., VllmWorker]) -> None:
    say = "ready(); hear(); say(say='Failure', during='read', error='OSError: truncated', id='b', fatal=False); hear()"
    with pytest.raises(OcriaError, match=r"while reading pages \(b\): OSError: truncated"), worker(say) as w:
        list(w.read_pages(PAGES))


def test_an_answer_for_another_page_is_an_error(worker: Callable[..., VllmWorker]) -> None:
    with pytest.raises(OcriaError, match="unexpected PageResult"):
        with worker("ready(); hear()\n" + RESULT % "c" + "hear()") as w:
            list(w.read_pages(PAGES))


def test_done_before_every_page_is_answered_is_an_error(worker: Callable[..., VllmWorker]) -> None:
    with pytest.raises(OcriaError, match="unexpected Done"), worker("ready(); hear(); say(say='Done'); hear()") as w:
        list(w.read_pages(PAGES))


def test_two_pages_with_one_id_are_refused(worker: Callable[..., VllmWorker]) -> None:
    with pytest.raises(OcriaError, match="same id"), worker("ready(); hear()") as w:
        list(w.read_pages([PAGES[0], PAGES[0]]))


def test_the_workers_own_children_are_ended_too(worker: Callable[..., VllmWorker], tmp_path: Path) -> None:
    pid = tmp_path / "child"
    body = f"""
import subprocess
child = subprocess.Popen(["sleep", "600"])
open({str(pid)!r}, "w").write(str(child.pid))
ready(); time.sleep(600)
"""
    with contextlib.suppress(ZeroDivisionError), worker(body):
        raise ZeroDivisionError
    assert gone(int(pid.read_text()))


def test_ctrl_c_ends_the_worker(model: Path, fake_python: Fake, tmp_path: Path) -> None:
    """From outside, as a terminal does it: the signal reaches this package's process only."""
    pid = tmp_path / "pid"
    python = fake_python(f"ready(); open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    script = f"""
        from pathlib import Path
        from ocria_compress.serving.client import VllmWorker, PageRequest
        with VllmWorker(Path({str(model)!r}), python=Path({str(python)!r}), log=Path({str(tmp_path / "log")!r})) as w:
            list(w.read_pages([PageRequest("a", "", "", 1)]))
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        worker_pid = int(pid.read_text())
        process.send_signal(signal.SIGINT)
        process.wait(20)
    finally:
        process.kill()
        process.wait()
    assert gone(worker_pid)


def test_code_in_a_model_folder_is_never_run(worker: Callable[..., VllmWorker]) -> None:
    with pytest.raises(OcriaError, match="never run"):
        worker("", engine_args={"trust_remote_code": True})


def test_a_model_folder_that_is_not_there_is_named(fake_python: Fake, tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="no such model folder"):
        VllmWorker(tmp_path / "no", python=fake_python(""), log=tmp_path / "log")


@pytest.mark.parametrize(("config", "expected"), [
    ('{"text_config": {"max_position_embeddings": 4096}}', 4096),
    ('{"text_config": {"max_position_embeddings": 262144}}', 8192),
    ('{"max_position_embeddings": 100}', 100),
    ("{}", 8192),
])  # fmt: skip
def test_the_longest_sequence_follows_the_model(model: Path, config: str, expected: int) -> None:
    (model / "config.json").write_text(config)
    assert default_max_model_len(model) == expected


@pytest.mark.parametrize("content", [None, "{", "\xff"])
def test_a_broken_config_is_named(model: Path, content: str | None) -> None:
    (model / "config.json").unlink()
    if content is not None:
        (model / "config.json").write_text(content, encoding="latin-1")
    with pytest.raises(OcriaError, match=r"config\.json cannot be read"):
        default_max_model_len(model)


def test_the_compression_sides_packages_do_not_reach_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "7")
    found = worker_environment()
    assert found["PYTHONPATH"] == str(CPU_PLUGIN)
    assert found["HF_HUB_OFFLINE"] == "1" and found["VLLM_NO_USAGE_STATS"] == "1"
    assert found["VLLM_CPU_KVCACHE_SPACE"] == "7", "a user's own setting is kept"
    assert found["PATH"] == os.environ["PATH"]
