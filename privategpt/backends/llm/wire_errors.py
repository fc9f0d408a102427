"""What went wrong at an OpenAI-compatible server, in the domain's words.

| from the engine | here |
|---|---|
| no connection, connection lost | EngineUnavailable |
| 429, 503, 529 | EngineUnavailable, with its Retry-After: the engine is short of room |
| no answer in time, 408, 504 | EngineTimedOut |
| 400, 413, 422 | ContextLengthExceeded, UnsupportedParameter or InvalidRequest |
| 404 | ModelNotFound if the caller named the model, else EngineFailed |
| 401, 403, 3xx, 5xx, an `error` event, what cannot be read | EngineFailed |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import httpx2
import openai

from privategpt.domain.errors import (
    ContextLengthExceeded,
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidRequest,
    ModelNotFound,
    PrivateGptError,
    UnsupportedParameter,
)

MAX_RETRY_AFTER_S = 120
MAX_MESSAGE_CHARS = 300

VendorError: TypeAlias = openai.OpenAIError | httpx2.HTTPError | TimeoutError | ValueError
VENDOR_ERRORS = (openai.OpenAIError, httpx2.HTTPError, TimeoutError, ValueError)
"""All that a call of the client raises: ValueError is JSON or UTF-8 that cannot be read, and
httpx2's own errors come out where the body of an error is cut off."""

_CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_UNSUPPORTED_CODES = frozenset({"unsupported_parameter", "unsupported_value"})
# vLLM, TGI and LM Studio have no code for it, so that only their words are left to go by.
_CONTEXT_WORDS = re.compile(
    r"(context|sequence|prompt|input).{0,40}(length|size|window|too long)|maximum context", re.I
)
_SECRETS = (
    (re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"]+", re.I), "[address]"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "[address]"),
    (re.compile(r"\b(?:sk|pk|hf|gsk|key)[-_][\w*-]{6,}|\bbearer\s+\S+", re.I), "[key]"),
    (re.compile(r"(?<![\w.])(?:~|[a-z]:)?(?:[/\\][\w.@+-]+){2,}", re.I), "[path]"),
)


def translate(error: VendorError, *, asked_model: str | None = None) -> PrivateGptError:
    """The domain's error for what the client raised; `asked_model` is the caller's, if any."""
    match error:
        case openai.APITimeoutError() | TimeoutError() | httpx2.TimeoutException():
            return EngineTimedOut("The language model server did not answer in time")
        case openai.APIConnectionError() | httpx2.HTTPError():
            return EngineUnavailable(
                "The language model server cannot be reached or closed the connection"
            )
        case openai.APIStatusError():
            retry_after = _retry_after_s(error.response.headers.get("retry-after"))
            return _by_status(error.status_code, error, asked_model, retry_after)
        case openai.APIError():
            return _by_event(error, asked_model)
        case _:
            return EngineFailed("The language model server sent something that cannot be read")


def sanitise(message: str) -> str:
    """`message` without addresses, keys, paths and control characters, cut to a readable length."""
    for pattern, replacement in _SECRETS:
        message = pattern.sub(replacement, message)
    message = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    return message if len(message) <= MAX_MESSAGE_CHARS else message[: MAX_MESSAGE_CHARS - 1] + "…"


def _by_status(
    status: int, error: openai.APIError, asked_model: str | None, retry_after_s: int | None
) -> PrivateGptError:
    if status in {400, 413, 422}:
        return _callers_fault(error)
    if status == 404 and asked_model is not None:
        return ModelNotFound(f"The model {asked_model!r} does not exist", param="model")
    if status in {408, 504}:
        return EngineTimedOut("The language model server timed out", retry_after_s=retry_after_s)
    if status in {429, 503, 529}:
        return EngineUnavailable(
            "The language model server is overloaded or still loading", retry_after_s=retry_after_s
        )
    return EngineFailed(_operators_fault(status))


def _operators_fault(status: int) -> str:
    if status in {401, 403}:
        return "The language model server refused our key; the operator must check llm.api_key"
    if status == 404:
        return (
            "The language model server does not know the configured model or address;"
            " the operator must check llm.model and llm.base_url"
        )
    return f"The language model server failed with status {status}"


def _by_event(error: openai.APIError, asked_model: str | None) -> PrivateGptError:
    """An `error` event within a stream, where the status has long been 200."""
    if error.code in _CONTEXT_CODES or error.type in _CONTEXT_CODES:
        return _callers_fault(error)
    if error.code is not None and error.code.isdecimal():
        return _by_status(int(error.code), error, asked_model, None)
    return EngineFailed("The language model server reported an error in its answer")


def _callers_fault(error: openai.APIError) -> PrivateGptError:
    message = sanitise(_engines_words(error))
    if _CONTEXT_CODES & {error.code, error.type} or _CONTEXT_WORDS.search(message):
        return ContextLengthExceeded(
            f"The prompt does not fit the model's window: {message}", param="messages"
        )
    param = error.param if isinstance(error.param, str) else None
    if error.code in _UNSUPPORTED_CODES:
        return UnsupportedParameter(f"The language model refused this: {message}", param=param)
    return InvalidRequest(f"The language model refused this: {message}", param=param)


def _engines_words(error: openai.APIError) -> str:
    """The engine's own message: the client prefixes it with the status and a dump of the body."""
    body: object = error.body
    if isinstance(body, Mapping):
        fields = cast("Mapping[str, Any]", body)
        for key in ("message", "detail", "error"):
            if isinstance(fields.get(key), str):
                return str(fields[key])
    if isinstance(body, str) and body.strip() and not body.lstrip().startswith("<"):
        return body
    return "no reason given"


def _retry_after_s(value: str | None) -> int | None:
    if value is None or not value.strip().isdecimal():
        return None
    return min(int(value), MAX_RETRY_AFTER_S)
