"""An answer is a stream of events; a reply in one piece is a fold of that stream.

Every event of a choice carries `choice`, its 0-based index. The order within one answer:
one `AnswerStarted`; then for each choice its deltas, at most one `CitationsFound` and one
`ChoiceFinished`; last, one `UsageCounted`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from privategpt.domain.documents import DocumentInfo, RetrievedChunk
from privategpt.domain.verification import Verification


class FinishReason(StrEnum):
    """Why a choice ended, in OpenAI's words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered unit that the model read. `number` is 1-based within one answer: marker `[n]`.

    A passage has its `document`, and `text` is `document_text[start:end]`, as stored; a web result
    has none, and its `text` is the search engine's extract; nor has an attachment, whose `text` is
    the whole of it. `url` is where a person finds the source on the web: always set for a web
    result, for a passage where it was given at ingestion. `context` is read before the text and
    never cited (see `Chunk`).
    """

    number: int
    title: str
    text: str
    document: DocumentInfo | None
    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    url: str | None = None
    year: int | None = None
    context: str = ""


@dataclass(frozen=True, slots=True)
class TopLogprob:
    """An alternative at one position, with its log probability and its UTF-8 bytes."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token the model wrote, with the alternatives it considered."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top: tuple[TopLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text.

    `citations` are those whose markers are in this piece, each with its whole sentence, for
    dialects that cite as they go; `CitationsFound` has them all again, with their places' names.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()
    choice: int = 0
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of what a reasoning model thinks aloud; never part of the answer's text."""

    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call. `id` and `name` are set in the first delta of a call only.

    `index` counts the calls of one reply from 0.
    """

    index: int
    arguments: str = ""
    id: str | None = None
    name: str | None = None
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the engine counted them."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class GenerationFinished:
    """The engine's last word on one reply: why it ended, what it counted.

    `stop_sequence` is the stop text that ended it, where that is known.
    """

    reason: FinishReason
    usage: Usage
    system_fingerprint: str | None = None
    stop_sequence: str | None = None


@dataclass(frozen=True, slots=True)
class GenerationBegun:
    """The engine has taken the prompt and reads it, which may take it seconds."""


GenerationEvent: TypeAlias = (
    GenerationBegun | TextDelta | ReasoningDelta | ToolCallDelta | GenerationFinished
)
"""What a language model yields: `GenerationBegun` first where it tells, then deltas, then exactly
one `GenerationFinished`, last."""


@dataclass(frozen=True, slots=True)
class AnswerStarted:
    """Retrieval is done and the model has begun: what it was given to read.

    `retrieved` is None where no context was asked for (seed 004 tells the two apart).
    `prompt_tokens` is counted where the caller asked for it; the engine tells it last, in
    `UsageCounted`.
    """

    sources: tuple[Source, ...] = ()
    retrieved: tuple[RetrievedChunk, ...] | None = None
    prompt_tokens: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Citation:
    """A marker with its evidence.

    The answer's text has the marker `[source.number]` at `marker_start:marker_end`;
    `document_text[start:end] == cited_text` in the source's document. `support` is 0–1.
    `heading_path` and `reference` (a paragraph's own number) are those of that place. The sentence
    of the answer that is supported is at `sentence_start:sentence_end`, white space behind it
    included.
    """

    source: Source
    marker_start: int
    marker_end: int
    start: int
    end: int
    cited_text: str
    support: float
    heading_path: tuple[str, ...] = ()
    reference: str | None = None
    sentence_start: int = 0
    sentence_end: int = 0
    verification: Verification | None = None


@dataclass(frozen=True, slots=True)
class CitationsFound:
    """All citations of one choice, in order of appearance; sent once, before its end."""

    citations: tuple[Citation, ...]
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ChoiceFinished:
    """A choice has ended. `grounded` is None where no context was asked for, or where tools are
    called and nothing is supported yet; `stop_sequence` where it ended otherwise or nobody asked.
    `markers_removed` are those that named no source, or one that says something else.
    """

    reason: FinishReason
    grounded: bool | None = None
    choice: int = 0
    stop_sequence: str | None = None
    markers_removed: int = 0


@dataclass(frozen=True, slots=True)
class UsageCounted:
    """What the whole answer cost, all choices together; always the last event."""

    usage: Usage
    system_fingerprint: str | None = None


AnswerEvent: TypeAlias = (
    AnswerStarted
    | TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | CitationsFound
    | ChoiceFinished
    | UsageCounted
)
