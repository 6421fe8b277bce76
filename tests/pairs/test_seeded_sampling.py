"""Does a seed give the same sample everywhere?"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.pairs import seeded_sampling
from birchbark.pairs.seeded_sampling import sample

NAMES = st.lists(st.text(max_size=3))


@given(NAMES, st.integers(0, 5), st.integers(), st.randoms())
def test_the_order_of_names_does_not_matter(names, count, seed, shuffler) -> None:  # type: ignore[no-untyped-def]
    """`count` distinct names are drawn, or all if there are fewer."""
    drawn = sample(names, count, seed)
    shuffled = [*names, *names]
    shuffler.shuffle(shuffled)
    assert sample(shuffled, count, seed) == drawn
    assert len(drawn) == len(set(drawn)) == min(count, len(set(names)))
    assert set(drawn) <= set(names)


@given(NAMES, st.integers(0, 5))
def test_names_are_drawn_by_blocks(names: list[str], count: int) -> None:
    """The sample is that of all names at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeded_sampling, "BLOCK", 2)
        assert sample(iter(names), count, 7) == sample(sorted(names), count, 7)
    assert sample(names, count, 7) == sample(names, len(names), 7)[:count]


def test_samples_are_the_same_in_every_version() -> None:
    """They are the same on every machine and with every Python."""
    assert sample("abcdefgh", 3, 0, "q") == ["d", "f", "h"]
    assert sample("abcdefgh", 3, 1, "q") != ["d", "f", "h"]


def test_names_are_drawn_equally_often() -> None:
    """Counts over many seeds agree within four standard deviations."""
    times = Counter(name for seed in range(4000) for name in sample("abcdefgh", 2, seed))
    assert all(abs(times[name] - 1000) < 4 * (4000 * 0.25 * 0.75) ** 0.5 for name in "abcdefgh")
