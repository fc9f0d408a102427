"""Tool calls out of the streams that engines really send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from privategpt.backends.llm.tool_calls import ToolCallReader, random_call_id
from privategpt.domain.answers import ToolCallDelta

Entry = Mapping[str, Any]


def entry(
    index: int | None = None,
    call_id: str | None = None,
    name: str | None = None,
    arguments: object = None,
) -> Entry:
    function = {"name": name, "arguments": arguments}
    fields = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in fields.items() if value is not None}


def read(*entries: Entry, single: bool = False) -> list[ToolCallDelta]:
    ids = iter(["new_0", "new_1", "new_2"])
    reader = ToolCallReader(single=single, new_id=lambda: next(ids))
    return [delta for each in entries for delta in reader.read(each)]


def calls(deltas: list[ToolCallDelta]) -> list[tuple[str | None, str | None, str]]:
    """(id, name, arguments) by index, with the protocol's rules checked on the way."""
    found: dict[int, tuple[str | None, str | None, str]] = {}
    for delta in deltas:
        if delta.index not in found:
            assert delta.index == len(found)
            assert delta.id
            assert delta.name
            found[delta.index] = (delta.id, delta.name, delta.arguments)
        else:
            assert (delta.id, delta.name) == (None, None)
            call_id, name, arguments = found[delta.index]
            found[delta.index] = (call_id, name, arguments + delta.arguments)
    return list(found.values())


ONE = [("a", "f", '{"x": 1}')]
TWO = [("a", "f", '{"x": 1}'), ("b", "g", "{}")]

STREAMS: dict[str, tuple[list[Entry], list[tuple[str, str, str]]]] = {
    "as OpenAI sends them": (
        [
            entry(0, "a", "f", ""),
            entry(0, arguments='{"x"'),
            entry(0, arguments=": 1}"),
            entry(1, "b", "g", ""),
            entry(1, arguments="{}"),
        ],
        TWO,
    ),
    "interleaved": (
        [
            entry(0, "a", "f"),
            entry(1, "b", "g"),
            entry(0, arguments='{"x": '),
            entry(1, arguments="{}"),
            entry(0, arguments="1}"),
        ],
        TWO,
    ),
    "index missing": (
        [
            entry(None, "a", "f", '{"x"'),
            entry(arguments=": 1}"),
            entry(None, "b", "g", "{}"),
        ],
        TWO,
    ),
    "index always 0": ([entry(0, "a", "f", '{"x": 1}'), entry(0, "b", "g", "{}")], TWO),
    "name in every delta": (
        [entry(0, "a", "f", '{"x"'), entry(0, None, "f", ": 1}"), entry(0, None, "f")],
        ONE,
    ),
    "name and id in every delta": (
        [entry(0, "a", "f", '{"x"'), entry(0, "a", "f", ": 1}"), entry(0, "a", "f", "")],
        ONE,
    ),
    "another id in every delta": ([entry(0, "a", "f", '{"x"'), entry(0, "z", None, ": 1}")], ONE),
    "ids missing, index always 0": (
        [entry(0, None, "f", '{"x": 1}'), entry(0, None, "f", "{}"), entry(0, None, "g", "{}")],
        [("new_0", "f", '{"x": 1}'), ("new_1", "f", "{}"), ("new_2", "g", "{}")],
    ),
    "everything missing but the name": (
        [entry(None, None, "f", '{"x": 1}'), entry(None, None, "g", "{}")],
        [("new_0", "f", '{"x": 1}'), ("new_1", "g", "{}")],
    ),
    "id first, name later": (
        [entry(0, "a", None, '{"x"'), entry(0, None, "f", ": 1}")],
        ONE,
    ),
    "arguments as an object": ([entry(0, "a", "f", {"x": 1})], ONE),
    "index from 1": ([entry(1, "a", "f", '{"x": 1}'), entry(2, "b", "g", "{}")], TWO),
}


@pytest.mark.parametrize("name", STREAMS)
def test_calls_come_out_whole_whatever_the_engines_habit(name: str) -> None:
    entries, expected = STREAMS[name]
    assert calls(read(*entries)) == expected


def test_only_the_first_call_comes_out_where_one_was_allowed() -> None:
    entries, _ = STREAMS["interleaved"]
    assert calls(read(*entries, single=True)) == ONE


def test_a_call_without_a_name_never_goes_out() -> None:
    reader = ToolCallReader()
    assert reader.read(entry(0, "a", None, "{}")) == []
    assert not reader.any_seen


def test_brackets_without_end_belong_to_their_call() -> None:
    opened = read(entry(name="find", arguments="[" * 5000), entry(name="find", arguments="]"))
    assert calls(opened) == [("new_0", "find", "[" * 5000 + "]")]


def test_what_was_written_counts_for_every_call() -> None:
    reader = ToolCallReader()
    reader.read(entry(0, "a", "f", "{}"))
    reader.read(entry(1, "b", "g", "[]"))
    assert reader.written == "f {} g []"


def test_made_up_ids_are_told_apart() -> None:
    assert random_call_id() != random_call_id()
    assert random_call_id().startswith("call_")
