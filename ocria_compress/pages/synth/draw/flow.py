"""Running text: words with their widths, broken into lines at spaces, and set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ocria_compress.pages.synth.document import Text
from ocria_compress.pages.synth.draw.colors import Color
from ocria_compress.pages.synth.draw.faces import Face, face
from ocria_compress.pages.synth.draw.formulas import FormulaMask, formula
from ocria_compress.pages.synth.draw.look import Look
from ocria_compress.pages.synth.draw.marks import Mark, Picture, TextMark


class Piece(NamedTuple):
    """Part of a word in one face, `rise` pixels above the baseline, or a formula."""

    text: str
    width: float
    face: Face
    color: Color
    rise: float = 0.0
    picture: FormulaMask | None = None


class Word(NamedTuple):
    """What stands between two spaces; `space` is the width of the one before it."""

    pieces: tuple[Piece, ...]
    width: float
    space: float
    up: float
    down: float


class Type(NamedTuple):
    """The faces of a piece of text, and from line to line, in pixels."""

    regular: Face
    bold: Face
    italic: Face
    hand: Face
    note: Face
    size: float
    leading: float
    color: Color
    hand_color: Color
    math: str
    math_size: float


def body_type(look: Look, scale: float = 1.0, color: Color | None = None, bold: bool = False) -> Type:
    """The type of running text at a scale; `bold`: all of it."""
    size = look.size * scale
    regular = face(look.body, "bold" if bold else "regular", size)
    return Type(
        regular,
        face(look.body, "bold", size),
        regular if bold else face(look.body, "italic", size),
        face(look.hand, "regular", size * look.hand_scale),
        face(look.body, "regular", size * 0.68),
        size,
        size * look.line_height,
        color or look.ink,
        look.hand_ink,
        look.math,
        size * look.math_scale,
    )


def words(content: Text, kind: Type) -> list[Word] | None:
    """The words of a text; None if it has a formula that cannot be set."""
    found: list[Word] = []
    pieces: list[Piece] = []
    space = before = 0.0
    for run in content:
        style, color = run.style, kind.color
        if style == "formula":
            picture = formula(run.text, kind.math_size, kind.math)
            if picture is None:
                return None
            pieces.append(Piece(run.text, picture.mask.width + 2.0, kind.regular, color, 0.0, picture))
            continue
        if style == "note":
            small = kind.note
            pieces.append(Piece(run.text, small.width(run.text) + 0.5, small, color, kind.regular.cap * 0.5))
            continue
        used = kind.regular if style == "plain" else getattr(kind, style)
        if style == "hand":
            color = kind.hand_color
        width, space = used.width, used.space
        for place, part in enumerate(run.text.split(" ")):
            if place:
                if pieces:
                    found.append(_word(pieces, before))
                    pieces = []
                before = space
            if part:
                pieces.append(Piece(part, width(part), used, color))
    if pieces:
        found.append(_word(pieces, before))
    return found


def _word(pieces: list[Piece], space: float) -> Word:
    if len(pieces) == 1 and pieces[0].picture is None:
        return Word((pieces[0],), pieces[0].width, space, 0.0, 0.0)
    up = down = 0.0
    for piece in pieces:
        if piece.picture is not None:
            up = max(up, piece.picture.mask.height - piece.picture.depth)
            down = max(down, piece.picture.depth)
    return Word(tuple(pieces), sum(piece.width for piece in pieces), space, up, down)


class Line(NamedTuple):
    """A line of text: its words, natural width, and how far it needs to reach above and below its baseline."""

    words: list[Word]
    width: float
    up: float
    down: float


def longest_word(all_words: Iterable[Word]) -> float:
    """Its width; 0 if there are none."""
    return max((word.width for word in all_words), default=0.0)


def break_lines(all_words: list[Word], kind: Type, width: float, indent: float = 0.0) -> list[Line] | None:
    """Lines of at most `width` pixels, the first shorter by `indent`; None if a word is wider than a line."""
    slack = width + 0.01
    if longest_word(all_words) > slack - indent:
        return None
    lines: list[Line] = []
    current: list[Word] = []
    used, limit = 0.0, slack - indent
    for word in all_words:
        wider = used + word.space + word.width
        if current and wider > limit:
            lines.append(_line(current, used, kind))
            current, used, limit = [word], word.width, slack
        elif current:
            current.append(word)
            used = wider
        else:
            current, used = [word], word.width
    if current:
        lines.append(_line(current, used, kind))
    return lines


def _line(its_words: list[Word], width: float, kind: Type) -> Line:
    """Half of the leading's extra space is above the text, half below; tall formulas push the lines apart."""
    face_up, face_down = kind.regular.up, kind.regular.down
    extra = max(0.0, kind.leading - face_up - face_down) / 2
    up, down = face_up + extra, face_down + extra
    for word in its_words:
        if word.up or word.down:
            up, down = max(up, word.up + extra + 1), max(down, word.down + extra + 1)
    return Line(its_words, width, up, down)


def height(lines: list[Line]) -> float:
    """Of lines one below the other, pixels."""
    return sum([line.up + line.down for line in lines])


def set_line(marks: list[Mark], line: Line, x: float, baseline: float, stretch: float = 0.0) -> None:
    """Adds a line's marks; `stretch` pixels are added to each space. Neighbours in one face become one mark."""
    y = round(baseline)
    start, texts, last = x, [], None
    for place, word in enumerate(line.words):
        if place:
            x += word.space + stretch
        if last is not None and len(word.pieces) == 1 and not stretch:
            piece = word.pieces[0]
            if piece.face is last.face and piece.color == last.color and not piece.rise and piece.picture is None:
                texts.append(piece.text)
                x += piece.width
                continue
        for piece in word.pieces:
            if last is not None:
                marks.append(TextMark(start, y - last.rise, " ".join(texts), last.face, last.color))
                last = None
            if piece.picture is not None:
                mask, depth = piece.picture
                marks.append(Picture(x + 1, y - mask.height + depth, mask, piece.color, piece.text))
            elif piece.rise:
                marks.append(TextMark(x, y - piece.rise, piece.text, piece.face, piece.color))
            else:
                start, texts, last = x, [piece.text], piece
            x += piece.width
    if last is not None:
        marks.append(TextMark(start, y - last.rise, " ".join(texts), last.face, last.color))


def set_lines(
    marks: list[Mark], lines: list[Line], x: float, y: float, width: float, align: str = "left", indent: float = 0.0
) -> float:
    """Adds lines' marks from the top edge `y` on; returns the bottom edge."""
    for number, line in enumerate(lines):
        room = width - line.width - (indent if number == 0 else 0.0)
        left = x + (indent if number == 0 else 0.0)
        stretch = 0.0
        if align == "center":
            left = x + (width - line.width) / 2
        elif align == "right":
            left = x + width - line.width
        elif align == "justify" and number < len(lines) - 1 and len(line.words) > 1:
            stretch = room / (len(line.words) - 1)
            if stretch > line.words[1].space * 3.5:  # a few long words: such gaps would look like columns
                stretch = 0.0
        set_line(marks, line, left, y + line.up, stretch)
        y += line.up + line.down
    return y
