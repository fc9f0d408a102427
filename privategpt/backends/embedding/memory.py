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

_CACHES = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")


def bound_kernel_caches(environment: MutableMapping[str, str] = os.environ) -> None:
    """Bound torch's and oneDNN's caches, unless the operator has; before torch is imported."""
    for name in _CACHES:
        environment.setdefault(name, KERNELS)


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
