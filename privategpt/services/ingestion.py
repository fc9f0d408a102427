"""Files in, documents out: parse, split, embed, index, and only then show.

The ingestion transaction: a pending row, then vectors, then their count, then one flip to ready.
Whatever stops in between leaves a pending or deleting row, which `sweep` removes.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias
from weakref import WeakValueDictionary

from privategpt.chunking.identity import document_id, inner_file_id
from privategpt.chunking.splitter import split
from privategpt.domain.documents import (
    Chunk,
    Document,
    DocumentInfo,
    File,
    InnerFile,
    Metadata,
    ParsedFile,
    Scalar,
)
from privategpt.domain.errors import EngineFailed, InvalidRequest, Unavailable
from privategpt.domain.library import Deletion, IndexedChunk, StateStore, StoredFile, VectorIndex
from privategpt.domain.observing import UNOBSERVED, Observer
from privategpt.domain.ports import EmbeddingModel, Parser, Upload
from privategpt.services.embedding_ahead import embedded
from privategpt.services.listening import UNHEARD, Listener, ProgressOf

RESERVED_METADATA = frozenset(
    {
        "file_id",
        "file_name",
        "file_type",
        "file_size",
        "content_hash",
        "ingested_at",
        "page_label",
        "container",
        "container_id",
    }
)
"""Keys of `doc_metadata` that this server writes; a client may not send them."""

FILES_AT_ONCE = 4
"""Files in work at the same time where nobody says otherwise; the others wait for their turn."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """A file to ingest. `metadata` is the client's and wins over what the file says of itself."""

    upload: Upload
    tenant: str
    metadata: Metadata = field(default_factory=dict[str, Scalar | None])
    replaces: bool = False


Room: TypeAlias = Callable[[str, int], AbstractAsyncContextManager[None]]
"""Holds room for so many bytes of a tenant's while they are ingested. Raises `QuotaExceeded`."""


@asynccontextmanager
async def endless_room(tenant: str, size_bytes: int) -> AsyncGenerator[None]:  # noqa: ARG001
    """Room for every file."""
    yield


