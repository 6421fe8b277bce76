"""Are all similar strings of a sorted table found, without looking at most of the others?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from birchbark.index.similar_strings import similar_strings
from birchbark.index.string_table import StringTable, write_strings

WORD = st.text("abcé漢", max_size=8)


@given(st.sets(WORD, min_size=1, max_size=60), WORD, st.integers(0, 3), st.data())
def test_those_that_a_comparison_with_each_finds(
    tmp_path_factory: pytest.TempPathFactory,
    words: set[str],
    wanted: str,
    allowed: int,
    data: st.DataObject,
) -> None:
    """They are found with their number of differences, within the given range of the table."""
    ordered = sorted(words, key=str.encode)
    path = tmp_path_factory.mktemp("table") / "strings"
    write_strings(path, ordered)
    begin = data.draw(st.integers(0, len(ordered)))
    end = data.draw(st.integers(begin, len(ordered)))
    distances = {word: OSA.distance(word, wanted) for word in ordered[begin:end]}
    expected = {word: distance for word, distance in distances.items() if distance <= allowed}
    assert StringTable(path).similar(wanted, allowed, begin, end) == expected


def test_beginnings_that_differ_are_skipped() -> None:
    """Offsets that are read reveal which strings were looked at: a few of 20,000."""
    words = [*(f"river{n:03}" for n in range(20)), *(f"zz{n:05}" for n in range(20_000))]
    ends = np.cumsum([0, *map(len, words)])
    table = np.frombuffer("".join(words).encode(), np.uint8), ends
    looked_at = 0

    class Counted:
        def __getitem__(self, number: int) -> int:
            nonlocal looked_at
            looked_at += 1
            return int(ends[number])

    from birchbark.index import similar_strings as module

    similar, differences = similar_strings(table, words[7], 2, 0, len(words))
    assert similar[differences == 0].tolist() == [7]
    wanted = np.array([ord(letter) for letter in words[7]])
    found = np.empty((2, len(words)), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_begins", module._begins.py_func)
        module._find_similar.py_func((table[0], Counted()), wanted, 2, (0, len(words)), found)
    assert looked_at < 250


def test_damage_is_reported() -> None:
    """Offsets outside the bytes do not lead outside the arrays."""
    table = np.zeros(3, np.uint8), np.array([0, 9])
    with pytest.raises(ValueError, match="damaged"):
        similar_strings(table, "abc", 1, 0, 1)
