"""Messages as clients send them, and the turns that they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from privategpt.api.wire.body import Body, Items
from privategpt.domain.conversation import Image, Message, Role, ToolCall
from privategpt.domain.errors import InvalidRequest, UnsupportedParameter


class ImageUrl(Body):
    """A picture: a data URL, or an address where the operator allows it."""

    url: str
    detail: Literal["auto", "low", "high", "original"] | None = None


class ContentPart(Body):
    """One part of a message. Which of the other fields counts depends on `type`."""

    type: str = Field(max_length=64)
    text: str | None = None
    refusal: str | None = None
    # A bare address is what Mistral's clients send, and some of OpenAI's early ones.
    image_url: ImageUrl | str | None = None


class FunctionCall(Body):
    """A call as the model wrote it; `arguments` is JSON text, and some clients send it empty."""

    name: str = Field(max_length=256)
    arguments: str | None = None


class ToolCallItem(Body):
    """A call of an earlier assistant turn, sent back."""

    id: str = Field(max_length=512)
    function: FunctionCall


class ChatMessage(Body):
    """One turn. What clients echo beyond these fields (annotations, sources) is ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] | None = None
    content: str | Items[ContentPart] | None = None
    tool_calls: Items[ToolCallItem] | None = None
    tool_call_id: str | None = Field(default=None, max_length=512)
    function_call: FunctionCall | None = None


_ROLES = {
    None: Role.USER,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}


def conversation(messages: Sequence[ChatMessage], *, remote_images: bool) -> tuple[Message, ...]:
    """The turns of a request.

    Raises `InvalidRequest` where a tool's answer belongs to no call before it, and
    `UnsupportedParameter` for parts that cannot be read here.
    """
    turns: list[Message] = []
    open_calls: set[str] = set()
    last_function_call = ""
    for index, message in enumerate(messages):
        param = f"messages[{index}]"
        calls = _calls(message, param)
        if calls and message.function_call is not None:
            last_function_call = calls[-1].id
        call_id = last_function_call if message.role == "function" else message.tool_call_id
        role = _ROLES[message.role]
        if role is Role.TOOL and call_id not in open_calls:
            raise InvalidRequest(
                "A tool message must follow an assistant message whose tool_calls has its id",
                param=f"{param}.tool_call_id",
            )
        open_calls.update(call.id for call in calls)
        text, images = _content(message, param, remote_images=remote_images)
        turns.append(
            Message(
                role=role,
                text=text,
                tool_calls=calls,
                tool_call_id=call_id if role is Role.TOOL else None,
                images=images,
            )
        )
    return tuple(turns)


def _calls(message: ChatMessage, param: str) -> tuple[ToolCall, ...]:
    if message.role != "assistant":
        return ()
    calls = [
        ToolCall(id=item.id, name=item.function.name, arguments=item.function.arguments or "{}")
        for item in message.tool_calls or []
    ]
    if (old := message.function_call) is not None:
        # OpenAI's deprecated form has no ids; the place in the conversation makes one.
        call_id = f"call_{param.removeprefix('messages[').removesuffix(']')}"
        calls.append(ToolCall(id=call_id, name=old.name, arguments=old.arguments or "{}"))
    return tuple(calls)


def _content(
    message: ChatMessage, param: str, *, remote_images: bool
) -> tuple[str, tuple[Image, ...]]:
    if message.content is None or isinstance(message.content, str):
        return message.content or "", ()
    texts: list[str] = []
    images: list[Image] = []
    for index, part in enumerate(message.content):
        if part.type in {"text", "input_text", "output_text", "refusal"}:
            texts.append(part.text or part.refusal or "")
        elif part.type == "image_url" and part.image_url is not None:
            image = part.image_url
            image = ImageUrl(url=image) if isinstance(image, str) else image
            images.append(_image(image, f"{param}.content[{index}]", remote_images))
        else:
            raise UnsupportedParameter(
                "Only text and image_url parts can be read here; ingest files with /v1/ingest",
                param=f"{param}.content[{index}]",
            )
    return "".join(texts), tuple(images)


def _image(image: ImageUrl, param: str, remote_images: bool) -> Image:
    # The engine would fetch the address from inside the operator's network.
    known = ("data:image/", "https://", "http://") if remote_images else "data:image/"
    if not image.url.startswith(known):
        raise UnsupportedParameter("Send images as data: URLs", param=param)
    return Image(url=image.url, detail=image.detail)
