"""What an OpenAI-compatible server tells of itself, beyond OpenAI's protocol.

llama.cpp has GET /props, POST /apply-template and POST /tokenize; vLLM has `max_model_len` in
GET /v1/models and a POST /tokenize of its own. Others tell a part of it, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, cast

from privategpt.domain.errors import EngineFailed, InvalidRequest

JsonMap = Mapping[str, Any]


class Dialect(StrEnum):
    """Whose extra endpoints a server has."""

    LLAMA_CPP = "llama.cpp"
    VLLM = "vllm"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What is known of an engine; None is not told."""

    dialect: Dialect = Dialect.PLAIN
    model: str | None = None
    context_tokens: int | None = None
    supports_tools: bool | None = None
    supports_images: bool | None = None


class Caller(Protocol):
    """Calls one endpoint and returns its JSON, None if there is none; raises the domain's errors.

    `path` beginning with "/" is below the server's root, else below its /v1.
    """

    async def __call__(self, path: str, body: JsonMap | None = None) -> object: ...


async def learn_facts(call: Caller, *, model: str | None) -> EngineFacts:
    """Ask the server what it is; `model` is the configured one, None for the first it lists.

    Raises `EngineUnavailable` or `EngineTimedOut` if it cannot be reached, and `EngineFailed` if
    it refuses our key.
    """
    entry = _entry(await _list_models(call), model)
    name = model or _str(entry, "id")
    props = await _optional(call, "/props")
    settings = _map(props.get("default_generation_settings"))
    if _int(settings, "n_ctx") is not None:
        return EngineFacts(
            dialect=Dialect.LLAMA_CPP,
            # Without an alias llama.cpp calls a model by its path, which is nobody's business.
            model=name and name.rsplit("/", 1)[-1],
            context_tokens=_int(settings, "n_ctx"),
            supports_tools=_bool(_map(props.get("chat_template_caps")), "supports_tools"),
            supports_images=_bool(_map(props.get("modalities")), "vision"),
        )
    meta = _map(entry.get("meta"))
    window = (
        _int(entry, "max_model_len")
        or _int(entry, "context_length")
        or _int(entry, "context_window")
        or _int(meta, "n_ctx")
        or _int(meta, "n_ctx_train")
    )
    dialect = Dialect.VLLM if _int(entry, "max_model_len") else Dialect.PLAIN
    return EngineFacts(dialect=dialect, model=name, context_tokens=window)


async def count_prompt(
    call: Caller, facts: EngineFacts, *, messages: Sequence[JsonMap], model: str
) -> int | None:
    """Tokens of the prompt that `messages` (in OpenAI's shape) become; None if it does not say."""
    if facts.dialect is Dialect.LLAMA_CPP:
        templated = await _optional(call, "/apply-template", {"messages": messages})
        prompt = _str(templated, "prompt")
        return None if prompt is None else await count_text(call, facts, text=prompt, model=model)
    if facts.dialect is Dialect.VLLM:
        counted = await _optional(call, "/tokenize", {"model": model, "messages": messages})
        return _int(counted, "count")
    return None


async def count_text(call: Caller, facts: EngineFacts, *, text: str, model: str) -> int | None:
    """Tokens of `text`, read as llama.cpp reads a prompt; None if the engine does not say."""
    if facts.dialect is Dialect.LLAMA_CPP:
        body = {"content": text, "add_special": True, "parse_special": True}
        tokens = (await _optional(call, "/tokenize", body)).get("tokens")
        return len(cast("list[object]", tokens)) if isinstance(tokens, list) else None
    if facts.dialect is Dialect.VLLM:
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        return _int(await _optional(call, "/tokenize", body), "count")
    return None


async def _list_models(call: Caller) -> Sequence[object]:
    data = _map(await call("models")).get("data")
    return cast("Sequence[object]", data) if isinstance(data, list) else ()


def _entry(models: Sequence[object], wanted: str | None) -> JsonMap:
    entries = [_map(model) for model in models]
    for entry in entries:
        if wanted is None or entry.get("id") == wanted:
            return entry
    # llama.cpp serves its one model under whatever name is asked for.
    return entries[0] if len(entries) == 1 else {}


async def _optional(call: Caller, path: str, body: JsonMap | None = None) -> JsonMap:
    """The answer of an endpoint that a server need not have; empty if it has not."""
    try:
        return _map(await call(path, body))
    except (EngineFailed, InvalidRequest):
        return {}


def _map(value: object) -> JsonMap:
    return cast("JsonMap", value) if isinstance(value, Mapping) else {}


def _int(fields: JsonMap, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) and value > 0 else None


def _bool(fields: JsonMap, key: str) -> bool | None:
    value = fields.get(key)
    return value if isinstance(value, bool) else None


def _str(fields: JsonMap, key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) and value else None
