"""The table of bad input: each row takes a running server and fails where it falls short."""

from __future__ import annotations

import asyncio
import io
import json
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import httpx
import pypdf

from tests.e2e.processes import family
from tests.e2e.stacks import Stack
from tests.fakes.llm_server import CHAT, answer, text_chunk
from tests.fakes.llm_server import sse as scripted_stream
from tests.fakes.parser_files import (
    docx,
    lines,
    pdf,
    pdf_of_pages,
    pdf_stream,
    relations,
    xlsx,
    zipped,
)

Row: TypeAlias = Callable[[Stack], Awaitable[None]]

MEMORY_BYTES = 300_000_000
PROCESSOR_S = 10.0
LEAVING_S = 2.0
HI = [{"role": "user", "content": "Hi"}]
CHAT_PATH = "/v1/chat/completions"


def refused(response: httpx.Response, *statuses: int) -> None:
    """The request was refused as the client's fault."""
    expected = statuses or range(400, 500)
    assert response.status_code in expected, f"{response.status_code} {response.text[:200]}"


async def numbers_and_text_that_json_cannot_carry(stack: Stack) -> None:
    async with stack.client() as client:
        for value in (b'"\\ud800"', b"NaN", b"Infinity", b"-Infinity", b"1e999"):
            for body in (b'{"text":"x","limit":%s}', b'{"text":%s}', b'{"messages":%s}'):
                path = CHAT_PATH if b"messages" in body else "/v1/chunks"
                refused(await _post_json(client, path, body % value))


async def five_megabytes_of_the_wrong_type(stack: Stack) -> None:
    async with stack.client() as client:
        body = json.dumps({"messages": "x" * 5_000_000}).encode()
        response = await _post_json(client, CHAT_PATH, body)
        refused(response, 422)
        assert len(response.content) < 10_000, "the input is echoed"


async def a_title_with_line_ends(stack: Stack) -> None:
    async with stack.client() as client:
        text = {"file_name": "a\r\nX-Injected: 1.txt", "text": "A title with line ends."}
        ingested = await client.post("/v1/ingest/text", json=text)
        assert ingested.status_code == 200, ingested.text
        read = await client.get(f"/v1/documents/{ingested.json()['data'][0]['doc_id']}")
        assert read.status_code == 200
        assert "x-injected" not in read.headers


async def bodies_that_are_too_large(stack: Stack) -> None:
    """Refused by their declared length, before they are there; a gigabyte never is."""
    json_head = {"Content-Type": "application/json"}
    form_head = {"Content-Type": "multipart/form-data; boundary=b"}
    for path, headers, declared in (
        (CHAT_PATH, json_head, 60_000_000),
        ("/v1/ingest", form_head, 1_000_000_000),
    ):
        head = _head(path, {**headers, "Content-Length": str(declared)})
        assert await _status(stack, head + b'{"messages":') == 413


async def a_body_that_never_ends(stack: Stack) -> None:
    head = _head(CHAT_PATH, {"Content-Type": "application/json", "Content-Length": "10000"})
    assert await _status(stack, head + b'{"messages":', trickle=b" ") == 408


async def limits_that_are_none(stack: Stack) -> None:
    async with stack.client() as client:
        for limit in (b"-1", b"0", b"101", b"1e20", b"1.0", b"true", b'"10"'):
            refused(await _post_json(client, "/v1/chunks", b'{"text":"x","limit":%s}' % limit), 422)
        for neighbours in (b"-1", b"11", b"true"):
            body = b'{"text":"x","prev_next_chunks":%s}' % neighbours
            refused(await _post_json(client, "/v1/chunks", body), 422)


async def names_that_are_no_names(stack: Stack) -> None:
    """Each is refused, or shown as a name that can be nobody's path."""
    names = ("../../x.txt", "..\\x.txt", "/etc/x.txt", "a\0b.txt", ".", "", "n" * 3000 + ".txt")
    around = set(stack.data_dir.parent.rglob("x.txt"))
    async with stack.client() as client:
        for name in names:
            response = await client.post(
                "/v1/ingest/text", json={"file_name": name, "text": f"Named {len(name)}."}
            )
            if response.status_code != 200:
                refused(response)
                continue
            shown = response.json()["data"][0]["doc_metadata"]["file_name"]
            assert shown.strip(". "), f"{name[:20]!r} is shown as {shown!r}"
            assert len(shown) <= 512
            assert not set(shown) & set("/\\\0"), f"shown as {shown[:40]!r}"
    assert set(stack.data_dir.parent.rglob("x.txt")) == around


