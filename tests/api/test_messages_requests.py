"""What a body of /v1/messages asks of the use case, and what is refused in Anthropic's words."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from privategpt.api.deps import ApiOptions
from privategpt.domain.conversation import Attachment, Image, Message, Role, Sampling, ToolCall
from privategpt.domain.documents import DocumentFilter
from privategpt.domain.errors import CorruptFile, EngineUnavailable
from privategpt.services.answering import AnswerRequest
from tests.api.conftest import NewClient
from tests.fakes.edge import Edge

MESSAGES = "/v1/messages"
ASK: dict[str, Any] = {
    "model": "private-gpt",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Hi"}],
}
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}
TOOL = {"name": "find", "description": "Finds", "input_schema": SCHEMA}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


async def asked(edge: Edge, client: httpx.AsyncClient, **fields: Any) -> AnswerRequest:
    """What the use case was asked."""
    response = await client.post(MESSAGES, json={**ASK, **fields})
    assert response.status_code == 200, response.text
    return edge.answers.requests[-1]


async def refusal(client: httpx.AsyncClient, **fields: Any) -> tuple[int, str, str | None]:
    """Status, Anthropic's type and the field at fault."""
    response = await client.post(MESSAGES, json={**ASK, **fields})
    body = response.json()
    assert body["type"] == "error"
    assert body["request_id"] == response.headers["request-id"]
    assert body["error"]["message"]
    return response.status_code, body["error"]["type"], body["error"]["param"]


def user(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(blocks)}]


async def test_the_sampling_fields_reach_the_engine(edge: Edge, client: httpx.AsyncClient) -> None:
    request = await asked(
        edge,
        client,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        stop_sequences=["END"],
        output_config={"effort": "low"},
        metadata={"user_id": "u"},
        service_tier="auto",
        unknown={"x": 1},
    )
    assert request.sampling == Sampling(
        max_tokens=9, temperature=0.5, top_p=0.9, top_k=40, stop=("END",), reasoning_effort="low"
    )
    assert request.tell_stop


async def test_system_is_a_text_or_blocks_or_a_turn(edge: Edge, client: httpx.AsyncClient) -> None:
    as_text = await asked(edge, client, system="Be brief.")
    blocks = [{"type": "text", "text": "Be", "cache_control": {"type": "ephemeral"}}]
    as_blocks = await asked(edge, client, system=[*blocks, {"type": "text", "text": "brief."}])
    turn = {"role": "system", "content": "Be brief."}
    as_turn = await asked(edge, client, messages=[turn, *ASK["messages"]])
    hi = Message(Role.USER, "Hi")
    assert as_text.messages == as_turn.messages == (Message(Role.SYSTEM, "Be brief."), hi)
    assert as_blocks.messages == (Message(Role.SYSTEM, "Be\nbrief."), hi)


async def test_calls_and_results_of_tools_become_turns(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "s"},
                {"type": "text", "text": "One [1]. ", "citations": [{"type": "char_location"}]},
                {"type": "text", "text": "Two.", "citations": None},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": {"type": "e"}},
                {"type": "tool_use", "id": "t1", "name": "find", "input": {"word": "Ü"}},
                {"type": "tool_use", "id": "t2", "name": "find", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "found"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}, PNG],
                },
                {"type": "text", "text": "And?"},
            ],
        },
    ]
    request = await asked(edge, client, messages=messages)
    assert request.messages == (
        Message(Role.USER, "Hi"),
        Message(
            Role.ASSISTANT,
            "One [1]. Two.",
            tool_calls=(ToolCall("t1", "find", '{"word": "Ü"}'), ToolCall("t2", "find", "{}")),
        ),
        Message(Role.TOOL, "found", tool_call_id="t1"),
        Message(Role.TOOL, "Error: no", tool_call_id="t2"),
        Message(Role.USER, "And?", images=(Image("data:image/png;base64,AA=="),)),
    )


async def test_results_alone_are_no_turn_of_the_user(edge: Edge, client: httpx.AsyncClient) -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1"}
    messages = [*ASK["messages"], {"role": "assistant", "content": [call]}, *user(result)]
    request = await asked(edge, client, messages=messages)
    assert request.messages[-1] == Message(Role.TOOL, "", tool_call_id="t1")


