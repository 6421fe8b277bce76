"""Does each epoch hold the lists that were asked for, the same ones from the same seed?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_trainings import some_pairs

from birchbark.errors import InputError
from birchbark.records import Pair
from birchbark.train.examples import Draw, Pairs, draw
from birchbark.train.objectives import Objective

JUDGED = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40
)


def pairs_of(rows: list[tuple[int, int, int]]) -> Pairs:
    """Query, text, grade."""
    return Pairs.of(Pair(f"q{q}", f"query {q}", f"d{d}", f"text {d}", g) for q, d, g in rows)


@given(JUDGED)
def test_pairs_are_kept_as_they_are(rows: list[tuple[int, int, int]]) -> None:
    """Each query and text once, each pair at its place, each query with all its pairs."""
    pairs = pairs_of(rows)
    assert len(set(pairs.queries)) == len(pairs.queries)
    assert len(set(pairs.texts)) == len(pairs.texts)
    found = [
        (pairs.queries[q], pairs.texts[t], g)
        for q, t, g in zip(pairs.query, pairs.text, pairs.grades, strict=True)
    ]
    assert found == [(f"query {q}", f"text {d}", g) for q, d, g in rows]
    for query, numbers in enumerate(pairs.by_query):
        assert numbers.tolist() == np.flatnonzero(pairs.query == query).tolist()


@given(JUDGED, st.integers(0, 99))
def test_each_pair_comes_once_an_epoch(rows: list[tuple[int, int, int]], seed: int) -> None:
    """As a list of its own."""
    lists = draw(pairs_of(rows), Draw(), (seed,))
    assert sorted(lists) == [(n,) for n in range(len(rows))]


@given(JUDGED, st.integers(2, 5), st.integers(0, 99))
def test_a_relevant_text_stands_before_lower_ones(
    rows: list[tuple[int, int, int]], texts: int, seed: int
) -> None:
    """Of the same query, each once; so does every relevant text that has lower ones, once."""
    pairs = pairs_of(rows)
    lists = draw(pairs, Draw("positive", texts), (seed,))
    below = {
        n: int((pairs.grades[pairs.by_query[pairs.query[n]]] < pairs.grades[n]).sum())
        for n in range(len(pairs))
    }
    assert sorted(one[0] for one in lists) == [
        n for n in range(len(pairs)) if pairs.grades[n] > 0 and below[n]
    ]
    for first, *others in lists:
        assert len(set(others)) == len(others) == min(texts - 1, below[first])
        assert all(pairs.query[n] == pairs.query[first] for n in others)
        assert all(pairs.grades[n] < pairs.grades[first] for n in others)


@given(JUDGED, st.integers(2, 5), st.integers(0, 99))
def test_a_query_s_texts_are_dealt_out(
    rows: list[tuple[int, int, int]], texts: int, seed: int
) -> None:
    """Each once, `texts` a list; only a text that is left alone comes not at all."""
    pairs = pairs_of(rows)
    lists = draw(pairs, Draw("query", texts), (seed,))
    assert max(Counter(n for one in lists for n in one).values(), default=1) == 1
    for number, numbers in enumerate(pairs.by_query):
        sizes = [len(one) for one in lists if pairs.query[one[0]] == number]
        alone = len(numbers) % texts == 1
        assert sum(sizes) == len(numbers) - alone
        assert all(1 < size <= texts for size in sizes)
    assert all(len({pairs.query[n] for n in one}) == 1 for one in lists)


@pytest.mark.parametrize("each", [Draw(), Draw("positive", 3), Draw("query", 2)])
def test_chance_is_the_seed_s_alone(each: Draw) -> None:
    """The same lists from the same seed, others from another; `take` so many of them."""
    pairs = Pairs.of(some_pairs(9))
    assert draw(pairs, each, (1, 2)) == draw(pairs, each, (1, 2))
    assert draw(pairs, each, (1, 2)) != draw(pairs, each, (1, 3))
    taken = [draw(pairs, replace(each, take=5), (1, epoch)) for epoch in range(40)]
    assert {len(lists) for lists in taken} == {5}
    assert {n for lists in taken for one in lists for n in one} == set(range(len(pairs)))


def test_take_counts_lists_that_there_are() -> None:
    """A relevant text without lower ones is no list, and takes no list's place."""
    rows = [(0, 0, 1), (0, 1, 0), *((1, n, 1) for n in range(9))]
    for seed in range(5):
        lists = draw(pairs_of(rows), Draw("positive", 2, take=1), (seed,))
        assert lists == [(0, 1)]


def test_lists_that_teach_nothing_are_left_out() -> None:
    """Of equal grades where grades are compared; without a relevant text for softmax."""
    rows = [(0, 0, 1), (0, 1, 1), (1, 2, 0), (1, 3, 0), (2, 4, 1), (2, 5, 0)]
    pairs = pairs_of(rows)

    def drawn(kind: str) -> set[int]:
        useful = Objective(kind).learns_from
        return {int(pairs.query[one[0]]) for one in draw(pairs, Draw("query", 2), (0,), useful)}

    assert drawn("ranknet") == drawn("margin") == {2}
    assert drawn("softmax") == {0, 2}
    assert drawn("listnet") == {0, 1, 2}


@pytest.mark.parametrize(
    ("each", "texts", "message"),
    [
        ("list", 2, "unknown lists 'list'.*pair, positive, query"),
        ("pair", 2, "2 texts in a list for each pair: expected 1"),
        ("query", 1, "1 texts in a list for each query: expected .* 2 or more"),
    ],
)
def test_lists_that_are_none(each: str, texts: int, message: str) -> None:
    """Are refused."""
    with pytest.raises(InputError, match=message):
        Draw(each, texts)
