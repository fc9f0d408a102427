"""POST /v1/messages and /v1/messages/count_tokens: Anthropic's bodies, with our fields beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from privategpt.api.encode.anthropic_places import Place
from privategpt.api.profiles import MARKED, CitationStyle, ModelProfile
from privategpt.api.wire.anthropic_blocks import Block, Turn
from privategpt.api.wire.anthropic_documents import Attached, attached
from privategpt.api.wire.anthropic_turns import conversation, text_of
from privategpt.api.wire.body import (
    INT64,
    Body,
    ContextOptions,
    Items,
    document_filter,
    first_said,
    styles,
)
from privategpt.domain.conversation import JsonObject, Message, Role, Sampling, Tooling
from privategpt.domain.errors import InvalidRequest
from privategpt.services.answering import AnswerRequest
from privategpt.services.attachments import ReadFile

MAX_MESSAGES = 100_000

StopSequence = Annotated[str, Field(min_length=1, max_length=1000)]


class MessagesTool(Body):
    """A tool of the caller's (no `type`, or `custom`), or one of another system's, left out."""

    type: str | None = Field(default=None, max_length=64)
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,128}$")] | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


class MessagesToolChoice(Body):
    """How the model may use the tools."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = Field(default=None, max_length=256)
    disable_parallel_tool_use: bool | None = None


class Thinking(Body):
    """Whether what the model thinks is sent too; budgets are the engine's own affair."""

    type: str = Field(max_length=64)
    display: str | None = Field(default=None, max_length=64)


class OutputFormat(Body):
    """The schema that a structured reply follows."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(Body):
    """How hard the model thinks, and the shape of its reply."""

    effort: str | None = Field(default=None, max_length=32)
    format: OutputFormat | None = None


class CountTokensBody(ContextOptions):
    """A conversation, as it is to be counted."""

    model: str = Field(max_length=512)
    messages: Items[Turn] = Field(min_length=1, max_length=MAX_MESSAGES)
    system: str | Items[Block] | None = None
    tools: Items[MessagesTool] | None = Field(default=None, max_length=1000)
    tool_choice: MessagesToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None


class MessagesBody(CountTokensBody):
    """A conversation to continue.

    Anthropic requires `max_tokens`; seed 003's request on this endpoint has none, so without it
    the engine's own bound holds.
    """

    max_tokens: int | None = Field(default=None, ge=1, lt=INT64)
    stop_sequences: Items[StopSequence] | None = Field(default=None, max_length=100)
    stream: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=0, lt=INT64)

    @property
    def shows_thinking(self) -> bool:
        """Whether thoughts are asked for."""
        asked = self.thinking
        return asked is not None and asked.type != "disabled" and asked.display != "omitted"


@dataclass(frozen=True, slots=True)
class AskedMessage:
    """A request to the use case, in which styles its answer is shown, and how its attachments are
    cited.
    """

    request: AnswerRequest
    styles: frozenset[CitationStyle]
    places: tuple[Place, ...]


def message_request(
    body: CountTokensBody,
    *,
    profile: ModelProfile,
    tenant: str,
    files: Mapping[str, ReadFile],
    remote_images: bool,
) -> AskedMessage:
    """What is asked of the use case; `files` are the PDFs of the body, read.

    Raises `InvalidRequest` and `UnsupportedParameter`.
    """
    sources = attached(body.messages, files=files)
    use_context = first_said(body.use_context, profile.use_context)
    web_search = first_said(body.web_search, profile.web_search)
    form = _response_format(body)
    asks = sources.wants_citations or web_search or (use_context and _wants_citations(body))
    return AskedMessage(
        request=AnswerRequest(
            messages=_messages(body, sources, remote_images=remote_images),
            tenant=tenant,
            model=profile.engine_model,
            use_context=use_context,
            filter=document_filter(body.context_filter),
            # JSON with markers in it would not be the JSON that was asked for.
            cite=asks and form is None,
            context_only=first_said(body.context_only, profile.context_only),
            web_search=web_search,
            sampling=_sampling(body),
            tooling=_tooling(body.tools or [], body.tool_choice),
            response_format=form,
            system_prompt=body.system_prompt or profile.system_prompt,
            attachments=sources.attachments,
            tell_stop=True,
            whole_sentences=True,
            tell_prompt=True,
        ),
        # JSON has no markers; its sources are shown beside it all the same.
        styles=frozenset({CitationStyle.ANNOTATIONS} if asks else ()),
        places=sources.places,
    )


def _wants_citations(body: ContextOptions) -> bool:
    """Whether an answer from the library cites it: unless the client names other styles only."""
    named = styles(body)
    return named is None or bool(named & MARKED)


def _messages(
    body: CountTokensBody, sources: Attached, *, remote_images: bool
) -> tuple[Message, ...]:
    system = [text_of(body.system), *sources.contexts]
    instructions = tuple(Message(Role.SYSTEM, text) for text in system if text)
    return instructions + conversation(body.messages, remote_images=remote_images)


def _sampling(body: CountTokensBody) -> Sampling:
    effort = body.output_config.effort if body.output_config else None
    if not isinstance(body, MessagesBody):
        return Sampling(reasoning_effort=effort)
    return Sampling(
        max_tokens=body.max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stop=tuple(body.stop_sequences or ()),
        reasoning_effort=effort,
    )


def _response_format(body: CountTokensBody) -> JsonObject | None:
    form = body.output_config.format if body.output_config else None
    if form is None:
        return None
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": form.schema_, "strict": True},
    }


def _tooling(tools: list[MessagesTool], choice: MessagesToolChoice | None) -> Tooling:
    """OpenAI's shape of the caller's tools. Raises `InvalidRequest`.

    Server tools of another system (`web_search_20250305`) start nothing here and are no error
    (seed 003).
    """
    own = [(at, tool) for at, tool in enumerate(tools) if tool.type in (None, "custom")]
    functions = tuple(_function(tool, f"tools[{at}]") for at, tool in own)
    if choice is None:
        return Tooling(tools=functions)
    names = {tool.name for _, tool in own}
    return Tooling(
        tools=functions,
        tool_choice=_chosen(choice, names) if functions or choice.type == "tool" else None,
        parallel_tool_calls=False if functions and choice.disable_parallel_tool_use else None,
    )


def _function(tool: MessagesTool, param: str) -> JsonObject:
    if tool.name is None or tool.input_schema is None:
        raise InvalidRequest("A tool needs a name and an input_schema", param=param)
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.input_schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _chosen(choice: MessagesToolChoice, names: set[str | None]) -> str | JsonObject:
    if choice.type != "tool":
        return "required" if choice.type == "any" else choice.type
    if choice.name not in names:
        raise InvalidRequest("tool_choice names a tool that is not in tools", param="tool_choice")
    return {"type": "function", "function": {"name": choice.name}}
