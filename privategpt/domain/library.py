"""The library: what is stored of documents, what is found again, and the ports to both stores.

Every coroutine may raise `Unavailable` where the store does not serve: "found nothing" is a
result, "could not look" is an error. Implementations never block the event loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from privategpt.domain.documents import (
    EVERYTHING,
    Chunk,
    Document,
    DocumentFilter,
    DocumentInfo,
    File,
    Metadata,
    Scalar,
    UnreadFile,
)
from privategpt.domain.ports import Vector


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """What the vector index keeps of a chunk. The text is read for its words, not stored."""

    chunk: Chunk
    tenant: str
    file_id: str
    vector: Vector
    metadata: Metadata = field(default_factory=dict[str, Scalar | None])
    inner_file_id: str | None = None


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A hybrid search. `hidden` are file and document ids that must not be found (not yet or no
    longer ready); `limit` is the number of hits wanted, at least 1.
    """

    text: str
    vector: Vector
    tenant: str
    limit: int
    filter: DocumentFilter = EVERYTHING
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found; `score` is the fused score (higher is better)."""

    chunk_id: str
    score: float


class VectorIndex(Protocol):
    """Finds chunks by meaning and by words. It can always be rebuilt from the state store.

    A file inside an upload is a file by itself: wherever a file's id is taken, that of the upload
    means all of it, and that of the file inside its own chunks alone.
    """

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None:
        """Store or overwrite; durable when it returns."""
        ...

    async def count(self, file_id: str | None = None) -> int:
        """How many chunks of that file are stored; without one, of all files."""
        ...

    async def delete_file(self, file_id: str) -> None:
        """Remove all chunks of a file; it is no error if there are none."""
        ...

    async def delete_document(self, doc_id: str) -> None:
        """Remove all chunks of a document; it is no error if there are none."""
        ...

    def expect(self, text: str) -> None:
        """A search for `text` comes as soon as its vector is there; what needs none of it is done
        now, before the embedding has emptied the processor's caches."""
        ...

    async def search(self, query: VectorQuery) -> list[Hit]:
        """At most `query.limit` hits, best first."""
        ...

    async def chunk_counts(self) -> Mapping[str, int]:
        """For every document id that has vectors, how many; for `check`."""
        ...

    async def clear(self) -> None:
        """Remove everything and take up the present embedding dimensions; for `reindex`."""
        ...

    async def check(self) -> None:
        """Return if a search would be answered now; raise `Unavailable` otherwise."""
        ...

    async def close(self) -> None:
        """Release the folder or the connection."""
        ...


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with its documents (in order), as a client sees it in lists.

    `unread` are the files inside it that could not be read; known only to who has just ingested it.
    """

    file: File
    documents: tuple[DocumentInfo, ...]
    unread: tuple[UnreadFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkHit:
    """A chunk hydrated from the state store, with its document."""

    chunk: Chunk
    document: DocumentInfo


class StateStore(Protocol):
    """The source of truth: files, documents with their text, chunks, and the index's fingerprint.

    A file is `pending` from `begin_file` until `commit_file`, then `ready`, and `deleting` from
    `begin_delete` until it is gone. Only ready files and documents are ever returned. What takes
    a tenant sees that tenant alone.
    """

    async def begin_file(self, file: File, *, owner: str | None = None) -> None:
        """Note, durably, that an ingestion has begun, and in which process (`LeaseStore`)."""
        ...

    async def commit_file(
        self,
        file: File,
        *,
        documents: Sequence[Document],
        chunks: Iterable[Chunk],
        replaces: bool = False,
    ) -> StoredFile:
        """Store everything and flip the file to ready in one transaction.

        If a ready file of that name has the same bytes and `replaces` is false, nothing is
        stored, the pending file flips to deleting, and the one that is there is returned.
        With `replaces`, every other ready file of that name flips to deleting.
        """
        ...

    async def find_file(self, tenant: str, *, name: str, sha256: str) -> StoredFile | None:
        """The ready file of that name with those bytes."""
        ...

    async def hidden(self, tenant: str) -> frozenset[str]:
        """Ids of pending and deleting files and of deleting documents."""
        ...

    async def list_documents(
        self, tenant: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        """Documents of ready files, oldest file first, then in file order.

        `after` is a document id: the page starts behind it. Raises `NotFound` if it is unknown.
        """
        ...

    async def document(self, tenant: str, doc_id: str) -> Document:
        """Raises `NotFound`."""
        ...

    async def chunks(self, tenant: str, chunk_ids: Sequence[str]) -> dict[str, ChunkHit]:
        """The chunks of ready files among `chunk_ids`, by id; others are absent."""
        ...

    async def neighbours(
        self, tenant: str, chunk: Chunk, *, reach: int
    ) -> tuple[tuple[Chunk, ...], tuple[Chunk, ...]]:
        """Up to `reach` chunks before and after in the same document, in reading order."""
        ...

    async def begin_delete(self, tenant: str, item_id: str) -> Deletion:
        """Hide a file, a file inside one or a document, each by its id, durably.

        A file whose last document goes, goes itself. Raises `NotFound`.
        """
        ...

    async def abandon(self, file_id: str) -> bool:
        """Hide, durably, a file whose ingestion came to nothing.

        False where it is ready after all: a commit can succeed and its answer be lost.
        """
        ...

    async def forget(self, deletion: Deletion) -> None:
        """Remove the rows of what `begin_delete` or an abandoned ingestion left hidden."""
        ...

    async def give_up(self, *, at: datetime) -> int:
        """Flip to deleting every pending file whose owner holds no lease then; how many.

        From here on its ingestion cannot commit, if it should still be running after all.
        """
        ...

    async def abandoned(self, *, pending: bool) -> list[Deletion]:
        """What deleting rows of all tenants must still be removed; for the sweeper.

        With `pending`, pending files too: only where no ingestion can be running.
        """
        ...

    def chunks_for_reindex(self) -> AsyncGenerator[list[IndexableChunk]]:
        """All chunks of ready files of all tenants, in batches, file by file."""
        ...

    async def chunk_totals(self) -> Mapping[str, int]:
        """For every document id of a ready file, how many chunks; for `check`."""
        ...

    async def chunks_of_ends(self) -> Mapping[str, int]:
        """Of all tenants' ready files the oldest and the newest, by id: how many chunks."""
        ...

    async def embedding_fingerprint(self) -> str | None:
        """What the index was made with, or None where there is no index yet."""
        ...

    async def set_embedding_fingerprint(self, fingerprint: str) -> None:
        """Record what the index is made with."""
        ...

    async def check(self) -> None:
        """Return if the store answers now; raise `Unavailable` otherwise."""
        ...

    async def close(self) -> None:
        """Release connections and the folder."""
        ...


@dataclass(frozen=True, slots=True)
class Deletion:
    """What is to be removed from the index and then from the store: one file; or, of a file that
    stays, one document (`doc_id` set) or those of a file inside it (`inner_file_id` set).
    """

    file_id: str
    doc_id: str | None = None
    inner_file_id: str | None = None


@dataclass(frozen=True, slots=True)
class IndexableChunk:
    """A stored chunk with what the index needs to know of its file and document."""

    chunk: Chunk
    tenant: str
    file_id: str
    metadata: Metadata
    inner_file_id: str | None = None
