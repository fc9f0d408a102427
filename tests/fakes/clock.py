"""A clock that a test moves."""

from __future__ import annotations

from datetime import UTC, datetime

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Clock:
    """Stands still, from noon on, until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now
