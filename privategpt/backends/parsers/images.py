"""Pictures of text: PNG, JPEG, TIFF (every page of it), GIF, BMP and WebP, through OCR."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

from PIL import Image, ImageOps, ImageSequence

from privategpt.backends.parsers.bounds import Bounds, require
from privategpt.backends.parsers.kinds import Kind
from privategpt.backends.parsers.ocr import MAX_PIXELS, Picture
from privategpt.backends.parsers.pdf_text import page_texts
from privategpt.domain.documents import ParsedDocument, ParsedFile
from privategpt.domain.errors import CorruptFile, NoTextFound, UnsupportedFileType

_MAX_IMAGE_PIXELS = 80_000_000
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError)


def read_image(data: bytes, kind: Kind, bounds: Bounds) -> ParsedFile:
    """The text on an image; a page of a TIFF is a document of its own.

    Raises `UnsupportedFileType` where there is no OCR, `NoTextFound` where it finds nothing.
    """
    ocr = bounds.ocr
    if ocr is None:
        raise UnsupportedFileType(
            "The file is an image: it has no text layer, and reading it needs OCR"
        )
    pages = page_texts([ocr(picture) for picture in _pictures(data, kind, bounds)])
    documents = tuple(
        ParsedDocument(
            text=text,
            page_label=str(number) if len(pages) > 1 else None,
            page_number=number,
            metadata={"ocr": True},
        )
        for number, text in enumerate(pages, start=1)
        if text
    )
    if not documents:
        raise NoTextFound("OCR found no text on the image")
    return ParsedFile(media_type=kind.value, documents=documents)


def _pictures(data: bytes, kind: Kind, bounds: Bounds) -> Iterator[Picture]:
    try:
        # The one decoder that the signature calls for: none of the others sees the bytes.
        with Image.open(io.BytesIO(data), formats=[kind.name]) as image:
            for number, frame in enumerate(ImageSequence.Iterator(image)):
                require(number < bounds.max_pages, f"it has over {bounds.max_pages:,} pages")
                require(frame.width * frame.height <= _MAX_IMAGE_PIXELS, "its image is too large")
                yield _grey(frame)
                if kind is not Kind.TIFF:
                    return  # an animation shows one thing
    except _DAMAGE as error:
        raise CorruptFile("The image is damaged or cut off") from error


def _grey(image: Image.Image) -> Picture:
    """As it is to be looked at: upright, on white, and no larger than OCR reads well."""
    image.draft("L", (image.width, image.height))  # a JPEG need not be decoded in colour
    if image.has_transparency_data:
        shown = image.convert("RGBA")
        white = Image.new("RGBA", shown.size, "white")
        grey = Image.alpha_composite(white, shown).convert("L")
    else:
        grey = image.convert("L")
    ImageOps.exif_transpose(grey, in_place=True)
    if grey.width * grey.height > MAX_PIXELS:
        grey = grey.reduce(2)
    return Picture(width=grey.width, height=grey.height, pixels=grey.tobytes())
