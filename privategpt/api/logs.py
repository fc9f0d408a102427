"""Log lines: one request's share its id, none holds a key, and none can be forged.

On the console a line reads `time LEVEL logger: message name=value… [request id]`; as JSON it is
one object. Fields come from `extra={"fields": {…}}`.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, TextIO

from privategpt.api.request_ids import current_request_id

CHATTY = (
    "alembic",
    "ddgs",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "primp",
    "sentence_transformers",
)
"""Libraries whose lower levels tell every request they make, with its address and words."""

MIN_SECRET_CHARACTERS = 6
HIDDEN = "***"

_KEYS = re.compile(
    r"(pgpt_[0-9a-f]{12}_)[0-9a-f]{64}"
    r"|(bearer\s+)[^\s\"',]+"
    r"|((?:api[-_]?key|access_token|authorization)[\"']?\s*[=:]\s*[\"']?)(?!bearer)[^\s\"'&,]+",
    re.IGNORECASE,
)

# C0, DEL, C1, separators of lines and paragraphs, controls of direction, lone surrogates.
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class LineFormatter(logging.Formatter):
    """What both formats share. `secrets` are never written, whoever logs them."""

    def __init__(self, *, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(
            sorted({s for s in secrets if len(s) >= MIN_SECRET_CHARACTERS}, key=len, reverse=True)
        )

    def message_of(self, record: logging.LogRecord) -> str:
        """The message with nothing in it that must not be seen."""
        return self.hidden(record.getMessage())

    def fields_of(self, record: logging.LogRecord) -> Mapping[str, Any]:
        """The record's own fields."""
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        return {
            name: self.hidden(value) if isinstance(value, str) else value
            for name, value in fields.items()
        }

    def trace_of(self, record: logging.LogRecord) -> str:
        """The traceback, or nothing."""
        return self.hidden(self.formatException(record.exc_info)) if record.exc_info else ""

    def hidden(self, text: str) -> str:
        """`text` without keys and secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _KEYS.sub(lambda match: match.group(match.lastindex or 0) + HIDDEN, text)


class ConsoleFormatter(LineFormatter):
    """A line for a person; a traceback follows on lines of its own, set in."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_second(int(record.created))} {record.levelname:<7} {record.name}: "
        line += escaped(self.message_of(record))
        for name, value in self.fields_of(record).items():
            line += f" {name}={escaped(str(value))}"
        if request_id := current_request_id.get():
            line += f" [{request_id}]"
        trace = [f"  | {escaped(part)}" for part in self.trace_of(record).split("\n") if part]
        return "\n".join([line, *trace])


@lru_cache(maxsize=1)
def _second(created: int) -> str:
    return f"{datetime.fromtimestamp(created, tz=UTC):%Y-%m-%d %H:%M:%S}"


class JsonFormatter(LineFormatter):
    """An object on one line; JSON in ASCII escapes whatever could break it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message_of(record),
        }
        if request_id := current_request_id.get():
            line["request_id"] = request_id
        line |= self.fields_of(record)
        if trace := self.trace_of(record):
            line["exception"] = trace
        return json.dumps(line, default=str)


def escaped(text: str) -> str:
    """`text` on one line, its control characters as Python writes them."""
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)


def configure_logging(
    *,
    level: str,
    form: Literal["console", "json"],
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Send the whole process's log to `stream` (stderr), in place of what was set before."""
    formatter = JsonFormatter if form == "json" else ConsoleFormatter
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(formatter(secrets=secrets))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # What no line shows need not be found out for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
