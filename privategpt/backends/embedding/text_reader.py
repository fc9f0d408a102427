"""Reads texts into a model's token ids, cut to its window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from privategpt.backends.embedding.encoder import EncodedText, Prompts
from privategpt.backends.embedding.tokenizer import ModelTokenizer, encodable, without_limits

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer

_CHARACTERS_PER_TOKEN = 128
"""A text is cut to this many characters per token before it is read: a 5 MB text must not be
read whole for the 256 tokens that count. Ordinary tokens are below 10."""


class TextReader:
    """`max_tokens` is the model's window with its special tokens."""

    def __init__(self, *, fast: FastTokenizer, max_tokens: int, prompts: Prompts) -> None:
        counting = without_limits(fast)
        self._truncating = without_limits(fast, truncate_to=max_tokens)
        self._special = counting.num_special_tokens_to_add(is_pair=False)
        self._window = max_tokens - self._special
        self._prompt_tokens = {
            prompt: len(counting.encode(prompt, add_special_tokens=False))
            for prompt in (prompts.query, prompts.passage)
        }
        self.tokenizer = ModelTokenizer(
            fast=counting, max_tokens=self._window - self._prompt_tokens[prompts.passage]
        )

    def read(self, texts: Sequence[str], *, prompt: str) -> list[EncodedText]:
        """The texts with `prompt` (one of the model's) before each."""
        longest = self._window * _CHARACTERS_PER_TOKEN
        cut = [encodable(text[:longest]) for text in texts]
        encodings = self._truncating.encode_batch([prompt + text for text in cut])
        overhead = self._special + self._prompt_tokens[prompt]
        return [
            EncodedText(text=text, ids=encoding.ids, tokens=max(0, len(encoding) - overhead))
            for text, encoding in zip(cut, encodings, strict=True)
        ]
