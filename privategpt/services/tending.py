"""What a process does now and then while it lives: it says so, and clears up behind the dead.

Processes that share a state store know each other by leases alone. A process whose lease has ended
cannot commit what it had begun: see `StateStore.give_up`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from privategpt.domain.errors import Unavailable
from privategpt.domain.jobs import LeaseStore
from privategpt.services.ingestion import Ingestion

LEASE = timedelta(seconds=60)
"""How long a process may be silent. Far beyond a pause of its loop or a step of its clock."""

PAUSE_S = 15.0
"""Between two rounds: a lease is renewed several times before it would end."""

_log = logging.getLogger(__name__)


class Tending:
    """The rounds of one process.

    Without `leases` no other process can be at work, and what is pending at the beginning is
    nobody's. `owner` is the name that this process ingests under; `pause` waits for so many
    seconds.
    """

    def __init__(
        self,
        *,
        ingestion: Ingestion,
        leases: LeaseStore | None,
        owner: str,
        now: Callable[[], datetime],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ingestion = ingestion
        self._leases = leases
        self._owner = owner
        self._now = now
        self._pause = pause
        self._more: list[Callable[[], Awaitable[None]]] = []
        self._task: asyncio.Task[None] | None = None

    def also(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this too in every round. It may raise `Unavailable`."""
        self._more.append(work)

    async def begin(self) -> None:
        """Sweep, take the lease, and start the rounds.

        What an earlier process of this name left is nobody's: its lease ends here.
        """
        if self._leases is not None:
            await self._leases.release(self._owner)
        await self._ingestion.sweep()
        if self._leases is not None:
            await self._leases.renew(self._owner, until=self._now() + LEASE)
        self._task = asyncio.create_task(self._rounds())

    async def round(self) -> None:
        """Renew, sweep, and what else there is to do. Raises `Unavailable`."""
        if self._leases is not None:
            await self._leases.renew(self._owner, until=self._now() + LEASE)
            await self._ingestion.sweep()
        for work in self._more:
            await work()

    async def end(self) -> None:
        """No more rounds; others may clear up at once."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._leases is not None:
            try:
                await self._leases.release(self._owner)
            except Unavailable as error:
                _log.warning("the lease runs on until it ends: %s", error.message)

    async def _rounds(self) -> None:
        while True:
            await self._pause(PAUSE_S)
            try:
                await self.round()
            except Unavailable as error:
                _log.warning("a round was left out: %s", error.message)
