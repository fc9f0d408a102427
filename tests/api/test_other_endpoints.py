"""Chunks, embeddings, models and health over HTTP."""

from __future__ import annotations

import asyncio
import base64
import struct
from typing import Any

import httpx
import pytest

from privategpt.api.deps import ApiOptions
from privategpt.api.wire.replies import (
    ChunksResponse,
    EmbeddingsResponse,
    ModelReply,
    ModelsReply,
    NotReadyReply,
    ReadinessReply,
)
from privategpt.domain.documents import EVERYTHING, DocumentFilter
from privategpt.domain.errors import EngineUnavailable
from tests.api.conftest import NewClient
from tests.fakes.edge import Edge, Searched, retrieved_chunk


class TestChunks:
    async def test_chunks_come_best_first_as_the_seed_has_them(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.search.found = (retrieved_chunk("a", score=0.9), retrieved_chunk("b", score=0.1))
        response = await client.post("/v1/chunks", json={"text": "x"})
        ChunksResponse.model_validate(response.json())
        data = response.json()["data"]
        assert [(chunk["text"], chunk["score"]) for chunk in data] == [("a", 0.9), ("b", 0.1)]
        assert [chunk["previous_texts"] for chunk in data] == [None, None]

    async def test_neighbours_come_in_reading_order_where_they_were_asked_for(
        self, client: httpx.AsyncClient
    ) -> None:
        response = await client.post("/v1/chunks", json={"text": "x", "prev_next_chunks": 2})
        (chunk,) = response.json()["data"]
        assert (chunk["previous_texts"], chunk["next_texts"]) == (["Before."], ["After."])

    @pytest.mark.parametrize(
        ("body", "asked"),
        [
            ({}, Searched("x", "default", 10, EVERYTHING, 0)),
            (
                {"limit": None, "prev_next_chunks": None, "context_filter": None},
                Searched("x", "default", 10, EVERYTHING, 0),
            ),
            (
                {
                    "limit": 100,
                    "prev_next_chunks": 10,
                    "context_filter": {"docs_ids": ["d"], "metadata": {"a": 1}},
                },
                Searched("x", "default", 100, DocumentFilter(frozenset({"d"}), {"a": 1}), 10),
            ),
        ],
    )
    async def test_what_is_asked_arrives(
        self, body: dict[str, Any], asked: Searched, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        assert (await client.post("/v1/chunks", json={"text": "x", **body})).status_code == 200
        assert edge.search.asked == [asked]


class TestEmbeddings:
    async def test_vectors_keep_the_order_of_repeated_input(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        response = await client.post("/v1/embeddings", json={"input": ["bb", "a", "bb"]})
        EmbeddingsResponse.model_validate(response.json())
        assert response.json() == {
            "object": "list",
            "model": "private-gpt",
            "data": [
                {"object": "embedding", "index": 0, "embedding": [0.0, 2.0, 0.5, -1.0]},
                {"object": "embedding", "index": 1, "embedding": [1.0, 1.0, 0.5, -1.0]},
                {"object": "embedding", "index": 2, "embedding": [2.0, 2.0, 0.5, -1.0]},
            ],
            "usage": {"prompt_tokens": 5, "total_tokens": 5},
        }
        assert edge.embedder.asked == [(("bb", "a", "bb"), None)]

    async def test_base64_is_little_endian_float32(self, client: httpx.AsyncClient) -> None:
        response = await client.post(
            "/v1/embeddings", json={"input": "abc", "encoding_format": "base64"}
        )
        EmbeddingsResponse.model_validate(response.json())
        (vector,) = response.json()["data"]
        decoded = struct.unpack("<4f", base64.b64decode(vector["embedding"]))
        assert decoded == (0.0, 3.0, 0.5, -1.0)

    async def test_a_big_endian_machine_swaps_its_bytes(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.byteorder", "big")
        response = await client.post(
            "/v1/embeddings", json={"input": "abc", "encoding_format": "base64"}
        )
        (vector,) = response.json()["data"]
        # This machine is little-endian, so what it swaps is big-endian.
        assert struct.unpack(">4f", base64.b64decode(vector["embedding"]))[1] == 3.0

    async def test_dimensions_arrive(self, edge: Edge, client: httpx.AsyncClient) -> None:
        await client.post("/v1/embeddings", json={"input": "x", "dimensions": 2})
        assert edge.embedder.asked == [(("x",), 2)]

    @pytest.mark.parametrize("given", ["", [], ["a", ""], [1, 2], [[1], [2]], [[]]])
    async def test_what_is_no_text_is_a_clear_400(
        self, given: Any, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        response = await client.post("/v1/embeddings", json={"input": given})
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == "input"
        assert edge.embedder.asked == []

    async def test_token_ids_are_told_how_to_be_text(self, client: httpx.AsyncClient) -> None:
        response = await client.post("/v1/embeddings", json={"input": [[15339, 1917]]})
        assert "check_embedding_ctx_length=False" in response.json()["error"]["message"]

    async def test_any_served_model_means_the_one_there_is(
        self, client: httpx.AsyncClient, new_client: NewClient
    ) -> None:
        for model in ("all-minilm", "private-gpt"):
            body = {"input": "x", "model": model}
            response = await client.post("/v1/embeddings", json=body)
            assert response.json()["model"] == model
        response = await client.post("/v1/embeddings", json={"input": "x", "model": "ada"})
        assert response.json()["error"]["code"] == "model_not_found"
        async with new_client(ApiOptions(dialect="privategpt")) as seed:
            response = await seed.post("/v1/embeddings", json={"input": "x", "model": "all-minilm"})
            assert response.json()["model"] == "private-gpt"


class TestModels:
    async def test_the_list_serves_openai_and_anthropic_alike(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        body = (await client.get("/v1/models")).json()
        ModelsReply.model_validate(body)
        assert [model["id"] for model in body["data"]] == list(edge.models.ids)
        assert (body["first_id"], body["last_id"]) == ("private-gpt", "all-minilm")

    @pytest.mark.parametrize("path", ["org/model:tag", "org%2Fmodel:tag", "org%2Fmodel%3Atag"])
    async def test_an_id_may_contain_slashes_however_they_are_written(
        self, path: str, client: httpx.AsyncClient
    ) -> None:
        body = (await client.get(f"/v1/models/{path}")).json()
        ModelReply.model_validate(body)
        assert body["id"] == "org/model:tag"

    async def test_an_id_that_is_escaped_twice_is_found_too(
        self, client: httpx.AsyncClient
    ) -> None:
        response = await client.get("/v1/models/org%252Fmodel:tag")
        assert response.json()["id"] == "org/model:tag"

    async def test_an_unknown_id_is_a_404(self, client: httpx.AsyncClient) -> None:
        response = await client.get("/v1/models/nothing")
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "model_not_found"


class TestHealth:
    async def test_health_says_that_the_process_is_up(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/health")).json() == {"status": "ok"}

    async def test_readiness_names_every_part(self, client: httpx.AsyncClient) -> None:
        response = await client.get("/health/ready")
        ReadinessReply.model_validate(response.json())
        assert response.json() == {
            "status": "ok",
            "checks": {"state": "ok", "vectors": "ok", "llm": "ok"},
        }

    async def test_a_part_that_is_down_or_silent_is_a_503_that_names_it(
        self, edge: Edge, new_client: NewClient
    ) -> None:
        async def down() -> None:
            raise EngineUnavailable("The engine refused the connection")

        async def silent() -> None:
            await asyncio.Event().wait()

        edge.checks |= {"llm": down, "vectors": silent}
        async with new_client(ApiOptions(check_timeout_s=0.01)) as client:
            response = await client.get("/health/ready")
        assert response.status_code == 503
        NotReadyReply.model_validate(response.json())
        assert response.json()["checks"] == {
            "state": "ok",
            "vectors": "No answer within 0.01 s",
            "llm": "The engine refused the connection",
        }
        assert response.json()["error"]["message"] == "Not ready: vectors, llm"
        assert response.headers["retry-after"] == "2"
