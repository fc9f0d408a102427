"""Whose web pages may use a server that asks for no key.

Any page that a person opens can send a form to this machine. It cannot read the reply, but a file
that it ingests is in the library, and speaks in the answers from then on. And the owner of a name
can have it lead to this machine while a page of that name is open, which is then a page of this
server to the browser, and may read everything (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from privategpt.domain.addresses import is_loopback
from privategpt.domain.errors import PermissionDenied

UNOWNED = ("test", "local", "internal", "home.arpa", "lan")
"""Domains below which nobody owns a name in public (RFC 6761, 6762, 8375; ICANN's `internal`)."""


def refuse_strange_page(headers: Headers, *, allowed: Collection[str]) -> None:
    """Raise `PermissionDenied` for a request that a browser sends for a page of somebody else.

    Programs send no `Origin`, and desktop applications one that is no web address. Pages of this
    server, of this machine and of the `allowed` origins are let through. The server itself may be
    asked by addresses, names that nobody can own, and the names in `allowed`.
    """
    if "*" in allowed:
        return
    _refuse_strange_name(_host(f"//{headers.get('host', '')}"), allowed=allowed)
    origin = headers.get("origin")
    if origin is None or origin in allowed:
        return
    if origin != "null" and not origin.startswith(("http://", "https://")):
        return
    host = _host(origin)
    own = {_host(f"//{headers.get(name, '')}") for name in ("host", "x-forwarded-host")}
    if host is None or not (host in own or is_loopback(host)):
        raise PermissionDenied(
            "A web page of another origin may not use a server that asks for no key; the operator "
            "can name its origin in server.cors_origins"
        )


def _refuse_strange_name(name: str | None, *, allowed: Collection[str]) -> None:
    if name is None or _is_unowned(name) or name in map(_host, allowed):
        return
    raise PermissionDenied(
        "A server that asks for no key answers only to addresses and names of its own network, and "
        f"{name[:100]!r} is neither. The operator can let it ask for keys (`privategpt keys "
        "create` and a restart), or, if only that network can reach it, name that address in "
        "server.public_url"
    )


@lru_cache(maxsize=64)
def _is_unowned(name: str) -> bool:
    """Whether nobody but who runs the network can say where a name leads: an address, a name of
    one word, or below a domain that is kept for that.
    """
    name = name.removesuffix(".")
    return (
        "." not in name
        or is_loopback(name)
        or name.endswith(tuple(f".{domain}" for domain in UNOWNED))
        or _is_address(name)
    )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def origin_of(url: str) -> str:
    """As a browser names the origin of the pages at an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
