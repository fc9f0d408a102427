"""A LlamaIndex embedding class without a model: the words of `FakeEmbeddingModel`."""

from __future__ import annotations

from typing import ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding

from tests.fakes.embedding import bag_of_words


class WordEmbedding(BaseEmbedding):
    """Embeds words; `failing` makes every call end in an error, `width` of 0 in nonsense."""

    width: int
    failing: bool = False

    def _get_text_embedding(self, text: str) -> list[float]:
        if self.failing:
            raise RuntimeError("out of order")
        return list(bag_of_words(text, dimensions=self.width))

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class CountingEmbedding(WordEmbedding):
    """Remembers how many texts came at once, in all instances."""

    batches: ClassVar[list[int]] = []

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        return super()._get_text_embeddings(texts)
