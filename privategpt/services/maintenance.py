"""What an operator does to a library that is not being served: prove it, rebuild its index."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from privategpt.domain.errors import EmbeddingModelChanged, StartRefused
from privategpt.domain.library import IndexedChunk, StateStore, VectorIndex
from privategpt.domain.ports import EmbeddingModel


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant of reliability.md that does not hold, and for which id."""

    invariant: str
    item_id: str
    message: str


async def violations(*, state: StateStore, index: VectorIndex) -> list[Violation]:
    """Check I1 (every listed document has all its chunks indexed) and I2 (every vector belongs
    to a ready document). An empty list is a sound library.
    """
    expected = await state.chunk_totals()
    indexed = await index.chunk_counts()
    found = [
        Violation("I1", doc_id, f"{indexed.get(doc_id, 0)} of {total} chunks are indexed")
        for doc_id, total in expected.items()
        if indexed.get(doc_id, 0) != total
    ]
    found += [
        Violation("I2", doc_id, f"{count} vectors belong to no ready document")
        for doc_id, count in indexed.items()
        if doc_id not in expected
    ]
    return found


async def refuse_changed_embedding(*, state: StateStore, embedding: EmbeddingModel) -> None:
    """Raise `EmbeddingModelChanged` if the index was made by another model; note it if new."""
    stored = await state.embedding_fingerprint()
    if stored is None:
        await state.set_embedding_fingerprint(embedding.fingerprint)
    elif stored != embedding.fingerprint:
        raise EmbeddingModelChanged(
            f"The index was made with embedding model {stored!r}, but {embedding.fingerprint!r} "
            "is configured. Configure the first again, or run `privategpt reindex` to rebuild "
            "the index from the stored text."
        )


async def refuse_strange_index(*, state: StateStore, index: VectorIndex, alone: bool) -> None:
    """Raise `StartRefused` if the index is not that of the stored documents: a search would find
    nothing and not say why.

    It is looked at by the oldest and the newest file, so whatever the size of the library this
    takes no time. `alone` says that no other process is ingesting or deleting now.
    """
    stored = await state.chunks_of_ends()
    lacking = [file_id for file_id, chunks in stored.items() if await index.count(file_id) < chunks]
    # What another process has deleted meanwhile is no longer stored either.
    if lacking and not {*await state.chunks_of_ends()}.isdisjoint(lacking):
        raise StartRefused(
            "The vector index lacks documents that are stored. Bring back the index that belongs "
            "to them, or run `privategpt reindex` to make it anew from the stored text."
        )
    if alone and not stored and await index.count():
        raise StartRefused(
            "The vector index has documents, and the database has none. Bring back the database; "
            "or, where the index is another library's, choose another server.data_dir or "
            "vectors.collection; or empty the index by `privategpt reindex`."
        )


async def reindex(
    *,
    state: StateStore,
    index: VectorIndex,
    embedding: EmbeddingModel,
    progress: Callable[[int], None],
) -> int:
    """Rebuild the whole index from stored text with `embedding`; the number of chunks.

    `progress` is told how many chunks were added. The fingerprint is forgotten first and
    noted last, so that an interrupted run is seen at the next start.
    """
    await state.set_embedding_fingerprint("an interrupted reindex")
    await index.clear()
    total = 0
    async with aclosing(state.chunks_for_reindex()) as batches:
        async for batch in batches:
            embedded = await embedding.embed_passages([item.chunk.passage for item in batch])
            await index.upsert(
                [
                    IndexedChunk(
                        chunk=item.chunk,
                        tenant=item.tenant,
                        file_id=item.file_id,
                        vector=vector,
                        metadata=item.metadata,
                        inner_file_id=item.inner_file_id,
                    )
                    for item, vector in zip(batch, embedded.vectors, strict=True)
                ]
            )
            total += len(batch)
            progress(len(batch))
    await state.set_embedding_fingerprint(embedding.fingerprint)
    return total
