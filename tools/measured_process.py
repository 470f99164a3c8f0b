"""Runs a command and measures it: wall time to the last byte on disk, memory of it and its children, swapping.

Every 50 ms, VmHWM, VmRSS and RssFile are summed over the process and its living children. VmHWM counts mapped file
pages, so a program that maps its input is charged for what it touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
INTERVAL = 0.05
BLOCK = 1 << 24


def memory_of(pid: int) -> dict[str, int]:
    """VmHWM, VmRSS and RssFile in bytes, summed over a process and its living children."""
    import psutil

    total = {"VmHWM": 0, "VmRSS": 0, "RssFile": 0}
    try:
        pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        return total
    for one in pids:
        try:
            status = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        for line in status.splitlines():
            key, _, rest = line.partition(":")
            if key in total:
                total[key] += int(rest.split()[0]) * 1024
    return total


class _Watched:
    """Samples the memory of a process and its children in a thread, while it is a context."""

    def __init__(self, pid: int) -> None:
        self.peaks: dict[str, int] = {"VmHWM": 0, "VmRSS": 0, "RssFile": 0}
        self.samples = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, args=(pid,), daemon=True)

    def __enter__(self) -> _Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self, pid: int) -> None:
        while not self._over.is_set():
            now = memory_of(pid)
            self.peaks = {key: max(self.peaks[key], now[key]) for key in now}
            self.samples += 1
            self._over.wait(INTERVAL)


def vmstat() -> dict[str, int]:
    """Pages swapped in and out, and major faults, of the whole machine since it started."""
    lines = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return {key: int(value) for key, value in lines if key in ("pswpin", "pswpout", "pgmajfault")}


def measure(command: list[str], out: Path, log: Path) -> dict[str, Any]:
    """Runs a command to its end, then fsyncs `out`; wall seconds count both."""
    before, load = vmstat(), os.getloadavg()[0]
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    with open(log, "wb") as sink:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, env=environment, cwd=REPOSITORY)
        with _Watched(process.pid) as watched:
            _, status, usage = os.wait4(process.pid, 0)
            ended = time.perf_counter()
    process.returncode = os.waitstatus_to_exitcode(status)
    fsync_started = time.perf_counter()
    fsync_tree(out)
    done = time.perf_counter()
    # Not ru_maxrss: it also counts what the starting process had before the command replaced it.
    peaks, after = watched.peaks, vmstat()
    return {
        "returncode": process.returncode,
        "wall_s": (ended - started) + (done - fsync_started),
        "fsync_s": done - fsync_started,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_hwm": peaks["VmHWM"],
        "peak_rss": peaks["VmRSS"],
        "peak_rss_file": peaks["RssFile"],
        "samples": watched.samples,
        "swapped_in_pages": after["pswpin"] - before["pswpin"],
        "swapped_out_pages": after["pswpout"] - before["pswpout"],
        "major_faults": after["pgmajfault"] - before["pgmajfault"],
        "load_before": load,
        "phases": phases_in(log),
    }


def phases_in(log: Path) -> dict[str, float]:
    """Seconds by phase, from the log of a command that tells them in a line `PHASES {...}`."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        _, mark, text = line.partition("PHASES ")  # a progress bar may stand before it on the line
        if mark:
            return json.loads(text)
    return {}


def fsync_tree(folder: Path) -> None:
    """Puts every file of a folder, and the folder and its parent themselves, on disk."""
    if not folder.is_dir():
        return
    for path in [*folder.rglob("*"), folder, folder.parent]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def warm(folder: Path) -> int:
    """Reads every weight file once, so that it lies in the page cache; returns their bytes."""
    size = 0
    for file in sorted(folder.glob("*.safetensors")):
        with open(file, "rb", buffering=0) as stream:
            buffer = memoryview(bytearray(BLOCK))
            while count := stream.readinto(buffer):
                size += count
    return size


def forget(folder: Path) -> None:
    """Takes a folder's files out of the page cache, so that they do not drive the source out of it."""
    for path in folder.rglob("*.safetensors"):
        with open(path, "rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Clock:
    """Seconds spent in each phase of a worker, told in its last line."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Ends a phase."""
        now = time.perf_counter()
        self.laps[name], self.last = round(now - self.last, 3), now

    def tell(self) -> None:
        """Prints the line that `phases_in` finds."""
        print("PHASES " + json.dumps(self.laps), flush=True)
