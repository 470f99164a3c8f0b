"""LaTeX text as Markdown: what is printed, with bold, italic and formulas marked as references mark them.

Only what stands in cells of tables is known; an unknown command is an error, not a guess.
"""

from __future__ import annotations

import re
import unicodedata

from ocria_compress.errors import OcriaError

_MARKS = {"textbf": "**", "textit": "*", "emph": "*", "textsl": "*"}
_SWITCHES = {"bf": "**", "bfseries": "**", "it": "*", "itshape": "*", "em": "*", "sl": "*"}
_PRINTED_AS = {
    "checkmark": "✓", "cmark": "✓", "xmark": "✗", "ding": "", "textbackslash": "\\", "textdagger": "†", "dag": "†",
    "textdaggerdbl": "‡", "ddag": "‡", "pm": "±", "textpm": "±", "times": "×", "texttimes": "×", "ldots": "…",
    "dots": "…", "textellipsis": "…", "textasciitilde": "~", "textasciicircum": "^", "textgreater": ">",
    "textless": "<", "textbar": "|", "textbullet": "•", "textdegree": "°", "degree": "°", "S": "§", "P": "¶",
    "copyright": "©", "textregistered": "®", "texttrademark": "™", "euro": "€", "pounds": "£", "ss": "ß", "ae": "æ",
    "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å", "i": "ı",
    "quad": " ", "qquad": " ", "newline": " ", "linebreak": " ", "enspace": " ", "space": " ", "par": " ",
}  # fmt: skip
# Commands that print their last argument, by how many they have; those with 0 print nothing.
_ARGUMENTS = {
    1: "underline uline underbar texttt text textrm textsf textsc textnormal textup textmd mbox hbox fbox makecell "
    "thead shortstack ensuremath uppercase lowercase footnotemark mathrm boldsymbol",
    2: "raisebox textcolor colorbox scalebox rotatebox href parbox adjustbox",
    3: "resizebox",
}
_PRINTS = {name: count for count, names in _ARGUMENTS.items() for name in names.split()}
_DROPPED = {
    0: "centering raggedright raggedleft small footnotesize scriptsize tiny normalsize large Large bigstrut strut "
    "hfill noindent normalfont rm sf tt upshape mdseries smallskip medskip bigskip protect relax displaystyle "
    "textstyle",
    1: "cellcolor rowcolor color columncolor vspace hspace label cite citep citet ref rule setlength arrayrulecolor "
    "phantom",
}
_DROPS = {name: count for count, names in _DROPPED.items() for name in names.split()}
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307"}
_ACCENTS |= {"c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "k": "\u0328", "r": "\u030a"}
_MATH = "alpha beta gamma delta epsilon varepsilon theta lambda mu pi rho sigma tau phi varphi psi omega "
_MATH += "Gamma Delta Theta Lambda Sigma Phi Psi Omega uparrow downarrow rightarrow leftarrow to infty circ "
_MATH += "cdot sim approx leq geq le ge neq"
_MATH_COMMANDS = set(_MATH.split())


def group(text: str, at: int, pair: str = "{}") -> tuple[str, int]:
    """The group that begins at `at`, without its brackets, and where it ends. Raises ValueError if it does not."""
    depth, i = 0, at
    while i < len(text):
        if text[i] == "\\":
            i += 2
            continue
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if depth == 0:
            return text[at + 1 : i], i + 1
        i += 1
    raise ValueError(f"{pair[0]} is not closed")


def skip_space(text: str, at: int) -> int:
    """The next place that is no space."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def argument(text: str, at: int) -> tuple[str, int]:
    """A command's next argument, a group, a command or one character; optional arguments before it are skipped."""
    at = skip_space(text, at)
    while text[at : at + 1] == "[":
        at = skip_space(text, group(text, at, "[]")[1])
    if at >= len(text):
        raise ValueError("an argument is missing")
    if text[at] == "{":
        return group(text, at)
    match = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL).match(text, at)
    assert match is not None
    return match[0], match.end()


def latex_text(text: str, where: str) -> str:
    """What LaTeX prints for a piece of text, as Markdown on one line.

    Raises:
        OcriaError: an unknown command, or a group that is not closed.
    """
    try:
        return re.sub(r"\s+", " ", _text(text)).strip()
    except (ValueError, RecursionError) as error:
        raise OcriaError(f"LaTeX of a table cannot be read: {error}", where=where) from error


