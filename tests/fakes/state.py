"""A state store in memory; it passes the same contract suite as the real ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from privategpt.domain.documents import Chunk, Document, DocumentInfo, File
from privategpt.domain.errors import Conflict, NotFound
from privategpt.domain.library import ChunkHit, Deletion, IndexableChunk, StoredFile
from tests.fakes.leases import FakeLeaseStore


@dataclass(slots=True)
class _Entry:
    file: File
    owner: str | None = None
    state: str = "pending"
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    deleting: set[str] = field(default_factory=set[str])
    chunks: dict[str, Chunk] = field(default_factory=dict[str, Chunk])

    @property
    def visible(self) -> list[Document]:
        """In file order; none unless the file is ready."""
        if self.state != "ready":
            return []
        found = [d for d in self.documents.values() if d.doc_id not in self.deleting]
        return sorted(found, key=lambda document: document.position)

    @property
    def stored(self) -> StoredFile:
        return StoredFile(file=self.file, documents=tuple(map(_info, self.visible)))

    def chunks_of(self, doc_id: str) -> list[Chunk]:
        found = [c for c in self.chunks.values() if c.doc_id == doc_id]
        return sorted(found, key=lambda chunk: chunk.position)


class FakeStateStore:
    """A `StateStore` that forgets everything with the process. It has no other faults."""

    def __init__(self) -> None:
        self.leases = FakeLeaseStore()
        self._entries: dict[str, _Entry] = {}
        self._fingerprint: str | None = None

    async def begin_file(self, file: File, *, owner: str | None = None) -> None:
        if file.file_id in self._entries:
            raise Conflict(f"There is a file {file.file_id!r} already")
        self._entries[file.file_id] = _Entry(file=file, owner=owner)

    async def commit_file(
        self,
        file: File,
        *,
        documents: Sequence[Document],
        chunks: Iterable[Chunk],
        replaces: bool = False,
    ) -> StoredFile:
        entry = self._entries.get(file.file_id)
        if entry is None or entry.state != "pending" or entry.file.tenant != file.tenant:
            raise Conflict(f"The ingestion of {file.name!r} was given up")
        same = await self.find_file(file.tenant, name=file.name, sha256=file.sha256)
        if same is not None and not replaces:
            entry.state = "deleting"
            return same
        # Read before anything changes: what raises in the middle must change nothing.
        by_id = {chunk.chunk_id: chunk for chunk in chunks}
        if replaces:
            for other in self._of(file.tenant):
                if other.state == "ready" and other.file.name == file.name:
                    other.state = "deleting"
        entry.file, entry.state, entry.chunks = file, "ready", by_id
        entry.documents = {document.doc_id: document for document in documents}
        return entry.stored

    async def find_file(self, tenant: str, *, name: str, sha256: str) -> StoredFile | None:
        for entry in self._of(tenant):
            ready = entry.state == "ready"
            if ready and (entry.file.name, entry.file.sha256) == (name, sha256):
                return entry.stored
        return None

    async def hidden(self, tenant: str) -> frozenset[str]:
        entries = list(self._of(tenant))
        file_ids = {entry.file.file_id for entry in entries if entry.state != "ready"}
        return frozenset(file_ids.union(*(entry.deleting for entry in entries)))

    async def list_documents(
        self, tenant: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        infos = [_info(document) for entry in self._of(tenant) for document in entry.visible]
        if after is not None:
            doc_ids = [info.doc_id for info in infos]
            if after not in doc_ids:
                raise _not_found()
            infos = infos[doc_ids.index(after) + 1 :]
        return infos[:limit]

    async def document(self, tenant: str, doc_id: str) -> Document:
        for entry in self._of(tenant):
            for document in entry.visible:
                if document.doc_id == doc_id:
                    return document
        raise _not_found()

    async def chunks(self, tenant: str, chunk_ids: Sequence[str]) -> dict[str, ChunkHit]:
        wanted = set(chunk_ids)
        return {
            chunk.chunk_id: ChunkHit(chunk=chunk, document=_info(document))
            for entry in self._of(tenant)
            for document in entry.visible
            for chunk in entry.chunks_of(document.doc_id)
            if chunk.chunk_id in wanted
        }

    async def neighbours(
        self, tenant: str, chunk: Chunk, *, reach: int
    ) -> tuple[tuple[Chunk, ...], tuple[Chunk, ...]]:
        around = [
            other
            for entry in self._of(tenant)
            for document in entry.visible
            if document.doc_id == chunk.doc_id
            for other in entry.chunks_of(document.doc_id)
            if abs(other.position - chunk.position) <= reach
        ]
        return (
            tuple(other for other in around if other.position < chunk.position),
            tuple(other for other in around if other.position > chunk.position),
        )

    async def begin_delete(self, tenant: str, item_id: str) -> Deletion:
        for entry in self._of(tenant):
            doc_ids = [document.doc_id for document in entry.visible]
            file_id = entry.file.file_id
            if doc_ids == [item_id] or (entry.state == "ready" and item_id == file_id):
                entry.state = "deleting"
                return Deletion(file_id=file_id)
            if item_id in doc_ids:
                entry.deleting.add(item_id)
                return Deletion(file_id=file_id, doc_id=item_id)
            inside = {d.doc_id for d in entry.visible if d.inner_file_id == item_id}
            if inside and len(inside) == len(doc_ids):
                entry.state = "deleting"
                return Deletion(file_id=file_id)
            if inside:
                entry.deleting |= inside
                return Deletion(file_id=file_id, inner_file_id=item_id)
        raise _not_found()

    async def abandon(self, file_id: str) -> bool:
        entry = self._entries.get(file_id)
        if entry is not None and entry.state == "pending":
            entry.state = "deleting"
        return entry is None or entry.state != "ready"

    async def forget(self, deletion: Deletion) -> None:
        entry = self._entries.get(deletion.file_id)
        if entry is None:
            return
        if deletion.doc_id is None and deletion.inner_file_id is None:
            if entry.state != "ready":
                del self._entries[deletion.file_id]
            return
        inner = deletion.inner_file_id
        gone = {
            doc_id
            for doc_id in entry.deleting
            if doc_id == deletion.doc_id
            or (inner is not None and entry.documents[doc_id].inner_file_id == inner)
        }
        entry.deleting -= gone
        entry.documents = {k: d for k, d in entry.documents.items() if k not in gone}
        entry.chunks = {k: c for k, c in entry.chunks.items() if c.doc_id not in gone}

    async def give_up(self, *, at: datetime) -> int:
        given_up = [
            entry
            for entry in self._entries.values()
            if entry.state == "pending" and not self.leases.holds(entry.owner, at=at)
        ]
        for entry in given_up:
            entry.state = "deleting"
        return len(given_up)

    async def abandoned(self, *, pending: bool) -> list[Deletion]:
        found: list[Deletion] = []
        for file_id, entry in self._entries.items():
            if entry.state == "deleting" or (pending and entry.state == "pending"):
                found.append(Deletion(file_id=file_id))
            elif entry.state == "ready":
                found += [Deletion(file_id=file_id, doc_id=doc_id) for doc_id in entry.deleting]
        return found

    async def chunks_for_reindex(self) -> AsyncGenerator[list[IndexableChunk]]:
        chunks = [
            IndexableChunk(
                chunk=chunk,
                tenant=entry.file.tenant,
                file_id=entry.file.file_id,
                metadata=document.metadata,
                inner_file_id=document.inner_file_id,
            )
            for entry in self._entries.values()
            for document in entry.visible
            for chunk in entry.chunks_of(document.doc_id)
        ]
        remaining = iter(chunks)
        while batch := list(islice(remaining, 512)):
            yield batch

    async def chunk_totals(self) -> Mapping[str, int]:
        return {
            document.doc_id: len(entry.chunks_of(document.doc_id))
            for entry in self._entries.values()
            for document in entry.visible
        }

    async def chunks_of_ends(self) -> Mapping[str, int]:
        ready = [entry for entry in self._entries.values() if entry.state == "ready"]
        return {
            entry.file.file_id: sum(len(entry.chunks_of(info.doc_id)) for info in entry.visible)
            for entry in (ready[:1] + ready[-1:])
        }

    async def embedding_fingerprint(self) -> str | None:
        return self._fingerprint

    async def set_embedding_fingerprint(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint

    async def check(self) -> None:
        """It always answers."""

    async def close(self) -> None:
        """It holds nothing."""

    def _of(self, tenant: str) -> Iterator[_Entry]:
        return (entry for entry in self._entries.values() if entry.file.tenant == tenant)


def _info(document: Document) -> DocumentInfo:
    return DocumentInfo(
        doc_id=document.doc_id,
        file_id=document.file_id,
        position=document.position,
        metadata=document.metadata,
        inner_file_id=document.inner_file_id,
    )


def _not_found() -> NotFound:
    return NotFound("There is nothing with that id")
