"""From a conversation to a stream of answer events: retrieve, number, fit, generate."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    ChoiceFinished,
    FinishReason,
    GenerationBegun,
    GenerationEvent,
    GenerationFinished,
    Source,
    TextDelta,
    Usage,
    UsageCounted,
)
from privategpt.domain.conversation import (
    Attachment,
    GenerationRequest,
    JsonObject,
    Message,
    Role,
    Sampling,
    Tooling,
)
from privategpt.domain.documents import EVERYTHING, DocumentFilter, RetrievedChunk
from privategpt.domain.errors import InvalidRequest
from privategpt.domain.library import StateStore
from privategpt.domain.ports import EmbeddingModel, LanguageModel, Vector
from privategpt.domain.verification import Verifier
from privategpt.domain.websearch import WebResult
from privategpt.grounding.abstention import abstention
from privategpt.grounding.citations import Grounder, GroundingOptions
from privategpt.grounding.prompt import PromptStyle, compose, render_source
from privategpt.services.conversation_query import retrieval_query
from privategpt.services.grounded import GroundedReply
from privategpt.services.prompting import FittedPrompt, best_within, fit
from privategpt.services.retrieval import Retrieval
from privategpt.services.sources import number_attachments, number_results, number_sources
from privategpt.services.stopping import until_stopped
from privategpt.services.websearch import WebSearch

SEEDS_END = 2**63
"""Seeds are integers of 64 bits, with a sign."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A question with everything the caller may say about how it is answered.

    `choices` is OpenAI's `n`. `cite` puts markers into the text and citations into the events;
    without it the text carries none. `context_only` answers from the documents or not at all.
    `attachments` are always read and are the first sources. `tell_stop` says at which stop
    sequence the answer ended, which engines keep to themselves, and `tell_prompt` at its start how
    many tokens the prompt has, which they say at its end. With `whole_sentences` none is handed out
    in parts, for replies that are made of cited sentences.
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
    attachments: tuple[Attachment, ...] = ()
    tell_stop: bool = False
    whole_sentences: bool = False
    tell_prompt: bool = False

    @property
    def reads_sources(self) -> bool:
        """Whether the answer must rest on sources, as far as there are any."""
        return self.use_context or self.web_search or self.cite


