"""Draws a reference with Pillow, plainly: headings larger, lists indented, tables as grids with their spans.

Sizes in pixels. Layout gives a list of marks first, so that the picture can be made as high as they need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria_compress.pages.markup import Code, Shown, parse
from ocria_compress.pages.synth.document import (
    Cell,
    Formula,
    Heading,
    Lines,
    ListBlock,
    Notes,
    Paragraph,
    Run,
    Table,
    Text,
)

if TYPE_CHECKING:
    from PIL import Image

INK, DIM, RULE, SHADE, LATEX = (29, 33, 39), (105, 113, 124), (176, 184, 194), (238, 241, 245), (35, 87, 165)
_HEADINGS = {1: 1.55, 2: 1.3, 3: 1.15, 4: 1.0}
_PAD = 4


@dataclass
class Marks:
    """What is drawn: texts (x, y of the base line, text, face, colour) and boxes (x0, y0, x1, y1, fill, outline)."""

    texts: list[tuple[float, float, str, Any, tuple]] = field(default_factory=list)
    boxes: list[tuple[float, float, float, float, Any, Any]] = field(default_factory=list)

    def put(self, other: Marks, dx: float, dy: float) -> None:
        """Adds other marks, moved."""
        self.texts += [(x + dx, y + dy, *rest) for x, y, *rest in other.texts]  # type: ignore[misc]
        self.boxes += [(a + dx, b + dy, c + dx, d + dy, *rest) for a, b, c, d, *rest in other.boxes]  # type: ignore[misc]


def draw_reference(markdown: str, width: int, size: float = 14, max_height: int | None = None) -> Image.Image:
    """A reference on white.

    Args:
        markdown: the reference.
        width: of the picture.
        size: of the body text.
        max_height: a longer reference is cut there, with a note that says so.
    """
    from PIL import Image, ImageDraw

    marks, y = Marks(), 0.0
    for block in parse(markdown):
        drawn, height = _block(block, width, size)
        marks.put(drawn, 0, y)
        y += height + size * 0.6
    height = max(1, round(y))
    cut = max_height is not None and height > max_height
    picture = Image.new("RGB", (width, max_height if cut and max_height else height), "white")
    pen = ImageDraw.Draw(picture)
    for x0, y0, x1, y1, fill, outline in marks.boxes:
        pen.rectangle((x0, y0, x1, y1), fill=fill, outline=outline)
    for x, y, text, face, color in marks.texts:
        pen.text((x, y), text, font=face, fill=color, anchor="ls")
    if cut:
        pen.rectangle((0, picture.height - 2 * size, width, picture.height), fill="white")
        pen.text(
            (0, picture.height - size / 2),
            "… the reference goes on",
            font=face_of("italic", size),
            fill=DIM,
            anchor="ls",
        )
    return picture


@lru_cache(maxsize=64)
def face_of(kind: str, size: float) -> Any:
    """A face: regular, bold, italic, mono, or `other` for characters that those do not have."""
    from ocria_compress.pages.synth.fonts import FAMILIES, load

    if kind == "other":
        return load(_other(), size)
    family = next((f for f in FAMILIES if f.name == ("Cousine" if kind == "mono" else "Arimo")), FAMILIES[0])
    return load({"bold": family.bold, "italic": family.italic}.get(kind, family.regular), size * family.scale)


def _other() -> Path:
    from ocria_compress.pages.synth.fonts import FAMILIES

    plot = find_spec("matplotlib")  # of the extra [pages]; its DejaVu Sans has Greek, arrows and mathematical signs
    if plot is not None and plot.origin:
        path = Path(plot.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
        if path.is_file():
            return path
    return FAMILIES[0].regular


def _block(block: Shown, width: float, size: float) -> tuple[Marks, float]:
    if isinstance(block, Heading):
        return _text(block.content, width, size * _HEADINGS[block.level], "bold")
    if isinstance(block, Paragraph):
        return _text(block.content, width, size)
    if isinstance(block, Lines):
        return _stack([(line, 0.0) for line in block.lines], width, size)
    if isinstance(block, ListBlock):
        return _list(block, width, size)
    if isinstance(block, Table):
        return _table(block, width, size * 0.9)
    if isinstance(block, Formula):
        return _text((Run(block.latex, "formula"),), width - 2 * size, size, indent=2 * size)
    if isinstance(block, Code):
        return _stack([((Run(line, "formula"),), 0.0) for line in block.content.split("\n")], width, size)
    assert isinstance(block, Notes)
    return _stack([((Run(mark, "note"), Run(" "), *text), 0.0) for mark, text in block.notes], width, size * 0.88)


def _stack(lines: list[tuple[Text, float]], width: float, size: float) -> tuple[Marks, float]:
    marks, y = Marks(), 0.0
    for content, indent in lines:
        drawn, height = _text(content, width - indent, size, indent=indent)
        marks.put(drawn, 0, y)
        y += height
    return marks, y


def _list(block: ListBlock, width: float, size: float) -> tuple[Marks, float]:
    marks, y, indent = Marks(), 0.0, size * (2.0 if block.ordered else 1.4)
    for number, item in enumerate(block.items, block.start):
        label, _ = _text((Run(f"{number}." if block.ordered else "•"),), indent, size)
        marks.put(label, size * 0.3, y)
        drawn, height = _text(item.content, width - indent, size, indent=indent)
        marks.put(drawn, 0, y)
        y += height + size * 0.15
        if item.below is not None:
            drawn, height = _list(item.below, width - indent, size)
            marks.put(drawn, indent, y)
            y += height
    return marks, y


def _pieces(content: Text, size: float, base: str) -> list[tuple[str, Any, tuple, float]]:
    """Words and the spaces between them with face, colour and how far they are raised."""
    from ocria_compress.pages.synth.fonts import CHARACTERS

    pieces: list[tuple[str, Any, tuple, float]] = []
    for run in content:
        kind, color, raised, em = base, INK, 0.0, size
        if run.style == "formula":
            kind, color, em = "mono", LATEX, size * 0.92
        elif run.style == "note":
            raised, em = size * 0.35, size * 0.7
        elif run.style in ("bold", "italic"):
            kind = run.style
        word = ""
        other = False
        for char in run.text:
            strange = char not in CHARACTERS and char != "\n"
            if word and (char in " \n" or word in (" ", "\n") or strange != other):
                pieces.append((word, face_of("other" if other else kind, em), color, raised))
                word = ""
            word, other = word + char, strange
        if word:
            pieces.append((word, face_of("other" if other else kind, em), color, raised))
    return pieces


def _text(content: Text, width: float, size: float, base: str = "regular", indent: float = 0.0) -> tuple[Marks, float]:
    """Text set in lines; long words are broken where they must."""
    leading = size * 1.35
    marks, x, y = Marks(), 0.0, size
    pending = 0.0
    for word, face, color, raised in _pieces(content, size, base):
        if word == "\n":
            x, y, pending = 0.0, y + leading, 0.0
            continue
        if word == " ":
            pending += face.getlength(" ")
            continue
        while word:
            length = face.getlength(word)
            if x + pending + length > width and x > 0:
                x, y, pending = 0.0, y + leading, 0.0
            head = word
            while face.getlength(head) > width and len(head) > 1:
                head = head[: max(1, int(len(head) * width / face.getlength(head)))] if len(head) > 4 else head[:-1]
            x += pending if x else 0.0
            marks.texts.append((indent + x, y - raised, head, face, color))
            x, pending, word = x + face.getlength(head), 0.0, word[len(head) :]
    return marks, y + size * 0.35


def _widths(content: Text, size: float, base: str) -> tuple[float, float]:
    """How wide a text must be (its longest word) and would like to be (on one line)."""
    least = line = most = 0.0
    for word, face, _, _ in _pieces(content, size, base):
        length = 0.0 if word == "\n" else face.getlength(word)
        line = 0.0 if word == "\n" else line + length
        least, most = max(least, length), max(most, line)
    return least + 2 * _PAD + 1, most + 2 * _PAD + 1


@dataclass
class _Placed:
    cell: Cell
    row: int
    column: int


def _place(table: Table) -> tuple[list[_Placed], int]:
    taken: set[tuple[int, int]] = set()
    placed = []
    for y, row in enumerate(table.rows):
        x = 0
        for cell in row:
            while (y, x) in taken:
                x += 1
            taken |= {(y + i, x + j) for i in range(cell.rowspan) for j in range(cell.colspan)}
            placed.append(_Placed(cell, y, x))
    return placed, max((x + 1 for _, x in taken), default=0)


def _needs(placed: list[_Placed], count: int, size: float) -> tuple[list[float], list[float]]:
    """Of each column the width that its longest word needs, and the one that its longest line does."""
    least, most = [2.0 * _PAD] * count, [2.0 * _PAD] * count
    for each in sorted(placed, key=lambda one: one.cell.colspan):
        low, high = _widths(each.cell.content, size, "bold" if each.cell.header else "regular")
        span = range(each.column, each.column + each.cell.colspan)
        for need, have in ((low, least), (high, most)):
            missing = need - sum(have[i] for i in span)
            for i in span:
                have[i] += max(0.0, missing) / len(span)
    return least, most


def _columns(least: list[float], most: list[float], width: float) -> list[float]:
    if sum(most) <= width:
        return most
    if sum(least) < width:
        share = (width - sum(least)) / (sum(most) - sum(least))
        return [low + (high - low) * share for low, high in zip(least, most, strict=True)]
    cap, left = 0.0, width  # the widest give way, and their words are broken
    for i, value in enumerate(sorted(least)):
        cap = left / (len(least) - i)
        if value > cap:
            break
        left -= value
    return [min(value, cap) for value in least]


def _table(table: Table, width: float, size: float) -> tuple[Marks, float]:
    placed, count = _place(table)
    marks = Marks()
    if not placed:
        return marks, 0.0
    least, most = _needs(placed, count, size)
    if sum(least) > 0.75 * width:  # small print before long columns of single words, and before words are broken
        size = max(0.6 * size, size * 0.75 * width / sum(least))
        least, most = _needs(placed, count, size)
    columns = _columns(least, most, width - 1)
    drawn = []
    heights = [size * 1.35 + 2 * _PAD] * len(table.rows)
    for each in placed:
        room = sum(columns[each.column : each.column + each.cell.colspan]) - 2 * _PAD
        drawn.append(_text(each.cell.content, room, size, "bold" if each.cell.header else "regular"))
    for each, (_, height) in sorted(zip(placed, drawn, strict=True), key=lambda one: one[0].cell.rowspan):
        rows = range(each.row, min(each.row + each.cell.rowspan, len(heights)))
        missing = height + 2 * _PAD - sum(heights[i] for i in rows)
        heights[rows[-1]] += max(0.0, missing)
    lefts = [sum(columns[:i]) for i in range(count + 1)]
    tops = [sum(heights[:i]) for i in range(len(heights) + 1)]
    for each, (text, _) in zip(placed, drawn, strict=True):
        x0, x1 = lefts[each.column], lefts[min(each.column + each.cell.colspan, count)]
        y0, y1 = tops[each.row], tops[min(each.row + each.cell.rowspan, len(heights))]
        marks.boxes.append((x0, y0, x1, y1, SHADE if each.cell.header else None, RULE))
        marks.put(text, x0 + _PAD, y0 + _PAD)
    return marks, tops[-1]
