"""What passes between the server and a parser worker, as bytes on a pipe.

JSON for what is small, raw UTF-8 for texts, and no pickle: a worker reads hostile files with
native code, so what comes back from it is data and can be nothing else.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from privategpt.domain import errors
from privategpt.domain.documents import (
    Heading,
    InnerFile,
    ParsedDocument,
    ParsedFile,
    Scalar,
    UnreadFile,
)
from privategpt.domain.errors import PrivateGptError
from privategpt.domain.ports import Upload

PREFIX = struct.Struct(">IQ")
"""Ahead of every frame: the bytes of its header (JSON) and of its text (UTF-8)."""

_ERRORS: dict[str, type[PrivateGptError]] = {
    kind.__name__: kind
    for kind in (
        errors.EmptyFile,
        errors.NoTextFound,
        errors.EncryptedFile,
        errors.CorruptFile,
        errors.FileExceedsBounds,
        errors.UnsupportedFileType,
    )
}


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    header: dict[str, Any]
    text: str = ""

    def encode(self) -> bytes:
        """The frame as it goes over the pipe."""
        header, text = json.dumps(self.header).encode(), self.text.encode()
        return PREFIX.pack(len(header), len(text)) + header + text


READY = Frame({"ready": True})
"""What a worker says once it can take a job."""

BEGUN = Frame({"begun": True})
"""The first frame of every answer: from here on, what becomes of the worker is the file's doing."""

OCR_PAGE = Frame({"ocr_page": True})
"""A page is about to be read by OCR, which takes its own time."""


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next frame, or None where the other side has gone."""
    prefix = stream.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    header_bytes, text_bytes = PREFIX.unpack(prefix)
    header, text = stream.read(header_bytes), stream.read(text_bytes)
    return decode_frame(header, text)


def decode_frame(header: bytes, text: bytes) -> Frame:
    """The frame of these two parts."""
    return Frame(header=cast("dict[str, Any]", json.loads(header)), text=text.decode())


def frame_of_upload(upload: Upload) -> Frame:
    """A job for the worker."""
    return Frame(
        {
            "path": str(upload.path),
            "name": upload.name,
            "media_type": upload.media_type,
            "password": upload.password,
        }
    )


def upload_of_frame(frame: Frame) -> Upload:
    """The job that `frame_of_upload` wrote."""
    job = frame.header
    return Upload(
        path=Path(job["path"]),
        name=job["name"],
        media_type=job["media_type"],
        password=job["password"],
    )


def frames_of_file(parsed: ParsedFile) -> Iterator[Frame]:
    """One frame per document, then one that ends the file."""
    for document in parsed.documents:
        header = {
            "page_label": document.page_label,
            "headings": [[h.start, h.level, h.title] for h in document.headings],
            "metadata": dict(document.metadata),
            "page_number": document.page_number,
            "inner": None if document.inner is None else asdict(document.inner),
        }
        yield Frame(header, document.text)
    yield Frame(
        {
            "media_type": parsed.media_type,
            "metadata": dict(parsed.metadata),
            "unread": [asdict(unread) for unread in parsed.unread],
        }
    )


def document_of_frame(frame: Frame) -> ParsedDocument:
    """A document that `frames_of_file` wrote."""
    header = frame.header
    return ParsedDocument(
        text=frame.text,
        page_label=header["page_label"],
        headings=tuple(Heading(start, level, title) for start, level, title in header["headings"]),
        metadata=cast("dict[str, Scalar | None]", header["metadata"]),
        page_number=header["page_number"],
        inner=None if header["inner"] is None else InnerFile(**header["inner"]),
    )


def file_of_frames(documents: Sequence[ParsedDocument], last: Frame) -> ParsedFile:
    """The file of these documents that `frames_of_file` ended with `last`."""
    header = last.header
    return ParsedFile(
        media_type=header["media_type"],
        documents=tuple(documents),
        metadata=cast("dict[str, Scalar | None]", header["metadata"]),
        unread=tuple(UnreadFile(**unread) for unread in header["unread"]),
    )


def frame_of_error(error: PrivateGptError) -> Frame:
    """Why the file cannot be read."""
    kind = next(base for base in type(error).__mro__ if base.__name__ in _ERRORS)
    return Frame({"error": kind.__name__, "message": error.message})


def error_of_frame(frame: Frame) -> PrivateGptError:
    """The error that `frame_of_error` wrote."""
    kind = _ERRORS.get(frame.header["error"], errors.CorruptFile)
    return kind(frame.header["message"])