class Answering:
    """Answers questions, from the library where asked to.

    At most `context_chunks` chunks of it are read, and of these, best first, as many as have
    `context_tokens` tokens together; None is as many as the model's window holds.

    With `remove_foreign_links`, links and images in an answer from the library that lead anywhere
    but to its sources are removed: a document may have put them into the model's mouth.
    """

    def __init__(
        self,
        *,
        llm: LanguageModel,
        embedding: EmbeddingModel,
        retrieval: Retrieval,
        web: WebSearch,
        state: StateStore,
        context_chunks: int,
        context_tokens: int | None = None,
        remove_foreign_links: bool = True,
        verifier: Verifier | None = None,
    ) -> None:
        self._llm = llm
        self._embedding = embedding
        self._retrieval = retrieval
        self._web = web
        self._state = state
        self._context_chunks = context_chunks
        self._context_tokens = context_tokens
        self._remove_foreign_links = remove_foreign_links
        self._verifier = verifier

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[AnswerEvent]:
        """The events of one answer, in the order of `domain/answers.py`.

        Before the first event: `InvalidRequest`, `ContextLengthExceeded`, `Unavailable`. Later
        only `Unavailable`. Closing the generator stops the engine.
        """
        retrieved = await self._retrieve(request)
        results = await self._search_web(request)
        found = bool(retrieved or results or request.attachments)
        if request.context_only and retrieved is not None and not found:
            for said in _abstain(request):
                yield said
            return
        prompt = await self._prompt(request, retrieved or [], results)
        started: AnswerStarted | None = AnswerStarted(
            sources=prompt.sources,
            retrieved=None if retrieved is None else _read_chunks(retrieved, prompt.sources),
            prompt_tokens=await self._llm.count_tokens(prompt.messages)
            if request.tell_prompt
            else None,
        )
        usage = Usage(prompt_tokens=0, completion_tokens=0)
        fingerprint: str | None = None
        for choice in range(request.choices):
            async with aclosing(self._choice(request, prompt, choice=choice)) as events:
                async for event in events:
                    if started is not None:
                        yield started
                        started = None
                    if isinstance(event, GenerationBegun):
                        continue
                    if isinstance(event, UsageCounted):
                        usage += event.usage
                        fingerprint = event.system_fingerprint
                    else:
                        yield event
        yield UsageCounted(usage, system_fingerprint=fingerprint)

    def _choice(
        self, request: AnswerRequest, prompt: FittedPrompt, *, choice: int
    ) -> AsyncGenerator[AnswerEvent | GenerationBegun]:
        """The events of one choice, its usage last."""
        if request.sampling.max_tokens == 0:
            return self._nothing(request, prompt, choice=choice)
        generation = self._llm.generate(_generation_request(request, prompt, choice=choice))
        if request.tell_stop and request.sampling.stop:
            generation = until_stopped(
                generation,
                request.sampling.stop,
                llm=self._llm,
                prompt=prompt.messages,
            )
        if not request.use_context and not (request.reads_sources and prompt.sources):
            return _as_it_is(generation, choice=choice)
        options = GroundingOptions(
            markers=not _is_structured(request),
            visible=request.cite,
            must_answer=request.context_only,
            whole_sentences=request.whole_sentences,
            addresses=_addresses(prompt.sources) if self._remove_foreign_links else None,
        )
        reply = GroundedReply(
            grounder=Grounder(
                prompt.sources,
                self._embed,
                question=retrieval_query(request.messages),
                options=options,
                verifier=self._verifier,
            ),
            state=self._state,
            tenant=request.tenant,
            choice=choice,
            abstention=abstention(_question(request)) if request.context_only else None,
        )
        return reply.events(generation)

    async def _nothing(
        self, request: AnswerRequest, prompt: FittedPrompt, *, choice: int
    ) -> AsyncGenerator[AnswerEvent | GenerationBegun]:
        """A reply of no tokens, which engines refuse to write."""
        read = await self._llm.count_tokens(prompt.messages)
        grounded = False if request.use_context else None
        yield ChoiceFinished(FinishReason.LENGTH, grounded=grounded, choice=choice)
        yield UsageCounted(Usage(prompt_tokens=read, completion_tokens=0))

    async def count_tokens(self, request: AnswerRequest) -> int:
        """Tokens of the prompt as it is before anything is searched for; tools by their JSON."""
        messages = compose(
            request.messages,
            number_attachments(request.attachments),
            system_prompt=request.system_prompt,
            style=_prompt_style(request),
        )
        if tools := request.tooling.tools:
            schemas = json.dumps([dict(tool) for tool in tools], ensure_ascii=False)
            messages = (replace(messages[0], text=f"{schemas}\n{messages[0].text}"), *messages[1:])
        return await self._llm.count_tokens(messages)

    async def _embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        return (await self._embedding.embed_passages(texts)).vectors

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

    async def _search_web(self, request: AnswerRequest) -> tuple[WebResult, ...]:
        if not request.web_search:
            return ()
        return await self._web.search(request.messages, tenant=request.tenant)

    async def _prompt(
        self,
        request: AnswerRequest,
        retrieved: Sequence[RetrievedChunk],
        results: Sequence[WebResult],
    ) -> FittedPrompt:
        """Of chunks that are one source together, and too long as such, only the best are read."""
        attached = number_attachments(request.attachments)
        chunks = retrieved
        while True:
            passages = await self._passages(chunks, tenant=request.tenant, after=len(attached))
            sources = attached + passages
            fitted = await fit(
                request.messages,
                sources + number_results(results, after=len(sources)),
                llm=self._llm,
                reply_tokens=request.sampling.max_tokens,
                system_prompt=request.system_prompt,
                style=_prompt_style(request),
                attached=len(attached),
            )
            if len(fitted.sources) > len(attached) or not _is_merged(passages, chunks):
                return fitted
            chunks = chunks[: len(chunks) // 2]

    async def _passages(
        self, chunks: Sequence[RetrievedChunk], *, tenant: str, after: int
    ) -> tuple[Source, ...]:
        """Sources of the best chunks that have `context_tokens` together; of one in any case."""
        while True:
            numbered = await number_sources(chunks, tenant=tenant, state=self._state, after=after)
            if self._context_tokens is None:
                return numbered
            kept = await best_within(self._context_tokens, numbered, llm=self._llm)
            if len(kept) != 1 or not _is_merged(kept, chunks):
                return kept
            read = await self._llm.count_text(render_source(kept[0]))
            if read <= self._context_tokens:
                return kept
            fewer = len(chunks) * self._context_tokens // read
            chunks = chunks[: min(max(fewer, 1), len(chunks) - 1)]


def _generation_request(
    request: AnswerRequest, prompt: FittedPrompt, *, choice: int
) -> GenerationRequest:
    """One choice is one generation; a seed moves with the choice, or all would be alike."""
    sampling = replace(request.sampling, stop=() if request.tell_stop else request.sampling.stop)
    if choice and sampling.seed is not None:
        seed = sampling.seed + choice
        sampling = replace(sampling, seed=seed if seed < SEEDS_END else seed - 2 * SEEDS_END)
    return GenerationRequest(
        messages=prompt.messages,
        sampling=sampling,
        tooling=request.tooling,
        response_format=request.response_format,
    )


def _is_merged(sources: Sequence[Source], chunks: Sequence[RetrievedChunk]) -> bool:
    """Whether the first of these sources is more than its best chunk."""
    return bool(sources) and len(sources[0].text) > len(chunks[0].chunk.text)


def _read_chunks(
    retrieved: Sequence[RetrievedChunk], sources: Sequence[Source]
) -> tuple[RetrievedChunk, ...]:
    """The retrieved chunks that are part of a source the model was given, best first."""
    return tuple(
        hit
        for hit in retrieved
        if any(
            source.document is not None
            and source.document.doc_id == hit.chunk.doc_id
            and source.start <= hit.chunk.start
            and hit.chunk.end <= source.end
            for source in sources
        )
    )


async def _as_it_is(
    generation: AsyncGenerator[GenerationEvent], *, choice: int
) -> AsyncGenerator[AnswerEvent | GenerationBegun]:
    """A reply that no source was asked for, untouched."""
    async with aclosing(generation) as events:
        async for event in events:
            if isinstance(event, GenerationFinished):
                yield ChoiceFinished(event.reason, choice=choice, stop_sequence=event.stop_sequence)
                yield UsageCounted(event.usage, event.system_fingerprint)
            elif isinstance(event, GenerationBegun):
                yield event
            else:
                yield replace(event, choice=choice) if choice else event


def _abstain(request: AnswerRequest) -> Iterator[AnswerEvent]:
    """The answer where nothing was found to answer from; the model is not asked."""
    yield AnswerStarted(sources=(), retrieved=())
    sentence = abstention(_question(request))
    for choice in range(request.choices):
        yield TextDelta(sentence, choice=choice)
        yield ChoiceFinished(FinishReason.STOP, grounded=False, choice=choice)
    yield UsageCounted(Usage(prompt_tokens=0, completion_tokens=0))


def _prompt_style(request: AnswerRequest) -> PromptStyle:
    """Markers are asked for where they are read, if only to check what the answer rests on."""
    cited = request.reads_sources and not _is_structured(request)
    return PromptStyle.CITED if cited else PromptStyle.PLAIN


def _is_structured(request: AnswerRequest) -> bool:
    """Whether the text is for a program to read, and so can carry no markers."""
    form = request.response_format
    return form is not None and form.get("type") not in (None, "text")


def _question(request: AnswerRequest) -> str:
    return next((m.text for m in reversed(request.messages) if m.role is Role.USER), "")


def _addresses(sources: Sequence[Source]) -> list[str]:
    """Where the sources themselves are on the web."""
    return [source.url for source in sources if source.url is not None]
