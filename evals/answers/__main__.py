"""`python -m evals.answers --engine qwen`: questions of SQuAD 2.0 through our whole application.

Half of the questions are unanswerable; the library is the paragraphs of ../shared/eval/squad2 (or
PRIVATEGPT_EVAL), or with `--documents articles` the articles that they are of. Every reply of the
model is kept as it comes, so an interrupted run goes on where it stopped, and a change of what is
made of the replies is measured in seconds. The scores are written to evals/results.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import httpx
import typer
from rich.console import Console
from rich.progress import track

from evals.answers.documents import Documents, Grouping, Row, documents
from evals.answers.neighbours import WithNeighbours
from evals.answers.orders import Order, OrderedPrompt
from evals.answers.scores import Outcome, Scores, score
from evals.folders import CACHE, EVAL, RESULTS
from evals.models import fetch_qwen
from evals.recorded import RecordedModel
from privategpt import wiring
from privategpt.app import create_app
from privategpt.backends.llm.llama_cpp import start_llama_cpp
from privategpt.backends.llm.timeouts import Timeouts
from privategpt.domain.ports import LanguageModel
from privategpt.services import answering, prompting
from privategpt.settings import load_settings

SEED = 20_26
WINDOW = 4096
FIRST_BYTE_S = 600.0

_console = Console()


def main(
    *,
    engine: Annotated[str, typer.Option(help="bundled, qwen, or what serves at --base-url.")],
    base_url: Annotated[str | None, typer.Option(help="A running server to ask.")] = None,
    questions: Annotated[int, typer.Option(help="How many.")] = 200,
    unanswerable: Annotated[bool, typer.Option(help="Half of them cannot be answered.")] = True,
    half: Annotated[str, typer.Option(help="tune: to choose thresholds on; report: the rest.")] = (
        "report"
    ),
    context_only: Annotated[bool, typer.Option(help="Answer from the documents or not.")] = True,
    temperature: Annotated[float, typer.Option(help="Of the model, 0 to 2.")] = 0.0,
    threads: Annotated[
        int | None, typer.Option(help="Of the engine; none: all processors.")
    ] = None,
    order: Annotated[
        Order, typer.Option(help="Where in the prompt the best sources stand.")
    ] = Order.BEST_FIRST,
    context_tokens: Annotated[
        int | None, typer.Option(help="Of sources in a prompt; none: as shipped.")
    ] = None,
    grouping: Annotated[
        Grouping, typer.Option("--documents", help="What a file of the library is.")
    ] = Grouping.PARAGRAPHS,
    neighbours: Annotated[
        int, typer.Option(help="Chunks before and after each that the model reads too.")
    ] = 0,
    show: Annotated[bool, typer.Option(help="Print every answer.")] = False,
) -> None:
    """Ingest the library if it is not there, ask, score."""
    if base_url is not None and (order is not Order.BEST_FIRST or context_tokens or neighbours):
        raise typer.BadParameter("a server at --base-url makes its prompts itself")
    CACHE.mkdir(exist_ok=True)
    chosen = _questions(half, questions, unanswerable=unanswerable)
    library = documents(_rows("corpus.jsonl"), grouping)

    async def run() -> list[Outcome]:
        data_dir = CACHE / f"squad2-{grouping}"
        async with _client(engine, base_url, threads, context_tokens, data_dir) as client:
            await _ingest(client, library)
            with (
                patch.object(prompting, "compose", OrderedPrompt(order)),
                patch.object(answering, "number_sources", WithNeighbours(neighbours)),
            ):
                return [
                    await _ask(
                        client,
                        question,
                        library,
                        context_only=context_only,
                        temperature=temperature,
                    )
                    for question in track(chosen, description="Asking", console=_console)
                ]

    outcomes = asyncio.run(run())
    if show:
        for outcome in outcomes:
            _console.print_json(data=asdict(outcome))
    _write(
        score(outcomes),
        engine=engine,
        half=half,
        unanswerable=unanswerable,
        context_only=context_only,
        temperature=temperature,
        order=order,
        context_tokens=context_tokens,
        documents=grouping,
        neighbours=neighbours,
    )


@asynccontextmanager
async def _client(
    engine: str,
    base_url: str | None,
    threads: int | None,
    context_tokens: int | None,
    data_dir: Path,
) -> AsyncGenerator[httpx.AsyncClient]:
    """Of the server at `base_url`, or of our application in this process."""
    async with AsyncExitStack() as stack:
        transport = None
        if base_url is None:
            path = {"bundled": lambda: None, "qwen": fetch_qwen}[engine]()

            async def start() -> LanguageModel:
                return await start_llama_cpp(
                    model_path=path,
                    context_tokens=WINDOW,
                    slots=1,
                    threads=threads or os.cpu_count(),
                    timeouts=Timeouts(first_byte_s=FIRST_BYTE_S, between_bytes_s=FIRST_BYTE_S),
                )

            async def recorded(_: object) -> LanguageModel:
                file = CACHE / f"replies-{engine}.sqlite"
                return RecordedModel(file=file, start=start, context_tokens=WINDOW)

            stack.enter_context(patch.object(wiring, "start_llm", recorded))
            environ = {"PRIVATEGPT_DATA_DIR": str(data_dir)}
            if context_tokens is not None:
                environ["PRIVATEGPT_RETRIEVAL__CONTEXT_TOKENS"] = str(context_tokens)
            settings = load_settings(environ)
            opened = await stack.enter_async_context(wiring.open_server(settings))
            app = create_app(opened.services, options=opened.options, metrics=opened.metrics)
            transport = httpx.ASGITransport(app)
        yield await stack.enter_async_context(
            httpx.AsyncClient(
                transport=transport,
                base_url=base_url or "http://privategpt.test",
                timeout=FIRST_BYTE_S,
                trust_env=False,
            )
        )


def _rows(name: str) -> list[Row]:
    text = (EVAL / "squad2" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line]


async def _ingest(client: httpx.AsyncClient, library: Documents) -> None:
    for file in track(list(library.files()), description="Ingesting", console=_console):
        reply = await client.post(
            "/v1/ingest",
            files={"file": (file.name, file.text.encode(), "text/plain")},
            data={"metadata": json.dumps(file.metadata)},
        )
        reply.raise_for_status()


def _questions(half: str, count: int, *, unanswerable: bool) -> list[Row]:
    """A fixed sample: even places are for tuning, odd ones for the report."""
    rows = _rows("qa.jsonl")
    random.Random(SEED).shuffle(rows)  # noqa: S311 - a sample, not a secret
    mine = rows[0::2] if half == "tune" else rows[1::2]
    without = [row for row in mine if not row["answerable"]][: count // 2 if unanswerable else 0]
    return [row for row in mine if row["answerable"]][: count - len(without)] + without


async def _ask(
    client: httpx.AsyncClient,
    question: Row,
    library: Documents,
    *,
    context_only: bool,
    temperature: float,
) -> Outcome:
    started = time.perf_counter()
    reply = await client.post(
        "/v1/chat/completions",
        json={
            "model": "private-gpt",
            "messages": [{"role": "user", "content": question["question"]}],
            "use_context": True,
            "context_only": context_only,
            "citation_style": ["chunks", "citations"],
            "temperature": temperature,
            "seed": 1,
            "max_tokens": 120,
        },
    )
    reply.raise_for_status()
    body = reply.json()
    choice = body["choices"][0]
    return Outcome(
        question_id=question["id"],
        answerable=question["answerable"],
        paragraph=question["doc_id"],
        gold=tuple(question["answers"]),
        answer=choice["message"]["content"] or "",
        cited=tuple(
            paragraph
            for citation in body.get("citations") or ()
            for paragraph in library.cited(citation)
        ),
        retrieved=tuple(
            paragraph for source in choice["sources"] or () for paragraph in library.read(source)
        ),
        grounded=bool(body.get("grounded")),
        seconds=time.perf_counter() - started,
    )


def _write(scores: Scores, **settings: Any) -> None:
    RESULTS.mkdir(exist_ok=True)
    today = datetime.now(UTC).date().isoformat()
    result = {"eval": "answers", "date": today, **settings, "scores": asdict(scores)}
    name = f"{today}-answers-{settings['engine']}-{settings['half']}"
    if settings["order"] is not Order.BEST_FIRST:
        name = f"{name}-{settings['order']}"
    if settings["context_tokens"] is not None:
        name = f"{name}-{settings['context_tokens']}"
    if settings["documents"] is not Grouping.PARAGRAPHS:
        name = f"{name}-{settings['documents']}"
    if settings["neighbours"]:
        name = f"{name}-neighbours-{settings['neighbours']}"
    if not settings["unanswerable"]:
        name = f"{name}-answerable"
    if not settings["context_only"]:
        name = f"{name}-free"
    if settings["temperature"]:
        name = f"{name}-temperature-{settings['temperature']}"
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    _console.print_json(data=result)


if __name__ == "__main__":
    typer.run(main)
