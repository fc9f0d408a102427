"""The edge as PrivateGPT's published SDK sees it: the strictest client of all."""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import httpx
import pytest

from privategpt.domain.answers import AnswerStarted, TextDelta
from privategpt.domain.errors import EngineFailed
from tests.fakes.answering import plain_answer
from tests.fakes.edge import Edge
from tests.fakes.events import grounded_answer
from tests.fakes.serving import served

# The SDK has no types that a checker could read.
sdk: Any = import_module("pgpt_python.client")
ApiError: Any = import_module("pgpt_python.core.api_error").ApiError
UnprocessableEntityError: Any = import_module("pgpt_python.errors").UnprocessableEntityError
types: Any = import_module("pgpt_python.types")

HI: Any = [types.OpenAiMessage(content="Hi")]


@pytest.fixture(scope="module")
def edge() -> Edge:
    return Edge()


@pytest.fixture(scope="module")
def base_url(edge: Edge) -> Iterator[str]:
    with served(edge) as url:
        yield url


@pytest.fixture
def client(base_url: str, edge: Edge) -> Any:
    edge.answers.script = list(grounded_answer().events)
    return sdk.PrivateGPTApi(base_url=base_url, httpx_client=httpx.Client(trust_env=False))


def test_health(client: Any) -> None:
    assert client.health.health().status == "ok"


def test_files_and_texts_are_ingested_listed_and_deleted(client: Any) -> None:
    file = io.BytesIO(b"Ein Text.")
    file.name = "text.txt"
    first = client.ingestion.ingest_file(file=file).data[0]
    second = client.ingestion.ingest_text(file_name="note", text="A note.").data[0]
    file.seek(0)
    third = client.ingestion.ingest(file=file).data[0]
    assert first.doc_metadata == {"file_name": "text.txt"}
    listed = client.ingestion.list_ingested().data
    assert [document.doc_id for document in listed] == [
        document.doc_id for document in (first, second, third)
    ]
    for document in listed:
        assert client.ingestion.delete_ingested(document.doc_id) is None
    assert client.ingestion.list_ingested().data == []
    with pytest.raises(ApiError) as raised:
        client.ingestion.delete_ingested(first.doc_id)
    assert raised.value.status_code == 404


def test_chat_with_context(client: Any, edge: Edge) -> None:
    reply = client.contextual_completions.chat_completion(
        messages=HI,
        use_context=True,
        context_filter=types.ContextFilter(docs_ids=["doc-1"]),
        include_sources=True,
    )
    choice = reply.choices[0]
    assert choice.message is not None
    assert choice.message.content == grounded_answer().text
    assert choice.sources is not None
    assert choice.sources[0].document.doc_id == "doc-1"
    assert edge.answers.requests[-1].filter.ids == frozenset({"doc-1"})


def test_chat_streamed(client: Any, edge: Edge) -> None:
    text = "a [DONE] b\u2028c\x85d\n\ndata: e"
    edge.answers.script = plain_answer(text[:12], text[12:])
    chunks = list(client.contextual_completions.chat_completion_stream(messages=HI))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join((delta.content or "") if delta else "" for delta in deltas) == text
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_prompts_plain_and_streamed(client: Any, edge: Edge) -> None:
    reply = client.contextual_completions.prompt_completion(
        prompt="Hi", system_prompt="Be brief.", use_context=True
    )
    assert reply.choices[0].message is not None
    assert edge.answers.requests[-1].system_prompt == "Be brief."
    chunks = list(
        client.contextual_completions.prompt_completion_stream(prompt="Hi", use_context=True)
    )
    sources = [chunk.choices[0].sources for chunk in chunks]
    assert [bool(found) for found in sources] == [False] * (len(chunks) - 1) + [True]


def test_chunks_and_embeddings(client: Any) -> None:
    (chunk,) = client.context_chunks.chunks_retrieval(text="x", limit=3, prev_next_chunks=1).data
    assert chunk.previous_texts == ["Before."]
    embeddings = client.embeddings.embeddings_generation(input=["ab", "c"]).data
    assert [embedding.embedding for embedding in embeddings] == [
        [0.0, 2.0, 0.5, -1.0],
        [1.0, 1.0, 0.5, -1.0],
    ]


def test_a_body_that_does_not_fit_is_the_sdks_own_error(client: Any) -> None:
    with pytest.raises(UnprocessableEntityError) as raised:
        client.context_chunks.chunks_retrieval(text="x", limit=0)
    assert raised.value.body.detail[0].loc == ["body", "limit"]


def test_an_error_in_the_middle_is_not_taken_for_the_end(client: Any, edge: Edge) -> None:
    edge.answers.script = [AnswerStarted(), TextDelta("Half"), EngineFailed("It broke")]
    with pytest.raises(ValueError, match="validation error"):
        list(client.contextual_completions.chat_completion_stream(messages=HI))


async def test_the_asynchronous_client_too(base_url: str, edge: Edge) -> None:
    edge.answers.script = plain_answer("Hello")
    async with httpx.AsyncClient(trust_env=False) as http:
        client = sdk.AsyncPrivateGPTApi(base_url=base_url, httpx_client=http)
        reply = await client.contextual_completions.chat_completion(messages=HI)
        assert reply.choices[0].message is not None
        assert reply.choices[0].message.content == "Hello"
