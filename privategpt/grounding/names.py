"""Finds names in a text by how they are written, and where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from privategpt.grounding.lexicon import WORD, words

WORDS = re.compile(rf"{WORD}(?:['’.&-]{WORD})*")
"""Words as names are made of them, with what joins their parts."""

GERMAN = words("der die das den dem des und ist sind ein eine im vom zum zur wird wurde mit nicht")
"""Small words of German, which capitalises every noun."""
_TITLE = re.compile(r"\b[A-Z][a-z]{0,2}\.\Z")  # "Dr.", "St.", "J."


class NamePlace(NamedTuple):
    """A run of names with the words around it; "" stands for the sentence's ends."""

    before: str
    names: tuple[str, ...]
    after: str


def names_in(text: str) -> frozenset[str]:
    """Capitalised words within a sentence, and words with two capitals anywhere.

    The first word counts only if it is capitalised further on, too. In German and in headings,
    where most nouns are capitalised, only words with two capitals are names.
    """
    inner: set[str] = set()
    first: set[str] = set()
    strong: set[str] = set()
    count = capitals = 0
    for found in WORDS.finditer(text):
        word = found[0]
        count += 1
        if len(re.findall(r"[A-ZÀ-ÖØ-Þ]", word)) > 1:
            strong.add(_bare(word))
        elif word[0].isupper() and len(word) > 1:
            before = text[: found.start()].rstrip(" \t\"'“‘«(*_")
            starts = not before or (before[-1] in ".!?:…\n。" and not _TITLE.search(before))
            (first if starts else inner).add(_bare(word))
            capitals += not starts
    german = len(GERMAN.intersection(text.casefold().split())) > 1
    if german or capitals * 5 > count * 3 > 9:
        return frozenset(strong)
    return frozenset(strong | inner | (first & inner))


def places_of(tokens: Sequence[str], names: frozenset[str]) -> Iterable[NamePlace]:
    """The runs of `names` among the words of a text."""
    words = ["", *map(_bare, tokens), ""]
    at = 1
    while at < len(words) - 1:
        end = at
        while words[end] in names:
            end += 1
        if end > at:
            yield NamePlace(words[at - 1], tuple(words[at:end]), words[end])
        at = end + 1


def _bare(word: str) -> str:
    return re.sub(r"['’]s\Z", "", word).casefold()


def parts_of(token: str) -> list[str]:
    """What a word with a hyphen, an apostrophe or the like is made of, if it is."""
    bare = re.sub(r"['’]s\Z", "", token)
    parts = re.split(r"[-'’&.]", bare)
    return [bare, *parts] if len(parts) > 1 or bare != token else []


def initials_of(tokens: list[str]) -> frozenset[str]:
    """First letters of runs of capitalised words: "World Health Organization" gives "who"."""
    found: set[str] = set()
    run = ""
    for token in [*tokens, ""]:
        if token[:1].isupper():
            run += token[0].casefold()
            continue
        if token.casefold() in {"of", "the", "and", "for", "de", "der", "du"} and run:
            continue
        found.update(
            run[a:b] for a in range(len(run)) for b in range(a + 2, min(len(run), a + 6) + 1)
        )
        run = ""
    return frozenset(found)
