"""Are the lists of each epoch sampled as configured, and equal for equal seeds?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prepared import table_of
from tiny_trainings import some_pairs

from birchbark.errors import InputError
from birchbark.pairs.pair_table import PairTable
from birchbark.records import Pair
from birchbark.train.lists import ListSampling, sample_lists
from birchbark.train.objectives import Objective

JUDGED = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40
)


def pairs_of(rows: list[tuple[int, int, int]]) -> PairTable:
    """Return a table of pairs from rows of query, text and grade."""
    return table_of(Pair(f"q{q}", f"query {q}", f"d{d}", f"text {d}", g) for q, d, g in rows)


def lists_of(*arguments: Any) -> list[tuple[int, ...]]:
    """Return the lists that `sample_lists` samples."""
    return [tuple(own.tolist()) for own in sample_lists(*arguments)]


@given(JUDGED)
def test_a_pair_table_keeps_every_pair(rows: list[tuple[int, int, int]]) -> None:
    """Its queries and texts are distinct; pairs stay in order; each query has all its pairs."""
    pairs = pairs_of(rows)
    assert len(set(pairs.queries)) == len(pairs.queries)
    assert len(set(pairs.texts)) == len(pairs.texts)
    rebuilt = [
        (pairs.queries[q], pairs.texts[t], g)
        for q, t, g in zip(pairs.query, pairs.text, pairs.grades, strict=True)
    ]
    assert rebuilt == [(f"query {q}", f"text {d}", g) for q, d, g in rows]
    for query, numbers in enumerate(pairs.by_query):
        assert numbers.tolist() == np.flatnonzero(pairs.query == query).tolist()


@given(JUDGED, st.integers(0, 99))
def test_each_pair_is_one_list_of_an_epoch(rows: list[tuple[int, int, int]], seed: int) -> None:
    """Lists are made with each = `pair`."""
    lists = lists_of(pairs_of(rows), ListSampling(), (seed,))
    assert sorted(lists) == [(n,) for n in range(len(rows))]


@given(JUDGED, st.integers(2, 5), st.integers(0, 99))
def test_a_relevant_text_is_followed_by_lower_grades(
    rows: list[tuple[int, int, int]], texts: int, seed: int
) -> None:
    """They are distinct texts of its query; each relevant text with such texts has one list."""
    pairs = pairs_of(rows)
    lists = lists_of(pairs, ListSampling("positive", texts), (seed,))
    below = {
        n: int((pairs.grades[pairs.by_query[pairs.query[n]]] < pairs.grades[n]).sum())
        for n in range(len(pairs))
    }
    assert sorted(own[0] for own in lists) == [
        n for n in range(len(pairs)) if pairs.grades[n] > 0 and below[n]
    ]
    for first, *others in lists:
        assert len(set(others)) == len(others) == min(texts - 1, below[first])
        assert all(pairs.query[n] == pairs.query[first] for n in others)
        assert all(pairs.grades[n] < pairs.grades[first] for n in others)


@given(JUDGED, st.integers(2, 5), st.integers(0, 99))
def test_the_texts_of_a_query_are_divided_into_lists(
    rows: list[tuple[int, int, int]], texts: int, seed: int
) -> None:
    """Each text occurs once; lists have `texts` texts; only a remaining single text is left out."""
    pairs = pairs_of(rows)
    lists = lists_of(pairs, ListSampling("query", texts), (seed,))
    assert max(Counter(n for own in lists for n in own).values(), default=1) == 1
    for number, numbers in enumerate(pairs.by_query):
        sizes = [len(own) for own in lists if pairs.query[own[0]] == number]
        alone = len(numbers) % texts == 1
        assert sum(sizes) == len(numbers) - alone
        assert all(1 < size <= texts for size in sizes)
    assert all(len({pairs.query[n] for n in own}) == 1 for own in lists)


@pytest.mark.parametrize(
    "each", [ListSampling(), ListSampling("positive", 3), ListSampling("query", 2)]
)
def test_sampling_depends_on_the_seed_alone(each: ListSampling) -> None:
    """Equal seeds give equal lists, another seed gives others; `take` limits their number."""
    pairs = table_of(some_pairs(9))
    assert lists_of(pairs, each, (1, 2)) == lists_of(pairs, each, (1, 2))
    assert lists_of(pairs, each, (1, 2)) != lists_of(pairs, each, (1, 3))
    taken = [lists_of(pairs, replace(each, take=5), (1, epoch)) for epoch in range(40)]
    assert {len(lists) for lists in taken} == {5}
    assert {n for lists in taken for own in lists for n in own} == set(range(len(pairs)))


def test_take_counts_only_existing_lists() -> None:
    """A relevant text without lower-graded texts makes no list, and does not count."""
    rows = [(0, 0, 1), (0, 1, 0), *((1, n, 1) for n in range(9))]
    for seed in range(5):
        lists = lists_of(pairs_of(rows), ListSampling("positive", 2, take=1), (seed,))
        assert lists == [(0, 1)]


def test_lists_without_a_gradient_are_left_out() -> None:
    """Pairwise losses have none for equal grades, softmax has none without a relevant text."""
    rows = [(0, 0, 1), (0, 1, 1), (1, 2, 0), (1, 3, 0), (2, 4, 1), (2, 5, 0)]
    pairs = pairs_of(rows)

    def sampled(kind: str) -> set[int]:
        has_gradient = Objective(kind).has_gradient
        return {
            int(pairs.query[own[0]])
            for own in lists_of(pairs, ListSampling("query", 2), (0,), has_gradient)
        }

    assert sampled("ranknet") == sampled("margin") == {2}
    assert sampled("softmax") == {0, 2}
    assert sampled("listnet") == {0, 1, 2}


@pytest.mark.parametrize(
    ("each", "texts", "message"),
    [
        ("list", 2, "unknown lists 'list'.*pair, positive, query"),
        ("pair", 2, "2 texts per list with each = 'pair': expected 1"),
        (
            "query",
            1,
            "1 texts per list with each = 'query': expected 1 with each = 'pair', otherwise 2",
        ),
    ],
)
def test_invalid_list_sampling(each: str, texts: int, message: str) -> None:
    """Unknown units and wrong sizes are refused."""
    with pytest.raises(InputError, match=message):
        ListSampling(each, texts)
