"""POST /v1/embeddings."""

from __future__ import annotations

from fastapi import APIRouter, Request

from privategpt.api.auth import AUTHENTICATED
from privategpt.api.deps import options_of, services_of
from privategpt.api.disconnect import while_connected
from privategpt.api.jsontext import JsonResponse, JsonRoute
from privategpt.api.profiles import SEED_MODEL
from privategpt.api.wire.embeddings import EmbeddingsBody, embeddings_json, texts
from privategpt.api.wire.replies import ERRORS, EmbeddingsResponse

router = APIRouter(route_class=JsonRoute, tags=["Embeddings"], dependencies=[AUTHENTICATED])


@router.post(
    "/v1/embeddings",
    summary="Embeddings Generation",
    operation_id="embeddings_generation_v1_embeddings_post",
    response_model=EmbeddingsResponse,
    responses=ERRORS,
)
async def embeddings_generation(body: EmbeddingsBody, request: Request) -> JsonResponse:
    """Embed texts; the vectors come in their order."""
    services = services_of(request)
    services.models.check_served(body.model)
    embedded = await while_connected(
        request.receive, services.embeddings.embed(texts(body), dimensions=body.dimensions)
    )
    echoed = body.model is not None and options_of(request).dialect != "privategpt"
    return JsonResponse(
        embeddings_json(
            embedded,
            model=body.model if echoed and body.model else SEED_MODEL,
            base64_floats=body.encoding_format == "base64",
        )
    )
