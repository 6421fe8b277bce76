"""Do pairwise comparisons give the scores of the duoBERT paper?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine.pairwise import Pairwise, parse_pairwise
from birchbark.errors import InputError

NO = np.nan
P = np.array([[NO, 0.9, 0.2, 0.6], [0.1, NO, 0.4, 0.5], [0.7, 0.8, NO, 0.51], [0.3, 0.5, 0.6, NO]])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", [1.7, 1.0, 2.01, 1.4]),
        ("binary", [2, 0, 3, 1]),
        ("min", [0.2, 0.1, 0.51, 0.3]),
        ("max", [0.9, 0.5, 0.8, 0.6]),
    ],
)
def test_four_documents_by_hand(method: str, expected: list[float]) -> None:
    """Each method gives the scores computed by hand; p = .5 counts for neither document."""
    chosen = parse_pairwise(method)
    assert str(chosen) == method
    np.testing.assert_allclose(chosen.scores(P), expected)
    assert chosen.pairs(4, "q") == [(i, j) for i in range(4) for j in range(4) if i != j]


@given(st.integers(2, 12), st.integers(1, 15), st.text())
def test_a_sample_compares_each_document_equally_often(count: int, sample: int, query: str) -> None:
    """Samples are distinct, exclude the document itself, and are the same for the same query."""
    chosen = parse_pairwise(f"sample:{sample}")
    pairs = chosen.pairs(count, query)
    assert pairs == chosen.pairs(count, query)
    assert len(set(pairs)) == len(pairs) == count * min(sample, count - 1)
    for i in range(count):
        assert sum(first == i for first, _ in pairs) == min(sample, count - 1)
    assert all(i != j for i, j in pairs)
    p = np.full((count, count), np.nan)
    for i, j in pairs:
        p[i, j] = (i + 1) / (i + j + 2)
    expected = [sum(p[i, j] for k, j in pairs if k == i) for i in range(count)]
    np.testing.assert_allclose(chosen.scores(p), expected)
    if sample >= count - 1:
        assert pairs == Pairwise().pairs(count, query)


@pytest.mark.parametrize("name", ["mean", "sum:", "sum:3", "sample", "sample:0", "sample:x", ""])
def test_unknown_methods(name: str) -> None:
    """The error message lists the methods."""
    with pytest.raises(InputError, match="sum, binary, min, max, or sample:M"):
        parse_pairwise(name)


@pytest.mark.parametrize("settings", [{"method": "median"}, {"sample": 0}, {"sample": -1}])
def test_settings_that_cannot_be_computed(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Pairwise(**settings)


def test_a_sample_depends_on_the_query() -> None:
    """The same query gives the same sample; another query gives another."""
    sample = Pairwise("sum", 2)
    assert sample.pairs(12, "bees") == sample.pairs(12, "bees") != sample.pairs(12, "canoes")


def test_how_often_a_document_is_compared() -> None:
    """With all others, or with a sample of them; a single document has no others."""
    assert [Pairwise().comparisons_per_document(n) for n in (0, 1, 2, 5)] == [0, 0, 1, 4]
    sample = Pairwise("sum", 2)
    assert [sample.comparisons_per_document(n) for n in (0, 1, 2, 3, 5)] == [0, 0, 1, 2, 2]
    assert str(sample) == "sample:2"


def test_pairs_that_were_not_compared_count_for_no_method() -> None:
    """Each method uses only the probabilities that there are."""
    p = np.array([[NO, 0.75, NO], [0.25, NO, 0.5], [NO, 0.625, NO]])
    expected = {
        "sum": [0.75, 0.75, 0.625],
        "binary": [1, 0, 1],
        "min": [0.75, 0.25, 0.625],
        "max": [0.75, 0.5, 0.625],
    }
    assert {m: parse_pairwise(m).scores(p).tolist() for m in expected} == expected


def test_samples_are_the_same_in_every_run() -> None:
    """They depend on the text of the query, but on no process or machine."""
    pairs = [(0, 1), (0, 2), (1, 2), (1, 4), (2, 0), (2, 4), (3, 1), (3, 2), (4, 0), (4, 3)]
    assert Pairwise("sum", 2).pairs(5, "bees") == pairs
