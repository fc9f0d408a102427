"""GET /v1/models and one of them, for OpenAI's clients and Anthropic's alike."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, HTTPException
from fastapi import Path as PathField

from privategpt.api.auth import AUTHENTICATED
from privategpt.api.deps import ServicesDep
from privategpt.api.jsontext import JsonResponse
from privategpt.api.profiles import unknown_model
from privategpt.api.wire.replies import ERRORS, ModelReply, ModelsReply

router = APIRouter(tags=["Models"], dependencies=[AUTHENTICATED])

# A profile has no date of birth; a constant keeps the list the same from call to call.
_CREATED = datetime(2025, 1, 1, tzinfo=UTC)


@router.get("/v1/models", summary="List Models", response_model=ModelsReply, responses=ERRORS)
async def list_models(services: ServicesDep) -> JsonResponse:
    """List the ids that requests may name in `model`."""
    ids = services.models.ids
    return JsonResponse(
        {
            "object": "list",
            "data": [_model(model_id) for model_id in ids],
            "has_more": False,
            "first_id": ids[0],
            "last_id": ids[-1],
        }
    )


@router.get(
    "/v1/models/{model_id:path}",
    summary="Retrieve Model",
    response_model=ModelReply,
    responses=ERRORS,
)
async def retrieve_model(
    model_id: Annotated[str, PathField(max_length=512)], services: ServicesDep
) -> JsonResponse:
    """One model; its id may contain slashes, written plainly or as %2F."""
    if not model_id:
        raise HTTPException(404)  # /v1/models and a slash
    known = {model_id, unquote(model_id)} & set(services.models.ids)
    if not known:
        raise unknown_model()
    return JsonResponse(_model(known.pop()))


def _model(model_id: str) -> dict[str, Any]:
    return {
        "id": model_id,
        "object": "model",
        "created": int(_CREATED.timestamp()),
        "owned_by": "privategpt",
        "type": "model",
        "display_name": model_id,
        "created_at": _CREATED.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
    }
