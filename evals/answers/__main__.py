"""`python -m evals.answers --engine qwen`: questions of SQuAD 2.0 through a server of our own.

Half of the questions are unanswerable; the library is the paragraphs of ../shared/eval/squad2 (or
PRIVATEGPT_EVAL). Every answer is appended to a file as it comes, so an interrupted run goes on
where it stopped. The scores are written to evals/results.
"""

from __future__ import annotations

import json
import random
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.progress import track

from evals.answers.scores import Outcome, Scores, score
from evals.folders import CACHE, EVAL, RESULTS
from evals.models import fetch_qwen
from evals.serving import server

SEED = 20_26
URL = "https://squad.example/"

_console = Console()


def main(
    engine: Annotated[str, typer.Option(help="bundled, qwen, or what serves at --base-url.")],
    base_url: Annotated[str | None, typer.Option(help="A running server to ask.")] = None,
    questions: Annotated[int, typer.Option(help="How many, half of them unanswerable.")] = 200,
    half: Annotated[str, typer.Option(help="tune: to choose thresholds on; report: the rest.")] = (
        "report"
    ),
    context_only: Annotated[bool, typer.Option(help="Answer from the documents or not.")] = True,
) -> None:
    """Ingest the paragraphs if they are not there, ask, record, score."""
    CACHE.mkdir(exist_ok=True)
    with (
        _server(engine, base_url) as url,
        httpx.Client(base_url=url, timeout=900, trust_env=False) as client,
    ):
        _ingest(client)
        record = CACHE / f"answers-{engine}-{half}.jsonl"
        done = _recorded(record)
        chosen = _questions(half, questions)
        with record.open("a", encoding="utf-8") as opened:
            for question in track(chosen, description="Asking", console=_console):
                if question["id"] not in done:
                    outcome = _ask(client, question, context_only=context_only)
                    done[outcome.question_id] = outcome
                    opened.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
                    opened.flush()
    outcomes = [done[question["id"]] for question in chosen]
    _write(score(outcomes), engine=engine, half=half, context_only=context_only)


def _server(engine: str, base_url: str | None) -> AbstractContextManager[str]:
    if base_url is not None:
        return nullcontext(base_url)
    model = {"bundled": lambda: None, "qwen": fetch_qwen}[engine]()
    return server(CACHE / "squad2-library", model_path=model)


def _rows(name: str) -> list[dict[str, Any]]:
    text = (EVAL / "squad2" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line]


def _ingest(client: httpx.Client) -> None:
    for row in track(_rows("corpus.jsonl"), description="Ingesting", console=_console):
        metadata = json.dumps({"title": row["title"], "url": URL + row["_id"]})
        name = row["_id"].replace("#", "-") + ".txt"
        client.post(
            "/v1/ingest",
            files={"file": (name, row["text"].encode(), "text/plain")},
            data={"metadata": metadata},
        ).raise_for_status()


def _questions(half: str, count: int) -> list[dict[str, Any]]:
    """A fixed sample: even places are for tuning, odd ones for the report."""
    rows = _rows("qa.jsonl")
    random.Random(SEED).shuffle(rows)  # noqa: S311 - a sample, not a secret
    mine = rows[0::2] if half == "tune" else rows[1::2]
    answerable = [row for row in mine if row["answerable"]][: count // 2]
    unanswerable = [row for row in mine if not row["answerable"]][: count // 2]
    return answerable + unanswerable


def _ask(client: httpx.Client, question: dict[str, Any], *, context_only: bool) -> Outcome:
    started = time.perf_counter()
    reply = client.post(
        "/v1/chat/completions",
        json={
            "model": "private-gpt",
            "messages": [{"role": "user", "content": question["question"]}],
            "use_context": True,
            "context_only": context_only,
            "citation_style": ["chunks", "citations"],
            "temperature": 0,
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
            citation["source_url"].removeprefix(URL) for citation in body.get("citations") or ()
        ),
        retrieved=tuple(
            source["document"]["doc_metadata"]["url"].removeprefix(URL)
            for source in choice["sources"] or ()
        ),
        grounded=bool(body.get("grounded")),
        seconds=time.perf_counter() - started,
    )


def _recorded(record: Path) -> dict[str, Outcome]:
    if not record.exists():
        return {}
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return {row["question_id"]: _outcome(row) for row in rows}


def _outcome(row: dict[str, Any]) -> Outcome:
    sequences: dict[str, Any] = {key: tuple(row[key]) for key in ("gold", "cited", "retrieved")}
    return Outcome(**{**row, **sequences})


def _write(scores: Scores, **settings: Any) -> None:
    RESULTS.mkdir(exist_ok=True)
    today = datetime.now(UTC).date().isoformat()
    result = {"eval": "answers", "date": today, **settings, "scores": asdict(scores)}
    path = RESULTS / f"{today}-answers-{settings['engine']}-{settings['half']}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    _console.print_json(data=result)


if __name__ == "__main__":
    typer.run(main)
