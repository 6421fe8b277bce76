"""Is every input in one batch, and no batch larger than the limit?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from birchbark.score.batches import equal_lengths, similar_lengths


@given(
    lengths=st.lists(st.integers(1, 40), max_size=30),
    tokens=st.integers(1, 200),
)
def test_padded_batches_are_within_the_limit(lengths: list[int], tokens: int) -> None:
    """Each input is in one batch, shortest first; only an input alone may exceed the limit."""
    batches = list(similar_lengths(lengths, tokens))
    flat = [position for batch in batches for position in batch]
    assert sorted(flat) == [*range(len(lengths))]
    assert [lengths[position] for position in flat] == sorted(lengths)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(1, 200))
def test_batches_hold_every_input_once_and_one_length(lengths: list[int], tokens: int) -> None:
    """No padding is needed, and only a single input may exceed the batch's tokens."""
    batches = list(equal_lengths(lengths, tokens))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len({lengths[i] for i in batch}) == 1
        assert len(batch) == 1 or sum(lengths[i] for i in batch) <= tokens or lengths[batch[0]] == 0
