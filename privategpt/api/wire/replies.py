"""Reply bodies, as documentation and for tests: replies are built as plain dicts for speed.

Names are those of the seed's schemas (PrivateGPT's OpenAPI), which these extend.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Reply(BaseModel):
    """Every field that a reply may have is declared."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class IngestedDoc(Reply):
    """A document; `doc_metadata.file_id` is the id of its file, which works wherever this does."""

    object: Literal["ingest.document"]
    doc_id: str = Field(examples=["c202d5e6-7b69-4869-81cc-dd574ee8ee11"])
    doc_metadata: dict[str, Any] | None = Field(
        examples=[{"file_name": "Sales Report Q3 2023.pdf", "page_label": "2"}]
    )


class Chunk(Reply):
    """A piece of a document. Scores are comparable within one reply only."""

    object: Literal["context.chunk"]
    score: float = Field(examples=[0.023])
    document: IngestedDoc
    text: str = Field(examples=["Outbound sales increased 20%, driven by new leads."])
    previous_texts: list[str] | None = None
    next_texts: list[str] | None = None


class ChunksResponse(Reply):
    """Chunks, best first."""

    object: Literal["list"]
    model: Literal["private-gpt"]
    data: list[Chunk]


class SkippedFile(Reply):
    """A file inside an upload that could not be read, and why."""

    file_name: str
    reason: str


class IngestResponse(Reply):
    """Documents. `has_more` is true where a list was cut by `limit`; `skipped` is there where
    files inside the uploads (in archives, attached to mails) could not be read.
    """

    object: Literal["list"]
    model: Literal["private-gpt"]
    data: list[IngestedDoc]
    has_more: bool = False
    skipped: list[SkippedFile] | None = None


class TokenUsage(Reply):
    """Tokens that were read."""

    prompt_tokens: int
    total_tokens: int


class Embedding(Reply):
    """A vector: numbers, or base64 of little-endian float32 where that was asked for."""

    index: int
    object: Literal["embedding"]
    embedding: list[float] | str


class EmbeddingsResponse(Reply):
    """Vectors in the order of the input."""

    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: TokenUsage


class RerankedDocument(Reply):
    """A document of the request."""

    text: str


class RerankResult(Reply):
    """`index` is the document's place in the request, from 0; `relevance_score` is 0–1."""

    index: int
    relevance_score: float
    document: RerankedDocument | None = None


class RerankResponse(Reply):
    """Results, best first. `usage` is missing where the reranker does not count."""

    object: Literal["list"]
    model: str
    results: list[RerankResult]
    usage: TokenUsage | None = None


class FunctionCallOut(Reply):
    """A call, or in a stream a piece of one."""

    name: str | None = None
    arguments: str


class ToolCallOut(Reply):
    """A tool call. `index` is there in a stream only; `id`, `type` and the name in its first
    piece.
    """

    index: int | None = None
    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionCallOut


class UrlCitation(Reply):
    """A place in the content, in code points, end-exclusive, and the source that it names."""

    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(Reply):
    """A marker in the content."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class OpenAIDelta(Reply):
    """A piece of the message; pieces of content are concatenated."""

    content: str | None
    role: Literal["assistant"] | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCallOut] | None = None
    function_call: FunctionCallOut | None = None
    annotations: list[Annotation] | None = None


class NumberedSource(Reply):
    """What the marker `[index]` stands for; 1-based."""

    index: int
    title: str
    url: str


class OpenAIMessage(Reply):
    """The message in one piece. `sources` are there where they are not the reply's: with several
    prompts, those of each but the first.
    """

    role: Literal["assistant", "system", "user"] = "assistant"
    content: str | None
    refusal: str | None = None
    annotations: list[Annotation] = []
    reasoning_content: str | None = None
    tool_calls: list[ToolCallOut] | None = None
    function_call: FunctionCallOut | None = None
    sources: list[NumberedSource] | None = None


class VerificationOut(Reply):
    """How well `cited_text` supports its sentence; `score` is 0–1, `method` says who judged."""

    verdict: Literal["supported", "partial", "unsupported"]
    score: float
    method: str


class CitationOut(Reply):
    """A marker's evidence: `cited_text` is verbatim; `document_index` is 0-based.

    `verification` is there where the request set `verify_citations`.
    """

    cited_text: str
    cited_text_heading: str | None
    document_title: str | None
    document_index: int
    document_author: str | None
    document_year: str | None
    document_reference: str | None
    source_url: str
    verification: VerificationOut | None = None


class OpenAIChoice(Reply):
    """Either `delta` or `message`; `text` too on /v1/completions. `sources` are the chunks that
    were used, on the finish chunk of a stream.
    """

    index: int = 0
    finish_reason: str | None
    delta: OpenAIDelta | None = None
    message: OpenAIMessage | None = None
    text: str | None = None
    logprobs: dict[str, Any] | None = None
    sources: list[Chunk] | None = None
    citations: list[CitationOut] | None = None
    grounded: bool | None = None


class PromptDetails(Reply):
    """Of the prompt's tokens, those that were not computed again."""

    cached_tokens: int


