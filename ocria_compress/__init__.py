"""Compress, verify and export document-parsing vision-language models of the Qwen3.5 family."""

__version__ = "0.1.0"
