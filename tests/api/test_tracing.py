"""Traces: what a span says of a request, and what it does not."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from privategpt.api.deps import Services
from privategpt.api.tracing import make_tracer_provider, otlp_exporter
from privategpt.app import create_app
from tests.fakes.edge import Edge

TRACE = "0af7651916cd43dd8448eb211c80319c"


async def test_a_request_is_a_span_of_the_clients_trace_with_its_route_and_id() -> None:
    exporter = InMemorySpanExporter()
    provider = make_tracer_provider(exporter)
    services: Services = Edge().app().state.services
    transport = httpx.ASGITransport(create_app(services, tracer_provider=provider))
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
        await client.get(
            "/v1/documents/the-zebra?start=0&note=zebra&api_key=pgpt_zebra",
            headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "x-request-id": "mine"},
        )
        await client.get("/zebra")
    provider.shutdown()
    spans = exporter.get_finished_spans()
    requests = [dict(span.attributes or {}) for span in spans if span.kind.name == "SERVER"]
    assert [attributes["url.path"] for attributes in requests] == [
        "/v1/documents/{doc_id}",
        "(none)",
    ]
    assert {f"{span.context.trace_id:032x}" for span in spans if span.context} >= {TRACE}
    assert "mine" in [(span.attributes or {}).get("privategpt.request_id") for span in spans]
    assert "zebra" not in "".join(span.to_json() for span in spans)


class Collector(BaseHTTPRequestHandler):
    """Notes the path of everything it is sent."""

    received: ClassVar[list[tuple[str, int]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append((self.path, len(body)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


def test_spans_are_sent_to_the_collector_at_the_latest_when_the_server_stops() -> None:
    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        provider = make_tracer_provider(
            otlp_exporter(f"http://127.0.0.1:{collector.server_port}/v1/traces")
        )
        provider.get_tracer("test").start_span("request").end()
        provider.shutdown()
        collector.shutdown()
        thread.join()
    ((path, size),) = Collector.received
    assert path == "/v1/traces"
    assert size > 0


async def test_nothing_is_traced_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    transport = httpx.ASGITransport(Edge().app())
    async with httpx.AsyncClient(transport=transport, base_url="http://gpt.test") as client:
        reply = await client.get("/health")
    assert reply.status_code == 200
    assert "traceparent" not in reply.headers
