"""GET /health: the process is up. GET /health/ready: every part answers."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from privategpt.api.deps import Check, OptionsDep, ServicesDep
from privategpt.api.errors import DEFAULT_RETRY_AFTER_S, SERVER_ERROR, ErrorKind, envelope
from privategpt.api.jsontext import JsonResponse
from privategpt.api.wire.replies import HealthResponse, NotReadyReply, ReadinessReply
from privategpt.domain.errors import Unavailable

router = APIRouter(tags=["Health"])

OK = "ok"
NOT_READY = ErrorKind(503, SERVER_ERROR, "not_ready")


@router.get(
    "/health",
    summary="Health",
    operation_id="health_health_get",
    response_model=HealthResponse,
)
async def health() -> JsonResponse:
    """Return ok if the system is up."""
    return JsonResponse({"status": OK})


@router.get(
    "/health/ready",
    summary="Readiness",
    response_model=ReadinessReply,
    responses={503: {"model": NotReadyReply, "description": "A part does not answer"}},
)
async def ready(services: ServicesDep, options: OptionsDep) -> JsonResponse:
    """Return ok if every part answers; otherwise 503, with the parts that do not."""
    outcomes = await asyncio.gather(
        *(_outcome(check, options.check_timeout_s) for check in services.checks.values())
    )
    checks = dict(zip(services.checks, outcomes, strict=True))
    down = [part for part, outcome in checks.items() if outcome != OK]
    if not down:
        return JsonResponse({"status": OK, "checks": checks})
    message = f"Not ready: {', '.join(down)}"
    return JsonResponse(
        {**envelope(message, NOT_READY), "status": "unavailable", "checks": checks},
        status_code=NOT_READY.status,
        headers={"Retry-After": str(DEFAULT_RETRY_AFTER_S)},
    )


async def _outcome(check: Check, timeout_s: float) -> str:
    try:
        async with asyncio.timeout(timeout_s):
            await check()
    except Unavailable as error:
        return error.message
    except TimeoutError:
        return f"No answer within {timeout_s:g} s"
    return OK
