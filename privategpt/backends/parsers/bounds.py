"""How much a file may ask of us. The worker's memory and time limits stand behind these.

They are checked before or while reading, so that a bomb is refused in moments, with a reason,
and without the memory it was made to take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privategpt.backends.parsers.ocr import Picture
from privategpt.domain.errors import FileExceedsBounds

MAX_MEMBERS = 20_000
"""Members of a zip container; a book with a picture per page has a few thousand."""

MAX_UNPACKED_BYTES = 1_000_000_000
MAX_XML_BYTES = 400_000_000
MAX_RATIO = 200
"""Markup packs at 5 to 50 times; DEFLATE's limit, which bombs are near, is 1032."""

RATIO_FLOOR_BYTES = 4_000_000
"""Below this, unpacked, no ratio is a danger."""

MAX_XML_TAGS = 2_500_000
"""Start and end tags of a part that is held as a tree (about 100 bytes each), and of a page of
HTML (3 microseconds each); an 872-page handbook has 150,000."""

MAX_ENTITIES = 5_000_000
MAX_ATTRIBUTES = 10_000
"""Of one tag of HTML."""

MAX_HEADER_BYTES = 5_000_000
"""Of all headers of a mail and its parts; a list of ten thousand recipients has 400,000."""

MAX_PARSED_HEADER_BYTES = 300_000
"""Of those headers that are taken apart; a part of a mail has 150. The standard library takes 10
microseconds for each, and 40 for the worst."""

MAX_MAIL_LINES = 3_000_000
"""Each takes the standard library half a microsecond and a list's place."""

MAX_TITLE_CHARS = 500
"""Of a heading as it is noted, which every passage below it repeats; its text is kept whole."""

MAX_HEADING_LEVEL = 9
MAX_HEADINGS = 200_000
MAX_PATH_CHARS = 1_000

MAX_CELLS = 5_000_000
MAX_SHEET_AREA = 500_000_000
"""Rows times columns of the rectangle that holds a sheet's values."""

MAX_TEXT_CHARS = 100_000_000
MAX_DEPTH = 1_000
"""Nesting of JSON; no person writes more, and readers recurse."""

MAX_INNER_FILES = 20_000
"""Files inside an upload, at all depths together, containers counted too."""

MAX_INNER_DEPTH = 5
"""A zip in a mail in a mailbox in a zip is four."""

MAX_INNER_BYTES = 100_000_000
"""One file inside an upload."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The operator's part of the limits; `ocr` reads a picture, None where there is no OCR."""

    max_pages: int
    ocr: Callable[[Picture], str] | None = None


def require(within: bool, what: str) -> None:
    """Raise `FileExceedsBounds`, saying `what` is too much, unless it is `within` bounds."""
    if not within:
        raise FileExceedsBounds(f"The file cannot be read within bounds: {what}")


def require_honest_ratio(what: str, *, packed_bytes: int, unpacked_bytes: int) -> None:
    """Refuse what unpacks to far more than text ever does."""
    suspicious = unpacked_bytes > RATIO_FLOOR_BYTES
    honest = unpacked_bytes <= MAX_RATIO * max(packed_bytes, 1)
    require(honest or not suspicious, f"{what} unpacks to over {MAX_RATIO} times its size")
