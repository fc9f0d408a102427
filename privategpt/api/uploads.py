"""Multipart forms, read from the stream: files go to disk as they arrive, never into memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException

from privategpt.api.filenames import decoded_name, extended_name
from privategpt.domain.errors import InvalidRequest, PayloadTooLarge, Unavailable

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_NOT_STORED = "The server cannot store the upload now"

MAX_FILES = 100
MAX_FIELDS = 100
MAX_FIELD_BYTES = 1_000_000
WRITE_BYTES = 1_000_000
"""Bytes gathered before a thread writes them: a hop for every network packet would cost more."""


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A file part on disk; `name` is as the client sent it."""

    path: Path
    name: str
    media_type: str | None


@dataclass(frozen=True, slots=True)
class ReceivedForm:
    """A form: its files by field name, in order, and its other fields (the last of a name)."""

    files: tuple[tuple[str, ReceivedFile], ...]
    fields: Mapping[str, str]


@asynccontextmanager
async def received_form(
    request: Request, *, folder: Path | None, max_bytes: int
) -> AsyncGenerator[ReceivedForm]:
    """Read the whole form; its files are there as long as the context is.

    Raises `InvalidRequest` for a form that is broken or cut short, `PayloadTooLarge` where its
    files have more than `max_bytes` together, and `Unavailable` where the disk does not take them.
    """
    boundary = _boundary(request)
    async with AsyncExitStack() as stack:
        try:
            path = await stack.enter_async_context(_temporary_folder(folder))
            reader = _FormReader(path, max_bytes=max_bytes)
            form = await _read(request, boundary, reader)
        except OSError as error:
            raise Unavailable(_NOT_STORED) from error
        yield form


@asynccontextmanager
async def stored_text(text: str, *, folder: Path | None) -> AsyncGenerator[Path]:
    """A text as a file in UTF-8, there as long as the context is. Raises `Unavailable`."""
    async with stored_bytes(text.encode("utf-8"), folder=folder) as path:
        yield path


@asynccontextmanager
async def stored_bytes(data: bytes, *, folder: Path | None) -> AsyncGenerator[Path]:
    """Bytes as a file, there as long as the context is. Raises `Unavailable`."""
    async with AsyncExitStack() as stack:
        try:
            path = await stack.enter_async_context(_temporary_folder(folder)) / "content"
            await asyncio.to_thread(path.write_bytes, data)
        except OSError as error:
            raise Unavailable(_NOT_STORED) from error
        yield path


@asynccontextmanager
async def _temporary_folder(folder: Path | None) -> AsyncGenerator[Path]:
    made = await asyncio.to_thread(
        TemporaryDirectory[str], dir=folder, prefix="upload-", ignore_cleanup_errors=True
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, made.cleanup)
        yield Path(made.name)


def _boundary(request: Request) -> bytes:
    media_type, options = parse_options_header(request.headers.get("content-type"))
    if media_type != b"multipart/form-data":
        raise HTTPException(415, "Send the file as multipart/form-data, in the field 'file'")
    if b"boundary" not in options:
        raise InvalidRequest("The Content-Type of the form names no boundary", param="file")
    return options[b"boundary"]


async def _read(request: Request, boundary: bytes, reader: _FormReader) -> ReceivedForm:
    try:
        parser = MultipartParser(boundary, reader.callbacks())
        async with aclosing(request.stream()) as stream:
            async for data in stream:
                parser.write(data)
                if reader.unwritten_bytes >= WRITE_BYTES:
                    await asyncio.to_thread(reader.write_out)
        parser.finalize()
        await asyncio.to_thread(reader.write_out)
    except FormParserError as error:
        raise InvalidRequest("The form is not valid multipart/form-data", param="file") from error
    finally:
        reader.close()
    return reader.form()


@dataclass(slots=True)
class _Part:
    """The part that is being read."""

    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    name: str = ""
    value: bytearray = field(default_factory=bytearray)
    file: BinaryIO | None = None


class _FormReader:
    """What the parser calls; nothing here touches the disk but `write_out` and opening."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._file_bytes = 0
        self._part = _Part()
        self._header_name = b""
        self._header_value = b""
        self._files: list[tuple[str, ReceivedFile]] = []
        self._fields: dict[str, str] = {}
        self._open: list[BinaryIO] = []
        self._unwritten: list[tuple[BinaryIO, bytes]] = []
        self._ended = False
        self.unwritten_bytes = 0

    def callbacks(self) -> MultipartCallbacks:
        """For the parser."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._name_piece,
            "on_header_value": self._value_piece,
            "on_header_end": self._header,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def write_out(self) -> None:
        """Write what has been gathered. Blocks."""
        for file, data in self._unwritten:
            file.write(data)
        self._unwritten.clear()
        self.unwritten_bytes = 0

    def close(self) -> None:
        """Close the files."""
        for file in self._open:
            file.close()

    def form(self) -> ReceivedForm:
        """The form, once all of it has been read. Raises `InvalidRequest` if it was cut short."""
        if not self._ended:
            raise InvalidRequest("The form ends before its last boundary", param="file")
        return ReceivedForm(files=tuple(self._files), fields=self._fields)

    def _begin(self) -> None:
        self._part = _Part()

    def _name_piece(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _value_piece(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _header(self) -> None:
        self._part.headers[self._header_name.lower()] = self._header_value
        self._header_name = self._header_value = b""

    def _headers_finished(self) -> None:
        part = self._part
        disposition = part.headers.get(b"content-disposition", b"")
        _, options = parse_options_header(disposition)
        part.name = decoded_name(options.get(b"name", b""))
        file_name = extended_name(disposition)
        if file_name is not None or b"filename" in options:
            self._open_file(file_name or decoded_name(options.get(b"filename", b"")))
        elif len(self._fields) >= MAX_FIELDS:
            raise PayloadTooLarge(f"A form may have at most {MAX_FIELDS} fields")

    def _open_file(self, name: str) -> None:
        if len(self._files) >= MAX_FILES:
            raise PayloadTooLarge(f"A form may have at most {MAX_FILES} files")
        path = self._folder / str(len(self._files))
        file = path.open("wb")
        self._open.append(file)
        self._part.file = file
        label = self._part.headers.get(b"content-type")
        media_type = decoded_name(label) if label else None
        self._files.append((self._part.name, ReceivedFile(path, name, media_type)))

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        if part.file is not None:
            self._file_bytes += end - start
            if self._file_bytes > self._max_bytes:
                raise PayloadTooLarge(f"Files may have at most {self._max_bytes} bytes together")
            self._unwritten.append((part.file, data[start:end]))
            self.unwritten_bytes += end - start
            return
        if len(part.value) + end - start > MAX_FIELD_BYTES:
            raise PayloadTooLarge(f"A form field may have at most {MAX_FIELD_BYTES} bytes")
        part.value += data[start:end]

    def _end(self) -> None:
        if self._part.file is None:
            self._fields[self._part.name] = decoded_name(bytes(self._part.value))

    def _finish(self) -> None:
        self._ended = True
