"""Any LlamaIndex LLM class as a `LanguageModel`, named by its dotted path in the settings.

LlamaIndex has no common account of what a class takes and tells, so it is read off the class:
its fields and its signature say which sampling parameters it takes, `raw` may carry a usage.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, cast

import httpx
import httpx2
import llama_index.core.utils
import openai
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ImageBlock,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms import LLM, CustomLLM
from pydantic import ValidationError

from privategpt.backends.llm.blocking import iterate_in_thread
from privategpt.backends.llm.llamaindex_replies import ReplyReader
from privategpt.backends.llm.timeouts import DEFAULT_TIMEOUTS, Timeouts
from privategpt.backends.llm.wire_errors import translate
from privategpt.domain.answers import GenerationEvent, GenerationFinished
from privategpt.domain.conversation import GenerationRequest, Message, Sampling
from privategpt.domain.errors import (
    EngineFailed,
    EngineTimedOut,
    EngineUnavailable,
    InvalidSettings,
    PrivateGptError,
    UnsupportedParameter,
)

TOKENS_PER_MESSAGE = 4
"""What chat templates put around a turn; LlamaIndex's tokenizers count bare text."""
MAX_BLOCKING_REPLIES = 16
"""Classes that only know blocking calls hold a thread for each reply under way."""

_MAX_TOKENS_NAMES = ("max_tokens", "max_new_tokens", "num_predict", "num_output")
_FAILURES = (
    openai.OpenAIError,
    httpx2.HTTPError,
    httpx.HTTPError,
    OSError,
    ValueError,
    RuntimeError,
)
"""What classes raise where their engine fails, as far as that can be known: most of them speak
HTTP through one of these, or their vendor's client derives its errors from the built-in ones."""
_MAY_BE_IGNORED = frozenset({"logit_bias", "reasoning_effort"})
"""Hints: a reply without them is still what was asked for."""


