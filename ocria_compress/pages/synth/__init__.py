"""Synthetic document pages with exact references.

`document.py` is the tree; `templates/` fills it with text from `lexicon/`; `draw/` (fast) and `faithful/` (Chromium)
make the image; `markdown.py` writes the reference; `effects.py` scans the page; `generate.py` puts them together and
`write.py` writes page sets.
"""
