"""Reads a page set in vLLM, greedily, and writes what was read, one JSON object a line.

    python -m tools.predict_vllm MODEL PAGES --out predictions.jsonl [--count N] [--batch 32] [--max-tokens 1024]

MODEL is a model folder or `mini`, PAGES a folder with a manifest or the name of a bundled set. A line is
`{"id", "text", "finished", "tokens"}`; `finished` is false where the token limit cut the text. A run that was stopped
goes on where it was: pages that have a line are skipped. What made the file stands in `OUT.run.json`, and another
model, page set or limit is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ocria_compress.bundled import mini_folder
from ocria_compress.errors import OcriaError
from ocria_compress.pages.pageset import Page, PageSet


def predict(
    model: Path,
    pages: PageSet,
    out: Path,
    *,
    count: int | None = None,
    batch: int = 32,
    max_tokens: int = 1024,
    vllm_python: Path | None = None,
) -> int:
    """Reads the pages that `out` does not have yet and appends them, each as it is done; how many that were.

    Args:
        model: a model folder.
        pages: the whole set.
        out: the predictions; made where it is not there.
        count: only this many pages from the front.
        batch: pages handed to vLLM in one call; it reads them side by side.
        max_tokens: tokens a page may take.
        vllm_python: vLLM's interpreter, where it is not found by itself.

    Raises:
        OcriaError: `out` was made by another model, page set or limit, or is broken; whatever vLLM refuses.
    """
    if batch < 1 or max_tokens < 1:
        raise OcriaError("--batch and --max-tokens must be at least 1", fix="give a larger number")
    wanted = pages.take(count) if count is not None else pages
    made_by = {"model": fingerprint(model), "pages": pages.sha256, "max_tokens": max_tokens}
    done = resume(out, made_by)
    left = [page for page in wanted if page.id not in done]
    print(f"{len(wanted)} pages, {len(wanted) - len(left)} of them read before", file=sys.stderr)
    if left:
        _read(model, left, out, batch=batch, max_tokens=max_tokens, vllm_python=vllm_python)
    return len(left)


def _read(model: Path, left: list[Page], out: Path, *, batch: int, max_tokens: int, vllm_python: Path | None) -> None:
    from ocria_compress.pages.prompt import Reader
    from ocria_compress.serving.client import VllmWorker
    from ocria_compress.serving.protocol import PageRequest

    prompt = Reader(model).prompt_text
    log = out.with_name(out.name + ".vllm.log")
    with (
        TemporaryDirectory() as drawn,
        VllmWorker(model, log=log, python=vllm_python) as worker,
        out.open("a", encoding="utf-8") as file,
    ):
        assert worker.ready is not None
        print(f"loaded in {worker.ready.load_seconds:.0f} s on {worker.ready.device}", file=sys.stderr)
        started, read, tokens = time.monotonic(), 0, 0
        for first in range(0, len(left), batch):
            asked = left[first : first + batch]
            files = image_files(asked, Path(drawn))
            requests = [PageRequest(p.id, f, prompt, max_tokens) for p, f in zip(asked, files, strict=True)]
            for result in worker.read_pages(requests):
                record = {"id": result.id, "text": result.text, "finished": result.finish_reason == "stop"}
                file.write(json.dumps(record | {"tokens": len(result.token_ids)}, ensure_ascii=False) + "\n")
                file.flush()
                read, tokens = read + 1, tokens + len(result.token_ids)
                _show(read, len(left), tokens, time.monotonic() - started)
        print(file=sys.stderr)


def image_files(pages: list[Page], folder: Path) -> list[str]:
    """An image file for each page; pages of PDFs are drawn into `folder`, which those of the last call leave."""
    for old in folder.iterdir():
        old.unlink()
    files = []
    for number, page in enumerate(pages):
        files.append(str(page.image))
        if page.page is not None:
            files[-1] = str(folder / f"{number}.png")
            page.open().save(files[-1])
    return files


def _show(read: int, pages: int, tokens: int, seconds: float) -> None:
    left = seconds / read * (pages - read)
    rates = f"{60 * read / seconds:.1f} pages/minute, {tokens / seconds:.0f} tokens/s"
    print(f"\r  {read} of {pages} pages, {rates}, about {left:.0f} s left   ", end="", file=sys.stderr, flush=True)


def fingerprint(model: Path) -> str:
    """SHA-256, hex, over names, sizes and the first MiB of every file of a model folder (quick for large weights)."""
    found = hashlib.sha256()
    for path in sorted(each for each in model.iterdir() if each.is_file()):
        with path.open("rb") as file:
            found.update(f"{path.name} {path.stat().st_size}\n".encode() + file.read(1 << 20))
    return found.hexdigest()


def resume(out: Path, made_by: dict[str, Any]) -> set[str]:
    """The ids that `out` has; a last line that was cut is taken off. Writes `OUT.run.json` for a new file."""
    stamp = out.with_name(out.name + ".run.json")
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(json.dumps(made_by, indent=2) + "\n", "utf-8")
        return set()
    known = json.loads(stamp.read_text("utf-8")) if stamp.exists() else {}
    changed = [key for key, value in made_by.items() if known.get(key) != value]
    if changed:
        raise OcriaError(
            f"these predictions were made with another {' and '.join(changed)}",
            where=str(out),
            fix="give another --out, or delete this file",
        )
    content = out.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        with out.open("r+b") as file:
            file.truncate(len(whole))
    try:
        return {json.loads(line)["id"] for line in whole.decode("utf-8").split("\n") if line}
    except (ValueError, TypeError, KeyError) as error:
        raise OcriaError(f"a line of these predictions is broken: {error}", where=str(out)) from error


def main() -> None:
    """Parses and reads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a model folder, or mini")
    parser.add_argument("pages", help="a folder with a manifest.jsonl, or calibration, or eval")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, help="only this many pages from the front")
    parser.add_argument("--batch", type=int, default=32, help="pages handed to vLLM at once")
    parser.add_argument("--max-tokens", type=int, default=1024)
    parser.add_argument("--vllm-python", type=Path)
    options = parser.parse_args()
    model = mini_folder() if options.model == "mini" else Path(options.model)
    try:
        if not model.is_dir():
            raise OcriaError("there is no such model folder", where=str(model), fix="check the path")
        predict(
            model,
            PageSet.load(options.pages),
            options.out,
            count=options.count,
            batch=options.batch,
            max_tokens=options.max_tokens,
            vllm_python=options.vllm_python,
        )
    except OcriaError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
