"""The token ids around a page and its answer, from the model folder's own chat template.

The requests are those of `ocria_compress.pages.prompt`, which serving and measuring use.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ocria_compress.pages.prompt import REQUESTS


class Request(NamedTuple):
    """The ids before the image tokens and between them and the answer."""

    head: tuple[int, ...]
    tail: tuple[int, ...]


class Requests(NamedTuple):
    """Every kind of request in ids, and the ids of single tokens."""

    kinds: dict[str, Request]
    image: int
    end: int
    padding: int

    @classmethod
    def of(cls, base: Path, requests: Mapping[str, list[dict[str, Any]]] = REQUESTS) -> Requests:
        """Renders each kind's messages once and cuts the text at its image placeholder.

        Args:
            base: a folder with tokenizer and chat template.
            requests: name -> messages, each with one image.

        Raises:
            ValueError: a rendered request does not have exactly one image placeholder.
        """
        from transformers import AutoTokenizer

        tokenizer = load_tokenizer(base)
        template = AutoTokenizer.from_pretrained(str(base), local_files_only=True)
        made = {}
        for kind, messages in requests.items():
            text = template.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            parts = str(text).split("<|image_pad|>")
            if len(parts) != 2:
                raise ValueError(f"the request {kind!r} has {len(parts) - 1} image placeholders, not 1")
            head, tail = (tuple(tokenizer.encode(part, add_special_tokens=False).ids) for part in parts)
            made[kind] = Request(head, tail)
        single = (tokenizer.token_to_id(token) for token in ("<|image_pad|>", "<|im_end|>", "<|endoftext|>"))
        return cls(made, *single)


def load_tokenizer(base: Path) -> Any:
    """The tokenizer in the folder `base`, of the library `tokenizers`."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(base / "tokenizer.json"))
