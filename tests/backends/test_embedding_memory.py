"""What keeps the process small beside a model."""

from __future__ import annotations

import ctypes

import pytest

from privategpt.backends.embedding.memory import (
    ARENAS,
    KERNELS,
    bound_kernel_caches,
    release_unused,
    share_arenas,
)


def test_kernels_are_bounded_where_the_operator_has_not_bounded_them() -> None:
    environment = {"LRU_CACHE_CAPACITY": "1024"}
    bound_kernel_caches(environment)
    assert environment == {
        "LRU_CACHE_CAPACITY": "1024",
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": KERNELS,
    }


class Library:
    """A C library that can give memory back."""

    def __init__(self, name: str | None) -> None:
        assert name is None
        self.malloc_trim = TRIMMED.append

    def mallopt(self, option: int, value: int) -> None:
        OPTIONS.append((option, value))


class PoorLibrary:
    """One that cannot."""

    def __init__(self, name: str | None) -> None:
        assert name is None


TRIMMED: list[int] = []
OPTIONS: list[tuple[int, ...]] = []


def test_freed_memory_is_given_back_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    TRIMMED.clear()
    monkeypatch.setattr(ctypes, "CDLL", Library)
    release_unused()
    assert TRIMMED == [0]


def test_threads_share_heaps(monkeypatch: pytest.MonkeyPatch) -> None:
    OPTIONS.clear()
    monkeypatch.setattr(ctypes, "CDLL", Library)
    share_arenas()
    assert OPTIONS == [(-8, ARENAS)]


def test_a_c_library_that_cannot_give_it_back_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", PoorLibrary)
    share_arenas()
    release_unused()


def test_this_machines_own_library_is_asked_without_harm() -> None:
    release_unused()
