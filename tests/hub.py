"""A Hugging Face hub for tests: a cache on disk, and a server on the loopback interface that the real client talks to.

`build_cache` lays a folder out as `huggingface_hub` caches a repository, for tests of offline use. `FakeHub` serves
folders over HTTP and counts what it sends, so that a test can prove that only headers were read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    import pytest


def files_in(folder: Path) -> list[str]:
    """Relative paths of all files of a folder, in order."""
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())


def etag_of(path: Path) -> str:
    """What names a file's content on the hub: SHA-256 for large files, git's blob hash for the others."""
    data = path.read_bytes()
    if path.suffix == ".safetensors":
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def commit_of(folder: Path) -> str:
    """A commit hash that depends on the names and contents of a folder's files."""
    text = "".join(f"{name} {etag_of(Path(folder) / name)}\n" for name in files_in(folder))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def build_cache(
    cache: Path,
    repo: str,
    folder: Path,
    *,
    revision: str = "main",
    leave_out: tuple[str, ...] = (),
    listing: bool = False,
) -> Path:
    """Lays `folder` out in a hub cache as the repository `repo`; returns the snapshot.

    Args:
        cache: the folder `HF_HUB_CACHE` points to (`$HF_HOME/hub`).
        repo: hub id, `owner/name`.
        folder: the files.
        revision: the branch or tag that was downloaded.
        leave_out: files that are missing from the snapshot, as after a broken or partial download.
        listing: also write the list of files that newer clients keep, by which they know a partial snapshot.
    """
    folder, commit = Path(folder), commit_of(folder)
    root = Path(cache) / ("models--" + repo.replace("/", "--"))
    snapshot = root / "snapshots" / commit
    for part in (root / "blobs", snapshot, root / "refs"):
        part.mkdir(parents=True, exist_ok=True)
    ref = root / "refs" / revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit)
    listed = {}
    for name in files_in(folder):
        etag, size = etag_of(folder / name), (folder / name).stat().st_size
        large = {"lfs_sha256": etag, "lfs_size": size} if name.endswith(".safetensors") else {}
        listed[name] = {"size": size, "blob_id": etag[:40], **large}
        if name in leave_out:
            continue
        blob = root / "blobs" / etag
        shutil.copyfile(folder / name, blob)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    if listing:
        (root / "trees").mkdir(exist_ok=True)
        (root / "trees" / f"{commit}.json").write_text(json.dumps({"format_version": 1, "files": listed}))
    return snapshot


@dataclass
class Repository:
    """One served repository."""

    folder: Path
    commit: str
    revisions: tuple[str, ...]
    token: str | None = None
    private: bool = False
    etags: dict[str, str] = field(default_factory=dict)


class FakeHub:
    """Serves folders as hub repositories on 127.0.0.1; use it as a context manager.

    Attributes:
        url: what `HF_ENDPOINT` has to be.
        served: bytes of content sent, by `owner/name/file`; bodies only, and nothing for HEAD.
        requests: every request, as `METHOD path`.
        cut: by `owner/name/file`, after how many bytes the connection breaks, once.
        down: answer everything with 503.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.served: Counter[str] = Counter()
        self.requests: list[str] = []
        self.cut: dict[str, int] = {}
        self.down = False
        self._lock = threading.Lock()
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeHub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(
        self, repo: str, folder: Path, *, tags: tuple[str, ...] = (), token: str | None = None, private: bool = False
    ) -> str:
        """Serves `folder` as `repo`, branch `main` and the given tags; returns the commit.

        Args:
            token: files are sent only to requests that bear it (a gated repository).
            private: without the token not even the repository's existence is admitted.
        """
        commit = commit_of(folder)
        etags = {name: etag_of(Path(folder) / name) for name in files_in(folder)}
        self.repositories[repo] = Repository(Path(folder), commit, ("main", *tags, commit), token, private, etags)
        return commit

    def served_of(self, repo: str, *, suffix: str = "") -> int:
        """Bytes sent of a repository's files whose name ends with `suffix`."""
        return sum(n for name, n in self.served.items() if name.startswith(repo + "/") and name.endswith(suffix))

    def environment(self, home: Path, token: str | None = None) -> dict[str, str]:
        """A whole environment for a process that uses this hub, with an empty cache in `home`."""
        kept = {key: value for key, value in os.environ.items() if key not in _DROPPED}
        kept.update(_settings(self.url, home))
        return {**kept, **({"HF_TOKEN": token} if token else {})}

    @contextlib.contextmanager
    def in_process(self, monkeypatch: pytest.MonkeyPatch, home: Path, token: str | None = None) -> Iterator[FakeHub]:
        """Points `huggingface_hub` in this process at the hub, with an empty cache in `home`.

        Its settings are read once, when it is imported, so they are replaced and not only the environment.
        """
        from huggingface_hub import close_session, constants, hf_api

        for name in _DROPPED:
            monkeypatch.delenv(name, raising=False)
        for key, value in _settings(self.url, home).items():
            monkeypatch.setenv(key, value)
        if token:
            monkeypatch.setenv("HF_TOKEN", token)
        replaced: dict[str, object] = {
            "ENDPOINT": self.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": self.url + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(Path(home) / "hub"),
            "HF_TOKEN_PATH": str(Path(home) / "token"),
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
        }
        for name, constant in replaced.items():
            monkeypatch.setattr(constants, name, constant)
        monkeypatch.setattr(hf_api.api, "endpoint", self.url)  # functions of the package are methods of this object
        close_session()
        try:
            yield self
        finally:
            close_session()


