"""Any OpenAI-compatible server as a `LanguageModel`: vLLM, Ollama, llama.cpp, OpenAI.

Chunks are read as plain JSON rather than through the client's models: engines leave out and add
what they like, and building a model per token costs more than the token's way over the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import httpx2
import openai

from privategpt.backends.llm import engine_facts
from privategpt.backends.llm.engine_facts import Dialect, EngineFacts
from privategpt.backends.llm.event_stream import ChatStreams, ChunkStream
from privategpt.backends.llm.timeouts import DEFAULT_TIMEOUTS, Timeouts
from privategpt.backends.llm.token_estimate import estimate_messages, estimate_text
from privategpt.backends.llm.tool_calls import ToolCallReader
from privategpt.backends.llm.wire_chunks import ChunkReader
from privategpt.backends.llm.wire_errors import VENDOR_ERRORS, VendorError, translate
from privategpt.backends.llm.wire_requests import WireObject, chat_body, wire_messages
from privategpt.backends.openai_client import NO_KEY, make_http_client, make_openai_client
from privategpt.domain.answers import GenerationEvent, GenerationFinished, Usage
from privategpt.domain.conversation import GenerationRequest, Message, Sampling
from privategpt.domain.errors import (
    EngineFailed,
    EngineUnavailable,
    PrivateGptError,
    Unavailable,
    UnsupportedParameter,
)

logger = logging.getLogger(__name__)

ENGINES_OWN = Sampling()
"""No defaults but those of the engine."""

FALLBACK_CONTEXT_TOKENS = 8192
"""The window where neither the operator nor the server tells one."""
AFTER_FINISH_S = 5.0
"""How long the usage may be late once the reply is complete; then we count it ourselves."""
CONTROL_TIMEOUT_S = 15.0
"""For the small calls: models, props, tokenize."""
_NOT_OFFERED = frozenset({404, 405, 501})

T = TypeVar("T")


class OpenAICompatibleModel:
    """A `LanguageModel` behind an OpenAI-compatible server.

    `base_url` ends in /v1, as in OpenAI's clients. What is not configured (`model`,
    `context_tokens`) is learnt from the server on the first call, or by `learn`.
    `defaults` has the `max_tokens` and the `temperature` of requests that name none.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str | None = None,
        api_key: str | None = None,
        context_tokens: int | None = None,
        defaults: Sampling = ENGINES_OWN,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._root = base_url.rstrip("/").removesuffix("/v1")
        self._model = model
        self._context_tokens = context_tokens
        self._defaults = defaults
        self._timeouts = timeouts
        self._facts: EngineFacts | None = None
        key = api_key or NO_KEY
        longest_s = max(timeouts.first_byte_s, timeouts.between_bytes_s)
        timeout = httpx2.Timeout(longest_s, connect=timeouts.connect_s)
        http = make_http_client(base_url, timeout=timeout)
        self._client = make_openai_client(base_url, api_key=key, http=http)
        self._streams = ChatStreams(http, base_url=base_url, api_key=key)

    @property
    def name(self) -> str:
        """The configured model, else the one that the server serves."""
        return self._model or (self._facts and self._facts.model) or "default"

    @property
    def context_tokens(self) -> int:
        """The configured window, else the server's, else `FALLBACK_CONTEXT_TOKENS`."""
        learnt = self._facts.context_tokens if self._facts else None
        return self._context_tokens or learnt or FALLBACK_CONTEXT_TOKENS

    async def learn(self) -> EngineFacts:
        """Ask the server, once, what it serves; raises `Unavailable` if it cannot say."""
        if self._facts is None:
            self._facts = await engine_facts.learn_facts(self._call, model=self._model)
        return self._facts

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[GenerationEvent]:
        """See `LanguageModel.generate`."""
        facts = await self.learn()
        _refuse_unsupported(request, facts)
        tool_calls = ToolCallReader(single=request.tooling.parallel_tool_calls is False)
        reader = ChunkReader(top_logprobs=request.sampling.top_logprobs, tool_calls=tool_calls)
        body = chat_body(request, model=request.model or self.name, defaults=self._defaults)
        if facts.dialect is Dialect.LLAMA_CPP:
            # While it reads a prompt llama.cpp looks after its client only when it has something
            # to send: without this a reply that is left before its first token costs it whole.
            body["return_progress"] = True
        deadline = asyncio.get_running_loop().time() + self._timeouts.first_byte_s
        async with self._opened(body, asked_model=request.model, deadline=deadline) as stream:
            while chunks := await self._next(stream, reader, deadline=deadline):
                for chunk in chunks:
                    for event in self._read(chunk, stream, reader):
                        yield event
        _require_complete(reader)
        usage = await self._usage(reader, request)
        yield GenerationFinished(reader.reason, usage, reader.system_fingerprint)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """By the server's own tokenizer if it has an endpoint for it, else an estimate that
        leans high (see `token_estimate`).
        """
        facts = await self.learn()
        wire = wire_messages(messages)
        counted = await engine_facts.count_prompt(self._call, facts, messages=wire, model=self.name)
        return estimate_messages(messages) if counted is None else counted

    async def count_text(self, text: str) -> int:
        """Like `count_tokens`, without a chat template."""
        facts = await self.learn()
        counted = await engine_facts.count_text(self._call, facts, text=text, model=self.name)
        return estimate_text(text) if counted is None else counted

    async def check(self) -> None:
        """Return if the server answers GET /models, be it that it has none."""
        await self._call("models")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    @contextlib.asynccontextmanager
    async def _opened(
        self, body: WireObject, *, asked_model: str | None, deadline: float
    ) -> AsyncGenerator[ChunkStream]:
        stream = await self._open(body, asked_model=asked_model, deadline=deadline)
        try:
            yield stream
        finally:
            # Where the reply is not read to its end this drops the connection, which is how
            # an engine learns that it can stop.
            await stream.close()

    async def _open(
        self, body: WireObject, *, asked_model: str | None, deadline: float
    ) -> ChunkStream:
        try:
            async with asyncio.timeout_at(deadline):
                return await _twice(lambda: self._streams.open(body))
        except VENDOR_ERRORS as error:
            raise self._translate(error, asked_model) from error

    async def _next(
        self, stream: ChunkStream, reader: ChunkReader, *, deadline: float
    ) -> list[bytes]:
        """The next chunks, none at the end; `deadline` is the first chunk's, by loop time."""
        if reader.chunks:
            limit_s = self._timeouts.between_bytes_s
            limit_s = min(limit_s, AFTER_FINISH_S) if reader.finished else limit_s
            deadline = asyncio.get_running_loop().time() + limit_s
        try:
            async with asyncio.timeout_at(deadline):
                return await stream.arrived()
        except VENDOR_ERRORS as error:
            self._raise_unless_whole(error, reader)
            return []

    def _read(
        self, chunk: bytes, stream: ChunkStream, reader: ChunkReader
    ) -> list[GenerationEvent]:
        try:
            parsed = stream.parse(chunk)
        except VENDOR_ERRORS as error:
            self._raise_unless_whole(error, reader)
            return []
        return reader.read(parsed)

    def _raise_unless_whole(self, error: VendorError, reader: ChunkReader) -> None:
        """Where the reply is whole, only its usage is missing."""
        if reader.finished:
            return
        translated = self._translate(error, None)
        if reader.chunks and isinstance(translated, EngineUnavailable):
            raise _broke_off() from error
        raise translated from error

    async def _usage(self, reader: ChunkReader, request: GenerationRequest) -> Usage:
        """The engine's count; what it left out is counted here, never reported as zero."""
        usage = reader.usage
        written = reader.written
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        if not prompt:
            prompt = await self._count_or_estimate(request.messages)
        if not completion and written:
            completion = await self._count_written(written)
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_tokens=usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        )

    async def _count_or_estimate(self, messages: Sequence[Message]) -> int:
        try:
            return await self.count_tokens(messages)
        except Unavailable:  # the answer is there; a count must not undo it
            return estimate_messages(messages)

    async def _count_written(self, text: str) -> int:
        try:
            return await self.count_text(text)
        except Unavailable:
            return estimate_text(text)

    async def _call(self, path: str, body: Mapping[str, Any] | None = None) -> object:
        """One small call; see `engine_facts.Caller`."""
        url = self._root + path if path.startswith("/") else f"/{path}"

        async def ask() -> object:
            if body is None:
                return await self._client.get(url, cast_to=object)
            return await self._client.post(url, cast_to=object, body=body)

        try:
            async with asyncio.timeout(CONTROL_TIMEOUT_S):
                return await _twice(ask)
        except VENDOR_ERRORS as error:
            if isinstance(error, openai.APIStatusError) and error.status_code in _NOT_OFFERED:
                return None
            raise translate(error) from error

    def _translate(self, error: VendorError, asked_model: str | None) -> PrivateGptError:
        translated = translate(error, asked_model=asked_model)
        if isinstance(translated, Unavailable):
            logger.warning("%s (%s)", translated.message, type(error).__name__)
        return translated