class Ingestion:
    """Ingests, lists and deletes files, one tenant at a time.

    `owner` is the process's name in the leases: see `domain.jobs.LeaseStore`. At most `at_once`
    files are in work, which bounds memory; while one is read, others are embedded.
    """

    def __init__(
        self,
        *,
        parser: Parser,
        embedding: EmbeddingModel,
        index: VectorIndex,
        state: StateStore,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        room: Room = endless_room,
        observer: Observer = UNOBSERVED,
        owner: str | None = None,
        at_once: int = FILES_AT_ONCE,
    ) -> None:
        self._owner = owner
        self._places = asyncio.Semaphore(at_once)
        self._observer = observer
        self._room = room
        self._parser = parser
        self._embedding = embedding
        self._index = index
        self._state = state
        self._now = now
        self._new_id = new_id
        # An entry lives as long as somebody holds its lock or waits for it.
        self._in_flight: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def find(self, request: IngestRequest) -> StoredFile | None:
        """The file that is there already, with the same bytes under the same name.

        Raises `InvalidRequest` as `ingest` does.
        """
        _refuse_reserved(request.metadata)
        upload = request.upload
        sha256, _ = await asyncio.to_thread(_fingerprint, upload.path)
        return await self._state.find_file(request.tenant, name=upload.name, sha256=sha256)

    async def ingest(
        self, request: IngestRequest, *, listener: Listener = UNHEARD, has_room: bool = False
    ) -> StoredFile:
        """Ingest one file and return it with its documents, searchable from now on.

        The same bytes under the same name are ingested once: the second time returns the first
        unless `replaces`. With `has_room` the caller holds the room. Cancelling it leaves nothing
        behind. Raises `UnreadableFile`, `UnsupportedFileType`, `QuotaExceeded`, `Unavailable`,
        and `InvalidRequest` for metadata keys of `RESERVED_METADATA`.
        """
        _refuse_reserved(request.metadata)
        upload = request.upload
        sha256, size_bytes = await asyncio.to_thread(_fingerprint, upload.path)
        key = (request.tenant, upload.name, sha256)
        lock = self._in_flight.setdefault(key, asyncio.Lock())
        async with lock:
            if not request.replaces:
                known = await self._state.find_file(request.tenant, name=upload.name, sha256=sha256)
                if known is not None:
                    return known
            file = File(
                file_id=self._new_id(),
                tenant=request.tenant,
                name=upload.name,
                sha256=sha256,
                size_bytes=size_bytes,
                media_type=upload.media_type or "application/octet-stream",
                created_at=self._now(),
            )
            with self._observer.ingesting():
                room = endless_room if has_room else self._room
                async with room(request.tenant, size_bytes), self._places:
                    return await self._ingest_new(file, request, listener)

    async def _ingest_new(
        self, file: File, request: IngestRequest, listener: Listener
    ) -> StoredFile:
        parsed = await self._parser.parse(request.upload)
        file = replace(file, media_type=parsed.media_type)
        documents = _documents(file, parsed, request.metadata)
        chunks = await asyncio.to_thread(self._split, parsed, file.file_id)
        await self._state.begin_file(file, owner=self._owner)
        kept = False
        try:
            await self._index_chunks(file, documents, chunks, listener)
            stored = await self._state.commit_file(
                file, documents=documents, chunks=chunks, replaces=request.replaces
            )
            kept = stored.file.file_id == file.file_id
            stored = replace(stored, unread=parsed.unread)
        finally:
            if not kept:
                await asyncio.shield(self._abandon(file.file_id))
        if kept:
            listener.stored(stored)
            self._observer.indexed(len(chunks))
        if request.replaces:
            await self._remove(await self._state.abandoned(pending=False))
        _log.info(
            "ingested file %s: %d documents, %d chunks",
            stored.file.file_id,
            len(documents),
            len(chunks),
        )
        if parsed.unread:
            _log.warning(
                "file %s: %d files in it could not be read; the first: %s",
                stored.file.file_id,
                len(parsed.unread),
                parsed.unread[0].reason,
            )
        return stored

    def _split(self, parsed: ParsedFile, file_id: str) -> list[Chunk]:
        return [
            chunk
            for position, part in enumerate(parsed.documents)
            for chunk in split(
                part,
                doc_id=document_id(file_id, position),
                tokenizer=self._embedding.tokenizer,
            )
        ]

    async def _index_chunks(
        self,
        file: File,
        documents: Sequence[Document],
        chunks: Sequence[Chunk],
        listener: Listener,
    ) -> None:
        progress = ProgressOf(documents, chunks)
        listener.advanced(progress.after(0))
        of = {document.doc_id: document for document in documents}
        done = 0
        async with aclosing(embedded(chunks, embedding=self._embedding)) as batches:
            async for batch in batches:
                await self._index.upsert(
                    [
                        IndexedChunk(
                            chunk=chunk,
                            tenant=file.tenant,
                            file_id=file.file_id,
                            vector=vector,
                            metadata=of[chunk.doc_id].metadata,
                            inner_file_id=of[chunk.doc_id].inner_file_id,
                        )
                        for chunk, vector in batch
                    ]
                )
                done += len(batch)
                listener.advanced(progress.after(done))
        stored = await self._index.count(file.file_id)
        if stored != len(chunks):
            raise EngineFailed(
                f"The vector index holds {stored} of the {len(chunks)} chunks of this file"
            )

    async def list_documents(
        self, tenant: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        """Documents in order of ingestion; `after` is the last document id of the page before.

        Raises `NotFound` for an unknown `after`.
        """
        return await self._state.list_documents(tenant, limit=limit, after=after)

    async def document(self, tenant: str, doc_id: str) -> Document:
        """One document with its text. Raises `NotFound`."""
        return await self._state.document(tenant, doc_id)

    async def delete(self, tenant: str, item_id: str) -> None:
        """Delete a document by its id, or a file, also one inside another, by the file's.

        With an upload goes all that is inside it. It is hidden, durably, before anything is
        removed. Raises `NotFound`.
        """
        await self._remove([await self._state.begin_delete(tenant, item_id)])

    async def sweep(self) -> int:
        """Remove what no living process works on; the number of files and documents.

        Without a lease that is everything that is pending: only before the first ingestion.
        """
        await self._state.give_up(at=self._now())
        left = await self._state.abandoned(pending=False)
        await self._remove(left)
        return len(left)

    async def _abandon(self, file_id: str) -> None:
        """Remove what came to nothing, once the state says so: where a commit's answer was lost,
        the file may be ready, and its vectors must stay."""
        try:
            hidden = await self._state.abandon(file_id)
        except Unavailable as error:
            _log.warning("file %s stays until the next sweep: %s", file_id, error.message)
            return
        if hidden:
            await self._remove([Deletion(file_id)])

    async def _remove(self, deletions: Sequence[Deletion]) -> None:
        """Remove what is hidden; what cannot be removed now stays hidden, for the next sweep."""
        for deletion in deletions:
            try:
                if deletion.doc_id is not None:
                    await self._index.delete_document(deletion.doc_id)
                else:
                    await self._index.delete_file(deletion.inner_file_id or deletion.file_id)
                await self._state.forget(deletion)
            except Unavailable as error:
                _log.warning(
                    "file %s stays hidden until the next sweep: %s",
                    deletion.file_id,
                    error.message,
                )


def _fingerprint(path: Path) -> tuple[str, int]:
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return digest, path.stat().st_size


def _refuse_reserved(metadata: Metadata) -> None:
    reserved = sorted(RESERVED_METADATA.intersection(metadata))
    if reserved:
        raise InvalidRequest(
            f"Metadata keys {reserved!r} are written by this server; choose other names",
            param="metadata",
        )


def _facts(file: File) -> Metadata:
    return {
        "file_id": file.file_id,
        "file_name": file.name,
        "file_type": file.media_type,
        "file_size": file.size_bytes,
        "content_hash": f"sha256:{file.sha256}",
        "ingested_at": file.created_at.isoformat(),
    }


def _inner_facts(file: File, inner: InnerFile) -> Metadata:
    return {
        "file_id": inner_file_id(file.file_id, inner.path),
        "file_name": f"{file.name}/{inner.path}",
        "file_type": inner.media_type,
        "file_size": inner.size_bytes,
        "content_hash": f"sha256:{inner.sha256}",
        "ingested_at": file.created_at.isoformat(),
        "container": file.name,
        "container_id": file.file_id,
    }


def _documents(file: File, parsed: ParsedFile, metadata: Metadata) -> list[Document]:
    documents: list[Document] = []
    for position, part in enumerate(parsed.documents):
        stated = part.metadata if part.inner else {**parsed.metadata, **part.metadata}
        facts = _inner_facts(file, part.inner) if part.inner else _facts(file)
        own = {**stated, **metadata, **facts}
        if part.page_label is not None:
            own["page_label"] = part.page_label
        documents.append(
            Document(
                doc_id=document_id(file.file_id, position),
                file_id=file.file_id,
                position=position,
                text=part.text,
                headings=part.headings,
                metadata={key: value for key, value in own.items() if value is not None},
                inner_file_id=inner_file_id(file.file_id, part.inner.path) if part.inner else None,
            )
        )
    return documents
