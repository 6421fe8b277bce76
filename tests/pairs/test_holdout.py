"""Does holding out a query depend on its text alone?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.pairs.holdout import held_out_ids, held_out_queries, split_for_validation

QUERIES = st.dictionaries(
    st.text("abcd", min_size=1, max_size=3), st.text("xy \t", min_size=1, max_size=3)
)


@given(st.sets(st.text()), st.sets(st.text()), st.floats(0, 0.99), st.floats(0, 0.99))
def test_holding_out_depends_on_the_query_alone(
    some: set[str], others: set[str], share: float, larger: float
) -> None:
    """Other queries and white space do not matter; a larger share includes a smaller one."""
    share, larger = sorted((share, larger))
    alone, merged = held_out_queries(some, share), held_out_queries(some | others, share)
    assert set(alone) == set(merged) & some
    assert set(alone) <= set(held_out_queries(some, larger))
    assert {f" {text}  " for text in alone} == set(
        held_out_queries({f" {t}  " for t in some}, share)
    )


def test_the_share_of_held_out_queries() -> None:
    """It is close to the requested share; a smaller share is a prefix."""
    texts = [f"query {n}" for n in range(4000)]
    held_out = held_out_queries(texts, 0.25)
    assert 0.22 < len(held_out) / len(texts) < 0.28
    assert held_out[: len(held_out_queries(texts, 0.1))] == held_out_queries(texts, 0.1)


@given(QUERIES, st.floats(0.01, 0.99))
def test_two_ids_of_one_text_are_on_one_side(queries: dict[str, str], share: float) -> None:
    """Queries with equal texts are held out together."""
    try:
        held_out = held_out_ids(queries, share)
    except InputError as refused:
        assert "leaves one side without queries" in str(refused)
        return
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for query_id, text in queries.items():
        sides[query_id in held_out].add(" ".join(text.split()))
    assert sides[True] == {" ".join(t.split()) for t in held_out_queries(queries.values(), share)}
    assert sides[False] and not sides[True] & sides[False]


@pytest.mark.parametrize("share", [0, 1, -0.2, 20, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    """A percentage is refused, for example."""
    with pytest.raises(InputError, match="expected above 0 and below 1, found"):
        held_out_ids({"1": "a", "2": "b"}, share)


def test_a_side_without_queries_is_refused() -> None:
    """Both files must have queries."""
    with pytest.raises(InputError, match="found 0 of 2 queries held out"):
        held_out_ids({"1": "a", "2": "b"}, 0.001)


def test_unused_queries_are_on_no_side() -> None:
    """They are neither trained nor validated on, and take no place among those validated on."""
    queries = [f"query {n}" for n in range(60)]
    held_out = held_out_queries(queries, 0.2)
    never = [f" {held_out[0]}", next(query for query in queries if query not in held_out)]
    [(trained, validated)] = split_for_validation([queries], [0.2], [3], never)
    chosen = [
        {q for q, is_chosen in zip(queries, mask, strict=True) if is_chosen}
        for mask in (trained, validated)
    ]
    assert chosen == [set(queries) - set(held_out) - {never[1]}, set(held_out[1:4])]


def test_what_one_set_holds_out_no_set_trains_on() -> None:
    """However it is written there, and although that set holds out nothing itself."""
    texts = [f"query {n}" for n in range(60)]
    held, other = held_out_queries(texts, 0.2)[0], held_out_queries(texts, 1.1)[-1]
    sets = [[other, held.replace(" ", "\t ")], [held, other]]
    for order in (1, -1):
        splits = split_for_validation(sets[::order], [0.0, 0.2][::order], [None, None])
        first, second = ([mask.tolist() for mask in split] for split in splits[::order])
        assert first == [[True, False], [False, False]]
        assert second == [[False, True], [True, False]]
