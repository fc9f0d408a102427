"""GET /v1/documents/{doc_id}: where a citation's address leads."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathField

from privategpt.api.auth import CallerDep
from privategpt.api.deps import ServicesDep
from privategpt.api.jsontext import JsonResponse
from privategpt.api.wire.replies import ERRORS, DocumentReply
from privategpt.domain.documents import Document
from privategpt.domain.errors import InvalidRequest

router = APIRouter(tags=["Ingestion"])

CONTEXT = 300
"""Characters shown before and after a highlighted range."""

_STYLE = (
    "body{font:1rem/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}"
    "mark{background:#fd6;scroll-margin:30vh}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# The text is a stranger's: nothing in it may run, load or leave, even if escaping had a hole.
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
}

Offset = Annotated[int | None, Query(ge=0, le=2**53)]


@router.get(
    "/v1/documents/{doc_id}",
    summary="Read Document",
    response_model=DocumentReply,
    responses={
        **ERRORS,
        200: {
            "description": "Successful Response",
            "content": {"text/html": {"schema": {"type": "string"}}},
        },
    },
)
async def read_document(
    doc_id: Annotated[str, PathField(max_length=512)],
    *,
    request: Request,
    services: ServicesDep,
    caller: CallerDep,
    start: Offset = None,
    end: Offset = None,
) -> Response:
    """A stored document's text and metadata, with the range `start`–`end` picked out.

    Offsets are code points, 0-based, end-exclusive. A browser gets a page with the range marked.
    """
    document = await services.ingestion.document(caller.tenant, doc_id)
    span = _span(document, start, end)
    if _prefers_html(request.headers.get("accept", "")):
        page = _page(document, span).encode("utf-8", errors="replace")
        return Response(page, media_type="text/html", headers=_PAGE_HEADERS)
    return JsonResponse(_body(document, span), headers={"Vary": "Accept"})


def _span(document: Document, start: int | None, end: int | None) -> tuple[int, int] | None:
    if start is None and end is None:
        return None
    length = len(document.text)
    first, last = start or 0, length if end is None else end
    if not first <= last <= length:
        raise InvalidRequest(
            f"start and end must be a range within the {length} characters of the document",
            param="end",
        )
    return first, last


def _body(document: Document, span: tuple[int, int] | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "object": "document",
        "doc_id": document.doc_id,
        "file_id": document.inner_file_id or document.file_id,
        "text": document.text,
        "metadata": dict(document.metadata),
    }
    if span is not None:
        start, end = span
        body["highlight"] = {
            "start": start,
            "end": end,
            "before": document.text[max(0, start - CONTEXT) : start],
            "match": document.text[start:end],
            "after": document.text[end : end + CONTEXT],
        }
    return body


def _page(document: Document, span: tuple[int, int] | None) -> str:
    title = document.metadata.get("title") or document.metadata.get("file_name") or "Document"
    label = document.metadata.get("page_label")
    heading = escape(str(title) if label is None else f"{title}, {label}")
    start, end = span or (0, 0)
    text = document.text
    marked = f'<mark id="cited">{escape(text[start:end])}</mark>' if span else ""
    return (
        '<!doctype html><html lang="und" dir="auto"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{heading}</title><style>{_STYLE}</style><h1>{heading}</h1>"
        f'<pre dir="auto">{escape(text[:start])}{marked}{escape(text[end:])}</pre></html>'
    )


def _prefers_html(accept: str) -> bool:
    """True where `Accept` ranks text/html above JSON, as browsers' do and scripts' do not."""
    ranks = {"text/html": 0.0, "application/json": 0.0}
    for item in accept.split(","):
        media_range, _, parameters = item.partition(";")
        name = media_range.strip().lower()
        if name in ranks:
            ranks[name] = _quality(parameters)
    return ranks["text/html"] > ranks["application/json"]


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
