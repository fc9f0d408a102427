"""Embeddings from any OpenAI-compatible server: TEI, vLLM, Infinity, llama.cpp, OpenAI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import httpx2
import openai

from privategpt.backends.embedding.encoder import NO_PROMPTS, Prompts
from privategpt.backends.embedding.limits import cut_to_window
from privategpt.backends.embedding.tokenizer import EstimatedTokenizer, encodable
from privategpt.backends.embedding.vectors import decode_base64, unit_vector
from privategpt.backends.openai_client import make_http_client, make_openai_client
from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    Unavailable,
)
from privategpt.domain.ports import Embeddings, Tokenizer, Vector

if TYPE_CHECKING:
    from openai.types import CreateEmbeddingResponse

DEFAULT_MAX_TOKENS = 512
_CONCURRENT_BATCHES = 4
_RETRIES = 1
_PROBE = "dimensions"
_UNREADABLE = "The embedding server's answer cannot be read"


class OpenAICompatibleModel:
    """An `EmbeddingModel` behind an OpenAI-compatible endpoint.

    `ask_for_dimensions` sends `dimensions` with each request, which only models that can shorten
    their vectors accept. The server's tokenizer is out of reach: chunks are measured with
    `EstimatedTokenizer`, which errs on the safe side of `max_tokens`.
    """

    def __init__(
        self,
        *,
        client: openai.AsyncOpenAI,
        model: str,
        dimensions: int,
        ask_for_dimensions: bool = False,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        batch_size: int = 32,
        prompts: Prompts = NO_PROMPTS,
    ) -> None:
        self._client = client
        self._model = model
        self._dimensions = dimensions
        self._ask_for_dimensions = ask_for_dimensions
        self._batch_size = batch_size
        self._prompts = prompts
        self._tokenizer = _tokenizer(max_tokens, prompts)
        self._encoding: Literal["base64", "float"] = "base64"
        self._slots = asyncio.Semaphore(_CONCURRENT_BATCHES)

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._model

    @property
    def fingerprint(self) -> str:
        """From the model's name, the dimensions and our prompts; a server does not tell more."""
        known = f"openai-compatible {self._model} {self._dimensions}"
        if self._prompts == NO_PROMPTS:
            return known
        return f"{known} {json.dumps([self._prompts.query, self._prompts.passage])}"

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    @property
    def tokenizer(self) -> Tokenizer:
        """An estimate."""
        return self._tokenizer

    async def embed_passages(self, texts: Sequence[str]) -> Embeddings:
        """Embed in batches of `batch_size`, several at once."""
        starts = range(0, len(texts), self._batch_size)
        batches = [texts[start : start + self._batch_size] for start in starts]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._embed_in_turn(batch)) for batch in batches]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures  # the others follow from the first
        return _join([task.result() for task in tasks])

    async def embed_query(self, text: str) -> Embeddings:
        """Embed one text, without waiting for passages."""
        return await self._embed([text], prompt=self._prompts.query)

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    async def _embed_in_turn(self, texts: Sequence[str]) -> Embeddings:
        async with self._slots:
            return await self._embed(texts, prompt=self._prompts.passage)

    async def _embed(self, texts: Sequence[str], *, prompt: str) -> Embeddings:
        # An empty input is an error to most servers; a space is the nearest that is none.
        cut = [cut_to_window(encodable(text), self._tokenizer) for text in texts]
        response = await self.ask([f"{prompt}{text}" or " " for text, _ in cut])
        return _read(
            response,
            count=len(texts),
            dimensions=self._dimensions,
            estimated_tokens=sum(tokens for _, tokens in cut),
        )

    async def ask(self, texts: list[str]) -> CreateEmbeddingResponse:
        """The server's answer as it is, with its failures translated."""
        try:
            return await self._call(texts)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if self._encoding == "float":
                raise _translate(error) from error
            return await self._request_floats(texts)
        except openai.OpenAIError as error:
            raise _translate(error) from error

    async def _request_floats(self, texts: list[str]) -> CreateEmbeddingResponse:
        """Some servers refuse base64; one that takes floats is asked for floats from now on."""
        self._encoding = "float"
        try:
            return await self._call(texts)
        except openai.OpenAIError as error:
            self._encoding = "base64"
            raise _translate(error) from error

    async def _call(self, texts: list[str]) -> CreateEmbeddingResponse:
        try:
            return await self._client.embeddings.create(
                model=self._model,
                input=texts,
                encoding_format=self._encoding,
                dimensions=self._dimensions if self._ask_for_dimensions else openai.omit,
            )
        except ValueError as error:  # the client's, for an answer without data or without JSON
            raise EngineFailed(_UNREADABLE) from error


