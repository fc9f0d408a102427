"""Strategies for whole answers, and answers with sources, for tests of encoders."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    Citation,
    CitationsFound,
    FinishReason,
    ReasoningDelta,
    Source,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
    TopLogprob,
    Usage,
    UsageCounted,
)
from privategpt.domain.documents import DocumentInfo
from tests.fakes.edge import document_info, retrieved_chunk

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
COUNT = st.integers(0, 9)


def source(number: int, *, document: DocumentInfo | None = None, text: str = "It is so.") -> Source:
    """A passage of `doc-<number>` that starts at character 10."""
    return Source(
        number=number,
        title=f"Title {number}",
        text=text,
        document=document or document_info(f"doc-{number}", author="A. Author", year=1999),
        start=10,
        end=10 + len(text),
        heading_path=("Part",),
    )


def web_source(number: int) -> Source:
    """A result of a web search."""
    text = "It is so."
    return Source(
        number=number,
        title=f"Page {number}",
        text=text,
        document=None,
        start=0,
        end=len(text),
        url=f"https://example.org/{number}",
        year=2026,
    )


def citation(of: Source, *, at: int) -> Citation:
    """A marker of one digit at `at`, resting on the first two words of the source."""
    cited = " ".join(of.text.split()[:2])
    return Citation(
        source=of,
        marker_start=at,
        marker_end=at + 3,
        start=of.start,
        end=of.start + len(cited),
        cited_text=cited,
        support=0.9,
        heading_path=("Part", "Section"),
        reference="§ 4" if of.number == 2 else None,
    )


@dataclass(frozen=True)
class GroundedAnswer:
    """An answer of one choice with three sources, two of them cited, one of these twice."""

    events: tuple[AnswerEvent, ...]
    text: str


def grounded_answer(*sources: Source, use_context: bool = True) -> GroundedAnswer:
    """Cites the second source, the first, and the second again."""
    first, second, third = sources or tuple(source(number) for number in (1, 2, 3))
    text = "B [2]. A 🙂 [1]. B again [2]."
    positions = [text.index("[2]"), text.index("[1]"), text.rindex("[2]")]
    citations = tuple(
        citation(of, at=at) for of, at in zip((second, first, second), positions, strict=True)
    )
    return GroundedAnswer(
        events=(
            AnswerStarted(
                sources=(first, second, third),
                retrieved=(retrieved_chunk(),) if use_context else None,
            ),
            TextDelta(text[:8]),
            TextDelta(text[8:]),
            CitationsFound(citations),
            ChoiceFinished(FinishReason.STOP, grounded=True),
            UsageCounted(Usage(prompt_tokens=5, completion_tokens=6)),
        ),
        text=text,
    )


@st.composite
def answers(draw: st.DrawFn, *, choices: int = 1) -> list[AnswerEvent]:
    """Any answer that keeps the order of `domain/answers.py`, its choices' deltas mixed."""
    sources = tuple(source(number + 1) for number in range(draw(st.integers(0, 3))))
    retrieved = draw(st.sampled_from([None, (), (retrieved_chunk(),)]))
    started = AnswerStarted(sources=sources, retrieved=retrieved)
    deltas = draw(st.permutations([d for choice in range(choices) for d in draw(_deltas(choice))]))
    ends: list[AnswerEvent] = []
    for choice in range(choices):
        cited: list[Source] = []
        if sources:
            cited = draw(st.lists(st.sampled_from(sources), max_size=4))
        found_none: bool = draw(st.booleans())
        if cited or found_none:
            found = tuple(citation(of, at=4 * place) for place, of in enumerate(cited))
            ends.append(CitationsFound(found, choice=choice))
        grounded = draw(st.sampled_from([None, True, False]))
        reason = draw(st.sampled_from(FinishReason))
        ends.append(ChoiceFinished(reason, grounded=grounded, choice=choice))
    usage = Usage(*(draw(COUNT) for _ in range(4)))
    fingerprint = draw(st.sampled_from([None, "fp_1"]))
    return [started, *deltas, *ends, UsageCounted(usage, system_fingerprint=fingerprint)]


def _deltas(choice: int) -> st.SearchStrategy[list[AnswerEvent]]:
    text = st.builds(TextDelta, TEXT, _logprobs(), choice=st.just(choice))
    thought = st.builds(ReasoningDelta, TEXT, choice=st.just(choice))
    call = st.builds(
        ToolCallDelta,
        index=st.integers(0, 1),
        arguments=TEXT,
        id=st.sampled_from([None, "call_1"]),
        name=st.sampled_from([None, "look_up"]),
        choice=st.just(choice),
    )
    return st.lists(st.one_of(text, thought, call), max_size=6)


def _logprobs() -> st.SearchStrategy[tuple[TokenLogprob, ...]]:
    number = st.floats(-20, 0)
    octets = st.sampled_from([None, (65,), (240, 159)])
    top = st.builds(TopLogprob, TEXT, number, octets)
    token = st.builds(TokenLogprob, TEXT, number, octets, st.lists(top, max_size=2).map(tuple))
    return st.lists(token, max_size=2).map(tuple)
