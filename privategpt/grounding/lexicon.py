"""Word lists are written as text and read as sets; case is ignored as patterns ignore it."""

from __future__ import annotations

_ALIKE = str.maketrans("İıſ\u212a", "iisk")


def lowered(text: str) -> str:
    """`text` in lower case as `re.IGNORECASE` sees it, of the same length.

    To a pattern the dotted and the dotless i of Turkish, the long s and the Kelvin sign are i, s
    and k; `str.lower` makes other letters of them, of one even two.
    """
    return text.translate(_ALIKE).lower()


def words(*lists: str) -> frozenset[str]:
    """The distinct words in texts separated by white space."""
    return frozenset(word for text in lists for word in text.split())
