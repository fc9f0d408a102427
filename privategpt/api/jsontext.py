"""JSON in and out: strict when it is read, safe for every client when it is written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, cast

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic_core import PydanticSerializationError, from_json, to_json
from starlette.exceptions import HTTPException

_HUGE_NUMBER = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""What a number needs to become infinite; only then is the parsed tree searched for one."""


def parse(text: bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` for NaN, infinities (1e999 too), lone
    surrogates, bytes that are not UTF-8, nesting beyond 200 levels, and anything left over.
    """
    value = from_json(text.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False, cache_strings="keys")
    if _HUGE_NUMBER.search(text) and not _is_finite(value):
        raise ValueError("number out of range")
    return value


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return all(_is_finite(item) for item in cast("Iterable[Any]", value))
    return True


_LINE_BREAKS = {
    "\x85".encode(): rb"\u0085",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}


def dump_line(value: Any) -> bytes:
    """`value` as one line of JSON that no client splits or takes for the end of a stream.

    Many clients split lines as `str.splitlines` does, and the PrivateGPT SDK stops at any line
    with the end marker in it, so both are written as escapes.
    """
    line = _dump(value)
    if not line.isascii():
        for found, escape in _LINE_BREAKS.items():
            line = line.replace(found, escape)
    return line.replace(b"[DONE]", rb"\u005bDONE]")


def _dump(value: Any) -> bytes:
    """Compact. A lone surrogate, which UTF-8 cannot carry, becomes a question mark."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", errors="replace")


class JsonResponse(JSONResponse):
    """Compact JSON; see `_dump`."""

    def render(self, content: Any) -> bytes:
        return _dump(content)


class _JsonRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_parsed"):
            try:
                self._parsed = parse(await self.body())
            except ValueError as error:
                raise invalid_json(str(error)) from error
        return self._parsed


def invalid_json(reason: str) -> RequestValidationError:
    """The validation error for a body that is not JSON; `reason` quotes no input."""
    message = f"The body is not valid JSON: {reason}"
    return RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": message}])


class JsonRoute(APIRoute):
    """A route whose JSON body is read strictly, and refused where it is labelled otherwise."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        takes_json = self.body_field is not None

        async def strict(request: Request) -> Response:
            if takes_json:
                _require_json(request)
                request = _JsonRequest(request.scope, request.receive)
                # Read here: FastAPI turns an error inside its own reading into a bare 400.
                await request.json()
            return await handler(request)

        return strict


def _require_json(request: Request) -> None:
    label = request.headers.get("content-type", "application/json")
    media_type = label.partition(";")[0].strip().lower()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        raise HTTPException(415, "Send the body as JSON, with Content-Type: application/json")
