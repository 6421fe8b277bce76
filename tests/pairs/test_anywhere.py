"""Is any unjudged document of a collection as likely to be drawn as any other?"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.pairs.anywhere import from_collection
from birchbark.records import Qrels

DOCS = [f"d{number}" for number in range(30)]
QRELS = st.dictionaries(
    st.sampled_from("12345"), st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 2))
).map(Qrels)


@given(QRELS, st.integers(0, 30), st.integers(1, 6), st.integers(0, 99))
def test_so_many_distinct_unjudged_documents_are_drawn(
    qrels: Qrels, size: int, count: int, seed: int
) -> None:
    """Or all that there are; and the same ones by the same seed."""
    sample = from_collection(qrels, iter(DOCS[:size]), count, seed)
    assert sample.keys() == qrels.grades.keys()
    for query_id, doc_ids in sample.items():
        free = set(DOCS[:size]) - qrels.grades[query_id].keys()
        assert set(doc_ids) <= free
        assert len(doc_ids) == len(set(doc_ids)) == min(count, len(free))
    assert sample == from_collection(qrels, iter(DOCS[:size]), count, seed)


@pytest.mark.parametrize("count", [1, 3])
def test_each_is_as_likely_as_any_other(count: int) -> None:
    """By 6,000 draws, within four standard deviations; judged ones in the way or not."""
    judged = {"d0": 1, "d7": 0, "d8": 1, "d29": 1}
    qrels = Qrels({str(number): judged if number % 2 else {} for number in range(6000)})
    sample = from_collection(qrels, DOCS, count, 3)
    for barred, odd in ((judged, 1), ({}, 0)):
        of_side = [sample[str(number)] for number in range(odd, 6000, 2)]
        times = Counter(doc_id for doc_ids in of_side for doc_id in doc_ids)
        share = count / (len(DOCS) - len(barred))
        allowed = 4 * (3000 * share * (1 - share)) ** 0.5
        for doc_id in DOCS:
            expected = 0 if doc_id in barred else 3000 * share
            assert abs(times[doc_id] - expected) <= (0 if doc_id in barred else allowed)


def test_documents_are_read_once_and_not_kept() -> None:
    """A collection of a million is drawn from in steps that few queries take part in."""
    qrels = Qrels({str(number): {} for number in range(10)})
    sample = from_collection(qrels, map(str, range(100_000)), 2, 0)
    assert sum(len(doc_ids) for doc_ids in sample.values()) == 20
    assert len({doc_id for doc_ids in sample.values() for doc_id in doc_ids}) > 15


def test_none_asked_for_is_refused() -> None:
    """As is fewer than none."""
    with pytest.raises(InputError, match="expected 1 or more, found 0"):
        from_collection(Qrels({"1": {}}), DOCS, 0, 0)
