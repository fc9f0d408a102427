"""/v1/messages over the real use cases: what it cites is where it says, streamed or not."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privategpt.domain.websearch import WebResult
from tests.fakes.anthropic_events import citations_of, events_of, message_of, text_of
from tests.fakes.websearch import FakeSearchEngine
from tests.fakes.wired import WiredLibrary
from tests.fakes.wired_app import WiredApp

HERON = "Ducks nest in the deep reeds. The heron hunts fish at dawn."
TOWER = "The lighthouse tower is 42 metres tall. It was built in 1887 by the harbour board."
QUESTION = "How tall is the lighthouse tower, and when does the heron hunt?"
ENABLED = {"citations": {"enabled": True}}


@pytest.fixture
def library(tmp_path: Path) -> WiredLibrary:
    return WiredLibrary(folder=tmp_path)


def text_document(text: str, title: str | None = "Birds", **more: Any) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, "title": title, **ENABLED, **more}


def pdf_document(*pages: str) -> dict[str, Any]:
    """To the fake parser, a file with pages is a text with form feeds."""
    data = base64.b64encode("\f".join(pages).encode()).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "source": source, "title": "Guide", **ENABLED}


def content_document(*texts: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text} for text in texts]
    source = {"type": "content", "content": blocks}
    return {"type": "document", "source": source, "title": "Notes", **ENABLED}


def search_result(source: str, *texts: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text} for text in texts]
    return {
        "type": "search_result",
        "source": source,
        "title": "Found",
        "content": blocks,
        **ENABLED,
    }


def asking(*blocks: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    content = [*blocks, {"type": "text", "text": QUESTION}]
    return {
        "model": "private-gpt",
        "max_tokens": 2000,
        "messages": [{"role": "user", "content": content}],
        **fields,
    }


def client_of(library: WiredLibrary) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(WiredApp(library).app())
    return httpx.AsyncClient(transport=transport, base_url="http://gpt.test")


async def reply(library: WiredLibrary, body: Mapping[str, Any]) -> dict[str, Any]:
    async with client_of(library) as client:
        return await reply_to(client, body)


async def reply_to(client: httpx.AsyncClient, body: Mapping[str, Any]) -> dict[str, Any]:
    """The message in one piece; the streamed one is the same but for its id."""
    plain = await client.post("/v1/messages", json=body)
    streamed = await client.post("/v1/messages", json={**body, "stream": True})
    assert plain.status_code == streamed.status_code == 200, plain.text
    message: dict[str, Any] = plain.json()
    assert message_of(events_of(streamed.text)) | {"id": message["id"]} == message
    return message


def saying(library: WiredLibrary, *pieces: str) -> None:
    library.llm.script = pieces


async def test_a_text_document_is_cited_by_its_characters(library: WiredLibrary) -> None:
    saying(library, "The heron hunts fish at dawn [1].")
    message = await reply(library, asking(text_document(HERON)))
    assert message["content"] == [
        {
            "type": "text",
            "text": "The heron hunts fish at dawn [1].",
            "citations": [
                {
                    "type": "char_location",
                    "cited_text": "The heron hunts fish at dawn.",
                    "document_index": 0,
                    "document_title": "Birds",
                    "file_id": None,
                    "start_char_index": 30,
                    "end_char_index": 59,
                }
            ],
        }
    ]
    assert HERON[30:59] == "The heron hunts fish at dawn."
    assert message["grounded"] is True
    assert "sources" not in message


async def test_a_pdf_is_cited_by_its_pages(library: WiredLibrary) -> None:
    saying(library, "The lighthouse tower is 42 metres tall [1].")
    message = await reply(library, asking(pdf_document("A cover page.", HERON, TOWER)))
    (citation,) = citations_of(message)
    assert citation == {
        "type": "page_location",
        "cited_text": "The lighthouse tower is 42 metres tall.",
        "document_index": 0,
        "document_title": "Guide",
        "file_id": None,
        "start_page_number": 3,
        "end_page_number": 4,
    }


async def test_a_document_in_blocks_is_cited_by_whole_blocks(library: WiredLibrary) -> None:
    saying(library, "The heron hunts fish at dawn [1].")
    message = await reply(library, asking(content_document(TOWER, HERON)))
    (citation,) = citations_of(message)
    assert citation == {
        "type": "content_block_location",
        "cited_text": HERON,
        "document_index": 0,
        "document_title": "Notes",
        "file_id": None,
        "start_block_index": 1,
        "end_block_index": 2,
    }


async def test_search_results_count_apart_from_documents(library: WiredLibrary) -> None:
    saying(library, "The heron hunts fish at dawn [1]. The lighthouse tower is 42 metres tall [2].")
    body = asking(search_result("https://towers.example/", TOWER), text_document(HERON))
    first, second = citations_of(await reply(library, body))
    assert first["document_index"] == 0
    assert second == {
        "type": "search_result_location",
        "search_result_index": 0,
        "source": "https://towers.example/",
        "title": "Found",
        "cited_text": TOWER,
        "start_block_index": 0,
        "end_block_index": 1,
    }


async def test_search_results_of_a_tool_are_cited_too(library: WiredLibrary) -> None:
    saying(library, "The lighthouse tower is 42 metres tall [1].")
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [search_result("kb/17", TOWER)],
    }
    body = asking()
    body["messages"] += [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    (citation,) = citations_of(await reply(library, body))
    assert citation["source"] == "kb/17"
    tool_turn = library.llm.requests[0].messages[-1]
    assert (tool_turn.text, tool_turn.tool_call_id) == ("Source: Found", "toolu_1")


async def test_each_cited_sentence_is_a_block_and_the_blocks_joined_are_the_text(
    library: WiredLibrary,
) -> None:
    said = (
        "Let me see. The heron hunts fish at dawn [1]. I like that. "
        "The lighthouse tower is 42 metres tall [2]. Bye."
    )
    saying(library, said)
    message = await reply(library, asking(text_document(HERON), text_document(TOWER, "Towers")))
    assert text_of(message) == said
    assert [(block["text"], block["citations"] is None) for block in message["content"]] == [
        ("Let me see. ", True),
        ("The heron hunts fish at dawn [1]. ", False),
        ("I like that. ", True),
        ("The lighthouse tower is 42 metres tall [2]. ", False),
        ("Bye.", True),
    ]


async def test_documents_without_citations_are_read_and_the_answer_is_left_alone(
    library: WiredLibrary,
) -> None:
    saying(library, "The heron hunts fish at dawn [1].")
    document = {**text_document(HERON, context="A field guide."), "citations": {"enabled": False}}
    message = await reply(library, asking(document))
    assert message["content"][0]["text"] == "The heron hunts fish at dawn [1]."
    assert message["content"][0]["citations"] is None
    assert "grounded" not in message
    prompt = library.llm.requests[0].messages
    assert "The heron hunts fish at dawn." in prompt[0].text
    assert "A field guide." in prompt[0].text
    assert prompt[1].text == QUESTION


async def test_a_document_that_does_not_fit_the_window_is_refused_and_not_cut(
    library: WiredLibrary,
) -> None:
    async with client_of(library) as client:
        body = asking(text_document("words " * 5000), stream=True)
        response = await client.post("/v1/messages", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"
    assert "and its documents" in response.json()["error"]["message"]


async def test_what_was_sent_is_not_searched_for(library: WiredLibrary) -> None:
    library.search_engine = FakeSearchEngine(())
    body = asking(text_document("My secret diary.", context="Private."), web_search=True)
    await reply(library, body)
    assert library.search_engine.queries == [QUESTION, QUESTION]


async def test_the_library_is_cited_by_characters_and_by_page_with_our_own_address(
    library: WiredLibrary,
) -> None:
    await library.add("tower.txt", TOWER, tenant="default")
    await library.add("birds.pdf", "Contents of it all.\f" + HERON, tenant="default")
    saying(library, "The lighthouse tower is 42 metres tall. The heron hunts fish at dawn.")
    message = await reply(library, asking(use_context=True))
    tower, heron = citations_of(message)
    assert TOWER[tower["start_char_index"] : tower["end_char_index"]] == tower["cited_text"]
    assert (heron["type"], heron["start_page_number"], heron["end_page_number"]) == (
        "page_location",
        2,
        3,
    )
    sources = {entry["index"] - 1: entry for entry in message["sources"]}
    for citation in (tower, heron):
        assert sources[citation["document_index"]]["title"] == citation["document_title"]
        assert re.search(r"/v1/documents/[^/]+\?start=\d+&end=\d+$", citation["source_url"])


async def test_markers_of_three_kinds_of_sources_share_one_numbering(library: WiredLibrary) -> None:
    await library.add("tower.txt", TOWER, tenant="default")
    web = WebResult("Tides", "https://tides.example/", "High tide is at noon on Sunday.")
    library.search_engine = FakeSearchEngine((web,))
    saying(
        library,
        "The heron hunts fish at dawn [1]. The lighthouse tower is 42 metres tall [2]. "
        "High tide is at noon on Sunday [3].",
    )
    body = asking(text_document(HERON), use_context=True, web_search=True)
    message = await reply(library, body)
    assert [one["type"] for one in citations_of(message)] == [
        "char_location",
        "char_location",
        "web_search_result_location",
    ]
    assert citations_of(message)[2] == {
        "type": "web_search_result_location",
        "url": "https://tides.example/",
        "title": "Tides",
        "cited_text": "High tide is at noon on Sunday.",
        "encrypted_index": "3:0-31",
    }
    assert [(entry["index"], entry["title"]) for entry in message["sources"]] == [
        (1, "Birds"),
        (2, "tower.txt"),
        (3, "Tides"),
    ]


async def test_sources_are_on_message_start_where_the_sdks_keep_them(library: WiredLibrary) -> None:
    web = WebResult("Tides", "https://tides.example/", "High tide is at noon.")
    library.search_engine = FakeSearchEngine((web,))
    async with client_of(library) as client:
        body = asking(web_search=True, stream=True)
        events = events_of((await client.post("/v1/messages", json=body)).text)
    (delta,) = (event for event in events if event["type"] == "message_delta")
    expected = [{"index": 1, "title": "Tides", "url": "https://tides.example/"}]
    assert events[0]["message"]["sources"] == delta["sources"] == expected
    assert events[0]["message"]["usage"]["input_tokens"] == delta["usage"]["input_tokens"] > 0


@pytest.mark.parametrize("asked", [{"web_search": True}, {"use_context": True}])
async def test_sources_are_shown_beside_json_which_has_no_markers(
    library: WiredLibrary, asked: dict[str, Any]
) -> None:
    await library.add("tower.txt", TOWER, tenant="default")
    library.search_engine = FakeSearchEngine((WebResult("Tower", "https://tower.example/", TOWER),))
    saying(library, '{"metres": 42}')
    form = {"type": "json_schema", "schema": {"type": "object"}}
    message = await reply(library, asking(**asked, output_config={"format": form}))
    assert message["content"] == [{"type": "text", "text": '{"metres": 42}', "citations": None}]
    assert [source["index"] for source in message["sources"]] == [1]


async def test_without_results_there_are_no_sources(library: WiredLibrary) -> None:
    library.search_engine = FakeSearchEngine(())
    message = await reply(library, asking(text_document(HERON), web_search=True))
    assert "sources" not in message


async def test_an_unsupported_answer_says_so_and_shows_no_sources(library: WiredLibrary) -> None:
    await library.add("tower.txt", TOWER, tenant="default")
    saying(library, "Bananas are yellow [1].")
    message = await reply(library, asking(use_context=True))
    assert message["content"] == [
        {"type": "text", "text": "Bananas are yellow.", "citations": None}
    ]
    assert message["grounded"] is False
    assert "sources" not in message


async def test_sources_and_citations_can_be_left_out(library: WiredLibrary) -> None:
    await library.add("tower.txt", TOWER, tenant="default")
    saying(library, "The lighthouse tower is 42 metres tall [1].")
    shown = await reply(library, asking(use_context=True, include_sources=False))
    assert "sources" not in shown
    assert len(citations_of(shown)) == 1
    plain = await reply(library, asking(use_context=True, citation_style=[]))
    assert text_of(plain) == "The lighthouse tower is 42 metres tall."
    assert citations_of(plain) == []
    assert "sources" not in plain


@pytest.mark.parametrize("said", ["One END two.", "One E", "EN", "Then ENEND and ENDE"])
async def test_the_answer_ends_before_a_stop_sequence_and_names_it(
    library: WiredLibrary, said: str
) -> None:
    saying(library, *said)
    message = await reply(library, asking(stop_sequences=["STOP", "END"]))
    text, stop, _ = said.partition("END")
    assert text_of(message) == text
    expected = ("stop_sequence", "END") if stop else ("end_turn", None)
    assert (message["stop_reason"], message["stop_sequence"]) == expected
    assert all(request.sampling.stop == () for request in library.llm.requests)


PIECES = st.sampled_from(
    [
        "The heron hunts fish at dawn", "The lighthouse tower is 42 metres tall", " [1]", "[2]",
        "[9]", ". ", "\n\n", " [1, 2]", "`x`", "High tide is at noon on Sunday", " [3]", "! ", "°",
        "🐦", "- ", "It was built in 1887 by the harbour board", " ", "[1-3]",
    ]
)  # fmt: skip


@given(parts=st.lists(PIECES, max_size=12))
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_every_invariant_of_citations_holds_in_this_view(
    parts: list[str], noon: Spoken
) -> None:
    body = asking(text_document(HERON), text_document(TOWER, "Towers"), web_search=True)
    text = "".join(parts)
    message = await noon.message(body, [text])
    assert message == await noon.message(body, parts) == await noon.message(body, text)
    assert_invariants(message)


@pytest.fixture
def noon(library: WiredLibrary) -> Spoken:
    """A library and one result of the web; one app for all examples, as making one is slow."""
    web = WebResult("Tides", "https://tides.example/", "High tide is at noon on Sunday.")
    library.search_engine = FakeSearchEngine((web,))
    library.searches_per_day = 100_000
    return Spoken(library, WiredApp(library).app())


@dataclass(frozen=True, repr=False)
class Spoken:
    library: WiredLibrary
    app: FastAPI

    async def message(self, body: Mapping[str, Any], pieces: Sequence[str]) -> dict[str, Any]:
        saying(self.library, *pieces)
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
            message = await reply_to(client, body)
        return {key: message[key] for key in ("content", "sources", "stop_reason")}


def assert_invariants(message: dict[str, Any]) -> None:
    documents = [HERON, TOWER]
    for block in message["content"]:
        found: list[dict[str, Any]] | None = block["citations"]
        assert found is None or found
        markers = re.findall(r"\[(\d+)\]", re.sub(r"`[^`]*`", "", block["text"]))
        numbers: list[str] = []
        for citation in found or []:
            if citation["type"] == "char_location":
                index = citation["document_index"]
                start, end = citation["start_char_index"], citation["end_char_index"]
                assert documents[index][start:end] == citation["cited_text"]
                numbers.append(str(index + 1))
            else:
                assert citation["cited_text"] in "High tide is at noon on Sunday."
                numbers.append("3")
        if "`" not in block["text"]:
            # In the order of the markers, each with its own.
            assert numbers == markers
