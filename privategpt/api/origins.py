"""Whose web pages may use a server that asks for no key.

Any page that a person opens can send a form to this machine. It cannot read the reply, but a file
that it ingests is in the library, and speaks in the answers from then on.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from privategpt.domain.addresses import is_loopback
from privategpt.domain.errors import PermissionDenied


def refuse_strange_page(headers: Headers, *, allowed: Collection[str]) -> None:
    """Raise `PermissionDenied` for a request that a browser sends for a page of somebody else.

    Programs send no `Origin`, and desktop applications one that is no web address. Pages of this
    server, of this machine and of the `allowed` origins are let through.
    """
    origin = headers.get("origin")
    if origin is None or "*" in allowed or origin in allowed:
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


def origin_of(url: str) -> str:
    """As a browser names the origin of the pages at an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
