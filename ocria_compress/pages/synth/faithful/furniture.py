"""Running head, foot and watermark: what the reference leaves out."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from ocria_compress.pages.synth.document import Document, Furniture
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.faithful.style import Faces, font, rgb, style
from ocria_compress.pages.synth.fonts import load


def fitting_furniture(document: Document, look: Look) -> Document:
    """The document without a running head or foot that is wider than the text."""
    small = load(look.body.regular, round(2 * look.size * look.small_scale * look.body.scale) / 2)
    width = (look.width - look.left - look.right) * 0.98

    def fitting(content: str) -> str:
        return content if small.getlength(content) <= width else ""

    wanted = document.furniture
    return replace(document, furniture=replace(wanted, head=fitting(wanted.head), foot=fitting(wanted.foot)))


def room(shown: Furniture, look: Look) -> tuple[float, float]:
    """The top and bottom edge of what is left for the text, pixels."""
    top, bottom = float(look.top), float(look.height - look.bottom)
    if shown.head:
        start, tall = _head(look)
        top = max(top, start + tall + look.size * 0.9)
    if shown.foot:
        start, tall = _foot(look)
        bottom = min(bottom, look.height - start - tall - look.size * 0.9)
    return top, bottom


def furniture(shown: Furniture, look: Look, faces: Faces) -> str:
    """The watermark, behind everything, the running head and the foot."""
    parts = []
    if shown.watermark:
        width = 0.75 * (look.width**2 + look.height**2) ** 0.5
        size = min(look.size * 6, width / (0.68 * len(shown.watermark)))
        turned = f"translate(-50%, -50%) rotate({-look.watermark_turn:.2f}deg)"
        looks = {**font(look, faces, role="heading"), "font_size": size}
        css = style(**looks, color=rgb(look.watermark), transform=turned)
        parts.append(f'<div class="watermark"{css}>{escape(shown.watermark)}</div>')
    line = f"1px solid {rgb(look.column_rule)}"
    for content, is_head in ((shown.head, True), (shown.foot, False)):
        if not content:
            continue
        start, tall = _head(look) if is_head else _foot(look)
        ruled = look.head_rule if is_head else look.foot_rule
        css = style(
            **{**font(look, faces, look.small_scale), "line_height": tall},
            **{"top" if is_head else "bottom": start, "left": look.left, "right": look.right},
            **{"border_bottom" if is_head else "border_top": line if ruled else None},
            text_align=look.furniture_align,
            color=rgb(look.muted),
        )
        parts.append(f'<div class="furniture"{css}>{escape(content)}</div>')
    return "".join(parts)


def _head(look: Look) -> tuple[float, float]:
    """How far from the page's edge it begins, and how tall it is, pixels."""
    tall = look.size * look.small_scale * 1.35
    return max(2.0, look.top * 0.45 - tall / 2), tall


def _foot(look: Look) -> tuple[float, float]:
    tall = look.size * look.small_scale * 1.35
    return max(2.0, look.bottom * 0.45 - tall / 2), tall
