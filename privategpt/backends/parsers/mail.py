"""Mail: a document per message, its headers first; what it carries, and mailboxes taken apart."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from contextlib import suppress
from email import policy
from email.errors import MessageError
from email.header import decode_header, make_header
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage, Message
from functools import lru_cache, partial
from itertools import islice
from typing import cast

from privategpt.backends.parsers.archives import Carried, bounded
from privategpt.backends.parsers.bounds import (
    MAX_DEPTH,
    MAX_HEADER_BYTES,
    MAX_INNER_FILES,
    MAX_MAIL_LINES,
    MAX_PARSED_HEADER_BYTES,
    require,
)
from privategpt.backends.parsers.charset_guess import guess
from privategpt.backends.parsers.charsets import decode, decoded
from privategpt.backends.parsers.cleaning import DocumentBuilder, one_line
from privategpt.backends.parsers.file_metadata import facts
from privategpt.backends.parsers.html_reader import read_html
from privategpt.domain.documents import ParsedDocument, ParsedFile
from privategpt.domain.errors import CorruptFile, UnsupportedFileType

_STYLING = frozenset(("text/css", "text/javascript", "text/ecmascript"))
"""What a saved web page (MHTML) has beside its text."""

_APPLE_LENGTH = re.compile(rb"\A(\d{1,10})[ \t]*\r?\n")
"""Apple's mail program writes it above a message, and a property list below."""

_SHOWN_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_MBOX_FROM = re.compile(rb"^From (?=[^\r\n]{0,300}\d{4})[^\r\n]*+\r?\n", re.MULTILINE)
_LINE_END = rb"(?>\r\n?|\n)"
_FIELDS = rb"((?:(?:From |[!-9;-~]*+:|[ \t])[^\r\n]*+(?:" + _LINE_END + rb"|\Z))++)"
_HEADERS = re.compile(rb"(?:\A|(?<=[\r\n])--[^\r\n]*+" + _LINE_END + rb")" + _FIELDS)
"""Of a message or part, line by line as the standard library takes them."""

_CARRIES_MESSAGES = re.compile(rb"content-type:\s*+(?:message/|multipart/digest)", re.IGNORECASE)
_HEADERS_OF_CARRIED = re.compile(_LINE_END * 2 + _FIELDS)
"""They stand behind a blank line, as bodies do whose lines may look like headers."""

_STRUCTURE = re.compile(rb"^content-[\w-]+:(?:[^\r\n]|\r?\n[ \t])*+", re.IGNORECASE | re.MULTILINE)
_QUOTED_FROM = re.compile(rb"(?m)^>(>*From )")
_MAX_NESTED = 20
_LONGEST_STRUCTURE = 4_000
_LONGEST_PARSED = 2_000  # the time that the standard library takes to parse one is quadratic
_LONGEST_SHOWN = 20_000
_PARSED = re.compile(
    rb"^(?:content-[\w-]+|subject|from|to|cc|date):(?:[^\r\n]|\r?\n[ \t])*+",
    re.IGNORECASE | re.MULTILINE,
)

_FAULTS = (MessageError, ValueError, IndexError, AttributeError, TypeError, LookupError)
"""What the standard library's header parser raises on some malformed ones."""

_EXTENDED = re.compile(r"\*(?:\d*\*?)(?=\s*=)")
_registry = HeaderRegistry()


# A part's headers are asked for nine times, and each time they would be parsed again.
@lru_cache(maxsize=8)
def _parsed_header(name: str, value: str) -> str:
    """A header. One that rules, and has extended parameters (RFC 2231) in what is no charset, is
    read with plain ones, and else as empty; others raise one of `_FAULTS`.
    """
    if not name.lower().startswith("content-"):
        return cast("str", _registry(name, value))
    for attempt in (value, _EXTENDED.sub("", value)):
        with suppress(*_FAULTS):
            return cast("str", _registry(name, attempt))
    return cast("str", _registry(name, ""))


