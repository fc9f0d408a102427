"""POST /v1/chunks."""

from __future__ import annotations

from fastapi import APIRouter, Request

from privategpt.api.auth import known_caller
from privategpt.api.deps import services_of
from privategpt.api.disconnect import while_connected
from privategpt.api.encode.views import chunk_json
from privategpt.api.jsontext import JsonResponse, JsonRoute
from privategpt.api.profiles import SEED_MODEL
from privategpt.api.wire.body import document_filter
from privategpt.api.wire.chunks import DEFAULT_LIMIT, ChunksBody
from privategpt.api.wire.replies import ERRORS, ChunksResponse

router = APIRouter(route_class=JsonRoute, tags=["Context Chunks"])


@router.post(
    "/v1/chunks",
    summary="Chunks Retrieval",
    operation_id="chunks_retrieval_v1_chunks_post",
    response_model=ChunksResponse,
    responses=ERRORS,
)
async def chunks_retrieval(body: ChunksBody, request: Request) -> JsonResponse:
    """Find the chunks that are most relevant to a text, best first; no language model is asked.

    With `prev_next_chunks` each comes with its neighbours in the document, in reading order.
    """
    neighbours = body.prev_next_chunks or 0
    found = await while_connected(
        request.receive,
        services_of(request).retrieval.search(
            body.text,
            tenant=known_caller(request).tenant,
            filter=document_filter(body.context_filter),
            limit=body.limit or DEFAULT_LIMIT,
            neighbours=neighbours,
        ),
    )
    data = [chunk_json(chunk, neighbours=neighbours > 0) for chunk in found.chunks]
    return JsonResponse({"object": "list", "model": SEED_MODEL, "data": data})
