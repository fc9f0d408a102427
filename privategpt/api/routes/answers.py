"""What both completion endpoints do with an answer: stream it, or send it in one piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from fastapi import Request, Response

from privategpt.api.deps import Answers, ApiOptions, Services, base_url, options_of, turns_of
from privategpt.api.disconnect import while_connected
from privategpt.api.encode.openai_chat import ReplyHead
from privategpt.api.encode.views import Json, Views
from privategpt.api.jsontext import JsonResponse
from privategpt.api.profiles import SEED_MODEL
from privategpt.api.sse import OPENAI, AnswerStream, StreamForm
from privategpt.api.turns import Turns
from privategpt.api.wire.answering import Answerable
from privategpt.api.wire.generation import GenerationBody
from privategpt.domain.answers import (
    AnswerEvent,
    AnswerStarted,
    Usage,
    UsageCounted,
)
from privategpt.services.answering import AnswerRequest

EVENTS_IN_A_TURN = 32


class Encoder(Protocol):
    """Events in, chunks of one dialect out."""

    def encode(self, event: AnswerEvent) -> Iterator[Json]:
        """The chunks that `event` becomes."""
        ...

    def heartbeat(self) -> Json:
        """A chunk that says nothing."""
        ...


class Fold(Protocol):
    """Chunks in, the reply in one piece out."""

    def add(self, chunks: Iterator[Json]) -> None:
        """Take the next chunks."""
        ...

    def reply(self) -> Json:
        """The reply."""
        ...


async def send(
    request: Request,
    events: AsyncGenerator[AnswerEvent],
    *,
    stream: bool,
    encoder: Encoder,
    fold: Fold,
    form: StreamForm = OPENAI,
) -> Response:
    """The answer, in the way that was asked for. The client's leaving stops the engine."""
    if stream:
        return AnswerStream(
            events,
            encode=encoder.encode,
            heartbeat=encoder.heartbeat,
            options=options_of(request),
            turns=turns_of(request),
            form=form,
        )
    folded = _folded(events, encoder, fold, turns=turns_of(request))
    return JsonResponse(await while_connected(request.receive, folded))


async def _folded(
    events: AsyncGenerator[AnswerEvent], encoder: Encoder, fold: Fold, *, turns: Turns
) -> Json:
    count = 0
    async with aclosing(events) as open_events:
        async for event in open_events:
            fold.add(encoder.encode(event))
            count += 1
            if count % EVENTS_IN_A_TURN == 0:
                await turns.mine()
    return fold.reply()


def head(
    body: GenerationBody, *, prefix: str, services: Services, options: ApiOptions
) -> ReplyHead:
    """The head of a new reply, in the dialect of the request: OpenAI's clients name a model."""
    openai = {
        "auto": body.model is not None,
        "openai": True,
        "privategpt": False,
    }[options.dialect]
    return ReplyHead(
        id=f"{prefix}-{services.new_id()}",
        created=int(services.now().timestamp()),
        model=body.model if openai and body.model is not None else SEED_MODEL,
        openai=openai,
    )


def views(request: Request, body: GenerationBody, asked: Answerable) -> Views:
    """What the reply shows of its sources."""
    return Views(
        styles=asked.styles,
        base_url=base_url(request),
        include_sources=body.include_sources is not False,
        web_search=asked.request.web_search,
        verification=body.verify_citations is True,
    )


def wants_usage_chunk(body: GenerationBody) -> bool:
    """True where usage must be among the chunks: asked for in a stream, always in one piece."""
    options = body.stream_options
    return not body.stream or (options is not None and options.include_usage is True)


async def one_after_another(
    answering: Answers, requests: Sequence[AnswerRequest]
) -> AsyncGenerator[AnswerEvent]:
    """Several answers as one: choices are numbered on, and what they cost is added up."""
    usage, fingerprint = Usage(prompt_tokens=0, completion_tokens=0), None
    first_choice = 0
    for request in requests:
        async with aclosing(answering.answer(request)) as events:
            async for event in events:
                if isinstance(event, UsageCounted):
                    usage += event.usage
                    fingerprint = event.system_fingerprint
                elif isinstance(event, AnswerStarted):
                    yield event
                else:
                    yield replace(event, choice=event.choice + first_choice)
        first_choice += request.choices
    yield UsageCounted(usage=usage, system_fingerprint=fingerprint)
