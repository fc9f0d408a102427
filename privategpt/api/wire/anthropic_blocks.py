"""Content blocks as Anthropic's clients send them. Which fields count depends on `type`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

from pydantic import Field

from privategpt.api.wire.body import Body, Items


class SourceText(Body):
    """A piece of a document that is sent in pieces."""

    type: str = Field(max_length=64)
    text: str | None = None


class BlockSource(Body):
    """Where the content of a document or an image is: here, or elsewhere (`url`, `file`)."""

    type: str = Field(max_length=64)
    media_type: str | None = Field(default=None, max_length=256)
    data: str | None = None
    url: str | None = None
    content: str | Items[SourceText] | None = None


class Block(Body):
    """One block. What clients echo beyond these fields (`cache_control`, `caller`) is ignored."""

    type: str = Field(max_length=64)
    text: str | None = None
    source: BlockSource | str | None = None
    title: str | None = None
    context: str | None = None
    # A setting on documents; on the text blocks of an answer that is sent back, a list.
    citations: Any = None
    # Server tools of other systems have objects here; such blocks are not read.
    content: str | Items[Block] | dict[str, Any] | None = None
    id: str | None = Field(default=None, max_length=512)
    name: str | None = Field(default=None, max_length=256)
    input: dict[str, Any] | None = None
    tool_use_id: str | None = Field(default=None, max_length=512)
    is_error: bool | None = None

    @property
    def wants_citations(self) -> bool:
        """Whether answers shall cite this document or search result."""
        setting = cast("object", self.citations)
        return isinstance(setting, dict) and cast("dict[str, Any]", setting).get("enabled") is True

    @property
    def blocks(self) -> Sequence[Block]:
        """The blocks inside this one."""
        return self.content if isinstance(self.content, list) else ()


class Turn(Body):
    """One turn of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | Items[Block]


class PlacedBlock(NamedTuple):
    """A block, and where it stands in the body: `messages[0].content[1]`."""

    param: str
    block: Block


def placed_blocks(turns: Sequence[Turn]) -> Iterator[PlacedBlock]:
    """All blocks in their order, those inside tool results included."""
    for at, turn in enumerate(turns):
        if not isinstance(turn.content, str):
            yield from _placed(turn.content, f"messages[{at}].content")


def _placed(blocks: Sequence[Block], param: str) -> Iterator[PlacedBlock]:
    for at, block in enumerate(blocks):
        yield PlacedBlock(f"{param}[{at}]", block)
        if block.type == "tool_result":
            yield from _placed(block.blocks, f"{param}[{at}].content")
