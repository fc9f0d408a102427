"""OpenTelemetry traces, with the extra `otel`: FastAPI makes the spans, this sends them off."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from privategpt.api.request_ids import current_request_id
from privategpt.api.scopes import told_route

EXPORT_TIMEOUT_S = 5.0
HIDDEN = "***"


class WithoutWords(SpanProcessor):
    """Takes a client's words out of a span, as they are taken out of the log.

    A path becomes its route, a query is hidden; the request id is put in.
    """

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        attributes = span.attributes or {}
        if "url.path" in attributes:
            method = str(attributes.get("http.request.method", "GET"))
            span.set_attribute("url.path", told_route(method, str(attributes["url.path"])))
        if "url.query" in attributes:
            span.set_attribute("url.query", HIDDEN)
        if request_id := current_request_id.get():
            span.set_attribute("privategpt.request_id", request_id)

    def on_end(self, span: ReadableSpan) -> None:
        """Nothing is left to do."""


def otlp_exporter(url: str) -> SpanExporter:
    """Sends spans to the collector at `url`, over HTTP."""
    return OTLPSpanExporter(endpoint=url, timeout=EXPORT_TIMEOUT_S)


def make_tracer_provider(exporter: SpanExporter) -> TracerProvider:
    """What FastAPI makes its spans with; its `shutdown` sends what is left."""
    provider = TracerProvider(
        resource=Resource.create({SERVICE_NAME: "privategpt"}), shutdown_on_exit=False
    )
    provider.add_span_processor(WithoutWords())
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
