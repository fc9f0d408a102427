"""Texts of all lengths make few shapes of matrices, since oneDNN keeps a kernel for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from privategpt.backends.embedding.bert import round_rows
from privategpt.backends.embedding.worker import MAX_BATCH_TOKENS


@given(st.integers(min_value=1, max_value=2 * MAX_BATCH_TOKENS))
def test_rows_are_filled_up_by_less_than_eight_or_an_eighth(count: int) -> None:
    filled = round_rows(count)

    assert 0 <= filled - count < max(8, count / 8)


def test_all_batches_together_have_fewer_than_sixty_shapes() -> None:
    assert len({round_rows(count) for count in range(1, MAX_BATCH_TOKENS + 1)}) < 60
