"""Word lists are written as text and read as sets."""

from __future__ import annotations


def words(*lists: str) -> frozenset[str]:
    """The distinct words in texts separated by white space."""
    return frozenset(word for text in lists for word in text.split())
