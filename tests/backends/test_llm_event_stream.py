"""Events come out whole and the same, however their bytes were cut."""

from __future__ import annotations

from itertools import pairwise

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.llm import event_stream
from privategpt.backends.llm.event_stream import ChunkStream, EventReader
from privategpt.domain.errors import EngineFailed

_LINES = st.lists(st.text("ab:é ", max_size=5), min_size=1, max_size=3)
_ENDS = st.sampled_from(("\n", "\r\n", "\r"))


def _events(reader: EventReader, pieces: list[bytes]) -> list[bytes]:
    return [data for piece in pieces for data in reader.feed(piece)]


@given(st.lists(_LINES, max_size=4), _ENDS, st.data())
def test_events_do_not_depend_on_line_ends_or_on_where_the_bytes_were_cut(
    events: list[list[str]], end: str, data: st.DataObject
) -> None:
    wire = "".join(
        "".join(f"data:{line}{end}" for line in lines) + f": a comment{end}id: 1{end}{end}"
        for lines in events
    ).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(wire)))) | {0, len(wire)})
    pieces = [wire[start:stop] for start, stop in pairwise(cuts)]
    assert _events(EventReader(), pieces) == ["\n".join(lines).encode() for lines in events]


def test_an_event_without_its_blank_line_is_none() -> None:
    assert _events(EventReader(), [b"data: 1\n\ndata: 2\n"]) == [b" 1"]


def test_what_carries_no_data_is_no_event() -> None:
    assert _events(EventReader(), [b": ping\n\nevent: x\n\n\n\ndata: 1\n\n"]) == [b" 1"]


def test_an_event_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 100)
    reader = EventReader()
    with pytest.raises(EngineFailed):
        _events(reader, [b"data: " + b"x" * 60] * 2)


def _stream(body: bytes) -> ChunkStream:
    request = httpx2.Request("POST", "http://engine/v1/chat/completions")
    return ChunkStream(httpx2.Response(200, content=body, request=request))


async def test_what_follows_the_end_marker_is_not_read() -> None:
    stream = _stream(b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n")
    assert await stream.arrived() == [b" 1"]
    assert await stream.arrived() == []


def test_half_of_a_letter_in_two_is_read_as_it_is() -> None:
    assert _stream(b"").parse(rb'{"a": "\ud83d"}') == {"a": "\ud83d"}


@pytest.mark.parametrize("error", ['{"message": "full", "code": "507"}', '"full"', '{"code": 1}'])
def test_an_error_event_is_raised_as_the_client_would(error: str) -> None:
    with pytest.raises(openai.APIError) as caught:
        _stream(b"").parse(f'{{"error": {error}}}'.encode())
    assert caught.value.message == ("full" if "message" in error else "an error event")
