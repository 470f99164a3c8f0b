"""Make `ocria_compress/pages/synth/font_files/` from the packages that the fonts come from.

    npm install --prefix DIR $(python -m tools.make_fonts --packages)
    python -m tools.make_fonts DIR

needs fontTools and brotli. Each face is cut down to the characters that pages print: the package's files for Latin and
extended Latin are put together, narrow word spaces are widened, hinting and all layout features but kerning are left
out, and the few characters that no package has in those files (arrows, boxes, ticks, ≤, ‰ and the like) are drawn in
the font's own stroke width. The licences are copied, and FONTS.md and fonts.json are written.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.ttLib import TTFont, newTable
from fontTools.ttLib.tables.ttProgram import Program

from ocria_compress.pages.synth import fonts
from tools.font_shapes import Shapes, bounds

ALIASES = {0x00A0: 0x20, 0x202F: 0x20, 0x2011: 0x2D}
"""No-break space, narrow no-break space and no-break hyphen look as their plain forms."""


@dataclass(frozen=True)
class Source:
    """A family: its npm package @fontsource/`key` at `version`, and how the page generator uses it.

    `crisp` leaves it to FreeType to fit stems to pixels, as on screens; otherwise outlines are drawn as they are, as in
    pages rasterized from PDF. `italic` is False where the italic hardly slopes. `weight`: see `FontFamily`.
    """

    key: str
    name: str
    kind: str
    held_out: bool = False
    italic: bool = False
    crisp: bool = False
    weight: float = 1.0
    version: str = "5.3.0"


SOURCES = (
    Source("tinos", "Tinos", "serif", italic=True, weight=3),
    Source("eb-garamond", "EB Garamond", "serif", italic=True),
    Source("libre-baskerville", "Libre Baskerville", "serif", italic=True),
    Source("crimson-pro", "Crimson Pro", "serif", italic=True),
    Source("noto-serif", "Noto Serif", "serif", italic=True, crisp=True),
    Source("gelasio", "Gelasio", "serif", italic=True, crisp=True),
    Source("libre-caslon-text", "Libre Caslon Text", "serif", italic=True),
    Source("roboto-slab", "Roboto Slab", "serif", crisp=True),
    Source("bitter", "Bitter", "serif", italic=True),
    Source("arimo", "Arimo", "sans", italic=True, weight=3),
    Source("roboto", "Roboto", "sans", italic=True, crisp=True, weight=1.5),
    Source("open-sans", "Open Sans", "sans", italic=True, crisp=True, weight=1.5),
    Source("inter", "Inter", "sans", italic=True, crisp=True),
    Source("carlito", "Carlito", "sans", italic=True, weight=2),
    Source("work-sans", "Work Sans", "sans", italic=True, crisp=True),
    Source("montserrat", "Montserrat", "sans", italic=True),
    Source("karla", "Karla", "sans", italic=True),
    Source("archivo-narrow", "Archivo Narrow", "sans", italic=True),
    Source("cabin", "Cabin", "sans", italic=True),
    Source("nunito-sans", "Nunito Sans", "sans", italic=True, crisp=True),
    Source("cousine", "Cousine", "mono", italic=True, crisp=True),
    Source("courier-prime", "Courier Prime", "mono", italic=True),
    Source("roboto-mono", "Roboto Mono", "mono", italic=True),
    Source("caveat", "Caveat", "hand"),
    Source("kalam", "Kalam", "hand"),
    Source("patrick-hand", "Patrick Hand", "hand"),
    Source("indie-flower", "Indie Flower", "hand"),
    Source("mansalva", "Mansalva", "hand"),
    Source("literata", "Literata", "serif", held_out=True),
    Source("newsreader", "Newsreader", "serif", held_out=True, italic=True),
    Source("libre-franklin", "Libre Franklin", "sans", held_out=True, italic=True, crisp=True),
    Source("fira-sans", "Fira Sans", "sans", held_out=True, italic=True),
    Source("barlow", "Barlow", "sans", held_out=True, italic=True),
    Source("jetbrains-mono", "JetBrains Mono", "mono", italic=True, held_out=True),
    Source("architects-daughter", "Architects Daughter", "hand", held_out=True),
    Source("shadows-into-light", "Shadows Into Light", "hand", held_out=True),
)


def main() -> None:
    """Print the packages, or make the folder from them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", nargs="?", type=Path, help="where npm installed the packages")
    parser.add_argument("--packages", action="store_true", help="print the packages and versions, for npm install")
    parser.add_argument("--out", type=Path, default=fonts.FOLDER)
    options = parser.parse_args()
    if options.packages:
        print(*(f"@fontsource/{source.key}@{source.version}" for source in SOURCES))
        return
    if options.folder is None:
        parser.error("give the folder that npm installed the packages into")
    make(options.folder / "node_modules" / "@fontsource", options.out)


