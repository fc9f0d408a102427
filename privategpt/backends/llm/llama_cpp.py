"""The embedded engine: llama.cpp in a child process, watched and restarted.

To us it is one more OpenAI-compatible server, one that we start ourselves. So a crash of native
code costs the answers under way and not the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from privategpt.backends.llm import bundled_model
from privategpt.backends.llm.llama_process import LlamaOptions, LlamaProcess, start_process
from privategpt.backends.llm.openai_compatible import OpenAICompatibleModel
from privategpt.backends.llm.timeouts import DEFAULT_TIMEOUTS, Timeouts
from privategpt.domain.answers import GenerationEvent
from privategpt.domain.conversation import GenerationRequest, Message, Sampling
from privategpt.domain.errors import EngineUnavailable, InvalidSettings, Unavailable

logger = logging.getLogger(__name__)

DEFAULT_CONTEXT_TOKENS = 8192
"""Each slot's window where none is set: what SmolLM2 was trained on, and 190 MB of it. Models
trained on more would take gigabytes."""
DEFAULT_TEMPERATURE = 0.2
"""As SmolLM2's authors advise. llama.cpp's own .8 makes small models invent what no source says."""
REPLY_SHARE = 4
"""A reply without a bound of its own ends after a quarter of the window: small models can repeat
themselves for ever, and would hold a slot as long."""
RESTART_WAIT_S = 5.0
"""How long a request waits for an engine that is being restarted."""
LONGEST_PAUSE_S = 30.0
STABLE_AFTER_S = 60.0
"""An engine that lived so long is restarted at once when it dies."""

Launch = Callable[[], Awaitable[LlamaProcess]]


class LlamaCppModel:
    """A `LanguageModel` served by a llama.cpp that belongs to us; see `start_llama_cpp`."""

    def __init__(
        self,
        *,
        options: LlamaOptions,
        launch: Launch,
        temperature: float,
        timeouts: Timeouts,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        restart_wait_s: float = RESTART_WAIT_S,
    ) -> None:
        self._options = options
        self._launch = launch
        self._temperature = temperature
        self._timeouts = timeouts
        self._pause = pause
        self._clock = clock
        self._restart_wait_s = restart_wait_s
        self._process: LlamaProcess | None = None
        self._served: OpenAICompatibleModel | None = None
        self._serving = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self._context_tokens = options.context_tokens

    @property
    def name(self) -> str:
        """The model file's name without its ending."""
        return self._options.alias

    @property
    def context_tokens(self) -> int:
        """One slot's window, as the engine reports it."""
        return self._context_tokens

    @property
    def process_id(self) -> int | None:
        """The child's process id, None while there is none."""
        return self._process.process_id if self._serving.is_set() and self._process else None

    async def start(self) -> None:
        """Load the model; raises `Unavailable` if the engine does not come up."""
        await self._serve()
        self._watcher = asyncio.create_task(self._watch(), name="llama.cpp watcher")

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[GenerationEvent]:
        """See `LanguageModel.generate`."""
        served = await self._current()
        async with aclosing(served.generate(request)) as events:
            async for event in events:
                yield event

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """By the model's own template and tokenizer."""
        return await (await self._current()).count_tokens(messages)

    async def count_text(self, text: str) -> int:
        """By the model's own tokenizer."""
        return await (await self._current()).count_text(text)

    async def check(self) -> None:
        """Return if the engine answers now; see `LanguageModel.check`."""
        if self._served is None or not self._serving.is_set():
            raise EngineUnavailable("The embedded engine is being restarted", retry_after_s=1)
        await self._served.check()

    async def close(self) -> None:
        """Stop the engine; answers under way break off."""
        if self._watcher is not None:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
        await self._withdraw()

    async def _current(self) -> OpenAICompatibleModel:
        try:
            async with asyncio.timeout(self._restart_wait_s):
                await self._serving.wait()
        except TimeoutError as error:
            raise EngineUnavailable(
                "The embedded engine is being restarted", retry_after_s=5
            ) from error
        assert self._served is not None  # noqa: S101 - set before the event is
        return self._served

    async def _serve(self) -> None:
        self._process = await self._launch()
        self._served = OpenAICompatibleModel(
            base_url=f"{self._process.url}/v1",
            model=self._options.alias,
            api_key=self._process.api_key,
            defaults=Sampling(
                max_tokens=self._options.context_tokens // REPLY_SHARE,
                temperature=self._temperature,
            ),
            timeouts=self._timeouts,
        )
        try:
            await self._served.learn()
        except Unavailable:
            await self._withdraw()
            raise
        self._context_tokens = self._served.context_tokens
        self._serving.set()

    async def _withdraw(self) -> None:
        """Take the engine out of service, and what is left of it."""
        self._serving.clear()
        if self._served is not None:
            await self._served.close()
        if self._process is not None:
            await self._process.stop()
        self._served = self._process = None

    async def _watch(self) -> None:
        """Restart the engine whenever it dies, pausing longer each time it fails to last."""
        pause_s = 0.0
        while True:
            started = self._clock()
            if self._process is not None:
                status = await self._process.wait()
                logger.error("The embedded engine died (exit status %s); restarting it", status)
            await self._withdraw()
            lasted = self._clock() - started >= STABLE_AFTER_S
            pause_s = 0.0 if lasted else pause_s
            await self._pause(pause_s)
            pause_s = min(LONGEST_PAUSE_S, max(0.5, 2 * pause_s))
            try:
                await self._serve()
            except Unavailable as error:
                logger.error("The embedded engine could not be restarted: %s", error.message)  # noqa: TRY400
            else:
                logger.info("The embedded engine is back")


async def start_llama_cpp(
    *,
    model_path: Path | None = None,
    context_tokens: int | None = None,
    slots: int = 2,
    threads: int | None = None,
    temperature: float | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> LlamaCppModel:
    """A running embedded engine; `model_path` is a GGUF file, None for the bundled model.

    `temperature` (0–2) is that of requests that name none; None for `DEFAULT_TEMPERATURE`.

    Without `threads`, prompts are read by all processors and replies written by all but one,
    which is left to this process. llama.cpp's threads wait for each other in a busy loop at every
    layer, so that all wait where one of them shares its processor: on two busy cores two threads
    wrote 1–4 tokens a second, one thread 20.

    Raises `InvalidSettings` if there is no such file or llama.cpp cannot load it.
    """
    if model_path is not None and not await asyncio.to_thread(model_path.is_file):
        raise InvalidSettings(f"llm.model_path: there is no file {str(model_path)!r}")
    found = model_path
    if found is None:
        found = await asyncio.to_thread(bundled_model.locate_bundled_model)
    options = LlamaOptions(
        model_path=found,
        alias=model_path.stem if model_path else bundled_model.NAME,
        context_tokens=context_tokens or DEFAULT_CONTEXT_TOKENS,
        slots=slots,
        threads=threads or max(1, processors() - 1),
        prompt_threads=threads or processors(),
    )
    model = LlamaCppModel(
        options=options,
        launch=lambda: start_process(options),
        temperature=DEFAULT_TEMPERATURE if temperature is None else temperature,
        timeouts=timeouts,
    )
    try:
        await model.start()
    except Unavailable as error:
        await model.close()
        raise InvalidSettings(
            f"Setting 'llm.model_path': the embedded engine cannot serve "
            f"{options.model_path.name!r}: {error.message}"
        ) from error
    return model


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
