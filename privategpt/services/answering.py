"""From a conversation to a stream of answer events: retrieve, number, fit, generate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    GenerationFinished,
    Source,
    Usage,
    UsageCounted,
)
from privategpt.domain.conversation import (
    GenerationRequest,
    JsonObject,
    Message,
    Role,
    Sampling,
    Tooling,
)
from privategpt.domain.documents import EVERYTHING, DocumentFilter, RetrievedChunk
from privategpt.domain.errors import InvalidRequest
from privategpt.domain.ports import LanguageModel, StateStore
from privategpt.services.conversation_query import retrieval_query
from privategpt.services.prompting import FittedPrompt, fit
from privategpt.services.retrieval import Retrieval
from privategpt.services.sources import number_sources


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

    def __init__(
        self,
        *,
        llm: LanguageModel,
        retrieval: Retrieval,
        state: StateStore,
        context_chunks: int,
    ) -> None:
        self._llm = llm
        self._retrieval = retrieval
        self._state = state
        self._context_chunks = context_chunks

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """The events of one answer, in the order of `domain/answers.py`.

        Before the first event: `InvalidRequest`, `ContextLengthExceeded`, `Unavailable`. Later
        only `Unavailable`. Closing the generator stops the engine.
        """
        retrieved = await self._retrieve(request)
        prompt = await self._prompt(request, retrieved or [])
        started: AnswerStarted | None = AnswerStarted(
            sources=prompt.sources,
            retrieved=None if retrieved is None else _read_chunks(retrieved, prompt.sources),
        )
        usage = Usage(prompt_tokens=0, completion_tokens=0)
        fingerprint: str | None = None
        for choice in range(request.choices):
            generation = self._llm.generate(_generation_request(request, prompt, choice=choice))
            async with aclosing(generation) as events:
                async for event in events:
                    if started is not None:
                        yield started
                        started = None
                    if isinstance(event, GenerationFinished):
                        usage += event.usage
                        fingerprint = event.system_fingerprint
                        yield ChoiceFinished(event.reason, choice=choice)
                    else:
                        yield replace(event, choice=choice)
        yield UsageCounted(usage, system_fingerprint=fingerprint)

    async def _retrieve(self, request: AnswerRequest) -> list[RetrievedChunk] | None:
        if not request.use_context:
            return None
        if not any(message.role is Role.USER for message in request.messages):
            raise InvalidRequest("use_context needs a user message to search for", param="messages")
        query = self._retrieval.fit_query(retrieval_query(request.messages))
        if not query:
            return []
        found = await self._retrieval.search(
            query, tenant=request.tenant, filter=request.filter, limit=self._context_chunks
        )
        return list(found.chunks)

    async def _prompt(
        self, request: AnswerRequest, retrieved: Sequence[RetrievedChunk]
    ) -> FittedPrompt:
        sources = await number_sources(retrieved, tenant=request.tenant, state=self._state)
        return await fit(
            request.messages,
            sources,
            llm=self._llm,
            reply_tokens=request.sampling.max_tokens,
            system_prompt=request.system_prompt,
        )


def _generation_request(
    request: AnswerRequest, prompt: FittedPrompt, *, choice: int
) -> GenerationRequest:
    """One choice is one generation; a seed moves with the choice, or all would be alike."""
    sampling = request.sampling
    if choice and sampling.seed is not None:
        sampling = replace(sampling, seed=sampling.seed + choice)
    return GenerationRequest(
        messages=prompt.messages,
        sampling=sampling,
        tooling=request.tooling,
        response_format=request.response_format,
    )


def _read_chunks(
    retrieved: Sequence[RetrievedChunk], sources: Sequence[Source]
) -> tuple[RetrievedChunk, ...]:
    """The retrieved chunks that are part of a source the model was given, best first."""
    return tuple(
        hit
        for hit in retrieved
        if any(
            source.document.doc_id == hit.chunk.doc_id
            and source.start <= hit.chunk.start
            and hit.chunk.end <= source.end
            for source in sources
        )
    )
