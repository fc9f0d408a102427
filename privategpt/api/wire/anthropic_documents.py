"""Documents and search results in the blocks of a request: what is read, and where it is cited.

Each is one source of the answer, in the order of the request: documents first, then search
results, so that marker `[n]` is the document of index n - 1.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from privategpt.api.encode.anthropic_places import (
    BlockDocument,
    PagedDocument,
    Place,
    SearchResult,
    TextDocument,
)
from privategpt.api.wire.anthropic_blocks import Block, BlockSource, Turn, placed_blocks
from privategpt.domain.conversation import Attachment
from privategpt.domain.errors import InvalidRequest, UnsupportedParameter
from privategpt.services.attachments import ReadFile

MAX_PDFS = 100
BLOCK_BREAK = "\n\n"
"""Between the blocks of one document, so that no sentence runs from one into the next."""


@dataclass(frozen=True, slots=True)
class Attached:
    """What came with a request, and how each attachment is cited, in the same order.

    `contexts` are what the client says of documents without wanting it cited.
    """

    attachments: tuple[Attachment, ...]
    places: tuple[Place, ...]
    contexts: tuple[str, ...]
    wants_citations: bool


def pdfs(turns: Sequence[Turn]) -> dict[str, bytes]:
    """The bytes of every PDF, by the place of its block. Raises `InvalidRequest`."""
    found: dict[str, bytes] = {}
    for param, block in placed_blocks(turns):
        source = block.source
        if block.type == "document" and isinstance(source, BlockSource) and _is_pdf(source):
            found[param] = _decoded(source.data or "", param)
    if len(found) > MAX_PDFS:
        raise InvalidRequest(f"At most {MAX_PDFS} PDFs can be sent at once", param="messages")
    return found


def attached(turns: Sequence[Turn], *, files: Mapping[str, ReadFile]) -> Attached:
    """The documents and search results of a request; `files` are its PDFs, read.

    Raises `InvalidRequest` and `UnsupportedParameter`.
    """
    placed = list(placed_blocks(turns))
    documents = [one for one in placed if one.block.type == "document"]
    results = [one for one in placed if one.block.type == "search_result"]
    read = [
        _document(block, param, index=index, file=files.get(param))
        for index, (param, block) in enumerate(documents)
    ]
    read += [
        _search_result(block, param, index=index) for index, (param, block) in enumerate(results)
    ]
    return Attached(
        attachments=tuple(attachment for attachment, _ in read),
        places=tuple(place for _, place in read),
        contexts=tuple(_contexts(one.block for one in documents)),
        wants_citations=any(one.block.wants_citations for one in documents + results),
    )


def title_of(block: Block) -> str:
    """What a document or search result is called."""
    if block.title:
        return block.title
    return block.source if isinstance(block.source, str) else "Document"


def _contexts(documents: Iterator[Block]) -> Iterator[str]:
    for block in documents:
        if block.context:
            yield f"About the source {title_of(block)!r}: {block.context}"


def _document(
    block: Block, param: str, *, index: int, file: ReadFile | None
) -> tuple[Attachment, Place]:
    title = title_of(block)
    source = block.source
    if not isinstance(source, BlockSource):
        raise InvalidRequest("A document needs a source", param=f"{param}.source")
    if file is not None:
        return Attachment(title, file.text), PagedDocument(index, block.title, file.pages)
    if source.type == "text" and source.data is not None:
        return Attachment(title, source.data), TextDocument(index, block.title)
    if source.type == "content" and source.content is not None:
        texts = _texts(source, f"{param}.source")
        return (
            Attachment(title, BLOCK_BREAK.join(texts)),
            BlockDocument(index, block.title, _cut(texts)),
        )
    raise UnsupportedParameter(
        "Documents can be sent as text, as content blocks of text and as PDF in base64; what is "
        "elsewhere (url, file) is not fetched",
        param=f"{param}.source",
    )


def _texts(source: BlockSource, param: str) -> tuple[str, ...]:
    if isinstance(source.content, str):
        return (source.content,)
    blocks = source.content or []
    for at, block in enumerate(blocks):
        if block.type != "text":
            raise UnsupportedParameter(
                "The content of a document can only be text", param=f"{param}.content[{at}]"
            )
    return tuple(block.text or "" for block in blocks)


def _search_result(block: Block, param: str, *, index: int) -> tuple[Attachment, Place]:
    if not isinstance(block.source, str):
        raise InvalidRequest("A search result needs a source", param=f"{param}.source")
    texts = tuple(inner.text or "" for inner in block.blocks if inner.type == "text")
    attachment = Attachment(title_of(block), BLOCK_BREAK.join(texts), url=_address(block.source))
    return attachment, SearchResult(index, block.title, block.source, _cut(texts))


def _address(source: str) -> str | None:
    """A search result's source where a browser may be sent there; it may be any name."""
    return source if source.lower().startswith(("http://", "https://")) else None


def _cut(texts: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Each block with where it begins in the joined text."""
    begins: list[tuple[int, str]] = []
    at = 0
    for text in texts:
        begins.append((at, text))
        at += len(text) + len(BLOCK_BREAK)
    return tuple(begins)


def _is_pdf(source: BlockSource) -> bool:
    return source.type == "base64" and source.media_type == "application/pdf"


def _decoded(data: str, param: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest("The data is not base64", param=f"{param}.source.data") from error