@pytest.mark.parametrize(
    ("choice", "tool_choice", "parallel"),
    [
        (None, None, None),
        ({"type": "auto"}, "auto", None),
        ({"type": "any", "disable_parallel_tool_use": True}, "required", False),
        ({"type": "none"}, "none", None),
        (
            {"type": "tool", "name": "find"},
            {"type": "function", "function": {"name": "find"}},
            None,
        ),
    ],
)
async def test_tools_are_offered_as_the_choice_says(
    edge: Edge, client: httpx.AsyncClient, choice: Any, tool_choice: Any, parallel: bool | None
) -> None:
    tooling = (await asked(edge, client, tools=[TOOL], tool_choice=choice)).tooling
    function = {"name": "find", "description": "Finds", "parameters": SCHEMA}
    assert tooling.tools == ({"type": "function", "function": function},)
    assert (tooling.tool_choice, tooling.parallel_tool_calls) == (tool_choice, parallel)


async def test_tools_of_other_systems_start_nothing(edge: Edge, client: httpx.AsyncClient) -> None:
    foreign = [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
        {"type": "bash_20250124", "name": "bash"},
    ]
    request = await asked(edge, client, tools=foreign, tool_choice={"type": "any"})
    assert (request.tooling.tools, request.tooling.tool_choice) == ((), None)
    assert request.web_search is False


async def test_a_schema_makes_the_reply_json_without_markers(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    config = {"format": {"type": "json_schema", "schema": SCHEMA}}
    request = await asked(edge, client, output_config=config, use_context=True)
    assert request.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
    }
    assert request.cite is False


