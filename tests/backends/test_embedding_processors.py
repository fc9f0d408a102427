"""That OpenMP never has more helpers than there are processors."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from privategpt.backends.embedding.processors import SPINS, bound_spinning, processors_of
from privategpt.backends.embedding.sentence_transformers import BATCHES_AT_ONCE


@pytest.mark.parametrize("chosen", [None, "5"])
def test_spinning_is_bounded_where_the_operator_has_not_bounded_it(chosen: str | None) -> None:
    environment = {} if chosen is None else {"GOMP_SPINCOUNT": chosen}
    bound_spinning(environment)
    assert environment == {"GOMP_SPINCOUNT": chosen or SPINS}


@pytest.mark.parametrize("processors", [1, 2, 3, 4, 6, 8, 16, 64])
def test_helpers_of_all_threads_are_never_more_than_processors(processors: int) -> None:
    """OpenMP counts one thread, and for each that ever shared something out its helpers."""
    workers = min(processors, BATCHES_AT_ONCE)
    given = partial(processors_of, processors=processors, workers=workers)
    resting = sum(given(worker, workers) - 1 for worker in range(1, workers))
    for batches in range(1, workers + 1):
        shares = [given(worker, batches) for worker in range(batches)]
        assert min(shares) >= 1
        assert sum(shares) <= max(processors, batches)
        assert 1 + shares[0] - 1 + resting <= processors
    assert given(0, 1) > given(0, workers) or processors == 1


def test_loading_leaves_no_helpers_behind(tmp_path: Path) -> None:
    """Else each operation of a question would take twice as long; see `one_torch_thread`."""
    code = (
        "import os, threading;"
        "from privategpt.backends.embedding.sentence_transformers import"
        " load_sentence_transformers as load; import torch; torch.set_num_threads(2);"
        "held = threading.Event(); done = threading.Event();"
        "run = lambda: (load(), done.set(), held.wait());"
        "before = len(os.listdir('/proc/self/task'));"
        "thread = threading.Thread(target=run); thread.start(); done.wait();"
        "print(before, len(os.listdir('/proc/self/task')), torch.get_num_threads());"
        "held.set(); thread.join()"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.split()
    before, after, threads = map(int, printed)
    assert after - before == 1
    assert threads == 2
