"""Which character set a text without any sign of one is in, judged by how it reads.

A wrong guess shows: letters of two scripts in one word, capitals inside words, symbols between
letters, accents that no single language uses together, ideographs nobody writes. Made for short
files, where charset-normalizer, which judges by statistics, mistakes "it’s ©" for Japanese.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_RUSSIAN = (_CYRILLIC + "ё", _CYRILLIC + "іїєґ")
_ALPHABETS: dict[str, tuple[str, ...]] = {
    "cp1252": (
        *("àâæçéèêëîïôœùûüÿ", "äöüß", "áéíóúüñ¿¡ªº", "áâãàçéêíóôõúüªº", "àèéìíòóùúî"),
        *("æøåéóòôâ", "åäöéšž", "éèëïöüíóáêç", "áðéíóúýþæö", "àèéíïòóúüç·"),
    ),
    "cp1255": ("אבגדהוזחטיךכלםמןנסעףפץצקרשת",),
    "cp1251": (*_RUSSIAN, _CYRILLIC + "іў", "абвгдежзиклмнопрстуфхцчшђјљњћџѓќѕ"),
    "koi8_r": _RUSSIAN,
    "cp866": _RUSSIAN,
    "cp1250": (
        *("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţ", "čćđšž"),
    ),
    "cp1253": ("αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋΐΰ",),
    "cp1254": ("çğıöşüâîûi̇",),
    "cp1256": ("ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگ،؛؟ًٌٍَُِّْـ",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž"),
    "cp874": ("".join(map(chr, range(0x0E01, 0x0E5B))),),
}
_TYPOGRAPHY = frozenset("’‘“”„‚–—…«»‹›©®™€£¥§°·•¿¡ªº½¼¾²³×±\xa0†№¬")
_BETWEEN_LETTERS = frozenset("’\xad")
_WORD_ENDS_ONLY = frozenset("ךםןףץ")
_RARE = {"cp874": 0.93, "cp866": 0.9}
"""Every byte pair of Chinese or Korean is letters here; a small handicap decides for those."""

_ONE_SCRIPT_WITH_LATIN = frozenset({"cp1252", "cp1250", "cp1254", "cp1257"})
_SAMPLE_BYTES = 6_000
_CONFIDENT = 0.5


def guess(data: bytes) -> str | None:
    """The codec that decodes all of `data` and reads best, or None where none reads well."""
    sample = b"\n".join(_lines_with_high_bytes(data))
    best, best_score = None, _CONFIDENT
    for codec, score in _scores(sample):
        if score > best_score + 1e-9 and _decodes(data, codec):
            best, best_score = codec, score
    return best


def _lines_with_high_bytes(data: bytes) -> Iterator[bytes]:
    size = 0
    for line in data.splitlines():
        if not line.isascii():
            yield line
            size += len(line)
            if size > _SAMPLE_BYTES:
                return


def _scores(sample: bytes) -> Iterator[tuple[str, float]]:
    for codec, alphabets in _ALPHABETS.items():
        if (text := _decoded(sample, codec)) is not None:
            mixes = codec in _ONE_SCRIPT_WITH_LATIN
            score = max(_alphabetic_score(text, set(a), mixes=mixes) for a in alphabets)
            yield codec, score * _RARE.get(codec, 1)
    for codec, weigh in _IDEOGRAPHIC.items():
        if (text := _decoded(sample, codec)) is not None:
            yield codec, _ideographic_score(text, weigh)


def _decoded(sample: bytes, codec: str) -> str | None:
    try:
        return sample.decode(codec)
    except UnicodeDecodeError:
        return None


def _decodes(data: bytes, codec: str) -> bool:
    return _decoded(data, codec) is not None


def _foreign_characters(text: str) -> Iterator[tuple[str, str, str]]:
    """Every character beyond ASCII, with the ones before and after it."""
    padded = f" {text} "
    for before, character, after in zip(padded, text, padded[2:], strict=False):
        if not character.isascii():
            yield before, character, after


def _alphabetic_score(text: str, alphabet: set[str], *, mixes: bool) -> float:
    total = count = 0.0
    for before, character, after in _foreign_characters(text):
        count += 1
        inside = before.isalnum() and after.isalnum()
        if character.lower() in alphabet:
            total += _letter_score(before, character, after, mixes=mixes)
        elif character in _TYPOGRAPHY:
            total += 0.9 if character in _BETWEEN_LETTERS or not inside else -1
        elif character.isalpha():
            total += 0.2 if mixes and not _odd_case(before, character) else -1
        else:
            total -= 1
    return total / max(count, 1)


def _letter_score(before: str, character: str, after: str, *, mixes: bool) -> float:
    if _odd_case(before, character) or (character in _WORD_ENDS_ONLY and after.isalpha()):
        return -1
    if mixes:
        return 1
    if any(side.isascii() and side.isalpha() for side in (before, after)):
        return -1
    return 1 if before.isalpha() or after.isalpha() or not after.isspace() else 0.3


def _odd_case(before: str, character: str) -> bool:
    return character.isupper() and before.islower()


def _ideographic_score(text: str, weigh: Callable[[str], float]) -> float:
    total = count = 0.0
    for before, character, after in _foreign_characters(text):
        count += 1
        alone = before.isascii() and after.isascii()
        in_word = any(c.isascii() and c.isalpha() for c in (before, after))
        total += -1 if alone and in_word else weigh(character)
    return total / max(count, 1)


def _is_wide_punctuation(character: str) -> bool:
    return "\u3000" <= character <= "\u303f" or "\uff01" <= character <= "\uff60"


def _lead_byte(character: str, codec: str) -> int:
    try:
        encoded = character.encode(codec)
    except UnicodeEncodeError:
        return 0
    return encoded[0] if len(encoded) == 2 else 0


def _weigh_japanese(character: str) -> float:
    if "\u3041" <= character <= "\u30ff" or _is_wide_punctuation(character):
        return 1
    if "\uff61" <= character <= "\uff9f":
        return -0.5  # half-width katakana: what every Western text turns into
    return 0.85 if 0xB0 <= _lead_byte(character, "euc_jp") <= 0xCF else 0.2


def _weigh_simplified(character: str) -> float:
    if _is_wide_punctuation(character) or character in _TYPOGRAPHY:
        return 0.9
    return 0.95 if 0xB0 <= _lead_byte(character, "gb2312") <= 0xD7 else -0.3


def _weigh_traditional(character: str) -> float:
    if _is_wide_punctuation(character) or character in _TYPOGRAPHY:
        return 0.9
    lead = _lead_byte(character, "big5")
    if 0xA4 <= lead <= 0xC6:
        return 0.95
    return 0.1 if lead else -0.5


def _weigh_korean(character: str) -> float:
    if 0xB0 <= _lead_byte(character, "euc_kr") <= 0xC8:
        return 1
    return 0.9 if _is_wide_punctuation(character) else -0.5


_IDEOGRAPHIC: dict[str, Callable[[str], float]] = {
    "cp932": _weigh_japanese,
    "euc_jp": _weigh_japanese,
    "gb18030": _weigh_simplified,
    "big5": _weigh_traditional,
    "cp949": _weigh_korean,
}
