"""What the index has mapped of its files is let go, and nothing is lost by it."""

from __future__ import annotations

import mmap
import re
import sys
from array import array
from pathlib import Path

import pytest

from privategpt.backends.vectors.edge import EdgeIndex, open_edge_index
from privategpt.backends.vectors.pages import release_pages
from privategpt.backends.vectors.shard import RELEASED_EVERY
from privategpt.domain.library import IndexedChunk, VectorQuery
from tests.fakes.vectors import passage

SIZE = 1 << 20
CHUNKS = 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what is mapped")


def resident_bytes(folder: Path) -> int:
    """Of the files in the folder, in this process."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = f"{folder.resolve()}/" in line
        elif inside and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
    return found


def mapped(path: Path) -> mmap.mmap:
    """A file of random access, written from end to end."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bytes(SIZE))
    with path.open("r+b") as file:
        pages = mmap.mmap(file.fileno(), SIZE)
    pages[:] = b"x" * SIZE
    return pages


def test_pages_of_a_folder_are_let_go_and_those_of_others_are_kept(tmp_path: Path) -> None:
    ours, others = tmp_path / "a folder", tmp_path / "a folder more"
    with mapped(ours / "file") as let_go, mapped(others / "file"):
        assert (resident_bytes(ours), resident_bytes(others)) == (SIZE, SIZE)
        release_pages(ours)
        assert (resident_bytes(ours), resident_bytes(others)) == (0, SIZE)
        assert let_go[:] == b"x" * SIZE
        assert (ours / "file").read_bytes() == b"x" * SIZE


def chunk(number: int) -> IndexedChunk:
    return passage(number, array("f", [1.0, float(number)]))


async def opened(folder: Path) -> EdgeIndex:
    return await open_edge_index(
        folder / "vectors", dimensions=2, candidates=CHUNKS, quantization="turbo"
    )


async def found(index: EdgeIndex) -> set[str]:
    query = VectorQuery(text="passage", vector=array("f", [1, 1]), tenant="alpha", limit=CHUNKS)
    return {hit.chunk_id for hit in await index.search(query)}


async def test_an_index_that_was_opened_has_few_pages_of_its_files(tmp_path: Path) -> None:
    index = await opened(tmp_path)
    await index.upsert([chunk(number) for number in range(CHUNKS)])
    await index.close()
    index = await opened(tmp_path)
    # Its log and its codes alone have 32 MB each, of which it has read every page.
    assert resident_bytes(tmp_path / "vectors") < 4 * SIZE
    assert await found(index) == {chunk(number).chunk.chunk_id for number in range(CHUNKS)}
    await index.close()


async def test_pages_are_let_go_after_so_many_writes_and_all_that_was_written_is_found(
    tmp_path: Path,
) -> None:
    index = await opened(tmp_path)
    for number in range(RELEASED_EVERY - 1):
        await index.upsert([chunk(number % (CHUNKS - 1))])
    before = resident_bytes(tmp_path / "vectors")
    await index.upsert([chunk(CHUNKS - 1)])
    assert resident_bytes(tmp_path / "vectors") == 0 < before
    assert await found(index) == {chunk(number).chunk.chunk_id for number in range(CHUNKS)}
    await index.close()
