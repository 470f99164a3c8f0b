"""The contact sheet as one HTML file: each page's image beside its rendered reference."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

from ocria_compress.pages.markup import Code, Shown, parse
from ocria_compress.pages.page_record import Page
from ocria_compress.pages.synth.document import Cell, Formula, Heading, Lines, ListBlock, Notes, Paragraph, Table, Text

MAX_WIDTH = 1000
"""The widest image in the file, pixels."""

_STYLE = """
:root{--ink:#1d2127;--dim:#69717c;--line:#d9dde3;--paper:#fff;--desk:#f2f4f7;--accent:#2357a5}
*{box-sizing:border-box}
body{margin:0;background:var(--desk);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif}
header{padding:28px 36px 8px}h1.set{font-size:22px;margin:0}header p{margin:4px 0;color:var(--dim)}
.pages{display:grid;gap:28px;padding:20px 36px 48px;grid-template-columns:repeat(var(--columns),minmax(0,1fr))}
.page{background:var(--paper);border:1px solid var(--line);border-radius:10px;overflow:hidden}
.page>h2{font-size:14px;margin:0;padding:10px 16px;border-bottom:1px solid var(--line);font-weight:600}
.page>h2 span{font-weight:400;color:var(--dim);margin-left:10px}
.pair{display:grid;grid-template-columns:1fr 1fr;align-items:start}
.image{padding:16px;border-right:1px solid var(--line);background:#e8ebf0;display:block;align-self:stretch}
.pair img{width:100%;display:block;box-shadow:0 1px 5px #0003}
.ref{padding:16px 20px;min-width:0;overflow-x:auto;overflow-wrap:break-word}
.ref h1{font-size:1.5em}.ref h2{font-size:1.25em}.ref h3{font-size:1.1em}.ref h4{font-size:1em}
.ref h1,.ref h2,.ref h3,.ref h4{line-height:1.25;margin:.7em 0 .4em}.ref>:first-child{margin-top:0}
.ref p{margin:.5em 0}.ref ul,.ref ol{margin:.5em 0;padding-left:1.6em}
.ref table{border-collapse:collapse;margin:.8em 0;font-size:.9em;display:block;max-width:100%;overflow-x:auto}
.ref td,.ref th{border:1px solid #b9c0ca;padding:3px 8px;text-align:left;vertical-align:top}
.ref th{background:#eef1f5}
.ref code{font:.88em ui-monospace,"DejaVu Sans Mono",Consolas,monospace;color:var(--accent)}
.ref .formula{display:block;text-align:center;margin:.8em 0;padding:6px;background:#f5f8fd;border-radius:6px}
.ref pre{background:#f5f6f8;padding:10px;border-radius:6px;overflow-x:auto;font-size:.85em}
.ref .notes{border-top:1px solid var(--line);font-size:.88em;padding-top:4px}
.none{color:var(--dim);font-style:italic}
details{border-top:1px solid var(--line);padding:8px 16px;color:var(--dim);font-size:.85em}
details pre{white-space:pre-wrap;color:var(--ink);overflow-wrap:anywhere}
@media(max-width:900px){.pages{grid-template-columns:1fr;padding:12px}.pair{grid-template-columns:1fr}}
"""
_AROUND = {"bold": "strong", "italic": "em"}


def contact_html(pages: Sequence[Page], title: str, summary: str, columns: int = 1) -> str:
    """The sheet.

    Args:
        pages: what is shown, in order.
        title, summary: above the pages.
        columns: pages side by side.

    Raises:
        OcriaError: as `Page.open`.
    """
    shown = "\n".join(_page(page) for page in pages)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<style>{_STYLE}</style></head>\n<body style="--columns:{columns}">'
        f'<header><h1 class="set">{escape(title)}</h1><p>{escape(summary)}</p></header>\n'
        f'<main class="pages">\n{shown}\n</main></body></html>\n'
    )


def _page(page: Page) -> str:
    facts = facts_of(page)
    if page.reference is None:
        tests = page.meta.get("tests", [])
        text = f"no reference; {len(tests)} test{'s' * (len(tests) > 1)}" if tests else "no reference"
        reference = f'<p class="none">{text}</p>' + "".join(f"<p>{escape(test_line(test))}</p>" for test in tests[:20])
        raw = ""
    else:
        reference = to_html(page.reference)
        raw = f"<details><summary>Markdown as written</summary><pre>{escape(page.reference)}</pre></details>"
    return (
        f'<section class="page"><h2>{escape(page.id)}<span>{escape(facts)}</span></h2>'
        f'<div class="pair"><div class="image"><img alt="{escape(page.id)}" src="{_data(page)}"></div>'
        f'<div class="ref">{reference}</div></div>{raw}</section>'
    )


def test_line(test: dict[str, Any]) -> str:
    """A test of a page in a line: its type, and what it looks for."""
    looked = [f"{key}: {value}" for key, value in test.items() if key not in ("id", "type", "checked", "url") and value]
    return f"{test.get('type', 'test')} ({'; '.join(looked)})"


def facts_of(page: Page) -> str:
    """A line about a page: size, split, licence, and what its record says of it."""
    facts = [f"{page.width} x {page.height}", page.split, page.licence]
    if page.page is not None:
        facts.insert(1, f"page {page.page} of {page.image.name} at {page.dpi} dpi")
    for key in ("language", "template", "strata"):
        value = page.meta.get(key)
        if value:
            facts.append(", ".join(map(str, value)) if isinstance(value, list) else str(value))
    return " · ".join(facts)


def _data(page: Page) -> str:
    image = page.open()
    if image.width > MAX_WIDTH:
        image = image.resize((MAX_WIDTH, round(image.height * MAX_WIDTH / image.width)))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=80)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def to_html(markdown: str) -> str:
    """A reference as HTML; text is escaped, formulas are shown as their LaTeX."""
    return "\n".join(_block(block) for block in parse(markdown)) or '<p class="none">empty: a page without text</p>'


def _block(block: Shown) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_inline(block.content)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{_inline(block.content)}</p>"
    if isinstance(block, Lines):
        return "<p>" + "<br>\n".join(_inline(line) for line in block.lines) + "</p>"
    if isinstance(block, ListBlock):
        return _list(block)
    if isinstance(block, Table):
        rows = ("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in block.rows)
        return "<table>" + "\n".join(rows) + "</table>"
    if isinstance(block, Formula):
        return f'<code class="formula">{escape(block.latex)}</code>'
    if isinstance(block, Code):
        return f"<pre>{escape(block.content)}</pre>"
    if isinstance(block, Notes):
        notes = "<br>\n".join(f"<sup>{escape(mark)}</sup> {_inline(text)}" for mark, text in block.notes)
        return f'<p class="notes">{notes}</p>'
    raise AssertionError(block)


def _list(block: ListBlock) -> str:
    tag = "ol" if block.ordered else "ul"
    start = f' start="{block.start}"' if block.ordered and block.start != 1 else ""
    items = (
        f"<li>{_inline(item.content)}{_list(item.below) if item.below is not None else ''}</li>" for item in block.items
    )
    return f"<{tag}{start}>{''.join(items)}</{tag}>"


def _cell(cell: Cell) -> str:
    tag = "th" if cell.header else "td"
    spans = f' rowspan="{cell.rowspan}"' * (cell.rowspan > 1) + f' colspan="{cell.colspan}"' * (cell.colspan > 1)
    return f"<{tag}{spans}>{_inline(cell.content)}</{tag}>"


def _inline(content: Text) -> str:
    parts = []
    for run in content:
        text = escape(run.text)
        if run.style == "formula":
            parts.append(f"<code>{text}</code>")
        elif run.style == "note":
            parts.append(f"<sup>{text}</sup>")
        elif run.style in _AROUND:
            parts.append(f"<{_AROUND[run.style]}>{text}</{_AROUND[run.style]}>")
        else:
            parts.append("<br>" if run.text == "\n" else text)
    return "".join(parts)
