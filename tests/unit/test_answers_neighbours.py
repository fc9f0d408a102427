"""Neighbours in the answers eval are the chunks beside what was found, each once."""

from __future__ import annotations

from typing import cast

from evals.answers.neighbours import WithNeighbours
from privategpt.domain.documents import Chunk, DocumentInfo, RetrievedChunk
from privategpt.domain.library import StateStore

TEXTS = ("Alpha.", "Beta.", "Gamma.", "Delta.", "Epsilon.", "Zeta.")
TEXT = " ".join(TEXTS)
ABOUT = DocumentInfo(doc_id="d", file_id="f", position=0, metadata={"title": "T"})


def chunk(position: int) -> Chunk:
    """A chunk of the only document."""
    start = TEXT.index(TEXTS[position])
    end = start + len(TEXTS[position])
    return Chunk(f"c{position}", "d", position, start, end, TEXTS[position])


class OneDocument:
    """What `number_sources` asks of a state store."""

    async def neighbours(
        self, tenant: str, chunk_: Chunk, *, reach: int
    ) -> tuple[tuple[Chunk, ...], tuple[Chunk, ...]]:
        """Those within `reach`."""
        at = chunk_.position
        before = range(max(0, at - reach), at)
        behind = range(at + 1, min(len(TEXTS), at + 1 + reach))
        return tuple(map(chunk, before)), tuple(map(chunk, behind))

    async def document(self, tenant: str, doc_id: str) -> DocumentText:
        """The whole text."""
        return DocumentText()


class DocumentText:
    """A document as far as it is read."""

    text = TEXT


async def sources(reach: int, *positions: int) -> list[str]:
    """The texts of the sources for chunks found at these positions, best first."""
    found = [RetrievedChunk(chunk=chunk(at), document=ABOUT, score=1.0) for at in positions]
    state = cast("StateStore", OneDocument())
    return [source.text for source in await WithNeighbours(reach)(found, tenant="t", state=state)]


async def test_without_reach_nothing_is_added() -> None:
    assert await sources(0, 4, 0) == ["Epsilon.", "Alpha."]


async def test_each_chunk_comes_with_those_beside_it() -> None:
    assert await sources(1, 4, 1) == [TEXT]
    assert await sources(1, 5, 0) == ["Epsilon. Zeta.", "Alpha. Beta."]


async def test_chunks_with_a_common_neighbour_become_one_source() -> None:
    assert await sources(1, 2, 0) == ["Alpha. Beta. Gamma. Delta."]