def _text(text: str) -> str:
    start = re.match(r"\s*\\([A-Za-z]+)(?![A-Za-z])\s*", text)
    if start and start[1] in _SWITCHES:
        return _marked(_text(text[start.end() :]), _SWITCHES[start[1]])
    out: list[str] = []
    i = 0
    while i < len(text):
        if text[i] == "\\":
            printed, i = _command(text, i)
            out.append(printed)
        elif text[i] == "{":
            inner, i = group(text, i)
            out.append(_text(inner))
        elif text[i] == "$":
            end = _end_of_math(text, i)
            formula = text[i:end].strip("$").strip()
            if formula and formula not in (r"\Big.", r"\big."):
                out.append(f"${formula}$")
            i = end
        else:
            match = re.compile(r"---|--|``|''|~|[^\\{$~`'\-]+|.", re.DOTALL).match(text, i)
            assert match is not None
            out.append({"---": "—", "--": "–", "``": "“", "''": "”", "~": " ", "}": ""}.get(match[0], match[0]))
            i = match.end()
    return "".join(out)


def _end_of_math(text: str, at: int) -> int:
    mark = "$$" if text.startswith("$$", at) else "$"
    match = re.compile(r"(?:\\.|[^\\$])*", re.DOTALL).match(text, at + len(mark))
    assert match is not None
    if not text.startswith(mark, match.end()):
        raise ValueError(f"{mark} is not closed")
    return match.end() + len(mark)


def _marked(text: str, mark: str) -> str:
    bare = text.strip()
    if not bare or bare.startswith(mark):
        return text
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{lead}{mark}{bare}{mark}{tail}"


def _command(text: str, at: int) -> tuple[str, int]:
    match = re.compile(r"\\(?:([A-Za-z]+)\*?\s*|(.))", re.DOTALL).match(text, at)
    if match is None:
        raise ValueError("a backslash at the end")
    name, behind = match[1], match.end()
    if name is None:
        return _sign(text, match[2], behind)
    if name == "begin":
        return _environment(text, at)
    if name in _MARKS:
        inner, behind = argument(text, behind)
        return _marked(_text(inner), _MARKS[name]), behind
    if name in ("textsuperscript", "textsubscript"):
        inner, behind = argument(text, behind)
        tag = "sup" if name == "textsuperscript" else "sub"
        return f"<{tag}>{_text(inner).strip()}</{tag}>", behind
    if name in _ACCENTS and len(name) == 1:
        inner, behind = argument(text, behind)
        return _accented(_text(inner), name), behind
    if name in _PRINTS:
        inner = ""
        for _ in range(_PRINTS[name]):
            inner, behind = argument(text, behind)
        return _text(inner.replace(r"\\", " ")), behind
    if name in _DROPS:
        for _ in range(_DROPS[name]):
            _, behind = argument(text, behind)
        return "", behind
    if name in _PRINTED_AS:
        behind = group(text, behind)[1] if text.startswith("{}", behind) else behind
        return _PRINTED_AS[name], behind
    if name in _MATH_COMMANDS:
        return f"$\\{name}$", behind
    raise ValueError(f"the command \\{name} is not known")


def _accented(letter: str, accent: str) -> str:
    """`\\"{\\i}` prints an i with two dots: the dotless letter only makes room for the accent."""
    return unicodedata.normalize("NFC", ("i" if letter == "ı" else letter) + _ACCENTS[accent])


def _sign(text: str, sign: str, behind: int) -> tuple[str, int]:
    if sign in "&%_#${}":
        return sign, behind
    if sign in ",;: \\\n":
        return " ", behind
    if sign in "!/-@":
        return "", behind
    if sign in "([":
        end = text.find("\\)" if sign == "(" else "\\]", behind)
        if end < 0:
            raise ValueError(f"\\{sign} is not closed")
        return f"${text[behind:end].strip()}$", end + 2
    if sign in _ACCENTS:
        inner, behind = argument(text, behind)
        return _accented(_text(inner), sign), behind
    raise ValueError(f"the command \\{sign} is not known")


def _environment(text: str, at: int) -> tuple[str, int]:
    """An inner table is only a way to break lines in a cell: its cells one after the other."""
    begin = re.compile(r"\\begin\s*\{([^{}]*)\}").match(text, at)
    if begin is None:
        raise ValueError(r"\begin without a name")
    depth, name = 0, re.escape(begin[1])
    for match in re.compile(rf"\\(begin|end)\s*\{{{name}\}}").finditer(text, at):
        depth += 1 if match[1] == "begin" else -1
        if depth == 0:
            inner = text[begin.end() : match.start()]
            if begin[1].startswith(("tabular", "array")):
                _, behind = argument(inner, 0)
                inner = re.sub(r"(?<!\\)&", " ", re.sub(r"\\\\(?:\[[^\]]*\])?|\\hline", " ", inner[behind:]))
            return _text(inner), match.end()
    raise ValueError(f"\\begin{{{begin[1]}}} is not closed")