async def two_files_in_one_form(stack: Stack) -> None:
    async with stack.client() as client:
        files = [("file", (f"{name}.txt", name.encode())) for name in ("First", "Second")]
        response = await client.post("/v1/ingest", files=files)
        if response.status_code == 200:
            assert len(response.json()["data"]) == 2, "one of two files is lost"
        else:
            refused(response)


async def a_client_that_leaves_a_stream(stack: Stack) -> None:
    await _leave(stack, stream=True)


async def a_client_that_leaves_a_plain_request(stack: Stack) -> None:
    await _leave(stack, stream=False)


async def _leave(stack: Stack, *, stream: bool) -> None:
    """The engine must see that nobody waits any more while it has nothing to send."""
    engine = stack.engine
    engine.left = asyncio.Event()
    engine.arrived.clear()
    engine.on(CHAT, scripted_stream(text_chunk("One")).held_at(2, asyncio.Event()))
    try:
        body = json.dumps({"messages": HI, "stream": stream}).encode()
        _, writer = await asyncio.open_connection(*stack.address)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        writer.write(_head(CHAT_PATH, headers) + body)
        async with asyncio.timeout(20):
            await engine.arrived.wait()
        writer.close()
        async with asyncio.timeout(LEAVING_S):
            await engine.left.wait()
    finally:
        engine.on(CHAT, answer("Hello"))


async def three_million_paragraphs(stack: Stack) -> None:
    data = docx("<w:p/>" * 3_000_000)
    assert len(data) < 70_000
    await _bomb(stack, "a.docx", data)


async def two_million_operators(stack: Stack) -> None:
    packed = zlib.compress(b"q Q " * 1_000_000, 9)
    packed = zlib.compress(packed, 9)
    content = pdf_stream(packed, filters=b"/Filter[/FlateDecode/FlateDecode]")
    data = _pdf_with(content)
    assert len(data) < 21_000
    await _bomb(stack, "a.pdf", data)


async def a_gigabyte_in_a_megabyte(stack: Stack) -> None:
    data = _pdf_with(pdf_stream(_deflated_spaces(1000), filters=b"/Filter/FlateDecode"))
    assert len(data) < 1_100_000
    await _bomb(stack, "a.pdf", data)


async def a_cell_in_the_last_corner(stack: Stack) -> None:
    sheet = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    data = xlsx({"S": sheet})
    assert len(data) < 5_000
    await _bomb(stack, "a.xlsx", data)


async def _bomb(stack: Stack, name: str, data: bytes) -> None:
    """Refused within bounds of memory and processor time, while others are answered."""
    async with stack.client(timeout_s=100) as client:
        before = _resident(stack)
        upload = asyncio.create_task(client.post("/v1/ingest", files={"file": (name, data)}))
        peak, spent = 0, _processor_s(stack)
        while not upload.done():
            health = await client.get("/health", timeout=10)
            assert health.status_code == 200
            peak = max(peak, _resident(stack) - before)
            await asyncio.wait({upload}, timeout=0.05)
        refused(await upload)
        assert peak < MEMORY_BYTES, f"{peak} bytes"
        spent = _processor_s(stack) - spent
        assert spent < PROCESSOR_S, f"{spent} s of a processor"


async def entities_in_a_document(stack: Stack) -> None:
    part = '<!DOCTYPE x [<!ENTITY a "b">]><x>before &a; after</x>'
    data = zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"r0": ("officeDocument", "word/document.xml")}),
            "word/document.xml": part,
        }
    )
    await _refused_and_not_kept(stack, "a.docx", data, says="document type")


async def files_without_text(stack: Stack) -> None:
    await _refused_and_not_kept(stack, "a.txt", b"", says="empty")
    await _refused_and_not_kept(stack, "a.txt", b" \n\t ", says="empty")
    await _refused_and_not_kept(stack, "a.pdf", pdf_of_pages([b"0 0 m 9 9 l S"]), says="OCR")


async def an_encrypted_file(stack: Stack) -> None:
    await _refused_and_not_kept(stack, "a.pdf", encrypted("secret"), says="password")
    async with stack.client() as client:
        opened = await client.post("/v1/ingest", files={"file": ("b.pdf", encrypted(""))})
        assert opened.status_code == 200, "an empty password is not tried"


async def _refused_and_not_kept(stack: Stack, name: str, data: bytes, *, says: str) -> None:
    async with stack.client() as client:
        before = (await client.get("/v1/ingest/list")).json()["data"]
        response = await client.post("/v1/ingest", files={"file": (name, data)})
        refused(response)
        assert says in response.text
        assert (await client.get("/v1/ingest/list")).json()["data"] == before


