"""POST /v1/chat/completions: OpenAI's body and PrivateGPT's in one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from pydantic.config import JsonDict

from privategpt.api.profiles import ModelProfile
from privategpt.api.wire.answering import Answerable, answerable
from privategpt.api.wire.body import INT64, Body, Items, at_most
from privategpt.api.wire.generation import GenerationBody, sampling
from privategpt.api.wire.messages import ChatMessage, conversation
from privategpt.api.wire.tools import (
    FunctionCallField,
    FunctionSpec,
    ResponseFormat,
    Tool,
    ToolChoiceField,
    legacy_tooling,
    response_format,
    tooling,
)
from privategpt.domain.conversation import Tooling
from privategpt.domain.errors import InvalidRequest, UnsupportedParameter

# Not `deprecated=True`: pydantic would warn whenever the server reads the field.
DEPRECATED: JsonDict = {"deprecated": True}

MetadataKey = Annotated[str, Field(max_length=64)]
MetadataValue = Annotated[str, Field(max_length=512)]
RequestMetadata = Annotated[dict[MetadataKey, MetadataValue], at_most(16)]

MAX_MESSAGES = 10_000


class Moderation(Body):
    """OpenAI's moderation of a request; there is no classifier here."""

    policy: Any = None


class ChatBody(GenerationBody):
    """A conversation to continue."""

    messages: Items[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    max_completion_tokens: int | None = Field(default=None, ge=0, lt=INT64)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    tools: Items[Tool] | None = Field(default=None, max_length=128)
    tool_choice: ToolChoiceField | None = None
    parallel_tool_calls: bool | None = None
    functions: Items[FunctionSpec] | None = Field(
        default=None, max_length=128, json_schema_extra=DEPRECATED
    )
    function_call: FunctionCallField | None = Field(default=None, json_schema_extra=DEPRECATED)
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = Field(default=None, max_length=32)
    modalities: Items[str] | None = None
    metadata: RequestMetadata | None = None
    moderation: Moderation | None = None

    @property
    def token_limit(self) -> int | None:
        """How long the reply may be, by the newer name where both are given; 0 is no text."""
        if self.max_completion_tokens is None:
            return self.max_tokens
        return self.max_completion_tokens

    @property
    def wants_function_call(self) -> bool:
        """True where the client speaks OpenAI's deprecated form, and must be answered in it."""
        return bool(self.functions) and not self.tools


def chat_request(
    body: ChatBody, *, profile: ModelProfile, tenant: str, remote_images: bool
) -> Answerable:
    """What is asked of the use case. Raises `InvalidRequest` and `UnsupportedParameter`."""
    _refuse(body)
    top_logprobs = (body.top_logprobs or 0) if body.logprobs else None
    return answerable(
        body,
        profile=profile,
        tenant=tenant,
        messages=conversation(body.messages, remote_images=remote_images),
        sampling=sampling(
            body,
            max_tokens=body.token_limit,
            top_logprobs=top_logprobs,
            reasoning_effort=body.reasoning_effort,
        ),
        tooling=_tooling(body),
        response_format=response_format(body.response_format),
    )


def _tooling(body: ChatBody) -> Tooling:
    if body.wants_function_call:
        return legacy_tooling(body.functions or [], body.function_call)
    return tooling(body.tools, body.tool_choice, parallel_tool_calls=body.parallel_tool_calls)


def _refuse(body: ChatBody) -> None:
    """What must not be ignored in silence: the client would take the reply for something else."""
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidRequest("top_logprobs needs logprobs to be true", param="top_logprobs")
    if "audio" in (body.modalities or []):
        raise UnsupportedParameter("This server writes text only", param="modalities")
    if body.moderation is not None and "block" in repr(body.moderation.policy):
        raise UnsupportedParameter("This server has no moderation to block by", param="moderation")
