"""What runs a model in this process: text in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from privategpt.domain.ports import Tokenizer, Vector


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is put before a text, as the model was trained: `query: `, `passage: ` or nothing."""

    query: str = ""
    passage: str = ""


NO_PROMPTS = Prompts()


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text cut to the window, as the model will read it.

    `ids` are with special tokens and prompt; `tokens` counts the text's own.
    """

    text: str
    ids: Sequence[int]
    tokens: int


class Encoder(Protocol):
    """A loaded model. It is for one thread at a time unless it says otherwise; `tokenizer` is for
    any number.
    """

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    @property
    def prompts(self) -> Prompts:
        """What the model wants before queries and passages."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Measures passages."""
        ...

    def tokenize(self, texts: Sequence[str], *, prompt: str) -> list[EncodedText]:
        """Read the texts as the model will."""
        ...

    def encode(self, batch: Sequence[EncodedText], *, prompt: str) -> list[Vector]:
        """One unit vector per text, in order; the whole batch at once."""
        ...
