"""Every failure as one body: OpenAI's `error`, and FastAPI's `detail` beside it.

`{"error": {"message", "type", "param", "code"}, "detail": …}`, where `detail` is the list of the
seed's HTTPValidationError for a body that fails its schema, and the message otherwise. Nothing
that the client sent is echoed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from privategpt.api.anthropic_errors import anthropic_error, is_messages
from privategpt.api.jsontext import JsonResponse
from privategpt.api.request_ids import request_id_headers
from privategpt.api.scopes import methods_of, nearest_route, told_route
from privategpt.domain import errors

INVALID_REQUEST = "invalid_request_error"
RATE_LIMIT = "rate_limit_error"
SERVER_ERROR = "server_error"

MAX_DETAILS = 20
"""Entries of `detail`; a client needs the first, and a thousand wrong items repeat it."""

DEFAULT_RETRY_AFTER_S = 2
CLIENT_CLOSED_REQUEST = 499

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """How one class of failure looks over HTTP."""

    status: int
    type: str
    code: str


INTERNAL = ErrorKind(500, SERVER_ERROR, "internal_error")

KINDS: Mapping[type[errors.PrivateGptError], ErrorKind] = {
    errors.PrivateGptError: INTERNAL,
    errors.InvalidRequest: ErrorKind(400, INVALID_REQUEST, "invalid_value"),
    errors.UnsupportedParameter: ErrorKind(400, INVALID_REQUEST, "unsupported_parameter"),
    errors.ContextLengthExceeded: ErrorKind(400, INVALID_REQUEST, "context_length_exceeded"),
    errors.UnreadableFile: ErrorKind(400, INVALID_REQUEST, "unreadable_file"),
    errors.EmptyFile: ErrorKind(400, INVALID_REQUEST, "empty_file"),
    errors.NoTextFound: ErrorKind(400, INVALID_REQUEST, "no_text_found"),
    errors.EncryptedFile: ErrorKind(400, INVALID_REQUEST, "encrypted_file"),
    errors.CorruptFile: ErrorKind(400, INVALID_REQUEST, "corrupt_file"),
    errors.FileExceedsBounds: ErrorKind(400, INVALID_REQUEST, "file_exceeds_bounds"),
    errors.UnsupportedFileType: ErrorKind(415, INVALID_REQUEST, "unsupported_media_type"),
    errors.PayloadTooLarge: ErrorKind(413, INVALID_REQUEST, "request_too_large"),
    errors.NotAuthenticated: ErrorKind(401, INVALID_REQUEST, "invalid_api_key"),
    errors.PermissionDenied: ErrorKind(403, INVALID_REQUEST, "permission_denied"),
    errors.NotFound: ErrorKind(404, INVALID_REQUEST, "not_found"),
    errors.ModelNotFound: ErrorKind(404, INVALID_REQUEST, "model_not_found"),
    errors.Conflict: ErrorKind(409, INVALID_REQUEST, "conflict"),
    errors.TooManyRequests: ErrorKind(429, RATE_LIMIT, "rate_limit_exceeded"),
    errors.QuotaExceeded: ErrorKind(429, RATE_LIMIT, "insufficient_quota"),
    errors.Unavailable: ErrorKind(503, SERVER_ERROR, "upstream_error"),
    errors.EngineUnavailable: ErrorKind(503, SERVER_ERROR, "upstream_error"),
    errors.EngineFailed: ErrorKind(502, SERVER_ERROR, "upstream_error"),
    errors.EngineTimedOut: ErrorKind(504, SERVER_ERROR, "upstream_timeout"),
    errors.StartRefused: ErrorKind(503, SERVER_ERROR, "start_refused"),
    errors.FolderInUse: ErrorKind(503, SERVER_ERROR, "start_refused"),
    errors.EmbeddingModelChanged: ErrorKind(503, SERVER_ERROR, "start_refused"),
    errors.InvalidSettings: ErrorKind(503, SERVER_ERROR, "start_refused"),
}
"""The one table of statuses; `tests/api` compares it with the tree in `domain/errors.py`."""

_BY_NAME = {cls.__name__: kind for cls, kind in KINDS.items()}

HTTP_CODES: Mapping[int, str] = {
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "request_too_large",
    415: "unsupported_media_type",
}
"""Codes for statuses that the framework answers with; any other is `invalid_request`."""

SEED_FIELDS: Mapping[str, frozenset[str]] = {
    "/v1/chat/completions": frozenset(
        {"messages", "use_context", "context_filter", "include_sources", "stream"}
    ),
    "/v1/completions": frozenset(
        {"prompt", "use_context", "context_filter", "include_sources", "stream"}
    ),
    "/v1/chunks": frozenset({"text", "context_filter", "limit", "prev_next_chunks"}),
    "/v1/ingest": frozenset({"file"}),
    "/v1/ingest/file": frozenset({"file"}),
    "/v1/ingest/text": frozenset({"file_name", "text"}),
    "/v1/embeddings": frozenset({"input"}),
}
"""Fields whose schema seed 004 answers for with 422; OpenAI's own answer 400, as OpenAI does."""

