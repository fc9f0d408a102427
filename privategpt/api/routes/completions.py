"""POST /v1/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from privategpt.api.auth import CallerDep
from privategpt.api.deps import OptionsDep, ServicesDep
from privategpt.api.encode.openai_chat import ChatEncoder
from privategpt.api.encode.openai_completion import CompletionEncoder, CompletionFold
from privategpt.api.jsontext import JsonRoute
from privategpt.api.routes.answers import (
    head,
    one_after_another,
    send,
    views,
    wants_usage_chunk,
)
from privategpt.api.wire.completions import CompletionsBody, completion_requests, echoed
from privategpt.api.wire.replies import ERRORS, STREAMED, OpenAICompletion

router = APIRouter(route_class=JsonRoute, tags=["Contextual Completions"])


@router.post(
    "/v1/completions",
    summary="Completion",
    operation_id="prompt_completion_v1_completions_post",
    response_model=OpenAICompletion,
    responses={**ERRORS, **STREAMED},
)
async def prompt_completion(
    body: CompletionsBody,
    request: Request,
    services: ServicesDep,
    options: OptionsDep,
    caller: CallerDep,
) -> Response:
    """Answer a prompt, from the ingested documents where `use_context` asks for it.

    The prompt becomes one user message. The answer is both in `text`, as OpenAI's clients read
    it, and in `message` (`delta` in a stream), as PrivateGPT's do. Several prompts are answered
    one after the other, each with `n` choices.
    """
    asked = completion_requests(
        body, profile=services.models.profile(body.model), tenant=caller.tenant
    )
    reply_head = head(body, prefix="cmpl", services=services, options=options)
    choices = body.n or 1
    encoder = CompletionEncoder(
        ChatEncoder(
            head=reply_head,
            views=views(request, body, asked[0]),
            choices=choices,
            include_usage=wants_usage_chunk(body),
        ),
        echoes=[echo for echo in echoed(body) for _ in range(choices)],
        openai=reply_head.openai,
    )
    return await send(
        request,
        one_after_another(services.answering, [each.request for each in asked]),
        stream=body.stream is True,
        encoder=encoder,
        fold=CompletionFold(),
    )
