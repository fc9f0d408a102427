"""POST /v1/ingest, /v1/ingest/file, /v1/ingest/text; GET /v1/ingest/list; DELETE one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathField
from fastapi.exceptions import RequestValidationError

from privategpt.api.auth import CallerDep
from privategpt.api.deps import OptionsDep, Services, ServicesDep
from privategpt.api.disconnect import while_connected
from privategpt.api.encode.jobs import job_json
from privategpt.api.encode.views import document_json, skipped_json
from privategpt.api.filenames import display_name
from privategpt.api.jsontext import JsonResponse, JsonRoute
from privategpt.api.profiles import SEED_MODEL
from privategpt.api.uploads import ReceivedForm, received_form, stored_text
from privategpt.api.wire.ingestion import (
    FORM_SCHEMA,
    IngestTextBody,
    form_flag,
    form_metadata,
)
from privategpt.api.wire.jobs import JobReply
from privategpt.api.wire.replies import ERRORS, IngestResponse
from privategpt.domain.documents import DocumentInfo
from privategpt.domain.errors import InvalidRequest
from privategpt.domain.library import StoredFile
from privategpt.domain.ports import Upload
from privategpt.services.ingestion import IngestRequest

router = APIRouter(route_class=JsonRoute, tags=["Ingestion"])

MAX_LIST = 10_000
"""Documents in one page of a list; without `limit` the list is whole, as the seed has it."""

INGESTED: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    202: {"model": JobReply, "description": "Accepted: with `background`, the job"},
}

DocId = Annotated[str, PathField(max_length=512)]


@router.post(
    "/v1/ingest",
    summary="Ingest",
    operation_id="ingest_v1_ingest_post",
    response_model=IngestResponse,
    responses=INGESTED,
    openapi_extra=FORM_SCHEMA,
)
@router.post(
    "/v1/ingest/file",
    summary="Ingest File",
    operation_id="ingest_file_v1_ingest_file_post",
    response_model=IngestResponse,
    responses=INGESTED,
    openapi_extra=FORM_SCHEMA,
)
async def ingest(
    request: Request,
    services: ServicesDep,
    options: OptionsDep,
    caller: CallerDep,
    background: Annotated[bool, Query(description="Answer at once, with a job (202).")] = False,
) -> JsonResponse:
    """Ingest the files of a form; each becomes one document or several (a PDF: one per page).

    The reply has the documents of all files, searchable from now on. The same bytes under the
    same name are ingested once. A client that leaves gives up what is not ingested yet, unless it
    is left to the `background`: then the reply is a job, and the form has one file.
    """
    async with received_form(
        request, folder=options.upload_dir, max_bytes=options.max_upload_bytes
    ) as form:
        requests = _requests(form, caller.tenant)
        if background:
            return await _in_background(requests, services)
        stored = await while_connected(request.receive, _one_by_one(requests, services))
    return _documents(
        (document for file in stored for document in file.documents),
        skipped=[each for file in stored for each in skipped_json(file.file.name, file.unread)],
    )


async def _one_by_one(requests: Sequence[IngestRequest], services: Services) -> list[StoredFile]:
    return [await services.ingestion.ingest(each) for each in requests]


async def _in_background(requests: Sequence[IngestRequest], services: Services) -> JsonResponse:
    if len(requests) > 1:
        raise InvalidRequest("A background ingestion takes one file: send each alone", param="file")
    job = await services.jobs.submit(requests[0])
    location = {"Location": f"/v1/ingest/jobs/{job.job_id}"}
    return JsonResponse(job_json(job), status_code=202, headers=location)


def _requests(form: ReceivedForm, tenant: str) -> list[IngestRequest]:
    """One request per file. All are checked before the first is ingested."""
    files = [file for field, file in form.files if field == "file"]
    if not files:
        problem = {"type": "missing", "loc": ("body", "file"), "msg": "Field required"}
        raise RequestValidationError([problem])
    metadata = form_metadata(form.fields.get("metadata"))
    replaces = form_flag(form.fields.get("replace"), name="replace")
    return [
        IngestRequest(
            upload=Upload(
                path=file.path,
                name=display_name(file.name),
                media_type=file.media_type,
                password=form.fields.get("password") or None,
            ),
            tenant=tenant,
            metadata=metadata,
            replaces=replaces,
        )
        for file in files
    ]


@router.post(
    "/v1/ingest/text",
    summary="Ingest Text",
    operation_id="ingest_text_v1_ingest_text_post",
    response_model=IngestResponse,
    responses=ERRORS,
)
async def ingest_text(
    request: Request,
    body: IngestTextBody,
    services: ServicesDep,
    options: OptionsDep,
    caller: CallerDep,
) -> JsonResponse:
    """Ingest a text under a name."""
    name = display_name(body.file_name, param="file_name")
    async with stored_text(body.text, folder=options.upload_dir) as path:
        ingestion = services.ingestion.ingest(
            IngestRequest(
                upload=Upload(path=path, name=name, media_type="text/plain; charset=utf-8"),
                tenant=caller.tenant,
                metadata=body.metadata or {},
                replaces=body.replace is True,
            )
        )
        stored = await while_connected(request.receive, ingestion)
    return _documents(stored.documents)


@router.get(
    "/v1/ingest/list",
    summary="List Ingested",
    operation_id="list_ingested_v1_ingest_list_get",
    response_model=IngestResponse,
    responses=ERRORS,
)
async def list_ingested(
    services: ServicesDep,
    caller: CallerDep,
    limit: Annotated[int | None, Query(ge=1, le=MAX_LIST)] = None,
    after: Annotated[str | None, Query(max_length=512)] = None,
) -> JsonResponse:
    """List documents in order of ingestion: all, or `limit` of them behind the document `after`."""
    found = await services.ingestion.list_documents(
        caller.tenant, limit=None if limit is None else limit + 1, after=after
    )
    return _documents(found[:limit], has_more=limit is not None and len(found) > limit)


@router.delete(
    "/v1/ingest/{doc_id}",
    summary="Delete Ingested",
    operation_id="delete_ingested_v1_ingest__doc_id__delete",
    responses=ERRORS,
)
async def delete_ingested(doc_id: DocId, services: ServicesDep, caller: CallerDep) -> JsonResponse:
    """Delete a document by its id, or a file with all its documents by the file's."""
    await services.ingestion.delete(caller.tenant, doc_id)
    return JsonResponse(None)


def _documents(
    documents: Iterable[DocumentInfo],
    *,
    has_more: bool = False,
    skipped: Sequence[Mapping[str, str]] = (),
) -> JsonResponse:
    body: dict[str, Any] = {
        "object": "list",
        "model": SEED_MODEL,
        "data": [document_json(document) for document in documents],
        "has_more": has_more,
    }
    if skipped:
        body["skipped"] = list(skipped)
    return JsonResponse(body)