async def connect_openai_compatible(
    *,
    base_url: str,
    api_key: str | None,
    model: str | None,
    dimensions: int | None = None,
    max_tokens: int | None = None,
    batch_size: int = 32,
    prompts: Prompts = NO_PROMPTS,
    timeout_s: float = 60.0,
) -> OpenAICompatibleModel:
    """Connect, and find out how long the server's vectors are.

    With `dimensions` set the server may be down at this moment. Raises `InvalidSettings` without
    a model, and `Unavailable` where the dimensions are neither set nor answered.
    """
    if model is None:
        raise InvalidSettings("Setting 'embedding.model' must name the server's model")
    http = make_http_client(base_url, timeout=httpx2.Timeout(timeout_s))
    client = make_openai_client(base_url, api_key=api_key, http=http, max_retries=_RETRIES)
    try:
        native = await _native_dimensions(client, model)
    except Unavailable:
        if dimensions is None:
            await client.close()
            raise
        native = dimensions
    return OpenAICompatibleModel(
        client=client,
        model=model,
        dimensions=dimensions or native,
        ask_for_dimensions=dimensions not in (None, native),
        max_tokens=max_tokens or DEFAULT_MAX_TOKENS,
        batch_size=batch_size,
        prompts=prompts,
    )


def _tokenizer(max_tokens: int, prompts: Prompts) -> EstimatedTokenizer:
    """With the window that the longer prompt leaves."""
    whole = EstimatedTokenizer(max_tokens=max_tokens)
    taken = max(whole.count(prompts.query), whole.count(prompts.passage))
    if taken >= max_tokens:
        raise InvalidSettings("'embedding.query_prompt' or 'passage_prompt' fills the whole window")
    return EstimatedTokenizer(max_tokens=max_tokens - taken)


async def _native_dimensions(client: openai.AsyncOpenAI, model: str) -> int:
    probe = OpenAICompatibleModel(client=client, model=model, dimensions=0)
    response = await probe.ask([_PROBE])
    embeddings = _read(response, count=1, dimensions=None, estimated_tokens=1)
    return len(embeddings.vectors[0])


def _read(
    response: CreateEmbeddingResponse, *, count: int, dimensions: int | None, estimated_tokens: int
) -> Embeddings:
    """In the order of `index`, whatever order and encoding the server chose."""
    # The client checks nothing: whatever JSON the server sent is behind the annotated type.
    answer = cast("Any", response)
    try:
        items = sorted(answer.data or [], key=lambda item: item.index)
        indices = [item.index for item in items]
        values = [item.embedding for item in items]
        usage = answer.usage if hasattr(answer, "usage") else None  # some servers leave it out
        tokens = estimated_tokens if usage is None else int(usage.prompt_tokens)
    except (AttributeError, TypeError, ValueError) as error:
        raise EngineFailed(_UNREADABLE) from error
    if indices != list(range(count)):
        raise EngineFailed(
            f"The embedding server answered with {len(items)} vectors for {count} texts"
        )
    vectors = tuple(_read_vector(value, dimensions=dimensions) for value in values)
    return Embeddings(vectors=vectors, tokens=tokens)


def _read_vector(value: Any, *, dimensions: int | None) -> Vector:
    if isinstance(value, str):
        return unit_vector(decode_base64(value), dimensions=dimensions)
    if isinstance(value, list):
        return unit_vector(cast("list[float]", value), dimensions=dimensions)
    raise EngineFailed(_UNREADABLE)


def _join(parts: Sequence[Embeddings]) -> Embeddings:
    vectors = tuple(vector for part in parts for vector in part.vectors)
    return Embeddings(vectors=vectors, tokens=sum(part.tokens for part in parts))


def _translate(error: openai.OpenAIError) -> Unavailable:
    if isinstance(error, openai.APITimeoutError):
        return EngineTimedOut("The embedding server did not answer in time")
    if isinstance(error, openai.APIConnectionError):
        return EngineUnavailable("The embedding server cannot be reached")
    if isinstance(error, openai.APIStatusError):
        kind = EngineUnavailable if error.status_code in (429, 502, 503, 504) else EngineFailed
        return kind(f"The embedding server answered with status {error.status_code}")
    return EngineFailed(_UNREADABLE)
