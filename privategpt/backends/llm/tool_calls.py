"""Reads tool calls out of a stream, whatever liberties the engine takes with OpenAI's protocol.

Seen in the wild: `index` missing, or 0 for every one of several parallel calls; name and id
repeated in every delta; ids missing; arguments as an object instead of JSON text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from privategpt.domain.answers import ToolCallDelta


def random_call_id() -> str:
    """An id for a call to which the engine gave none."""
    return f"call_{secrets.token_hex(12)}"


@dataclass(slots=True)
class _OpenCall:
    """A call being written; `announced` once its first delta has gone out."""

    id: str | None
    wire_index: int | None
    name: str = ""
    arguments: str = ""
    announced: bool = False

    @property
    def complete(self) -> bool:
        """Whether the arguments are whole JSON already, so that more of them cannot follow."""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):  # a model may open brackets without end
            return False
        return True


class ToolCallReader:
    """Turns the entries of `delta.tool_calls` into `ToolCallDelta`s with a sound index each."""

    def __init__(self, *, single: bool = False, new_id: Callable[[], str] = random_call_id) -> None:
        self._single = single
        self._new_id = new_id
        self._calls: list[_OpenCall] = []

    @property
    def any_seen(self) -> bool:
        """Whether the model has called a tool."""
        return any(call.announced for call in self._calls)

    @property
    def written(self) -> str:
        """All that the model wrote for its calls; for counting tokens."""
        return " ".join(f"{call.name} {call.arguments}" for call in self._calls)

    def read(self, entry: Mapping[str, Any]) -> list[ToolCallDelta]:
        """The deltas that one entry stands for: none while the call's name is not known."""
        function = cast("Mapping[str, Any]", entry.get("function") or {})
        name = function.get("name") or ""
        new_arguments = _as_text(function.get("arguments"))
        index = self._which(entry, name, has_arguments=bool(new_arguments))
        call = self._calls[index]
        call.id = call.id or entry.get("id") or None
        call.name = call.name or name
        call.arguments += new_arguments
        if self._single and index > 0:
            return []
        if call.announced:
            return [ToolCallDelta(index=index, arguments=new_arguments)] if new_arguments else []
        if not call.name:
            return []
        call.announced = True
        call.id = call.id or self._new_id()
        return [ToolCallDelta(index=index, arguments=call.arguments, id=call.id, name=call.name)]

    def _which(self, entry: Mapping[str, Any], name: str, *, has_arguments: bool) -> int:
        """The position of the call that `entry` belongs to, which may begin with it."""
        call_id, wire_index = entry.get("id") or None, entry.get("index")
        for position, call in enumerate(self._calls):
            if call_id is not None and call.id == call_id:
                return position
        candidates = [
            position
            for position, call in enumerate(self._calls)
            if wire_index is None or call.wire_index == wire_index
        ]
        if candidates:
            call = self._calls[candidates[-1]]
            if not _starts_another(call, call_id, name, has_arguments=has_arguments):
                return candidates[-1]
        self._calls.append(_OpenCall(id=None, wire_index=wire_index))
        return len(self._calls) - 1


def _starts_another(
    call: _OpenCall, call_id: str | None, name: str, *, has_arguments: bool
) -> bool:
    """Whether a delta that looks like a continuation of `call` is in truth the next call."""
    if not name:
        return False
    if call_id is not None and call.id is not None:
        return True
    return bool(call.name) and (call.name != name or (has_arguments and call.complete))


def _as_text(arguments: object) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
