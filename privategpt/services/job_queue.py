"""Who is next: jobs that wait, and what this process knows of each."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime

from privategpt.domain.jobs import Job, Progress
from privategpt.domain.library import StoredFile


@dataclass(slots=True, eq=False)
class Entry:
    """A job of this process that has not ended. It is the `Listener` of its own ingestion.

    It has a `task` from when it is taken from the queue, and a `result` once its file is stored.
    """

    job: Job
    now: Callable[[], datetime]
    room: AsyncExitStack = field(default_factory=AsyncExitStack)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[StoredFile] | None = None
    result: StoredFile | None = None

    def become(self, job: Job) -> None:
        """The job has changed: whoever waits for that goes on, and waits for the next change."""
        self.job = job
        self.changed.set()
        self.changed = asyncio.Event()

    def advanced(self, progress: Progress) -> None:
        """See `services.listening.Listener`."""
        at = self.now()
        since = self.job.indexing_since or at
        self.become(replace(self.job, progress=progress, indexing_since=since, updated_at=at))

    def stored(self, file: StoredFile) -> None:
        """See `services.listening.Listener`."""
        self.result = file


class TurnQueue:
    """First come, first served within a tenant; tenants take turns.

    So the many files of one do not hold up the one file of another.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Entry]] = OrderedDict()
        # Counts what was added; what was removed meanwhile is counted too, and found missing.
        self._added = asyncio.Semaphore(0)

    def add(self, entry: Entry) -> None:
        """Let it wait for its turn."""
        self._waiting.setdefault(entry.job.tenant, deque()).append(entry)
        self._added.release()

    def remove(self, entry: Entry) -> bool:
        """It waits no more; False where it does not wait."""
        queue = self._waiting.get(entry.job.tenant, deque())
        if entry not in queue:
            return False
        queue.remove(entry)
        if not queue:
            del self._waiting[entry.job.tenant]
        return True

    async def next(self) -> Entry:
        """Wait for a job, and take the oldest of the tenant whose turn it is."""
        await self._added.acquire()
        while not self._waiting:
            await self._added.acquire()
        tenant, queue = self._waiting.popitem(last=False)
        entry = queue.popleft()
        if queue:
            self._waiting[tenant] = queue
        return entry
