"""Where a citation points to, in each of Anthropic's five shapes.

All offsets count code points and all ends are exclusive; pages count from 1, all else from 0.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from privategpt.api.encode.views import Json, Views
from privategpt.domain.answers import Citation, Source

Block: TypeAlias = tuple[int, str]
"""A block's text, and where it begins in the text of its document."""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A document that was sent as text; `index` counts the documents of the request from 0."""

    index: int
    title: str | None

    def locate(self, citation: Citation) -> Json:
        """Its characters."""
        return {
            "type": "char_location",
            "cited_text": citation.cited_text,
            "document_index": self.index,
            "document_title": self.title,
            "file_id": None,
            "start_char_index": citation.start,
            "end_char_index": citation.end,
        }


@dataclass(frozen=True, slots=True)
class PagedDocument:
    """A document with pages; `pages` are (offset of its beginning, page number from 1)."""

    index: int
    title: str | None
    pages: tuple[tuple[int, int], ...]

    def locate(self, citation: Citation) -> Json:
        """Its pages."""
        return {
            "type": "page_location",
            "cited_text": citation.cited_text,
            "document_index": self.index,
            "document_title": self.title,
            "file_id": None,
            "start_page_number": self._page(citation.start),
            "end_page_number": self._page(citation.end - 1) + 1,
        }

    def _page(self, offset: int) -> int:
        at = bisect_right(self.pages, offset, key=lambda page: page[0]) - 1
        return self.pages[max(at, 0)][1]


@dataclass(frozen=True, slots=True)
class BlockDocument:
    """A document that was sent in blocks, which are cited whole."""

    index: int
    title: str | None
    blocks: tuple[Block, ...]

    def locate(self, citation: Citation) -> Json:
        """Its blocks."""
        return {
            "type": "content_block_location",
            "document_index": self.index,
            "document_title": self.title,
            "file_id": None,
            **_block_range(self.blocks, citation),
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A search result of the client's; `index` counts those of the request from 0."""

    index: int
    title: str | None
    source: str
    blocks: tuple[Block, ...]

    def locate(self, citation: Citation) -> Json:
        """Its blocks."""
        return {
            "type": "search_result_location",
            "search_result_index": self.index,
            "source": self.source,
            "title": self.title,
            **_block_range(self.blocks, citation),
        }


Place: TypeAlias = TextDocument | PagedDocument | BlockDocument | SearchResult
"""How an attachment is cited."""


def location(citation: Citation, *, places: Sequence[Place], views: Views) -> Json:
    """A citation of an attachment by its place; of a web page by its address; of a passage of the
    library by its page where it has one, else by its characters, and by our own address of it.
    """
    source = citation.source
    if source.number <= len(places):
        return places[source.number - 1].locate(citation)
    if source.document is None:
        return _web_page(citation)
    file_id = source.document.inner_file_id or source.document.file_id
    own = {"file_id": file_id, "source_url": views.place_url(citation)}
    page = _page_number(source)
    if page is not None:
        return PagedDocument(source.number - 1, source.title, ((0, page),)).locate(citation) | own
    return TextDocument(source.number - 1, source.title).locate(citation) | own


def _page_number(source: Source) -> int | None:
    label = source.document.metadata.get("page_label") if source.document else None
    is_number = isinstance(label, str) and label.isascii() and label.isdigit()
    return int(str(label)) if is_number else None


def _web_page(citation: Citation) -> Json:
    source = citation.source
    return {
        "type": "web_search_result_location",
        "cited_text": citation.cited_text,
        "encrypted_index": f"{source.number}:{citation.start}-{citation.end}",
        "title": source.title,
        "url": source.url or "",
    }


def _block_range(blocks: Sequence[Block], citation: Citation) -> Json:
    begins = [begin for begin, _ in blocks]
    first = max(bisect_right(begins, citation.start) - 1, 0)
    last = max(bisect_right(begins, citation.end - 1) - 1, first)
    return {
        "cited_text": "".join(text for _, text in blocks[first : last + 1]),
        "start_block_index": first,
        "end_block_index": last + 1,
    }
