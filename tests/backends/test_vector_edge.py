"""The embedded vector index and its folder: what survives, what is refused, what is rebuilt."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import qdrant_edge as qe

from privategpt.backends.vectors.edge import EdgeIndex, open_edge_index
from privategpt.backends.vectors.layout import LAYOUT_FILE
from privategpt.backends.vectors.shard import ShardFolder, open_shard, optimize_folder
from privategpt.backends.vectors.words import WordEncoder
from privategpt.domain.documents import Chunk
from privategpt.domain.errors import (
    EmbeddingModelChanged,
    EngineFailed,
    EngineUnavailable,
    FolderInUse,
)
from privategpt.domain.library import Hit, IndexedChunk, VectorQuery
from privategpt.domain.ports import Vector

DIMENSIONS = 4


def chunk(number: int, *, doc_id: str = "doc", file_id: str = "file") -> IndexedChunk:
    text = f"sentence {number}"
    return IndexedChunk(
        chunk=Chunk(
            chunk_id=f"{file_id}/{doc_id}/{number}",
            doc_id=doc_id,
            position=number,
            start=0,
            end=len(text),
            text=text,
        ),
        tenant="alpha",
        file_id=file_id,
        vector=vector_at(number),
    )


def vector_at(angle: float) -> Vector:
    """A vector of its own for every number."""
    return array("f", [f(n * angle) for n in (1, 2) for f in (math.cos, math.sin)])


def ask(number: int) -> VectorQuery:
    return VectorQuery(
        text=f"sentence {number}", vector=vector_at(number), tenant="alpha", limit=10
    )


async def open_index(folder: Path, *, dimensions: int = DIMENSIONS) -> EdgeIndex:
    return await open_edge_index(folder / "vectors", dimensions=dimensions, candidates=100)


async def test_chunks_and_deletions_survive_a_restart(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    await index.upsert([chunk(1), chunk(2), chunk(3, doc_id="gone")])
    await index.delete_document("gone")
    before = [hit.chunk_id for hit in await index.search(ask(2))]
    await index.close()
    index = await open_index(tmp_path)
    # Not the scores: until then the engine counts the deleted in how rare a word is.
    assert [hit.chunk_id for hit in await index.search(ask(2))] == before
    assert sorted(before) == ["file/doc/1", "file/doc/2"]
    assert dict(await index.chunk_counts()) == {"doc": 2}
    await index.close()


def rounded(hits: list[Hit]) -> list[float]:
    """Scores only: chunks with equal ones come in any order."""
    return [round(hit.score, 4) for hit in hits]


async def test_a_tenants_ranking_is_its_own_after_a_restart_too(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    await index.upsert([chunk(n) for n in range(20)])
    alone = rounded(await index.search(ask(7)))
    theirs = [replace(chunk(7, doc_id=f"d{n}"), tenant="beta") for n in range(50)]
    await index.upsert(theirs)
    together = rounded(await index.search(ask(7)))
    await index.close()
    index = await open_index(tmp_path)
    assert rounded(await index.search(ask(7))) == together == alone
    await index.close()


WRITER = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_vector_edge import chunk, open_index

async def main():
    index = await open_index(Path({folder!r}))
    for n in range(10**6):
        await index.upsert([chunk(2 * n), chunk(2 * n + 1)])
        if n % 3 == 0:
            await index.upsert([chunk(n, doc_id=f"gone-{{n}}")])
            await index.delete_document(f"gone-{{n}}")
        print(n, flush=True)

asyncio.run(main())
"""


def write_and_kill(folder: Path, writes: int) -> int:
    """Kill a writing process after `writes` acknowledgements; return the last one it gave."""
    program = WRITER.format(tests=str(Path(__file__).parent), folder=str(folder))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        acknowledged = -1
        while acknowledged < writes:
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        return max([acknowledged, *map(int, process.stdout.read().split())])


@pytest.mark.parametrize("writes", [1, 7, 20])
async def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, writes: int) -> None:
    acknowledged = write_and_kill(tmp_path, writes)
    index = await open_index(tmp_path)  # a lock left behind does not block
    counts = await index.chunk_counts()
    assert counts["doc"] >= 2 * (acknowledged + 1)
    assert not {f"gone-{n}" for n in range(0, acknowledged + 1, 3)} & set(counts)
    await index.close()


