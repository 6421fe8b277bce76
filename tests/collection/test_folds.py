"""Are published folds read, and refused if they do not match the queries?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.folds import read_folds
from birchbark.collection.qrels import read_qrels
from birchbark.errors import InputError


def test_lists_and_objects_of_lists(tmp_path: Path) -> None:
    """Anserini's and CODEC's formats; ids may be numbers; unjudged queries stay."""
    path = tmp_path / "folds.json"
    for form in ([["1", 2], ["3"]], {"1": ["1", "2"], "2": ["3"]}):
        path.write_text(json.dumps(form))
        assert read_folds(path, ["3", "1"]) == (("1", "2"), ("3",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[", "cannot be read"),
        ("7", "not a list of folds.*a JSON list of lists"),
        ('{"s1": {"train_qids": []}}', "not a list of folds"),
        ('[["1", "2"], ["2", "3"]]', "query 2 is in two folds"),
        ('[["1", "1"], ["2"]]', "query 1 is twice in one fold"),
        ('[["1"], ["2"]]', "judged queries are in no fold: 3"),
        ('[["1", "2", "3"]]', "do not divide the judged queries"),
        ('[["1", "2", "3"], []]', "no judged query in fold 2"),
        ('[["1", "2", "3"], ["99"]]', "no judged query in fold 2"),
        ('[["1", "2", "3"], [null]]', "not a query id.*None"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_invalid_folds_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error names the file and the reason."""
    path = tmp_path / "folds.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as fault:
        read_folds(path, ["1", "2", "3"])
    assert str(path) in str(fault.value)


def test_published_folds(data: Callable[[str], Path]) -> None:
    """Robust04's five folds of 50, and CODEC's four: every judged query is in one."""
    robust = read_folds(
        data("checks/robust04/robust04-paper2-folds.json"),
        [str(n) for n in (*range(301, 451), *range(601, 701))],
    )
    assert [len(fold) for fold in robust] == [50] * 5
    judged = read_qrels(data("checks/codec/document_ndcg.qrels")).grades
    codec = read_folds(data("checks/codec/folds.json"), judged)
    assert sorted(q for fold in codec for q in fold) == sorted(judged)
