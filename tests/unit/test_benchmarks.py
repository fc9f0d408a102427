"""The benchmarks measure what they say: turns, ratios, verdicts, texts, and the small client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pypdf
import pytest

from benchmarks.client import RequestFailed, Streamed, connection
from benchmarks.prose import Prose
from benchmarks.rows import ONCE, Effort, Row, Rule, Target, in_turns
from benchmarks.table import cells

REPOSITORY = Path(__file__).parents[2]


async def test_the_ways_take_turns_who_begins_changes_and_the_first_turn_is_not_counted() -> None:
    order: list[str] = []

    async def ours(turn: int) -> float:
        order.append(f"ours {turn}")
        return 10.0 + turn

    async def bare(turn: int) -> float:
        order.append(f"bare {turn}")
        return 1.0 + turn

    taken = await in_turns(
        {"ours": ours, "bare": bare}, Effort(seconds=3600, at_least=2, at_most=2)
    )

    assert order == ["bare 0", "ours 0", "ours 1", "bare 1", "bare 2", "ours 2"]
    assert taken == {"ours": [11.0, 12.0], "bare": [2.0, 3.0]}


@pytest.mark.parametrize(
    ("turns", "elapsed_s", "another"),
    [
        (0, 999, True),  # the uncounted one
        (1, 999, True),  # the first that counts
        (2, 39, True),  # there should be three
        (2, 40, False),  # the machine is too busy for three
        (4, 9, True),  # there is time
        (4, 10, False),
        (8, 0, False),  # seven are enough
    ],
)
def test_turns_go_on_for_the_time_within_the_bounds(
    turns: int, elapsed_s: float, *, another: bool
) -> None:
    effort = Effort(seconds=10, at_least=3, at_most=7)

    assert effort.wants_another(turns, elapsed_s=elapsed_s) is another


async def test_once_is_one_counted_turn() -> None:
    async def way(_: int) -> float:
        return 1.0

    assert await in_turns({"ours": way}, ONCE) == {"ours": [1.0]}


def test_a_row_compares_within_the_turn_so_that_a_slow_moment_does_not_count() -> None:
    row = Row("search", "ms", ours=[3, 300, 4], bare=[1, 298, 2])

    assert row.above == 2
    assert row.ratio == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (Target(Rule.AT_MOST, 12), True),
        (Target(Rule.AT_MOST, 11.9), False),
        (Target(Rule.AT_MOST_ABOVE, 2), True),
        (Target(Rule.AT_MOST_ABOVE, 1.9), False),
        (Target(Rule.RATIO_AT_LEAST, 1.2), True),
        (Target(Rule.RATIO_AT_LEAST, 1.3), False),
    ],
)
def test_a_target_is_met_or_missed(target: Target, *, met: bool) -> None:
    assert Row("x", "ms", ours=[12, 12], bare=[10, 10], target=target).met is met


def test_a_line_of_the_table_says_how_often_how_much_and_whether_it_is_enough() -> None:
    row = Row("search", "ms", [12, 14, 13], [10, 12, 11], Target(Rule.AT_MOST_ABOVE, 1))

    assert cells(row) == (
        "search",
        "ms",
        "3",
        "13.0 (13.8)",
        "11.0 (11.8)",
        "+2.00",
        "1.18",
        "≤ bare + 1",
        "MISSED",
    )


def test_a_row_without_a_bare_engine_leaves_the_comparison_empty() -> None:
    assert cells(Row("ready", "s", [4.2])) == ("ready", "s", "1", "4.20", "", "", "", "", "")


def test_texts_are_the_same_in_every_run_and_as_long_as_asked() -> None:
    first, second = Prose(), Prose()

    text = first.document(10_000)

    assert text == second.document(10_000)
    assert 10_000 <= len(text.encode()) < 12_000
    assert len(first.text(150).split()) == 150
    assert first.vector(8) == second.vector(8)


def test_a_vector_has_unit_length() -> None:
    assert sum(value * value for value in Prose().vector(384)) == pytest.approx(1.0, abs=1e-5)


def test_the_pdf_has_its_pages_and_its_text(tmp_path: Path) -> None:
    path = tmp_path / "made.pdf"
    path.write_bytes(Prose().pdf(3, 1_000))

    pages = pypdf.PdfReader(path).pages

    assert len(pages) == 3
    assert all(len(page.extract_text()) >= 900 for page in pages)


@asynccontextmanager
async def answering(reply: bytes) -> AsyncGenerator[str]:
    """A server that gives every request the same bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield "http://{}:{}".format(*server.sockets[0].getsockname()[:2])


async def test_the_client_reads_a_body_of_declared_length() -> None:
    async with (
        answering(b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}') as url,
        connection(url) as client,
    ):
        assert await client.post("/", {}) == {"a": 1}


async def test_the_client_reads_a_stream_and_tells_the_first_byte_from_the_first_text() -> None:
    events: list[dict[str, Any]] = [
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"content": "Hello"}}]},
        {"choices": [], "usage": {"prompt_tokens": 12}},
    ]
    pieces = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    pieces.append(b"data: [DONE]\n\n")
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + b"0\r\n\r\n"
    async with answering(reply) as url, connection(url) as client:
        heard = await client.stream("/", {})

    assert [chunk for _, chunk in heard.chunks] == events
    assert heard.first_byte_s == heard.chunks[0][0]
    assert heard.first_text_s == heard.chunks[1][0]
    assert heard.prompt_tokens == 12


async def test_an_answer_that_is_an_error_is_never_measured() -> None:
    reply = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
    async with answering(reply) as url, connection(url) as client:
        with pytest.raises(RequestFailed, match="503 Service Unavailable: b'busy'"):
            await client.get("/")


def test_a_stream_without_text_or_usage_is_never_measured() -> None:
    silent = Streamed(first_byte_s=0.1, chunks=((0.1, {"choices": []}),))

    with pytest.raises(RequestFailed, match="no text"):
        _ = silent.first_text_s
    with pytest.raises(RequestFailed, match="no usage"):
        _ = silent.prompt_tokens


@pytest.mark.timeout(600)
def test_a_quick_run_measures_everything_against_real_servers_and_prints_one_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    for part in ("first byte", "/v1/chunks", "ingest", "delete", "/v1/embeddings", "ready"):
        assert part in done.stdout
