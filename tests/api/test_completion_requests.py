"""What the completion endpoints ask of the use case, and what they refuse."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from privategpt.api.deps import ApiOptions
from privategpt.api.profiles import ModelCatalog, ModelProfile
from privategpt.api.wire.chat import ChatBody
from privategpt.domain.answers import AnswerStarted, ChoiceFinished, FinishReason, TextDelta
from privategpt.domain.conversation import Image, Message, Role, Sampling, ToolCall, Tooling
from privategpt.domain.documents import EVERYTHING, DocumentFilter
from privategpt.services.answering import AnswerRequest
from tests.api.conftest import NewClient
from tests.fakes.answering import USAGE
from tests.fakes.edge import Edge
from tests.fakes.events import grounded_answer

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
HI = Message(role=Role.USER, text="Hi")
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
FUNCTION = {"name": "look_up", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": FUNCTION}


async def asked(edge: Edge, client: httpx.AsyncClient, **body: Any) -> AnswerRequest:
    response = await client.post(CHAT, json={**HELLO, **body})
    assert response.status_code == 200, response.text
    return edge.answers.requests[-1]


async def refused(client: httpx.AsyncClient, path: str = CHAT, **body: Any) -> dict[str, Any]:
    base = HELLO if path == CHAT else {"prompt": "Hi"}
    response = await client.post(path, json={**base, **body})
    assert response.status_code == 400, response.text
    error: dict[str, Any] = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    return error


class TestChat:
    async def test_a_bare_question_asks_for_nothing_more(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        assert await asked(edge, client) == AnswerRequest(messages=(HI,), tenant="default")

    async def test_null_is_absent_everywhere(self, edge: Edge, client: httpx.AsyncClient) -> None:
        nothing = dict.fromkeys(ChatBody.model_fields.keys() - {"messages"})
        message = {
            "role": None,
            "content": "Hi",
            "tool_calls": None,
            "tool_call_id": None,
            "function_call": None,
        }
        assert await asked(edge, client, **nothing, messages=[message]) == AnswerRequest(
            messages=(HI,), tenant="default"
        )

    async def test_unknown_fields_reach_nothing(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        unknown = {
            "api_base": "http://169.254.169.254/",
            "base_url": "http://evil.example",
            "api_key": "x",
            "tenant": "someone-else",
            "engine_model": "x",
            "user": "u",
            "store": True,
            "service_tier": "auto",
            "prediction": {"type": "content", "content": "x"},
            "web_search_options": {},
            "audio": {"voice": "x"},
            "verbosity": "low",
        }
        message = {"role": "user", "content": "Hi", "annotations": [], "sources": [1], "name": "n"}
        assert await asked(edge, client, **unknown, messages=[message]) == AnswerRequest(
            messages=(HI,), tenant="default"
        )

    async def test_every_sampling_field_arrives(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        request = await asked(
            edge,
            client,
            temperature=0,
            top_p=1,
            top_k=40,
            frequency_penalty=-2,
            presence_penalty=1.5,
            max_tokens=5,
            max_completion_tokens=9,
            stop=["a", "", "b"],
            seed=-7,
            logprobs=True,
            top_logprobs=3,
            logit_bias={"50": -100},
            reasoning_effort="low",
            n=2,
        )
        assert request.choices == 2
        assert request.sampling == Sampling(
            max_tokens=9,
            temperature=0,
            top_p=1,
            top_k=40,
            frequency_penalty=-2,
            presence_penalty=1.5,
            stop=("a", "b"),
            seed=-7,
            top_logprobs=3,
            logit_bias={"50": -100},
            reasoning_effort="low",
        )

    async def test_log_probabilities_without_alternatives_are_none_of_zero(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        assert (await asked(edge, client, logprobs=True)).sampling.top_logprobs == 0
        assert (await asked(edge, client, logprobs=False)).sampling.top_logprobs is None

    async def test_one_stop_text_is_a_list_of_one(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        assert (await asked(edge, client, stop="END")).sampling.stop == ("END",)

    async def test_context_options_arrive(self, edge: Edge, client: httpx.AsyncClient) -> None:
        request = await asked(
            edge,
            client,
            use_context=True,
            context_filter={"docs_ids": ["a", "b"], "metadata": {"year": 2023, "ok": True}},
            context_only=True,
            citation_style=["citations", "chunks"],
            system_prompt="Be kind.",
        )
        assert request == AnswerRequest(
            messages=(HI,),
            tenant="default",
            use_context=True,
            filter=DocumentFilter(ids=frozenset({"a", "b"}), metadata={"year": 2023, "ok": True}),
            cite=True,
            context_only=True,
            system_prompt="Be kind.",
        )

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, EVERYTHING),
            ({}, EVERYTHING),
            ({"docs_ids": None}, EVERYTHING),
            ({"docs_ids": []}, DocumentFilter(ids=frozenset())),
        ],
    )
    async def test_an_empty_list_of_ids_is_none_and_no_list_is_all(
        self, given: Any, expected: DocumentFilter, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        assert (await asked(edge, client, context_filter=given)).filter == expected

    @pytest.mark.parametrize(
        ("body", "cite"),
        [
            ({}, False),
            ({"citation_style": "chunks"}, False),
            ({"citation_style": []}, False),
            ({"citation_style": "citations"}, True),
            ({"citation_style": "annotations"}, True),
            ({"web_search": True}, True),
            ({"web_search": True, "citation_style": "chunks"}, True),
            ({"citation_style": "citations", "response_format": {"type": "json_object"}}, False),
            ({"citation_style": "citations", "response_format": {"type": "text"}}, True),
        ],
    )
    async def test_markers_are_written_for_the_views_that_need_them(
        self, body: dict[str, Any], cite: bool, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        assert (await asked(edge, client, **body)).cite is cite


class TestModels:
    async def test_a_profile_answers_where_the_request_is_silent(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        request = await asked(edge, client, model="private-gpt-docs")
        assert request.use_context
        assert request.cite
        request = await asked(edge, client, model="org/model:tag")
        assert (request.system_prompt, request.model) == ("Be brief.", "engine-x")

    async def test_the_request_overrules_the_profile(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        request = await asked(
            edge, client, model="private-gpt-docs", use_context=False, citation_style="chunks"
        )
        assert not request.use_context
        assert not request.cite

    @pytest.mark.parametrize("model", ["gpt-9", "", "all-minilm", "../x"])
    async def test_an_unknown_model_is_a_404(self, model: str, client: httpx.AsyncClient) -> None:
        for path, body in ((CHAT, HELLO), (COMPLETIONS, {"prompt": "Hi"})):
            response = await client.post(path, json={**body, "model": model})
            assert response.status_code == 404
            assert response.json()["error"]["code"] == "model_not_found"
            assert response.json()["error"]["param"] == "model"

    async def test_a_listed_model_that_writes_no_answers_is_told_so(
        self, client: httpx.AsyncClient
    ) -> None:
        response = await client.post(CHAT, json={**HELLO, "model": "all-minilm"})
        assert response.status_code == 404
        assert "writes no answers" in response.json()["error"]["message"]

    async def test_an_operator_may_let_every_id_mean_the_first(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.models = ModelCatalog(
            profiles=(ModelProfile(id="a", system_prompt="First."),), refuse_unknown=False
        )
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(edge.app()), base_url="http://x"
        ) as open_client:
            assert (await asked(edge, open_client, model="b")).system_prompt == "First."
            response = await open_client.post(
                "/v1/embeddings", json={"input": "x", "model": "anything"}
            )
            assert response.json()["model"] == "anything"


class TestDialects:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(
        ("dialect", "model", "name", "echoed"),
        [
            ("auto", None, "completion", "private-gpt"),
            ("auto", "org/model:tag", "chat.completion", "org/model:tag"),
            ("openai", None, "chat.completion", "private-gpt"),
            ("privategpt", "org/model:tag", "completion", "private-gpt"),
        ],
    )
    async def test_the_dialect_goes_by_the_presence_of_a_model(
        self,
        dialect: Any,
        model: str | None,
        name: str,
        echoed: str,
        stream: bool,
        new_client: NewClient,
    ) -> None:
        async with new_client(ApiOptions(dialect=dialect)) as client:
            body = {**HELLO, "stream": stream, **({"model": model} if model else {})}
            text = (await client.post(CHAT, json=body)).text
            kind = f"{name}.chunk" if stream else name
            assert f'"object":"{kind}"' in text
            assert f'"model":"{echoed}"' in text

    async def test_ids_say_which_endpoint_wrote_them(self, client: httpx.AsyncClient) -> None:
        chat = (await client.post(CHAT, json=HELLO)).json()["id"]
        legacy = (await client.post(COMPLETIONS, json={"prompt": "Hi"})).json()["id"]
        assert chat.startswith("chatcmpl-")
        assert legacy.startswith("cmpl-")


class TestMessages:
    async def test_roles_become_the_four_that_engines_know(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        messages = [
            {"role": "system", "content": "S"},
            {"role": "developer", "content": [{"type": "text", "text": "D"}]},
            {"content": None},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]},
        ]
        request = await asked(edge, client, messages=messages)
        assert request.messages == (
            Message(Role.SYSTEM, "S"),
            Message(Role.SYSTEM, "D"),
            Message(Role.USER, ""),
            Message(Role.ASSISTANT, "No."),
            Message(Role.USER, "a"),
        )

    async def test_a_round_of_tool_calls_is_taken_as_clients_send_it_back(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": ""}}
        messages = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
        ]
        request = await asked(edge, client, messages=messages)
        assert request.messages == (
            HI,
            Message(Role.ASSISTANT, tool_calls=(ToolCall("c1", "look_up", "{}"),)),
            Message(Role.TOOL, "42", tool_call_id="c1"),
        )

    async def test_the_deprecated_round_of_functions_gets_ids(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        messages = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "function_call": {"name": "look_up", "arguments": "{}"}},
            {"role": "function", "name": "look_up", "content": "42"},
        ]
        request = await asked(edge, client, messages=messages)
        (call,) = request.messages[1].tool_calls
        assert request.messages[2].tool_call_id == call.id
        assert request.messages[2].role is Role.TOOL

    @pytest.mark.parametrize("role", ["tool", "function"])
    async def test_a_tools_answer_without_its_call_is_refused(
        self, role: str, client: httpx.AsyncClient
    ) -> None:
        error = await refused(
            client, messages=[*HELLO["messages"], {"role": role, "tool_call_id": "c9"}]
        )
        assert error["param"] == "messages[1].tool_call_id"

    async def test_a_picture_in_the_request_is_handed_on(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        url = "data:image/png;base64,AA=="
        parts = [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        ]
        request = await asked(edge, client, messages=[{"content": parts}])
        assert request.messages[0].images == (Image(url, "low"),)

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}},
            {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
            {"type": "image_url", "image_url": {"url": "data:text/html,x"}},
            {"type": "image_url"},
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
            {"type": "file", "file": {"file_id": "x"}},
            {"type": "hologram"},
        ],
    )
    async def test_a_part_that_cannot_be_read_is_refused_by_its_place(
        self, part: dict[str, Any], client: httpx.AsyncClient
    ) -> None:
        content = [{"type": "text", "text": "x"}, part]
        error = await refused(client, messages=[{"content": content}])
        assert error["param"] == "messages[0].content[1]"
        assert error["code"] == "unsupported_parameter"

    async def test_addresses_of_pictures_pass_where_the_operator_allows_them(
        self, edge: Edge, new_client: NewClient
    ) -> None:
        part = {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}
        async with new_client(ApiOptions(remote_images=True)) as client:
            request = await asked(edge, client, messages=[{"content": [part]}])
            assert request.messages[0].images == (Image("https://example.org/x.png"),)
            local = {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}
            error = await refused(client, messages=[{"content": [local]}])
            assert error["param"] == "messages[0].content[0]"

    async def test_a_picture_may_be_a_bare_address(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        part = {"type": "image_url", "image_url": "data:image/png;base64,AA=="}
        request = await asked(edge, client, messages=[{"content": [part]}])
        assert request.messages[0].images == (Image("data:image/png;base64,AA=="),)


class TestTools:
    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            (None, None),
            ("none", "none"),
            ("required", "required"),
            (
                {"type": "function", "function": {"name": "look_up"}},
                {"type": "function", "function": {"name": "look_up"}},
            ),
        ],
    )
    async def test_functions_and_the_choice_among_them_arrive(
        self, choice: Any, expected: Any, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        request = await asked(
            edge, client, tools=[TOOL], tool_choice=choice, parallel_tool_calls=False
        )
        assert request.tooling == Tooling(
            tools=(TOOL,), tool_choice=expected, parallel_tool_calls=False
        )

    async def test_allowed_tools_are_a_selection(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        other = {"type": "function", "function": {"name": "other"}}
        choice = {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "look_up"}}],
            },
        }
        request = await asked(edge, client, tools=[TOOL, other], tool_choice=choice)
        assert request.tooling == Tooling(tools=(TOOL,), tool_choice="required")

    async def test_other_systems_search_tools_are_left_out(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        for foreign in ({"type": "web_search"}, {"type": "web_search_20250305"}):
            request = await asked(edge, client, tools=[foreign], tool_choice="auto")
            assert request.tooling == Tooling()
            assert not request.web_search

    async def test_a_function_of_that_name_is_the_callers_own(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        own = {"type": "function", "function": {"name": "web_search"}}
        request = await asked(edge, client, tools=[own])
        assert request.tooling.tools == (own,)
        assert not request.web_search

    async def test_deprecated_functions_become_tools(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        for choice, expected in (
            ("auto", "auto"),
            ({"name": "look_up"}, {"type": "function", "function": {"name": "look_up"}}),
        ):
            request = await asked(edge, client, functions=[FUNCTION], function_call=choice)
            assert request.tooling == Tooling(
                tools=(TOOL,), tool_choice=expected, parallel_tool_calls=False
            )

    @pytest.mark.parametrize(
        "body",
        [
            {"tools": [{"type": "custom", "custom": {"name": "x"}}]},
            {"tools": [{"type": "function"}]},
            {"tools": [{"type": "function", "function": {"name": "no spaces"}}]},
            {"tools": [TOOL] * 129},
            {"tool_choice": "required"},
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            {"tools": [TOOL], "tool_choice": {"type": "function"}},
            {"tools": [TOOL], "tool_choice": {"type": "custom"}},
            {"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}},
            {
                "tools": [TOOL],
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "auto",
                        "tools": [{"type": "function", "function": {"name": "unknown"}}],
                    },
                },
            },
            {"functions": [FUNCTION], "function_call": {"name": "unknown"}},
        ],
    )
    async def test_what_cannot_be_chosen_is_refused(
        self, body: dict[str, Any], client: httpx.AsyncClient
    ) -> None:
        await refused(client, **body)


class TestResponseFormat:
    async def test_schemas_arrive_as_they_were_sent(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        wanted = {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        }
        assert (await asked(edge, client, response_format=wanted)).response_format == wanted
        assert (
            await asked(edge, client, response_format={"type": "json_object"})
        ).response_format == {"type": "json_object"}
        assert (await asked(edge, client, response_format={"type": "text"})).response_format is None

    @pytest.mark.parametrize(
        "wanted",
        [
            {"type": "xml"},
            {"type": "json_schema"},
            {"type": "json_schema", "json_schema": {"schema": {}}},
            {"type": "json_schema", "json_schema": {"name": "n"}},
        ],
    )
    async def test_a_schema_needs_its_name_and_itself(
        self, wanted: Any, client: httpx.AsyncClient
    ) -> None:
        await refused(client, response_format=wanted)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"moderation": {"model": "m", "policy": {"mode": "block"}}}, "moderation"),
        ({"metadata": {str(n): "v" for n in range(17)}}, "metadata"),
    ],
)
async def test_what_must_not_be_ignored_in_silence_is_refused(
    body: dict[str, Any], param: str, client: httpx.AsyncClient
) -> None:
    assert (await refused(client, **body))["param"] == param


async def test_harmless_extras_are_taken(edge: Edge, client: httpx.AsyncClient) -> None:
    await asked(
        edge,
        client,
        modalities=["text"],
        moderation={"model": "m", "policy": None},
        metadata={"k": "v"},
        stream_options={"include_usage": True, "include_obfuscation": True},
    )


class TestCompletions:
    async def test_a_prompt_is_one_user_message(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        await client.post(
            COMPLETIONS,
            json={
                "prompt": ["Hi"],
                "system_prompt": "Be kind.",
                "use_context": True,
                "logprobs": 2,
                "max_tokens": 3,
                "best_of": 5,
                "suffix": "",
                "n": 2,
            },
        )
        assert edge.answers.requests == [
            AnswerRequest(
                messages=(HI,),
                tenant="default",
                use_context=True,
                choices=2,
                sampling=Sampling(max_tokens=3, top_logprobs=2),
                system_prompt="Be kind.",
            )
        ]

    async def test_several_prompts_are_answered_in_order_and_paid_together(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.answers.script = [
            AnswerStarted(),
            TextDelta("first", choice=0),
            TextDelta("second", choice=1),
            ChoiceFinished(FinishReason.STOP, choice=0),
            ChoiceFinished(FinishReason.LENGTH, choice=1),
            USAGE,
        ]
        response = await client.post(COMPLETIONS, json={"prompt": ["A", "B"], "n": 2, "echo": True})
        body = response.json()
        assert [
            (choice["index"], choice["text"], choice["finish_reason"]) for choice in body["choices"]
        ] == [
            (0, "Afirst", "stop"),
            (1, "Asecond", "length"),
            (2, "Bfirst", "stop"),
            (3, "Bsecond", "length"),
        ]
        assert body["usage"]["total_tokens"] == 2 * USAGE.usage.total_tokens
        assert [request.messages[0].text for request in edge.answers.requests] == ["A", "B"]

    async def test_a_stream_has_text_and_delta(self, client: httpx.AsyncClient) -> None:
        response = await client.post(
            COMPLETIONS, json={"prompt": "Hi", "stream": True, "model": "private-gpt"}
        )
        assert '"delta":{"content":"Hello"}' in response.text
        assert '"text":"Hello"' in response.text
        assert '"object":"text_completion"' in response.text

    async def test_the_model_is_told_what_follows_and_asked_for_what_is_between(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        await client.post(COMPLETIONS, json={"prompt": "def f():", "suffix": "return x"})
        (message,) = edge.answers.requests[-1].messages
        assert message.text.endswith("Before:\ndef f():\n\nAfter:\nreturn x")

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({"prompt": [1, 2, 3]}, "prompt"),
            ({"prompt": [[1, 2], [3]]}, "prompt"),
            ({"prompt": []}, "prompt"),
            ({"prompt": ["a", "b"], "n": 100}, "prompt"),
        ],
    )
    async def test_what_cannot_be_completed_is_refused(
        self, body: dict[str, Any], param: str, client: httpx.AsyncClient
    ) -> None:
        assert (await refused(client, COMPLETIONS, **body))["param"] == param


async def test_a_call_in_the_mouth_of_anybody_but_the_assistant_is_no_call(
    client: httpx.AsyncClient,
) -> None:
    call = {"name": "f", "arguments": "{}"}
    body = {"messages": [{"role": "user", "content": "Hi", "function_call": call}]}
    assert (await client.post(CHAT, json=body)).status_code == 200


async def test_the_address_of_a_source_is_as_the_client_reaches_this_server(
    edge: Edge, new_client: NewClient
) -> None:
    edge.answers.script = list(grounded_answer().events)
    body = {**HELLO, "use_context": True, "citation_style": ["annotations"]}
    for options, base in (
        (ApiOptions(), "http://gpt.test"),
        (ApiOptions(public_url="https://docs.example/gpt/"), "https://docs.example/gpt"),
    ):
        async with new_client(options) as client:
            reply = (await client.post(CHAT, json=body)).json()
        assert reply["sources"][0]["url"].startswith(f"{base}/v1/documents/doc-1?start=")
