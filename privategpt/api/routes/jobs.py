"""GET /v1/ingest/jobs, one of them, its events; POST …/cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathField

from privategpt.api.auth import CallerDep
from privategpt.api.deps import OptionsDep, ServicesDep, turns_of
from privategpt.api.encode.jobs import JobEvents, job_json
from privategpt.api.errors import stream_error
from privategpt.api.jsontext import JsonResponse, JsonRoute
from privategpt.api.profiles import SEED_MODEL
from privategpt.api.sse import EventStream, StreamForm, data_line
from privategpt.api.wire.jobs import JOB_EVENTS, JobReply, JobsReply
from privategpt.api.wire.replies import ERRORS

router = APIRouter(route_class=JsonRoute, tags=["Ingestion"])

MAX_LIST = 1000
EVENTS = StreamForm(line=data_line, error=stream_error, end=b"")
"""The last job says by its state that it is the last; no end marker follows."""

JobId = Annotated[str, PathField(max_length=512)]


@router.get(
    "/v1/ingest/jobs",
    summary="List Ingestion Jobs",
    operation_id="list_jobs_v1_ingest_jobs_get",
    response_model=JobsReply,
    responses=ERRORS,
)
async def list_jobs(
    services: ServicesDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=MAX_LIST)] = 100,
    after: Annotated[str | None, Query(max_length=512)] = None,
) -> JsonResponse:
    """List background ingestions, the newest first: `limit` of them, behind the job `after`."""
    found = await services.jobs.jobs(caller.tenant, limit=limit + 1, after=after)
    return JsonResponse(
        {
            "object": "list",
            "model": SEED_MODEL,
            "data": [job_json(job) for job in found[:limit]],
            "has_more": len(found) > limit,
        }
    )


@router.get(
    "/v1/ingest/jobs/{job_id}",
    summary="Get Ingestion Job",
    operation_id="get_job_v1_ingest_jobs__job_id__get",
    response_model=JobReply,
    responses=ERRORS,
)
async def get_job(job_id: JobId, services: ServicesDep, caller: CallerDep) -> JsonResponse:
    """How far a background ingestion is, and what came of it."""
    return JsonResponse(job_json(await services.jobs.job(caller.tenant, job_id)))


@router.get(
    "/v1/ingest/jobs/{job_id}/events",
    summary="Follow Ingestion Job",
    operation_id="follow_job_v1_ingest_jobs__job_id__events_get",
    response_class=Response,
    responses={**ERRORS, **JOB_EVENTS},
)
async def follow_job(
    request: Request, job_id: JobId, services: ServicesDep, options: OptionsDep, caller: CallerDep
) -> Response:
    """The job as server-sent events: now, after every change, and at its end, which is the last.

    Each `data:` line is what `GET /v1/ingest/jobs/{job_id}` answers. In silence it is repeated.
    """
    events = JobEvents()
    return EventStream(
        services.jobs.watch(caller.tenant, job_id),
        encode=events.encode,
        heartbeat=events.heartbeat,
        options=options,
        turns=turns_of(request),
        form=EVENTS,
    )


@router.post(
    "/v1/ingest/jobs/{job_id}/cancel",
    summary="Cancel Ingestion Job",
    operation_id="cancel_job_v1_ingest_jobs__job_id__cancel_post",
    response_model=JobReply,
    responses=ERRORS,
)
async def cancel_job(job_id: JobId, services: ServicesDep, caller: CallerDep) -> JsonResponse:
    """Stop a background ingestion; nothing of its file is left. What has ended stays as it is."""
    return JsonResponse(job_json(await services.jobs.cancel(caller.tenant, job_id)))
