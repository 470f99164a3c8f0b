"""A small good source of each format that `pages convert` reads, two pages each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ocria_compress.pages.convert import Converted, convert
from ocria_compress.pages.convert.common import Options
from tests.pages.makers import TABLE, image, pdf

HTML = "<html><body><table border='1'><tr><td>a<br/>b</td><td colspan='2'>1</td></tr></table></body></html>"
TIDY = '<table>\n<tr><td>a b</td><td colspan="2">1</td></tr>\n</table>'


def run(source: Path, *, licence: str = "CC0-1.0", references: Path | None = None, **more: Any) -> Converted:
    """Converts into `out` beside the source."""
    options = Options(licence, references=references)
    return convert(source, source.parent / "out", options=options, **more)


def lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def make_images(root: Path) -> None:
    image(root / "a.png")
    (root / "a.md").write_text("# A", "utf-8")
    image(root / "sub" / "b.tif")
    (root / "sub" / "b.gold.txt").write_text("\ufeffCafe\u0301\r\nB \r\n\r\n", "utf-8", newline="")


def make_pdfs(root: Path) -> None:
    pdf(root / "two.pdf", [(144, 72), (72, 144)])
    (root / "two_p2.md").write_text("# Second")


def make_olmocr(root: Path) -> None:
    pdf(root / "pdfs" / "math" / "a.pdf", [(144, 72), (72, 144)])
    present = {"pdf": "math/a.pdf", "id": "a_1", "type": "present", "text": "x"}
    lines(
        root / "tests.jsonl",
        [
            present | {"page": 1},
            present | {"page": 2, "id": "a_2"},
            present | {"page": 1, "id": "a_3", "type": "absent"},
        ],
    )


def make_omnidocbench(root: Path) -> None:
    image(root / "images" / "a.jpg")
    image(root / "images" / "b.jpg")

    def block(order: int | None, kind: str, **more: Any) -> dict[str, Any]:
        return {"category_type": kind, "order": order, "ignore": False, "anno_id": order, **more}

    blocks = [
        block(2, "text_block", text="cut in the mid-"),
        block(1, "title", text="# Head"),
        block(3, "table", html=HTML, latex="\\begin{tabular}{c}x\\end{tabular}"),
        block(4, "equation_isolated", latex="$$ a_1 $$"),
        block(5, "text_block", text="dle of a word"),
        block(6, "table", latex="\\begin{tabular}{cc}\\hline A & B \\\\ \\hline 1 & 2 \\\\ \\hline\\end{tabular}"),
        block(None, "header", text="page 7"),
        block(7, "page_number", text="7"),
        block(8, "text_block", text="ignored") | {"ignore": True},
        block(None, "text_mask", text="masked"),
    ]
    joined = [{"relation_type": "truncated", "source_anno_id": 2, "target_anno_id": 5}]
    pages = [
        {"layout_dets": blocks, "page_info": {"image_path": "images/a.jpg"}, "extra": {"relation": joined}},
        {"layout_dets": [], "page_info": {"image_path": "b.jpg"}, "extra": {}},
    ]
    (root / "OmniDocBench.json").write_text(json.dumps(pages))


def make_parsebench(root: Path) -> None:
    pdf(root / "docs" / "table" / "a.pdf")
    image(root / "docs" / "text" / "b.png")
    rule = {"id": "1", "type": "t", "page": 1, "expected_markdown": None, "tags": ["easy"]}
    whole = "<page_header>top</page_header>\n# Whole\n<page_footer>1</page_footer>"
    lines(
        root / "table.jsonl",
        [rule | {"pdf": "docs/table/a.pdf", "category": "table", "rule": "{}", "expected_markdown": TABLE}],
    )
    lines(
        root / "text_content.jsonl",
        [rule | {"pdf": "docs/text/b.png", "category": "text", "rule": json.dumps({"original_md": whole})}],
    )


def make_pubtabnet(root: Path) -> None:
    def cell(*tokens: str) -> dict[str, Any]:
        return {"tokens": list(tokens)}

    head = ["<thead>", "<tr>", "<td", ' colspan="2"', ">", "</td>", "</tr>", "</thead>"]
    body = ["<tbody>", "<tr>", "<td>", "</td>", "<td>", "</td>", "</tr>", "</tbody>"]
    html: dict[str, Any] = {"structure": {"tokens": head + body}}
    html["cells"] = [
        cell("<b>", "H", "</b>"),
        cell("<i>", "p", "</i>", "<b>", " ", "</b>"),
        cell("<sup>", "2", "</sup>"),
    ]
    for name in ("a.png", "b.png"):
        image(root / "val" / name)
    lines(
        root / "PubTabNet.jsonl",
        [{"filename": n, "split": "val", "imgid": 1, "html": html} for n in ("a.png", "b.png")],
    )


def make_opendataloader(root: Path) -> None:
    for name in ("01", "02"):
        pdf(root / "pdfs" / f"{name}.pdf")
        (root / "ground-truth" / "markdown").mkdir(parents=True, exist_ok=True)
        (root / "ground-truth" / "markdown" / f"{name}.md").write_text(f"# {name}")


def make_pdf_parse_bench(root: Path) -> None:
    blocks = [
        {"type": "text", "data": "Before"},
        {"type": "inline-formula", "data": "$ a \\ $"},
        {"type": "text", "data": "behind."},
        {"type": "display-formula", "data": "$$b$$"},
        {"type": "table", "complexity": "simple", "data": "\\begin{tabular}{ll}\\textbf{A} & 1 \\\\ \\end{tabular}"},
    ]
    for name in ("000", "001"):
        pdf(root / "pdfs" / f"{name}.pdf")
        (root / "ground_truth").mkdir(parents=True, exist_ok=True)
        (root / "ground_truth" / f"{name}.json").write_text(json.dumps(blocks))


MAKERS: dict[str, Callable[[Path], None]] = {
    "images": make_images,
    "pdfs": make_pdfs,
    "olmocr-bench": make_olmocr,
    "omnidocbench": make_omnidocbench,
    "parsebench": make_parsebench,
    "pubtabnet": make_pubtabnet,
    "opendataloader": make_opendataloader,
    "pdf-parse-bench": make_pdf_parse_bench,
}
REFERENCES = {
    "images": ["# A", "Café\nB"],
    "pdfs": [None, "# Second"],
    "olmocr-bench": [None, None],
    "omnidocbench": [
        f"# Head\n\ncut in the middle of a word\n\n{TIDY}\n\n$$a_1$$\n\n"
        "<table>\n<tr><th>A</th><th>B</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>",
        "",
    ],
    "parsebench": [None, "# Whole"],
    "pubtabnet": ['<table>\n<tr><th colspan="2">H</th></tr>\n<tr><td>*p*</td><td><sup>2</sup></td></tr>\n</table>'] * 2,
    "opendataloader": ["# 01", "# 02"],
    "pdf-parse-bench": ["Before $a$ behind.\n\n$$b$$\n\n<table>\n<tr><td>**A**</td><td>1</td></tr>\n</table>"] * 2,
}
