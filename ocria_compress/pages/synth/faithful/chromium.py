"""A headless Chromium that turns HTML files into PDFs, driven through a pipe (no port, no driver program).

The protocol is Chromium's own (https://chromedevtools.github.io/devtools-protocol/): JSON objects, a zero byte after
each, on the file descriptors 3 and 4 of a browser started with `--remote-debugging-pipe`.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from ocria_compress.errors import OcriaError

VARIABLE = "OCRIA_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell")
TIMEOUT_S = 120.0
"""For the browser to start, a file to be laid out, or a PDF to be written."""

_INSTALL = f"install Chromium (Debian, Ubuntu: apt install chromium), or set {VARIABLE} to the program"
_STDERR_LINES = 6
_STOP_S = 2.0

_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # /dev/shm is 64 MB in a container
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--password-store=basic",
    "--use-mock-keychain",
    # On screen as in print: glyphs have the widths that their font says, not widths rounded to pixels.
    "--font-render-hinting=none",
    "--force-device-scale-factor=1",
    "--force-color-profile=srgb",
)

# Becomes the browser, with the pipes under the numbers 3 and 4 (a shell cannot: dash takes numbers up to 9 only).
_LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
for pipe in pipes:
    os.close(pipe)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> Path:
    """The browser: $OCRIA_CHROMIUM, or the first of NAMES on PATH.

    Raises:
        OcriaError: there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise OcriaError("the Chromium that is named is not a program", where=f"{VARIABLE}={named}", fix=_INSTALL)
        return Path(found)
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return Path(found)
    raise OcriaError(
        "faithful pages are printed by Chromium, which was not found",
        where=f"${VARIABLE} is not set; not on PATH: {', '.join(NAMES)}",
        fix=_INSTALL,
    )


class Chromium:
    """A running browser; a context manager.

    Args:
        program: the browser; found by `find_chromium` if None.
        timeout_s: for any one step.

    Raises:
        OcriaError: it is not found, does not start, stops, or takes too long.
    """

    def __init__(self, program: Path | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._program = program or find_chromium()
        self._timeout_s = timeout_s
        self._session = ""
        self._calls = 0
        self._received = b""

    def __enter__(self) -> Chromium:
        self._folder = tempfile.TemporaryDirectory(prefix="ocria-chromium-", ignore_cleanup_errors=True)
        self._stderr = (Path(self._folder.name) / "stderr").open("w+b")
        try:
            self._start()
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self._call("Page.enable")
            self._call("Emulation.setEmulatedMedia", media="print")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stops the browser and removes its profile."""
        process: subprocess.Popen[bytes] | None = getattr(self, "_process", None)
        if process is not None:
            for descriptor in (self._to, self._from):
                os.close(descriptor)  # the browser stops when its pipe closes
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            del self._process
        self._stderr.close()
        self._folder.cleanup()

    def load(self, html: Path, script: str) -> Any:
        """Opens a file and runs a script in it.

        Args:
            html: the file.
            script: a JavaScript expression; a promise is waited for.

        Returns:
            The script's value.
        """
        # A page of its own for each file: memory and styles of the last one are gone.
        self._call("Page.navigate", url=html.resolve().as_uri())
        self._wait_for("Page.loadEventFired")
        answer = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            said = details.get("exception", {}).get("description") or details.get("text", "")
            raise OcriaError(f"laying out pages in Chromium failed: {said}", where=str(html))
        return answer["result"].get("value")

    def pdf(self) -> bytes:
        """The file that is open as a PDF, with the page sizes of its CSS."""
        answer = self._call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(answer["data"])

    def _start(self) -> None:
        profile = Path(self._folder.name) / "profile"
        flags = [*_FLAGS, f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium refuses to run as root with its sandbox
        for_browser, self._to = os.pipe()
        self._from, by_browser = os.pipe()
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(for_browser), str(by_browser)]
        command = [*launch, str(self._program), *flags]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=(for_browser, by_browser),
                start_new_session=True,  # Ctrl-C stops us, and we stop the browser
            )
        finally:
            os.close(for_browser)
            os.close(by_browser)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._calls += 1
        number = self._calls
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._send(json.dumps(message).encode() + b"\0", method)
        deadline = time.monotonic() + self._timeout_s
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") != number:
                continue
            if "error" in answer:
                raise self._failed(f"{method}: {answer['error'].get('message')}")
            result: dict[str, Any] = answer.get("result", {})
            if result.get("errorText"):
                raise self._failed(f"{method}: {result['errorText']}")
            return result

    def _wait_for(self, event: str) -> None:
        deadline = time.monotonic() + self._timeout_s
        while self._receive(deadline, event).get("method") != event:
            pass

    def _send(self, message: bytes, method: str) -> None:
        try:
            while message:
                message = message[os.write(self._to, message) :]
        except OSError as error:
            raise self._failed(f"it stopped before {method}") from error

    def _receive(self, deadline: float, waiting_for: str) -> dict[str, Any]:
        chunks = [self._received]
        while b"\0" not in chunks[-1]:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._failed(f"{waiting_for} took longer than {self._timeout_s:g} s")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise self._failed(f"it stopped during {waiting_for}")
            chunks.append(chunk)
        line, _, self._received = b"".join(chunks).partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if message.get("method") in ("Inspector.targetCrashed", "Target.targetCrashed"):
            raise self._failed(f"its page crashed during {waiting_for}")
        return message

    def _failed(self, what: str) -> OcriaError:
        time.sleep(0.2)  # its last words may be on their way
        self._stderr.flush()
        said = Path(self._stderr.name).read_text("utf-8", errors="replace").strip().splitlines()
        last = "\n".join(said[-_STDERR_LINES:])
        return OcriaError(
            f"Chromium did not print the pages: {what}" + (f"\n{last}" if last else ""),
            where=str(self._program),
            fix=f"run it by hand with --headless --dump-dom about:blank, or set {VARIABLE} to another one",
        )
