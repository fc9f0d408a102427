"""A library of many chunks, made quickly: past the parser and the model, through the ports."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Protocol

from privategpt.chunking.identity import chunk_id, document_id
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.domain.documents import Chunk, Document, File
from privategpt.domain.library import IndexedChunk, StateStore, VectorIndex
from privategpt.domain.ports import Vector

CHUNKS_PER_DOCUMENT = 10
DOCUMENTS_PER_FILE = 10
CHUNKS_PER_FILE = CHUNKS_PER_DOCUMENT * DOCUMENTS_PER_FILE
UPSERT_BATCH = 256


class Texts(Protocol):
    """Where the contents come from."""

    def text(self, words: int) -> str:
        """That many words."""
        ...

    def vector(self, dimensions: int) -> Vector:
        """A random unit vector."""
        ...


async def fill(
    index: VectorIndex,
    state: StateStore,
    texts: Texts,
    *,
    points: int,
    words_per_chunk: int,
    dimensions: int,
) -> float:
    """Store files of `CHUNKS_PER_FILE` chunks; the seconds that the index alone took."""
    seconds = 0.0
    waiting: list[IndexedChunk] = []
    files = points // CHUNKS_PER_FILE
    for number in range(files):
        file, documents, chunks = a_file(f"file-{number}", texts, words_per_chunk=words_per_chunk)
        await state.begin_file(file)
        await state.commit_file(file, documents=documents, chunks=chunks)
        waiting += _indexed(file, chunks, texts, dimensions=dimensions)
        if len(waiting) >= UPSERT_BATCH or number == files - 1:
            started = time.perf_counter()
            await index.upsert(waiting)
            seconds += time.perf_counter() - started
            waiting = []
    return seconds


def _indexed(
    file: File, chunks: list[Chunk], texts: Texts, *, dimensions: int
) -> Iterator[IndexedChunk]:
    for chunk in chunks:
        yield IndexedChunk(
            chunk=chunk,
            tenant=DEFAULT_TENANT,
            file_id=file.file_id,
            vector=texts.vector(dimensions),
            metadata={"file_name": file.name, "page_label": str(chunk.position)},
        )


def a_file(
    file_id: str, texts: Texts, *, words_per_chunk: int
) -> tuple[File, list[Document], list[Chunk]]:
    """A file with its documents and chunks."""
    file = File(
        file_id=file_id,
        tenant=DEFAULT_TENANT,
        name=f"{file_id}.txt",
        sha256=file_id,
        size_bytes=1,
        media_type="text/plain",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    documents: list[Document] = []
    chunks: list[Chunk] = []
    for position in range(DOCUMENTS_PER_FILE):
        doc_id = document_id(file_id, position)
        parts = [texts.text(words_per_chunk) for _ in range(CHUNKS_PER_DOCUMENT)]
        start = 0
        for number, part in enumerate(parts):
            end = start + len(part)
            chunks.append(Chunk(chunk_id(doc_id, number), doc_id, number, start, end, part))
            start = end + 1
        metadata = {"file_id": file_id, "file_name": file.name, "page_label": str(position + 1)}
        documents.append(Document(doc_id, file_id, position, "\n".join(parts), (), metadata))
    return file, documents, chunks
