"""Reads files that come with a question: they are answered from, and nothing of them is kept."""

from __future__ import annotations

from dataclasses import dataclass

from privategpt.domain.ports import Parser, Upload

PAGE_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file's whole text, without the files attached to it, and where each page begins in it:
    (offset, page number from 1).

    A page without text has no entry.
    """

    text: str
    pages: tuple[tuple[int, int], ...]


class AttachmentReader:
    """Reads attached files with the parser that ingestion uses."""

    def __init__(self, *, parser: Parser) -> None:
        self._parser = parser

    async def read(self, upload: Upload) -> ReadFile:
        """Raises `UnreadableFile` and `UnsupportedFileType`, as the parser does."""
        parsed = await self._parser.parse(upload)
        text = ""
        pages: list[tuple[int, int]] = []
        own = [document for document in parsed.documents if document.inner is None]
        for position, document in enumerate(own or parsed.documents, start=1):
            text += PAGE_BREAK if text else ""
            pages.append((len(text), document.page_number or position))
            text += document.text
        return ReadFile(text=text, pages=tuple(pages))
