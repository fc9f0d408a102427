"""A `VectorIndex` in memory, exact cosine plus shared words, with a switch to make it fail; and
what is put into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import NAMESPACE_OID, uuid5

from privategpt.domain.documents import Chunk, DocumentFilter
from privategpt.domain.errors import Unavailable
from privategpt.domain.library import Hit, IndexedChunk, VectorQuery
from privategpt.domain.ports import Vector


class FakeVectorIndex:
    """Keeps chunks in a dictionary. While `failure` is set, every call raises it."""

    def __init__(self) -> None:
        self.chunks: dict[str, IndexedChunk] = {}
        self.expected: list[str] = []
        self.queries: list[VectorQuery] = []
        self.failure: Unavailable | None = None
        self.closed = False

    async def upsert(self, chunks: Sequence[IndexedChunk]) -> None:
        """Store or overwrite."""
        self._fail_if_told()
        self.chunks.update({chunk.chunk.chunk_id: chunk for chunk in chunks})

    async def count(self, file_id: str | None = None) -> int:
        """How many chunks of that file are stored; without one, of all files."""
        self._fail_if_told()
        counted = self.chunks.values()
        return sum(file_id is None or file_id in _file_ids(chunk) for chunk in counted)

    async def delete_file(self, file_id: str) -> None:
        """Remove all chunks of a file."""
        self._fail_if_told()
        self.chunks = {k: c for k, c in self.chunks.items() if file_id not in _file_ids(c)}

    async def delete_document(self, doc_id: str) -> None:
        """Remove all chunks of a document."""
        self._fail_if_told()
        self.chunks = {k: c for k, c in self.chunks.items() if c.chunk.doc_id != doc_id}

    async def search(self, query: VectorQuery) -> list[Hit]:
        """Every allowed chunk, scored by cosine plus the share of the query's words it has."""
        self._fail_if_told()
        self.queries.append(query)
        hits = [
            Hit(chunk_id=chunk.chunk.chunk_id, score=_score(chunk, query))
            for chunk in self.chunks.values()
            if _allows(query, chunk)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))[: query.limit]

    def expect(self, text: str) -> None:
        """Remember that it was said."""
        self.expected.append(text)

    async def chunk_counts(self) -> Mapping[str, int]:
        """For every document id, how many."""
        self._fail_if_told()
        return Counter(chunk.chunk.doc_id for chunk in self.chunks.values())

    async def clear(self) -> None:
        """Remove everything."""
        self._fail_if_told()
        self.chunks = {}

    async def check(self) -> None:
        """Raise `failure` if there is one."""
        self._fail_if_told()

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def _fail_if_told(self) -> None:
        if self.failure is not None:
            raise self.failure


def passage(number: int, vector: Vector) -> IndexedChunk:
    """A chunk of the one file of the tenant "alpha", with an id such as the product's."""
    text = f"passage {number}"
    chunk_id = str(uuid5(NAMESPACE_OID, text))
    return IndexedChunk(
        chunk=Chunk(chunk_id, "doc", number, 0, len(text), text),
        tenant="alpha",
        file_id="file",
        vector=vector,
    )


def _file_ids(chunk: IndexedChunk) -> set[str | None]:
    return {chunk.file_id, chunk.inner_file_id}


def _score(chunk: IndexedChunk, query: VectorQuery) -> float:
    asked = set(query.text.casefold().split())
    shared = asked & set(chunk.chunk.passage.casefold().split())
    cosine = sum(a * b for a, b in zip(chunk.vector, query.vector, strict=True))
    return cosine + len(shared) / max(len(asked), 1)


def _allows(query: VectorQuery, chunk: IndexedChunk) -> bool:
    ids = {chunk.chunk.doc_id, *_file_ids(chunk)}
    return chunk.tenant == query.tenant and not ids & query.hidden and _passes(query.filter, chunk)


def _passes(wanted: DocumentFilter, chunk: IndexedChunk) -> bool:
    if wanted.ids is not None and not wanted.ids & {chunk.chunk.doc_id, *_file_ids(chunk)}:
        return False
    for key, value in wanted.metadata.items():
        held = chunk.metadata.get(key)
        if held != value or isinstance(held, bool) != isinstance(value, bool):
            return False
    return True