class CompletionDetails(Reply):
    """Of the completion's tokens, those spent on thinking."""

    reasoning_tokens: int


class UsageOut(Reply):
    """Tokens as the engine counted them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class OpenAICompletion(Reply):
    """A reply in one piece, or a chunk of a streamed one.

    `sources` are the numbered sources behind the markers, `citations` their evidence;
    `grounded` tells whether anything in the documents supports the answer.
    """

    id: str
    object: Literal[
        "completion",
        "completion.chunk",
        "chat.completion",
        "chat.completion.chunk",
        "text_completion",
    ] = "completion"
    created: int = Field(examples=[1623340000])
    model: str
    choices: list[OpenAIChoice]
    usage: UsageOut | None = None
    system_fingerprint: str | None = None
    sources: list[NumberedSource] | None = None
    citations: list[CitationOut] | None = None
    grounded: bool | None = None


class Highlight(Reply):
    """The range that was asked for, with some text around it; offsets in code points."""

    start: int
    end: int
    before: str
    match: str
    after: str


class DocumentReply(Reply):
    """A stored document. Offsets of citations count in `text`."""

    object: Literal["document"]
    doc_id: str
    file_id: str
    text: str
    metadata: dict[str, Any]
    highlight: Highlight | None = None


class ModelReply(Reply):
    """A model, for OpenAI's clients and Anthropic's alike."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    type: Literal["model"]
    display_name: str
    created_at: str
    lifecycle: Literal["active"]


class ModelsReply(Reply):
    """Every id that requests may name."""

    object: Literal["list"]
    data: list[ModelReply]
    has_more: bool
    first_id: str
    last_id: str


class HealthResponse(Reply):
    """The process is up."""

    status: Literal["ok"] = "ok"


class ReadinessReply(Reply):
    """Every part that was asked, and "ok" or what is wrong with it."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str]


class SearchUsageReply(Reply):
    """`resets_at` is the next midnight UTC, as RFC 3339."""

    object: Literal["usage.searches"]
    used: int
    limit: int
    resets_at: str = Field(examples=["2026-03-02T00:00:00+00:00"])


class ErrorBody(Reply):
    """What went wrong, in OpenAI's shape."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(Reply):
    """The one error body. `detail` repeats the message for clients that read only that."""

    error: ErrorBody
    detail: str | list[dict[str, Any]]


class NotReadyReply(ErrorReply):
    """Which parts do not answer."""

    status: Literal["unavailable"]
    checks: dict[str, str]


class ValidationError(Reply):
    """One place in the body that does not fit."""

    loc: list[str | int]
    msg: str
    type: str


class HTTPValidationError(Reply):
    """A body that does not fit its schema."""

    error: ErrorBody
    detail: list[ValidationError]


ERRORS: dict[int | str, dict[str, Any]] = {
    422: {"model": HTTPValidationError, "description": "Validation Error"},
    "4XX": {"model": ErrorReply, "description": "The request cannot be served as it is"},
    "5XX": {"model": ErrorReply, "description": "A part of the server does not serve"},
}
"""The error replies that every operation documents."""

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Successful Response",
        # Without a schema: in OpenAPI 3.1 it is not settled whether one describes the whole
        # stream or each event, and readers differ.
        "content": {"text/event-stream": {}},
    }
}
"""The second form of a successful reply, where `stream` is true: one chunk per `data:` line, on
/v1/messages each below its `event:` line."""
