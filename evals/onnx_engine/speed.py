"""Processor time of two encoders on the same texts, taking turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from privategpt.backends.embedding.encoder import EncodedText, Encoder

LENGTHS = (16, 64, 128, 254)
BATCHES = (1, 8, 32)

_FIRST, _LAST = 101, 102  # [CLS], [SEP]
_WORDS = range(1996, 29_000)
_TOKENS_PER_CELL = 6_000


@dataclass(frozen=True, slots=True)
class Timed:
    """Median seconds of processor time for a batch, by engine."""

    length: int
    batch: int
    seconds: Mapping[str, float]


def texts(*, length: int, batch: int, start: int) -> list[EncodedText]:
    """Texts of `length` tokens, other ones for every `start`."""
    return [
        EncodedText(
            text="",
            ids=[_FIRST, *(_word(start + row, at) for at in range(length - 2)), _LAST],
            tokens=length - 2,
        )
        for row in range(batch)
    ]


def _word(row: int, at: int) -> int:
    return _WORDS[(row * 7919 + at * 104_729) % len(_WORDS)]


def compare(engines: Mapping[str, Encoder], *, clock: Callable[[], float]) -> Iterator[Timed]:
    """One result per length and batch; each engine begins as often as the other."""
    for length in LENGTHS:
        for batch in BATCHES:
            rounds = max(4, min(40, _TOKENS_PER_CELL // (length * batch)))
            yield Timed(
                length=length,
                batch=batch,
                seconds=_medians(engines, _round(length, batch, rounds), clock=clock),
            )


def _round(length: int, batch: int, rounds: int) -> list[list[EncodedText]]:
    return [texts(length=length, batch=batch, start=turn * batch) for turn in range(rounds + 1)]


def _medians(
    engines: Mapping[str, Encoder],
    batches: Sequence[Sequence[EncodedText]],
    *,
    clock: Callable[[], float],
) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    names = list(engines)
    for engine in engines.values():  # kernels are compiled for a shape when it is first seen
        engine.encode(batches[0], prompt="")
    for turn, batch in enumerate(batches[1:]):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            began = clock()
            engines[name].encode(batch, prompt="")
            seconds[name].append(clock() - began)
    return {name: median(each) for name, each in seconds.items()}
