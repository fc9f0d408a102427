"""Chunks and replies: the same facts streamed and in one piece, in every view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.api.encode.openai_chat import ChatEncoder, ChatFold, ReplyHead
from privategpt.api.encode.openai_completion import CompletionEncoder, CompletionFold
from privategpt.api.encode.views import Views
from privategpt.api.profiles import CitationStyle
from privategpt.api.wire.replies import OpenAICompletion
from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
    TopLogprob,
    Usage,
    UsageCounted,
)
from tests.fakes.edge import document_info
from tests.fakes.events import answers, grounded_answer, source, web_source

STYLES = st.frozensets(st.sampled_from(CitationStyle))
ALL_VIEWS = Views(styles=frozenset(CitationStyle), base_url="http://gpt.test")


def reply_head(*, openai: bool = True) -> ReplyHead:
    return ReplyHead(id="chatcmpl-1", created=1772366400, model="private-gpt", openai=openai)


def chunks(
    events: Sequence[AnswerEvent], *, views: Views = ALL_VIEWS, **options: Any
) -> list[dict[str, Any]]:
    encoder = ChatEncoder(head=reply_head(), views=views, include_usage=True, **options)
    return [chunk for event in events for chunk in encoder.encode(event)]


def reply(encoded: list[dict[str, Any]]) -> dict[str, Any]:
    fold = ChatFold()
    fold.add(encoded)
    return fold.reply()


@given(data=st.data(), choices=st.integers(1, 3), styles=STYLES, include_sources=st.booleans())
def test_every_chunk_and_reply_is_as_declared_and_both_say_the_same(
    data: st.DataObject, choices: int, styles: frozenset[CitationStyle], include_sources: bool
) -> None:
    events = data.draw(answers(choices=choices))
    views = Views(styles=styles, base_url="http://gpt.test", include_sources=include_sources)
    encoded = chunks(events, views=views, choices=choices)
    whole = reply(encoded)
    for body in (*encoded, whole):
        declared = OpenAICompletion.model_validate(body)
        assert declared.model_dump(exclude_unset=True) == body

    for index in range(choices):
        message = whole["choices"][index]["message"]
        assert (message["content"] or "") == joined(events, TextDelta, index)
        assert (message["reasoning_content"] or "") == joined(events, ReasoningDelta, index)
        calls = [e for e in events if isinstance(e, ToolCallDelta) and e.choice == index]
        assert len(message.get("tool_calls", [])) == len({call.index for call in calls})
        arguments = "".join(c["function"]["arguments"] for c in message.get("tool_calls", []))
        assert sorted(arguments) == sorted("".join(call.arguments for call in calls))


def joined(events: Sequence[AnswerEvent], kind: type[TextDelta | ReasoningDelta], at: int) -> str:
    return "".join(e.text for e in events if isinstance(e, kind) and e.choice == at)


@given(data=st.data(), choices=st.integers(1, 3))
def test_the_canonical_order_holds_for_every_answer(data: st.DataObject, choices: int) -> None:
    encoded = chunks(data.draw(answers(choices=choices)), choices=choices)
    *rest, usage = encoded
    assert usage["choices"] == []
    assert "usage" in usage
    assert all("usage" not in chunk for chunk in rest)
    parts = [chunk["choices"][0] for chunk in rest]
    assert all("content" in part["delta"] for part in parts)
    assert parts[0]["index"] == 0
    for index in range(choices):
        own = [part for part in parts if part["index"] == index]
        assert [part for part in own if "role" in part["delta"]] == own[:1]
        assert [part for part in own if part["finish_reason"]] == own[-1:]
        annotated = [place for place, part in enumerate(own) if "annotations" in part["delta"]]
        assert annotated in ([], [len(own) - 2])
        assert [part for part in own if "sources" in part] == own[-1:]


def test_in_one_piece_every_prompts_answer_has_the_sources_of_that_prompt() -> None:
    first, second = web_source(1), web_source(2)
    encoder = ChatEncoder(head=reply_head(), views=ALL_VIEWS, choices=2, include_usage=True)
    events: list[AnswerEvent] = []
    for begin, found in ((0, first), (2, second)):
        events.append(AnswerStarted(sources=(found,)))
        events += [ChoiceFinished(FinishReason.STOP, choice=begin + at) for at in range(2)]
    events.append(UsageCounted(Usage(prompt_tokens=1, completion_tokens=1)))
    whole = reply([chunk for event in events for chunk in encoder.encode(event)])
    OpenAICompletion.model_validate(whole)
    shown = [choice["message"].get("sources", whole["sources"]) for choice in whole["choices"]]
    assert [numbered["url"] for (numbered,) in shown] == [
        "https://example.org/1",
        "https://example.org/1",
        "https://example.org/2",
        "https://example.org/2",
    ]


class TestViews:
    def test_chunks_are_privategpts(self) -> None:
        (finish,) = finishes(grounded_answer().events)
        assert finish["choices"][0]["sources"] == [
            {
                "object": "context.chunk",
                "score": 0.5,
                "document": {
                    "object": "ingest.document",
                    "doc_id": "doc-1",
                    "doc_metadata": {"file_name": "report.pdf", "page_label": "2"},
                },
                "text": "Sales grew 20%.",
                "previous_texts": None,
                "next_texts": None,
            }
        ]

    def test_citations_are_magisteriums(self) -> None:
        (finish,) = finishes(grounded_answer().events)
        assert [entry["document_index"] for entry in finish["citations"]] == [1, 0, 1]
        assert finish["citations"][1] == {
            "cited_text": "It is",
            "cited_text_heading": "Section",
            "document_title": "Title 1",
            "document_index": 0,
            "document_author": "A. Author",
            "document_year": "1999",
            "document_reference": "2",
            "source_url": "http://gpt.test/v1/documents/doc-1?start=10&end=15",
        }

    def test_annotations_are_shannons_one_per_cited_source_at_its_first_marker(self) -> None:
        answer = grounded_answer()
        encoded = chunks(answer.events)
        (annotated,) = [c for c in encoded if c["choices"] and "annotations" in delta(c)]
        annotations = delta(annotated)["annotations"]
        spans = [
            (entry["url_citation"]["start_index"], entry["url_citation"]["end_index"])
            for entry in annotations
        ]
        assert [answer.text[start:end] for start, end in spans] == ["[2]", "[1]"]
        assert spans[0][0] == answer.text.index("[2]")
        assert annotations[0] == {
            "type": "url_citation",
            "url_citation": {
                "start_index": spans[0][0],
                "end_index": spans[0][1],
                "url": "http://gpt.test/v1/documents/doc-2?start=10&end=19",
                "title": "Title 2",
            },
        }
        assert reply(encoded)["choices"][0]["message"]["annotations"] == annotations

    def test_numbered_sources_are_all_that_the_model_was_given_and_repeat_on_the_last_chunk(
        self,
    ) -> None:
        encoded = chunks(grounded_answer().events)
        finish, usage = encoded[-2:]
        assert finish["sources"] == [
            {
                "index": number,
                "title": f"Title {number}",
                "url": f"http://gpt.test/v1/documents/doc-{number}?start=10&end=19",
            }
            for number in (1, 2, 3)
        ]
        assert usage["sources"] == finish["sources"]
        assert reply(encoded)["sources"] == finish["sources"]

    def test_an_address_given_at_ingestion_is_the_address(self) -> None:
        given_url = "https://example.org/a?b=c"
        sources = [replace(source(number), url=given_url) for number in (1, 2, 3)]
        (finish,) = finishes(grounded_answer(*sources).events)
        assert {entry["source_url"] for entry in finish["citations"]} == {given_url}
        assert {entry["url"] for entry in finish["sources"]} == {given_url}

    def test_a_web_result_is_cited_by_its_own_address(self) -> None:
        answer = grounded_answer(*map(web_source, (1, 2, 3)), use_context=False)
        (finish,) = finishes(answer.events)
        assert finish["sources"][0] == {
            "index": 1,
            "title": "Page 1",
            "url": "https://example.org/1",
        }
        assert finish["citations"][1] == {
            "cited_text": "It is",
            "cited_text_heading": "Section",
            "document_title": "Page 1",
            "document_index": 0,
            "document_author": None,
            "document_year": "2026",
            "document_reference": None,
            "source_url": "https://example.org/1",
        }

    def test_where_there_is_no_page_the_reference_is_the_paragraphs_own_number(self) -> None:
        sources = [source(n, document=document_info(page_label="")) for n in (1, 2, 3)]
        (finish,) = finishes(grounded_answer(*sources).events)
        references = [entry["document_reference"] for entry in finish["citations"]]
        assert references == ["§ 4", None, "§ 4"]

    def test_an_id_cannot_leave_its_place_in_the_address(self) -> None:
        sources = [source(n, document=document_info("a/../b?x=1#é")) for n in (1, 2, 3)]
        (finish,) = finishes(grounded_answer(*sources).events)
        assert "/v1/documents/a%2F..%2Fb%3Fx%3D1%23%C3%A9?start=" in finish["sources"][0]["url"]

    @pytest.mark.parametrize(
        ("styles", "shown"),
        [
            ({CitationStyle.CHUNKS}, {"grounded", "choice sources"}),
            ({CitationStyle.CITATIONS}, {"grounded", "citations"}),
            ({CitationStyle.ANNOTATIONS}, {"grounded", "sources", "annotations"}),
            (set[CitationStyle](), {"grounded"}),
        ],
    )
    def test_a_reply_shows_the_styles_that_were_asked_for(
        self, styles: set[CitationStyle], shown: set[str]
    ) -> None:
        views = Views(styles=frozenset(styles), base_url="http://gpt.test")
        whole = reply(chunks(grounded_answer().events, views=views))
        choice = whole["choices"][0]
        found: set[str] = {key for key in ("grounded", "sources", "citations") if key in whole}
        found |= {"choice sources"} if choice["sources"] else set()
        found |= {"annotations"} if choice["message"]["annotations"] else set()
        assert found == shown

    def test_without_context_the_chunks_are_an_empty_list(self) -> None:
        events = grounded_answer(use_context=False).events
        (finish,) = finishes(events)
        assert finish["choices"][0]["sources"] == []

    def test_chunks_that_are_not_wanted_are_null(self) -> None:
        views = Views(styles=frozenset(CitationStyle), base_url="", include_sources=False)
        (finish,) = finishes(grounded_answer().events, views=views)
        assert finish["choices"][0]["sources"] is None

    def test_an_answer_without_support_says_so_and_shows_no_sources(self) -> None:
        ungrounded: list[AnswerEvent] = [
            AnswerStarted(sources=(source(1),), retrieved=()),
            TextDelta("I do not know."),
            ChoiceFinished(FinishReason.STOP, grounded=False),
        ]
        (finish,) = finishes(ungrounded)
        assert finish["grounded"] is False
        assert "sources" not in finish
        assert "citations" not in finish
        searched = Views(styles=ALL_VIEWS.styles, base_url="", web_search=True)
        (finish,) = finishes(ungrounded, views=searched)
        assert len(finish["sources"]) == 1

    def test_nothing_found_has_no_sources_key(self) -> None:
        (finish,) = finishes([AnswerStarted(), ChoiceFinished(FinishReason.STOP)])
        assert finish.keys() & {"sources", "citations", "grounded"} == set()


def delta(chunk: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = chunk["choices"][0]["delta"]
    return found


def finishes(events: Sequence[AnswerEvent], *, views: Views = ALL_VIEWS) -> list[dict[str, Any]]:
    encoded = chunks(events, views=views)
    return [c for c in encoded if c["choices"] and c["choices"][0]["finish_reason"]]


CALLS: list[AnswerEvent] = [
    AnswerStarted(),
    ToolCallDelta(index=0, id="call_a", name="look_up", arguments=""),
    ToolCallDelta(index=0, arguments='{"q":'),
    ToolCallDelta(index=0, arguments='"x"}'),
    ToolCallDelta(index=1, id="call_b", name="add", arguments="{}"),
    ChoiceFinished(FinishReason.TOOL_CALLS),
]


class TestToolCalls:
    def test_id_type_and_name_come_once_and_the_index_always(self) -> None:
        calls = [call for c in chunks(CALLS) for call in delta(c).get("tool_calls", [])]
        assert calls == [
            {
                "index": 0,
                "id": "call_a",
                "type": "function",
                "function": {"name": "look_up", "arguments": ""},
            },
            {"index": 0, "function": {"arguments": '{"q":'}},
            {"index": 0, "function": {"arguments": '"x"}'}},
            {
                "index": 1,
                "id": "call_b",
                "type": "function",
                "function": {"name": "add", "arguments": "{}"},
            },
        ]

    def test_the_reply_in_one_piece_has_whole_calls_and_null_content(self) -> None:
        choice = reply([*chunks(CALLS), usage_chunk()])["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] is None
        assert choice["message"]["tool_calls"] == [
            {
                "id": "call_a",
                "type": "function",
                "function": {"name": "look_up", "arguments": '{"q":"x"}'},
            },
            {"id": "call_b", "type": "function", "function": {"name": "add", "arguments": "{}"}},
        ]

    def test_the_deprecated_form_is_answered_in_kind(self) -> None:
        encoded = chunks(CALLS, function_call=True)
        choice = reply([*encoded, usage_chunk()])["choices"][0]
        assert choice["finish_reason"] == "function_call"
        assert choice["message"]["function_call"] == {"name": "look_up", "arguments": '{"q":"x"}'}
        assert "tool_calls" not in choice["message"]


def usage_chunk() -> dict[str, Any]:
    return chunks([*grounded_answer().events[-1:]])[0]


@pytest.mark.parametrize("logprob", [float("-inf"), float("nan")])
def test_a_log_probability_that_json_cannot_write_is_openais_stand_in(logprob: float) -> None:
    token = TokenLogprob("a", logprob, None, (TopLogprob("b", logprob),))
    (chunk,) = chunks([TextDelta("a", (token,))])
    (told,) = chunk["choices"][0]["logprobs"]["content"]
    assert told["logprob"] == told["top_logprobs"][0]["logprob"] == -9999.0


def test_usage_is_a_chunk_only_where_it_was_asked_for() -> None:
    encoder = ChatEncoder(head=reply_head(), views=ALL_VIEWS)
    events = grounded_answer().events
    encoded = [chunk for event in events for chunk in encoder.encode(event)]
    assert all(chunk["choices"] for chunk in encoded)


def test_the_dialects_differ_in_object_alone() -> None:
    replies: list[dict[str, Any]] = []
    for openai in (True, False):
        encoder = ChatEncoder(head=reply_head(openai=openai), views=ALL_VIEWS, include_usage=True)
        encoded = [chunk for event in grounded_answer().events for chunk in encoder.encode(event)]
        kinds = {chunk.pop("object") for chunk in (dict(c) for c in encoded)}
        assert kinds == {"chat.completion.chunk" if openai else "completion.chunk"}
        replies.append(reply(encoded))
    assert replies[0].pop("object") == "chat.completion"
    assert replies[1].pop("object") == "completion"
    assert replies[0] == replies[1]


class TestLegacyCompletions:
    @given(data=st.data(), choices=st.integers(1, 2), openai=st.booleans())
    def test_text_is_the_content_behind_the_echo_streamed_and_whole(
        self, data: st.DataObject, choices: int, openai: bool
    ) -> None:
        events = data.draw(answers(choices=choices))
        echoes = data.draw(st.lists(st.sampled_from(["", "Prompt: "]), min_size=choices))
        encoder = CompletionEncoder(
            ChatEncoder(
                head=reply_head(openai=openai),
                views=ALL_VIEWS,
                choices=choices,
                include_usage=True,
            ),
            echoes=echoes,
            openai=openai,
        )
        fold = CompletionFold()
        encoded = [chunk for event in events for chunk in encoder.encode(event)]
        fold.add(iter(encoded))
        whole = fold.reply()
        for body in (*encoded, whole):
            declared = OpenAICompletion.model_validate(body)
            assert declared.model_dump(exclude_unset=True) == body
        for choice in whole["choices"]:
            content = choice["message"]["content"] or ""
            assert choice["text"] == echoes[choice["index"]] + content
            streamed = [
                part["text"]
                for chunk in encoded
                for part in chunk["choices"]
                if part["index"] == choice["index"]
            ]
            assert "".join(streamed) == choice["text"]
        names = {chunk["object"] for chunk in encoded} | {whole["object"]}
        assert names == ({"text_completion"} if openai else {"completion.chunk", "completion"})

    def test_logprobs_are_four_lists_whose_offsets_count_in_the_text(self) -> None:
        def token(text: str) -> TokenLogprob:
            return TokenLogprob(text, -0.5, None, (TopLogprob("alt", -2.0),))

        events: list[AnswerEvent] = [
            AnswerStarted(),
            TextDelta("ab", (token("a"), token("b"))),
            TextDelta("cd", (token("cd"),)),
            ChoiceFinished(FinishReason.STOP),
            UsageCounted(Usage(prompt_tokens=1, completion_tokens=3)),
        ]
        chat = ChatEncoder(head=reply_head(), views=ALL_VIEWS, include_usage=True)
        encoder = CompletionEncoder(chat, echoes=["Hi"], openai=True)
        fold = CompletionFold()
        for event in events:
            fold.add(encoder.encode(event))
        assert fold.reply()["choices"][0]["logprobs"] == {
            "tokens": ["a", "b", "cd"],
            "token_logprobs": [-0.5, -0.5, -0.5],
            "top_logprobs": [{"alt": -2.0}] * 3,
            "text_offset": [2, 3, 4],
        }

    def test_a_heartbeat_has_an_empty_text(self) -> None:
        encoder = CompletionEncoder(
            ChatEncoder(head=reply_head(), views=ALL_VIEWS), echoes=[""], openai=True
        )
        assert encoder.heartbeat()["choices"][0]["text"] == ""
