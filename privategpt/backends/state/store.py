"""The state store over SQL; `domain.library.StateStore` says what each method promises."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from privategpt.backends.state import statements as sql
from privategpt.backends.state import transactions
from privategpt.backends.state.database import Database
from privategpt.backends.state.errors import can_be_an_id, not_found
from privategpt.backends.state.rows import (
    CHUNK_COLUMNS,
    INFO_COLUMNS,
    read_chunk,
    read_document,
    read_info,
)
from privategpt.domain.documents import Chunk, Document, DocumentInfo, File
from privategpt.domain.library import ChunkHit, Deletion, IndexableChunk, StoredFile

# Rows become objects on the event loop, so long lists are read in pieces.
DOCUMENTS_AT_ONCE = 500
CHUNKS_AT_ONCE = 512

EMBEDDING_FINGERPRINT = "embedding_fingerprint"

CHUNK_WIDTH = len(CHUNK_COLUMNS)
INFO_WIDTH = len(INFO_COLUMNS)


class SqlStateStore:
    """A `StateStore` over SQLite or PostgreSQL."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def begin_file(self, file: File, *, owner: str | None = None) -> None:
        await self._database.write(partial(transactions.begin, file=file, owner=owner))

    async def commit_file(
        self,
        file: File,
        *,
        documents: Sequence[Document],
        chunks: Iterable[Chunk],
        replaces: bool = False,
    ) -> StoredFile:
        return await self._database.write(
            partial(
                transactions.commit,
                file=file,
                documents=documents,
                chunks=chunks,
                replaces=replaces,
            )
        )

    async def find_file(self, tenant: str, *, name: str, sha256: str) -> StoredFile | None:
        if not can_be_an_id(name):
            return None
        wanted = {"tenant": tenant, "name": name, "sha256": sha256}
        return transactions.stored_file(await self._database.rows(sql.FILE_OF_CONTENT, wanted))

    async def hidden(self, tenant: str) -> frozenset[str]:
        rows = await self._database.rows(sql.HIDDEN_IDS, {"tenant": tenant})
        return frozenset(hidden for (hidden,) in rows)

    async def list_documents(
        self, tenant: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        sequence, position = (0, -1) if after is None else await self._place(tenant, after)
        found: list[DocumentInfo] = []
        while limit is None or len(found) < limit:
            size = DOCUMENTS_AT_ONCE if limit is None else limit - len(found)
            place = {"sequence": sequence, "position": position, "tenant": tenant}
            place["size"] = size = min(size, DOCUMENTS_AT_ONCE)
            rows = await self._database.rows(sql.DOCUMENTS_BEHIND, place)
            found += [read_info(row[:INFO_WIDTH]) for row in rows]
            if len(rows) < size:
                break
            sequence, position = rows[-1].sequence, rows[-1].position
        return found

    async def _place(self, tenant: str, doc_id: str) -> tuple[int, int]:
        if not can_be_an_id(doc_id):
            raise not_found()
        rows = await self._database.rows(
            sql.PLACE_OF_DOCUMENT, {"tenant": tenant, "by_doc_id": doc_id}
        )
        if not rows:
            raise not_found()
        return rows[0].sequence, rows[0].position

    async def document(self, tenant: str, doc_id: str) -> Document:
        if not can_be_an_id(doc_id):
            raise not_found()
        rows = await self._database.rows(sql.DOCUMENT, {"tenant": tenant, "by_doc_id": doc_id})
        if not rows:
            raise not_found()
        return read_document(rows[0])

    async def chunks(self, tenant: str, chunk_ids: Sequence[str]) -> dict[str, ChunkHit]:
        ids = [chunk_id for chunk_id in chunk_ids if can_be_an_id(chunk_id)]
        if not ids:
            return {}
        # In statements for a power of two: a dozen do for all.
        size = 1 << (len(ids) - 1).bit_length()
        named = {f"id_{number}": ids[number % len(ids)] for number in range(size)}
        rows = await self._database.values(sql.chunks_of(size), {"tenant": tenant, **named})
        return {
            row[0]: ChunkHit(
                chunk=read_chunk(row[:CHUNK_WIDTH]), document=read_info(row[CHUNK_WIDTH:])
            )
            for row in rows
        }

    async def neighbours(
        self, tenant: str, chunk: Chunk, *, reach: int
    ) -> tuple[tuple[Chunk, ...], tuple[Chunk, ...]]:
        if reach < 1:
            return (), ()
        span = {"first": chunk.position - reach, "last": chunk.position + reach}
        place = {"tenant": tenant, "by_doc_id": chunk.doc_id} | span
        around = [read_chunk(row) for row in await self._database.rows(sql.CHUNKS_BETWEEN, place)]
        return (
            tuple(other for other in around if other.position < chunk.position),
            tuple(other for other in around if other.position > chunk.position),
        )

    async def begin_delete(self, tenant: str, item_id: str) -> Deletion:
        if not can_be_an_id(item_id):
            raise not_found()
        return await self._database.write(
            partial(transactions.hide, tenant=tenant, item_id=item_id)
        )

    async def abandon(self, file_id: str) -> bool:
        return await self._database.write(partial(transactions.abandon, file_id=file_id))

    async def forget(self, deletion: Deletion) -> None:
        await self._database.write(partial(transactions.forget, deletion=deletion))

    async def give_up(self, *, at: datetime) -> int:
        return await self._database.write(partial(transactions.give_up, at=at))

    async def abandoned(self, *, pending: bool) -> list[Deletion]:
        files = sql.HIDDEN_FILES if pending else sql.DELETING_FILES
        file_ids = await self._database.rows(files)
        documents = await self._database.rows(sql.DELETING_DOCUMENTS)
        return [Deletion(file_id=file_id) for (file_id,) in file_ids] + [
            Deletion(file_id=row.file_id, doc_id=row.doc_id) for row in documents
        ]

    async def chunks_for_reindex(self) -> AsyncGenerator[list[IndexableChunk]]:
        place = {"sequence": 0, "document_position": -1, "position": -1, "size": CHUNKS_AT_ONCE}
        while True:
            rows = await self._database.rows(sql.CHUNKS_BEHIND, place)
            if not rows:
                return
            yield [
                IndexableChunk(
                    chunk=read_chunk(row[:CHUNK_WIDTH]),
                    tenant=row.tenant,
                    file_id=row.file_id,
                    metadata=row.metadata,
                    inner_file_id=row.inner_file_id,
                )
                for row in rows
            ]
            last = rows[-1]
            place |= {
                "sequence": last.sequence,
                "document_position": last.document_position,
                "position": last.position,
            }

    async def chunk_totals(self) -> Mapping[str, int]:
        rows = await self._database.rows(sql.CHUNK_TOTALS)
        return {row.doc_id: row.total for row in rows}

    async def chunks_of_ends(self) -> Mapping[str, int]:
        rows = await self._database.rows(sql.CHUNKS_OF_ENDS)
        return {row.file_id: row.total for row in rows}

    async def embedding_fingerprint(self) -> str | None:
        rows = await self._database.rows(sql.META_VALUE, {"key": EMBEDDING_FINGERPRINT})
        return rows[0][0] if rows else None

    async def set_embedding_fingerprint(self, fingerprint: str) -> None:
        await self._database.write(
            partial(transactions.set_meta, key=EMBEDDING_FINGERPRINT, value=fingerprint)
        )

    async def check(self) -> None:
        await self.embedding_fingerprint()

    async def close(self) -> None:
        await self._database.close()
