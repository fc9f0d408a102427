"""POST /v1/rerank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from privategpt.api.wire.body import Body, Items
from privategpt.services.reranking import Ranking

MAX_DOCUMENTS = 1000


class RerankDocument(Body):
    """A document as an object."""

    text: str


class RerankBody(Body):
    """What is asked, and the texts that may answer it."""

    query: str = Field(min_length=1, examples=["When is the library open?"])
    documents: Annotated[
        Items[str | RerankDocument], Field(min_length=1, max_length=MAX_DOCUMENTS)
    ] = Field(examples=[["Open from 10 to 14.", {"text": "Closed on Sunday."}]])
    model: str | None = Field(default=None, max_length=512)
    top_n: int | None = Field(
        default=None, ge=1, description="Results at most. Default: all documents."
    )
    return_documents: bool | None = Field(
        default=None, description="Repeat the texts in the results. Default: false."
    )


def document_texts(body: RerankBody) -> list[str]:
    """The texts, in their order."""
    return [one if isinstance(one, str) else one.text for one in body.documents]


def ranking_json(ranking: Ranking, *, model: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """The reply; with `texts`, each result has its own."""
    results: list[dict[str, Any]] = []
    for one in ranking.texts:
        result: dict[str, Any] = {"index": one.index, "relevance_score": one.score}
        if texts is not None:
            result["document"] = {"text": texts[one.index]}
        results.append(result)
    reply: dict[str, Any] = {"object": "list", "model": model, "results": results}
    if ranking.tokens is not None:
        reply["usage"] = {"prompt_tokens": ranking.tokens, "total_tokens": ranking.tokens}
    return reply