class LlamaIndexModel:
    """A `LanguageModel` around an LLM object of LlamaIndex."""

    def __init__(
        self,
        *,
        llm: LLM,
        context_tokens: int | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._llm = llm
        self._context_tokens = context_tokens
        self._timeouts = timeouts
        self._threads = ThreadPoolExecutor(MAX_BLOCKING_REPLIES, thread_name_prefix="llamaindex")

    @property
    def name(self) -> str:
        """The model's name as its class tells it, else the class's name."""
        name = self._llm.metadata.model_name
        return name if name and name != "unknown" else self._llm.class_name()

    @property
    def context_tokens(self) -> int:
        """The configured window, else the class's (LlamaIndex says 3,900 where it knows none)."""
        return self._context_tokens or self._llm.metadata.context_window

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[GenerationEvent]:
        """See `LanguageModel.generate`."""
        options = _options(type(self._llm), request)
        reader = ReplyReader(single_call=request.tooling.parallel_tool_calls is False)
        messages = [_chat_message(message) for message in request.messages]
        async with aclosing(self._responses(messages, options)) as responses:
            async for response in responses:
                for event in reader.read(response):
                    yield event
        for call in reader.calls():
            yield call
        prompt = reader.prompt_tokens or await self.count_tokens(request.messages)
        completion = reader.completion_tokens or await self.count_text(reader.written)
        yield GenerationFinished(
            reader.reason(completion, max_tokens=request.sampling.max_tokens),
            reader.usage(prompt_tokens=prompt, completion_tokens=completion),
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """By LlamaIndex's global tokenizer, plus a few tokens for each turn."""
        texts = [
            " ".join([message.text, *(f"{c.name} {c.arguments}" for c in message.tool_calls)])
            for message in messages
        ]
        counted = await asyncio.to_thread(lambda: sum(_count(text) for text in texts))
        return counted + TOKENS_PER_MESSAGE * (len(messages) + 1)

    async def count_text(self, text: str) -> int:
        """By LlamaIndex's global tokenizer."""
        return await asyncio.to_thread(_count, text)

    async def check(self) -> None:
        """LlamaIndex has no question that costs nothing: having been built must do."""

    async def close(self) -> None:
        """Let go of the threads; a blocking call under way ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _responses(
        self, messages: list[ChatMessage], options: Mapping[str, Any]
    ) -> AsyncGenerator[ChatResponse]:
        limit_s = self._timeouts.first_byte_s
        responses: AsyncIterator[ChatResponse] | None = None
        try:
            while True:
                async with asyncio.timeout(limit_s):
                    if responses is None:
                        responses = await self._start(messages, options)
                    response = await anext(responses, None)
                if response is None:
                    return
                limit_s = self._timeouts.between_bytes_s
                yield response
        except _FAILURES as error:
            raise _translated(error) from error
        finally:
            if isinstance(responses, AsyncGenerator):
                await responses.aclose()

    async def _start(
        self, messages: list[ChatMessage], options: Mapping[str, Any]
    ) -> AsyncIterator[ChatResponse]:
        # CustomLLM's own astream_chat runs the blocking one on the event loop.
        own = inspect.unwrap(type(self._llm).astream_chat)
        if own is inspect.unwrap(CustomLLM.astream_chat):  # LlamaIndex wraps each for its traces
            llm = self._llm
            return iterate_in_thread(
                lambda: llm.stream_chat(messages, **options), executor=self._threads
            )
        return await self._llm.astream_chat(messages, **options)


async def load_llamaindex_model(
    dotted_path: str,
    arguments: Mapping[str, Any],
    *,
    context_tokens: int | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> LlamaIndexModel:
    """The class at `dotted_path` (`package.module.Class`), built with `arguments`.

    Raises `InvalidSettings` if there is none, or if it does not take them.
    """
    llm_class = _find_class(dotted_path)
    try:
        # Some classes load weights when they are built.
        llm = await asyncio.to_thread(lambda: llm_class(**arguments))
    except (ValidationError, TypeError, ValueError, OSError, ImportError) as error:
        raise InvalidSettings(
            f"llm.llamaindex_args do not suit {dotted_path!r}: {error}"
        ) from error
    return LlamaIndexModel(llm=llm, context_tokens=context_tokens, timeouts=timeouts)


def _find_class(dotted_path: str) -> type[LLM]:
    module_name, _, class_name = dotted_path.rpartition(".")
    try:
        found: object = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidSettings(
            f"llm.llamaindex_class: there is no {dotted_path!r}; is its package installed?"
        ) from error
    if not (inspect.isclass(found) and issubclass(found, LLM)):
        raise InvalidSettings(f"llm.llamaindex_class: {dotted_path!r} is not a LlamaIndex LLM")
    return found


def _options(llm_class: type[LLM], request: GenerationRequest) -> dict[str, Any]:
    """The keyword arguments for a call; raises `UnsupportedParameter` for what it cannot take."""
    taken = _taken_names(llm_class)
    options: dict[str, Any] = {}
    for name, value in _wanted(request).items():
        names = _MAX_TOKENS_NAMES if name == "max_tokens" else (name,)
        if taken is None:
            options[name] = value
        elif match := next((known for known in names if known in taken), None):
            options[match] = value
        elif name not in _MAY_BE_IGNORED:
            raise UnsupportedParameter(
                f"The language model class {llm_class.__name__!r} does not take {name!r}",
                param=name,
            )
    return options


def _taken_names(llm_class: type[LLM]) -> frozenset[str] | None:
    """What calls of the class take, None for anything.

    Classes with `additional_kwargs` hand every keyword on to their API (all of LlamaIndex's
    HTTP classes do). Others take what they have a field for or name in a signature.
    """
    if "additional_kwargs" in llm_class.model_fields:
        return None
    methods = (llm_class.astream_chat, llm_class.stream_chat, llm_class.stream_complete)
    signatures = (inspect.signature(method).parameters for method in methods)
    return frozenset(llm_class.model_fields).union(*signatures)


def _wanted(request: GenerationRequest) -> dict[str, Any]:
    sampling: Sampling = request.sampling
    tooling = request.tooling
    wanted = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
        "logit_bias": dict(sampling.logit_bias) or None,
        "reasoning_effort": sampling.reasoning_effort,
        "response_format": request.response_format and dict(request.response_format),
        "tools": [dict(tool) for tool in tooling.tools] or None,
        "tool_choice": tooling.tool_choice if tooling.tools else None,
    }
    if sampling.top_logprobs is not None:
        raise UnsupportedParameter(
            "LlamaIndex gives no log probabilities of streamed chats", param="logprobs"
        )
    return {name: value for name, value in wanted.items() if value is not None}


def _chat_message(message: Message) -> ChatMessage:
    blocks: list[Any] = [TextBlock(text=message.text)] if message.text else []
    blocks += [ImageBlock(url=image.url, detail=image.detail) for image in message.images]
    blocks += [
        ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=call.arguments)
        for call in message.tool_calls
    ]
    extra = {"tool_call_id": message.tool_call_id} if message.tool_call_id else {}
    return ChatMessage(role=MessageRole(message.role.value), blocks=blocks, additional_kwargs=extra)


def _count(text: str) -> int:
    # Typed as giving a bare list, which strict checking does not let pass.
    tokenize = cast("Any", llama_index.core.utils).get_tokenizer()
    return len(tokenize(text)) if text else 0


def _translated(error: Exception) -> PrivateGptError:
    match error:
        case openai.OpenAIError() | httpx2.HTTPError():
            return translate(error)
        case TimeoutError() | httpx.TimeoutException():
            return EngineTimedOut("The language model did not answer in time")
        case OSError() | httpx.TransportError():
            return EngineUnavailable("The language model cannot be reached")
        case _:
            kind = cast("type[object]", type(error)).__name__
            return EngineFailed(f"The language model failed ({kind})")
