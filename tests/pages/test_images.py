"""Page images that cannot be read are refused with the file's name; those that can be come as vLLM would see them."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from ocria_compress.errors import OcriaError
from ocria_compress.pages.images import MAX_SIDE, open_page


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size, without the pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100)))


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    path = tmp_path / "whole.png"
    Image.effect_noise((64, 64), 50).save(path)
    return path.read_bytes()


def refusal(path: Path) -> str:
    with pytest.raises(OcriaError) as caught:
        open_page(path)
    assert caught.value.where and path.name in caught.value.where
    assert caught.value.fix
    return caught.value.what


def test_a_missing_image(tmp_path: Path) -> None:
    assert "no such" in refusal(tmp_path / "none.png")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "page.png").mkdir()
    assert "folder" in refusal(tmp_path / "page.png")


def test_an_empty_image(tmp_path: Path) -> None:
    (tmp_path / "page.png").touch()
    assert "empty" in refusal(tmp_path / "page.png")


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"


@pytest.mark.parametrize("content", [b"%PDF-1.7\n%...", b"hello", b"\0" * 4096, POSTSCRIPT])
def test_not_an_image(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "page.png").write_bytes(content)
    assert "not an image" in refusal(tmp_path / "page.png")


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_truncated_png(tmp_path: Path, whole: bytes, share: float) -> None:
    (tmp_path / "page.png").write_bytes(whole[: int(len(whole) * share)])
    assert "damaged" in refusal(tmp_path / "page.png")


def test_a_truncated_jpeg(tmp_path: Path) -> None:
    path = tmp_path / "page.jpg"
    Image.effect_noise((256, 256), 50).save(path)
    path.write_bytes(path.read_bytes()[:5000])
    assert "damaged" in refusal(path)


def test_a_page_20000_pixels_wide(tmp_path: Path) -> None:
    Image.new("1", (20000, 30)).save(tmp_path / "page.png")
    message = refusal(tmp_path / "page.png")
    assert "20000 x 30" in message and str(MAX_SIDE) in message


@pytest.mark.parametrize("size", [(16000, 16000), (60000, 60000), (2**31 - 1, 2**31 - 1)])
def test_a_decompression_bomb_is_refused_by_its_header(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "page.png").write_bytes(png_header(*size))
    assert "too large" in refusal(tmp_path / "page.png")


def test_16_bit_grey_is_refused_instead_of_read_as_white(tmp_path: Path) -> None:
    Image.new("I;16", (8, 8), 30000).save(tmp_path / "page.png")
    assert "8 bits" in refusal(tmp_path / "page.png")


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "page.png")
    assert "regular file" in refusal(tmp_path / "page.png")


def test_transparency_lies_on_white_paper(tmp_path: Path) -> None:
    image = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    image.putpixel((1, 0), (10, 20, 30, 255))
    image.save(tmp_path / "page.png")
    page = open_page(tmp_path / "page.png")
    assert page.mode == "RGB"
    assert [page.getpixel((x, 0)) for x in (0, 1)] == [(255, 255, 255), (10, 20, 30)]


def test_a_photograph_is_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    Image.new("L", (40, 20)).save(tmp_path / "page.jpg", exif=exif)
    assert open_page(tmp_path / "page.jpg").size == (20, 40)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK"])
def test_every_common_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "page.tiff"
    Image.new(mode, (32, 16)).save(path)
    page = open_page(str(path))
    assert (page.mode, page.size) == ("RGB", (32, 16))
    page.load()  # decoded already: the file may go