NOT_SERVED: Mapping[str, str] = {
    "/v1/responses": "The Responses API is not served here: use /v1/chat/completions",
    "/v1/files": "Files are not kept as such here: ingest them with POST /v1/ingest",
    "/v1/vector_stores": "Vector stores are not served here: search with POST /v1/chunks",
    "/v1/moderations": "There is no classifier here to moderate with",
    "/api/": "Ollama's API is not served here: choose OpenAI's, with a base address ending in /v1",
}
"""What clients ask for by themselves, and what there is instead."""

_WORDS = dict.fromkeys(
    ("dict_type", "model_attributes_type", "model_type"), "Input should be an object"
)
"""Pydantic's own words for these speak of Python, and clients of JSON."""
_TYPE_NAMES = frozenset({"str", "int", "float", "bool", "dict", "list", "none"})
_FIELD = re.compile(r"[a-z][a-z0-9_]{0,39}")


def kind_of(error: errors.PrivateGptError) -> ErrorKind:
    """The row of the table for `error`: its own class's, else the nearest above."""
    return next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)


def envelope(
    message: str,
    kind: ErrorKind,
    *,
    param: str | None = None,
    detail: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The one error body."""
    body = {"message": message, "type": kind.type, "param": param, "code": kind.code}
    return {"error": body, "detail": message if detail is None else detail}


def failure_body(kind: str, message: str) -> dict[str, Any]:
    """The `error` of a failure that was stored: `kind` is its class's name, "" what is none."""
    row = _BY_NAME.get(kind, INTERNAL)
    body: dict[str, Any] = envelope(message, row)["error"]
    return body


def stream_error(error: BaseException | None) -> dict[str, Any]:
    """The `data:` of an error in the middle of a stream; no `detail`, as no status is left.

    None and anything but our own errors are told as a fault of ours, without their text.
    """
    if isinstance(error, errors.PrivateGptError):
        body = envelope(error.message, kind_of(error), param=error.param)
    else:
        body = envelope(_INTERNAL, INTERNAL)
    return {"error": body["error"]}


def status_of(error: BaseException) -> int:
    """The status of an error; after a stream has begun it is only told in its type."""
    return (kind_of(error) if isinstance(error, errors.PrivateGptError) else INTERNAL).status


_INTERNAL = "The server failed to answer; the request id names this failure in its log"


def install(app: FastAPI) -> None:
    """Register the handlers that turn every exception into the one body."""
    app.add_exception_handler(errors.PrivateGptError, respond)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unknown)


async def respond(request: Request, error: Exception) -> Response:
    """The reply to `request` for an error of our own tree."""
    known = cast(errors.PrivateGptError, error)
    kind = kind_of(known)
    if kind.status >= 500:
        route = told_route(request.method, request.url.path)
        _log.warning("%s %s: %s", request.method, route, known.message)
    body = envelope(known.message, kind, param=known.param)
    return _reply(request, body, status=kind.status, headers=_headers(known, kind))


def _headers(error: errors.PrivateGptError, kind: ErrorKind) -> dict[str, str]:
    headers: dict[str, str] = {}
    if kind.status in {429, 502, 503, 504} and not isinstance(error, errors.QuotaExceeded):
        seconds = error.retry_after_s
        headers["Retry-After"] = str(DEFAULT_RETRY_AFTER_S if seconds is None else seconds)
    if kind.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if kind.status == 409 or isinstance(error, errors.QuotaExceeded):
        # OpenAI's SDKs retry every 409 and 429; these would only repeat themselves.
        headers["x-should-retry"] = "false"
    return headers


async def _http(request: Request, error: Exception) -> Response:
    http = cast(HTTPException, error)
    code = HTTP_CODES.get(http.status_code, "invalid_request")
    kind = ErrorKind(http.status_code, INVALID_REQUEST, code)
    message = {
        404: _no_route(request.url.path),
        405: "This route does not take this method; the Allow header names those it takes",
    }.get(http.status_code, http.detail)
    headers = dict(http.headers or {})
    if http.status_code == 405:
        # The router names the methods of the first route that the path fits, be it another's.
        headers["Allow"] = ", ".join(methods_of(request.url.path))
    return _reply(request, envelope(message, kind), status=kind.status, headers=headers)


