"""Scans and images: read by Tesseract where it is installed, refused with the reason where not."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from privategpt.backends.parsers import images, ocr
from privategpt.backends.parsers.bounds import Bounds
from privategpt.backends.parsers.ocr import OcrOptions, Picture, Tesseract, find_tesseract
from privategpt.backends.parsers.reading import read_file
from privategpt.backends.parsers.workers import WorkerParser
from privategpt.domain.documents import ParsedFile
from privategpt.domain.errors import (
    CorruptFile,
    FileExceedsBounds,
    InvalidSettings,
    NoTextFound,
    UnsupportedFileType,
)
from privategpt.domain.ports import Upload
from tests.fakes.parser_files import lines, pdf_of_pages, zipped

needs_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="Tesseract is not installed"
)


class SeesSize:
    """An OCR that reads the same from every picture and remembers their sizes."""

    def __init__(self, text: str = "seen") -> None:
        self.text = text
        self.sizes: list[tuple[int, int]] = []

    def __call__(self, picture: Picture) -> str:
        assert len(picture.pixels) == picture.width * picture.height
        self.sizes.append((picture.width, picture.height))
        return self.text


def _written(text: str) -> Image.Image:
    image = Image.new("L", (900, 300), 255)
    font = ImageFont.load_default(size=40)
    ImageDraw.Draw(image).multiline_text((40, 40), text, fill=0, font=font, spacing=20)
    return image


def _saved(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _scan(image: Image.Image, *more: bytes) -> bytes:
    """A PDF: one page that is a picture, then pages of text."""
    data = _saved(image.convert("RGB"), "JPEG")
    number = 6 + 2 * len(more)
    picture = b"<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB" % image.size
    picture += b"/BitsPerComponent 8/Filter/DCTDecode/Length %d>>stream\n" % len(data)
    pdf = pdf_of_pages(
        [b"540 0 0 180 30 500 cm /P Do", *more], more=[picture + data + b"\nendstream"]
    )
    return pdf.replace(b"/F 3 0 R>>>>>>", b"/F 3 0 R>>/XObject<</P %d 0 R>>>>>>" % number, 1)


def _read(
    folder: Path, data: bytes, read: Callable[[Picture], str] | None, *, max_pages: int = 100
) -> ParsedFile:
    path = folder / "upload.bin"
    path.write_bytes(data)
    return read_file(Upload(path=path, name="upload"), Bounds(max_pages=max_pages, ocr=read))


def _options(command: str, *, page_timeout_s: float = 60.0) -> OcrOptions:
    return OcrOptions(command=command, languages=("eng",), page_timeout_s=page_timeout_s)


def _program(folder: Path, script: str) -> str:
    path = folder / "tesseract"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


PICTURE = Picture(width=2, height=1, pixels=b"\x00\xff")


# With the program


@needs_tesseract
async def test_scans_and_images_are_read_through_the_worker(tmp_path: Path) -> None:
    options = find_tesseract(["eng"], page_timeout_s=60)
    assert options is not None
    parser = WorkerParser(
        workers=1, timeout_s=60, memory_bytes=500_000_000, max_pages=10, ocr=options
    )
    image = _written("The library is closed\non Sunday afternoon")
    turned = image.rotate(90, expand=True, fillcolor=255)
    try:
        for number, data in enumerate(
            (_scan(image), _saved(image, "PNG"), zipped({"a.tiff": _saved(turned, "TIFF")}))
        ):
            path = tmp_path / str(number)
            path.write_bytes(data)
            (document,) = (await parser.parse(Upload(path=path, name="upload"))).documents
            assert document.text == "The library is closed\non Sunday afternoon"
            assert document.metadata == {"ocr": True}
    finally:
        await parser.close()


@needs_tesseract
def test_a_language_that_tesseract_lacks_is_refused_by_name() -> None:
    with pytest.raises(InvalidSettings, match=r"'xx_none'.*tesseract-ocr-xx_none.*'eng'"):
        find_tesseract(["eng", "xx_none"], page_timeout_s=1)


def test_without_the_program_there_is_no_ocr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_tesseract(["eng"], page_timeout_s=1) is None


# Which pages, and how


def test_only_pages_without_text_are_read_by_ocr_and_keep_their_place(tmp_path: Path) -> None:
    seen = SeesSize("from the pic-\nture")
    parsed = _read(tmp_path, _scan(_written("x"), lines("Text"), b""), seen)
    assert [(d.page_label, d.text, dict(d.metadata)) for d in parsed.documents] == [
        ("1", "from the picture", {"ocr": True}),
        ("2", "Text", {}),
    ]
    assert seen.sizes == [(2500, 3334)]


def test_a_page_as_large_as_a_house_is_drawn_small(tmp_path: Path) -> None:
    seen = SeesSize()
    data = _scan(_written("x")).replace(b"[0 0 600 800]", b"[0 0 14400 14400]")
    _read(tmp_path, data, seen)
    ((width, height),) = seen.sizes
    assert width * height <= 1.01 * ocr.MAX_PIXELS


def test_where_ocr_finds_nothing_the_refusal_says_so(tmp_path: Path) -> None:
    for data in (_scan(_written("x")), _saved(_written("x"), "PNG")):
        with pytest.raises(NoTextFound, match="OCR found no"):
            _read(tmp_path, data, SeesSize(" \n"))


def test_without_ocr_scans_and_images_say_that_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(NoTextFound, match="run OCR"):
        _read(tmp_path, _scan(_written("x")), None)
    with pytest.raises(UnsupportedFileType, match="needs OCR"):
        _read(tmp_path, _saved(_written("x"), "PNG"), None)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "GIF", "BMP", "WEBP"])
def test_every_kind_of_image_is_opened(kind: str, tmp_path: Path) -> None:
    seen = SeesSize()
    parsed = _read(tmp_path, _saved(_written("x"), kind), seen)
    assert parsed.media_type == f"image/{kind.lower()}"
    assert [(d.text, d.page_label) for d in parsed.documents] == [("seen", None)]
    assert seen.sizes == [(900, 300)]


def test_the_pages_of_a_tiff_are_documents(tmp_path: Path) -> None:
    pages = [_written(str(number)) for number in range(3)]
    data = _saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    parsed = _read(tmp_path, data, SeesSize())
    assert [d.page_label for d in parsed.documents] == ["1", "2", "3"]
    with pytest.raises(FileExceedsBounds, match="over 2 pages"):
        _read(tmp_path, data, SeesSize(), max_pages=2)


def test_an_image_is_read_upright_on_white_and_not_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn right to look at"
    turned = SeesSize()
    _read(tmp_path, _saved(_written("x"), "JPEG", exif=exif), turned)
    assert turned.sizes == [(300, 900)]

    clear = Image.new("RGBA", (4, 1), (0, 0, 0, 0))
    clear.putpixel((0, 0), (0, 0, 0, 255))
    pixels: list[bytes] = []

    def keep(picture: Picture) -> str:
        pixels.append(picture.pixels)
        return "x"

    _read(tmp_path, _saved(clear, "PNG"), keep)
    assert pixels == [b"\x00\xff\xff\xff"]

    monkeypatch.setattr(images, "MAX_PIXELS", 100_000)
    halved = SeesSize()
    _read(tmp_path, _saved(_written("x"), "PNG"), halved)
    assert halved.sizes == [(450, 150)]


# Hostile pictures


def test_an_image_of_huge_dimensions_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    data = bytearray(_saved(Image.new("1", (8, 8)), "PNG"))
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    import zlib

    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    with pytest.raises((FileExceedsBounds, CorruptFile)):
        _read(tmp_path, bytes(data), SeesSize())
    large = _saved(Image.new("1", (12_000, 9_000)), "PNG")
    assert len(large) < 30_000
    with pytest.raises(FileExceedsBounds, match="too large"):
        _read(tmp_path, large, SeesSize())


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "GIF", "BMP", "WEBP"])
def test_a_damaged_image_is_corrupt(kind: str, tmp_path: Path) -> None:
    data = _saved(_written("Damaged"), kind)
    for cut in (30, len(data) // 2):
        with pytest.raises(CorruptFile, match="image"):
            _read(tmp_path, data[:cut], SeesSize())


# The program's limits


def test_a_page_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    slow = _program(tmp_path, "exec sleep 600")
    reader = Tesseract(_options(slow, page_timeout_s=0.2), before_page=lambda: None)
    with pytest.raises(FileExceedsBounds, match=r"longer than 0\.2 seconds"):
        reader.read(PICTURE)


def test_a_program_that_breaks_off_is_no_text(tmp_path: Path) -> None:
    broken = _program(tmp_path, "echo half a page; cat > /dev/null; exit 3")
    with pytest.raises(FileExceedsBounds, match="broke off"):
        Tesseract(_options(broken), before_page=lambda: None).read(PICTURE)


def test_the_program_has_limits_of_its_own(tmp_path: Path) -> None:
    tells = _program(tmp_path, "cat > /dev/null; ulimit -t; ulimit -v")
    text = Tesseract(_options(tells, page_timeout_s=7), before_page=lambda: None).read(PICTURE)
    assert text.split() == ["8", str(ocr.MEMORY_BYTES // 1024)]


def test_a_blank_picture_is_not_read_at_all() -> None:
    reader = Tesseract(_options("/nowhere"), before_page=lambda: pytest.fail("it was read"))
    assert reader.read(Picture(width=2, height=1, pixels=b"\xff\xff")) == ""


def _parser(command: str, *, timeout_s: float) -> WorkerParser:
    return WorkerParser(
        workers=1,
        timeout_s=timeout_s,
        memory_bytes=500_000_000,
        max_pages=10,
        ocr=_options(command),
    )


def _image_upload(folder: Path) -> Upload:
    path = folder / "image"
    path.write_bytes(_saved(_written("x"), "PNG"))
    return Upload(path=path, name="a.png")


async def test_a_page_under_ocr_has_its_own_time_beside_the_files(tmp_path: Path) -> None:
    slow = _program(tmp_path, "cat > /dev/null; sleep 4; echo read")
    parser = _parser(slow, timeout_s=3)
    try:
        await parser.warm_up()
        (document,) = (await parser.parse(_image_upload(tmp_path))).documents
        assert document.text == "read"
    finally:
        await parser.close()


async def test_what_a_worker_has_started_ends_with_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    endless = _program(tmp_path, f"echo $$ > {told}; exec sleep 600")
    parser = _parser(endless, timeout_s=60)
    try:
        parsing = asyncio.create_task(parser.parse(_image_upload(tmp_path)))
        pid = int(await asyncio.to_thread(told.read_text))
        parsing.cancel()
        await asyncio.wait([parsing])
        await asyncio.to_thread(_wait_for_the_end, pid)
    finally:
        await parser.close()


def _wait_for_the_end(pid: int) -> None:
    status = Path(f"/proc/{pid}/status")
    for _ in range(1_000_000):
        try:
            if "State:\tZ" in status.read_text(encoding="ascii"):
                return
        except (FileNotFoundError, ProcessLookupError):
            return
    pytest.fail("the program lives on")
