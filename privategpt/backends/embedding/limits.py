"""Cutting texts to a window that somebody else's engine does not cut to."""

from __future__ import annotations

from privategpt.domain.ports import Tokenizer

_CHARACTERS_PER_TOKEN = 128


def cut_to_window(text: str, tokenizer: Tokenizer) -> tuple[str, int]:
    """What of the text the model would read, and its tokens."""
    text = text[: tokenizer.max_tokens * _CHARACTERS_PER_TOKEN]
    ends = tokenizer.ends(text)
    if len(ends) <= tokenizer.max_tokens:
        return text, len(ends)
    return text[: ends[tokenizer.max_tokens - 1]], tokenizer.max_tokens
