"""GET /metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from privategpt.api.auth import AUTHENTICATED
from privategpt.api.deps import metrics_of

router = APIRouter(tags=["Health"], dependencies=[AUTHENTICATED])


@router.get("/metrics", summary="Metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """What is counted and timed, for Prometheus."""
    return Response(metrics_of(request).render(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
