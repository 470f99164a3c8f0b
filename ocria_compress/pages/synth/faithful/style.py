"""CSS of one page's look: font faces, declarations, lengths."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Literal

from ocria_compress.pages.synth.draw.colors import Color
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.fonts import FontFamily


class Faces:
    """The font families of a batch of pages, as `@font-face` rules of the files that the fast route reads too."""

    def __init__(self) -> None:
        self._names: dict[tuple[Path, Path, Path], str] = {}

    def name(self, family: FontFamily) -> str:
        """The CSS name of a family."""
        files = (family.regular, family.bold, family.italic)
        return self._names.setdefault(files, f"f{len(self._names)}")

    def files(self, name: str) -> list[Path]:
        """The files of the family that got this name, those of KaTeX if none did."""
        named = [sorted(set(files)) for files, known in self._names.items() if known == name]
        return named[0] if named else sorted((Path(__file__).parent / "katex" / "fonts").glob(f"{name}-*"))

    def css(self) -> str:
        """The rules of all families that were named. Faces that a family lacks are synthesized."""
        rules = []
        for (regular, bold, italic), name in self._names.items():
            faces = [(regular, 400, "normal")]
            faces += [(bold, 700, "normal")] * (bold != regular) + [(italic, 400, "italic")] * (italic != regular)
            for file, weight, style in faces:
                rules.append(
                    f'@font-face{{font-family:{name};src:url("{file.resolve().as_uri()}");'
                    f"font-weight:{weight};font-style:{style}}}"
                )
        return "\n".join(rules)


def px(length: float) -> str:
    """A length in CSS."""
    return f"{length:.3f}".rstrip("0").rstrip(".") + "px"


def rgb(color: Color) -> str:
    """A colour in CSS."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def style(**declarations: str | float | None) -> str:
    """A `style` attribute: names with underscores for hyphens, numbers are pixels, None is left out."""
    parts = []
    for name, value in declarations.items():
        if value is not None:
            parts.append(f"{name.replace('_', '-')}:{px(value) if isinstance(value, int | float) else value}")
    return f' style="{escape(";".join(parts))}"' if parts else ""


def font(
    look: Look, faces: Faces, scale: float = 1.0, role: Literal["body", "heading", "hand"] = "body"
) -> dict[str, str | float | None]:
    """Declarations of a family of the look at a size in ems, with its line height."""
    family: FontFamily = getattr(look, role)
    return {
        "font_family": faces.name(family),
        "font_size": look.size * scale * family.scale,
        "line_height": look.leading * scale,
    }
