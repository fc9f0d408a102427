"""The operator's choices: settings.yaml, profiles over it, environment variables over both.

Read once by `wiring`; nothing else looks at the environment. Unknown keys are refused.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from privategpt.domain.errors import InvalidSettings

PREFIX = "PRIVATEGPT_"
DEFAULT_FOLDER = Path(__file__).parent.parent

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A group of keys; whatever is not one of them is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Section):
    """Where the server listens and what it accepts."""

    host: str = "127.0.0.1"
    port: Port = 8001
    allow_open_bind: bool = False
    data_dir: Path = Path("local_data")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["console", "json"] = "console"
    traces_url: str | None = None
    max_upload_bytes: Count = 100_000_000
    max_body_bytes: Count = 20_000_000
    body_grace_s: Seconds = 30.0
    shutdown_grace_s: Seconds = 10.0
    heartbeat_s: Seconds = 15.0
    dialect: Literal["auto", "openai", "privategpt"] = "auto"
    public_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    cors_origins: tuple[str, ...] = ()


class AuthSettings(Section):
    """Whether requests need a key."""

    enabled: Literal["auto"] | bool = "auto"


class TenantLimits(Section):
    """How much one tenant may have; None leaves what holds for all."""

    requests_per_minute: Count | None = None
    answers_at_once: Count | None = None
    stored_bytes: Count | None = None
    searches_per_day: Annotated[int, Field(ge=0)] | None = None


class LimitSettings(Section):
    """How much every tenant may have, None being without limit, and whom other limits hold for."""

    requests_per_minute: Count | None = None
    answers_at_once: Count | None = None
    stored_bytes: Count | None = None
    tenants: dict[str, TenantLimits] = Field(default_factory=dict[str, TenantLimits])


class LlmSettings(Section):
    """Which language model writes the answers."""

    mode: Literal["embedded", "openai", "llamaindex"] = "embedded"
    model: str | None = None
    model_path: Path | None = None
    context_tokens: Annotated[int, Field(ge=512)] | None = None
    slots: Count = 2
    threads: Count | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    llamaindex_class: str | None = None
    llamaindex_args: dict[str, Any] = Field(default_factory=dict[str, Any])
    remote_images: bool = False
    max_waiting: Count = 256
    first_byte_timeout_s: Seconds = 120.0
    between_bytes_timeout_s: Seconds = 60.0
    connect_timeout_s: Seconds = 5.0


class EmbeddingSettings(Section):
    """Which model turns text into vectors."""

    mode: Literal["embedded", "openai", "llamaindex"] = "embedded"
    model: str | None = None
    query_prompt: str | None = None
    passage_prompt: str | None = None
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    batch_size: Count = 32
    threads: Count | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    dimensions: Count | None = None
    max_tokens: Count | None = None
    llamaindex_class: str | None = None
    llamaindex_args: dict[str, Any] = Field(default_factory=dict[str, Any])
    timeout_s: Seconds = 60.0


def _off(mode: object) -> object:
    """YAML reads a bare `off` as false."""
    return "off" if mode is False else mode


class RerankSettings(Section):
    """Which model reads question and passage together, to order what was found; none by default."""

    mode: Annotated[Literal["off", "sentence_transformers", "openai"], BeforeValidator(_off)] = (
        "off"
    )
    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    candidates: Annotated[int, Field(ge=1, le=1000)] = 50
    batch_size: Count = 16
    timeout_s: Seconds = 60.0


class VectorSettings(Section):
    """Where vectors are kept."""

    mode: Literal["embedded", "server"] = "embedded"
    url: str | None = None
    api_key: SecretStr | None = None
    collection: str = "privategpt"
    prefer_grpc: bool = True
    timeout_s: Seconds = 10.0
    quantization: Literal["auto", "none", "int8", "turbo", "binary"] = "auto"


class StateSettings(Section):
    """Where files, documents and their text are kept."""

    url: SecretStr | None = None


class RetrievalSettings(Section):
    """How context is found for an answer."""

    candidates: Annotated[int, Field(ge=1, le=1000)] = 100
    context_chunks: Annotated[int, Field(ge=1, le=50)] = 6
    context_tokens: Annotated[int, Field(ge=1)] | None = None


class IngestionSettings(Section):
    """How files become chunks."""

    workers: Count = 1
    parse_timeout_s: Seconds = 120.0
    parse_memory_bytes: Count = 1_500_000_000
    max_pages: Count = 10_000
    ocr: Literal["auto", "off"] = "auto"
    ocr_languages: Annotated[tuple[str, ...], Field(min_length=1)] = ("eng",)
    ocr_page_timeout_s: Seconds = 30.0
    max_jobs: Count = 1000
    max_jobs_bytes: Count = 10_000_000_000
    keep_jobs_days: Count = 7


Style = Literal["chunks", "citations", "annotations"]


class AnswerSettings(Section):
    """How answers show what they rest on."""

    citation_style: tuple[Style, ...] = ("chunks",)
    remove_foreign_links: bool = True
    unknown_model: Literal["refuse", "default"] = "refuse"
    verifier: Literal["support", "cross_encoder", "judge"] = "support"
    verifier_model: str | None = None


class ModelSettings(Section):
    """A model id and what it switches on, for front ends that cannot send our fields.

    `citation_style` None is that of `answers`.
    """

    id: Annotated[str, Field(min_length=1)]
    use_context: bool = False
    citation_style: tuple[Style, ...] | None = None
    context_only: bool = False
    web_search: bool = False
    system_prompt: str | None = None


MODELS = (
    ModelSettings(id="private-gpt"),
    ModelSettings(id="private-gpt-docs", use_context=True, citation_style=("annotations",)),
)


class SearxngSettings(Section):
    """The operator's own SearXNG server."""

    url: str | None = None


