"""Are the same queries kept apart everywhere, whatever their company?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.apart import held_apart, ids_held_apart
from birchbark.errors import InputError

QUERIES = st.dictionaries(
    st.text("abcd", min_size=1, max_size=3), st.text("xy \t", min_size=1, max_size=3)
)


@given(st.sets(st.text()), st.sets(st.text()), st.floats(0, 0.99), st.floats(0, 0.99))
def test_which_queries_are_kept_apart_depends_on_them_alone(
    some: set[str], others: set[str], share: float, larger: float
) -> None:
    """Not on their company; white space aside; a larger share keeps apart all of a smaller one."""
    share, larger = sorted((share, larger))
    alone, together = held_apart(some, share), held_apart(some | others, share)
    assert set(alone) == set(together) & some
    assert set(alone) <= set(held_apart(some, larger))
    assert {f" {text}  " for text in alone} == set(held_apart({f" {t}  " for t in some}, share))


def test_the_share_of_queries_kept_apart() -> None:
    """About what was asked for, and in the order of their lots."""
    texts = [f"query {n}" for n in range(4000)]
    found = held_apart(texts, 0.25)
    assert 0.22 < len(found) / len(texts) < 0.28
    assert found[: len(held_apart(texts, 0.1))] == held_apart(texts, 0.1)


@given(QUERIES, st.floats(0.01, 0.99))
def test_two_ids_of_one_text_are_on_one_side(queries: dict[str, str], share: float) -> None:
    """Told apart by their words."""
    try:
        apart = ids_held_apart(queries, share)
    except InputError as refused:
        assert "leaves one side without queries" in str(refused)
        return
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for query_id, text in queries.items():
        sides[query_id in apart].add(" ".join(text.split()))
    assert sides[True] == {" ".join(t.split()) for t in held_apart(queries.values(), share)}
    assert sides[False] and not sides[True] & sides[False]


@pytest.mark.parametrize("share", [0, 1, -0.2, 20, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    """Percents are a likely slip."""
    with pytest.raises(InputError, match="expected above 0 and below 1, found"):
        ids_held_apart({"1": "a", "2": "b"}, share)


def test_a_side_without_queries_is_refused() -> None:
    """No file may be empty."""
    with pytest.raises(InputError, match="found 0 of 2 queries to hold apart"):
        ids_held_apart({"1": "a", "2": "b"}, 0.001)
