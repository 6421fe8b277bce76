"""Is every unjudged document of a collection equally likely to be sampled?"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.pairs.random_negatives import random_negatives
from birchbark.records import Qrels

DOCS = [f"d{number}" for number in range(30)]
QRELS = st.dictionaries(
    st.sampled_from("12345"), st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 2))
).map(Qrels)


@given(QRELS, st.integers(0, 30), st.integers(1, 6), st.integers(0, 99))
def test_distinct_unjudged_documents_are_sampled(
    qrels: Qrels, size: int, count: int, seed: int
) -> None:
    """`count` of them, or all if there are fewer; equal seeds give equal samples."""
    sample = random_negatives(qrels, iter(DOCS[:size]), count, seed)
    assert sample.keys() == qrels.grades.keys()
    for query_id, doc_ids in sample.items():
        free = set(DOCS[:size]) - qrels.grades[query_id].keys()
        assert set(doc_ids) <= free
        assert len(doc_ids) == len(set(doc_ids)) == min(count, len(free))
    assert sample == random_negatives(qrels, iter(DOCS[:size]), count, seed)


@pytest.mark.parametrize("count", [1, 3])
def test_every_document_is_equally_likely(count: int) -> None:
    """Their frequencies in 6,000 samples are within four standard deviations of the expectation."""
    judged = {"d0": 1, "d7": 0, "d8": 1, "d29": 1}
    qrels = Qrels({str(number): judged if number % 2 else {} for number in range(6000)})
    sample = random_negatives(qrels, DOCS, count, 3)
    for barred, odd in ((judged, 1), ({}, 0)):
        of_side = [sample[str(number)] for number in range(odd, 6000, 2)]
        times = Counter(doc_id for doc_ids in of_side for doc_id in doc_ids)
        share = count / (len(DOCS) - len(barred))
        allowed = 4 * (3000 * share * (1 - share)) ** 0.5
        for doc_id in DOCS:
            expected = 0 if doc_id in barred else 3000 * share
            assert abs(times[doc_id] - expected) <= (0 if doc_id in barred else allowed)


def test_documents_are_streamed() -> None:
    """A collection of any size can be sampled from."""
    qrels = Qrels({str(number): {} for number in range(10)})
    sample = random_negatives(qrels, map(str, range(100_000)), 2, 0)
    assert sum(len(doc_ids) for doc_ids in sample.values()) == 20
    assert len({doc_id for doc_ids in sample.values() for doc_id in doc_ids}) > 15


def test_a_count_below_one_is_refused() -> None:
    """The error names the valid range."""
    with pytest.raises(InputError, match="expected 1 or more, found 0"):
        random_negatives(Qrels({"1": {}}), DOCS, 0, 0)


def test_samples_are_those_of_the_seed() -> None:
    """They are the same on every machine; each query has another, and so has each seed."""
    qrels = Qrels({"1": {"d0": 1}, "2": {}})
    samples = [random_negatives(qrels, DOCS, 3, seed) for seed in (0, 1)]
    assert samples == [
        {"1": ["d1", "d4", "d18"], "2": ["d16", "d1", "d22"]},
        {"1": ["d14", "d11", "d27"], "2": ["d19", "d15", "d17"]},
    ]