class BraveSettings(Section):
    """The account at Brave Search."""

    api_key: SecretStr | None = None


class TavilySettings(Section):
    """The account at Tavily."""

    api_key: SecretStr | None = None


class WebSearchSettings(Section):
    """Which search engine answers `web_search: true`, and how often."""

    provider: Literal["searxng", "brave", "tavily", "ddgs"] | None = None
    searches_per_day: Annotated[int, Field(ge=0)] = 1000
    results: Annotated[int, Field(ge=1, le=20)] = 5
    deadline_s: Seconds = 5.0
    max_bytes: Count = 1_000_000
    language: str | None = None
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
    models: Annotated[tuple[ModelSettings, ...], Field(min_length=1)] = MODELS

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


def load_settings(
    environ: Mapping[str, str] | None = None, *, folder: Path = DEFAULT_FOLDER
) -> Settings:
    """Read settings.yaml in `folder`, the profiles of PRIVATEGPT_PROFILES over it (from
    PRIVATEGPT_SETTINGS_FOLDER, else from `folder`), and PRIVATEGPT_SECTION__KEY over both.

    Raises `InvalidSettings`, naming the key and the nearest one that exists.
    """
    environ = os.environ if environ is None else environ
    tree = _read_yaml(folder / "settings.yaml", required=False)
    profile_folder = Path(environ.get(f"{PREFIX}SETTINGS_FOLDER", str(folder)))
    for profile in environ.get(f"{PREFIX}PROFILES", "").split(","):
        if profile.strip():
            path = profile_folder / f"settings-{profile.strip()}.yaml"
            tree = _merge(tree, _read_yaml(path, required=True))
    for keys, value in _environment_overrides(environ):
        tree = _merge(tree, _nest(keys, value))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise InvalidSettings(_explain(error)) from error


def _read_yaml(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if required:
            raise InvalidSettings(f"Settings file {path.name!r} does not exist") from error
        return {}
    except yaml.YAMLError as error:
        raise InvalidSettings(f"Settings file {path.name!r} is not YAML: {error}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise InvalidSettings(f"Settings file {path.name!r} must be a mapping of sections")
    return cast("dict[str, Any]", loaded)


def _environment_overrides(environ: Mapping[str, str]) -> Iterator[tuple[list[str], Any]]:
    if data_dir := environ.get(f"{PREFIX}DATA_DIR"):
        yield ["server", "data_dir"], data_dir
    for name in sorted(environ):
        if name.startswith(PREFIX) and "__" in name:
            keys = name.removeprefix(PREFIX).lower().split("__")
            yield keys, yaml.safe_load(environ[name])


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return cast("dict[str, Any]", value)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _merge(cast("dict[str, Any]", old), cast("dict[str, Any]", value))
        else:
            merged[key] = value
    return merged


def _explain(error: ValidationError) -> str:
    lines: list[str] = []
    for problem in error.errors(include_input=False, include_url=False):
        location = [str(part) for part in problem["loc"]]
        name = ".".join(location)
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(name, list(_all_keys(Settings)), n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            lines.append(f"Unknown setting {name!r}{hint}")
        else:
            lines.append(f"Setting {name!r}: {problem['msg']}")
    return "\n".join(lines)


def _all_keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _all_keys(field.annotation, f"{prefix}{name}.")
