"""From question to events, over fakes of every port."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import pytest

from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    FinishReason,
    GenerationBegun,
    GenerationFinished,
    TextDelta,
    Usage,
    UsageCounted,
)
from privategpt.domain.conversation import Message, Role, Sampling
from privategpt.domain.documents import DocumentFilter
from privategpt.domain.errors import ContextLengthExceeded, EngineUnavailable, InvalidRequest
from privategpt.domain.websearch import WebResult
from privategpt.services.answering import AnswerRequest
from tests.fakes.language_model import ScriptedLanguageModel
from tests.fakes.websearch import FakeSearchEngine
from tests.fakes.wired import WiredLibrary

EventT = TypeVar("EventT")

PLAIN = "The pond has nine ducks."


@pytest.fixture
def library(tmp_path: Path) -> WiredLibrary:
    return WiredLibrary(folder=tmp_path)


def ask(text: str, **changes: object) -> AnswerRequest:
    request = AnswerRequest(messages=(Message(Role.USER, text),), tenant="ann")
    for name, value in changes.items():
        object.__setattr__(request, name, value)
    return request


async def answer(library: WiredLibrary, request: AnswerRequest) -> list[AnswerEvent]:
    async with aclosing(library.answering.answer(request)) as events:
        return [event async for event in events]


def only(events: Sequence[AnswerEvent], kind: type[EventT]) -> EventT:
    (found,) = (event for event in events if isinstance(event, kind))
    return found


async def test_a_reply_of_no_tokens_is_not_asked_for(library: WiredLibrary) -> None:
    events = await answer(library, ask("Hello?", sampling=Sampling(max_tokens=0)))
    assert events == [
        AnswerStarted(sources=(), retrieved=None, prompt_tokens=4),
        ChoiceFinished(FinishReason.LENGTH),
        UsageCounted(Usage(prompt_tokens=4, completion_tokens=0)),
    ]
    assert library.llm.requests == []


async def test_a_reply_of_no_tokens_that_asked_for_context_is_not_grounded(
    library: WiredLibrary,
) -> None:
    request = ask("Hello?", sampling=Sampling(max_tokens=0), use_context=True)
    finished = only(await answer(library, request), ChoiceFinished)
    assert finished == ChoiceFinished(FinishReason.LENGTH, grounded=False)


async def test_without_context_the_model_is_asked_as_it_is(library: WiredLibrary) -> None:
    events = await answer(library, ask("Hello?"))
    assert events == [
        AnswerStarted(sources=(), retrieved=None),
        TextDelta("Hello"),
        TextDelta(" there."),
        ChoiceFinished(FinishReason.STOP),
        UsageCounted(Usage(prompt_tokens=4, completion_tokens=2)),
    ]
    assert library.llm.requests[0].messages == (Message(Role.USER, "Hello?"),)


@pytest.mark.parametrize("asked", ["plainly", "with context", "until a stop", "for a choice more"])
async def test_an_answer_has_started_once_the_engine_reads_its_prompt(
    library: WiredLibrary, asked: str
) -> None:
    gate = asyncio.Event()
    library.llm = ScriptedLanguageModel(script=[GenerationBegun(), gate, "Nine ducks."])
    await library.add("pond.txt", "The pond has nine ducks.")
    request = ask(
        "How many ducks?",
        use_context=asked == "with context",
        tell_stop=asked == "until a stop",
        sampling=Sampling(stop=("END",)),
        choices=2 if asked == "for a choice more" else 1,
    )
    async with aclosing(library.answering.answer(request)) as events:
        assert isinstance(await anext(events), AnswerStarted)
        gate.set()
        rest = [event async for event in events]
    kinds = [type(event) for event in rest]
    assert kinds.count(ChoiceFinished) == request.choices
    assert not {AnswerStarted, GenerationBegun} & set(kinds)


async def test_what_was_found_is_given_to_the_model_and_told(library: WiredLibrary) -> None:
    await library.add("ducks.txt", "The pond has nine ducks.\fThe barn has two owls.")
    events = await answer(library, ask("How many ducks has the pond?", use_context=True))
    started = only(events, AnswerStarted)
    assert started.retrieved is not None
    assert started.retrieved[0].chunk.text == "The pond has nine ducks."
    assert [(s.number, s.title, s.text) for s in started.sources] == [
        (1, "ducks.txt", "The pond has nine ducks."),
        (2, "ducks.txt", "The barn has two owls."),
    ]
    prompt = library.llm.requests[0].messages[0]
    assert prompt.role is Role.SYSTEM
    assert "The pond has nine ducks." in prompt.text


async def test_a_text_that_two_files_have_is_read_once(library: WiredLibrary) -> None:
    await library.add("pond.txt", PLAIN)
    await library.add("copy.txt", PLAIN.replace("nine", "nine\n"))
    await library.add("more.txt", "The pond has nine ducks and a heron.")
    events = await answer(library, ask("How many ducks has the pond?", use_context=True))
    started = only(events, AnswerStarted)
    assert sorted(" ".join(source.text.split()) for source in started.sources) == [
        "The pond has nine ducks and a heron.",
        PLAIN,
    ]
    assert [source.number for source in started.sources] == [1, 2]
    assert started.retrieved is not None
    assert len(started.retrieved) == 2


async def test_adjacent_chunks_become_one_source_of_the_text_as_stored(
    library: WiredLibrary,
) -> None:
    sentences = [f"Sentence {n} " + "about the many ducks " * 30 + "of the pond." for n in range(3)]
    await library.add("ducks.txt", "  \n\n".join(sentences))
    events = await answer(library, ask("the many ducks of the pond", use_context=True))
    started = only(events, AnswerStarted)
    assert started.retrieved is not None
    assert len(started.retrieved) > 1
    (source,) = started.sources
    assert source.document is not None
    document = await library.state.document("ann", source.document.doc_id)
    assert source.text == document.text[source.start : source.end] == "  \n\n".join(sentences)


async def test_a_document_deleted_between_search_and_answer_is_not_read(
    library: WiredLibrary,
) -> None:
    sentences = [f"Sentence {n} " + "about the many ducks " * 30 + "of the pond." for n in range(3)]
    stored = await library.add("ducks.txt", "\n\n".join(sentences))
    await library.add("owls.txt", "The barn of the pond has two owls.")

    class Slow(FakeSearchEngine):
        async def search(self, query: str, *, limit: int) -> list[WebResult]:
            await library.ingestion.delete("ann", stored.file.file_id)
            return await FakeSearchEngine.search(self, query, limit=limit)

    library.search_engine = Slow()
    request = ask("the many ducks of the pond", use_context=True, web_search=True)
    started = only(await answer(library, request), AnswerStarted)
    assert [(one.number, one.title) for one in started.sources if one.document] == [(1, "owls.txt")]
    assert started.retrieved is not None
    assert [one.document.metadata["file_name"] for one in started.retrieved] == ["owls.txt"]


async def test_a_filter_that_allows_nothing_finds_nothing(library: WiredLibrary) -> None:
    await library.add("ducks.txt", "The pond has nine ducks.")
    none = DocumentFilter(ids=frozenset())
    events = await answer(library, ask("ducks?", use_context=True, filter=none))
    assert only(events, AnswerStarted) == AnswerStarted(sources=(), retrieved=())


async def test_another_tenants_documents_are_not_found(library: WiredLibrary) -> None:
    await library.add("ducks.txt", "The pond has nine ducks.", tenant="bob")
    events = await answer(library, ask("ducks?", use_context=True))
    assert only(events, AnswerStarted).retrieved == ()


async def test_a_follow_up_finds_what_the_first_question_was_about(library: WiredLibrary) -> None:
    await library.add("a.txt", "The Aldgate bridge project has a budget of nine million.")
    await library.add("b.txt", "The gardening club meets on Tuesday and has a budget of ten.")
    library.context_chunks = 1
    turns = (
        Message(Role.USER, "What is the Aldgate bridge project?"),
        Message(Role.ASSISTANT, "A project to rebuild a bridge."),
        Message(Role.USER, "And its budget?"),
    )
    events = await answer(library, ask("", messages=turns, use_context=True))
    retrieved = only(events, AnswerStarted).retrieved
    assert retrieved is not None
    assert ["Aldgate" in hit.chunk.text for hit in retrieved] == [True]


async def test_context_for_a_conversation_without_a_question_is_refused(
    library: WiredLibrary,
) -> None:
    turns = (Message(Role.SYSTEM, "Be kind."),)
    with pytest.raises(InvalidRequest, match="user message"):
        await answer(library, ask("", messages=turns, use_context=True))


async def test_an_index_that_cannot_look_is_an_error_and_not_an_empty_answer(
    library: WiredLibrary,
) -> None:
    await library.add("ducks.txt", "The pond has nine ducks.")
    library.index.failure = EngineUnavailable("down")
    with pytest.raises(EngineUnavailable):
        await answer(library, ask("ducks?", use_context=True))
    assert library.llm.requests == []


async def test_an_engine_that_cannot_start_fails_before_the_first_event(
    library: WiredLibrary,
) -> None:
    library.llm.failing = EngineUnavailable("down")
    async with aclosing(library.answering.answer(ask("Hello?"))) as events:
        with pytest.raises(EngineUnavailable):
            await anext(events)


async def test_closing_the_answer_closes_the_engines_reply(library: WiredLibrary) -> None:
    async with aclosing(library.answering.answer(ask("Hello?"))) as events:
        await anext(events)
        assert library.llm.open_replies == 1
    assert library.llm.open_replies == 0


async def test_choices_are_generated_one_after_the_other_with_seeds_of_their_own(
    library: WiredLibrary,
) -> None:
    await answer(library, ask("Hello?", choices=2, sampling=Sampling(seed=2**63 - 1)))
    assert [r.sampling.seed for r in library.llm.requests] == [2**63 - 1, -(2**63)]
    library.llm.requests.clear()
    request = ask("Hello?", choices=2, sampling=Sampling(seed=7))
    events = await answer(library, request)
    assert [e.choice for e in events if isinstance(e, TextDelta)] == [0, 0, 1, 1]
    assert [r.sampling.seed for r in library.llm.requests] == [7, 8]
    assert only(events, UsageCounted).usage == Usage(prompt_tokens=8, completion_tokens=4)


async def test_the_lowest_ranked_sources_go_first_where_the_window_is_small(
    library: WiredLibrary,
) -> None:
    pages = "\f".join(f"Ducks number {n}. " + f"pond{n} " * 40 for n in range(4))
    await library.add("ducks.txt", pages)
    library.llm = ScriptedLanguageModel(context_tokens=260)
    events = await answer(library, ask("Ducks number 2 pond2", use_context=True))
    started = only(events, AnswerStarted)
    assert started.retrieved is not None
    assert 1 <= len(started.sources) < 4
    assert len(started.retrieved) == len(started.sources)
    assert started.sources[0].text.startswith("Ducks number 2.")


async def test_only_the_best_sources_are_read_that_a_slow_engine_reads_in_time(
    library: WiredLibrary,
) -> None:
    pages = "\f".join(f"Ducks number {n}. " + f"pond{n} " * 40 for n in range(4))
    await library.add("ducks.txt", pages)
    read: dict[int, AnswerStarted] = {}
    for budget in (1, 130, 10_000):
        library.context_tokens = budget
        events = await answer(library, ask("Ducks number 2 pond2", use_context=True))
        read[budget] = only(events, AnswerStarted)
    assert {budget: len(started.sources) for budget, started in read.items()} == {
        1: 1,
        130: 2,
        10_000: 4,
    }
    for started in read.values():
        assert started.retrieved is not None
        assert len(started.retrieved) == len(started.sources)
        assert started.sources[0].text.startswith("Ducks number 2.")


@pytest.mark.parametrize(
    ("window", "budget", "chunks"),
    [(4096, None, 4), (4096, 1100, 4), (4096, 800, 3), (4096, 300, 1), (4096, 10, 1),
     (1100, None, 2), (600, None, 1), (200, None, 0)],
)  # fmt: skip
async def test_of_chunks_that_are_one_source_as_many_are_read_as_may(
    library: WiredLibrary, window: int, budget: int | None, chunks: int
) -> None:
    sentences = [f"Sentence {n} " + "about many ducks " * 81 + "of the pond." for n in range(4)]
    await library.add("ducks.txt", "\n\n".join(sentences))
    library.llm = ScriptedLanguageModel(context_tokens=window)
    library.context_tokens = budget
    started = only(await answer(library, ask("many ducks", use_context=True)), AnswerStarted)
    assert started.retrieved is not None
    words = sum(len(source.text.split()) for source in started.sources)
    assert (words / 248, len(started.retrieved)) == (chunks, chunks)


async def test_the_engine_does_not_count_what_surely_fits(library: WiredLibrary) -> None:
    library.llm = ScriptedLanguageModel(script=[GenerationFinished(FinishReason.STOP, Usage(0, 0))])
    for window, question, counts in ((4096, "Why?", 0), (4096, "why " * 800, 1), (100, "Why?", 1)):
        library.llm.context_tokens = window
        library.llm.counted.clear()
        await answer(library, ask(question))
        assert len(library.llm.counted) == counts


async def test_a_long_conversation_does_not_cost_the_best_source(library: WiredLibrary) -> None:
    await library.add("ducks.txt", PLAIN)
    await library.add("more.txt", "The pond has a heron and ducks. " * 20)
    library.llm = ScriptedLanguageModel(context_tokens=300)
    old = tuple(
        message
        for n in range(9)
        for message in (Message(Role.USER, f"old {n}"), Message(Role.ASSISTANT, "reply " * 50))
    )
    question = Message(Role.USER, "How many ducks has the pond?")
    events = await answer(library, ask("", messages=(*old, question), use_context=True))
    started = only(events, AnswerStarted)
    assert [source.text for source in started.sources] == [PLAIN]
    sent = library.llm.requests[0].messages
    assert sent[1:] == (*old[-len(sent) + 2 :], question)
    assert len(sent) > 2
    long = Message(Role.USER, "How many ducks has the pond? " + "quack " * 190)
    events = await answer(library, ask("", messages=(*old, long), use_context=True))
    assert only(events, AnswerStarted).sources == ()
    assert library.llm.requests[1].messages == (long,)


async def test_the_oldest_turns_go_next_with_their_replies(library: WiredLibrary) -> None:
    library.llm = ScriptedLanguageModel(context_tokens=60)
    turns = (
        Message(Role.SYSTEM, "Be kind."),
        Message(Role.USER, "old " * 20),
        Message(Role.ASSISTANT, "reply " * 20),
        Message(Role.USER, "new " * 10),
    )
    await answer(library, ask("", messages=turns))
    assert library.llm.requests[0].messages == (turns[0], turns[3])


@pytest.mark.parametrize("window", [60, 1500, 4000, 11_000])
async def test_of_very_many_turns_as_few_go_as_must_and_few_counts_tell_how_many(
    library: WiredLibrary, window: int
) -> None:
    library.llm = ScriptedLanguageModel(context_tokens=window)
    turns = [
        message
        for n in range(999)
        for message in (Message(Role.USER, f"question {n}"), Message(Role.ASSISTANT, f"reply {n}"))
    ]
    await answer(library, ask("", messages=(*turns, Message(Role.USER, "Why?"))))
    kept = library.llm.requests[0].messages
    room = window - min(1024, window // 4)
    assert kept == (*turns[len(turns) - len(kept) + 1 :], Message(Role.USER, "Why?"))
    assert await library.llm.count_tokens(kept) <= room
    assert len(kept) == 1999 or await library.llm.count_tokens(kept) + 2 * 5 > room
    assert len(library.llm.counted) < 30


async def test_a_question_that_cannot_fit_is_refused_with_the_numbers(
    library: WiredLibrary,
) -> None:
    library.llm = ScriptedLanguageModel(context_tokens=60)
    with pytest.raises(ContextLengthExceeded, match=r"103 tokens.*60 tokens.*45"):
        await answer(library, ask("word " * 100))