def _no_route(path: str) -> str:
    """What to ask for instead. Only our own words: the path is the client's."""
    if meant := nearest_route(path):
        return f"There is no such route; did you mean {meant}? GET /openapi.json lists all"
    for prefix, instead in NOT_SERVED.items():
        if path.startswith(prefix):
            return f"{instead}; GET /openapi.json lists what is served"
    return "There is no such route; GET /openapi.json lists them"


async def _invalid(request: Request, error: Exception) -> Response:
    detail = _details(cast(RequestValidationError, error).errors())
    first = detail[0]
    param = _param(first["loc"])
    kind = ErrorKind(
        status=_validation_status(request.url.path, detail),
        type=INVALID_REQUEST,
        code=_code(str(first["type"])),
    )
    message = f"{param}: {first['msg']}" if param else str(first["msg"])
    body = envelope(message, kind, param=param, detail=detail)
    return _reply(request, body, status=kind.status)


async def _gone(_request: Request, _error: Exception) -> Response:
    """Nobody reads this answer; it is only there so that nothing is logged as a failure."""
    return Response(status_code=CLIENT_CLOSED_REQUEST)


async def _unknown(request: Request, _: Exception) -> Response:
    """The last resort. The server logs the exception itself, with its traceback."""
    body = envelope(_INTERNAL, INTERNAL)
    # This handler runs outside the middleware that stamps every other reply.
    headers = request_id_headers(request.scope)
    return _reply(request, body, status=INTERNAL.status, headers=headers)


def _reply(
    request: Request,
    body: dict[str, Any],
    *,
    status: int,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The body, in the dialect of the path."""
    if is_messages(request.url.path):
        request_id = request_id_headers(request.scope).get("request-id")
        body = anthropic_error(body, status=status, request_id=request_id)
    return JsonResponse(body, status_code=status, headers=headers)


def _details(problems: Iterable[Any]) -> list[dict[str, Any]]:
    """One entry per place, where pydantic has one for every member of a union."""
    by_place: dict[tuple[str | int, ...], dict[str, Any]] = {}
    for problem in problems:
        place = tuple(part for part in problem["loc"] if _names_a_field(part))
        words = _WORDS.get(problem["type"], problem["msg"])
        entry = {"loc": list(place), "msg": words, "type": problem["type"]}
        known = by_place.get(place)
        if known is None or (_is_of_type(known) and not _is_of_type(entry)):
            # A member that fits in type and fails in value is the one that was meant.
            by_place[place] = entry
        elif _is_of_type(entry) and _is_of_type(known) and entry["msg"] not in known["msg"]:
            known["msg"] = f"{known['msg']}, or: {entry['msg']}"
    inner = {place[:depth] for place in by_place for depth in range(len(place))}
    told = [
        entry for place, entry in by_place.items() if not (_is_of_type(entry) and place in inner)
    ]
    return told[:MAX_DETAILS]


def _is_of_type(entry: Mapping[str, Any]) -> bool:
    return str(entry["type"]).endswith("_type")


def _names_a_field(part: str | int) -> bool:
    """False for what pydantic adds to name a union's member, and for keys that clients choose."""
    return isinstance(part, int) or (part not in _TYPE_NAMES and _FIELD.fullmatch(part) is not None)


def _param(loc: Sequence[str | int]) -> str | None:
    """`["body", "messages", 0, "content"]` as OpenAI writes it: `messages[0].content`."""
    written = ""
    for part in loc[1:]:
        if isinstance(part, int):
            written += f"[{part}]"
        else:
            written += f".{part}" if written else part
    return written or None


def _code(problem: str) -> str:
    if problem == "missing":
        return "missing_required_parameter"
    if problem == "json_invalid":
        return "invalid_json"
    return "invalid_type" if problem.endswith("_type") else "invalid_value"


def _validation_status(path: str, detail: Sequence[Mapping[str, Any]]) -> int:
    seed = SEED_FIELDS.get(path)
    if seed is None:
        return 422 if path.startswith(("/v1/ingest", "/v1/documents")) else 400
    fields = {entry["loc"][1] for entry in detail if len(entry["loc"]) > 1}
    whole_body = any(len(entry["loc"]) == 1 and entry["type"] != "json_invalid" for entry in detail)
    return 422 if whole_body or fields & seed else 400
