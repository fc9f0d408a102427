"""What the library holds: files, the documents inside them, and the chunks that are retrieved.

Offsets are Unicode code points, 0-based and end-exclusive, always into `Document.text`
exactly as it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool
"""A metadata value: what a client can send in JSON and a filter can compare for equality."""

Metadata: TypeAlias = Mapping[str, Scalar | None]


@dataclass(frozen=True, slots=True)
class Heading:
    """A section heading of a document: where it starts, how deep it is (1 is the top), its text."""

    start: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class InnerFile:
    """A file inside an uploaded one: in an archive or a mailbox, attached to a mail, embedded in
    a document. `path` leads to it from the upload, through every container between, as `a/b.txt`;
    no two files in an upload have the same. `sha256` is the hex digest of its bytes.
    """

    path: str
    media_type: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file inside an upload that could not be read while others could, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One document as a parser found it in a file: a page of a PDF, a sheet, a whole text.

    `page_label` is what the file calls its page, `page_number` counts from 1 whatever it calls it.
    `inner` is the file inside the upload that it was found in, None where that is the upload.
    """

    text: str
    page_label: str | None = None
    headings: tuple[Heading, ...] = ()
    metadata: Metadata = field(default_factory=dict[str, Scalar | None])
    page_number: int | None = None
    inner: InnerFile | None = None


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A file's documents in reading order, its media type, and what the file says of itself.

    `metadata` uses the keys `title`, `author` and `year` where the file states them; it is that
    of the upload itself, not of the files inside it.
    """

    media_type: str
    documents: tuple[ParsedDocument, ...]
    metadata: Metadata = field(default_factory=dict[str, Scalar | None])
    unread: tuple[UnreadFile, ...] = ()


@dataclass(frozen=True, slots=True)
class File:
    """An upload. Its id is new at every ingestion, so it also names the generation.

    `sha256` is the hex digest of the uploaded bytes.
    """

    file_id: str
    tenant: str
    name: str
    sha256: str
    size_bytes: int
    media_type: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Document:
    """A unit of citation: what GET /v1/ingest/list lists. `position` is 0-based within its file.

    `metadata` is what the client sees as `doc_metadata`: file facts, the file's own title and
    author, and whatever the client gave at upload (the client's wins). `inner_file_id` is the id
    of the file inside the upload that it is of, None where that is the upload itself.
    """

    doc_id: str
    file_id: str
    position: int
    text: str
    headings: tuple[Heading, ...]
    metadata: Metadata
    inner_file_id: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document without its text: what lists and search results carry."""

    doc_id: str
    file_id: str
    position: int
    metadata: Metadata
    inner_file_id: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable piece of a document: `Document.text[start:end] == text`.

    `position` is 0-based within the document, so neighbours are position - 1 and position + 1.
    `heading_path` runs from the outermost heading to the nearest one above the chunk's start.
    `context` is what `text` needs to be understood but does not contain, and no citation of it:
    the header row of the table that it continues, word for word; "" where it needs nothing.
    """

    chunk_id: str
    doc_id: str
    position: int
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...] = ()
    context: str = ""

    @property
    def passage(self) -> str:
        """What is embedded and searched by its words: the text with its context before it."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A chunk that answers a query, best first by `score` (higher is better, comparable within
    one result only), with its document and the neighbours that were asked for in reading order.
    """

    chunk: Chunk
    document: DocumentInfo
    score: float
    previous: tuple[Chunk, ...] = ()
    next: tuple[Chunk, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """Which documents may be read. `ids` are those of documents, of files and of files inside
    them: None is all, empty is none.

    `metadata` values must all be equal to the document's.
    """

    ids: frozenset[str] | None = None
    metadata: Metadata = field(default_factory=dict[str, Scalar | None])

    @property
    def allows_nothing(self) -> bool:
        """True where no document can pass, so that nothing need be asked."""
        return self.ids is not None and not self.ids


EVERYTHING = DocumentFilter()
"""The filter of a request that sends none."""
