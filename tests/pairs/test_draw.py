"""Does one seed draw the same everywhere, and does no query stand on both sides of a split?"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.pairs.draw import drawn, held_apart

NAMES = st.lists(st.text(max_size=3))
QUERIES = st.dictionaries(
    st.text("abcd", min_size=1, max_size=3), st.text("xy \t", min_size=1, max_size=3)
)


@given(NAMES, st.integers(0, 5), st.integers(), st.randoms())
def test_the_order_of_the_names_changes_nothing(names, count, seed, shuffler) -> None:  # type: ignore[no-untyped-def]
    """And so many are drawn, none twice."""
    found = drawn(names, count, seed)
    shuffled = [*names, *names]
    shuffler.shuffle(shuffled)
    assert drawn(shuffled, count, seed) == found
    assert len(found) == len(set(found)) == min(count, len(set(names)))
    assert set(found) <= set(names)


def test_what_is_drawn_is_written_down() -> None:
    """On every machine, by every Python."""
    assert drawn("abcdefgh", 3, 0, "q") == ["d", "f", "h"]
    assert drawn("abcdefgh", 3, 1, "q") != ["d", "f", "h"]


def test_each_is_drawn_as_often_as_any_other() -> None:
    """Over many seeds, within four standard deviations."""
    times = Counter(name for seed in range(4000) for name in drawn("abcdefgh", 2, seed))
    assert all(abs(times[name] - 1000) < 4 * (4000 * 0.25 * 0.75) ** 0.5 for name in "abcdefgh")


@given(QUERIES, st.floats(0.01, 0.99), st.integers(0, 9))
def test_no_query_is_on_both_sides(queries: dict[str, str], share: float, seed: int) -> None:
    """Told apart by their words: two ids of one text are on one side."""
    texts = {" ".join(text.split()) for text in queries.values()}
    try:
        apart = held_apart(queries, share, seed)
    except InputError:
        assert round(share * len(texts)) in (0, len(texts))
        return
    sides = [
        {
            " ".join(text.split())
            for query_id, text in queries.items()
            if (query_id in apart) is side
        }
        for side in (True, False)
    ]
    assert not sides[0] & sides[1]
    assert len(sides[0]) == round(share * len(texts))
    assert apart == held_apart(dict(reversed(queries.items())), share, seed)


@pytest.mark.parametrize("share", [0, 1, -0.2, 20, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    """Percents are a likely slip."""
    with pytest.raises(InputError, match="expected above 0 and below 1, found"):
        held_apart({"1": "a", "2": "b"}, share, 0)


def test_a_side_without_queries_is_refused() -> None:
    """Rounding must not leave a file empty."""
    with pytest.raises(InputError, match="found 0 of 2 queries to hold apart"):
        held_apart({"1": "a", "2": "b"}, 0.2, 0)
