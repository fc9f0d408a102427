"""POST /v1/rerank over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest

from privategpt.api.metrics import Metrics
from privategpt.api.wire.replies import RerankResponse
from privategpt.domain.errors import EngineTimedOut
from privategpt.services.reranking import Reranking
from tests.fakes.edge import Edge, catalog
from tests.fakes.reranker import NAME, FakeReranker

DOCUMENTS = ["bananas", {"text": "nine ducks", "title": "Pond"}, "ducks"]
BODY = {"model": "tiny-ranker", "query": "nine ducks", "documents": DOCUMENTS}


@pytest.fixture
def reranker() -> FakeReranker:
    return FakeReranker()


@pytest.fixture
def edge(reranker: FakeReranker) -> Edge:
    """With a reranker."""
    return Edge(
        reranking=Reranking(model=reranker, candidates=1),
        models=replace(catalog(), rerank_models=(NAME, "all-minilm")),
    )


async def test_documents_come_best_first_as_jina_has_them(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/rerank", json=BODY)
    RerankResponse.model_validate(response.json())
    assert response.json() == {
        "object": "list",
        "model": "tiny-ranker",
        "results": [
            {"index": 1, "relevance_score": 1.0},
            {"index": 2, "relevance_score": 0.5},
            {"index": 0, "relevance_score": 0.0},
        ],
        "usage": {"prompt_tokens": 10, "total_tokens": 10},
    }


async def test_top_n_cuts_and_texts_come_back_where_they_were_asked_for(
    client: httpx.AsyncClient,
) -> None:
    body = {**BODY, "top_n": 2, "return_documents": True, "model": None}
    reply = (await client.post("/v1/rerank", json=body)).json()
    assert (reply["model"], reply["results"]) == (
        "tiny-ranker",
        [
            {"index": 1, "relevance_score": 1.0, "document": {"text": "nine ducks"}},
            {"index": 2, "relevance_score": 0.5, "document": {"text": "ducks"}},
        ],
    )


async def test_a_model_that_counts_no_tokens_leaves_usage_out(
    client: httpx.AsyncClient, reranker: FakeReranker
) -> None:
    reranker.counts = False
    reply = (await client.post("/v1/rerank", json=BODY)).json()
    RerankResponse.model_validate(reply)
    assert "usage" not in reply


async def test_a_server_without_a_reranker_says_so() -> None:
    transport = httpx.ASGITransport(Edge(reranking=None).app())
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
        response = await client.post("/v1/rerank", json=BODY)
    assert response.status_code == 404
    assert "no reranker" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"query": ""}, 400, "query"),
        ({"query": None}, 400, "query"),
        ({"documents": []}, 400, "documents"),
        ({"documents": ["x"] * 1001}, 400, "documents"),
        ({"documents": [7]}, 400, "documents[0]"),
        ({"documents": [{"title": "x"}]}, 400, "documents[0].text"),
        ({"top_n": 0}, 400, "top_n"),
        ({"model": "unheard-of"}, 404, "model"),
    ],
)
async def test_what_cannot_be_ranked_is_refused_by_name(
    client: httpx.AsyncClient, change: dict[str, Any], status: int, param: str
) -> None:
    response = await client.post("/v1/rerank", json={**BODY, **change})
    assert (response.status_code, response.json()["error"]["param"]) == (status, param)


async def test_a_reranker_that_does_not_answer_has_its_status(
    client: httpx.AsyncClient, reranker: FakeReranker
) -> None:
    reranker.failure = EngineTimedOut("The rerank server did not answer in time")
    assert (await client.post("/v1/rerank", json=BODY)).status_code == 504


async def test_the_reranker_is_listed_among_the_models(client: httpx.AsyncClient) -> None:
    ids = [model["id"] for model in (await client.get("/v1/models")).json()["data"]]
    assert ids[-2:] == ["all-minilm", NAME]
    assert (await client.get(f"/v1/models/{NAME}")).status_code == 200


async def test_its_time_and_its_tokens_are_counted() -> None:
    metrics = Metrics(clock=lambda: 0.0)
    reranking = Reranking(model=FakeReranker(), candidates=1, observer=metrics)
    await reranking.rank("a b", ["c"])
    told = metrics.render().decode()
    assert 'privategpt_tokens_total{kind="rerank"} 3.0' in told
    assert "privategpt_rerank_seconds_count 1.0" in told
