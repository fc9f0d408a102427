"""The one table of what every route asks of a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, compile_path

from privategpt.domain.access import Scope

Requirement: TypeAlias = frozenset[Scope] | None
"""Any one of these scopes suffices; None asks for no key at all."""

OPEN: Requirement = None
ANY_KEY: Requirement = frozenset(Scope)
CHAT: Requirement = frozenset({Scope.CHAT})
READ: Requirement = frozenset({Scope.READ})
WRITE: Requirement = frozenset({Scope.WRITE})
EMBED: Requirement = frozenset({Scope.EMBED})
ADMIN: Requirement = frozenset({Scope.ADMIN})

SCOPES: Mapping[str, Requirement] = {
    "POST /v1/chat/completions": CHAT,
    "POST /v1/completions": CHAT,
    "POST /v1/messages": CHAT,
    "POST /v1/messages/count_tokens": CHAT,
    "POST /v1/chunks": READ,
    "GET /v1/ingest/list": READ,
    "GET /v1/documents/{doc_id}": READ,
    "POST /v1/ingest": WRITE,
    "POST /v1/ingest/file": WRITE,
    "POST /v1/ingest/text": WRITE,
    "DELETE /v1/ingest/{doc_id}": WRITE,
    "GET /v1/ingest/jobs": WRITE,
    "GET /v1/ingest/jobs/{job_id}": WRITE,
    "GET /v1/ingest/jobs/{job_id}/events": WRITE,
    "POST /v1/ingest/jobs/{job_id}/cancel": WRITE,
    "POST /v1/embeddings": EMBED,
    "POST /v1/rerank": EMBED,
    "GET /v1/models": ANY_KEY,
    "GET /v1/models/{model_id:path}": ANY_KEY,
    "GET /v1/usage/searches": ANY_KEY,
    "GET /health": OPEN,
    "GET /health/ready": ADMIN,
    "GET /metrics": ADMIN,
    "GET /openapi.json": ADMIN,
    "GET /docs": ADMIN,
    "GET /docs/assets/{asset}": ADMIN,
    "GET /redoc": ADMIN,
}


UNMATCHED = "(none)"
"""The route of what no route takes."""


def _compiled() -> dict[str, list[tuple[re.Pattern[str], str]]]:
    patterns: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for route in SCOPES:
        method, path = route.split(" ")
        # The router's own reading of a template, so that the two never differ.
        patterns.setdefault(method, []).append((compile_path(path)[0], path))
    return patterns


_PATTERNS = _compiled()
_LITERAL = frozenset(path for route in SCOPES if "{" not in (path := route.partition(" ")[2]))


def template_of(method: str, path: str) -> str | None:
    """The route that takes a request, as the table writes it; None where none does."""
    method = _as_get(method)
    if f"{method} {path}" in SCOPES:
        return path
    found = _PATTERNS.get(method, [])
    return next((template for pattern, template in found if pattern.match(path)), None)


def told_route(method: str, path: str) -> str:
    """The route that takes a request, as logs, metrics and traces tell it: a path holds a client's
    words, which are in none of them.
    """
    return template_of(method, path) or UNMATCHED


def methods_of(path: str) -> list[str]:
    """The methods that the routes of a path take; of several templates the most literal counts,
    as `/v1/ingest/jobs` is no document.
    """
    found = {
        template: method
        for method, patterns in _PATTERNS.items()
        for pattern, template in patterns
        if pattern.match(path)
    }
    literal = min(found, key=lambda template: template.count("{"), default=None)
    methods = {method for method in _PATTERNS if f"{method} {literal}" in SCOPES}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def nearest_route(path: str) -> str | None:
    """The route that was meant where a client's base address has its `/v1` twice or not at all,
    a slash too many, or another server's prefix; as the table writes it, without a client's words.
    """
    names = [name for name in path.split("/") if name]
    tails = ["/".join(names[at:]) for at in range(len(names))]
    meant = [route for tail in tails for route in (f"/v1/{tail}", f"/{tail}")]
    literal = (route for route in meant if route in _LITERAL)
    templates = (
        template.replace(":path}", "}")
        for route in meant
        for patterns in _PATTERNS.values()
        for pattern, template in patterns
        if pattern.match(route)
    )
    return next(chain(literal, templates), None)


def requirement(method: str, path: str) -> Requirement:
    """What a request must bring. What no route takes needs a key, to be told so."""
    template = template_of(method, path)
    return ANY_KEY if template is None else SCOPES[f"{_as_get(method)} {template}"]


def _as_get(method: str) -> str:
    return "GET" if method == "HEAD" else method


def routes_of(routes: Sequence[BaseRoute]) -> Iterator[str]:
    """Every method and path that an app serves, as `SCOPES` writes them."""
    for route in iter_route_contexts(routes):
        for method in sorted(set(route.methods or ()) - {"HEAD"}):
            yield f"{method} {route.path}"


def refuse_routes_without_scope(routes: Sequence[BaseRoute]) -> None:
    """Raise `ValueError` where a route was added and its scope forgotten."""
    forgotten = [route for route in routes_of(routes) if route not in SCOPES]
    if forgotten:
        raise ValueError(f"Routes without a scope in {__name__}.SCOPES: {forgotten}")
