"""Words as they are compared: from lists, without case, composed, and with their marks."""

from __future__ import annotations

import re
import unicodedata

_ALIKE = str.maketrans("İıſ\u212a", "iisk")


MARKS = "\u0300-\u036f\u0483-\u0487\u0711\u0730-\u074a\u07a6-\u07b0" + "".join(
    f"{chr(block)}-{chr(block + 0x63)}{chr(block + 0x70)}-{chr(block + 0x7F)}"
    for block in range(0x900, 0xE00, 0x80)
)
"""For a class in a pattern: signs that are no letters to Python and yet part of a word, as the
vowels of Hindi and Tamil are; of the scripts of India, their letters too."""

WORD = rf"[^\W_]++(?:[{MARKS}]++[^\W_]*+)*+"
"""A pattern: letters and digits with their marks."""

STOPS_BEFORE_SPACE = "\u06d4\u0964\u0965\u0589"
"""Full stops of Urdu, the scripts of India and Armenian, which end a sentence as `.` does."""

STOPS_AT_ONCE = "\u1362\u104b\u17d4"
"""Full stops of Ethiopic, Burmese and Khmer, which end a sentence whatever follows."""

UNSPACED = (
    "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
"""For a class in a pattern: kana and ideographs, Thai, Lao, Burmese and Khmer, whose words are not
set apart."""

_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]"
)


_MARKS_OF_NUMBERS = str.maketrans("٫٬٪％．", ".,%%.")


def composed(text: str) -> str:
    """`text` with its letters and their accents in one, and without the points of Hebrew and
    Arabic, which are written or not; the marks of Arabic and full-width numbers as plain ones.
    """
    if text.isascii():
        return text
    return _POINTS.sub("", unicodedata.normalize("NFC", text)).translate(_MARKS_OF_NUMBERS)


def lowered(text: str) -> str:
    """`text` in lower case as `re.IGNORECASE` sees it, of the same length.

    To a pattern the dotted and the dotless i of Turkish, the long s and the Kelvin sign are i, s
    and k; `str.lower` makes other letters of them, of one even two.
    """
    return text.translate(_ALIKE).lower()


def words(*lists: str) -> frozenset[str]:
    """The distinct words in texts separated by white space."""
    return frozenset(word for text in lists for word in text.split())
