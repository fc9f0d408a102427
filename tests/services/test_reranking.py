"""What the reranker is shown, and what becomes of its scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.domain.errors import EngineUnavailable
from privategpt.domain.ports import Relevances
from privategpt.services.reranking import Ranked, Reranking
from privategpt.services.retrieval import Retrieval, Retrieved
from tests.fakes.reranker import NAME, FakeReranker
from tests.fakes.wired import WiredLibrary

TENANT = "ann"


@dataclass
class ScoresOf(FakeReranker):
    """Has these scores ready."""

    scores: tuple[float, ...] = field(default=())

    async def score(self, query: str, texts: object) -> Relevances:
        return Relevances(self.scores, None)


@given(st.lists(st.floats(0, 1)), st.none() | st.integers(1, 5))
async def test_the_best_come_first_and_equal_ones_in_their_order(
    scores: list[float], limit: int | None
) -> None:
    reranking = Reranking(model=ScoresOf(scores=tuple(scores)), candidates=1)
    ranking = await reranking.rank("q", ["x"] * len(scores), limit=limit)
    expected = sorted(enumerate(scores), key=lambda one: (-one[1], one[0]))[:limit]
    assert ranking.texts == tuple(Ranked(index, score) for index, score in expected)
    assert (ranking.tokens, reranking.name) == (None, NAME)


@pytest.fixture
async def library(tmp_path: Path) -> WiredLibrary:
    library = WiredLibrary(folder=tmp_path)
    for number, said in enumerate(("one fish", "two fish", "red fish", "blue fish")):
        await library.add(f"{number}.txt", said, tenant=TENANT)
    return library


async def search(
    library: WiredLibrary, reranker: FakeReranker, *, limit: int, candidates: int
) -> Retrieved:
    retrieval = Retrieval(
        embedding=library.embedding,
        index=library.index,
        state=library.state,
        reranking=Reranking(model=reranker, candidates=candidates),
    )
    return await retrieval.search("blue", tenant=TENANT, limit=limit)


async def test_a_search_returns_the_best_of_all_candidates_with_the_rerankers_scores(
    library: WiredLibrary,
) -> None:
    reranker = ScoresOf(scores=(0.1, 0.9, 0.3, 0.2))
    by_index = await library.retrieval.search("blue", tenant=TENANT, limit=4)
    found = await search(library, reranker, limit=2, candidates=4)
    order = [chunk.chunk.text for chunk in by_index.chunks]
    assert [(one.chunk.text, one.score) for one in found.chunks] == [
        (order[1], 0.9),
        (order[2], 0.3),
    ]


@pytest.mark.parametrize(("limit", "candidates", "shown"), [(1, 3, 3), (3, 1, 3), (1, 9, 4)])
async def test_the_reranker_is_shown_the_candidates_and_never_fewer_than_are_wanted(
    library: WiredLibrary, limit: int, candidates: int, shown: int
) -> None:
    reranker = FakeReranker()
    found = await search(library, reranker, limit=limit, candidates=candidates)
    ((query, texts),) = reranker.asked
    assert (query, len(texts), len(found.chunks)) == ("blue", shown, limit)


async def test_an_empty_library_asks_no_reranker(tmp_path: Path) -> None:
    reranker = FakeReranker(failure=EngineUnavailable("down"))
    found = await search(WiredLibrary(folder=tmp_path), reranker, limit=2, candidates=4)
    assert found.chunks == ()


async def test_a_reranker_that_does_not_serve_is_an_error_and_not_another_order(
    library: WiredLibrary,
) -> None:
    reranker = FakeReranker(failure=EngineUnavailable("down"))
    with pytest.raises(EngineUnavailable):
        await search(library, reranker, limit=2, candidates=4)
