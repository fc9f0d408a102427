"""How long an engine may keep us waiting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds until the connection stands, until the first chunk, and from chunk to chunk.

    Comments that keep a connection alive are not chunks: an engine that sends nothing else for
    that long has not moved on.
    """

    connect_s: float = 5.0
    first_byte_s: float = 120.0
    between_bytes_s: float = 60.0


DEFAULT_TIMEOUTS = Timeouts()
