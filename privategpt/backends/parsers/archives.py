"""Archives, and files that are packed alone: what is in them, in order, opened one at a time.

Nothing is ever written to a disk, so a member's name is only a name; links and devices are none.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import IO, cast

from privategpt.backends.parsers.bounds import MAX_INNER_FILES, require
from privategpt.backends.parsers.charset_guess import guess
from privategpt.backends.parsers.cleaning import one_line
from privategpt.backends.parsers.kinds import ODD_HEADERS, Kind, is_tar
from privategpt.domain.errors import CorruptFile, EncryptedFile, FileExceedsBounds

_ENCRYPTED_FLAG = 1
_UTF8_FLAG = 0x800
_WESTERN = frozenset(("cp1252", "cp1250", "cp1254", "cp1257"))
_UNICODE_PATH = 0x7075
_PATH_HEADER = 5
_LITTER = frozenset((".ds_store", "thumbs.db", "desktop.ini"))
_MAC_FORKS = "__macosx/"
_UNPACKERS: dict[Kind, Callable[[io.BytesIO], IO[bytes]]] = {
    Kind.GZIP: lambda source: cast("IO[bytes]", gzip.GzipFile(fileobj=source)),
    Kind.BZIP2: bz2.BZ2File,
    Kind.XZ: lzma.LZMAFile,
}
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class Carried:
    """A file inside another. `read` gives its bytes if they are at most as many as it is told,
    and raises `UnreadableFile`: `TooLarge` where they are more.
    """

    path: str
    read: Callable[[int], bytes]
    media_type: str | None = None


class TooLarge(FileExceedsBounds):
    """A file inside another has more bytes than may be read of it."""


def bounded(data: bytes, limit: int) -> bytes:
    """`data` if it is within `limit`."""
    if len(data) > limit:
        raise TooLarge(f"The file is larger than the {limit:,} bytes that may be read of it")
    return data


def safe_path(name: str) -> str:
    """A member's name as a path to show: no root, no `..`, one line."""
    parts = (one_line(part) for part in name.replace("\\", "/").split("/"))
    return "/".join(part for part in parts if part not in ("", ".", ".."))


