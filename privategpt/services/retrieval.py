"""Finds the stored chunks that answer a question.

The index proposes, the state store disposes: hits are read back from the store, which knows what
is ready at that moment, so a deleted text is never returned, whatever the index still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privategpt.domain.documents import EVERYTHING, DocumentFilter, RetrievedChunk
from privategpt.domain.errors import ContextLengthExceeded, InvalidRequest
from privategpt.domain.library import ChunkHit, Hit, StateStore, VectorIndex, VectorQuery
from privategpt.domain.observing import UNOBSERVED, Observer
from privategpt.domain.ports import EmbeddingModel, Tokenizer, Vector
from privategpt.services.reranking import Reranking

ROUNDS = 7
"""Searches per question at most. A second one is needed only where the first found what is not
ready: then what is hidden is known and left out. From the third on each is twice as deep as the
one before, for documents that were deleted meanwhile, or an index that holds what no row knows."""

MAX_CHARACTERS_PER_TOKEN = 100
"""More than this times the window is refused uncounted: tokenizing it would hold a core up."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Chunks, best first, and the tokens that embedding the question cost."""

    chunks: tuple[RetrievedChunk, ...]
    tokens: int


NOTHING = Retrieved(chunks=(), tokens=0)


class Retrieval:
    """Searches one tenant's documents by meaning and by words."""

    def __init__(
        self,
        *,
        embedding: EmbeddingModel,
        index: VectorIndex,
        state: StateStore,
        reranking: Reranking | None = None,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self._observer = observer
        self._reranking = reranking
        self._embedding = embedding
        self._index = index
        self._state = state

    async def search(
        self,
        text: str,
        *,
        tenant: str,
        limit: int,
        filter: DocumentFilter = EVERYTHING,  # noqa: A002 - the word of the domain and the wire
        neighbours: int = 0,
    ) -> Retrieved:
        """At most `limit` chunks, each with up to `neighbours` chunks before and after it.

        Raises `InvalidRequest` where there is no text, `ContextLengthExceeded` where the
        embedding model could not read all of it (see `fit_query`), `Unavailable` where the
        library cannot be searched: an empty result always means that nothing was found.
        """
        _refuse_unreadable(text, self._embedding.tokenizer)
        if filter.allows_nothing:
            return NOTHING
        with self._observer.retrieving():
            self._index.expect(text)
            embeddings = await self._embedding.embed_query(text)
            query = _Query(text=text, vector=embeddings.vectors[0], tenant=tenant, filter=filter)
            found = await self._best(query, limit=limit)
            chunks = [
                await self._with_neighbours(hit, score, tenant=tenant, reach=neighbours)
                for hit, score in found
            ]
        return Retrieved(chunks=tuple(chunks), tokens=embeddings.tokens)

    def fit_query(self, text: str) -> str:
        """Cut a question from a conversation to what `search` accepts; see `fit_to_window`."""
        return fit_to_window(text, self._embedding.tokenizer)

    async def _best(self, query: _Query, *, limit: int) -> list[tuple[ChunkHit, float]]:
        """In the index's order, or in the reranker's of more than are wanted."""
        if self._reranking is None:
            return await self._search_ready(query, limit=limit)
        reach = max(limit, self._reranking.candidates)
        found = await self._search_ready(query, limit=reach)
        if not found:
            return []
        texts = [hit.chunk.passage for hit, _ in found]
        ranking = await self._reranking.rank(query.text, texts, limit=limit)
        return [(found[one.index][0], one.score) for one in ranking.texts]

    async def _search_ready(self, query: _Query, *, limit: int) -> list[tuple[ChunkHit, float]]:
        hidden: frozenset[str] = frozenset()
        ready: list[tuple[ChunkHit, float]] = []
        for number in range(ROUNDS):
            depth = limit << max(0, number - 1)
            hits = await self._index.search(query.to(depth, hidden))
            ready = await self._hydrate(hits, tenant=query.tenant)
            if len(ready) >= limit or len(ready) == len(hits) or len(hits) < depth:
                break
            hidden = await self._state.hidden(query.tenant)
        return ready[:limit]

    async def _hydrate(self, hits: Sequence[Hit], *, tenant: str) -> list[tuple[ChunkHit, float]]:
        if not hits:
            return []
        known = await self._state.chunks(tenant, [hit.chunk_id for hit in hits])
        return [(known[hit.chunk_id], hit.score) for hit in hits if hit.chunk_id in known]

    async def _with_neighbours(
        self, hit: ChunkHit, score: float, *, tenant: str, reach: int
    ) -> RetrievedChunk:
        if not reach:
            return RetrievedChunk(chunk=hit.chunk, document=hit.document, score=score)
        before, after = await self._state.neighbours(tenant, hit.chunk, reach=reach)
        return RetrievedChunk(
            chunk=hit.chunk, document=hit.document, score=score, previous=before, next=after
        )


@dataclass(frozen=True, slots=True)
class _Query:
    text: str
    vector: Vector
    tenant: str
    filter: DocumentFilter

    def to(self, limit: int, hidden: frozenset[str]) -> VectorQuery:
        return VectorQuery(
            text=self.text,
            vector=self.vector,
            tenant=self.tenant,
            limit=limit,
            filter=self.filter,
            hidden=hidden,
        )


def _refuse_unreadable(text: str, tokenizer: Tokenizer) -> None:
    if not text.strip():
        raise InvalidRequest("The text to search for is empty", param="text")
    window = tokenizer.max_tokens
    if text.isascii() and len(text) < window:
        return  # no tokenizer makes more of ASCII than a token a character, and one in front
    if len(text) > window * MAX_CHARACTERS_PER_TOKEN:
        raise ContextLengthExceeded(
            f"The text to search for has {len(text)} characters; the embedding model reads at "
            f"most {window} tokens",
            param="text",
        )
    tokens = tokenizer.count(text)
    if tokens > window:
        raise ContextLengthExceeded(
            f"The text to search for has {tokens} tokens; the embedding model reads at most "
            f"{window}",
            param="text",
        )


def fit_to_window(text: str, tokenizer: Tokenizer) -> str:
    """Cut `text` to what one embedding reads: its first quarter window and its last three.

    The question stands after a pasted text far more often than before it, but it may. White
    space around the text goes.
    """
    window = tokenizer.max_tokens
    text = _cut(text.strip(), window * MAX_CHARACTERS_PER_TOKEN)
    ends = tokenizer.ends(text)
    if len(ends) <= window:
        return text
    head = text[: ends[window // 4 - 1]].rstrip() if window >= 4 else ""
    tail = window - window // 4
    while tail > 0:
        fitted = f"{head}\n{text[ends[-tail - 1] :].lstrip()}".lstrip()
        excess = tokenizer.count(fitted) - window
        if excess <= 0:
            return fitted
        tail -= excess  # a word that the cut split can be more tokens than it was
    return head


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = longest // 4
    return f"{text[:head]}\n{text[head + 1 - longest :]}"
