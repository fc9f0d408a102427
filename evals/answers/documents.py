"""What the library of an eval is made of: SQuAD's paragraphs, or its articles.

A paragraph is about a chunk, so only chunks of whole articles have neighbours. Questions are about
paragraphs either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = Mapping[str, Any]

URL = "https://squad.example/"


class Grouping(StrEnum):
    """What is a file."""

    PARAGRAPHS = "paragraphs"
    ARTICLES = "articles"


@dataclass(frozen=True, slots=True)
class SquadFile:
    """A file to ingest."""

    name: str
    text: str
    metadata: Mapping[str, str]


class Documents(Protocol):
    """The files, and which paragraphs a reply's citations and sources are of."""

    def files(self) -> Iterator[SquadFile]:
        """All of them."""
        ...

    def cited(self, citation: Row) -> Sequence[str]:
        """The paragraph of a member of `citations`."""
        ...

    def read(self, source: Row) -> Sequence[str]:
        """The paragraphs of a member of `sources`."""
        ...


def documents(rows: Sequence[Row], grouping: Grouping) -> Documents:
    """Of the corpus, whose paragraphs stand in the order of their articles."""
    return Paragraphs(rows) if grouping is Grouping.PARAGRAPHS else Articles(rows)


class Paragraphs:
    """A file each, known by its address."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def files(self) -> Iterator[SquadFile]:
        """One per paragraph."""
        for row in self._rows:
            metadata = {"title": row["title"], "url": URL + row["_id"]}
            yield SquadFile(row["_id"].replace("#", "-") + ".txt", row["text"], metadata)

    def cited(self, citation: Row) -> Sequence[str]:
        """By its address."""
        return [citation["source_url"].removeprefix(URL)]

    def read(self, source: Row) -> Sequence[str]:
        """By its address."""
        return [source["document"]["doc_metadata"]["url"].removeprefix(URL)]


class Articles:
    """A file each, its paragraphs apart; what was read of one is found by its words."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._paragraphs: dict[str, list[tuple[int, int, str]]] = {}
        self._texts: dict[str, str] = {}
        for title, members in groupby(rows, key=itemgetter("title")):
            places = self._paragraphs[title] = []
            text = ""
            for row in members:
                text = f"{text}\n\n{row['text']}" if text else row["text"]
                places.append((len(text) - len(row["text"]), len(text), row["_id"]))
            self._texts[title] = text

    def files(self) -> Iterator[SquadFile]:
        """One per article."""
        for title, text in self._texts.items():
            yield SquadFile(f"{title}.txt", text, {"title": title})

    def cited(self, citation: Row) -> Sequence[str]:
        """Where its first words stand: it is one sentence or a few."""
        return self._of(citation["document_title"], citation["cited_text"])[:1]

    def read(self, source: Row) -> Sequence[str]:
        """All that it touches."""
        return self._of(source["document"]["doc_metadata"]["title"], source["text"])

    def _of(self, title: str, words: str) -> Sequence[str]:
        start = self._texts[title].find(words)
        if start < 0:
            raise ValueError(f"{words!r} does not stand in {title!r}")
        return [
            paragraph
            for first, last, paragraph in self._paragraphs[title]
            if first < start + len(words) and start < last
        ]
