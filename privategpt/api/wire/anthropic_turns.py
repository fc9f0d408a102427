"""Anthropic's turns as the domain's: their blocks become text, pictures, calls and tool turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from privategpt.api.wire.anthropic_blocks import Block, BlockSource, Turn
from privategpt.api.wire.anthropic_documents import title_of
from privategpt.domain.conversation import Image, Message, Role, ToolCall
from privategpt.domain.errors import InvalidRequest, UnsupportedParameter

_DROPPED = frozenset(
    {
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
    }
)
"""What other models thought, and what other systems' server tools did: nothing to answer."""

_SOURCES = frozenset({"document", "search_result"})


def text_of(content: str | Sequence[Block] | None) -> str:
    """The text of a system prompt."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text or "" for block in content if block.type == "text")


def conversation(turns: Sequence[Turn], *, remote_images: bool) -> tuple[Message, ...]:
    """The turns of a request; documents and search results in it are read elsewhere.

    Raises `InvalidRequest` where a tool's answer belongs to no call before it, and
    `UnsupportedParameter` for blocks that cannot be read here.
    """
    messages: list[Message] = []
    open_calls: set[str] = set()
    for at, turn in enumerate(turns):
        if isinstance(turn.content, str):
            messages.append(Message(Role(turn.role), turn.content))
            continue
        reader = _TurnReader(open_calls=open_calls, remote_images=remote_images)
        for index, block in enumerate(turn.content):
            reader.read(block, f"messages[{at}].content[{index}]")
        messages += reader.messages(Role(turn.role))
        open_calls |= {call.id for call in reader.calls}
    return tuple(messages)


@dataclass(slots=True)
class _TurnReader:
    """One turn of blocks."""

    open_calls: set[str]
    remote_images: bool
    texts: list[str] = field(default_factory=list[str])
    images: list[Image] = field(default_factory=list[Image])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[Message] = field(default_factory=list[Message])

    def read(self, block: Block, param: str) -> None:
        """Take a block."""
        if block.type == "text":
            self.texts.append(block.text or "")
        elif block.type == "image":
            self.images.append(self._image(block, param))
        elif block.type == "tool_use":
            self.calls.append(_call(block, param))
        elif block.type == "tool_result":
            self.results.append(self._result(block, param))
        elif block.type not in _DROPPED | _SOURCES:
            raise UnsupportedParameter("Blocks of this type cannot be read here", param=param)

    def messages(self, role: Role) -> list[Message]:
        """The turn: the answers of tools, then what was said.

        What an assistant said is joined as it was, since our own answers are cut into blocks at
        their citations.
        """
        text = ("" if role is Role.ASSISTANT else "\n").join(self.texts)
        if self.results and not (text or self.images or self.calls):
            return self.results
        calls = tuple(self.calls) if role is Role.ASSISTANT else ()
        return [*self.results, Message(role, text, tool_calls=calls, images=tuple(self.images))]

    def _result(self, block: Block, param: str) -> Message:
        if block.tool_use_id not in self.open_calls:
            raise InvalidRequest(
                "A tool_result must follow a tool_use block with its tool_use_id",
                param=f"{param}.tool_use_id",
            )
        texts = [block.content] if isinstance(block.content, str) else []
        for at, inner in enumerate(block.blocks):
            if inner.type == "image":
                # Engines take pictures from users only; they follow in the turn that says more.
                self.images.append(self._image(inner, f"{param}.content[{at}]"))
            elif inner.type in _SOURCES:
                texts.append(f"Source: {title_of(inner)}")
            else:
                texts.append(inner.text or "")
        text = "\n".join(texts)
        return Message(
            Role.TOOL,
            f"Error: {text}" if block.is_error else text,
            tool_call_id=block.tool_use_id,
        )

    def _image(self, block: Block, param: str) -> Image:
        source = block.source
        if isinstance(source, BlockSource):
            if source.type == "base64" and source.media_type and source.data is not None:
                return Image(url=f"data:{source.media_type};base64,{source.data}")
            if source.type == "url" and source.url and self.remote_images:
                return Image(url=source.url)
        # The engine would fetch an address from inside the operator's network.
        raise UnsupportedParameter("Send images in base64", param=f"{param}.source")


def _call(block: Block, param: str) -> ToolCall:
    if not block.id or not block.name:
        raise InvalidRequest("A tool_use block needs an id and a name", param=param)
    arguments = json.dumps(block.input or {}, ensure_ascii=False)
    return ToolCall(id=block.id, name=block.name, arguments=arguments)
