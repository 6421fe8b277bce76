"""Are strings found by number and numbers by string, and wrong tables refused?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.string_table import StringTable, write_strings

STRINGS = ["river", "bee", "", "日本", "bee", "birch"]


def table_of(path: Path, strings: list[str], *, runs: bool = False) -> StringTable:
    write_strings(path, strings, runs=runs)
    return StringTable(path)


def test_strings_are_read_by_number(tmp_path: Path) -> None:
    """They may be empty, repeated, or of another script."""
    table = table_of(tmp_path / "t", STRINGS)
    assert len(table) == 6
    assert list(table) == STRINGS
    assert table[3] == "日本"
    assert table.raw(3) == "日本".encode()
    assert table.take([5, 0, 0]) == ["birch", "river", "river"]


def test_numbers_are_found_by_string(tmp_path: Path) -> None:
    """Of a repeated string it is the last one's; of a missing one there is none."""
    table = table_of(tmp_path / "t", STRINGS)
    assert table.find_all(["bee", "river", "", "birc", "birches"]).tolist() == [4, 0, 2, -1, -1]
    assert table.find("日本") == 3
    assert table.find("\ud800") is None


@given(st.lists(st.text("ab\0é", max_size=4)), st.text("ab\0é", max_size=4))
def test_any_string_is_found(
    tmp_path_factory: pytest.TempPathFactory, strings: list[str], other: str
) -> None:
    """Tables may be sorted or not, and empty."""
    numbers = {string: number for number, string in enumerate(strings)}
    table = table_of(tmp_path_factory.mktemp("table") / "t", strings)
    assert table.find_all([*strings, other]).tolist() == [
        numbers.get(string, -1) for string in (*strings, other)
    ]


def test_runs_are_searched_one_by_one(tmp_path: Path) -> None:
    """Each is sorted by itself; no order is written."""
    table = table_of(tmp_path / "t", ["bee", "river", "ant", "bee"], runs=True)
    assert not (tmp_path / "t.order.npy").exists()
    assert table.find_all(["bee", "ant"], 0, 2).tolist() == [0, -1]
    assert table.find_all(["bee", "ant"], 2, 4).tolist() == [3, 2]


def test_strings_with_a_character_are_found(tmp_path: Path) -> None:
    """Characters of several bytes before it do not move its place."""
    table = table_of(tmp_path / "t", ["日本", "bee", "tab\t", "\t"])
    assert list(table.matches(re.compile("\t"))) == ["tab\t", "\t"]
    assert list(table.matches(re.compile("x"))) == []


def test_a_table_that_was_cut_is_refused(tmp_path: Path) -> None:
    """It lacks the end of its last string."""
    write_strings(tmp_path / "t", STRINGS)
    path = tmp_path / "t.bytes"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"t\.bytes does not have the length"):
        StringTable(tmp_path / "t")
