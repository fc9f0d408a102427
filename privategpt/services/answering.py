"""From a conversation to a stream of answer events: retrieve, number, fit, generate."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from privategpt.domain.answers import (
    AnswerEvent,
)
from privategpt.domain.conversation import (
    JsonObject,
    Message,
    Sampling,
    Tooling,
)
from privategpt.domain.documents import EVERYTHING, DocumentFilter


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A question with everything the caller may say about how it is answered.

    `choices` is OpenAI's `n`. `cite` puts markers into the text and citations into the events;
    without it the text carries none. `context_only` answers from the documents or not at all.
    """

    messages: tuple[Message, ...]
    tenant: str
    model: str | None = None
    use_context: bool = False
    filter: DocumentFilter = EVERYTHING
    cite: bool = False
    context_only: bool = False
    web_search: bool = False
    choices: int = 1
    sampling: Sampling = Sampling()
    tooling: Tooling = Tooling()
    response_format: JsonObject | None = None
    system_prompt: str | None = None


class Answering:
    """Answers questions, from the library where asked to."""

    def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """The events of one answer, in the order of `domain/answers.py`.

        Before the first event: `InvalidRequest`, `ContextLengthExceeded`, `Unavailable`. Later
        only `Unavailable`. Closing the generator stops the engine.
        """
        raise NotImplementedError
