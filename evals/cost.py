"""`python -m evals.cost`: the time of attribution and verification beside that of the answer.

The engine answers questions of SQuAD 2.0 over six paragraphs, as the server would have it; then
the same deltas are grounded again with the same sources, alone. Both have the machine to
themselves, so the ratio is what grounding adds at most: in the server it runs while the engine
writes. Processor time is given too, for machines that are not quiet.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from evals.folders import EVAL, RESULTS
from evals.models import fetch_qwen
from privategpt.backends.embedding.sentence_transformers import load_sentence_transformers
from privategpt.backends.llm.llama_cpp import start_llama_cpp
from privategpt.backends.llm.timeouts import Timeouts
from privategpt.domain.answers import Source, TextDelta
from privategpt.domain.conversation import GenerationRequest, Message, Role, Sampling
from privategpt.domain.ports import EmbeddingModel, LanguageModel, Vector
from privategpt.grounding.citations import Grounder
from privategpt.grounding.prompt import compose

SOURCES = 6  # the server's default
TOKENS = 200
SEED = 20_26
PATIENT = Timeouts(connect_s=60, first_byte_s=900, between_bytes_s=300)
_ASK_FOR_MORE = "Explain in full sentences all that the sources say about this: "


@dataclass(frozen=True, slots=True)
class Cost:
    """One answer: how long the engine took for it, and how long its grounding.

    `words_s` leaves out the reading of the prompt. `grounding_cpu_s` is of all threads.
    """

    deltas: int
    answer_s: float
    words_s: float
    grounding_s: float
    grounding_cpu_s: float
    citations: int

    @property
    def share(self) -> float:
        """What grounding adds, as a share of the answer's time."""
        return self.grounding_s / self.answer_s


def main(
    engine: Annotated[
        Literal["bundled", "qwen"], typer.Option(help="Which model writes.")
    ] = "qwen",
    answers: Annotated[int, typer.Option(help="How many answers.")] = 5,
) -> None:
    """Measure and write the results."""
    costs = asyncio.run(measure(fetch_qwen() if engine == "qwen" else None, answers))
    results = {
        "engine": engine,
        "sources": SOURCES,
        "max_tokens": TOKENS,
        "median_share_added": round(statistics.median(cost.share for cost in costs), 4),
        "answers": [asdict(cost) for cost in costs],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-cost-{engine}.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    Console().print_json(data=results)


async def measure(model_path: Path | None, answers: int) -> list[Cost]:
    """The cost of each answer, after one that warms both models."""
    embedding = await asyncio.to_thread(load_sentence_transformers)
    llm = await start_llama_cpp(
        model_path=model_path, context_tokens=4096, slots=1, timeouts=PATIENT
    )
    try:
        asked = _questions(answers + 1)
        costs = [await _one(llm, embedding, question, sources) for question, sources in asked]
        return costs[1:]
    finally:
        await llm.close()


def _questions(count: int) -> list[tuple[str, list[Source]]]:
    """A question with its paragraph and others of the same article."""
    texts = {row["_id"]: row for row in _rows("corpus.jsonl")}
    answerable = [row for row in _rows("qa.jsonl") if row["answerable"]]
    chosen = random.Random(SEED).sample(answerable, count)  # noqa: S311 - a sample, no secret
    return [(row["question"], _sources(texts, row["doc_id"])) for row in chosen]


def _sources(texts: dict[str, dict[str, Any]], doc_id: str) -> list[Source]:
    title = texts[doc_id]["title"]
    others = [one for one, row in texts.items() if row["title"] == title and one != doc_id]
    places = [doc_id, *others][:SOURCES]
    return [
        Source(
            number=number,
            title=title,
            text=texts[place]["text"],
            document=None,
            start=0,
            end=len(texts[place]["text"]),
        )
        for number, place in enumerate(places, 1)
    ]


def _rows(name: str) -> list[dict[str, Any]]:
    text = (EVAL / "squad2" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line]


async def _one(
    llm: LanguageModel, embedding: EmbeddingModel, question: str, sources: Sequence[Source]
) -> Cost:
    messages = compose([Message(Role.USER, _ASK_FOR_MORE + question)], sources)
    request = GenerationRequest(messages, Sampling(max_tokens=TOKENS, temperature=0, seed=1))
    deltas: list[str] = []
    begun = first = time.perf_counter()
    async with aclosing(llm.generate(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                first = first if deltas else time.perf_counter()
                deltas.append(event.text)
    ended = time.perf_counter()

    async def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return (await embedding.embed_passages(texts)).vectors

    cpu, started = time.process_time(), time.perf_counter()
    grounder = Grounder(sources, embed)
    for delta in deltas:
        await grounder.feed(delta)
    grounding = await grounder.finish()
    return Cost(
        deltas=len(deltas),
        answer_s=ended - begun,
        words_s=ended - first,
        grounding_s=time.perf_counter() - started,
        grounding_cpu_s=time.process_time() - cpu,
        citations=len(grounding.citations),
    )


if __name__ == "__main__":
    typer.run(main)
