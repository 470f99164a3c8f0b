"""Running text as HTML."""

from __future__ import annotations

import re
import zlib
from html import escape

from ocria_compress.pages.synth.document import Run, Text
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.faithful.style import Faces, rgb, style

_TAGS = {"bold": "b", "italic": "i"}


def inline(content: Text, look: Look, faces: Faces, scale: float = 1.0) -> str:
    """Runs as HTML; `scale`: the text's font size in ems (formulas and handwriting have sizes of their own)."""
    parts = []
    runs = list(content)
    for place, run in enumerate(runs):
        if run.style == "formula":
            follower = runs[place + 1] if place + 1 < len(runs) else None
            tail = ""
            if follower is not None and follower.style == "plain":
                # A comma or full stop must not begin a line.
                tail = re.match(r"[^\s\w]*", follower.text)[0]  # type: ignore[index]
                runs[place + 1] = Run(follower.text[len(tail) :])
            size = style(font_size=look.size * scale * look.math_scale)
            parts.append(f'<span class="whole"><span{size}{_tex(run.text)}></span>{escape(tail)}</span>')
        elif run.style == "hand":
            parts.append(handwriting(run.text, look, faces, scale))
        elif run.style == "note":
            parts.append(f'<sup data-marker="{escape(run.text)}">{escape(run.text)}</sup>')
        elif run.style in _TAGS:
            tag = _TAGS[run.style]
            parts.append(f"<{tag}>{escape(run.text)}</{tag}>")
        else:
            parts.append(escape(run.text))
    return "".join(parts)


def handwriting(text: str, look: Look, faces: Faces, scale: float = 1.0) -> str:
    """Text in the handwriting face, its words a little above or below the line (how far, their letters say)."""
    words = []
    for place, word in enumerate(text.split(" ")):
        draw = zlib.crc32(f"{place} {word}".encode()) / 2**32
        rise = (2 * draw - 1) * look.hand_jitter * look.size * scale
        words.append(f"<span{style(top=rise)}>{escape(word)}</span>" if word else "")
    size = look.size * scale * look.hand_scale * look.hand.scale
    looks = style(font_family=faces.name(look.hand), font_size=size, color=rgb(look.hand_ink), font_weight="400")
    return f'<span class="hand"{looks}>{" ".join(words)}</span>'


def display(latex: str, look: Look) -> str:
    """A displayed formula."""
    size = style(font_size=look.size * look.math_scale * look.display_scale)
    return f"<div{size}{_tex(latex)} data-display></div>"


def _tex(latex: str) -> str:
    return f' data-tex="{escape(latex)}"'
