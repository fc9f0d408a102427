"""From an upload to the documents of all files in it, within bounds that hold for all together.

A file inside another that cannot be read is left out and told of; only where nothing can be read
is the upload refused, with the first reason. What breaks the bounds of the whole refuses it too.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import TypeAlias, TypeVar

from privategpt.backends.parsers.archives import (
    Carried,
    TooLarge,
    packed_files,
    safe_path,
    tar_files,
    zip_files,
)
from privategpt.backends.parsers.bounds import (
    MAX_INNER_BYTES,
    MAX_INNER_DEPTH,
    MAX_INNER_FILES,
    MAX_PATH_CHARS,
    MAX_RATIO,
    MAX_UNPACKED_BYTES,
    RATIO_FLOOR_BYTES,
    require,
)
from privategpt.backends.parsers.compound import message_files
from privategpt.backends.parsers.kinds import Kind, detect
from privategpt.backends.parsers.mail import mail_files, mbox_files
from privategpt.backends.parsers.packages import embedded_files
from privategpt.backends.parsers.pdf import pdf_files
from privategpt.domain.documents import InnerFile, ParsedDocument, ParsedFile, UnreadFile
from privategpt.domain.errors import (
    CorruptFile,
    EmptyFile,
    FileExceedsBounds,
    NoTextFound,
    UnreadableFile,
    UnsupportedFileType,
)

_PACKED = frozenset((Kind.GZIP, Kind.BZIP2, Kind.XZ))
_CONTAINERS = frozenset((Kind.ZIP, Kind.TAR, Kind.MBOX, *_PACKED))
_LOCKABLE = {Kind.ZIP: zip_files, Kind.PDF: pdf_files}
_OPEN = {
    Kind.TAR: tar_files,
    Kind.MBOX: mbox_files,
    Kind.EML: mail_files,
    Kind.MSG: message_files,
    **dict.fromkeys((Kind.DOCX, Kind.XLSX, Kind.PPTX), embedded_files),
}
_BREAKS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError)
"""What damage that nobody has thought of leads a reader to: the files beside it must not suffer."""

_MAX_UNREAD = 100
_INVISIBLE = b"\0 \t\r\n\x0c\x0b\xef\xbb\xbf"
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


T = TypeVar("T")
Refusal: TypeAlias = UnreadableFile | UnsupportedFileType


class _WholeExceedsBounds(FileExceedsBounds):
    """Not one file inside the upload but all of them together are too much."""


class Walk:
    """Reads one upload. `read` turns the bytes of a file, containers aside, into documents."""

    def __init__(
        self,
        *,
        size_bytes: int,
        password: str | None,
        read: Callable[[bytes, Kind], ParsedFile],
    ) -> None:
        self._allowed_bytes = min(
            MAX_UNPACKED_BYTES, max(RATIO_FLOOR_BYTES, MAX_RATIO * size_bytes)
        )
        self._password = password
        self._read = read
        self._bytes = 0
        self._files = 0
        self._failures: list[tuple[str, Refusal]] = []
        self._named: Counter[str] = Counter()

    def upload(self, data: bytes, name: str, media_type: str | None) -> ParsedFile:
        """The upload's documents. Raises `UnreadableFile` and `UnsupportedFileType`."""
        parsed = self._file(data, name, media_type, inside=())
        told = self._failures[:_MAX_UNREAD]
        unread = tuple(UnreadFile(path=path, reason=error.message) for path, error in told)
        return replace(parsed, unread=unread)

    def _file(
        self, data: bytes, name: str, media_type: str | None, *, inside: tuple[str, ...]
    ) -> ParsedFile:
        if not data.strip(_INVISIBLE):
            raise EmptyFile("The file is empty")
        kind = detect(data, name, media_type)
        own, refusal = self._own(data, kind)
        earlier = len(self._failures)
        inner = tuple(self._inner_documents(data, kind, name, inside))
        if not own.documents and not inner:
            raise refusal or _nothing_readable(kind, self._failures[earlier:])
        return replace(own, documents=own.documents + inner)

    def _own(self, data: bytes, kind: Kind) -> tuple[ParsedFile, UnreadableFile | None]:
        """What the file says itself; a file that is all attachments may say nothing."""
        nothing = ParsedFile(media_type=kind.value, documents=())
        if kind in _CONTAINERS:
            return nothing, None
        try:
            parsed = self._read(data, kind)
        except (EmptyFile, NoTextFound) as error:
            return nothing, error
        except RecursionError as error:
            raise FileExceedsBounds("The file's elements are nested too deeply") from error
        except _BREAKS as error:
            raise CorruptFile("The file is damaged, or made to break its reader") from error
        if not any(_says_something(one.text) for one in parsed.documents):
            parsed = replace(parsed, documents=())
        return parsed, None

    def _inner_documents(
        self, data: bytes, kind: Kind, name: str, inside: tuple[str, ...]
    ) -> Iterator[ParsedDocument]:
        for carried in self._files_in(data, kind, name):
            self._files += 1
            if self._files > MAX_INNER_FILES:
                raise _WholeExceedsBounds(f"The upload holds over {MAX_INNER_FILES:,} files")
            stated = safe_path(carried.path)[-MAX_PATH_CHARS:].lstrip("/")
            path = self._own_path(inside, stated or f"file-{self._files}")
            try:
                yield from self._inner_file(carried, path)
            except _WholeExceedsBounds:
                raise
            except (UnreadableFile, UnsupportedFileType) as error:
                self._note("/".join(path), error)

    def _own_path(self, inside: tuple[str, ...], name: str) -> tuple[str, ...]:
        """A path that no other file of the upload has: mails carry many an `image.png`."""
        wanted = path = (*inside, name)
        while (joined := "/".join(path)) in self._named:
            number = self._named["/".join(wanted)] = self._named["/".join(wanted)] + 1
            path = (*inside, _numbered(name, number))
        self._named[joined] += 1
        return path

    def _files_in(self, data: bytes, kind: Kind, name: str) -> Iterator[Carried]:
        if kind in _PACKED:
            return self._within_the_whole(partial(packed_files, data, kind, name))
        if kind in _LOCKABLE:
            return _LOCKABLE[kind](data, self._password)
        return _OPEN[kind](data) if kind in _OPEN else iter(())

    def _within_the_whole(self, read: Callable[[int], T]) -> T:
        """What `read` gives where it is told how many bytes the next file may have."""
        room = min(MAX_INNER_BYTES, self._allowed_bytes - self._bytes)
        try:
            return read(max(0, room))
        except TooLarge as error:
            if room == MAX_INNER_BYTES:
                raise
            raise _WholeExceedsBounds(
                f"The upload unpacks to over a gigabyte, or {MAX_RATIO} times its own size"
            ) from error

    def _inner_file(self, carried: Carried, path: tuple[str, ...]) -> Iterator[ParsedDocument]:
        require(len(path) <= MAX_INNER_DEPTH, "it lies too deep inside the upload")
        data = self._within_the_whole(carried.read)
        self._bytes += len(data)
        parsed = self._file(data, path[-1], carried.media_type, inside=path)
        source = InnerFile(
            path="/".join(path),
            media_type=parsed.media_type,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )
        for document in parsed.documents:
            if document.inner is not None:
                yield document
                continue
            stated = {**parsed.metadata, **document.metadata}
            yield replace(document, inner=source, metadata=stated)

    def _note(self, path: str, error: Refusal) -> None:
        """Remember why; a container with nothing readable in it is told of by what is in it."""
        if not (self._failures and self._failures[-1][0].startswith(f"{path}/")):
            self._failures.append((path, error))


def _says_something(text: str) -> bool:
    """Whether there is a letter, a digit or a picture; `{}`, `,,,` and zero-width spaces have no
    content that could be found or cited.
    """
    if _LETTER_OR_DIGIT.search(text):
        return True
    return any(unicodedata.category(character) == "So" for character in set(text))


def _numbered(name: str, number: int) -> str:
    """`a/plan (2).pdf` for the second `a/plan.pdf`."""
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem} ({number}){path.suffix}"))


def _nothing_readable(kind: Kind, failures: list[tuple[str, Refusal]]) -> Refusal:
    """Why a file has no documents, by the first of the files in it that could not be read."""
    if failures:
        path, error = failures[0]
        return type(error)(f"Nothing in the upload can be read: {path!r}: {error.message}")
    if kind in _CONTAINERS:
        return EmptyFile("There are no files in it: the container is empty")
    return EmptyFile("The file has no text in it")
