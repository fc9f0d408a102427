"""The sparse half of hybrid search: BM25 weights, computed here for every backend alike.

A Qdrant server could compute them itself, but then its ranking would depend on its version.
Only the inverse document frequency is left to the engine, which knows the corpus.
"""

from __future__ import annotations

import unicodedata

from qdrant_edge import Bm25, Bm25Config, SparseVector, TokenizerType

WORDS_LAYOUT = "bm25-multilingual-nfkc-1"
"""Names how `WordEncoder` weighs words; an index made under another name must be rebuilt."""


class WordEncoder:
    """Turns text into BM25 term weights, with a tokenizer that also splits Chinese and Japanese.

    Text is NFKC-normalised first, so that full-width and decomposed letters match plain ones.
    """

    def __init__(self) -> None:
        self._bm25 = Bm25(Bm25Config(tokenizer=TokenizerType.Multilingual))

    def passage(self, text: str) -> SparseVector | None:
        """Weights of what is searched; None where no word is left to search for."""
        return _if_any(self._bm25.embed_document(_normalised(text)))

    def query(self, text: str) -> SparseVector | None:
        """Weights of what is searched for; None where no word is left to search for."""
        return _if_any(self._bm25.embed_query(_normalised(text)))


def _normalised(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _if_any(weights: SparseVector) -> SparseVector | None:
    return weights if weights.indices else None
