"""Checks a reference: Markdown with HTML tables, formulas and footnotes, as `pages/synth/markdown.py` writes it.

Markdown itself never fails to parse: what is broken is shown as text. So what is looked for here is what its writer
cannot have meant: a table that never ends, cells over one another, half a formula, a footnote without its note.
Amounts in dollars, backticks used as quotation marks and `<` in running text are no faults.
"""

from __future__ import annotations

import re
import unicodedata

from ocria_compress.pages.html_tables import Fault, read_tables

MAX_CHARACTERS = 100_000
"""The longest reference of one page: a full page of a newspaper has about 30 000 characters."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_CODE = re.compile(r"(?<![`\\])(`+)(?!`)((?:(?!</t[dhr]>\s*<)[^\n])+?)(?<!`)\1(?!`)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")
_NOTE = re.compile(r"^ {0,3}\[\^([\w-]{1,20})\]:", re.MULTILINE)
_MARKER = re.compile(r"\[\^([\w-]{1,20})\](?!:)")
_PAIR = re.compile(r"(?<![\\$])\$(?![\s$])([^$\n]*?[^\s$\\])\$(?![\d$])")
_LATEX = re.compile(r"\\[a-zA-Z]{2,}|[_^]\{|[A-Za-z)}][_^][A-Za-z0-9]")
_AMOUNT = re.compile(r"\$\s*[\d.,(–-]")
_RULER = re.compile(r"^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$|^ {0,3}\|\s*:?-+:?\s*\|\s*$")


def check_reference(markdown: str) -> list[Fault]:
    """What is wrong with a reference; [] if nothing is.

    Found are: no text; over MAX_CHARACTERS; control characters; text that is not in Unicode's form NFC; a code block,
    table or formula that is not closed; tags of tables out of their place; spans that are no numbers or do not fit
    their grid; a pipe table whose ruler has another number of columns than its head; a footnote marker without a
    note, or a note without a marker.
    """
    if not markdown.strip():
        return [Fault(1, "the reference is empty")]
    faults = _characters(markdown)
    if len(markdown) > MAX_CHARACTERS:
        faults.append(Fault(1, f"{len(markdown):,} characters, where {MAX_CHARACTERS:,} are the most a page can have"))
        return faults
    text, fences = without_code(markdown)
    faults += fences
    tables, table_faults = read_tables(text)
    faults += table_faults
    for table in tables:  # a ruler or a note inside a table is not one
        text = text[: table.start] + re.sub(r"[^\n$\\]", " ", text[table.start : table.end]) + text[table.end :]
    faults += _formulas(without_code(markdown)[0]) + _footnotes(markdown) + _pipe_tables(text)
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.line)  # in the order found, within a line


def without_code(markdown: str) -> tuple[str, list[Fault]]:
    """The text with the contents of code blocks and code spans blanked, each character in its place; and what is wrong
    with the code blocks."""
    lines, faults = markdown.split("\n"), []
    mark, opened = "", 0
    for i, line in enumerate(lines):
        match = _FENCE.match(line)
        if not mark:
            if match and not ("`" in match[1] and "`" in match[2]):
                mark, opened = match[1], i
                lines[i] = " " * len(line)
            continue
        if match and match[1].startswith(mark) and not match[2].strip():
            mark = ""
        lines[i] = " " * len(line)
    if mark:
        faults.append(Fault(opened + 1, f"the code block that begins here ({mark}) is not closed"))
    return _CODE.sub(lambda match: " " * len(match[0]), "\n".join(lines)), faults


def _characters(text: str) -> list[Fault]:
    faults = []
    if match := _CONTROL.search(text):
        code = f"U+{ord(match[0]):04X}"
        faults.append(Fault(_line(text, match.start()), f"the control character {code}"))
    if not unicodedata.is_normalized("NFC", text):
        for number, line in enumerate(text.split("\n"), 1):
            if not unicodedata.is_normalized("NFC", line):
                faults.append(Fault(number, "not in Unicode's form NFC: an accent is written apart from its letter"))
                break
    return faults


def _formulas(text: str) -> list[Fault]:
    marks = [match.start() for match in re.finditer(r"(?<![\\$])\$\$(?!\$)", text)]
    if len(marks) % 2:
        return [Fault(_line(text, marks[-1]), "$$ is not closed: there is an odd number of them")]
    for begin, end in zip(marks[::2], marks[1::2], strict=True):
        text = text[:begin] + re.sub(r"[^\n]", " ", text[begin : end + 2]) + text[end + 2 :]
    faults = []
    position = 0
    for block in re.split(r"(\n\s*\n|</t[dh]>)", text):
        rest = _PAIR.sub(lambda match: " " * len(match[0]), block.replace("\\$", "  "))
        rest = _AMOUNT.sub(lambda match: " " * len(match[0]), rest)
        at = rest.find("$")
        # A single dollar sign that is left is a currency's, unless LaTeX stands behind it.
        if rest.count("$") == 1 and _LATEX.search(rest[at:]):
            faults.append(Fault(_line(text, position + at), "$ is not closed: LaTeX stands behind a single one"))
        position += len(block)
    return faults


def _footnotes(markdown: str) -> list[Fault]:
    text, _ = without_code(markdown)
    notes = {match[1]: match.start() for match in reversed(list(_NOTE.finditer(text)))}
    markers = {match[1]: match.start() for match in reversed(list(_MARKER.finditer(text)))}
    faults = [
        Fault(_line(text, at), f"the note [^{name}] has no marker in the text")
        for name, at in notes.items()
        if name not in markers
    ]
    # "[^a-z]" is a marker only where there are notes: elsewhere it is a regular expression that is not marked as code.
    return faults + [
        Fault(_line(text, at), f"the marker [^{name}] has no note")
        for name, at in markers.items()
        if name not in notes and (notes or name.isdigit())
    ]


def _pipe_tables(text: str) -> list[Fault]:
    lines, faults = text.split("\n"), []
    for i in range(1, len(lines)):
        head, ruler = lines[i - 1].strip(), lines[i].strip()
        if not (_RULER.match(ruler) and "|" in head):
            continue
        columns, names = _columns(ruler), _columns(head)
        if columns != names and not (i > 1 and "|" in lines[i - 2]):
            faults.append(Fault(i + 1, f"a pipe table's ruler has {columns} columns and its head {names}"))
    return faults


def _columns(row: str) -> int:
    bare = re.sub(r"\\\|", "", row)
    return len(bare.removeprefix("|").removesuffix("|").split("|"))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
