"""One bounded question to a search engine over HTTP: in bytes, in time, and to one server only."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import httpx

from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    Unavailable,
)

USER_AGENT = f"privategpt/{version('privategpt')}"
MAX_CONNECTIONS = 20
OK = 200
SERVER_ERROR = 500
GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


@dataclass(frozen=True, slots=True)
class Question:
    """A request: what goes into the address, and a form or a JSON object as its body."""

    method: str
    url: str
    query: Mapping[str, str] | None = None
    form: Mapping[str, str] | None = None
    json: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's whole answer. `host` is where a redirect points, where it is one."""

    status: int
    media_type: str
    body: bytes
    host: str | None = None


class _Inflate(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class BoundedClient:
    """Asks one provider's server, over connections that are kept.

    No redirect is followed and no cookie kept, so nothing is sent anywhere but to the address
    that the operator set, and no account's search is tied to another's. Unless `proxied`, no proxy
    of the environment is asked either.
    """

    def __init__(
        self,
        *,
        provider: str,
        headers: Mapping[str, str],
        deadline_s: float,
        max_bytes: int,
        proxied: bool = True,
    ) -> None:
        self._provider = provider
        self._deadline_s = deadline_s
        self._max_bytes = max_bytes
        self._client = httpx.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **headers},
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            timeout=deadline_s,
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
            follow_redirects=False,
            trust_env=proxied,
        )

    async def ask(self, question: Question) -> Answer:
        """Raises `EngineUnavailable`, `EngineTimedOut`, or `EngineFailed` for what broke off or
        grew too large; an answer of any status is an answer.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._ask(question)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise EngineTimedOut(
                f"{self._provider} did not answer within {self._deadline_s:g} s"
            ) from error
        except httpx.ConnectError as error:
            raise EngineUnavailable(f"{self._provider} cannot be reached") from error
        except httpx.ProxyError as error:
            raise EngineUnavailable(
                f"{self._provider} cannot be reached: the proxy refused"
            ) from error
        except httpx.HTTPError as error:
            raise EngineFailed(f"{self._provider} broke off its answer") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _ask(self, question: Question) -> Answer:
        request = self._client.build_request(
            question.method,
            question.url,
            params=question.query,
            data=question.form,
            json=question.json,
        )
        response = await self._client.send(request, stream=True)
        try:
            body = await self._read(response)
        finally:
            await response.aclose()
        return Answer(
            status=response.status_code,
            media_type=response.headers.get("content-type", "").split(";")[0].strip().lower(),
            body=body,
            host=_host(response.headers.get("location")),
        )

    async def _read(self, response: httpx.Response) -> bytes:
        inflate = self._inflate(response.headers.get("content-encoding", "identity").lower())
        body = bytearray()
        async for piece in response.aiter_raw():
            room = self._max_bytes + 1 - len(body)
            try:
                # One byte more than allowed is as far as a compressed answer is unfolded.
                body += piece if inflate is None else inflate.decompress(piece, room)
            except zlib.error as error:
                raise EngineFailed(
                    f"{self._provider} sent an answer that cannot be decompressed"
                ) from error
            if len(body) > self._max_bytes:
                raise EngineFailed(
                    f"{self._provider} answered with more than {self._max_bytes} bytes "
                    "(web_search.max_bytes)"
                )
        return bytes(body)

    def _inflate(self, encoding: str) -> _Inflate | None:
        match encoding:
            case "identity" | "":
                return None
            case "gzip" | "x-gzip" | "deflate":
                return zlib.decompressobj(GZIP_OR_ZLIB)
            case other:
                raise EngineFailed(
                    f"{self._provider} sent an answer in the encoding {other[:40]!r}, "
                    "which was not asked for"
                )


def read_object(answer: Answer, *, provider: str, advice: Mapping[int, str]) -> dict[str, Any]:
    """The JSON object of a successful answer.

    Raises `EngineFailed` or `EngineUnavailable` for every other, with the `advice` for its status.
    """
    if answer.status != OK:
        raise _refusal(answer, provider=provider, advice=advice)
    try:
        value: object = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise EngineFailed(
            f"{provider} answered with {answer.media_type[:40] or 'something'!r} that is not JSON; "
            "is the address that of its search API?"
        ) from error
    if not isinstance(value, dict):
        raise EngineFailed(f"{provider} answered with JSON that is not an object")
    return cast("dict[str, Any]", value)


def _refusal(answer: Answer, *, provider: str, advice: Mapping[int, str]) -> Unavailable:
    status = answer.status
    if status in advice:
        return EngineFailed(f"{provider} refused with status {status}: {advice[status]}")
    if answer.host is not None:
        return EngineFailed(
            f"{provider} redirects to {answer.host[:100]!r}, which is not followed; "
            "set the address it really has"
        )
    if status >= SERVER_ERROR:
        return EngineUnavailable(f"{provider} failed with status {status}")
    return EngineFailed(f"{provider} refused with status {status}")


def _host(location: str | None) -> str | None:
    if location is None:
        return None
    try:
        return urlsplit(location).hostname or "itself"
    except ValueError:
        return "an address that is none"


def require_address(url: str, *, setting: str) -> str:
    """`url` without a last slash, if it is an http(s) address; raises `InvalidSettings`."""
    try:
        parts = httpx.URL(url.strip())
    except httpx.InvalidURL:
        parts = httpx.URL()
    if parts.scheme not in {"http", "https"} or not parts.host or parts.query or parts.fragment:
        raise InvalidSettings(
            f"Setting {setting!r} is not the address of a server, as in http://127.0.0.1:8080"
        )
    return url.strip().rstrip("/")


def require_key(key: str, *, setting: str) -> str:
    """`key`, if it can stand in a header; raises `InvalidSettings`, which does not repeat it."""
    if not (key.isascii() and key.isprintable() and key.strip()):
        raise InvalidSettings(f"Setting {setting!r} is not a key: it has characters no key has")
    return key.strip()
