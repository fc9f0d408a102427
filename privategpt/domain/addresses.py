"""What an address says by itself, before anything is asked."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether who asks `host`, a name or an IP address, asks the own machine (RFC 6761)."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_loopback_url(url: str) -> bool:
    """Whether `url` leads to the own machine."""
    return is_loopback(urlsplit(url).hostname or "")
