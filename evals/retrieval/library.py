"""A collection as a library of the product: its own store, index and retrieval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from evals.retrieval.sets import EvaluationSet
from privategpt.backends.state.opening import open_state_store
from privategpt.backends.vectors.edge import EdgeIndex
from privategpt.backends.vectors.fusion import Fuse
from privategpt.backends.vectors.shard import ShardFolder, open_shard
from privategpt.backends.vectors.words import WordEncoder
from privategpt.chunking.identity import chunk_id, document_id
from privategpt.chunking.splitter import split
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.domain.documents import Chunk, Document, File, ParsedDocument
from privategpt.domain.library import IndexedChunk, StateStore
from privategpt.domain.ports import EmbeddingModel
from privategpt.services.retrieval import Retrieval

Cut: TypeAlias = Literal["whole", "chunks"]
"""Whole passages, of which the model reads what its window holds, or our own chunks of them."""

CANDIDATES = 100
EMBEDDED_AT_ONCE = 256

_FILE = File(
    file_id="collection",
    tenant=DEFAULT_TENANT,
    name="collection.jsonl",
    sha256="0" * 64,
    size_bytes=1,
    media_type="application/jsonl",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


@dataclass(frozen=True, slots=True)
class Library:
    """An indexed collection; it can be searched with any fusion, and any weights of words'
    company. `names` has, by chunk id, the collection's own id of its document."""

    shard: ShardFolder
    state: StateStore
    embedding: EmbeddingModel
    names: dict[str, str]

    def retrieval(self, fuse: Fuse, *, words: WordEncoder | None = None) -> Retrieval:
        """The product's search with this fusion, and words encoded as in the product or so."""
        index = EdgeIndex(
            shard=self.shard,
            words=words or WordEncoder(),
            candidates=CANDIDATES,
            tenants={DEFAULT_TENANT},
            fuse=fuse,
        )
        return Retrieval(embedding=self.embedding, index=index, state=self.state)


async def open_library(
    collection: EvaluationSet,
    folder: Path,
    *,
    cut: Cut,
    embedding: EmbeddingModel,
    stack: AsyncExitStack,
    progress: Callable[[float], None],
) -> Library:
    """Put the collection into an empty `folder`; `progress` is told the share that is done."""
    documents = _documents(collection)
    chunks = [chunk for one in documents for chunk in _chunks(one, embedding, cut=cut)]
    state = await open_state_store(folder)
    stack.push_async_callback(state.close)
    await state.begin_file(_FILE)
    await state.commit_file(_FILE, documents=documents, chunks=chunks)
    shard = open_shard(folder / "vectors", dimensions=embedding.dimensions)
    stack.callback(shard.close)
    await _index(shard, chunks, embedding, progress=progress)
    own_ids = dict(zip((one.doc_id for one in documents), collection.corpus, strict=True))
    names = {chunk.chunk_id: own_ids[chunk.doc_id] for chunk in chunks}
    return Library(shard=shard, state=state, embedding=embedding, names=names)


def _documents(collection: EvaluationSet) -> list[Document]:
    return [
        Document(
            doc_id=document_id(_FILE.file_id, position),
            file_id=_FILE.file_id,
            position=position,
            text=passage.whole,
            headings=(),
            metadata={},
        )
        for position, passage in enumerate(collection.corpus.values())
    ]


def _chunks(document: Document, embedding: EmbeddingModel, *, cut: Cut) -> list[Chunk]:
    text, doc_id = document.text, document.doc_id
    if not text:
        return []
    if cut == "whole":
        return [Chunk(chunk_id(doc_id, 0), doc_id, 0, 0, len(text), text)]
    return split(ParsedDocument(text=text), doc_id=doc_id, tokenizer=embedding.tokenizer)


async def _index(
    shard: ShardFolder,
    chunks: Sequence[Chunk],
    embedding: EmbeddingModel,
    *,
    progress: Callable[[float], None],
) -> None:
    index = EdgeIndex(shard=shard, words=WordEncoder(), candidates=CANDIDATES, tenants=())
    # Batches of like length: padding would otherwise cost most of the time.
    by_length = sorted(chunks, key=lambda chunk: len(chunk.text))
    for start in range(0, len(by_length), EMBEDDED_AT_ONCE):
        batch = by_length[start : start + EMBEDDED_AT_ONCE]
        embedded = await embedding.embed_passages([chunk.text for chunk in batch])
        await index.upsert(
            [
                IndexedChunk(
                    chunk=chunk, tenant=DEFAULT_TENANT, file_id=_FILE.file_id, vector=vector
                )
                for chunk, vector in zip(batch, embedded.vectors, strict=True)
            ]
        )
        progress((start + len(batch)) / len(by_length))
