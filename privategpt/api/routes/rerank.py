"""POST /v1/rerank, as Jina and Cohere have it."""

from __future__ import annotations

from fastapi import APIRouter, Request

from privategpt.api.auth import AUTHENTICATED
from privategpt.api.deps import ServicesDep
from privategpt.api.disconnect import while_connected
from privategpt.api.jsontext import JsonResponse, JsonRoute
from privategpt.api.wire.replies import ERRORS, RerankResponse
from privategpt.api.wire.rerank import RerankBody, document_texts, ranking_json
from privategpt.domain.errors import NotFound

router = APIRouter(route_class=JsonRoute, tags=["Reranking"], dependencies=[AUTHENTICATED])


@router.post(
    "/v1/rerank",
    summary="Rerank",
    operation_id="rerank_v1_rerank_post",
    response_model=RerankResponse,
    responses=ERRORS,
)
async def rerank(body: RerankBody, request: Request, services: ServicesDep) -> JsonResponse:
    """Order texts by how well they answer a query, best first.

    Answers 404 where the server has no reranker (the setting `rerank.mode`).
    """
    reranking = services.reranking
    if reranking is None:
        raise NotFound("This server has no reranker; the operator chooses one under 'rerank'")
    services.models.check_served(body.model)
    texts = document_texts(body)
    ranking = await while_connected(
        request.receive, reranking.rank(body.query, texts, limit=body.top_n)
    )
    return JsonResponse(
        ranking_json(
            ranking,
            model=body.model or reranking.name,
            texts=texts if body.return_documents else None,
        )
    )
