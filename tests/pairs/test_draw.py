"""Does one seed draw the same everywhere?"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from birchbark.pairs.draw import drawn

NAMES = st.lists(st.text(max_size=3))


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
