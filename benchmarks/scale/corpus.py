"""Real passages, and the files that they are ingested in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PASSAGES_PER_FILE = 100


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph of a reference work and what it is about; neither holds a line break."""

    title: str
    text: str


def passages(corpus: Path, *, every: int = 1) -> Iterator[Passage]:
    """One in `every` of the corpus, a JSON object a line."""
    with corpus.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % every == 0:
                entry = json.loads(line)
                yield Passage(title=entry["title"], text=" ".join(entry["text"].split()))


def endless(corpus: Path) -> Iterator[Passage]:
    """All of them, and again, each time with an edition that tells them apart."""
    edition = 1
    while True:
        for passage in passages(corpus):
            again = f" Edition {edition}." if edition > 1 else ""
            yield Passage(title=passage.title, text=passage.text + again)
        edition += 1


def as_sections(found: list[Passage]) -> str:
    """A Markdown file with a heading above every passage."""
    return "".join(f"## {passage.title}\n\n{passage.text}\n\n" for passage in found)


def as_paragraphs(found: list[Passage]) -> str:
    """A plain text, a passage a paragraph."""
    return "\n\n".join(passage.text for passage in found)


def questions(corpus: Path, *, words: int = 8) -> list[str]:
    """A few words from the middle of passages all over the corpus, a thousand in all."""
    lines = sum(1 for _ in passages(corpus))
    asked: list[str] = []
    for passage in passages(corpus, every=max(1, lines // 1000)):
        found = passage.text.split()
        start = max(0, (len(found) - words) // 2)
        asked.append(" ".join(found[start : start + words]))
    return asked
