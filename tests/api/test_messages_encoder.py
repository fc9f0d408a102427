"""Anthropic's events out of an answer's events: their order, their blocks, and their fold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.api.encode.anthropic import MessageEncoder, MessageHead
from privategpt.api.encode.anthropic_fold import MessageFold
from privategpt.api.encode.anthropic_places import (
    BlockDocument,
    PagedDocument,
    Place,
    TextDocument,
)
from privategpt.api.encode.views import Views
from privategpt.api.profiles import CitationStyle
from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    Citation,
    CitationsFound,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageCounted,
)
from tests.fakes.anthropic_events import message_of, text_of
from tests.fakes.events import answers, source, web_source

BASE = "http://gpt.test"
END: list[AnswerEvent] = [
    ChoiceFinished(FinishReason.STOP),
    UsageCounted(Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=2, reasoning_tokens=1)),
]


def encoder(places: Sequence[Place] = (), *, thinking: bool = True) -> MessageEncoder:
    styles = frozenset({CitationStyle.ANNOTATIONS})
    return MessageEncoder(
        head=MessageHead(id="msg_1", model="m"),
        views=Views(styles=styles, base_url=BASE),
        places=places,
        thinking=thinking,
    )


def encoded(
    events: Sequence[AnswerEvent], places: Sequence[Place] = (), *, thinking: bool = True
) -> list[dict[str, Any]]:
    """The events, checked against the message that the fold makes of them."""
    found = encoder(places, thinking=thinking)
    sent = [each for event in events for each in found.encode(event)]
    fold, again = MessageFold(), encoder(places, thinking=thinking)
    for event in events:
        fold.add(again.encode(event))
    # Through JSON, as nothing that is sent may change afterwards.
    received: list[dict[str, Any]] = json.loads(json.dumps(sent))
    assert without_inputs(message_of(received)) == without_inputs(fold.reply())
    return received


def without_inputs(message: dict[str, Any]) -> dict[str, Any]:
    blocks = [{k: v for k, v in block.items() if k != "input"} for block in message["content"]]
    return {**message, "content": blocks}


def content(events: Sequence[AnswerEvent], **options: Any) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = message_of(encoded(events, **options))["content"]
    return blocks


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "citations": None}


def call(index: int, arguments: str = "", name: str | None = None) -> ToolCallDelta:
    return ToolCallDelta(index, arguments, id=name and f"call_{index}", name=name)


def test_the_events_come_in_anthropics_order() -> None:
    sent = encoded([AnswerStarted(), TextDelta("Hel"), TextDelta("lo"), *END])
    assert [event["type"] for event in sent] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert sent[-2]["usage"] == {
        "input_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 2,
        "cache_creation": None,
        "output_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 1},
        "server_tool_use": None,
        "service_tier": "standard",
        "inference_geo": None,
    }


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (FinishReason.STOP, "end_turn"),
        (FinishReason.LENGTH, "max_tokens"),
        (FinishReason.TOOL_CALLS, "tool_use"),
        (FinishReason.CONTENT_FILTER, "refusal"),
    ],
)
def test_every_reason_has_anthropics_word(reason: FinishReason, word: str) -> None:
    message = message_of(encoded([AnswerStarted(), ChoiceFinished(reason), END[1]]))
    assert (message["stop_reason"], message["stop_sequence"]) == (word, None)


def test_an_answer_without_text_has_one_empty_block() -> None:
    assert content([AnswerStarted(), TextDelta(""), *END]) == [text("")]


def test_thoughts_are_a_block_of_their_own_where_they_are_asked_for() -> None:
    events = [AnswerStarted(), ReasoningDelta("Hm"), ReasoningDelta("."), TextDelta("Yes"), *END]
    assert content(events) == [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        text("Yes"),
    ]
    assert content(events, thinking=False) == [text("Yes")]


def test_calls_that_are_written_at_once_become_blocks_one_after_the_other() -> None:
    events = [
        AnswerStarted(),
        TextDelta("Let me look."),
        call(0, name="find"),
        call(1, '{"a"', name="read"),
        call(0, '{"b": 1'),
        TextDelta("Aside. "),
        call(1, ": 2}"),
        TextDelta("More."),
        call(0, "}"),
        *END,
    ]
    found = content(events)
    assert [(block["type"], block.get("name")) for block in found] == [
        ("text", None),
        ("tool_use", "find"),
        ("tool_use", "read"),
        ("text", None),
    ]
    calls = [block for block in found if block["type"] == "tool_use"]
    assert [(block["id"], block["input"]) for block in calls] == [
        ("call_0", {"b": 1}),
        ("call_1", {"a": 2}),
    ]
    assert calls[0]["caller"] == {"type": "direct"}
    assert text_of({"content": found}) == "Let me look.Aside. More."


@pytest.mark.parametrize(
    "written",
    [
        '{"a": ',
        "[1]",
        '"word"',
        '{"a": NaN, "b": "\\ud800"}',
        '{"a": 1e999}',
        '{"a": ' * 3000,
        '{"a": ' * 3000 + "1" + "}" * 3000,
        '{"a": "\ud800"}',
    ],
    ids=lambda written: written[:12].encode("ascii", "replace").decode(),
)
def test_arguments_that_are_no_object_are_handed_on_as_text(written: str) -> None:
    fold, found = MessageFold(), encoder()
    for event in [AnswerStarted(), call(0, written, name="find"), *END]:
        fold.add(found.encode(event))
    assert fold.reply()["content"][0]["input"] == {"INVALID_JSON": written}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert content([AnswerStarted(), call(0, name="find"), *END])[0]["input"] == {}


def test_what_the_client_sent_is_not_among_the_sources() -> None:
    sources = (source(1), web_source(2))
    events = [AnswerStarted(sources=sources), TextDelta("Yes"), *END]
    places = [TextDocument(0, "A")]
    assert "sources" not in message_of(encoded([AnswerStarted(sources=sources[:1]), *END], places))
    shown = message_of(encoded(events, places))["sources"]
    assert [entry["index"] for entry in shown] == [1, 2]


def cited(place: Place, start: int, end: int) -> dict[str, Any]:
    citation = Citation(source(1), 4, 7, start, end, "text", 0.9, sentence_end=8)
    events = [AnswerStarted(), TextDelta("Yes [1].", citations=(citation,)), *END]
    found: list[dict[str, Any]] = content(events, places=[place])[0]["citations"]
    return found[0]


@pytest.mark.parametrize(
    ("start", "end", "pages"),
    [(0, 5, (2, 3)), (0, 10, (2, 3)), (5, 12, (2, 5)), (10, 20, (4, 5)), (12, 99, (4, 5))],
)
def test_a_place_in_a_paged_document_is_its_pages(
    start: int, end: int, pages: tuple[int, int]
) -> None:
    found = cited(PagedDocument(0, None, ((0, 2), (10, 4))), start, end)
    assert (found["start_page_number"], found["end_page_number"]) == pages


@pytest.mark.parametrize(
    ("start", "end", "blocks", "words"),
    [(0, 3, (0, 1), "abc"), (5, 8, (1, 2), "def"), (2, 6, (0, 2), "abcdef"), (3, 5, (0, 1), "abc")],
)
def test_a_place_in_blocks_is_whole_blocks(
    start: int, end: int, blocks: tuple[int, int], words: str
) -> None:
    found = cited(BlockDocument(0, None, ((0, "abc"), (5, "def"))), start, end)
    assert (found["start_block_index"], found["end_block_index"]) == blocks
    assert found["cited_text"] == words


@given(events=answers())
def test_any_answer_keeps_its_text_and_the_order_of_events(events: list[AnswerEvent]) -> None:
    called = any(isinstance(event, ToolCallDelta) for event in events)
    found = encoder()
    sent = [each for event in events for each in found.encode(event)]
    opened: list[int] = []
    for event in sent:
        if event["type"] == "content_block_start":
            opened.append(event["index"])
        elif event["type"].startswith("content_block"):
            assert event["index"] == opened[-1]
    assert opened == list(range(len(opened)))
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    deltas = [event["delta"] for event in sent if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == said
    if called:
        written = "".join(e.arguments for e in events if isinstance(e, ToolCallDelta))
        parts = "".join(delta.get("partial_json", "") for delta in deltas)
        assert sorted(parts) == sorted(written)


SENTENCES = st.lists(
    st.tuples(st.sampled_from(["Sun 🌞", "Rain at 8°", "Wind"]), st.integers(0, 2)), max_size=6
)


@given(sentences=SENTENCES, cut=st.lists(st.integers(1, 3), max_size=6))
def test_blocks_are_the_cited_sentences_however_many_come_at_once(
    sentences: list[tuple[str, int]], cut: list[int]
) -> None:
    pieces, citations = sentence_deltas(sentences)
    one = TextDelta("".join(pieces), citations=tuple(c for each in citations for c in each))
    whole = content([AnswerStarted(), one, CitationsFound(one.citations), *END])
    grouped: list[AnswerEvent] = []
    at = 0
    for size in [*cut, len(pieces)]:
        words, found = pieces[at : at + size], citations[at : at + size]
        flat = tuple(c for each in found for c in each)
        grouped.append(TextDelta("".join(words), citations=flat))
        at += size
    assert content([AnswerStarted(), *grouped, *END]) == whole
    assert "".join(block["text"] for block in whole) == one.text
    shown = [block for block in whole if block["citations"]]
    assert [block["text"] for block in shown] == [
        piece for piece, found in zip(pieces, citations, strict=True) if found
    ]


def sentence_deltas(
    sentences: Sequence[tuple[str, int]],
) -> tuple[list[str], list[tuple[Citation, ...]]]:
    """Sentences with so many markers each, and the citations of each."""
    pieces: list[str] = []
    citations: list[tuple[Citation, ...]] = []
    begun = 0
    for words, count in sentences:
        piece = f"{words}{'[1]' * count}. "
        end = begun + len(piece)
        starts = [begun + len(words) + 3 * number for number in range(count)]
        citations.append(
            tuple(
                Citation(
                    web_source(1), at, at + 3, 0, 9, "It is so.", 0.9,
                    sentence_start=begun, sentence_end=end,
                )
                for at in starts
            )
        )  # fmt: skip
        pieces.append(piece)
        begun = end
    return pieces, citations
