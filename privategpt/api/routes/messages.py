"""POST /v1/messages and /v1/messages/count_tokens, for Anthropic's clients."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from privategpt.api.anthropic_errors import anthropic_error
from privategpt.api.auth import Caller, CallerDep
from privategpt.api.deps import Services, ServicesDep, base_url, options_of
from privategpt.api.disconnect import while_connected
from privategpt.api.encode.anthropic import MessageEncoder, MessageHead
from privategpt.api.encode.anthropic_fold import MessageFold
from privategpt.api.encode.views import Views
from privategpt.api.errors import status_of, stream_error
from privategpt.api.jsontext import JsonResponse, JsonRoute
from privategpt.api.request_ids import request_id_headers
from privategpt.api.routes.answers import send
from privategpt.api.sse import Chunk, StreamForm, data_line
from privategpt.api.uploads import stored_bytes
from privategpt.api.wire.anthropic_documents import pdfs
from privategpt.api.wire.anthropic_messages import (
    AskedMessage,
    CountTokensBody,
    MessagesBody,
    message_request,
)
from privategpt.api.wire.anthropic_replies import (
    MESSAGES_ERRORS,
    InputTokens,
    MessageReply,
)
from privategpt.api.wire.replies import STREAMED
from privategpt.domain.ports import Upload
from privategpt.services.attachments import ReadFile

router = APIRouter(route_class=JsonRoute, tags=["Messages"])


@router.post(
    "/v1/messages",
    summary="Message",
    response_model=MessageReply,
    responses={**MESSAGES_ERRORS, **STREAMED},
)
async def create_message(
    body: MessagesBody, request: Request, services: ServicesDep, caller: CallerDep
) -> Response:
    """Continue a conversation in Anthropic's shape.

    Documents and search results in the messages are cited with their exact places where
    `citations.enabled` asks for it; the ingested documents and the web where `use_context` and
    `web_search` do. `sources` are what the answer was written from, by the numbers of its markers.
    """
    asked = await _asked(body, request, services=services, caller=caller)
    encoder = MessageEncoder(
        head=MessageHead(id=f"msg_{services.new_id()}", model=body.model),
        views=Views(
            styles=asked.styles,
            base_url=base_url(request),
            include_sources=body.include_sources is not False,
            web_search=asked.request.web_search,
        ),
        places=asked.places,
        thinking=body.shows_thinking,
    )
    return await send(
        request,
        services.answering.answer(asked.request),
        stream=body.stream is True,
        encoder=encoder,
        fold=MessageFold(),
        form=_stream_form(request),
    )


@router.post(
    "/v1/messages/count_tokens",
    summary="Count Message Tokens",
    response_model=InputTokens,
    responses=MESSAGES_ERRORS,
)
async def count_message_tokens(
    body: CountTokensBody, request: Request, services: ServicesDep, caller: CallerDep
) -> Response:
    """The tokens of a conversation with its documents, before anything is searched for."""
    asked = await _asked(body, request, services=services, caller=caller)
    counting = services.token_counter.count_tokens(asked.request)
    return JsonResponse({"input_tokens": await while_connected(request.receive, counting)})


async def _asked(
    body: CountTokensBody, request: Request, *, services: Services, caller: Caller
) -> AskedMessage:
    options = options_of(request)
    profile = services.models.profile(body.model)
    reading = _read_pdfs(body, services=services, request=request)
    return message_request(
        body,
        profile=profile,
        tenant=caller.tenant,
        files=await while_connected(request.receive, reading),
        remote_images=options.remote_images,
    )


async def _read_pdfs(
    body: CountTokensBody, *, services: Services, request: Request
) -> dict[str, ReadFile]:
    """The PDFs of the request, one after the other, by the place of their blocks."""
    files: dict[str, ReadFile] = {}
    for param, data in pdfs(body.messages).items():
        async with stored_bytes(data, folder=options_of(request).upload_dir) as path:
            upload = Upload(path=path, name="document.pdf", media_type="application/pdf")
            files[param] = await services.attachments.read(upload)
    return files


def _stream_form(request: Request) -> StreamForm:
    """Named events, as the SDKs skip those without a name; there is no end marker."""
    request_id = request_id_headers(request.scope).get("request-id")

    def error(problem: BaseException) -> Chunk:
        status = status_of(problem)
        return anthropic_error(stream_error(problem), status=status, request_id=request_id)

    return StreamForm(line=_event, error=error, end=b"")


def _event(chunk: Chunk) -> bytes:
    return f"event: {chunk['type']}\n".encode() + data_line(chunk)
