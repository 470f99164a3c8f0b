"""The prompts, and how a page and its transcription become what the model sees.

Everything comes from the model folder's own processor and chat template, the ones vLLM uses when it serves it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.errors import OcriaError
from ocria_compress.pages import torchvision_cpu

if TYPE_CHECKING:
    from PIL import Image
    from torch import Tensor

PROMPT = "Transcribe this page to Markdown."

TABLES_PROMPT = "Transcribe only the tables of this page to HTML."
SYSTEM_PROMPT = "You are a document parser. Write what is on the page, nothing else."


def _request(prompt: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": prompt}]}]


MESSAGES = _request(PROMPT)
"""The request as it is sent: the image first, then the prompt."""

REQUESTS: dict[str, list[dict[str, Any]]] = {
    "plain": MESSAGES,
    "system": [{"role": "system", "content": SYSTEM_PROMPT}, *MESSAGES],
    "tables": _request(TABLES_PROMPT),
}
"""The requests that `mini` is trained on: the plain one, the same behind a system message, and for tables alone."""


class Reader:
    """A model folder's processor: turns page images into the model's inputs.

    Args:
        model_folder: a Hugging Face model folder with tokenizer, processor and chat template. No code in it is run.
        messages: the request; of REQUESTS, or another with one image.

    Raises:
        OcriaError: the processor cannot be made from the folder's files, or it has no chat template.
    """

    def __init__(self, model_folder: Path | str, messages: list[dict[str, Any]] | None = None) -> None:
        self.folder = Path(model_folder)
        self.messages = MESSAGES if messages is None else messages
        torchvision_cpu.activate()
        from transformers import AutoProcessor

        if not self.folder.is_dir():
            raise OcriaError("there is no such model folder", where=str(self.folder), fix="check the path")
        try:
            self.processor: Any = AutoProcessor.from_pretrained(
                str(self.folder), trust_remote_code=False, local_files_only=True
            )
        except Exception as error:
            raise OcriaError(
                f"the processor of this model cannot be loaded: {error}",
                where=str(self.folder),
                fix="restore the tokenizer and processor files (preprocessor_config.json, tokenizer.json, ...)",
            ) from error
        if getattr(self.processor, "image_processor", None) is None:
            raise OcriaError(
                "this model has no image processor, so it cannot read pages",
                where=str(self.folder),
                fix="restore preprocessor_config.json",
            )
        if not getattr(self.processor, "chat_template", None):
            raise OcriaError(
                "this model has no chat template", where=str(self.folder), fix="restore chat_template.jinja"
            )

    @property
    def tokenizer(self) -> Any:
        """The processor's tokenizer."""
        return self.processor.tokenizer

    @cached_property
    def prompt_text(self) -> str:
        """The request up to where the model begins to write, with one image placeholder, as served."""
        text = self.processor.apply_chat_template(self.messages, add_generation_prompt=True, tokenize=False)
        if text.count(self.processor.image_token) != 1:
            raise OcriaError(
                f"the chat template of this model renders {text.count(self.processor.image_token)} image placeholders "
                "for one image",
                where=str(self.folder),
                fix="restore the chat template of the original model",
            )
        return text

    @property
    def end(self) -> str:
        """The token, as text, with which the model ends its transcription."""
        return self.tokenizer.eos_token

    def encode(self, image: Image.Image, answer: str | None = None, max_tokens: int | None = None) -> dict[str, Tensor]:
        """The model's inputs for one page: nothing is ever truncated.

        Args:
            image: RGB, as `open_page` gives it.
            answer: what the model is taken to have written (teacher forcing); its end token is added. None: the
                inputs end where the model begins to write.
            max_tokens: how many tokens the sequence may have.

        Returns:
            `input_ids` and `attention_mask` [1, tokens], `pixel_values` [patches, values of a patch],
            `image_grid_thw` [1, 3] in patches, and whatever else the processor makes: arguments of the model's
            `forward` and `generate`.

        Raises:
            OcriaError: the image cannot be processed; the answer contains an image placeholder; the page's image
                tokens, or the page and its answer, do not fit `max_tokens`.
        """
        text = self.prompt_text
        if answer is not None:
            if self.processor.image_token in answer:
                raise OcriaError(f"the text of this page contains the image placeholder {self.processor.image_token}")
            text += answer + self.end
        try:
            batch = dict(self.processor(text=[text], images=[image], return_tensors="pt"))
        except ValueError as error:  # the resizing of Qwen's processors: sides in a ratio over 200
            raise OcriaError(
                f"this page image cannot be processed: {error}",
                where=f"{image.width} x {image.height} pixels",
                fix="cut the page into parts of a common shape",
            ) from error
        self._check_fit(batch, image, max_tokens)
        return batch

    def image_tokens(self, batch: dict[str, Tensor]) -> int:
        """How many tokens of an encoded page stand for its image."""
        return int((batch["input_ids"] == self.processor.image_token_id).sum())

    def _check_fit(self, batch: dict[str, Tensor], image: Image.Image, max_tokens: int | None) -> None:
        merged = self.processor.image_processor.merge_size**2
        features = int(batch["image_grid_thw"].prod(-1).sum()) // merged
        placeholders = self.image_tokens(batch)
        size = f"{image.width} x {image.height} pixels"
        if features != placeholders:
            raise OcriaError(
                f"the image makes {features} features and the text holds {placeholders} image tokens",
                where=f"{self.folder}, a page of {size}",
                fix="restore the tokenizer and processor files of the original model",
            )
        total = batch["input_ids"].shape[1]
        if max_tokens is None or total <= max_tokens:
            return
        # A cut behind the image would be no better: the model would be shown a page that ends in mid-word.
        raise OcriaError(
            f"this page needs {total} tokens ({placeholders} of them for its image) and {max_tokens} are allowed; "
            "it is refused, not cut",
            where=f"a page of {size}",
            fix=f"allow at least {total} tokens, or make the image smaller",
        )
