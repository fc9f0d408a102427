"""Words as evidence: which of a sentence's words a passage has, rare ones counting more."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from privategpt.grounding.lexicon import MARKS, UNSPACED, composed, words

_LETTERS = rf"[^\W\d_]++(?:[{MARKS}]++[^\W\d_]*+)*+"
_TOKEN = re.compile(rf"[{UNSPACED}]+|\d+(?:[.,]\d+)*|{_LETTERS}(?:['’]{_LETTERS})?")
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_POSSESSIVE = re.compile(r"['’](?:s|S)\Z")

STOP_WORDS = words(
    "a about above after again all also am an and any are as at be because been before being "
    "between both but by can could did do does doing during each few for from further had has have "
    "having he her here hers him his how i if in into is it its itself just me more most my no nor "
    "not now of off on once only or other our out over own same she should so some such than that "
    "the their them then there these they this those through to too under until up very was we "
    "were what when where which while who whom why will with would you your may might must shall "
    "upon via per within among",
    "der die das den dem des ein eine einen einem einer eines und oder aber nicht ist sind war "
    "waren wird werden wurde wurden hat haben hatte mit von vom zu zum zur im am auf für als auch "
    "bei nach aus durch über sich es er sie wir ihr dass wie so noch nur um an bis",
    "le la les un une des du de et ou mais est sont était été être a ont avait dans pour par sur "
    "avec sans que qui ce cette ces il elle ils elles se sa son ses leur au aux en ne pas plus",
    "el los las una unos unas y o pero es son era fue ser ha han en por para con sin sobre del al "
    "que se su sus lo como más no",
    "um uma uns umas e ou mas é são foi eram ser há em no na nos nas do da dos das ao à por para "
    "com sem que se seu sua como mais não",
    "il lo gli i uno ed o ma è sono era stato essere ha hanno nel nella dei degli delle del della "
    "al alla per con su che si suo sua come più non",
    "het een van en of maar is zijn was waren wordt werd heeft hebben in op voor met door te dat "
    "die deze dit er ook niet naar bij als om",
    "og eða en er eru var voru að í á af með fyrir um til sem það þetta þessi hann hún þeir ekki "
    "við frá hefur hafa verið vera",
)


@dataclass(frozen=True, slots=True)
class Terms:
    """The content words of a text, stemmed, and its pairs of neighbouring ones."""

    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @property
    def without_figures(self) -> Terms:
        """The same but for its numbers."""
        return self.without(frozenset(word for word in self.words if word[0].isdigit()))

    def without(self, words: frozenset[str]) -> Terms:
        """The same but for these words."""
        return replace(self, words=self.words - words)

    def __or__(self, other: Terms) -> Terms:
        return Terms(self.words | other.words, self.pairs | other.pairs)


def read_terms(text: str) -> Terms:
    """Content words are all but stop words; text without spaces is read as pairs of characters."""
    stems = [stem for token in _TOKEN.findall(composed(text).casefold()) for stem in _stems(token)]
    return Terms(frozenset(stems), frozenset(pairwise(stems)))


def _stems(token: str) -> Iterable[str]:
    if _UNSPACED.match(token):
        return [token[at : at + 2] for at in range(max(1, len(token) - 1))]
    bare = _POSSESSIVE.sub("", token)
    if bare in STOP_WORDS or (len(bare) == 1 and not bare.isdigit()):
        return []
    return [bare.replace(",", "") if bare[0].isdigit() else _stem(bare)]


_SUFFIXES = (
    ("ational", "ate"), ("ization", "ize"), ("isation", "ize"), ("fulness", "ful"),
    ("ically", "ic"),
    ("ement", ""), ("ment", ""), ("ation", "ate"), ("ition", ""), ("ities", "ity"), ("ness", ""),
    ("ingly", ""), ("edly", ""), ("ying", "y"), ("ing", ""), ("ies", "y"), ("ied", "y"),
    ("ions", ""), ("ion", ""), ("sses", "ss"), ("ers", ""), ("er", ""), ("ed", ""), ("ly", ""),
    ("al", ""), ("es", ""), ("en", ""), ("s", ""), ("e", ""),
)  # fmt: skip
_SHORTEST_STEM = 3


def _stem(word: str) -> str:
    """A crude stem: enough to let "reduces", "reduced" and "reduction" meet most of the time."""
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            if suffix == "s" and word.endswith("ss"):
                continue
            word = word[: -len(suffix)] + replacement
            break
    if word.endswith("e") and len(word) > _SHORTEST_STEM:
        word = word[:-1]
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word


class Rarity:
    """How much each word tells, from the sentences of this answer's sources: ln((n + 1) / df)."""

    def __init__(self, texts: Sequence[Terms]) -> None:
        self._count = len(texts)
        self._frequency: Mapping[str, int] = Counter(word for text in texts for word in text.words)

    def __call__(self, word: str) -> float:
        return math.log((self._count + 1) / (self._frequency.get(word, 0) or 0.5)) + 0.1

    def recall(self, wanted: Terms, given: Terms) -> float:
        """The share of `wanted`'s words, weighted by rarity, that `given` has (1 if none)."""
        total = sum(self(word) for word in wanted.words)
        found = sum(self(word) for word in wanted.words & given.words)
        return found / total if total else 1.0


def pair_recall(wanted: Terms, given: Terms) -> float:
    """The share of `wanted`'s pairs of words that `given` has (0 if none)."""
    return len(wanted.pairs & given.pairs) / len(wanted.pairs) if wanted.pairs else 0.0
