"""How torch shares out the processors, by OpenMP's threads.

OpenMP keeps the helpers of a thread that shared something out for as long as that thread lives.
Where all helpers together are more than the processors, none waits in a loop any more for the next
operation, each of which then takes about twice as long.
"""

from __future__ import annotations

import os
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager

SPINS = "20000"
"""About a fifth of a millisecond: how long a helper waits in a loop for the next part. It would
for 3 ms, and so keep a processor from whatever comes behind the embedding; a tenth of this is too
short to reach from one operation to the next."""


def bound_spinning(environment: MutableMapping[str, str] = os.environ) -> None:
    """Bound how long helpers wait in a loop, unless the operator has; before torch is imported."""
    environment.setdefault("GOMP_SPINCOUNT", SPINS)


@contextmanager
def one_torch_thread() -> Generator[int]:
    """Keep what is done here to its own thread, which so leaves no helpers; gives how many
    threads torch would use.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def processors_of(worker: int, batches: int, *, processors: int, workers: int) -> int:
    """How many of `processors` each operation of a worker has, while so many batches are worked on.

    All but the first always have the same share. The first has what those that work leave it, but
    for the helpers of the others, which there may be though they rest.
    """
    share = max(1, processors // workers)
    if worker:
        return share
    left = processors - (batches - 1) * share
    return max(1, min(left, processors - (workers - 1) * (share - 1)))


def share_processors(processors: int, workers: int, worker: int, batches: int) -> None:
    """Give each operation of this thread, that worker's, its share; see `processors_of`."""
    import torch

    torch.set_num_threads(processors_of(worker, batches, processors=processors, workers=workers))
