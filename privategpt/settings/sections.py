"""Every setting: its default, and what it may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from privategpt.domain.access import require_tenant_name
from privategpt.domain.errors import InvalidRequest

A_YEAR_S = 31_536_000
MOST = 10**15
"""Beyond every size that is meant, and within what databases and timers can count."""


def _number(value: object) -> object:
    """Python takes true for 1, and YAML reads `on` and `yes` as true."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number")  # noqa: TRY004 - what pydantic catches
    return value


def _off(mode: object) -> object:
    """YAML reads a bare `off` as false."""
    return "off" if mode is False else mode


def _named(path: object) -> object:
    """An empty path is the folder in which the command happens to be started."""
    if path == "":
        raise ValueError("Input should be a path, and is empty")
    return path


def _home(path: Path) -> Path:
    """YAML knows no `~`, and neither does a container's environment."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"nobody knows where {str(path)!r} is: write the whole path") from error


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        found = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        found = False
    if not found:
        raise ValueError("Input should be an address, as in http://127.0.0.1:8080")
    return url


def _origin(origin: str) -> str:
    """As browsers send it: in small letters, without the slash that a copied address ends with."""
    origin = origin.rstrip("/")
    scheme, _, host = origin.partition("://")
    if origin != "*" and (not scheme or not host or "/" in host):
        raise ValueError("Input should be an origin, as in https://chat.example.org, or *")
    return origin.lower() if scheme.lower() in ("http", "https") else origin


def _tenant(name: str) -> str:
    try:
        return require_tenant_name(name)
    except InvalidRequest as error:
        raise ValueError(error.message) from error


Port = Annotated[int, BeforeValidator(_number), Field(ge=0, le=65535)]
Seconds = Annotated[float, BeforeValidator(_number), Field(gt=0, le=A_YEAR_S)]
Count = Annotated[int, BeforeValidator(_number), Field(ge=1, le=MOST)]
CountOrZero = Annotated[int, BeforeValidator(_number), Field(ge=0, le=MOST)]
Text = Annotated[str, Field(min_length=1)]
Address = Annotated[str, AfterValidator(_address)]
FilePath = Annotated[Path, BeforeValidator(_named), AfterValidator(_home)]
TenantName = Annotated[str, AfterValidator(_tenant)]


class Section(BaseModel):
    """A group of keys; whatever is not one of them is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _all_commented_out(cls, keys: object) -> object:
        return {} if keys is None else keys


class ServerSettings(Section):
    """Where the server listens and what it accepts."""

    host: str = "127.0.0.1"
    port: Port = 8001
    allow_open_bind: bool = False
    data_dir: FilePath = Path("local_data")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["console", "json"] = "console"
    traces_url: Address | None = None
    max_upload_bytes: Count = 100_000_000
    max_body_bytes: Count = 20_000_000
    body_grace_s: Seconds = 30.0
    shutdown_grace_s: Seconds = 10.0
    heartbeat_s: Seconds = 15.0
    dialect: Literal["auto", "openai", "privategpt"] = "auto"
    public_url: Address | None = None
    cors_origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = ()


class AuthSettings(Section):
    """Whether requests need a key."""

    enabled: Literal["auto", True, False] = "auto"


class TenantLimits(Section):
    """How much one tenant may have; None leaves what holds for all."""

    requests_per_minute: Count | None = None
    answers_at_once: Count | None = None
    stored_bytes: Count | None = None
    searches_per_day: CountOrZero | None = None


class LimitSettings(Section):
    """How much every tenant may have, None being without limit, and whom other limits hold for."""

    requests_per_minute: Count | None = None
    answers_at_once: Count | None = None
    stored_bytes: Count | None = None
    tenants: dict[TenantName, TenantLimits] = Field(default_factory=dict[str, TenantLimits])


class LlmSettings(Section):
    """Which language model writes the answers."""

    mode: Literal["embedded", "openai", "llamaindex"] = "embedded"
    model: Text | None = None
    model_path: FilePath | None = None
    context_tokens: Annotated[Count, Field(ge=512)] | None = None
    temperature: Annotated[float, BeforeValidator(_number), Field(ge=0, le=2)] | None = None
    slots: Count = 2
    threads: Count | None = None
    base_url: Address | None = None
    api_key: SecretStr | None = None
    llamaindex_class: Text | None = None
    llamaindex_args: dict[str, Any] = Field(default_factory=dict[str, Any])
    remote_images: bool = False
    max_waiting: Count = 256
    first_byte_timeout_s: Seconds = 120.0
    between_bytes_timeout_s: Seconds = 60.0
    connect_timeout_s: Seconds = 5.0


class EmbeddingSettings(Section):
    """Which model turns text into vectors."""

    mode: Literal["embedded", "openai", "llamaindex"] = "embedded"
    model: Text | None = None
    query_prompt: str | None = None
    passage_prompt: str | None = None
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    batch_size: Count = 32
    threads: Count | None = None
    base_url: Address | None = None
    api_key: SecretStr | None = None
    dimensions: Count | None = None
    max_tokens: Count | None = None
    llamaindex_class: Text | None = None
    llamaindex_args: dict[str, Any] = Field(default_factory=dict[str, Any])
    timeout_s: Seconds = 60.0


