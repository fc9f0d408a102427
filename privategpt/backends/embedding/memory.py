"""What keeps the process small beside a model that wants memory in waves."""

from __future__ import annotations

import ctypes
import os
from collections.abc import MutableMapping

KERNELS = "64"
"""oneDNN keeps a kernel for each of the last 1,024 shapes of matrix, a megabyte each. A question
meets four, for its number of tokens and of threads, and waits longer where they must be compiled:
these are enough for eight such numbers."""

ARENAS = 2
"""The C library would keep a heap for every thread, each with holes of its own."""

_M_ARENA_MAX = -8

SPINS = "20000"
"""A fifth of a millisecond: how long OpenMP's helpers wait in a loop for an operation's next part.
They would for 3 ms, and so keep a processor from whatever comes behind the embedding; a tenth of
this is too short to reach from one operation to the next."""

_BOUNDS = {
    "LRU_CACHE_CAPACITY": KERNELS,
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": KERNELS,
    "GOMP_SPINCOUNT": SPINS,
}


def bound_torch(environment: MutableMapping[str, str] = os.environ) -> None:
    """Bound torch's and oneDNN's caches and OpenMP's waiting, unless the operator has; before
    torch is imported."""
    for name, bound in _BOUNDS.items():
        environment.setdefault(name, bound)


def share_arenas() -> None:
    """Let all threads have `ARENAS` heaps together; before they are begun. Only glibc's can."""
    limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if limit is not None:
        limit(_M_ARENA_MAX, ARENAS)


def release_unused() -> None:
    """Give freed memory back to the system, a tenth of a second's work.

    The C library keeps it, a hundred megabytes after an ingestion. Only glibc's can be asked.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
