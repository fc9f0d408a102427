"""The edge as the published OpenAI SDK for Python sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from privategpt.api.deps import ApiOptions
from privategpt.domain.answers import (
    AnswerStarted,
    ChoiceFinished,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
)
from privategpt.domain.errors import ContextLengthExceeded, EngineFailed, TooManyRequests
from tests.fakes.answering import USAGE, plain_answer
from tests.fakes.edge import Edge
from tests.fakes.events import grounded_answer
from tests.fakes.serving import served

HI: Any = [{"role": "user", "content": "Hi"}]
LOOK_UP: Any = {"type": "function", "function": {"name": "look_up", "parameters": {}}}


@pytest.fixture(scope="module")
def edge() -> Edge:
    return Edge()


@pytest.fixture(scope="module")
def base_url(edge: Edge) -> Iterator[str]:
    with served(edge, ApiOptions(heartbeat_s=0.05)) as url:
        yield url


@pytest.fixture(autouse=True)
def _hello(edge: Edge) -> None:
    edge.answers.script = plain_answer("Hello", " there.")


@pytest.fixture(params=[False, True], ids=["lenient", "strict"])
def client(base_url: str, request: pytest.FixtureRequest) -> Iterator[OpenAI]:
    """Strict: the SDK validates every reply against its own types."""
    with _sdk(base_url, strict=bool(request.param)) as opened:
        yield opened


@pytest.fixture
def lenient(base_url: str) -> Iterator[OpenAI]:
    """The SDK as it is by default."""
    with _sdk(base_url, strict=False) as opened:
        yield opened


def _sdk(base_url: str, *, strict: bool) -> OpenAI:
    return OpenAI(
        base_url=f"{base_url}/v1",
        api_key="unused",
        max_retries=0,
        timeout=20,
        _strict_response_validation=strict,
    )


class TestChat:
    def test_create(self, client: OpenAI) -> None:
        reply = client.chat.completions.create(model="private-gpt", messages=HI)
        assert reply.object == "chat.completion"
        assert reply.choices[0].message.content == "Hello there."
        assert reply.choices[0].finish_reason == "stop"
        assert reply.usage is not None
        assert reply.usage.total_tokens == 9
        assert reply.system_fingerprint == "fp_fake"

    def test_create_streamed(self, client: OpenAI) -> None:
        with client.chat.completions.create(
            model="private-gpt",
            messages=HI,
            stream=True,
            stream_options={"include_usage": True},
        ) as stream:
            chunks = list(stream)
        text = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        assert "".join(text) == "Hello there."
        assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == [9]
        assert len({chunk.id for chunk in chunks}) == 1

    def test_the_stream_helper_gathers_text_annotations_and_usage(
        self, client: OpenAI, edge: Edge
    ) -> None:
        answer = grounded_answer()
        edge.answers.script = list(answer.events)
        with client.chat.completions.stream(
            model="private-gpt",
            messages=HI,
            stream_options={"include_usage": True},
            extra_body={"use_context": True, "citation_style": ["annotations", "citations"]},
        ) as stream:
            finishes = [
                event.chunk
                for event in stream
                if event.type == "chunk"
                and event.chunk.choices
                and event.chunk.choices[0].finish_reason
            ]
            final = stream.get_final_completion()
        message = final.choices[0].message
        assert message.role == "assistant"
        assert message.content == answer.text
        assert message.annotations is not None
        spans = [
            (a.url_citation.start_index, a.url_citation.end_index) for a in message.annotations
        ]
        assert [answer.text[start:end] for start, end in spans] == ["[2]", "[1]"]
        assert final.usage is not None
        assert final.usage.total_tokens == 11
        (finish,) = finishes
        extra = finish.model_extra
        assert extra is not None
        assert [entry["index"] for entry in extra["sources"]] == [1, 2, 3]
        assert [entry["document_index"] for entry in extra["citations"]] == [1, 0, 1]

    def test_extras_survive_in_one_piece(self, client: OpenAI, edge: Edge) -> None:
        edge.answers.script = list(grounded_answer().events)
        reply = client.chat.completions.create(
            model="private-gpt",
            messages=HI,
            extra_body={
                "use_context": True,
                "citation_style": ["annotations", "citations", "chunks"],
            },
        )
        extra = reply.model_extra
        assert extra is not None
        assert extra["grounded"] is True
        assert len(extra["sources"]) == 3
        assert len(extra["citations"]) == 3
        chunk_extra = reply.choices[0].model_extra
        assert chunk_extra is not None
        assert chunk_extra["sources"][0]["object"] == "context.chunk"
        annotations = reply.choices[0].message.annotations
        assert annotations is not None
        assert annotations[0].url_citation.title == "Title 2"

    def test_parse(self, client: OpenAI, edge: Edge) -> None:
        class Answer(BaseModel):
            value: int

        edge.answers.script = plain_answer('{"value"', ": 42}")
        reply = client.chat.completions.parse(
            model="private-gpt", messages=HI, response_format=Answer
        )
        assert reply.choices[0].message.parsed == Answer(value=42)
        asked = edge.answers.requests[-1].response_format
        assert asked is not None
        assert asked["json_schema"]["name"] == "Answer"

    def test_tool_calls_streamed_through_the_helper(self, client: OpenAI, edge: Edge) -> None:
        edge.answers.script = [
            AnswerStarted(),
            ToolCallDelta(index=0, id="call_a", name="look_up"),
            ToolCallDelta(index=0, arguments='{"q":'),
            ToolCallDelta(index=0, arguments='"x"}'),
            ToolCallDelta(index=1, id="call_b", name="look_up", arguments="{}"),
            ChoiceFinished(FinishReason.TOOL_CALLS),
            USAGE,
        ]
        with client.chat.completions.stream(
            model="private-gpt", messages=HI, tools=[LOOK_UP]
        ) as stream:
            choice = stream.get_final_completion().choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls is not None
        calls = [
            (call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls
        ]
        assert calls == [("call_a", "look_up", '{"q":"x"}'), ("call_b", "look_up", "{}")]

    def test_thoughts_and_log_probabilities(self, client: OpenAI, edge: Edge) -> None:
        edge.answers.script = [
            AnswerStarted(),
            ReasoningDelta("Hm."),
            TextDelta("Yes", (TokenLogprob("Yes", -0.1, (89, 101, 115)),)),
            ChoiceFinished(FinishReason.STOP),
            USAGE,
        ]
        with client.chat.completions.stream(
            model="private-gpt", messages=HI, logprobs=True
        ) as stream:
            choice = stream.get_final_completion().choices[0]
        assert choice.message.model_extra is not None
        assert choice.message.model_extra["reasoning_content"] == "Hm."
        assert choice.logprobs is not None
        assert choice.logprobs.content is not None
        assert [token.token for token in choice.logprobs.content] == ["Yes"]


class TestFailures:
    def test_an_error_in_the_middle_of_a_stream_raises_with_its_code(
        self, client: OpenAI, edge: Edge
    ) -> None:
        edge.answers.script = [AnswerStarted(), TextDelta("Half"), EngineFailed("It broke")]
        stream = client.chat.completions.create(model="private-gpt", messages=HI, stream=True)
        with pytest.raises(openai.APIError) as raised:
            list(stream)
        assert raised.value.message == "It broke"
        assert raised.value.code == "upstream_error"

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(
        ("error", "raised", "code"),
        [
            (ContextLengthExceeded("x"), openai.BadRequestError, "context_length_exceeded"),
            (TooManyRequests("x"), openai.RateLimitError, "rate_limit_exceeded"),
            (EngineFailed("x"), openai.InternalServerError, "upstream_error"),
        ],
    )
    def test_errors_are_the_sdks_own(
        self,
        stream: bool,
        error: Exception,
        raised: type[openai.APIStatusError],
        code: str,
        client: OpenAI,
        edge: Edge,
    ) -> None:
        edge.answers.script = [error]
        with pytest.raises(raised) as caught:
            client.chat.completions.create(model="private-gpt", messages=HI, stream=stream)
        assert caught.value.code == code
        assert caught.value.request_id is not None

    def test_a_body_that_does_not_fit_names_its_field(self, client: OpenAI) -> None:
        with pytest.raises(openai.UnprocessableEntityError) as raised:
            client.chat.completions.create(model="private-gpt", messages=[])
        assert raised.value.param == "messages"

    def test_an_unknown_model_is_not_found(self, client: OpenAI) -> None:
        with pytest.raises(openai.NotFoundError) as raised:
            client.chat.completions.create(model="gpt-9", messages=HI)
        assert raised.value.code == "model_not_found"


class TestTheRest:
    def test_legacy_completions(self, client: OpenAI) -> None:
        reply = client.completions.create(model="private-gpt", prompt=["a", "b"])
        assert [choice.text for choice in reply.choices] == ["Hello there.", "Hello there."]

    def test_legacy_completions_streamed(self, lenient: OpenAI) -> None:
        # The SDK's own type has no null finish_reason, which OpenAI's server sends as well.
        stream = lenient.completions.create(model="private-gpt", prompt="a", stream=True)
        assert "".join(chunk.choices[0].text for chunk in stream) == "Hello there."

    def test_embeddings(self, client: OpenAI, lenient: OpenAI) -> None:
        # Base64, which the SDK asks for by itself and decodes; its strict mode knows only floats.
        decoded = lenient.embeddings.create(model="private-gpt", input=["abc", "d"])
        plain = client.embeddings.create(
            model="private-gpt", input=["abc", "d"], encoding_format="float"
        )
        assert [item.embedding for item in decoded.data] == [
            [0.0, 3.0, 0.5, -1.0],
            [1.0, 1.0, 0.5, -1.0],
        ]
        assert [item.embedding for item in plain.data] == [item.embedding for item in decoded.data]
        assert decoded.usage.prompt_tokens == 4

    def test_models(self, client: OpenAI, edge: Edge) -> None:
        assert [model.id for model in client.models.list()] == list(edge.models.ids)
        assert client.models.retrieve("org/model:tag").id == "org/model:tag"


def test_a_client_that_leaves_over_a_real_socket_stops_the_engine(
    edge: Edge, base_url: str
) -> None:
    left = threading.Event()

    class Noted:
        def set(self) -> None:
            left.set()

    edge.answers.script = [AnswerStarted(), *[TextDelta("x" * 100)] * 1_000_000]
    edge.answers.closed = Noted()  # type: ignore[assignment]
    with httpx.stream(
        "POST",
        f"{base_url}/v1/chat/completions",
        json={"messages": HI, "stream": True},
        trust_env=False,
    ) as response:
        next(response.iter_bytes())
    assert left.wait(timeout=2)
