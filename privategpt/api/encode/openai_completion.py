"""Legacy completions: chat chunks with `text` beside the message that PrivateGPT's clients read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from privategpt.api.encode.openai_chat import ChatEncoder, ChatFold
from privategpt.api.encode.views import Json
from privategpt.domain.answers import AnswerEvent

OPENAI_OBJECT = "text_completion"
"""OpenAI's legacy endpoint has one name for chunks and replies alike."""


class CompletionEncoder:
    """Turns the events of one reply into legacy chunks.

    `echoes` has, for each choice, what its text begins with: the prompt, or nothing. The
    message's content stays without it, as the offsets of citations count in that.
    """

    def __init__(self, chat: ChatEncoder, *, echoes: Sequence[str], openai: bool) -> None:
        self._chat = chat
        self._echoes = echoes
        self._openai = openai
        self._written = [0] * len(echoes)

    def encode(self, event: AnswerEvent) -> Iterator[Json]:
        """The chunks that `event` becomes."""
        for chunk in self._chat.encode(event):
            yield self._legacy(chunk)

    def heartbeat(self) -> Json:
        """A chunk that says nothing."""
        return self._legacy(self._chat.heartbeat())

    def _legacy(self, chunk: Json) -> Json:
        choices = [self._choice(choice) for choice in chunk["choices"]]
        named = {"object": OPENAI_OBJECT} if self._openai else {}
        return {**chunk, **named, "choices": choices}

    def _choice(self, choice: Json) -> Json:
        index: int = choice["index"]
        text: str = choice["delta"]["content"] or ""
        if "role" in choice["delta"]:
            text = self._echoes[index] + text
        logprobs = _legacy_logprobs(choice["logprobs"], self._written[index])
        self._written[index] += len(text)
        return {**choice, "text": text, "logprobs": logprobs}


class CompletionFold:
    """The legacy reply in one piece, put together from its chunks."""

    def __init__(self) -> None:
        self._chat = ChatFold()
        self._text: dict[int, list[str]] = {}
        self._logprobs: dict[int, list[Json]] = {}

    def add(self, chunks: Iterator[Json]) -> None:
        """Take the next chunks."""
        for chunk in chunks:
            for choice in chunk["choices"]:
                self._text.setdefault(choice["index"], []).append(choice["text"])
                if choice["logprobs"] is not None:
                    self._logprobs.setdefault(choice["index"], []).append(choice["logprobs"])
            plain = [{**choice, "logprobs": None} for choice in chunk["choices"]]
            self._chat.add([{**chunk, "choices": plain}])

    def reply(self) -> Json:
        """The reply."""
        reply = self._chat.reply()
        for choice in reply["choices"]:
            choice["text"] = "".join(self._text[choice["index"]])
            choice["logprobs"] = _joined(self._logprobs.get(choice["index"], []))
        return reply


def _legacy_logprobs(logprobs: Json | None, offset: int) -> Json | None:
    """Chat's list of tokens as the four parallel lists of the legacy format."""
    if logprobs is None:
        return None
    legacy: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": [],
    }
    for token in logprobs["content"]:
        legacy["tokens"].append(token["token"])
        legacy["token_logprobs"].append(token["logprob"])
        legacy["top_logprobs"].append(
            {top["token"]: top["logprob"] for top in token["top_logprobs"]}
        )
        legacy["text_offset"].append(offset)
        offset += len(token["token"])
    return legacy


def _joined(parts: Sequence[Json]) -> Json | None:
    if not parts:
        return None
    return {key: [value for part in parts for value in part[key]] for key in parts[0]}
