"""GET /v1/usage/searches: what is left of the day's web searches."""

from __future__ import annotations

from fastapi import APIRouter

from privategpt.api.auth import CallerDep
from privategpt.api.deps import ServicesDep
from privategpt.api.jsontext import JsonResponse
from privategpt.api.wire.replies import ERRORS, SearchUsageReply

router = APIRouter(tags=["Usage"])


@router.get(
    "/v1/usage/searches",
    summary="Search Usage",
    response_model=SearchUsageReply,
    responses=ERRORS,
)
async def search_usage(services: ServicesDep, caller: CallerDep) -> JsonResponse:
    """The account's web searches of this UTC day, all its keys together."""
    usage = await services.web_search.usage(caller.tenant)
    return JsonResponse(
        {
            "object": "usage.searches",
            "used": usage.used,
            "limit": usage.limit,
            "resets_at": usage.resets_at.isoformat(),
        }
    )
