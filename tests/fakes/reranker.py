"""A `Reranker` that counts shared words, and a server with a /rerank that does the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from privategpt.api.deps import ApiOptions
from privategpt.domain.errors import Unavailable
from privategpt.domain.ports import Relevances

NAME = "tiny-ranker"


def shared_words(query: str, text: str) -> float:
    """The share of the query's words that the text has."""
    asked = set(query.casefold().split())
    return len(asked & set(text.casefold().split())) / max(len(asked), 1)


@dataclass
class FakeReranker:
    """Keeps what it was asked. While `failure` is set, every call raises it."""

    name: str = NAME
    asked: list[tuple[str, tuple[str, ...]]] = field(
        default_factory=list[tuple[str, tuple[str, ...]]]
    )
    counts: bool = True
    failure: Unavailable | None = None
    closed: bool = False

    async def score(self, query: str, texts: Sequence[str]) -> Relevances:
        """A word is a token, if it `counts` them."""
        if self.failure is not None:
            raise self.failure
        self.asked.append((query, tuple(texts)))
        tokens = sum(len(f"{query} {text}".split()) for text in texts)
        scores = tuple(shared_words(query, text) for text in texts)
        return Relevances(scores, tokens if self.counts else None)

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


@dataclass
class RerankServer:
    """Answers in Jina's shape, worst first. `requests` are the bodies received.

    `status` answers that to everything, `reply` is sent as the body as it is, `offset` is added
    to every score, `silent` never answers.
    """

    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str] = field(default_factory=list[str])
    status: int = 200
    reply: Any = None
    offset: float = 0.0
    usage: bool = True
    silent: bool = False

    def reset(self) -> None:
        """Back to a server that does as it should."""
        vars(self).update(vars(RerankServer()))

    def app(self, options: ApiOptions | None = None) -> FastAPI:
        """The server, for `serving.served`."""
        app = FastAPI()
        app.add_api_route("/v1/rerank", self._rerank, methods=["POST"], response_model=None)
        return app

    async def _rerank(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers["authorization"])
        if self.silent:
            message: dict[str, Any] = {}
            while message.get("type") != "http.disconnect":
                message = dict(await request.receive())
        if self.status != 200 or isinstance(self.reply, bytes):
            return Response(self.reply or b"no", self.status, media_type="application/json")
        return JSONResponse(self._answer(body) if self.reply is None else self.reply)

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        scores = [self.offset + shared_words(body["query"], text) for text in body["documents"]]
        order = sorted(range(len(scores)), key=scores.__getitem__)
        rows = [{"index": index, "relevance_score": scores[index]} for index in order]
        usage = {"usage": {"total_tokens": 7}} if self.usage else {}
        return {"model": body["model"], "results": rows, **usage}
