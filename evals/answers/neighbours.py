"""Sources with the chunks around them, to see whether these make better answers."""

from __future__ import annotations

from collections.abc import Sequence

from privategpt.domain.answers import Source
from privategpt.domain.documents import RetrievedChunk
from privategpt.domain.library import StateStore
from privategpt.services.sources import number_sources


class WithNeighbours:
    """Stands in for `number_sources`: each chunk comes with `reach` before and after it.

    The budget of the prompt stays as it is, so neighbours take the place of what ranks lower.
    """

    def __init__(self, reach: int) -> None:
        self._reach = reach

    async def __call__(
        self, retrieved: Sequence[RetrievedChunk], *, tenant: str, state: StateStore, after: int = 0
    ) -> tuple[Source, ...]:
        """The numbered sources."""
        wider: dict[str, RetrievedChunk] = {}
        for hit in retrieved:
            before, behind = await state.neighbours(tenant, hit.chunk, reach=self._reach)
            for chunk in (hit.chunk, *before, *behind):
                found = RetrievedChunk(chunk=chunk, document=hit.document, score=hit.score)
                wider.setdefault(chunk.chunk_id, found)
        return await number_sources(tuple(wider.values()), tenant=tenant, state=state, after=after)
