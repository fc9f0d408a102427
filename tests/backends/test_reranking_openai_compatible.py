"""Servers with a /rerank, good and bad."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any

import openai
import pytest

from privategpt.backends.reranking.openai_compatible import (
    OpenAICompatibleReranker,
    connect_openai_compatible_reranker,
)
from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    Unavailable,
)
from tests.fakes.reranker import RerankServer
from tests.fakes.serving import served

QUERY = "nine ducks"
TEXTS = ["bananas", "nine ducks", "ducks"]


@pytest.fixture(scope="module")
def running() -> Generator[tuple[RerankServer, str]]:
    server = RerankServer()
    with served(server) as url:
        yield server, f"{url}/v1"


@pytest.fixture
def server(running: tuple[RerankServer, str]) -> RerankServer:
    server, _ = running
    server.reset()
    return server


@pytest.fixture
async def reranker(
    running: tuple[RerankServer, str], server: RerankServer
) -> AsyncGenerator[OpenAICompatibleReranker]:
    client = openai.AsyncOpenAI(base_url=running[1], api_key="k", max_retries=0, timeout=20)
    made = OpenAICompatibleReranker(client=client, model="words")
    yield made
    await made.close()


async def test_scores_come_in_the_order_of_the_texts(
    server: RerankServer, reranker: OpenAICompatibleReranker
) -> None:
    found = await reranker.score(QUERY, [*TEXTS, ""])
    assert (found.scores, found.tokens) == ((0.0, 1.0, 0.5, 0.0), 7)
    asked = {"model": "words", "query": QUERY, "documents": [*TEXTS, " "], "top_n": 4}
    assert (server.requests, server.keys) == ([asked], ["Bearer k"])


async def test_nothing_is_not_asked_for(
    server: RerankServer, reranker: OpenAICompatibleReranker
) -> None:
    found = await reranker.score(QUERY, [])
    assert (found.scores, found.tokens, server.requests) == ((), 0, [])


@pytest.mark.parametrize("offset", [-0.6, 0.4, 800.0, -800.0])
async def test_logits_become_probabilities(
    server: RerankServer, reranker: OpenAICompatibleReranker, offset: float
) -> None:
    server.offset = offset
    scores = (await reranker.score(QUERY, TEXTS)).scores
    assert all(0 <= score <= 1 for score in scores)
    assert scores[0] <= scores[2] <= scores[1]
    if abs(offset) < 1:
        assert scores[0] < scores[2] < scores[1]


async def test_a_server_need_not_count(
    server: RerankServer, reranker: OpenAICompatibleReranker
) -> None:
    server.usage = False
    assert (await reranker.score(QUERY, TEXTS)).tokens is None


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (400, EngineFailed),
        (401, EngineFailed),
        (429, EngineUnavailable),
        (500, EngineFailed),
        (503, EngineUnavailable),
    ],
)
async def test_a_servers_status_becomes_a_failure_of_ours(
    server: RerankServer,
    reranker: OpenAICompatibleReranker,
    status: int,
    failure: type[Unavailable],
) -> None:
    server.status = status
    with pytest.raises(failure, match=str(status)):
        await reranker.score(QUERY, TEXTS)


ROWS = [{"index": index, "relevance_score": 0.5} for index in range(3)]


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"<html>",
        b"null",
        b'{"results": [{"index": 0, "relevance_score": NaN}]}',
        [],
        {},
        {"results": None},
        {"results": ROWS[:2]},
        {"results": [*ROWS, {"index": 3, "relevance_score": 1}]},
        {"results": [*ROWS[:2], {"index": 2}]},
        {"results": [*ROWS[:2], {"index": 2, "relevance_score": "high"}]},
        {"results": [*ROWS[:2], 7]},
    ],
)
async def test_nonsense_is_a_failure(
    server: RerankServer, reranker: OpenAICompatibleReranker, reply: Any
) -> None:
    server.reply = reply
    with pytest.raises(EngineFailed, match="cannot be read"):
        await reranker.score(QUERY, TEXTS)


async def test_a_silent_server_times_out(
    running: tuple[RerankServer, str], server: RerankServer
) -> None:
    server.silent = True
    reranker = connect_openai_compatible_reranker(
        base_url=running[1], api_key=None, model="words", timeout_s=0.05
    )
    with pytest.raises(EngineTimedOut):
        await reranker.score(QUERY, TEXTS)
    await reranker.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    client = openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0)
    with pytest.raises(EngineUnavailable):
        await OpenAICompatibleReranker(client=client, model="m").score(QUERY, TEXTS)
    await client.close()


def test_a_server_needs_a_model_name() -> None:
    with pytest.raises(InvalidSettings, match=r"rerank\.model"):
        connect_openai_compatible_reranker(base_url="http://127.0.0.1:9", api_key=None, model=None)
