"""What to search for when a question is asked in the middle of a conversation.

"And its budget?" finds nothing by itself; joined with what the turns before were about, it finds
what the first question was about. A question that stands alone is searched for as it is, since
old topics would only dilute it. Decided by the small words of the sentence, without a model: an
error costs some precision (both topics are searched for), never the question itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from privategpt.domain.conversation import Message, Role
from privategpt.grounding.lexicon import WORD, composed
from privategpt.services.function_words import (
    CJK_FRAGMENT_ENDS,
    CJK_FUNCTION,
    CJK_LEADS,
    CJK_NO_REFERENCES,
    CJK_REFERENCES,
    EXPLETIVES,
    LANGUAGES,
    Language,
)

TURNS_BACK = 5
"""User turns that are looked at before the last one."""

WORDS_PER_TURN = 24
"""Content words that a turn lends at most; of a longer one (a pasted text) the last."""

LONG_QUESTION = 12
"""Content words from which on a question is taken to say itself what it is about."""

_CONJUNCTIONS = frozenset({"after", "before", "since", "until", "as", "than"})
"""Prepositions that open a sentence too, whose pronoun stands for what the main one is about."""

_WORD = re.compile(WORD)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_CJK_LONG_QUESTION = 20


def retrieval_query(messages: Sequence[Message]) -> str:
    """The text to search for so that the last user message is answered; "" if there is none."""
    turns = [message.text.strip() for message in messages if message.role is Role.USER]
    if not turns:
        return ""
    question = turns[-1]
    earlier = [composed(turn) for turn in turns[:-1] if turn][-TURNS_BACK:]
    asked = composed(question)
    if not earlier or not _follows_up(asked, earlier):
        return question
    topic = _topic(earlier, known=asked)
    return "\n".join(part for part in (topic, question) if part)


def _topic(earlier: Sequence[str], *, known: str) -> str:
    """What the turns from the last self-contained one on were about, oldest first."""
    start = len(earlier) - 1
    while start > 0 and _follows_up(earlier[start], earlier[:start]):
        start -= 1
    seen = {word.casefold() for word in _WORD.findall(known)}
    language = _language_of([*earlier, known])
    asks_anew = any(not word.isnumeric() and word not in language.all for word in seen)
    words: list[str] = []
    for turn in earlier[start:]:
        for word in _key_words(turn, earlier, asks_anew=asks_anew):
            if word.casefold() not in seen:
                seen.add(word.casefold())
                words.append(word)
    return " ".join(words)


def _key_words(turn: str, conversation: Sequence[str], *, asks_anew: bool) -> list[str]:
    """What a turn was about. Where the question `asks_anew` and the turn has names, these alone:
    its other words are what it asked about them, which is over.
    """
    if _is_cjk(turn):
        # There are no spaces to tell words by, and cutting inside one would lose it.
        return [turn[-_CJK_LONG_QUESTION * 3 :].rstrip("？?。！!")]
    language = _language_of([*conversation, turn])
    words = _WORD.findall(turn)
    content = [word for word in words if word.casefold() not in language.all]
    names = [word for word in words[1:] if word in content and _is_name(word)]
    return ((asks_anew and names) or content)[-WORDS_PER_TURN:]


def _is_name(word: str) -> bool:
    return word[0].isupper() and len(word) > 1


def _follows_up(question: str, earlier: Sequence[str]) -> bool:
    if _is_cjk(question):
        return _follows_up_cjk(question)
    # Its own words tell the language best, but "Budget?" has none that do.
    return _Question(question, _language_of([*earlier, *[question] * 3])).follows_up


class _Question:
    """A question in a language with spaces, taken apart."""

    def __init__(self, text: str, language: Language) -> None:
        self._language = language
        written = _WORD.findall(text)
        # A name that the question itself has may be what its pronouns stand for.
        self._has_name = any(map(_is_name, written[1:]))
        words = [word.casefold() for word in written]
        opening = _opening_length(words, language.definitions)
        self._is_definition = opening > 0
        self._words = words[opening:]
        self._is_content = [
            not word.isnumeric() and word not in language.all for word in self._words
        ]
        self._content = sum(self._is_content)

    @property
    def follows_up(self) -> bool:
        if self._content == 0:
            return True
        if self._content >= LONG_QUESTION:
            return False
        return (
            self._opens_like_one
            or self._refers_back
            or self._ends_in_reference
            or self._says_too_little
        )

    @property
    def _opens_like_one(self) -> bool:
        """And the budget? What about Norway?"""
        first, rest = self._words[0], self._words[1:]
        about = self._words[:2] in (["what", "about"], ["how", "about"], ["what", "if"])
        return about or (first in self._language.leads and bool(rest) and self._content <= 4)

    @property
    def _refers_back(self) -> bool:
        """When was it founded? But not: what did Einstein say about his theory?"""
        before = 0
        for word, is_content in zip(self._words, self._is_content, strict=True):
            if word in self._language.references and before < 2:
                return self._content <= 3 or (before == 0 and word not in EXPLETIVES)
            before += is_content
        return False

    @property
    def _ends_in_reference(self) -> bool:
        """What kingdom annexed it in 1796? But not: why does the moon look larger when it rises?"""
        if self._has_name:
            return False
        behind = self._language.prepositions - _CONJUNCTIONS
        return any(
            word in self._language.objects and (self._is_content[at] or self._words[at] in behind)
            for at, word in enumerate(self._words[1:])
        )

    @property
    def _says_too_little(self) -> bool:
        """The budget? In Germany? But not: what is photosynthesis?"""
        if self._is_definition:
            return False
        asks = any(word in self._language.asking for word in self._words)
        points = any(word in self._language.articles for word in self._words)
        if self._content == 1:
            return points or not asks
        opens = self._words[0] in self._language.prepositions | self._language.articles
        return not asks and opens and self._content == 2


def _opening_length(words: Sequence[str], openings: Iterable[str]) -> int:
    """How many words of a question for a meaning come before the thing it asks about."""
    text = " ".join(words)
    found = [opening for opening in openings if text.startswith(f"{opening} ")]
    return max((len(opening.split()) for opening in found), default=0)


def _follows_up_cjk(question: str) -> bool:
    text = re.sub(r"[\s\W]+", "", question)
    if text.startswith(CJK_LEADS):
        return True
    for word in CJK_NO_REFERENCES:
        text = text.replace(word, "＿＿")
    content = _without(text, CJK_FUNCTION)
    if len(content) <= 2:
        return True
    if len(content) <= 6 and text.endswith(CJK_FRAGMENT_ENDS):
        return True
    return len(text) <= _CJK_LONG_QUESTION and any(word in text[:4] for word in CJK_REFERENCES)


def _without(text: str, words: Iterable[str]) -> str:
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, "")
    return text


def _is_cjk(text: str) -> bool:
    letters = sum(map(len, _WORD.findall(text)))
    return letters > 0 and len(_CJK.findall(text)) * 2 >= letters


def _language_of(texts: Iterable[str]) -> Language:
    counts = Counter(word.casefold() for text in texts for word in _WORD.findall(text))
    return max(LANGUAGES, key=lambda one: sum(counts[word] for word in one.all))
