"""Finds the model that a checkpoint was made from: `mini`, a folder, or a hub id whose files are in the cache."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def find_model(given: str, revision: str | None = None) -> Path:
    """The folder of a model; nothing is downloaded.

    Raises:
        OcriaError: there is no such folder, and no such model in the hub's cache.
    """
    if given == "mini":
        return mini_folder()
    folder = Path(given).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise OcriaError("a model is a folder, not a file", where=given, fix="give the folder that holds config.json")
    if not _HUB_ID.fullmatch(given):
        raise OcriaError("there is no such model folder", where=given, fix="check the path")
    from huggingface_hub import snapshot_download

    token = os.environ.get("HF_TOKEN") or None
    try:
        return Path(snapshot_download(given, revision=revision, local_files_only=True, token=token))
    except Exception as error:  # the hub's own family of errors; whichever it is, the files are not here
        at = f" at commit {revision}" if revision else ""
        raise OcriaError(
            f"this model{at} is not in the hub's cache",
            where=given,
            fix=f"run: hf download {given}" + (f" --revision {revision}" if revision else ""),
        ) from error
