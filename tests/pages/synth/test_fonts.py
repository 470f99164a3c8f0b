"""The fonts of the synthetic pages: what they print, where they come from, and that held-out ones stay apart."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from ocria_compress.errors import OcriaError
from ocria_compress.pages.synth import fonts

BUDGET = 1_600_000  # bytes of font_files
FACES = sorted({path for family in fonts.FAMILIES for path in (family.regular, family.bold, family.italic)})


def wanted(family: fonts.FontFamily) -> frozenset[str]:
    return fonts.HAND_CHARACTERS if family.kind == "hand" else fonts.CHARACTERS


@pytest.mark.parametrize("family", fonts.FAMILIES, ids=lambda family: family.name)
def test_every_face_prints_every_character(family: fonts.FontFamily) -> None:
    for path in {family.regular, family.bold, family.italic}:
        assert fonts.missing("".join(sorted(wanted(family))), path) == set(), path.name


def test_the_character_tables_agree() -> None:
    ttlib = pytest.importorskip("fontTools.ttLib")
    for family in fonts.FAMILIES:
        for path in {family.regular, family.bold, family.italic}:
            cmap = ttlib.TTFont(path, lazy=True).getBestCmap()
            assert [c for c in wanted(family) if cmap.get(ord(c), ".notdef") == ".notdef"] == [], path.name
            assert {0xA0, 0x202F, 0x2011} <= set(cmap), path.name


def test_missing_names_what_cannot_be_printed() -> None:
    assert fonts.missing("Straße\n字", fonts.FAMILIES[0].regular) == {"\n", "字"}


def test_the_folder_holds_the_listed_files_and_stays_small() -> None:
    assert set(fonts.FOLDER.glob("*.ttf")) == set(FACES)
    assert sum(path.stat().st_size for path in fonts.FOLDER.rglob("*") if path.is_file()) <= BUDGET


def test_every_family_has_its_licence_and_row() -> None:
    table = (fonts.FOLDER / "FONTS.md").read_text("utf-8")
    for family in fonts.FAMILIES:
        row = next(line for line in table.splitlines() if line.startswith(f"| {family.name} |"))
        licence = fonts.FOLDER / "LICENSES" / (family.regular.name.rpartition("-")[0] + ".txt")
        notice, _, grant = licence.read_text("utf-8").partition("\n\n")
        assert "copyright" in notice.lower() and "Reserved Font Name" not in notice
        assert notice in row and row.endswith("| yes |" if family.held_out else "|  |")
        text = grant.split("The text is in ")[1].strip().rstrip(".")
        assert text.removesuffix(".txt") in row
        assert (licence.parent / text).stat().st_size > 4000


def test_held_out_fonts_are_no_training_fonts() -> None:
    def marks(held_out: bool) -> set[str]:
        chosen = fonts.families(held_out)
        paths = {path for family in chosen for path in (family.regular, family.bold, family.italic)}
        return {family.name for family in chosen} | {hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    assert not marks(True) & marks(False)
    assert set(fonts.families(True)) | set(fonts.families(False)) == set(fonts.FAMILIES)


def test_both_splits_have_every_kind() -> None:
    counts = {
        (held_out, kind): len(fonts.families(held_out, kind))
        for held_out in (False, True)
        for kind in ("serif", "sans", "mono", "hand")
    }
    assert all(counts.values())
    assert sum(n for (held_out, kind), n in counts.items() if not held_out and kind != "hand") >= 22
    assert sum(n for (held_out, kind), n in counts.items() if held_out and kind != "hand") >= 6
    assert counts[False, "hand"] >= 4 and counts[True, "hand"] >= 2


@pytest.mark.parametrize("family", fonts.FAMILIES, ids=lambda family: family.name)
def test_small_letters_are_equally_tall_at_the_familys_scale(family: fonts.FontFamily) -> None:
    _, top, _, bottom = fonts.load(family.regular, 200 * family.scale).getbbox("x", anchor="ls")
    assert bottom - top == pytest.approx(200 * fonts.X_HEIGHT, abs=16 if family.kind == "hand" else 4)


def test_bold_and_italic_differ_where_they_are_said_to() -> None:
    for family in fonts.FAMILIES:
        plain = bytes(fonts.load(family.regular, 20.0).getmask("Hamburg"))
        for other, differs in ((family.bold, family.has_bold), (family.italic, family.has_italic)):
            assert (bytes(fonts.load(other, 20.0).getmask("Hamburg")) != plain) == differs
        assert family.kind == "hand" or family.has_bold


def test_word_spaces_are_wide_enough_to_be_seen_at_11_pixels() -> None:
    for path in FACES:
        assert fonts.load(path, 12.0).getlength(" ") >= 2, path.name


def test_load_is_cached_and_says_what_is_wrong(tmp_path: Path) -> None:
    path = fonts.FAMILIES[0].regular
    assert fonts.load(path, 12.5) is fonts.load(path, 12.55)
    for broken, size in ((tmp_path / "none.ttf", 12.0), (path, 0.0)):
        with pytest.raises(OcriaError, match="cannot be loaded"):
            fonts.load(broken, size)
    with pytest.raises(OcriaError, match="no kind"):
        fonts.families(True, "gothic")


def test_a_folder_without_its_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OcriaError, match="list of the page generator's fonts"):
        fonts._read(tmp_path)


def test_importing_it_does_not_import_pillow() -> None:
    code = "import sys, ocria_compress.pages.synth.fonts; sys.exit(any(m in sys.modules for m in ('PIL', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
