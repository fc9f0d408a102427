"""Many operations at once, over a real state store and index: none is lost, doubled or halved."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from privategpt.domain.errors import NotFound
from privategpt.domain.ports import Upload
from privategpt.services.ingestion import IngestRequest
from privategpt.services.maintenance import violations
from tests.crash.__main__ import MEMORY
from tests.crash.steps import faults, library_in, snapshot

CLIENTS = 16
FILES = 20


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


async def test_sixteen_clients_with_twenty_files_each_lose_and_double_nothing(
    folder: Path,
) -> None:
    """Half of each client's files are everybody's."""
    async with library_in(folder / "data") as library:

        async def client(number: int) -> None:
            for file in range(FILES):
                name = f"{'all' if file % 2 else number}-{file}.txt"
                # Each writes its own: another client's would be empty for a moment.
                path = folder / f"{number}-{file}.upload"
                path.write_text(f"Otter {name} swims.\fHeron {name} stands.", encoding="utf-8")
                upload = Upload(path=path, name=name)
                await library.ingestion.ingest(IngestRequest(upload=upload, tenant=library.tenant))

        await asyncio.gather(*map(client, range(CLIENTS)))
        names = Counter(name for name, _ in await snapshot(library))
        assert len(names) == FILES // 2 + CLIENTS * FILES // 2
        assert set(names.values()) == {2}
        assert await violations(state=library.state, index=library.index) == []


async def test_a_deletion_and_a_replacement_at_once_leave_one_or_the_other(folder: Path) -> None:
    old, new = folder / "old.txt", folder / "new.txt"
    old.write_text("The old otter.", encoding="utf-8")
    new.write_text("The new heron.", encoding="utf-8")
    async with library_in(folder / "data") as library:

        async def ingest(path: Path) -> str:
            upload = Upload(path=path, name="one.txt")
            request = IngestRequest(upload=upload, tenant=library.tenant, replaces=True)
            return (await library.ingestion.ingest(request)).file.file_id

        async def delete(file_id: str, pauses: int) -> None:
            for _ in range(pauses):
                await asyncio.sleep(0)
            try:
                await library.ingestion.delete(library.tenant, file_id)
            except NotFound:
                return

        for pauses in (0, 3, 10, 40, 200):
            file_id = await ingest(old)
            await asyncio.gather(ingest(new), delete(file_id, pauses))
            assert [text for _, text in await snapshot(library)] == ["The new heron."]
            assert await faults(library) == []
