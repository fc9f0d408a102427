"""A reranker behind POST {base_url}/rerank, as Jina, Cohere, vLLM, Infinity and llama.cpp have it.

Asked with `model`, `query`, `documents` (strings) and `top_n`; answered with `results`, objects
with `index` and `relevance_score`, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import httpx2
import openai

from privategpt.backends.openai_client import make_http_client, make_openai_client
from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    Unavailable,
)
from privategpt.domain.ports import Relevances

_RETRIES = 1
_UNREADABLE = "The rerank server's answer cannot be read"


class OpenAICompatibleReranker:
    """A `Reranker` on a server. Texts are sent whole: where to cut them is the server's affair."""

    def __init__(self, *, client: openai.AsyncOpenAI, model: str) -> None:
        self._client = client
        self._model = model

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._model

    async def score(self, query: str, texts: Sequence[str]) -> Relevances:
        """The server's scores. Where one is no probability, all are taken for logits."""
        if not texts:
            return Relevances(scores=(), tokens=0)
        asked = {
            "model": self._model,
            "query": query,
            # An empty text is an error to some servers; a space is the nearest that is none.
            "documents": [text or " " for text in texts],
            "top_n": len(texts),
        }
        return _read(await self._ask(asked), count=len(texts))

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    async def _ask(self, body: dict[str, Any]) -> object:
        try:
            return await self._client.post("/rerank", body=body, cast_to=object)
        except openai.OpenAIError as error:
            raise _translate(error) from error
        except ValueError as error:  # the client's, for an answer that is not JSON
            raise EngineFailed(_UNREADABLE) from error


def connect_openai_compatible_reranker(
    *, base_url: str, api_key: str | None, model: str | None, timeout_s: float = 60.0
) -> OpenAICompatibleReranker:
    """Make the client; nothing is asked yet. Raises `InvalidSettings` without a model."""
    if model is None:
        raise InvalidSettings("Setting 'rerank.model' must name the server's model")
    http = make_http_client(base_url, timeout=httpx2.Timeout(timeout_s))
    client = make_openai_client(base_url, api_key=api_key, http=http, max_retries=_RETRIES)
    return OpenAICompatibleReranker(client=client, model=model)


def _read(answer: Any, *, count: int) -> Relevances:
    try:
        by_index = {int(row["index"]): float(row["relevance_score"]) for row in answer["results"]}
        scores = [by_index[index] for index in range(count)]
    except (KeyError, TypeError, ValueError) as error:
        raise EngineFailed(_UNREADABLE) from error
    if len(by_index) != count or not all(map(math.isfinite, scores)):
        raise EngineFailed(_UNREADABLE)
    if not all(0 <= score <= 1 for score in scores):
        scores = [_probability(score) for score in scores]
    return Relevances(scores=tuple(scores), tokens=_tokens(answer))


def _probability(logit: float) -> float:
    """The logistic function, without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else 1 - 1 / (1 + math.exp(max(logit, -700)))


def _tokens(answer: dict[str, Any]) -> int | None:
    usage = answer.get("usage")
    total = cast("dict[str, Any]", usage).get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) else None


def _translate(error: openai.OpenAIError) -> Unavailable:
    if isinstance(error, openai.APITimeoutError):
        return EngineTimedOut("The rerank server did not answer in time")
    if isinstance(error, openai.APIConnectionError):
        return EngineUnavailable("The rerank server cannot be reached")
    if isinstance(error, openai.APIStatusError):
        kind = EngineUnavailable if error.status_code in (429, 502, 503, 504) else EngineFailed
        return kind(f"The rerank server answered with status {error.status_code}")
    return EngineFailed(_UNREADABLE)
