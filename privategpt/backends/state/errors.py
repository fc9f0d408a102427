"""Database failures in the domain's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from privategpt.domain.errors import Conflict, InvalidRequest, NotFound, Unavailable

RETRY_AFTER_S = 5

SQLITE_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_BUSY: "another process holds it",
    sqlite3.SQLITE_LOCKED: "another process holds it",
    sqlite3.SQLITE_READONLY: "it may not be written",
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
    sqlite3.SQLITE_CORRUPT: "its file is damaged",
    sqlite3.SQLITE_NOTADB: "its file is not a database",
    sqlite3.SQLITE_IOERR: "its file cannot be read or written",
}
POSTGRES_REASONS = {
    "28000": "the login is refused",
    "28P01": "the login is refused",
    "3D000": "there is no such database",
    "53100": "the disk is full",
    "53300": "it has too many connections",
    "57P03": "it is starting or stopping",
}


@contextmanager
def translated() -> Generator[None]:
    """Turn what the database raises inside into errors of the domain."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict("The state store already holds something of that id") from error
    except (DataError, UnicodeEncodeError) as error:
        raise InvalidRequest("The text has characters that cannot be stored") from error
    except (DBAPIError, PoolTimeout, OSError) as error:
        raise unavailable(error) from error


def unavailable(error: Exception) -> Unavailable:
    """What the caller is told of a database that does not serve: why, where that is known."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return Unavailable(
        f"The state store does not serve: {_reason(cause)}", retry_after_s=RETRY_AFTER_S
    )


def _reason(cause: BaseException | None) -> str:
    if isinstance(cause, PoolTimeout | TimeoutError):
        return "it did not answer in time"
    if isinstance(cause, OSError):
        return "it cannot be reached"
    if isinstance(cause, sqlite3.Error):
        # The low byte is the primary code; the rest only says where it happened.
        code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return SQLITE_REASONS.get(code, "it failed")
    return POSTGRES_REASONS.get(getattr(cause, "sqlstate", None) or "", "it failed")


def not_found(item_id: str) -> NotFound:
    """The same for what never was, is gone, is not ready, or belongs to another tenant."""
    return NotFound(f"There is nothing with the id {item_id!r}")


def can_be_an_id(text: str) -> bool:
    """False for what no row can hold, which the databases would refuse instead of not finding."""
    if text.isascii():
        return "\0" not in text
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)