class _ReadableHeaders(policy.EmailPolicy):
    """Takes headers that are raw bytes, against the rules, in the character set they read well in;
    the standard library puts question marks for them.
    """

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Name and value of a header in these lines."""
        header = "".join(sourcelines)
        if header.isascii() or not _PARSED.match(header.encode("ascii", "surrogateescape")):
            return super().header_source_parse(sourcelines)
        return super().header_source_parse([_readable(header)])


def _readable(header: str) -> str:
    data = header.encode("ascii", "surrogateescape")
    for charset in ("utf-8", guess(data), "cp1252"):
        if charset and (text := decoded(data, charset)) is not None:
            return text
    return data.decode("latin-1")


_POLICY = _ReadableHeaders(header_factory=_parsed_header)


def read_mail(data: bytes, media_type: str) -> ParsedFile:
    """One message and those it carries."""
    documents = list(_documents(_message_alone(data)))
    metadata = {**documents[0].metadata} if documents else {}
    return ParsedFile(media_type=media_type, documents=tuple(documents), metadata=metadata)


def mail_files(data: bytes) -> Iterator[Carried]:
    """What is attached to a message, and to those it carries."""
    data = _message_alone(data)
    if b"multipart" not in data.lower() and not _names_a_file(data):
        return  # as most messages of a mailbox, which would all be taken apart twice
    message = email.message_from_bytes(data, policy=_POLICY)
    for part in cast("Iterator[EmailMessage]", message.walk()):
        if _is_attachment(part) and (name := part.get_filename()):
            yield Carried(
                path=str(name),
                read=partial(_attached, part),
                media_type=part.get_content_type(),
            )


def _message_alone(data: bytes) -> bytes:
    match = _APPLE_LENGTH.match(data)
    return data[match.end() : match.end() + int(match[1])] if match else data


def _names_a_file(data: bytes) -> bool:
    """Whether a message may be a file and nothing else, as scanners send them."""
    return any(b"name" in header[0].lower() for header in _STRUCTURE.finditer(data))


def _is_attachment(part: EmailMessage) -> bool:
    if part.is_multipart() or part.get_content_type() == "message/rfc822":
        return False
    attached = part.get_content_disposition() == "attachment"
    return attached or not part.get_content_type().startswith("text/")


def _attached(part: EmailMessage, limit: int) -> bytes:
    payload = part.get_payload(decode=True)
    return bounded(payload if isinstance(payload, bytes) else b"", limit)


def mbox_files(data: bytes) -> Iterator[Carried]:
    """Every message of a mailbox (mboxrd: `>From ` within a body is unquoted)."""
    starts = [match.span() for match in islice(_MBOX_FROM.finditer(data), MAX_INNER_FILES + 1)]
    if not starts:
        raise CorruptFile("The mailbox has no message: no line starts with 'From '")
    require(len(starts) <= MAX_INNER_FILES, f"the mailbox has over {MAX_INNER_FILES:,} messages")
    ends = [start for start, _ in starts[1:]]
    for number, ((_, start), end) in enumerate(zip(starts, [*ends, len(data)], strict=True), 1):
        message = _QUOTED_FROM.sub(rb"\1", data[start:end])
        yield Carried(
            path=f"message-{number}.eml",
            read=partial(bounded, message),
            media_type="message/rfc822",
        )


def _documents(data: bytes) -> Iterator[ParsedDocument]:
    lines = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
    require(lines <= MAX_MAIL_LINES, f"the mail has over {MAX_MAIL_LINES:,} lines")
    boundaries = data.count(b"\n--")
    require(boundaries <= MAX_INNER_FILES, f"the mail has over {MAX_INNER_FILES:,} parts")
    _check_headers(data)
    message = cast("EmailMessage", email.message_from_bytes(data, policy=_POLICY))
    yield from _message_documents(message, depth=0)


def _check_headers(data: bytes) -> None:
    longest = max((len(match[0]) for match in _STRUCTURE.finditer(data)), default=0)
    require(longest < _LONGEST_STRUCTURE, "a header of it is overlong")
    patterns = [_HEADERS, *([_HEADERS_OF_CARRIED] if _CARRIES_MESSAGES.search(data) else [])]
    total = parsed = 0
    for match in (match for pattern in patterns for match in pattern.finditer(data)):
        total += len(match[1])
        require(total <= MAX_HEADER_BYTES, f"its headers have over {MAX_HEADER_BYTES:,} bytes")
        parsed += sum(min(len(one[0]), _LONGEST_PARSED) for one in _PARSED.finditer(match[1]))
        require(parsed <= MAX_PARSED_HEADER_BYTES, "it has too many headers")


def _message_documents(message: EmailMessage, *, depth: int) -> Iterator[ParsedDocument]:
    require(depth <= _MAX_NESTED, "its messages are nested too deeply")
    builder = DocumentBuilder()
    for name in _SHOWN_HEADERS:
        if value := _header(message, name):
            builder.add(f"{name}: {value}", separator="\n")
    carried: list[EmailMessage] = []
    for body in _bodies(message, carried, depth=0):
        builder.add_document(body)
    if not builder.is_empty:
        found = facts(
            title=_header(message, "Subject"),
            author=_header(message, "From"),
            date=_header(message, "Date"),
        )
        yield builder.build(metadata=found)
    for inner in carried:
        yield from _message_documents(inner, depth=depth + 1)


def _header(message: EmailMessage, name: str) -> str:
    """A header decoded (RFC 2047), or as it came where it cannot be; what is overlong is cut."""
    raw = cast("Message", message).raw_items()
    value = next((str(v) for k, v in raw if k.lower() == name.lower()), "")[:_LONGEST_SHOWN]
    with suppress(*_FAULTS):
        long = len(value) >= _LONGEST_PARSED
        value = str(make_header(decode_header(value)) if long else message.get(name, ""))
    return one_line(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _bodies(
    part: EmailMessage, carried: list[EmailMessage], *, depth: int
) -> Iterator[ParsedDocument]:
    require(depth <= min(MAX_DEPTH, 100), "its parts are nested too deeply")
    kind = part.get_content_type()
    if kind == "message/rfc822":
        carried.extend(_subparts(part))
    elif kind == "multipart/alternative":
        yield from _best_alternative(_subparts(part), carried, depth=depth + 1)
    elif part.is_multipart():
        for inner in _subparts(part):
            yield from _bodies(inner, carried, depth=depth + 1)
    elif _is_attachment(part):
        if name := part.get_filename():
            yield ParsedDocument(text=f"Attachment: {one_line(str(name))}")
    elif kind not in _STYLING:
        yield _body(part)


def _subparts(part: EmailMessage) -> list[EmailMessage]:
    payload = part.get_payload()
    return cast("list[EmailMessage]", payload) if isinstance(payload, list) else []


def _best_alternative(
    parts: list[EmailMessage], carried: list[EmailMessage], *, depth: int
) -> Iterator[ParsedDocument]:
    """The plain text, and the others where they say something that it does not."""
    said: set[str] = set()
    plain_first = sorted(parts, key=lambda part: part.get_content_type() != "text/plain")
    for part in plain_first:
        bodies = list(_bodies(part, carried, depth=depth))
        words = {word for body in bodies for word in re.findall(r"\w+", body.text.lower())}
        if len(words - said) > 0.2 * len(words):
            yield from bodies
        said |= words


def _body(part: EmailMessage) -> ParsedDocument:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset("utf-8")
    text = decoded(data, charset)
    if text is None:
        try:
            text = decode(data, declared=True)
        except (UnsupportedFileType, CorruptFile):
            text = data.decode("latin-1")
    if part.get_content_type() != "text/html":
        return ParsedDocument(text=text)
    return read_html(text).builder.build()