_DROPPED = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_OFFLINE")


def _settings(url: str, home: Path) -> dict[str, str]:
    return {
        "HF_ENDPOINT": url,
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


class _Handler(BaseHTTPRequestHandler):
    """Answers the four kinds of request that the client makes: model info, file tree, HEAD and GET of a file."""

    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, format: str, *args: object) -> None:
        """Silence: requests are kept in the hub's list instead."""

    def do_HEAD(self) -> None:
        """A file's size, etag and commit."""
        self._answer()

    def do_GET(self) -> None:
        """Model info, tree or (part of) a file."""
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        with self.hub._lock:
            self.hub.requests.append(f"{self.command} /{path}")
        parts = path.split("/")
        if self.hub.down:
            self._refuse(503, "Unavailable", "the hub is down")
        elif parts[:2] == ["api", "models"] and len(parts) >= 4:
            self._api("/".join(parts[2:4]), parts[4:])
        elif len(parts) >= 5 and parts[2] == "resolve":
            self._file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        else:
            self._refuse(404, "NotFound", "there is no such address")

    def _find(self, name: str, revision: str) -> Repository | None:
        """The repository, or None when a refusal has been sent."""
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.private and not self._may_read(repository)):
            self._refuse(401 if "Authorization" not in self.headers else 404, "RepoNotFound", "Repository not found")
        elif revision not in repository.revisions:
            self._refuse(404, "RevisionNotFound", "Invalid rev id: " + revision)
        else:
            return repository
        return None

    def _may_read(self, repository: Repository) -> bool:
        return repository.token is None or self.headers.get("Authorization") == f"Bearer {repository.token}"

    def _api(self, name: str, rest: list[str]) -> None:
        revision = rest[1] if len(rest) > 1 else "main"
        repository = self._find(name, revision)
        if repository is None:
            return
        if rest[:1] == ["tree"]:
            self._json([self._entry(repository, file) for file in repository.etags])
        elif not rest or rest[0] == "revision":
            siblings = [{"rfilename": file} for file in repository.etags]
            gated = "manual" if repository.token and not repository.private else False
            about = {"id": name, "modelId": name, "sha": repository.commit, "gated": gated, "siblings": siblings}
            self._json({**about, "private": repository.private, "disabled": False, "tags": []})
        else:
            self._refuse(404, "NotFound", "there is no such address")

    def _entry(self, repository: Repository, file: str) -> dict:
        etag, size = repository.etags[file], (repository.folder / file).stat().st_size
        entry = {"type": "file", "path": file, "size": size, "oid": etag[:40]}
        if file.endswith(".safetensors"):
            entry["lfs"] = {"oid": etag, "size": size, "pointerSize": 135}
        return entry

    def _file(self, name: str, revision: str, file: str) -> None:
        repository = self._find(name, revision)
        if repository is None:
            return
        if not self._may_read(repository):
            given = "Authorization" in self.headers
            self._refuse(403 if given else 401, "GatedRepo", f"Access to model {name} is restricted")
            return
        if file not in repository.etags:
            self._refuse(404, "EntryNotFound", "Entry not found", commit=repository.commit)
            return
        self._send_file(f"{name}/{file}", repository, file)

    def _send_file(self, key: str, repository: Repository, file: str) -> None:
        path = repository.folder / file
        size = path.stat().st_size
        wanted = _range(self.headers.get("Range"), size)
        if wanted is None:
            self._refuse(416, "InvalidRange", "range not satisfiable", extra={"Content-Range": f"bytes */{size}"})
            return
        begin, end, partial = wanted
        self.send_response(206 if partial else 200)
        self.send_header("Content-Length", str(end - begin))
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{repository.etags[file]}"')
        self.send_header("X-Repo-Commit", repository.commit)
        if partial:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        if self.command == "GET":
            self._send_body(key, path, begin, end)

    def _send_body(self, key: str, path: Path, begin: int, end: int) -> None:
        with self.hub._lock:
            stop = self.hub.cut.pop(key, None)
        last = end if stop is None else min(end, begin + stop)
        with open(path, "rb") as stream:
            stream.seek(begin)
            data = stream.read(last - begin)
        with self.hub._lock:
            self.hub.served[key] += len(data)
        with contextlib.suppress(ConnectionError):  # a client may hang up once it has what it wants
            self.wfile.write(data)
        if last < end:
            self.close_connection = True

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(
        self, status: int, code: str, message: str, *, commit: str | None = None, extra: dict[str, str] | None = None
    ) -> None:
        body = json.dumps({"error": message}).encode()
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.send_header("Content-Type", "application/json")
        for key, value in {**(extra or {}), **({"X-Repo-Commit": commit} if commit else {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


def _range(header: str | None, size: int) -> tuple[int, int, bool] | None:
    """Begin, end (exclusive) and whether it is a part; None when the range lies outside the file."""
    if not header or not header.startswith("bytes=") or "," in header:
        return 0, size, False
    first, _, last = header.removeprefix("bytes=").partition("-")
    begin, end = int(first), min(int(last) + 1 if last else size, size)
    return (begin, end, True) if begin < end else None
