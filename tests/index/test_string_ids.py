"""Have equal strings the same number?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.string_ids import LONGEST, StringIds
from birchbark.index.word_spans import token_spans

STRINGS = st.text("ab\0é", max_size=12) | st.text("ab", min_size=LONGEST - 2, max_size=LONGEST + 2)


@given(st.lists(st.lists(STRINGS, max_size=30), max_size=5))
def test_equal_strings_have_the_same_number(batches: list[list[str]]) -> None:
    """Numbers are in the order of first occurrence; very long strings are always new."""
    numbering, known = StringIds(), dict[int, str]()
    for batch in batches:
        spans = token_spans([batch])
        numbers, new = numbering.assign(spans)
        for i, number in zip(new.tolist(), range(len(known), len(numbering)), strict=True):
            known[number] = batch[i]
        assert [known[number] for number in numbers.tolist()] == batch
    short = [string for string in known.values() if len(string.encode()) <= LONGEST]
    assert len(short) == len(set(short))
    assert len(known) == len(numbering)


def test_many_strings_are_numbered() -> None:
    """There are so many that every array must grow, some of them within one call."""
    numbering = StringIds()
    strings = [f"{'long' * (i % 15)}{i}" for i in range(70_000)]
    for end in (300, 3_000, 70_000):
        numbers, _ = numbering.assign(token_spans([strings[:end], strings[:end]]))
        assert numbers.tolist() == 2 * list(range(end))
        assert len(numbering) == end