async def test_other_dimensions_are_refused_naming_both_and_the_remedy(tmp_path: Path) -> None:
    await (await open_index(tmp_path)).close()
    with pytest.raises(EmbeddingModelChanged) as refused:
        await open_index(tmp_path, dimensions=8)
    for part in ("4", "8", "reindex"):
        assert part in refused.value.message


async def test_other_word_weights_are_refused(tmp_path: Path) -> None:
    await (await open_index(tmp_path)).close()
    layout = tmp_path / "vectors" / LAYOUT_FILE
    layout.write_text('{"dimensions": 4, "words": "older"}', encoding="utf-8")
    with pytest.raises(EmbeddingModelChanged):
        await open_index(tmp_path)


async def test_replacing_takes_up_other_dimensions(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    await index.upsert([chunk(1)])
    await index.close()
    index = await open_edge_index(tmp_path / "vectors", dimensions=8, candidates=100, replace=True)
    assert await index.chunk_counts() == {}
    await index.close()
    await (await open_index(tmp_path, dimensions=8)).close()


async def test_a_folder_in_use_is_refused_even_for_replacing(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    for anew in (False, True):
        with pytest.raises(FolderInUse) as refused:
            await open_edge_index(
                tmp_path / "vectors", dimensions=DIMENSIONS, candidates=1, replace=anew
            )
        assert "vectors" in refused.value.message
        assert str(tmp_path) not in refused.value.message
    with pytest.raises(FolderInUse):
        optimize_folder(tmp_path / "vectors")
    await index.close()


@pytest.mark.parametrize("victim", ["edge_config.json", LAYOUT_FILE, "wal/first-index"])
async def test_damaged_files_are_refused_with_the_remedy_and_can_be_replaced(
    tmp_path: Path, victim: str
) -> None:
    index = await open_index(tmp_path)
    await index.upsert([chunk(1)])
    await index.close()
    (tmp_path / "vectors" / victim).write_bytes(b"{")
    with pytest.raises(EngineFailed, match="reindex"):
        await open_index(tmp_path)
    await (
        await open_edge_index(
            tmp_path / "vectors", dimensions=DIMENSIONS, candidates=1, replace=True
        )
    ).close()
    await (await open_index(tmp_path)).close()


async def test_what_a_crash_while_replacing_left_is_removed(tmp_path: Path) -> None:
    for leftover in ("vectors.new", "vectors.old"):
        (tmp_path / leftover / "segments").mkdir(parents=True)
    await (await open_index(tmp_path)).close()
    assert os.listdir(tmp_path) == ["vectors"]  # noqa: PTH208 - pathlib's would be async here


async def test_a_folder_that_cannot_be_made_is_a_failure_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(EngineFailed, match="cannot be written"):
        await open_edge_index(tmp_path / "file" / "vectors", dimensions=4, candidates=1)


async def test_the_folder_is_the_owners_alone(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    assert (tmp_path / "vectors").stat().st_mode & 0o777 == 0o700
    await index.close()


async def test_a_closed_index_is_unavailable_and_closes_again(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    await index.close()
    await index.close()
    with pytest.raises(EngineUnavailable):
        await index.search(ask(1))
    with pytest.raises(EngineUnavailable):
        await index.upsert([chunk(1)])
    with pytest.raises(EngineUnavailable):
        await index.check()


async def test_a_vector_of_the_wrong_length_fails_in_our_words(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    wrong = VectorQuery(text="x", vector=array("f", [1.0]), tenant="alpha", limit=1)
    with pytest.raises(EngineFailed):
        await index.search(wrong)
    await index.close()


async def test_a_full_disk_is_refused_before_a_memory_map_finds_no_room_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await open_index(tmp_path)
    full = shutil.disk_usage(tmp_path)._replace(free=1_000_000)

    def usage(_: Path) -> object:
        return full

    monkeypatch.setattr(shutil, "disk_usage", usage)
    with pytest.raises(EngineUnavailable, match="disk is full"):
        await index.upsert([chunk(1)])
    with pytest.raises(EngineUnavailable, match="disk is full"):
        await open_index(tmp_path / "another")
    monkeypatch.undo()
    await index.upsert([chunk(1)])
    assert await index.count("file") == 1
    await index.close()


async def test_optimizing_keeps_every_chunk_and_drops_deleted_ones_from_disk(
    tmp_path: Path,
) -> None:
    index = await open_index(tmp_path)
    await index.upsert([chunk(n, doc_id=f"doc-{n % 2}") for n in range(3000)])
    await index.delete_document("doc-1")
    await index.close()
    assert optimize_folder(tmp_path / "vectors")
    assert not optimize_folder(tmp_path / "vectors")
    index = await open_index(tmp_path)
    assert dict(await index.chunk_counts()) == {"doc-0": 1500}
    assert (await index.search(ask(42)))[0].chunk_id == "file/doc-0/42"
    assert (await index.search(ask(43)))[0].chunk_id != "file/doc-1/43"
    await index.close()


def test_optimizing_a_folder_without_an_index_does_nothing(tmp_path: Path) -> None:
    assert not optimize_folder(tmp_path / "vectors")


async def test_a_cancelled_write_leaves_the_index_whole(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    task = asyncio.create_task(index.upsert([chunk(n) for n in range(2000)]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await index.upsert([chunk(1, doc_id="after", file_id="after")])
    assert await index.count("after") == 1
    await index.close()
    await (await open_index(tmp_path)).close()


async def test_a_search_while_the_index_is_cleared_is_answered_or_unavailable(
    tmp_path: Path,
) -> None:
    index = await open_index(tmp_path)
    await index.upsert([chunk(n) for n in range(200)])

    async def search_often() -> set[str]:
        outcomes: set[str] = set()
        for _ in range(100):
            try:
                outcomes.add("found" if await index.search(ask(3)) else "empty")
            except EngineUnavailable:
                outcomes.add("unavailable")
        return outcomes

    searching = asyncio.create_task(search_often())
    for _ in range(5):
        await index.clear()
    assert await searching <= {"found", "empty", "unavailable"}
    assert await index.search(ask(3)) == []
    await index.close()


def test_the_lock_of_a_living_process_is_respected(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    shard = open_shard(path, dimensions=DIMENSIONS)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_open_error, (path,)) == "FolderInUse"
    shard.close()


def _open_error(path: Path) -> str:
    try:
        open_shard(path, dimensions=DIMENSIONS)
    except FolderInUse as error:
        return type(error).__name__
    return "opened"


async def test_searches_at_once_find_what_each_finds_alone(tmp_path: Path) -> None:
    index = await open_index(tmp_path)
    await index.upsert([chunk(n) for n in range(300)])
    alone = [await index.search(ask(n)) for n in range(40)]
    assert await asyncio.gather(*(index.search(ask(n)) for n in range(40))) == alone
    await index.close()


async def test_every_id_comes_back_as_it_was_given_whether_or_not_engines_take_it(
    tmp_path: Path,
) -> None:
    plain = "5f0c3f0e-6c1b-5d3c-9d52-3a1f3a7a4b10"
    # One as a file may have it, one that engines take but write otherwise, one as we hash to.
    ids = [plain, "doc/7", plain.upper(), "5f0c3f0e-6c1b-8d3c-9d52-3a1f3a7a4b10"]
    index = await open_index(tmp_path)
    named = [replace(chunk(n).chunk, chunk_id=id_) for n, id_ in enumerate(ids)]
    await index.upsert([replace(chunk(0), chunk=one) for one in named])
    assert {hit.chunk_id for hit in await index.search(ask(1))} == set(ids)
    await index.close()


class ShardWithArrival:
    """A shard where something happens while the first search is under way."""

    def __init__(self, shard: ShardFolder, *, arrive: Callable[[], None]) -> None:
        self._shard = shard
        self._arrive = arrive
        self.searches = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._shard, name)

    def query_batch(self, requests: Sequence[qe.QueryRequest]) -> list[list[qe.ScoredPoint]]:
        self.searches += 1
        if self.searches == 1:
            self._arrive()
        return self._shard.query_batch(requests)


async def test_another_tenants_first_chunks_are_kept_out_of_a_search_under_way(
    tmp_path: Path,
) -> None:
    def arrive() -> None:
        foreign = [replace(chunk(n, doc_id="foreign"), tenant="beta") for n in range(5)]
        writing = threading.Thread(target=asyncio.run, args=(index.upsert(foreign),))
        writing.start()
        writing.join(30)

    shard = open_shard(tmp_path / "vectors", dimensions=DIMENSIONS)
    watched = ShardWithArrival(shard, arrive=arrive)
    index = EdgeIndex(
        shard=cast("ShardFolder", watched), words=WordEncoder(), candidates=100, tenants=()
    )
    await index.upsert([chunk(n) for n in range(3)])
    found = {hit.chunk_id for hit in await index.search(ask(1))}
    assert found == {f"file/doc/{n}" for n in range(3)}
    assert watched.searches == 2
    await index.close()