def zip_files(data: bytes, password: str | None) -> Iterator[Carried]:
    """The files in a zip."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (*_DAMAGE, *ODD_HEADERS) as error:
        raise CorruptFile("The zip is damaged or cut off") from error
    members = archive.infolist()
    require(len(members) <= MAX_INNER_FILES, f"it has over {MAX_INNER_FILES:,} members")
    packed = sum(member.compress_size for member in members)
    require(packed <= len(data), "its members overlap: they claim more bytes than it has")
    names = _member_names(members)
    for member in members:
        # Not `is_dir`, which fails over a member without a name.
        if not member.filename.endswith("/") and not _is_litter(member.filename):
            read = partial(_read_member, archive, member, password)
            yield Carried(path=names.get(member.filename, member.filename), read=read)


def _is_litter(name: str) -> bool:
    folded = name.lower()
    return folded.startswith(_MAC_FORKS) or PurePath(folded).name in _LITTER


def _member_names(members: Sequence[zipfile.ZipInfo]) -> dict[str, str]:
    """Each name that is not ASCII, as zipfile reads it and as it was meant.

    Where none is stated, zipfile takes the character set of DOS. Archivers write UTF-8 without
    saying so, or in the set of their system, which all names together tell; but what reads as
    Latin letters by that of DOS is in it, as Western Windows writes.
    """
    stated = {m.filename: _stated_name(m) for m in members if not m.filename.isascii()}
    unknown = [name for name, meant in stated.items() if meant is None]
    codec = guess(b"\n".join(name.encode("cp437") for name in unknown)) if unknown else None
    if codec in _WESTERN and all(map(_is_latin, unknown)):
        codec = None
    return {
        name: name.encode("cp437").decode(codec) if meant is None and codec else meant or name
        for name, meant in stated.items()
    }


def _is_latin(name: str) -> bool:
    return all(
        unicodedata.name(letter, "").startswith("LATIN") for letter in name if not letter.isascii()
    )


def _stated_name(member: zipfile.ZipInfo) -> str | None:
    """Where the member says that its name is UTF-8, or it can be nothing else."""
    if member.flag_bits & _UTF8_FLAG:
        return member.filename
    try:
        return _unicode_path(member.extra) or member.filename.encode("cp437").decode()
    except UnicodeEncodeError:
        return member.filename
    except UnicodeDecodeError:
        return None


def _unicode_path(extra: bytes) -> str:
    """Info-ZIP's field for a name in UTF-8, "" where there is none: id, size, version, checksum."""
    start = 0
    while start + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, start)
        if kind == _UNICODE_PATH and size > _PATH_HEADER:
            return extra[start + 4 + _PATH_HEADER : start + 4 + size].decode()
        start += 4 + size
    return ""


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, password: str | None, limit: int
) -> bytes:
    encrypted = member.flag_bits & _ENCRYPTED_FLAG
    if encrypted and not password:
        raise EncryptedFile("The file is encrypted: send its password with the upload")
    if member.file_size > limit:
        raise TooLarge(f"The file is larger than the {limit:,} bytes that may be read of it")
    try:
        # A header may understate what follows; zipfile stops at the stated size.
        with archive.open(member, pwd=password.encode() if password else None) as opened:
            data = opened.read()
        if len(data) < member.file_size:
            raise EOFError
    except NotImplementedError as error:
        if encrypted:
            raise EncryptedFile("The file is encrypted by a method that is not read") from error
        raise CorruptFile("The file is packed by a method that is not read") from error
    except RuntimeError as error:
        raise EncryptedFile("The file is encrypted, and the password does not open it") from error
    except (*_DAMAGE, ValueError, OverflowError) as error:
        raise CorruptFile("The file is damaged, or its size is not what the zip says") from error
    return data


def tar_files(data: bytes) -> Iterator[Carried]:
    """The files in a tar."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                # A sparse file is holes that no byte of the archive pays for.
                if member.isreg() and not member.issparse() and not _is_litter(member.name):
                    name = _tar_name(member.name)
                    yield Carried(path=name, read=partial(_read_tar, archive, member))
    except (*_DAMAGE, *ODD_HEADERS) as error:
        raise CorruptFile("The tar is damaged or cut off") from error


def _tar_name(name: str) -> str:
    """Where bytes of it are no UTF-8, which tarfile keeps as halves of characters, it is Western:
    Windows' set, else Latin-1.
    """
    try:
        return name.encode().decode()
    except UnicodeEncodeError:
        written = name.encode("utf-8", "surrogateescape")
    try:
        return written.decode("cp1252")
    except UnicodeDecodeError:
        return written.decode("latin-1")


def _read_tar(archive: tarfile.TarFile, member: tarfile.TarInfo, limit: int) -> bytes:
    if member.size > limit:
        raise TooLarge(f"The file is larger than the {limit:,} bytes that may be read of it")
    try:
        opened = archive.extractfile(member)
        return opened.read() if opened else b""
    except _DAMAGE as error:
        raise CorruptFile("The file is cut off") from error


def packed_files(data: bytes, kind: Kind, name: str, limit: int) -> Iterator[Carried]:
    """The one file in a .gz, .bz2 or .xz; the files of the tar, where it is one."""
    content = _unpacked(data, kind, limit)
    if is_tar(content):
        return tar_files(content)
    return iter((Carried(path=PurePath(name).stem or name, read=partial(bounded, content)),))


def _unpacked(data: bytes, kind: Kind, limit: int) -> bytes:
    try:
        with _UNPACKERS[kind](io.BytesIO(data)) as opened:
            return bounded(opened.read(limit + 1), limit)
    except (*_DAMAGE, ValueError) as error:
        raise CorruptFile("The packed file is damaged or cut off") from error
