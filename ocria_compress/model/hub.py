"""Models from a Hugging Face hub: pinned to a commit, from the cache when offline, headers only where that is enough.

`HF_TOKEN`, `HF_HOME`, `HF_ENDPOINT` and `HF_HUB_OFFLINE` mean what they mean to huggingface_hub, which does the work.
"""

from __future__ import annotations

from pathlib import Path

from ocria_compress.errors import OcriaError
from ocria_compress.model.checkpoint import (
    DTYPE_BYTES,
    INDEX,
    SINGLE,
    StoredTensor,
    check_index,
    read_index,
)

_WEIGHTS = ["*.safetensors"]
_NEVER = ["*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.py", "*.gguf", "*.onnx", "*/*"]


def fetch(repo: str, revision: str | None, weights: bool) -> tuple[Path, str]:
    """Downloads a model (or finds it in the cache) and returns its folder and commit.

    Args:
        repo: hub id, `owner/name`.
        revision: branch, tag or commit; the default branch if None.
        weights: whether to download safetensors files too.

    Raises:
        OcriaError: no such repository or revision, no access, no network and not in the cache.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    ignore = _NEVER if weights else _NEVER + _WEIGHTS
    try:
        # A folder in the cache may be a partial one, so the cache alone is asked only when the hub cannot be.
        folder = Path(snapshot_download(repo, revision=revision, ignore_patterns=ignore))
    except LocalEntryNotFoundError as error:
        raise OcriaError(
            "The model is not in the local cache, and the hub cannot be reached.",
            where=repo,
            fix="connect to the network (unset HF_HUB_OFFLINE), or give a folder that holds the model",
        ) from error
    except Exception as error:
        raise _explain(repo, revision, error) from error
    commit = folder.name
    if weights and not any(folder.glob("*.safetensors")):
        raise OcriaError(
            "The cache holds this model's configuration but not its weights.",
            where=repo,
            fix="connect to the network (unset HF_HUB_OFFLINE) and run again",
        )
    return folder, commit


def _explain(repo: str, revision: str | None, error: Exception) -> OcriaError:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        what, fix = "Access to this model must be granted first.", "ask for it on the model's page, then set HF_TOKEN"
    elif isinstance(error, errors.RevisionNotFoundError):
        what, fix = f"The model has no revision '{revision}'.", "name a branch, tag or commit that exists"
    elif isinstance(error, errors.RepositoryNotFoundError):
        what, fix = (
            "There is no such model on the hub, or it is private.",
            "check the name; set HF_TOKEN if it is private",
        )
    elif isinstance(error, errors.HFValidationError):
        what, fix = "This is not a valid hub id.", "hub ids look like llamaindex/OCRia-1"
    else:
        what = f"The model could not be fetched ({type(error).__name__}: {str(error).splitlines()[0][:160]})."
        fix = "check the network, or give a folder that holds the model"
    return OcriaError(what, where=repo, fix=fix)


def remote_tensors(repo: str, commit: str | None, folder: Path) -> tuple[dict[str, StoredTensor], dict[str, bytes]]:
    """Every tensor of a hub model, read from the headers alone (ranged requests); same result as `open_tensors`."""
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        names = [s.rfilename for s in api.model_info(repo, revision=commit).siblings or []]
        index = folder / INDEX
        weight_map = read_index(index) if index.is_file() else None
        shards = sorted(set(weight_map.values())) if weight_map else [SINGLE]
        if missing := [s for s in shards if s not in names]:
            raise OcriaError(f"The hub has no weight file {', '.join(missing[:4])}.", where=repo)
        files = [n for n in names if n.endswith(".safetensors") and "/" not in n]
        if stray := [n for n in files if n not in shards]:
            raise OcriaError(f"The index does not know these weight files: {', '.join(stray[:4])}.", where=repo)
        parsed = {shard: api.parse_safetensors_file_metadata(repo, shard, revision=commit) for shard in shards}
    except OcriaError:
        raise
    except Exception as error:
        raise _explain(repo, commit, error) from error
    found: dict[str, StoredTensor] = {}
    for shard, meta in parsed.items():
        for name, info in meta.tensors.items():
            start, end = info.data_offsets
            if info.dtype not in DTYPE_BYTES:
                raise OcriaError(f"'{name}' has an unknown dtype {info.dtype}.", where=f"{repo}/{shard}")
            found[name] = StoredTensor(name, info.dtype, tuple(info.shape), folder / shard, start, end - start)
    if weight_map is not None:
        check_index(weight_map, {n: t.path.name for n, t in found.items()}, f"{repo}/{INDEX}")
    return found, {}  # a plan needs no fingerprint of the bytes; the commit stands for them
