"""A server for Anthropic's clients: the real app on a socket, over a model that plays a script."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from privategpt.api.deps import ApiOptions
from privategpt.api.profiles import ModelCatalog, ModelProfile
from privategpt.backends.parsers.workers import WorkerParser
from privategpt.domain.answers import (
    FinishReason,
    GenerationFinished,
    ReasoningDelta,
    ToolCallDelta,
    Usage,
)
from privategpt.domain.conversation import GenerationRequest, Role
from tests.fakes.language_model import ScriptedLanguageModel, Step
from tests.fakes.serving import served
from tests.fakes.websearch import FORECAST, LISBON, FakeSearchEngine
from tests.fakes.wired import WiredLibrary
from tests.fakes.wired_app import WiredApp

THINKING_MODEL = "claude-opus-of-the-tests"
"""llm-comply asks for thoughts where a model is called so."""

READ = "Herons hunt at dawn [1]. The tower is 42 metres tall [2]."
OPINION = "I think it rains."


def speak(request: GenerationRequest) -> Iterable[Step]:
    """What the model says: a call where it has tools, else from what it was given."""
    if request.tooling.tools and request.tooling.tool_choice != "none":
        yield ToolCallDelta(0, id="call_1", name="look_up")
        yield ToolCallDelta(0, arguments='{"word": ')
        yield ToolCallDelta(0, arguments='"heron"}')
        yield GenerationFinished(FinishReason.TOOL_CALLS, Usage(9, 4))
        return
    given = "".join(m.text for m in request.messages if m.role is Role.SYSTEM)
    said = FORECAST if "Lisbon" in given else READ if "Herons" in given else OPINION
    yield ReasoningDelta("Let me see.")
    yield from (word + " " for word in said.split(" ")[:-1])
    yield said.split(" ")[-1]


def write_pdf(path: Path) -> None:
    """A PDF whose second page is empty and whose third speaks of a tower."""
    canvas = Canvas(str(path))
    canvas.drawString(72, 720, "A guide to towers.")
    canvas.showPage()
    canvas.showPage()
    canvas.drawString(72, 720, "The tower is 42 metres tall.")
    canvas.showPage()
    canvas.save()


@contextmanager
def anthropic_server(folder: Path) -> Generator[str]:
    """Its address, as Anthropic's SDKs take it: without /v1."""
    library = WiredLibrary(
        folder=folder,
        llm=ScriptedLanguageModel(script=speak),
        search_engine=FakeSearchEngine(LISBON),
        searches_per_day=1000,
    )
    models = ModelCatalog(
        profiles=(ModelProfile(id="private-gpt"), ModelProfile(id=THINKING_MODEL))
    )
    parser = WorkerParser(workers=1, timeout_s=60, memory_bytes=2_000_000_000, max_pages=100)
    with served(
        WiredApp(library, models=models, parser=parser), ApiOptions(heartbeat_s=0.05)
    ) as url:
        yield url
