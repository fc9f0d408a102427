"""Errors in Anthropic's shape, for its SDKs: on /v1/messages and below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MESSAGES = "/v1/messages"

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def is_messages(path: str) -> bool:
    """Whether Anthropic's clients speak at this path."""
    return path == MESSAGES or path.startswith(f"{MESSAGES}/")


def anthropic_error(
    body: Mapping[str, Any], *, status: int, request_id: str | None
) -> dict[str, Any]:
    """The one error body with what Anthropic's clients look for in it."""
    default = "invalid_request_error" if status < 500 else "api_error"
    error = {**body["error"], "type": _TYPES.get(status, default)}
    return {**body, "type": "error", "error": error, "request_id": request_id}