def make(packages: Path, out: Path) -> None:
    """Write every face, licence and list into `out`; files of earlier runs are removed."""
    licences = out / "LICENSES"
    licences.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.ttf"), *licences.glob("*.txt")):
        old.unlink()
    rows, lines = [], []
    for source in sorted(SOURCES, key=lambda s: (("serif", "sans", "mono", "hand").index(s.kind), s.name)):
        package = packages / source.key
        version = json.loads((package / "package.json").read_text("utf-8"))["version"]
        if version != source.version:
            raise SystemExit(f"{package}: version {version}, expected {source.version}")
        row: dict[str, Any] = {"name": source.name, "kind": source.kind, "held_out": source.held_out}
        faces = ["regular", "bold", "italic"] if source.italic else ["regular", "bold"]
        copyright_line = ""
        for face in faces:
            font = read_face(package, face)
            if font is None:
                continue
            complete(font, source.kind)
            row[face] = f"{source.key}-{face}.ttf"
            if face == "regular":
                row["scale"] = round(fonts.X_HEIGHT / x_height(font), 4)
                copyright_line = font["name"].getDebugName(0)
            cut(font, source.crisp)
            font.save(out / row[face])
        row["weight"] = source.weight
        rows.append(row)
        licence = write_licence(package / "LICENSE", copyright_line, licences / f"{source.key}.txt")
        made = ", ".join(face for face in faces if face in row)
        held = "yes" if source.held_out else ""
        lines.append(
            f"| {source.name} | {source.kind} | `@fontsource/{source.key}` {version} | {licence} | {copyright_line} "
            f"| {made} | {held} |"
        )
    (out / "fonts.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (out / "FONTS.md").write_text(FONTS_MD + "\n".join(lines) + "\n", "utf-8")


FONTS_MD = """# The page generator's fonts

Made by `tools/make_fonts.py`, which says how, from the packages below (npm registry). Every file is changed: cut down
to Latin letters, figures and signs, without hinting, narrow word spaces widened; arrows, boxes, ticks, ≠, ≤, ≥, ‰ and ‡
are drawn by the tool where the package has none. No family's licence reserves its name. The copyright lines are in
`LICENSES/`, one file per family, beside the two licence texts. Families held out are for benchmark pages only.

| family | kind | package | licence | copyright | faces | held out |
|---|---|---|---|---|---|---|
"""


def write_licence(source: Path, copyright_line: str, out: Path) -> str:
    """Write a package's licence text, once, and the family's copyright line; returns the licence's name."""
    text = source.read_text("utf-8")
    if re.search("reserved font name", text.split("PREAMBLE")[0] + copyright_line, re.IGNORECASE):
        raise SystemExit(f"{source}: the name is reserved; choose another font")
    if "SIL OPEN FONT LICENSE Version 1.1" in text:
        name, body = "OFL-1.1", text[text.index("SIL OPEN FONT LICENSE Version 1.1") :]
    elif "Apache License" in text:
        name, body = "Apache-2.0", text
    else:
        raise SystemExit(f"{source}: neither the Open Font License nor the Apache License")
    body = "\n".join(line.rstrip() for line in body.rstrip().splitlines()) + "\n"
    shared = out.with_name(f"{name}.txt")
    if shared.exists() and shared.read_text("utf-8") != body:
        raise SystemExit(f"{source}: another wording of {name}")
    shared.write_text(body, "utf-8")
    out.write_text(f"{copyright_line}\n\n{LICENSED[name]} The text is in {name}.txt.\n", "utf-8")
    return name


LICENSED = {
    "OFL-1.1": "This Font Software is licensed under the SIL Open Font License, Version 1.1.",
    "Apache-2.0": "Licensed under the Apache License, Version 2.0.",
}


def read_face(package: Path, face: str) -> TTFont | None:
    """One face with its Latin and extended Latin glyphs; None where the package has no such face."""
    weight = "700" if face == "bold" else "400"
    style = "italic" if face == "italic" else "normal"
    files = [package / "files" / f"{package.name}-{part}-{weight}-{style}.woff2" for part in ("latin", "latin-ext")]
    if not files[0].exists():
        return None
    font = TTFont(files[0], recalcTimestamp=False)  # the same packages give the same files
    for table in ("vhea", "vmtx"):  # for vertical writing
        if table in font:
            del font[table]
    if files[1].exists():
        extend(font, TTFont(files[1]))
    return font


def extend(font: TTFont, more: TTFont) -> None:
    """Add to `font` the wanted glyphs that only `more` (the same face, other characters) has."""
    have, wanted = font.getBestCmap(), {ord(c) for c in fonts.CHARACTERS}
    extra = more.getBestCmap()
    shared = {name: have[code] for code, name in extra.items() if code in have}
    for code, name in extra.items():
        if code in wanted and code not in have:
            put(font, code, copy_glyph(font, more, name, shared), None)


def copy_glyph(font: TTFont, more: TTFont, name: str, shared: dict[str, str]) -> str:
    """The name in `font` of a copy of `more`'s glyph; the parts of a composite are copied too, once each."""
    if name in shared:
        return shared[name]
    glyph, copied = more["glyf"][name], f"more.{name}"
    shared[name] = copied
    if glyph.isComposite():
        for part in glyph.components:
            part.glyphName = copy_glyph(font, more, part.glyphName, shared)
    font["glyf"][copied] = glyph
    font["hmtx"][copied] = more["hmtx"][name]
    return copied


def put(font: TTFont, code: int, name: str, drawn: tuple[Any, int] | None) -> None:
    """Map a character to the glyph `name`, made from `drawn` (glyph, advance) if given."""
    if drawn is not None:
        glyph, advance = drawn
        font["glyf"][name] = glyph
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (advance, getattr(glyph, "xMin", 0))
    for table in font["cmap"].tables:
        if table.isUnicode():
            table.cmap[code] = name


def x_height(font: TTFont) -> float:
    """Height of the letter x in ems."""
    return bounds(font, "x")[3] / font["head"].unitsPerEm


def cut(font: TTFont, crisp: bool) -> None:
    """Leave the generator's characters, kerning and readable word spaces; see `Source` for `crisp`."""
    options = subset.Options()
    options.hinting = False
    options.layout_features = ["kern"]
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
    options.glyph_names = False
    options.notdef_outline = True
    options.drop_tables += ["GDEF", "GSUB", "DSIG", "STAT", "MATH", "gasp", "meta", "BASE"]
    worker = subset.Subsetter(options)
    worker.populate(unicodes=[ord(c) for c in fonts.CHARACTERS | fonts.HAND_CHARACTERS] + list(ALIASES))
    worker.subset(font)
    space = font.getBestCmap()[ord(" ")]
    least = round(LEAST_SPACE * x_height(font) * font["head"].unitsPerEm)
    font["hmtx"][space] = (max(font["hmtx"][space][0], least), 0)
    if not crisp:
        font["prep"] = newTable("prep")
        font["prep"].program = Program()
        font["prep"].program.fromBytecode(NO_HINTING)
        font["maxp"].maxStackElements = 1


LEAST_SPACE = 0.52
"""Least width of the word space, in x-heights: at 11 px a narrower one is rounded to less than 3 px."""

NO_HINTING = bytes((0xB8, 0x01, 0xFF, 0x85, 0xB0, 0x04, 0x8D, 0xB0, 0x00, 0x21))
"""A font program that does nothing (SCANCTRL, SCANTYPE, PUSHB POP), a little too long for FreeType to take the font for
one without instructions: it then draws the outlines as they are, where it would fit stems to pixels by itself."""


def complete(font: TTFont, kind: str) -> None:
    """Draw the characters that the font lacks, as far as this tool can; others are an error."""
    shapes = Shapes(font, kind)
    makers: dict[str, Callable[[str], tuple[Any, int]]] = {
        **dict.fromkeys("→←", shapes.arrow),
        **dict.fromkeys("≤≥≠", shapes.compared),
        **dict.fromkeys("■□▪▸☐☑☒", shapes.box),
        **dict.fromkeys("✓✗", shapes.tick),
        **dict.fromkeys("●○◦", shapes.ball),
        **dict.fromkeys("¹²³", shapes.raised),
        "‰": shapes.per_mille,
        "‡": shapes.double_dagger,
    }
    needed = fonts.HAND_CHARACTERS if kind == "hand" else fonts.CHARACTERS
    lacking = sorted(c for c in needed if ord(c) not in font.getBestCmap())
    if strange := [c for c in lacking if c not in makers]:
        raise SystemExit(f"{font['name'].getDebugName(4)}: cannot print {''.join(strange)}")
    for character in lacking:
        put(font, ord(character), f"drawn{ord(character):04X}", makers[character](character))
    for code, plain in ALIASES.items():
        put(font, code, font.getBestCmap()[plain], None)
    font.setGlyphOrder(list(font["glyf"].glyphOrder))


if __name__ == "__main__":
    main()