async def test_the_fields_of_retrieval_stand_at_the_top_level(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    request = await asked(
        edge,
        client,
        use_context=True,
        context_filter={"docs_ids": ["doc-1"]},
        context_only=True,
        web_search=True,
        system_prompt="Be kind.",
    )
    assert request.use_context
    assert request.filter == DocumentFilter(ids=frozenset({"doc-1"}))
    assert request.context_only
    assert request.web_search
    assert request.cite
    assert request.system_prompt == "Be kind."


async def test_a_models_profile_counts_where_the_request_is_silent(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    request = await asked(edge, client, model="private-gpt-docs")
    assert (request.use_context, request.cite) == (True, True)
    tagged = await asked(edge, client, model="org/model:tag")
    assert (tagged.model, tagged.system_prompt) == ("engine-x", "Be brief.")


async def test_documents_come_before_search_results_each_by_its_title(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    pdf = base64.b64encode(b"page one\fpage two").decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": pdf}
    plain = {"type": "content", "content": "as one text"}
    blocks = user(
        {"type": "search_result", "source": "kb/1", "title": "", "content": []},
        {
            "type": "search_result",
            "source": "HTTPS://a.example/",
            "title": "Found",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {"type": "document", "source": source},
        {"type": "document", "title": "Notes", "source": plain},
        {"type": "text", "text": "Hi"},
    )
    request = await asked(edge, client, messages=blocks)
    assert request.attachments == (
        Attachment("Document", "page one\n\npage two"),
        Attachment("Notes", "as one text"),
        Attachment("kb/1", ""),
        Attachment("Found", "a\n\nb", url="HTTPS://a.example/"),
    )
    assert request.cite is False
    assert request.messages == (Message(Role.USER, "Hi"),)


BAD_IMAGE = {"type": "image", "source": {"type": "url", "url": "http://10.0.0.1/x.png"}}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"temperature": 3}, "temperature"),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
        ({"stream": "yes"}, "stream"),
        ({"messages": user({"type": "video"})}, "messages[0].content[0]"),
        ({"messages": user(BAD_IMAGE)}, "messages[0].content[0].source"),
        (
            {"messages": user({"type": "document", "source": {"type": "file", "file_id": "f"}})},
            "messages[0].content[0].source",
        ),
        ({"messages": user({"type": "document"})}, "messages[0].content[0].source"),
        ({"messages": user({"type": "search_result"})}, "messages[0].content[0].source"),
        (
            {
                "messages": user(
                    {
                        "type": "document",
                        "source": {
                            "type": "base64",
                            "media_type": "application/pdf",
                            "data": "not base64!",
                        },
                    }
                )
            },
            "messages[0].content[0].source.data",
        ),
        (
            {
                "messages": user(
                    {"type": "document", "source": {"type": "content", "content": [PNG]}}
                )
            },
            "messages[0].content[0].source.content[0]",
        ),
        (
            {"messages": user({"type": "tool_result", "tool_use_id": "none"})},
            "messages[0].content[0].tool_use_id",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]}]},
            "messages[0].content[0]",
        ),
        ({"tools": [{"name": "find"}]}, "tools[0]"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "other"}}, "tool_choice"),
        ({"tools": [{**TOOL, "name": "a b"}]}, "tools[0].name"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(
    client: httpx.AsyncClient, fields: dict[str, Any], param: str
) -> None:
    assert await refusal(client, **fields) == (400, "invalid_request_error", param)


async def test_too_many_pdfs_are_refused_before_any_is_read(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
    blocks = [{"type": "document", "source": source}] * 101
    assert (await refusal(client, messages=user(*blocks)))[0] == 400
    assert edge.parser.parsed == []


async def test_a_pdf_that_cannot_be_read_is_the_requests_fault(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.parser.refusals["document.pdf"] = CorruptFile("The PDF is damaged")
    source = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
    found = await refusal(client, messages=user({"type": "document", "source": source}))
    assert found == (400, "invalid_request_error", None)


async def test_an_unknown_model_is_not_found(client: httpx.AsyncClient) -> None:
    assert await refusal(client, model="gpt-9") == (404, "not_found_error", "model")


async def test_a_failing_engine_has_its_status_in_a_stream_too(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    edge.answers.script = [EngineUnavailable("The engine is away")]
    for stream in (False, True):
        assert await refusal(client, stream=stream) == (503, "overloaded_error", None)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [(RuntimeError("secret"), 500, "api_error"), (EngineUnavailable("x"), 503, "overloaded_error")],
)
async def test_our_faults_keep_their_secrets(
    edge: Edge, client: httpx.AsyncClient, error: Exception, status: int, kind: str
) -> None:
    edge.answers.script = [error]
    assert (await refusal(client))[:2] == (status, kind)


async def test_other_routes_below_answer_in_the_same_shape(client: httpx.AsyncClient) -> None:
    for response in (
        await client.get(MESSAGES),
        await client.post(f"{MESSAGES}/batches", json={}),
        await client.post(MESSAGES, content=b"{", headers={"content-type": "application/json"}),
    ):
        assert response.json()["type"] == "error"
        assert response.json()["request_id"] == response.headers["request-id"]
    other = (await client.post("/v1/messagesx", json={})).json()
    assert "request_id" not in other


async def test_a_body_beyond_the_bound_is_too_large(edge: Edge, new_client: NewClient) -> None:
    async with new_client(ApiOptions(max_body_bytes=100)) as client:
        assert (await refusal(client, system="x" * 200))[:2] == (413, "request_too_large")


async def test_addresses_of_images_pass_where_the_operator_allows_it(
    edge: Edge, new_client: NewClient
) -> None:
    async with new_client(ApiOptions(remote_images=True)) as client:
        request = await asked(edge, client, messages=user(BAD_IMAGE))
    assert request.messages[0].images == (Image("http://10.0.0.1/x.png"),)


async def test_any_version_and_either_key_header_will_do(client: httpx.AsyncClient) -> None:
    for headers in (
        {"anthropic-version": "2023-06-01", "x-api-key": "k"},
        {"anthropic-version": "2099-01-01", "anthropic-beta": "x", "authorization": "Bearer k"},
        {},
    ):
        assert (await client.post(MESSAGES, json=ASK, headers=headers)).status_code == 200


async def test_the_request_of_seed_003_has_no_max_tokens(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    question = "What is the weather forecast for Lisbon this weekend?"
    body = {
        "model": "private-gpt",
        "web_search": True,
        "messages": [{"role": "user", "content": question}],
    }
    assert (await client.post(MESSAGES, json=body)).status_code == 200
    assert edge.answers.requests[-1].sampling.max_tokens is None


async def test_tokens_are_counted_for_the_same_conversation(
    edge: Edge, client: httpx.AsyncClient
) -> None:
    body = {key: value for key, value in ASK.items() if key != "max_tokens"}
    response = await client.post(f"{MESSAGES}/count_tokens", json={**body, "tools": [TOOL]})
    assert response.json() == {"input_tokens": 2}
    assert len(edge.answers.requests[-1].tooling.tools) == 1