async def a_page_that_fetches_elsewhere(stack: Stack) -> None:
    """No other origin may ask or read, and fields that name another engine reach nothing."""
    stack.engine.on(CHAT, answer("Hello"))
    stack.engine.requests.clear()
    async with stack.client() as client:
        body = {"messages": HI, "api_base": "http://127.0.0.1:1", "api_key": "stolen"}
        response = await client.post(CHAT_PATH, json=body, headers={"Origin": "http://other"})
        assert response.status_code == 403
        assert "access-control-allow-origin" not in response.headers
        assert not stack.engine.received()
        assert (await client.post(CHAT_PATH, json=body)).status_code == 200
    (asked,) = stack.engine.received()
    assert not {"api_base", "api_key"} & set(asked.body)


async def text_that_looks_like_the_protocol(stack: Stack) -> None:
    """What the model writes stays inside its line and cannot end the stream."""
    text = "a\r\n\r\ndata: [DONE]\r\n\r\ndata: {}\u2028b"
    stack.engine.on(CHAT, answer(text))
    async with stack.client() as client:
        body = {"messages": HI, "stream": True}
        response = await client.post(CHAT_PATH, json=body)
    events = [line for line in response.text.splitlines() if line]
    assert [event for event in events if "[DONE]" in event] == ["data: [DONE]"]
    deltas = [json.loads(event[6:])["choices"][0]["delta"] for event in events[:-1]]
    assert "".join(delta.get("content") or "" for delta in deltas) == text


def encrypted(password: str) -> bytes:
    """A PDF whose user password is that one."""
    writer = pypdf.PdfWriter(io.BytesIO(pdf_of_pages([lines("A secret that is kept.")])))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _pdf_with(content: bytes) -> bytes:
    return pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>>",
            content,
        ]
    )


def _deflated_spaces(megabytes: int) -> bytes:
    """So many megabytes of spaces, packed; a flushed block can be repeated as it is."""
    block = b" " * 1_000_000
    packer = zlib.compressobj(9)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    repeated = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + repeated * megabytes + packer.flush()


async def _post_json(client: httpx.AsyncClient, path: str, body: bytes) -> httpx.Response:
    return await client.post(path, content=body, headers={"Content-Type": "application/json"})


def _head(path: str, headers: dict[str, str]) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode()


async def _status(stack: Stack, sent: bytes, *, trickle: bytes = b"") -> int:
    """The status that comes before the body is complete; `trickle` is sent again and again."""
    reader, writer = await asyncio.open_connection(*stack.address)
    writer.write(sent)
    first = asyncio.ensure_future(reader.readline())
    try:
        async with asyncio.timeout(5):
            while not first.done():
                with suppress(ConnectionError):
                    writer.write(trickle)
                await asyncio.wait({first}, timeout=0.1)
        return int((await first).split()[1])
    finally:
        first.cancel()
        writer.close()


def _resident(stack: Stack) -> int:
    """Bytes of the server and its children together."""
    return sum(use.resident_bytes for use in family(stack.process.pid))


def _processor_s(stack: Stack) -> float:
    """Processor seconds of the server and its children, those that ended too."""
    return sum(use.processor_s for use in family(stack.process.pid))


ROWS: dict[str, Row] = {
    row.__name__: row
    for row in (
        numbers_and_text_that_json_cannot_carry,
        five_megabytes_of_the_wrong_type,
        a_title_with_line_ends,
        bodies_that_are_too_large,
        a_body_that_never_ends,
        limits_that_are_none,
        names_that_are_no_names,
        two_files_in_one_form,
        a_client_that_leaves_a_stream,
        a_client_that_leaves_a_plain_request,
        entities_in_a_document,
        files_without_text,
        an_encrypted_file,
    )
}
BOMBS: dict[str, Row] = {
    row.__name__: row
    for row in (
        three_million_paragraphs,
        two_million_operators,
        a_gigabyte_in_a_megabyte,
        a_cell_in_the_last_corner,
    )
}
FAMILIES: dict[str, Row] = {
    row.__name__: row for row in (a_page_that_fetches_elsewhere, text_that_looks_like_the_protocol)
}
"""Beside the table: what a plain server may well get right."""


def files_below(folder: Path) -> set[Path]:
    """Every file in a folder, at any depth."""
    return {path for path in folder.rglob("*") if path.is_file()}
