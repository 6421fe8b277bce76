"""Do comparisons become the scores that the papers say, and is none asked for twice?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine.pairwise import Pairwise, parse_pairwise
from birchbark.errors import InputError

NO = np.nan
P = np.array([[NO, 0.9, 0.2, 0.6], [0.1, NO, 0.4, 0.5], [0.7, 0.8, NO, 0.51], [0.3, 0.5, 0.6, NO]])


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("sum", [1.7, 1.0, 2.01, 1.4]),
        ("binary", [2, 0, 3, 1]),
        ("min", [0.2, 0.1, 0.51, 0.3]),
        ("max", [0.9, 0.5, 0.8, 0.6]),
    ],
)
def test_four_documents_by_hand(way: str, expected: list[float]) -> None:
    """Each way; a chance of .5 speaks for nobody."""
    chosen = parse_pairwise(way)
    assert str(chosen) == way
    np.testing.assert_allclose(chosen.scores(P), expected)
    assert chosen.asked(4, "q") == [(i, j) for i in range(4) for j in range(4) if i != j]


@given(st.integers(2, 12), st.integers(1, 15), st.text())
def test_a_sample_asks_so_many_of_each(count: int, sample: int, query: str) -> None:
    """None twice, none of itself, the same ones each time; all of them is the sum."""
    chosen = parse_pairwise(f"sample:{sample}")
    asked = chosen.asked(count, query)
    assert asked == chosen.asked(count, query)
    assert len(set(asked)) == len(asked) == count * min(sample, count - 1)
    for i in range(count):
        assert sum(first == i for first, _ in asked) == min(sample, count - 1)
    assert all(i != j for i, j in asked)
    p = np.full((count, count), np.nan)
    for i, j in asked:
        p[i, j] = (i + 1) / (i + j + 2)
    expected = [sum(p[i, j] for k, j in asked if k == i) for i in range(count)]
    np.testing.assert_allclose(chosen.scores(p), expected)
    if sample >= count - 1:
        assert asked == Pairwise().asked(count, query)


@pytest.mark.parametrize("words", ["mean", "sum:3", "sample", "sample:0", "sample:x", ""])
def test_what_is_no_way(words: str) -> None:
    """The message lists those that are."""
    with pytest.raises(InputError, match="sum, binary, min, max, or sample:5"):
        parse_pairwise(words)


def test_a_sample_depends_on_the_query() -> None:
    """And on nothing else."""
    sample = Pairwise("sum", 2)
    assert sample.asked(12, "bees") == sample.asked(12, "bees") != sample.asked(12, "canoes")
