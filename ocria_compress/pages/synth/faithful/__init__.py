"""Pages as a browser sets them: HTML printed by headless Chromium, formulas by KaTeX, drawn by PDFium.

Slower than `draw/` and optional (Chromium and the extra `[pages]`), with real line breaking, kerning and tables.
"""

from ocria_compress.pages.synth.faithful.printing import print_pages

__all__ = ["print_pages"]
