"""POST /v1/chat/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from privategpt.api.auth import CallerDep
from privategpt.api.deps import OptionsDep, ServicesDep
from privategpt.api.encode.openai_chat import ChatEncoder, ChatFold
from privategpt.api.jsontext import JsonRoute
from privategpt.api.routes.answers import head, send, views, wants_usage_chunk
from privategpt.api.wire.chat import ChatBody, chat_request
from privategpt.api.wire.replies import ERRORS, STREAMED, OpenAICompletion

router = APIRouter(route_class=JsonRoute, tags=["Contextual Completions"])


@router.post(
    "/v1/chat/completions",
    summary="Chat Completion",
    operation_id="chat_completion_v1_chat_completions_post",
    response_model=OpenAICompletion,
    responses={**ERRORS, **STREAMED},
)
async def chat_completion(
    body: ChatBody,
    request: Request,
    services: ServicesDep,
    options: OptionsDep,
    caller: CallerDep,
) -> Response:
    """Continue a conversation, from the ingested documents where `use_context` asks for it.

    Without `model` the reply is PrivateGPT's, with it OpenAI's; the two differ in `object`.
    Documents are chosen with `context_filter`, by ids of documents or files. `sources` are the
    chunks that were used.
    """
    asked = chat_request(
        body,
        profile=services.models.profile(body.model),
        tenant=caller.tenant,
        remote_images=options.remote_images,
    )
    encoder = ChatEncoder(
        head=head(body, prefix="chatcmpl", services=services, options=options),
        views=views(request, body, asked),
        choices=asked.request.choices,
        include_usage=wants_usage_chunk(body),
        function_call=body.wants_function_call,
    )
    return await send(
        request,
        services.answering.answer(asked.request),
        stream=body.stream is True,
        encoder=encoder,
        fold=ChatFold(),
    )
