"""Who is asking. The tenant comes from the key alone, never from a request's body or path."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, cast
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from privategpt.api.deps import Authenticator
from privategpt.api.errors import respond
from privategpt.api.origins import refuse_strange_page
from privategpt.api.scopes import requirement
from privategpt.domain.access import DEFAULT_TENANT, ApiKey
from privategpt.domain.errors import (
    InvalidRequest,
    NotAuthenticated,
    PermissionDenied,
    PrivateGptError,
)

KEYS_IN_ADDRESS = frozenset({"api_key", "api-key", "apikey", "access_token"})
"""Query parameters that other products take a key in; it would stand in every log on the way."""

_SCOPE_KEY = "privategpt.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """The account a request belongs to, and the id of the key it came with."""

    tenant: str
    key_id: str | None = None


ANYBODY = Caller(tenant=DEFAULT_TENANT)
"""The caller of a server without keys: one fixed tenant."""


class Authentication:
    """Lets a request in by its key, before its body is read; see `api/scopes.py` for what it needs.

    Without `keys` everybody is let in as the one tenant. `admit` bounds a tenant's requests; a
    route that is open to all is not counted. Without keys, pages of other origins than
    `page_origins` are kept out; with them, no page has one that was not given to it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Authenticator | None,
        admit: Callable[[str], None],
        page_origins: Collection[str] = (),
    ) -> None:
        self._app = app
        self._keys = keys
        self._admit = admit
        self._page_origins = page_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            scope[_SCOPE_KEY] = await self._caller(scope)
        except PrivateGptError as error:
            response = await respond(Request(scope), error)
            if _has_body(scope):
                # It is not read, so the connection cannot be used again.
                response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller | None:
        _refuse_key_in_address(scope.get("query_string", b""))
        needed = requirement(scope["method"], scope["path"])
        if needed is None:
            return None
        caller = ANYBODY
        if self._keys is None:
            refuse_strange_page(Headers(scope=scope), allowed=self._page_origins)
        else:
            key = await _identified(self._keys, scope)
            # Known from here on, so that a refusal is logged with it.
            caller = scope[_SCOPE_KEY] = Caller(tenant=key.tenant, key_id=key.key_id)
            if needed.isdisjoint(key.scopes):
                raise PermissionDenied(
                    f"This needs a key with the scope {' or '.join(sorted(needed))!r}; "
                    f"this one has {', '.join(sorted(key.scopes))}"
                )
        self._admit(caller.tenant)
        return caller


def caller_of(scope: Scope) -> Caller | None:
    """Who sent the request of `scope`; None where nobody had to say."""
    return cast("Caller | None", scope.get(_SCOPE_KEY))


def known_caller(request: Request) -> Caller:
    """The caller of a route that belongs to an account. Raises `NotAuthenticated`."""
    known = caller_of(request.scope)
    if known is None:
        raise NotAuthenticated(_MISSING)
    return known


# A coroutine, as FastAPI sends every plain function through a thread.
async def _caller(request: Request) -> Caller:
    return known_caller(request)


CallerDep = Annotated[Caller, Depends(_caller)]
AUTHENTICATED = Depends(_caller)
"""For routes that must know that there is a caller, and not which."""

_MISSING = (
    "This server needs an API key: send it as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'"
)


async def _identified(keys: Authenticator, scope: Scope) -> ApiKey:
    sent = {key for name, value in scope["headers"] if (key := _key_in(name, value))}
    if not sent:
        raise NotAuthenticated(_MISSING)
    if len(sent) > 1:
        raise NotAuthenticated("The request carries two different API keys; send one")
    return await keys.identify(sent.pop())


def _key_in(name: bytes, value: bytes) -> bytes | None:
    """OpenAI's clients and Anthropic's newer ones send a bearer token, others `x-api-key`."""
    if name == b"x-api-key":
        return value.strip()
    if name == b"authorization":
        scheme, _, token = value.strip().partition(b" ")
        return token.strip() if scheme.lower() == b"bearer" else None
    return None


def _refuse_key_in_address(query: bytes) -> None:
    if not query:
        return
    # Read as Latin-1, which takes every byte.
    names = {name.lower() for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)}
    if names & KEYS_IN_ADDRESS:
        raise InvalidRequest(
            "Send the API key in a header, not in the address, where every log on the way keeps "
            "it; revoke this one"
        )


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
