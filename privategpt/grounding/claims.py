"""Tells the sentences that need a source from those that do not."""

from __future__ import annotations

import re

from privategpt.grounding.lexical import read_terms
from privategpt.grounding.lexicon import composed

_FEWEST_CONTENT_WORDS = 2
_MOST_OF_A_SHORT_ANSWER = 3
_QUESTION = re.compile(r"[?？؟][\"'”’)»*_\]]*\Z")
_BLOCK = re.compile(r"#{1,6}\s|\||\*\*[^*]*[^.!*。！]\*\*:?\Z|[-*_=]{3,}\Z|\[\^?[^\]]+\]:|<")
_INTRODUCTION = re.compile(r"[:：][*_]*\Z")
_LIST_MARK = re.compile(r"(?:>\s*)*(?:[-*+•]|\d{1,3}[.)])\s+|(?:>\s*)+")
_NO_CLAIM = re.compile(
    r"""(?:
      (?:hi|hello|hey|dear|thanks|thank\ you|welcome|sure|certainly|of\ course|absolutely)\b
      [^.]{0,40}[.!]?\Z
    | (?:i'm\ |i\ am\ )?(?:sorry|afraid)\b
    | i\ (?:do\ not|don't|cannot|can't|could\ not|couldn't|am\ not|was\ not|am\ unable)\b
    | (?:unfortunately,?\ )?(?:the|this|these|your)\ (?:provided\ )?
      (?:documents?|sources?|context|passages?|text|information)\b
      [^.]{0,60}\b(?:do(?:es)?\ not|don't|doesn't|no|not)\b
    | there\ is\ no\ (?:information|mention|answer)\b | no\ information\b
    | (?:i\ hope|let\ me\ know|feel\ free|please\ (?:let|note|see|provide|refer|ask))\b
    | (?:here\ (?:is|are)|in\ summary|to\ summarize|the\ following)\b[^.]{0,40}\Z
    | (?:based\ on|according\ to)\ the\ (?:provided|given|above)\ \w+[.,:]?\Z
    | (?:ich\ weiß\ (?:es\ )?nicht|ich\ kann\ (?:das|diese|leider)\b|hallo\b|tut\ mir\ leid)
    | (?:das\ steht\ nicht|leider\b[^.]{0,60}\b(?:nicht|keine?)\b)
    | (?:je\ ne\ (?:sais|peux|trouve)|bonjour\b|désolé|malheureusement)
    | (?:no\ (?:lo\ )?sé\b|no\ puedo|hola\b|lo\ siento|lamentablemente)
    | (?:não\ sei\b|não\ posso|olá\b|desculpe|infelizmente)
    | (?:non\ (?:lo\ )?so\b|non\ posso|ciao\b|mi\ dispiace|purtroppo)
    | (?:ik\ weet\ het\ niet|ik\ kan\b|helaas|hallo\b)
    | (?:ég\ veit\ (?:það\ )?ekki|því\ miður|halló\b)
    | (?:我不知道|抱歉|对不起|對不起|你好|无法|無法|文档中没有)
    | (?:わかりません|申し訳|こんにちは|すみません)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def without_list_mark(sentence: str) -> str:
    """`sentence` without the bullet or number before it, which it does not state."""
    return _LIST_MARK.sub("", sentence, count=1)


def is_claim(sentence: str) -> bool:
    """Whether `sentence` states something that a source should support.

    Questions, greetings, "I don't know", headings, table rows, introductions that end in a colon
    and sentences of fewer than two content words do not.
    """
    return _states(sentence) and _content_words(sentence) >= _FEWEST_CONTENT_WORDS


def is_question(sentence: str) -> bool:
    """Whether `sentence` ends as questions do."""
    return bool(_QUESTION.search(sentence.strip()))


def is_short_answer(sentence: str) -> bool:
    """Whether `sentence` may be a name, a number or a few words that only a question completes."""
    return _states(sentence) and 0 < _content_words(sentence) <= _MOST_OF_A_SHORT_ANSWER


def _states(sentence: str) -> bool:
    text = without_list_mark(sentence.strip())
    if not text or _QUESTION.search(text) or _BLOCK.match(text) or _INTRODUCTION.search(text):
        return False
    return not _NO_CLAIM.match(composed(text).replace("’", "'"))


def _content_words(sentence: str) -> int:
    return len(read_terms(without_list_mark(sentence.strip())).words)
