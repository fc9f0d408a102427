"""Tokenizers as the port wants them: a model's own, and an estimate where there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privategpt.domain.errors import InvalidSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer

_SURROGATE = re.compile("[\ud800-\udfff]")
_BLOCK_CHARACTERS = 32_000


class ModelTokenizer:
    """A Hugging Face fast tokenizer, without truncation, padding and special tokens.

    `fast` must not be changed by others; it is used from several threads.
    """

    def __init__(self, *, fast: FastTokenizer, max_tokens: int) -> None:
        self._fast = fast
        self._max_tokens = max_tokens

    @property
    def max_tokens(self) -> int:
        """The window without special tokens and without the passages' prompt."""
        return self._max_tokens

    def count(self, text: str) -> int:
        """How many tokens `text` is."""
        return len(self._fast.encode(encodable(text), add_special_tokens=False))

    def ends(self, text: str) -> Sequence[int]:
        """Where each token ends.

        Long texts are read in blocks cut at line ends, on all cores; where a tokenizer joins
        tokens across a line end, the places there are off by a token.
        """
        starts, blocks = zip(*_blocks(encodable(text)), strict=True)
        encodings = self._fast.encode_batch(blocks, add_special_tokens=False)
        return [
            start + end
            for start, encoding in zip(starts, encodings, strict=True)
            for _, end in encoding.offsets
        ]


class EstimatedTokenizer:
    """Counts for a model whose tokenizer is out of reach, behind somebody else's server.

    Estimates upwards, so that what fits here fits there: every three letters of an alphabet,
    every digit, every mark and every character of other scripts is one token, every character
    outside the basic plane three. English comes out about a third above a WordPiece count.
    """

    def __init__(self, *, max_tokens: int) -> None:
        self._max_tokens = max_tokens

    @property
    def max_tokens(self) -> int:
        """The window as the operator gave it."""
        return self._max_tokens

    def count(self, text: str) -> int:
        """How many tokens `text` is at most, by all likelihood."""
        return sum(2 * _is_astral(match) + 1 for match in _ESTIMATE.finditer(text))

    def ends(self, text: str) -> Sequence[int]:
        """Where each estimated token ends."""
        return [
            match.end()
            for match in _ESTIMATE.finditer(text)
            for _ in range(2 * _is_astral(match) + 1)
        ]


_ESTIMATE = re.compile(r"[A-Za-z]{1,3}|[\u00c0-\u052f]{1,2}|\S")


def _is_astral(match: re.Match[str]) -> bool:
    return match.group() > "\uffff"


def encodable(text: str) -> str:
    """The text with lone surrogates, which no tokenizer reads, replaced one for one."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def load_fast_tokenizer(folder: Path) -> FastTokenizer:
    """The folder's tokenizer.json, without the limits that may be stored in it."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise InvalidSettings(f"The embedding model {folder.name!r} has no tokenizer.json")
    return without_limits(Tokenizer.from_str(file.read_text(encoding="utf-8")))


def without_limits(fast: FastTokenizer, *, truncate_to: int | None = None) -> FastTokenizer:
    """A copy that does not pad, and truncates to `truncate_to` tokens or not at all."""
    from tokenizers import Tokenizer

    stored = json.loads(fast.to_str())
    truncation = stored["truncation"] or {"strategy": "LongestFirst", "stride": 0}
    truncation = truncation | {"direction": "Right", "max_length": truncate_to}
    limits = {"padding": None, "truncation": truncation if truncate_to else None}
    copy = Tokenizer.from_str(json.dumps(stored | limits))
    copy.encode_special_tokens = True  # "[SEP]" in a text is text
    return copy


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while len(text) - start > _BLOCK_CHARACTERS:
        limit = start + _BLOCK_CHARACTERS
        end = text.rfind("\n", start + 1, limit)
        end = end if end > start else text.rfind(" ", start + 1, limit)
        end = end if end > start else limit
        yield start, text[start:end]
        start = end
    yield start, text[start:]
