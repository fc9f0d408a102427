"""Tools, the choice among them, and the shape of the reply, as OpenAI's clients send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from privategpt.api.wire.body import Body, Items
from privategpt.domain.conversation import JsonObject, Tooling
from privategpt.domain.errors import InvalidRequest, UnsupportedParameter

ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class FunctionSpec(Body):
    """A function of the caller's, which the model may ask for."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Body):
    """A tool; only functions can be used here."""

    type: str = Field(max_length=64)
    function: FunctionSpec | None = None


class NamedFunction(Body):
    """A function by its name."""

    name: str = Field(max_length=256)


class AllowedTool(Body):
    """A tool of those that the model may choose among."""

    type: str = Field(max_length=64)
    function: NamedFunction | None = None


class AllowedTools(Body):
    """A choice among some of the tools."""

    mode: Literal["auto", "required"]
    tools: Items[AllowedTool]


class ToolChoice(Body):
    """A choice that names what the model must or may call."""

    type: str = Field(max_length=64)
    function: NamedFunction | None = None
    allowed_tools: AllowedTools | None = None


class JsonSchema(Body):
    """The schema that a structured reply follows."""

    name: ToolName
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None
    description: str | None = None


class ResponseFormat(Body):
    """Free text, any JSON object, or JSON of one schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


ToolChoiceField: TypeAlias = Literal["none", "auto", "required"] | ToolChoice
FunctionCallField: TypeAlias = Literal["none", "auto"] | NamedFunction


def tooling(
    tools: list[Tool] | None,
    choice: ToolChoiceField | None,
    *,
    parallel_tool_calls: bool | None,
) -> Tooling:
    """The domain's tooling. Raises `UnsupportedParameter` and `InvalidRequest`."""
    specs = _functions(tools or [])
    if isinstance(choice, ToolChoice) and choice.type == "allowed_tools":
        specs, choice = _allowed(specs, choice)
    if choice == "required" and not specs:
        raise InvalidRequest("tool_choice is 'required', but there are no tools", param=_CHOICE)
    return Tooling(
        tools=tuple({"type": "function", "function": _dump(spec)} for spec in specs),
        tool_choice=_chosen(choice, specs) if specs or isinstance(choice, ToolChoice) else None,
        parallel_tool_calls=parallel_tool_calls if specs else None,
    )


def legacy_tooling(functions: list[FunctionSpec], choice: FunctionCallField | None) -> Tooling:
    """OpenAI's deprecated `functions` and `function_call`, as tools; one call at a time."""
    tools = [Tool(type="function", function=spec) for spec in functions]
    named = (
        ToolChoice(type="function", function=choice)
        if isinstance(choice, NamedFunction)
        else choice
    )
    return tooling(tools, named, parallel_tool_calls=False)


def response_format(body: ResponseFormat | None) -> JsonObject | None:
    """The reply's shape for the engine; None for free text. Raises `InvalidRequest`."""
    if body is None or body.type == "text":
        return None
    if body.type == "json_object":
        return {"type": "json_object"}
    if body.json_schema is None:
        raise InvalidRequest(
            "A response_format of type 'json_schema' needs json_schema with name and schema",
            param="response_format.json_schema",
        )
    return {"type": "json_schema", "json_schema": _dump(body.json_schema)}


_CHOICE = "tool_choice"


def _dump(body: Body) -> Mapping[str, Any]:
    return body.model_dump(by_alias=True, exclude_none=True)


def _functions(tools: list[Tool]) -> list[FunctionSpec]:
    specs: list[FunctionSpec] = []
    for index, tool in enumerate(tools):
        if tool.type == "function":
            if tool.function is None:
                raise InvalidRequest(
                    "A tool of type 'function' needs a function", param=f"tools[{index}].function"
                )
            specs.append(tool.function)
        elif not tool.type.startswith("web_search"):
            # Seed 003: other systems' search tools start no search here, and are no error.
            raise UnsupportedParameter(
                "Only tools of type 'function' can be used", param=f"tools[{index}].type"
            )
    return specs


def _allowed(
    specs: list[FunctionSpec], choice: ToolChoice
) -> tuple[list[FunctionSpec], Literal["auto", "required"]]:
    if choice.allowed_tools is None:
        raise InvalidRequest(
            "A tool_choice of type 'allowed_tools' needs allowed_tools", param=_CHOICE
        )
    names = {tool.function.name for tool in choice.allowed_tools.tools if tool.function}
    allowed = [spec for spec in specs if spec.name in names]
    if len(allowed) < len(names):
        raise InvalidRequest("allowed_tools names a tool that is not in tools", param=_CHOICE)
    return allowed, choice.allowed_tools.mode


def _chosen(
    choice: ToolChoiceField | None, specs: list[FunctionSpec]
) -> str | Mapping[str, Any] | None:
    if not isinstance(choice, ToolChoice):
        return choice
    if choice.type != "function" or choice.function is None:
        raise UnsupportedParameter("tool_choice can only name a function", param=_CHOICE)
    if choice.function.name not in {spec.name for spec in specs}:
        raise InvalidRequest("tool_choice names a function that is not in tools", param=_CHOICE)
    return {"type": "function", "function": {"name": choice.function.name}}
