"""Database failures in the domain's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from privategpt.domain.errors import Conflict, InvalidRequest, NotFound, Unavailable

RETRY_AFTER_S = 5
UNSTORABLE = "The text has characters that cannot be stored"
# The class of SQLSTATEs that blame the values.
DATA_EXCEPTIONS = "22"

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
    except UnicodeEncodeError as error:
        raise InvalidRequest(UNSTORABLE) from error
    except DBAPIError as error:
        if _is_about_the_values(error):
            raise InvalidRequest(UNSTORABLE) from error
        raise _unavailable(error) from error
    except (PoolTimeout, OSError, sqlite3.Error) as error:
        raise _unavailable(error) from error


def _is_about_the_values(error: DBAPIError) -> bool:
    """PostgreSQL refuses U+0000 and lone surrogates, the latter already in its driver."""
    refused_by_driver = isinstance(error.orig, BaseException) and isinstance(
        error.orig.__cause__, ValueError
    )
    return refused_by_driver or _sqlstate(error.orig).startswith(DATA_EXCEPTIONS)


def _sqlstate(cause: BaseException | None) -> str:
    return getattr(cause, "sqlstate", None) or ""


def _unavailable(error: Exception) -> Unavailable:
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
    return POSTGRES_REASONS.get(_sqlstate(cause), "it failed")


def not_found() -> NotFound:
    """The same for what never was, is gone, is not ready, or belongs to another tenant."""
    return NotFound("There is nothing with that id")


def can_be_an_id(text: str) -> bool:
    """False for what no row can hold, which the databases would refuse instead of not finding."""
    if text.isascii():
        return "\0" not in text
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)
