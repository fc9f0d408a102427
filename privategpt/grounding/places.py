"""What a place in a document is called: its headings, and the number its paragraph carries."""

from __future__ import annotations

import re
from collections.abc import Sequence

from privategpt.domain.documents import Heading

# A number is one where it ends: `12:30`, `10.5 million`, `3.2.1 and later` and `1.5°C` are none.
_NUMBER = re.compile(
    r"\s*(?:[#>*_]+\s*)?"
    r"(?P<number>(?:§+|¶|Art(?:icle|icolo|ículo|igo|ikel|\.)?|Section|Sec\.|Canon|Can\.)?\s*"
    r"\d{1,4}(?:\.\d{1,3}){0,4}[a-z]?)"
    r"(?:[.):](?!\d)|°(?![^\W_])|\b(?=\s*[–—-]\s))",
    re.IGNORECASE,
)
_LONGEST_NUMBER = 40


def heading_path(headings: Sequence[Heading], offset: int) -> tuple[str, ...]:
    """The titles that stand over `offset`, outermost first; `headings` in the document's order."""
    path: list[Heading] = []
    for heading in headings:
        if heading.start > offset:
            break
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
    return tuple(heading.title for heading in path)


def paragraph_number(text: str, offset: int) -> str | None:
    """The number or article that the paragraph around `offset` begins with, as written there."""
    line = text.rfind("\n", 0, offset) + 1
    found = _NUMBER.match(text, line, line + _LONGEST_NUMBER)
    return " ".join(found["number"].split()) if found else None
