"""Ingestion, lists, deletion and reading of documents over HTTP."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from privategpt.api.deps import ApiOptions
from privategpt.api.uploads import MAX_FIELD_BYTES, MAX_FIELDS, MAX_FILES
from privategpt.api.wire.replies import DocumentReply, IngestResponse
from privategpt.domain.errors import EncryptedFile, Unavailable
from tests.api.conftest import NewClient
from tests.fakes.asgi import exchange
from tests.fakes.edge import Edge

INGEST = "/v1/ingest"


def form(*parts: bytes, boundary: bytes = b"B", end: bytes = b"--B--\r\n") -> dict[str, Any]:
    """A hand-made form, for what no HTTP library sends."""
    body = b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts) + end
    label = f"multipart/form-data; boundary={boundary.decode()}"
    return {"content": body, "headers": {"content-type": label}}


def file_part(filename: bytes, content: bytes = b"text", name: bytes = b"file") -> bytes:
    return (
        b'Content-Disposition: form-data; name="' + name + b'"; filename="' + filename + b'"'
        b"\r\nContent-Type: text/plain\r\n\r\n" + content
    )


class TestIngest:
    @pytest.mark.parametrize("path", [INGEST, "/v1/ingest/file"])
    async def test_a_file_arrives_whole_with_its_name_and_type(
        self, path: str, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        content = bytes(range(256)) * 10_000
        response = await client.post(
            path, files={"file": ("data.bin", content, "application/x-thing")}
        )
        assert response.status_code == 200, response.text
        IngestResponse.model_validate(response.json())
        assert response.json()["data"] == [
            {
                "object": "ingest.document",
                "doc_id": "doc-1",
                "doc_metadata": {"file_name": "data.bin"},
            }
        ]
        (ingested,) = edge.library.ingested
        assert ingested.content == content
        assert ingested.request.tenant == "default"
        assert ingested.request.upload.media_type == "application/x-thing"
        assert ingested.request.replaces is False
        assert ingested.request.metadata == {}

    async def test_form_fields_arrive(self, edge: Edge, client: httpx.AsyncClient) -> None:
        response = await client.post(
            INGEST,
            files={"file": ("a.txt", b"x")},
            data={
                "metadata": '{"author": "A", "year": 1999, "ok": true, "share": 0.5, "no": null}',
                "replace": "true",
                "password": "sesame",
                "unknown": "x",
            },
        )
        assert response.status_code == 200, response.text
        request = edge.library.ingested[0].request
        assert request.metadata == {
            "author": "A",
            "year": 1999,
            "ok": True,
            "share": 0.5,
            "no": None,
        }
        assert request.replaces is True
        assert request.upload.password == "sesame"

    async def test_every_file_part_is_ingested(self, edge: Edge, client: httpx.AsyncClient) -> None:
        response = await client.post(
            INGEST, files=[("file", ("a.txt", b"A")), ("file", ("b.txt", b"B"))]
        )
        assert [doc["doc_metadata"]["file_name"] for doc in response.json()["data"]] == [
            "a.txt",
            "b.txt",
        ]
        assert [each.content for each in edge.library.ingested] == [b"A", b"B"]

    @pytest.mark.parametrize("before", ["", 'filename="=?utf-8?B?YS50eHQ=?="; ', 'filename=""; '])
    async def test_a_name_that_is_sent_in_the_extended_form_is_the_files(
        self, before: str, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        sent = f'Content-Disposition: form-data; name="file"; {before}'.encode()
        part = sent + b"filename*=utf-8''%ED%95%9C.txt\r\n\r\ntext"
        response = await client.post(INGEST, **form(part))
        assert response.status_code == 200, response.text
        assert [one.request.upload.name for one in edge.library.ingested] == ["한.txt"]

    async def test_nothing_of_the_upload_stays_on_disk(
        self, edge: Edge, new_client: NewClient, tmp_path: Path
    ) -> None:
        async with new_client(ApiOptions(upload_dir=tmp_path)) as client:
            await client.post(INGEST, files={"file": ("a.txt", b"x" * 3_000_000)})
            edge.library.error = EncryptedFile("A password is needed")
            response = await client.post(INGEST, files={"file": ("a.txt", b"x")})
            assert response.json()["error"]["code"] == "encrypted_file"
            await client.post("/v1/ingest/text", json={"file_name": "a", "text": "x"})
        assert os.listdir(tmp_path) == []  # noqa: PTH208

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("한글.txt".encode(), "한글.txt"),
            (b"%ED%95%9C%EA%B8%80.txt", "한글.txt"),
            (b"caf\xe9.txt", "café.txt"),
            (b"../../etc/passwd", "passwd"),
            (b"C:\\Users\\x\\report.docx", "report.docx"),
            (b"n" * 300 + b".txt", "n" * 300 + ".txt"),
            (b"a\x01b\x7f.txt", "ab.txt"),
            (b'say \\"hi\\".txt', 'say "hi".txt'),
        ],
    )
    async def test_names_are_for_display(
        self, name: bytes, shown: str, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        response = await client.post(INGEST, **form(file_part(name)))
        assert response.status_code == 200, response.text
        assert edge.library.ingested[0].request.upload.name == shown

    @pytest.mark.parametrize("name", [b"", b".", b"..", b"/", b"../", b" ", b"\x01"])
    async def test_no_name_is_a_400(
        self, name: bytes, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        response = await client.post(INGEST, **form(file_part(name)))
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "file"
        assert edge.library.ingested == []

    @pytest.mark.parametrize(
        "parts",
        [
            [],
            [file_part(b"a.txt", name=b"document")],
            [b'Content-Disposition: form-data; name="file"\r\n\r\njust a field'],
            [b"Content-Type: text/plain\r\n\r\nno disposition"],
        ],
    )
    async def test_a_form_without_the_file_is_a_422(
        self, parts: list[bytes], client: httpx.AsyncClient
    ) -> None:
        response = await client.post(INGEST, **form(*parts))
        assert response.status_code == 422, response.text
        assert response.json()["detail"] == [
            {"loc": ["body", "file"], "msg": "Field required", "type": "missing"}
        ]

    @pytest.mark.parametrize(
        "request_",
        [
            form(file_part(b"a.txt"), end=b""),
            form(file_part(b"a.txt"), end=b"--B"),
            {"content": b"garbage", "headers": {"content-type": "multipart/form-data; boundary=B"}},
            {"content": b"", "headers": {"content-type": "multipart/form-data; boundary=B"}},
            {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
            form(b"Content-Disposition\r\n\r\nx"),
            form(b"X: " + b"y" * 100_000 + b"\r\n\r\nx"),
            form(b"X: y\r\n" * 1000 + b"\r\nx"),
            form(file_part(b"a.txt"), boundary=b"B" * 5000),
        ],
        ids=range(9),
    )
    async def test_a_broken_form_is_a_400(
        self, request_: dict[str, Any], edge: Edge, client: httpx.AsyncClient
    ) -> None:
        response = await client.post(INGEST, **request_)
        assert response.status_code == 400, response.text
        assert response.json()["error"]["type"] == "invalid_request_error"
        assert edge.library.ingested == []

    @pytest.mark.parametrize(
        "parts",
        [
            [file_part(b"a.txt")] * (MAX_FILES + 1),
            [
                b'Content-Disposition: form-data; name="f%d"\r\n\r\nx' % number
                for number in range(MAX_FIELDS + 1)
            ],
            [b'Content-Disposition: form-data; name="f"\r\n\r\n' + b"x" * (MAX_FIELD_BYTES + 1)],
        ],
        ids=["files", "fields", "bytes"],
    )
    async def test_a_form_of_too_many_parts_is_a_413(
        self, parts: list[bytes], client: httpx.AsyncClient
    ) -> None:
        response = await client.post(INGEST, **form(*parts))
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "request_too_large"

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("metadata", "no json"),
            ("metadata", "[]"),
            ("metadata", '{"a": {}}'),
            ("metadata", '{"a": [1]}'),
            ("metadata", '{"": 1}'),
            ("metadata", '{"a": NaN}'),
            ("metadata", '{"a": 1e999}'),
            ("metadata", json.dumps({str(number): 1 for number in range(101)})),
            ("replace", "maybe"),
        ],
    )
    async def test_a_field_that_cannot_be_read_is_refused_before_anything_is_ingested(
        self, field: str, value: str, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        response = await client.post(INGEST, files={"file": ("a.txt", b"x")}, data={field: value})
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == field
        assert edge.library.ingested == []

    @pytest.mark.parametrize(
        ("metadata", "reason"),
        [
            ("{", "metadata is not valid JSON: EOF while parsing an object at line 1 column 1"),
            ({"a": {}}, "metadata: Values should be strings, numbers or booleans"),
            ({"A key": [1]}, "metadata: Values should be strings, numbers or booleans"),
            (
                {str(number): 1 for number in range(101)},
                "metadata: Object should have at most 100 keys",
            ),
            ({"": 1}, "metadata: String should have at least 1 character"),
            ([], "metadata: Input should be an object"),
        ],
        ids=range(6),
    )
    async def test_of_metadata_that_cannot_be_read_the_reason_is_told_in_a_form_as_in_json(
        self, metadata: object, reason: str, client: httpx.AsyncClient
    ) -> None:
        text = metadata if isinstance(metadata, str) else json.dumps(metadata)
        files = {"file": ("a.txt", b"x")}
        replies = [await client.post(INGEST, files=files, data={"metadata": text})]
        if text != metadata:
            body = {"file_name": "a", "text": "x", "metadata": metadata}
            replies.append(await client.post("/v1/ingest/text", json=body))
        told = {(reply.status_code, reply.json()["error"]["message"]) for reply in replies}
        assert told == {(400, reason)}

    @pytest.mark.parametrize(("text", "replaces"), [("FALSE", False), ("", False), ("1", True)])
    async def test_flags_are_taken_as_forms_write_them(
        self, text: str, replaces: bool, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        await client.post(
            INGEST, files={"file": ("a.txt", b"x")}, data={"replace": text, "metadata": "null"}
        )
        assert edge.library.ingested[0].request.replaces is replaces

    async def test_a_body_that_is_no_form_is_a_415(self, client: httpx.AsyncClient) -> None:
        response = await client.post(INGEST, json={"file": "x"})
        assert response.status_code == 415

    async def test_a_full_disk_is_a_503(self, new_client: NewClient, tmp_path: Path) -> None:
        async with new_client(ApiOptions(upload_dir=tmp_path / "gone")) as client:
            for response in (
                await client.post(INGEST, files={"file": ("a.txt", b"x")}),
                await client.post("/v1/ingest/text", json={"file_name": "a", "text": "x"}),
            ):
                assert response.status_code == 503
                assert str(tmp_path) not in response.text

    async def test_a_client_that_leaves_in_the_upload_leaves_nothing(
        self, edge: Edge, tmp_path: Path
    ) -> None:
        app = edge.app(ApiOptions(upload_dir=tmp_path))
        label = {"content-type": "multipart/form-data; boundary=B"}
        async with exchange(app, INGEST, headers=label) as under_way:
            under_way.body(b"--B\r\n" + file_part(b"a.txt", b"half"), more=True)
            under_way.leave()
            await under_way.ended()
        assert edge.library.ingested == []
        assert os.listdir(tmp_path) == []  # noqa: PTH208


class TestIngestText:
    async def test_a_text_is_a_file_of_its_name(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        text = "Zeile\r\n한글 🙂\u2028\x00end"
        response = await client.post(
            "/v1/ingest/text",
            json={"file_name": "notes/a.md", "text": text, "metadata": {"k": 1}, "replace": True},
        )
        assert response.status_code == 200, response.text
        (ingested,) = edge.library.ingested
        assert ingested.content == text.encode()
        assert ingested.request.upload.name == "a.md"
        assert ingested.request.metadata == {"k": 1}
        assert ingested.request.replaces is True

    async def test_no_name_is_a_400_that_names_its_field(self, client: httpx.AsyncClient) -> None:
        response = await client.post("/v1/ingest/text", json={"file_name": " /", "text": "x"})
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "file_name"

    async def test_a_failure_of_the_library_keeps_its_status(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        edge.library.error = Unavailable("The index does not answer")
        response = await client.post("/v1/ingest/text", json={"file_name": "a", "text": "x"})
        assert response.status_code == 503


async def stored(client: httpx.AsyncClient, *texts: str) -> None:
    for number, text in enumerate(texts):
        body = {"file_name": f"{number}.txt", "text": text}
        assert (await client.post("/v1/ingest/text", json=body)).status_code == 200


class TestList:
    async def test_the_list_is_whole_or_in_pages(self, client: httpx.AsyncClient) -> None:
        await stored(client, "a", "b", "c")

        async def page(query: str) -> tuple[list[str], bool]:
            body = (await client.get(f"/v1/ingest/list{query}")).json()
            IngestResponse.model_validate(body)
            return [doc["doc_id"] for doc in body["data"]], body["has_more"]

        assert await page("") == (["doc-1", "doc-2", "doc-3"], False)
        assert await page("?limit=2") == (["doc-1", "doc-2"], True)
        assert await page("?limit=2&after=doc-2") == (["doc-3"], False)
        assert await page("?limit=3") == (["doc-1", "doc-2", "doc-3"], False)

    async def test_an_unknown_place_in_the_list_is_a_404(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/v1/ingest/list?after=nowhere")).status_code == 404


class TestDelete:
    async def test_what_is_deleted_is_gone_and_the_reply_is_null(
        self, client: httpx.AsyncClient
    ) -> None:
        await stored(client, "a")
        response = await client.delete("/v1/ingest/doc-1")
        assert (response.status_code, response.json()) == (200, None)
        assert (await client.delete("/v1/ingest/doc-1")).status_code == 404
        assert (await client.get("/v1/documents/doc-1")).status_code == 404

    async def test_an_id_of_any_length_is_no_failure(self, client: httpx.AsyncClient) -> None:
        assert (await client.delete(f"/v1/ingest/{'x' * 5000}")).status_code == 422


class TestDocument:
    async def test_a_document_is_its_text_and_metadata(self, client: httpx.AsyncClient) -> None:
        await stored(client, "The text.")
        response = await client.get("/v1/documents/doc-1")
        DocumentReply.model_validate(response.json())
        assert response.json() == {
            "object": "document",
            "doc_id": "doc-1",
            "file_id": "file-1",
            "text": "The text.",
            "metadata": {"file_name": "0.txt"},
        }

    async def test_a_range_is_picked_out_by_code_points(self, client: httpx.AsyncClient) -> None:
        await stored(client, "a🙂" * 400)
        body = (await client.get("/v1/documents/doc-1?start=401&end=403")).json()
        DocumentReply.model_validate(body)
        text, highlight = body["text"], body["highlight"]
        assert highlight == {
            "start": 401,
            "end": 403,
            "before": text[101:401],
            "match": "🙂a",
            "after": text[403:703],
        }

    async def test_an_open_range_runs_to_the_end_of_the_text(
        self, client: httpx.AsyncClient
    ) -> None:
        await stored(client, "0123")
        for query, match in (("start=2", "23"), ("end=2", "01"), ("start=4&end=4", "")):
            body = (await client.get(f"/v1/documents/doc-1?{query}")).json()
            assert body["highlight"]["match"] == match

    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ("start=3&end=2", 400),
            ("start=0&end=5", 400),
            ("start=5", 400),
            ("start=-1", 422),
            ("start=x", 422),
            (f"end={10**30}", 422),
        ],
    )
    async def test_a_range_outside_the_text_is_refused(
        self, query: str, status: int, client: httpx.AsyncClient
    ) -> None:
        await stored(client, "0123")
        assert (await client.get(f"/v1/documents/doc-1?{query}")).status_code == status

    async def test_a_browser_gets_a_page_in_which_nothing_can_run(
        self, client: httpx.AsyncClient
    ) -> None:
        await stored(client, "<script>alert(1)</script> & <mark id=cited>")
        response = await client.get(
            "/v1/documents/doc-1?start=0&end=8",
            headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"},
        )
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert '<mark id="cited">&lt;script&gt;</mark>alert(1)' in response.text
        assert "<script" not in response.text
        assert response.text.count("<mark") == 1
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["vary"] == "Accept"

    @pytest.mark.parametrize(
        ("accept", "html"),
        [
            ("*/*", False),
            ("application/json", False),
            ("text/html", True),
            ("application/json;q=0.5, text/html;q=0.9", True),
            ("application/json, text/html;q=0.9", False),
            ("text/html;q=nonsense", False),
            ("text/html;level=1", True),
            ("", False),
        ],
    )
    async def test_scripts_get_json_and_browsers_a_page(
        self, accept: str, html: bool, client: httpx.AsyncClient
    ) -> None:
        await stored(client, "x")
        response = await client.get("/v1/documents/doc-1", headers={"accept": accept})
        assert response.headers["content-type"].startswith("text/html") is html

    async def test_the_title_of_a_page_is_escaped_too(
        self, edge: Edge, client: httpx.AsyncClient
    ) -> None:
        await client.post(
            "/v1/ingest/text",
            json={
                "file_name": "a",
                "text": "x",
                "metadata": {"title": "<b>\r\nX-Evil: 1", "page_label": "<i>"},
            },
        )
        response = await client.get("/v1/documents/doc-1", headers={"accept": "text/html"})
        assert "<b>" not in response.text
        assert "<i>" not in response.text
        assert "x-evil" not in response.headers
