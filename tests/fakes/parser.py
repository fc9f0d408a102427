"""A parser for tests of what uses one: UTF-8 text in, a document per form-feed page out.

A file separator begins a file inside, the line behind it being its path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from hashlib import sha256

from privategpt.domain.documents import InnerFile, ParsedDocument, ParsedFile, UnreadFile
from privategpt.domain.errors import CorruptFile, EmptyFile, PrivateGptError
from privategpt.domain.ports import Upload

FILE_SEPARATOR = "\x1c"


class FakeParser:
    """Implements `Parser`. `refusals` maps a file name to what its parsing raises, `unread` one to
    the files inside that cannot be read; while `gate` is not set, parsing waits. `entered` tells
    that it was asked.
    """

    def __init__(self, *, refusals: Mapping[str, PrivateGptError] | None = None) -> None:
        self.refusals = dict(refusals or {})
        self.unread: dict[str, tuple[UnreadFile, ...]] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.parsed: list[str] = []
        self.cancelled: list[str] = []
        self.is_closed = False

    async def parse(self, upload: Upload) -> ParsedFile:
        """The file's pages, numbered from 1."""
        self.entered.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(upload.name)
            raise
        if refusal := self.refusals.get(upload.name):
            raise refusal
        try:
            text = upload.path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptFile("The file is not UTF-8") from error
        if not text.strip():
            raise EmptyFile("The file is empty")
        self.parsed.append(upload.name)
        own, *inside = text.replace("\r\n", "\n").split(FILE_SEPARATOR)
        documents = list(_pages(own, None))
        for each in inside:
            path, _, content = each.partition("\n")
            data = content.encode()
            inner = InnerFile(path, "text/plain", len(data), sha256(data).hexdigest())
            documents += _pages(content, inner)
        unread = self.unread.get(upload.name, ())
        return ParsedFile(media_type="text/plain", documents=tuple(documents), unread=unread)

    async def close(self) -> None:
        """Note that it was closed."""
        self.is_closed = True


def _pages(text: str, inner: InnerFile | None) -> Iterator[ParsedDocument]:
    pages = text.split("\f")
    for number, page in enumerate(pages, start=1):
        if page.strip():
            label = None if len(pages) == 1 else str(number)
            yield ParsedDocument(text=page, page_label=label, inner=inner)
