"""Bombs in PDF streams, found before a reader unpacks them.

A page of text is tens of kilobytes of operators; a stream that inflates to two hundred times its
size, or to more than any page has, was made to exhaust its reader. Images are left out: a blank
scan packs as well as a bomb, and reading text never unpacks one (OCR does, within the worker's
memory).
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator

from privategpt.backends.parsers.bounds import MAX_RATIO, require

_STREAM = re.compile(rb"stream\r?\n")
_NOT_READ_FOR_TEXT = re.compile(rb"/Subtype\s*/Image\b|/Width\b")
_FILTER = re.compile(rb"/(FlateDecode|Fl|ASCIIHexDecode|AHx|ASCII85Decode|A85|[A-Z]\w+Decode)\b")
_FLATE = frozenset((b"FlateDecode", b"Fl"))
_HEX = frozenset((b"ASCIIHexDecode", b"AHx"))
_BASE_85 = frozenset((b"ASCII85Decode", b"A85"))
_DICTIONARY_BYTES = 1_000
_MAX_STREAM_BYTES = 128_000_000
_FLOOR_BYTES = 2_000_000
_IN_BYTES = 1 << 14
_OUT_BYTES = 1 << 18


def check_streams(data: bytes) -> None:
    """Raise `FileExceedsBounds` where a stream of the PDF `data` unpacks to far too much."""
    end = 0
    for match in _STREAM.finditer(data):
        head = data[max(end, match.start() - _DICTIONARY_BYTES) : match.start()]
        head = head[head.rfind(b"endobj") + 1 :]
        filters = _FILTER.findall(head)
        if filters and not _NOT_READ_FOR_TEXT.search(head):
            end = data.find(b"endstream", match.end())
            end = len(data) if end < 0 else end
            _check_stream(data[match.end() : end], filters)


def _check_stream(packed: bytes, filters: list[bytes]) -> None:
    starts = range(0, len(packed), _IN_BYTES)
    chunks: Iterator[bytes] = (packed[n : n + _IN_BYTES] for n in starts)
    for name in filters:
        if name in _HEX or name in _BASE_85:
            chunks = iter([_ascii_decoded(b"".join(chunks), name)])
        elif name in _FLATE:
            chunks = _inflated(chunks)
        else:
            break
    unpacked = 0
    for chunk in chunks:
        unpacked += len(chunk)
        require(unpacked <= _MAX_STREAM_BYTES, "a stream of it unpacks to over 128 MB")
        bomb = unpacked > _FLOOR_BYTES and unpacked > MAX_RATIO * len(packed)
        require(not bomb, f"a stream of it unpacks to over {MAX_RATIO} times its size")


def _ascii_decoded(data: bytes, name: bytes) -> bytes:
    try:
        if name in _HEX:
            digits = re.sub(rb"\s", b"", data.partition(b">")[0])
            return binascii.unhexlify(digits + b"0" * (len(digits) % 2))
        return base64.a85decode(data.partition(b"~>")[0])
    except (binascii.Error, ValueError):
        return b""


def _inflated(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What the chunks inflate to, as far as they are sound, a piece at a time."""
    unpacker = zlib.decompressobj()
    for chunk in chunks:
        pending = chunk
        while pending and not unpacker.eof:
            try:
                yield unpacker.decompress(pending, _OUT_BYTES)
            except zlib.error:
                return
            pending = unpacker.unconsumed_tail
