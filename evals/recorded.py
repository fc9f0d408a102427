"""A language model whose replies are kept: an eval of what is made of them asks it only once."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privategpt.domain.answers import (
    FinishReason,
    GenerationEvent,
    GenerationFinished,
    TextDelta,
    Usage,
)
from privategpt.domain.conversation import GenerationRequest, Message
from privategpt.domain.ports import LanguageModel


class RecordedModel:
    """Implements `LanguageModel` with the text of `start`'s, which starts when it is first needed.

    Replies and counts are kept in `file` by all that the model was told, so a change of a prompt
    asks anew, and a change of the model must come with another `file`.
    """

    def __init__(
        self, *, file: Path, start: Callable[[], Awaitable[LanguageModel]], context_tokens: int
    ) -> None:
        self._kept = sqlite3.connect(file)
        self._kept.execute("CREATE TABLE IF NOT EXISTS kept (asked TEXT PRIMARY KEY, said TEXT)")
        self._start = start
        self._model: LanguageModel | None = None
        self._context_tokens = context_tokens

    @property
    def name(self) -> str:
        """What an operator calls this model."""
        return "recorded"

    @property
    def context_tokens(self) -> int:
        """The window."""
        return self._context_tokens

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[GenerationEvent]:
        """What was said before, in one piece, or what the model says now."""
        asked = _key("reply", request)
        said = self._recall(asked)
        if said is None:
            text = ""
            async for event in (await self._started()).generate(request):
                if isinstance(event, TextDelta):
                    text += event.text
                elif isinstance(event, GenerationFinished):
                    ended = {"reason": event.reason, "usage": asdict(event.usage)}
                    self._keep(asked, {"text": text, **ended})
            said = self._recall(asked)
        yield TextDelta(said["text"])
        yield GenerationFinished(FinishReason(said["reason"]), Usage(**said["usage"]))

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """As the model counts."""
        return await self._count(messages, lambda model: model.count_tokens(messages))

    async def count_text(self, text: str) -> int:
        """As the model counts."""
        return await self._count(text, lambda model: model.count_text(text))

    async def check(self) -> None:
        """It always answers."""

    async def close(self) -> None:
        """Stop the model, if it was started."""
        if self._model is not None:
            await self._model.close()
        self._kept.close()

    async def _count(self, told: object, count: Callable[[LanguageModel], Awaitable[int]]) -> int:
        asked = _key("count", told)
        said = self._recall(asked)
        if said is None:
            said = {"tokens": await count(await self._started())}
            self._keep(asked, said)
        return int(said["tokens"])

    async def _started(self) -> LanguageModel:
        if self._model is None:
            self._model = await self._start()
        return self._model

    def _recall(self, asked: str) -> Any:
        row = self._kept.execute("SELECT said FROM kept WHERE asked = ?", (asked,)).fetchone()
        return json.loads(row[0]) if row else None

    def _keep(self, asked: str, said: object) -> None:
        with self._kept:
            self._kept.execute("INSERT INTO kept VALUES (?, ?)", (asked, json.dumps(said)))


def _key(what: str, told: object) -> str:
    return hashlib.sha256(f"{what} {told!r}".encode()).hexdigest()