class RerankSettings(Section):
    """Which model reads question and passage together, to order what was found; none by default."""

    mode: Annotated[Literal["off", "sentence_transformers", "openai"], BeforeValidator(_off)] = (
        "off"
    )
    model: Text | None = None
    base_url: Address | None = None
    api_key: SecretStr | None = None
    candidates: Annotated[Count, Field(le=1000)] = 50
    batch_size: Count = 16
    timeout_s: Seconds = 60.0


class VectorSettings(Section):
    """Where vectors are kept."""

    mode: Literal["embedded", "server"] = "embedded"
    url: Address | None = None
    api_key: SecretStr | None = None
    collection: Text = "privategpt"
    prefer_grpc: bool = True
    timeout_s: Seconds = 10.0
    quantization: Literal["auto", "none", "int8", "turbo", "binary"] = "auto"


class StateSettings(Section):
    """Where files, documents and their text are kept."""

    url: SecretStr | None = None


class RetrievalSettings(Section):
    """How context is found for an answer."""

    candidates: Annotated[Count, Field(le=1000)] = 100
    context_chunks: Annotated[Count, Field(le=50)] = 6
    context_tokens: Count | None = None


class IngestionSettings(Section):
    """How files become chunks."""

    workers: Count = 1
    parse_timeout_s: Seconds = 120.0
    parse_memory_bytes: Count = 1_500_000_000
    max_pages: Count = 10_000
    ocr: Annotated[Literal["auto", "off"], BeforeValidator(_off)] = "auto"
    ocr_languages: Annotated[tuple[Text, ...], Field(min_length=1)] = ("eng",)
    ocr_page_timeout_s: Seconds = 30.0
    max_jobs: Count = 1000
    max_jobs_bytes: Count = 10_000_000_000
    keep_jobs_days: Annotated[Count, Field(le=36500)] = 7


Style = Literal["chunks", "citations", "annotations"]


class AnswerSettings(Section):
    """How answers show what they rest on."""

    citation_style: tuple[Style, ...] = ("chunks",)
    remove_foreign_links: bool = True
    unknown_model: Literal["refuse", "default"] = "refuse"
    verifier: Literal["support", "cross_encoder", "judge"] = "support"
    verifier_model: Text | None = None


class ModelSettings(Section):
    """A model id and what it switches on, for front ends that cannot send our fields.

    `citation_style` None is that of `answers`.
    """

    id: Text
    use_context: bool = False
    citation_style: tuple[Style, ...] | None = None
    context_only: bool = False
    web_search: bool = False
    system_prompt: str | None = None


MODELS = (
    ModelSettings(id="private-gpt"),
    ModelSettings(id="private-gpt-docs", use_context=True, citation_style=("annotations",)),
)


def _each_once(models: tuple[ModelSettings, ...]) -> tuple[ModelSettings, ...]:
    ids = [model.id for model in models]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(f"{min(twice)!r} is there twice")
    return models


class SearxngSettings(Section):
    """The operator's own SearXNG server."""

    url: Address | None = None


class BraveSettings(Section):
    """The account at Brave Search."""

    api_key: SecretStr | None = None


class TavilySettings(Section):
    """The account at Tavily."""

    api_key: SecretStr | None = None


class WebSearchSettings(Section):
    """Which search engine answers `web_search: true`, and how often."""

    provider: Literal["searxng", "brave", "tavily", "ddgs"] | None = None
    searches_per_day: CountOrZero = 1000
    results: Annotated[Count, Field(le=20)] = 5
    deadline_s: Seconds = 5.0
    max_bytes: Count = 1_000_000
    language: Text | None = None
    searxng: SearxngSettings = SearxngSettings()
    brave: BraveSettings = BraveSettings()
    tavily: TavilySettings = TavilySettings()

    @model_validator(mode="after")
    def _provider_has_what_it_needs(self) -> Self:
        needed: dict[str, tuple[str, object]] = {
            "searxng": ("searxng.url", self.searxng.url),
            "brave": ("brave.api_key", self.brave.api_key),
            "tavily": ("tavily.api_key", self.tavily.api_key),
        }
        name, value = needed.get(self.provider or "", ("", True))
        if not value:
            raise ValueError(f"provider {self.provider!r} needs 'web_search.{name}'")
        if self.provider == "tavily" and self.language is not None:
            raise ValueError("provider 'tavily' has no 'web_search.language'; leave it null")
        return self


class Settings(Section):
    """Every key of settings.yaml."""

    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    limits: LimitSettings = LimitSettings()
    llm: LlmSettings = LlmSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    vectors: VectorSettings = VectorSettings()
    state: StateSettings = StateSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    ingestion: IngestionSettings = IngestionSettings()
    web_search: WebSearchSettings = WebSearchSettings()
    answers: AnswerSettings = AnswerSettings()
    models: Annotated[
        tuple[ModelSettings, ...], Field(min_length=1), AfterValidator(_each_once)
    ] = MODELS

    def secrets(self) -> tuple[str, ...]:
        """Every secret among them, for the log to hide."""
        return tuple(_secrets(self))


def _secrets(section: BaseModel) -> Iterator[str]:
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        elif isinstance(value, BaseModel):
            yield from _secrets(value)