async def connect_openai_compatible(
    *,
    base_url: str,
    model: str | None = None,
    api_key: str | None = None,
    context_tokens: int | None = None,
    defaults: Sampling = ENGINES_OWN,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> OpenAICompatibleModel:
    """A model that knows its server, if that is up.

    A server that is down does not keep ours from starting: it is asked again at the first call.
    """
    connected = OpenAICompatibleModel(
        base_url=base_url,
        model=model,
        api_key=api_key,
        context_tokens=context_tokens,
        defaults=defaults,
        timeouts=timeouts,
    )
    try:
        await connected.learn()
    except Unavailable as error:
        logger.warning("The language model is not there yet: %s", error.message)
    return connected


async def _twice(call: Callable[[], Awaitable[T]]) -> T:
    """Try once more, on a new connection, where one was lost before anything came back.

    That is mostly one which the server had closed while it was idle.
    """
    try:
        return await call()
    except (openai.APITimeoutError, httpx2.TimeoutException):
        raise
    except (openai.APIConnectionError, httpx2.RequestError):
        return await call()


def _refuse_unsupported(request: GenerationRequest, facts: EngineFacts) -> None:
    # llama.cpp drops tools without a word where the model's chat template has no place for them.
    wanted = request.tooling.tools and request.tooling.tool_choice != "none"
    if wanted and facts.supports_tools is False:
        raise UnsupportedParameter(
            f"The model {facts.model!r} cannot call tools: its chat template has none",
            param="tools",
        )
    # And for an image that a model cannot see it answers 500, as if it had failed itself.
    if facts.supports_images is False and any(message.images for message in request.messages):
        raise UnsupportedParameter(f"The model {facts.model!r} cannot see images", param="messages")


def _require_complete(reader: ChunkReader) -> None:
    if reader.finished:
        return
    if reader.chunks:
        raise _broke_off()
    raise EngineFailed("The language model server answered, but not with a stream of chunks")


def _broke_off() -> EngineUnavailable:
    return EngineUnavailable("The language model broke off in the middle of its answer")
