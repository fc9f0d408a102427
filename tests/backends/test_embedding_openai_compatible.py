"""Servers that speak OpenAI's embeddings, well or badly. The contract suite has the good cases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import openai
import pytest

from privategpt.backends.embedding.encoder import Prompts
from privategpt.backends.embedding.openai_compatible import (
    OpenAICompatibleModel,
    connect_openai_compatible,
)
from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    Unavailable,
)
from tests.fakes.embedding_server import WIDTH, EmbeddingServer


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer() as running:
        yield running


@pytest.fixture
async def model(server: EmbeddingServer) -> AsyncIterator[OpenAICompatibleModel]:
    client = openai.AsyncOpenAI(base_url=server.url, api_key="none", timeout=20, max_retries=0)
    made = OpenAICompatibleModel(client=client, model="words", dimensions=WIDTH, batch_size=2)
    yield made
    await made.close()


async def test_texts_are_sent_in_batches_as_base64_without_dimensions(
    server: EmbeddingServer, model: OpenAICompatibleModel
) -> None:
    await model.embed_passages(["a", "b", "c"])

    assert sorted(server.requests, key=lambda request: request["input"]) == [
        {"model": "words", "input": ["a", "b"], "encoding_format": "base64"},
        {"model": "words", "input": ["c"], "encoding_format": "base64"},
    ]


async def test_a_server_that_refuses_base64_is_asked_for_floats_from_then_on(
    server: EmbeddingServer, model: OpenAICompatibleModel
) -> None:
    expected = await model.embed_query("cat")
    server.floats_only = True
    server.requests.clear()

    assert (await model.embed_query("cat")).vectors[0].tolist() == pytest.approx(
        expected.vectors[0].tolist()
    )
    await model.embed_query("dog")

    formats = [request["encoding_format"] for request in server.requests]
    assert formats == ["base64", "float", "float"]


async def test_floats_are_understood_where_base64_was_asked_for(
    server: EmbeddingServer, model: OpenAICompatibleModel
) -> None:
    expected = await model.embed_query("cat")
    server.answers_floats = True

    assert (await model.embed_query("cat")).vectors[0].tolist() == pytest.approx(
        expected.vectors[0].tolist()
    )


async def test_tokens_are_estimated_where_the_server_does_not_count(
    server: EmbeddingServer, model: OpenAICompatibleModel
) -> None:
    server.usage = False

    assert (await model.embed_passages(["one two", "six"])).tokens == 3


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (400, EngineFailed),
        (401, EngineFailed),
        (404, EngineFailed),
        (422, EngineFailed),
        (429, EngineUnavailable),
        (500, EngineFailed),
        (503, EngineUnavailable),
    ],
)
async def test_a_servers_status_becomes_a_failure_of_ours(
    server: EmbeddingServer,
    model: OpenAICompatibleModel,
    status: int,
    failure: type[Unavailable],
) -> None:
    server.status = status

    with pytest.raises(failure, match=str(status)):
        await model.embed_passages(["a", "b", "c"])


async def test_a_refusal_of_floats_too_is_a_failure(
    server: EmbeddingServer, model: OpenAICompatibleModel
) -> None:
    server.floats_only = True
    await model.embed_query("cat")
    server.status = 400

    with pytest.raises(EngineFailed, match="400"):
        await model.embed_query("cat")


@pytest.mark.parametrize(
    "item",
    [
        {"index": 0, "embedding": "!!!!"},
        {"index": 0, "embedding": "AAA="},
        {"index": 0, "embedding": [0.5, 0.5]},
        {"index": 0, "embedding": [0.0] * WIDTH},
        {"index": 0, "embedding": [float("nan")] * WIDTH},
        {"index": 0, "embedding": ["x"] * WIDTH},
        {"index": 1, "embedding": [1.0] * WIDTH},
        {"index": "a", "embedding": [1.0] * WIDTH},
        {"index": 0, "embedding": 7},
    ],
    ids=["no-base64", "no-floats", "short", "zero", "nan", "words", "index", "letter", "number"],
)
async def test_nonsense_instead_of_a_vector_is_a_failure(
    server: EmbeddingServer, model: OpenAICompatibleModel, item: dict[str, object]
) -> None:
    server.raw = json.dumps({"object": "list", "model": "m", "data": [item]}).encode()

    with pytest.raises(EngineFailed):
        await model.embed_query("cat")


@pytest.mark.parametrize(
    "raw", [b"", b"<html>", b"{}", b'{"data": []}', b"[]", b"null", b'{"data": [1]}']
)
async def test_an_answer_that_is_none_is_a_failure(
    server: EmbeddingServer, model: OpenAICompatibleModel, raw: bytes
) -> None:
    server.raw = raw

    with pytest.raises(EngineFailed):
        await model.embed_query("cat")


async def test_too_few_vectors_are_a_failure(
    server: EmbeddingServer, model: OpenAICompatibleModel
) -> None:
    server.drop = 1

    with pytest.raises(EngineFailed, match="1 vectors for 2 texts"):
        await model.embed_passages(["a", "b"])


async def test_a_silent_server_times_out(server: EmbeddingServer) -> None:
    server.silent = True

    with pytest.raises(EngineTimedOut):
        await connect_openai_compatible(
            base_url=server.url, api_key="k", model="words", timeout_s=0.05
        )


async def test_dimensions_are_asked_for_only_where_they_are_not_the_models_own(
    server: EmbeddingServer,
) -> None:
    found = await connect_openai_compatible(base_url=server.url, api_key=None, model="words")
    same = await connect_openai_compatible(
        base_url=server.url, api_key=None, model="words", dimensions=WIDTH
    )
    shorter = await connect_openai_compatible(
        base_url=server.url, api_key=None, model="words", dimensions=16, max_tokens=99
    )
    server.requests.clear()

    for model in (found, same, shorter):
        assert len((await model.embed_query("cat")).vectors[0]) == model.dimensions
        await model.close()

    assert [request.get("dimensions") for request in server.requests] == [None, None, 16]
    assert [found.tokenizer.max_tokens, shorter.tokenizer.max_tokens] == [512, 99]
    assert found.fingerprint == same.fingerprint != shorter.fingerprint


async def test_a_server_may_be_down_at_start_if_the_dimensions_are_known() -> None:
    async with EmbeddingServer() as gone:
        url = gone.url

    with pytest.raises(EngineUnavailable):
        await connect_openai_compatible(base_url=url, api_key=None, model="words")
    model = await connect_openai_compatible(
        base_url=url, api_key=None, model="words", dimensions=WIDTH
    )
    with pytest.raises(EngineUnavailable):
        await model.embed_passages(["a"])
    await model.close()


async def test_a_server_needs_a_model_name() -> None:
    with pytest.raises(InvalidSettings, match=r"embedding\.model"):
        await connect_openai_compatible(base_url="http://127.0.0.1:9/v1", api_key=None, model=None)


async def test_prompts_are_sent_before_the_texts_and_are_part_of_the_fingerprint(
    server: EmbeddingServer,
) -> None:
    plain = await connect_openai_compatible(
        base_url=server.url, api_key=None, model="words", max_tokens=20
    )
    prompts = Prompts(query="query: ", passage="passage: ")
    model = await connect_openai_compatible(
        base_url=server.url, api_key=None, model="words", max_tokens=20, prompts=prompts
    )
    server.requests.clear()
    await model.embed_query("ducks")
    await model.embed_passages(["pond", ""])

    sent = [request["input"] for request in server.requests]
    assert sent == [["query: ducks"], ["passage: pond", "passage: "]]
    assert plain.fingerprint != model.fingerprint
    assert model.tokenizer.max_tokens == 20 - plain.tokenizer.count("passage: ")
    await plain.close()
    await model.close()


def test_a_prompt_that_fills_the_window_is_refused() -> None:
    client = openai.AsyncOpenAI(base_url="http://127.0.0.1:9", api_key="none")
    with pytest.raises(InvalidSettings, match="whole window"):
        OpenAICompatibleModel(
            client=client, model="m", dimensions=1, max_tokens=2, prompts=Prompts(query="a b c d")
        )
