"""Are the grades of the first documents counted?"""

from __future__ import annotations

import pytest

from birchbark.errors import InputError
from birchbark.evaluate.grades import grades_at
from birchbark.evaluate.measures import measure
from birchbark.records import Qrels, Ranking, Run


def test_grades_of_the_first_documents() -> None:
    """Only judged queries are counted; unjudged documents are distinct from grade 0."""
    qrels = Qrels({"1": {"a": 2, "b": 0}, "2": {"c": 1}, "3": {"d": 0}})
    rankings = {
        "1": Ranking.of(["a", "x", "b"], [3, 2, 1]),
        "2": Ranking.of(["y", "c"], [2, 1]),
        "9": Ranking.of(["a"], [1]),
    }
    run = Run(rankings)
    assert grades_at(qrels, run, 1) == {None: 1, 0: 0, 1: 0, 2: 1}
    assert grades_at(qrels, run, 2) == {None: 2, 0: 0, 1: 1, 2: 1}
    assert grades_at(qrels, run, 9) == {None: 2, 0: 1, 1: 1, 2: 1}
    found = measure(qrels, run, ["Judged@2"]).values["Judged@2"]
    assert found == {"1": 0.5, "2": 0.5, "3": 0.0}
    with pytest.raises(InputError, match="depth is out of range"):
        grades_at(qrels, run, 0)


def test_counts_with_a_higher_grade() -> None:
    """All documents retrieved are counted, and the relevant ones by no tool."""
    qrels = Qrels({"1": {"a": 2, "b": 1, "c": 2}}, relevant=2)
    run = Run({"1": Ranking.of(["a", "b", "x"], [3, 2, 1])})
    values = measure(qrels, run, ["NumRet", "P@2", "NumRet(rel=2)"]).means
    assert values == {"NumRet": 3, "P@2": 0.5, "NumRet(rel=2)": 1}
    with pytest.raises(InputError, match="counts grade 1"):
        measure(qrels, run, ["NumRel"])
