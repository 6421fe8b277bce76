"""Are the statistics of a field those of its documents?"""

from __future__ import annotations

from pathlib import Path

from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.statistics import Statistics, field_statistics, full_statistics
from birchbark.records import Document

TEXTS = ["bee honey bee", "river", "", "bee"]


def built(tmp_path: Path) -> Index:
    documents = [Document(f"d{n}", {"text": text}) for n, text in enumerate(TEXTS)]
    return build_index(documents, tmp_path / "i", Schema("plain"), part_tokens=2)


def test_only_the_terms_asked_for_are_counted(tmp_path: Path) -> None:
    """A term that is missing has no frequency; documents without terms count as documents."""
    found = field_statistics(built(tmp_path), "contents", ["bee", "zeppelin"])
    assert found == Statistics(FieldTotals(3, 5), 4, {"bee": 2})
    assert found.average_length == 5 / 3


def test_all_terms_are_counted_once_for_a_snapshot(tmp_path: Path) -> None:
    """They are those of all parts."""
    index = built(tmp_path)
    assert len(index.parts) == 2
    whole = full_statistics(index, "contents")
    assert whole == Statistics(FieldTotals(3, 5), 4, {"bee": 2, "honey": 1, "river": 1})
    assert full_statistics(index, "contents") is whole


def test_a_field_without_tokens_has_no_length() -> None:
    """The mean of nothing is 0 here, not an error."""
    assert Statistics(FieldTotals(0, 0), 7).average_length == 0
