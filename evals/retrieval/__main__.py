"""`python -m evals.retrieval`: how well the product finds, on the sets of ../shared/eval.

Another folder of BEIR-like sets: PRIVATEGPT_EVAL. Every set goes through the product's own
splitter, store, index and retrieval, once in whole passages and once in its own chunks (a
document is then as good as its best chunk among the hundred best). Vectors are kept in
evals/.cache, so that only the first run takes long.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from evals.folders import CACHE, EVAL, RESULTS
from evals.onnx_engine.encoder import load_onnx_model
from evals.retrieval.followups import measure as measure_followups
from evals.retrieval.fusions import FUSIONS, OTHERS, OURS, RememberingFusion
from evals.retrieval.library import Cut, Library, open_library
from evals.retrieval.measures import Quality, mean, quality
from evals.retrieval.sets import EvaluationSet, find_sets, read_set
from evals.retrieval.table import Measured, measures_table, read_last, tables, write
from evals.retrieval.tuning import TUNED_ON, Found, choices, merged, weights_table
from evals.retrieval.tuning import measure as measure_weights
from evals.retrieval.vectors import RememberingModel, open_memory
from privategpt.backends.embedding.sentence_transformers import load_sentence_transformers
from privategpt.backends.vectors.fusion import fuse
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.access import DEFAULT_TENANT
from privategpt.domain.ports import EmbeddingModel

CUTS: tuple[Cut, ...] = ("whole", "chunks")
DEPTH = 100

FOLLOWED_UP = "squad2"
"""The collection whose questions become second turns."""

_console = Console()


def main(
    *,
    only: Annotated[list[str] | None, typer.Option(help="A set; may be repeated.")] = None,
    model: Annotated[str | None, typer.Option(help="Another model; not recorded.")] = None,
    onnx: Annotated[
        Path | None, typer.Option(help="The bundled model from an ONNX file; not recorded.")
    ] = None,
    followups: Annotated[bool, typer.Option(help="Second turns of conversations only.")] = False,
    plain: Annotated[
        bool, typer.Option(help="BM25 of words alone, without pairs and beginnings; not recorded.")
    ] = False,
    tune: Annotated[
        bool, typer.Option(help="Choose the weights of pairs and beginnings; not recorded.")
    ] = False,
) -> None:
    """Index, search, measure, record."""
    today = datetime.now(UTC).date()
    if followups:
        found = asyncio.run(_measure_followups(model=model, day=today))
        _console.print(measures_table(found, title="second turns"))
        return
    loaded = load_sentence_transformers(model) if onnx is None else load_onnx_model(onnx)
    if tune:
        _print_choice(asyncio.run(_tune(only or TUNED_ON, model=loaded)))
        return
    ours = model is None and onnx is None and not plain
    words = WordEncoder(pair=0, beginning=0) if plain else WordEncoder()
    measured = asyncio.run(
        _measure(only or find_sets(EVAL), model=loaded, words=words, day=today if ours else None)
    )
    for table in tables(measured, read_last(RESULTS, before=today)):
        _console.print(table)


async def _measure(
    names: list[str], *, model: EmbeddingModel, words: WordEncoder, day: date | None
) -> list[Measured]:
    """Recorded as of `day`, or not at all."""
    measured: list[Measured] = []
    with Progress(console=_console) as progress:
        async with aclosing(_libraries(names, model=model, progress=progress)) as libraries:
            async for collection, cut, library in libraries:
                new = await _measure_set(
                    collection, library, cut=cut, words=words, progress=progress
                )
                if day is not None:
                    write(RESULTS, new, model=model.name, day=day)
                measured += new
    return measured


async def _measure_followups(*, model: str | None, day: date) -> list[Measured]:
    embedding = RememberingModel(
        load_sentence_transformers(model), memory=open_memory(CACHE / "retrieval-vectors.sqlite3")
    )
    collection = read_set(EVAL, FOLLOWED_UP)
    with Progress(console=_console) as progress:
        async with _opened(collection, "chunks", embedding=embedding, progress=progress) as library:
            task = progress.add_task("second turns", total=1)
            found = await measure_followups(
                collection,
                library.retrieval(fuse),
                names=library.names,
                depth=DEPTH,
                advance=partial(progress.advance, task),
            )
    measured = [
        Measured(f"{FOLLOWED_UP}, second turns", "chunks", way, each) for way, each in found.items()
    ]
    if model is None:
        write(RESULTS, measured, model=embedding.name, day=day)
    await embedding.close()
    return measured


async def _tune(names: Sequence[str], *, model: EmbeddingModel) -> Found:
    found: list[Found] = []
    with Progress(console=_console) as progress:
        async with aclosing(_libraries(names, model=model, progress=progress)) as libraries:
            async for collection, cut, library in libraries:
                task = progress.add_task(f"{collection.name}, {cut}, all weights", total=1)
                advance = partial(progress.advance, task)
                found.append(await measure_weights(collection, library, advance=advance))
    return merged(found)


def _print_choice(found: Found) -> None:
    _console.print(weights_table(found))
    for choice in choices(found):
        _console.print(str(choice))


async def _libraries(
    names: Sequence[str], *, model: EmbeddingModel, progress: Progress
) -> AsyncGenerator[tuple[EvaluationSet, Cut, Library]]:
    """Every collection in both cuts, one after the other."""
    embedding = RememberingModel(model, memory=open_memory(CACHE / "retrieval-vectors.sqlite3"))
    for name in names:
        collection = read_set(EVAL, name)
        for cut in CUTS:
            async with _opened(collection, cut, embedding=embedding, progress=progress) as library:
                yield collection, cut, library
    await embedding.close()


@asynccontextmanager
async def _opened(
    collection: EvaluationSet, cut: Cut, *, embedding: RememberingModel, progress: Progress
) -> AsyncGenerator[Library]:
    """The collection, indexed, with the vectors of its queries known."""
    task = progress.add_task(f"{collection.name}, {cut}", total=2)
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            library = await open_library(
                collection,
                Path(folder),
                cut=cut,
                embedding=embedding,
                stack=stack,
                progress=lambda share: progress.update(task, completed=share),
            )
            await embedding.learn_queries(
                list(collection.queries.values()),
                done=lambda count: progress.advance(task, count / len(collection.queries)),
            )
            yield library


async def _measure_set(
    collection: EvaluationSet,
    library: Library,
    *,
    cut: Cut,
    words: WordEncoder,
    progress: Progress,
) -> list[Measured]:
    task = progress.add_task(f"{collection.name}, {cut}, searches", total=1)
    found = await _rankings(
        collection, library, words=words, advance=partial(progress.advance, task)
    )
    return [
        Measured(collection.name, cut, ranking, mean(qualities))
        for ranking, qualities in found.items()
    ]


async def _rankings(
    collection: EvaluationSet,
    library: Library,
    *,
    words: WordEncoder,
    advance: Callable[[float], None],
) -> dict[str, list[Quality]]:
    """Ours as the product answers; the others from the legs that it was made of."""
    legs = RememberingFusion(fuse)
    retrieval = library.retrieval(legs, words=words)
    qualities: dict[str, list[Quality]] = {ranking: [] for ranking in FUSIONS}
    for query, text in collection.queries.items():
        found = await retrieval.search(
            retrieval.fit_query(text), tenant=DEFAULT_TENANT, limit=DEPTH
        )
        ids = {OURS: [one.chunk.chunk_id for one in found.chunks]}
        ids |= {name: legs.ranking(other)[:DEPTH] for name, other in OTHERS.items()}
        for name, chunk_ids in ids.items():
            ranking = dict.fromkeys(library.names[one] for one in chunk_ids)
            qualities[name].append(quality(list(ranking), collection.relevant[query]))
        advance(1 / len(collection.queries))
    return qualities


if __name__ == "__main__":
    typer.run(main)
