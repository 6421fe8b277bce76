"""Does a study of unanswered queries ask each kind of query, and count those below a threshold?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Query
from birchbark_studies.experiments import answers
from birchbark_studies.experiments.answers import ANSWERED, FOREIGN, KINDS, MEAN, REMOVED
from small_study import COLLECTION, SmallStudy, write_small_study

RECIPE = """
kind = "answers"
title = "Unanswered"
[answers]
thresholds = [0.2, 0.6]
"""
OTHER = COLLECTION.replace("Tiny", "Other").replace("q.tsv", "other.tsv")


@pytest.fixture
def study(tmp_path: Path) -> SmallStudy:
    study = write_small_study(tmp_path, RECIPE)
    (tmp_path / "other.tsv").write_text("1\tthe bark\n2\tarch\n3\tflower\n4\tsteam\n")
    study.append(OTHER)
    return study


def test_shares_are_of_the_queries_of_each_kind(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four queries keep their documents, which the others have lost; means come last."""
    asked: dict[str, set[str]] = {}

    def probability(searcher: Searcher, query: Query) -> float:
        left = {document.doc_id for document in searcher.index}
        asked.setdefault(searcher.directory.name, set()).add(query.text)
        relevant = {"1": {"canoe", "forest"}, "2": {"engine"}, "3": {"bees"}, "4": {"bridge"}}
        return 0.4 if relevant[query.query_id] & left else 0.1

    monkeypatch.setattr(answers, "_probability", probability)
    [table] = study.run().tables
    assert [column.name for column in table.columns] == [ANSWERED, REMOVED, FOREIGN]
    assert [group.name for group in table.groups] == ["Tiny", "Other", MEAN]
    for group in table.groups:
        low, high = ([cell.value for cell in row.cells] for row in group.rows)
        assert low[:2] == [0.0, 1.0]
        assert high == [1.0] * len(KINDS)
    assert all(len(texts) == 8 for texts in asked.values())  # all of both collections


def test_probabilities_are_those_of_the_default_search(study: SmallStudy) -> None:
    """The study runs with the bundled models, and its curves are the means of its table."""
    outcome = study.run()
    [table], [plot] = outcome.tables, outcome.plots
    means = [[cell.value for cell in row.cells] for row in table.groups[-1].rows]
    assert isinstance(plot, answers.Curves)
    for number, kind in enumerate(KINDS):
        assert [y for _, y in plot.series[kind]] == [row[number] for row in means]


def test_one_collection_is_not_enough(study: SmallStudy) -> None:
    """There would be no queries of others."""
    study.replace(OTHER, "")
    with pytest.raises(InputError, match="two collections or more"):
        study.run()


@pytest.mark.parametrize("thresholds", ["[0.0, 0.5]", "[0.5, 1.0]"])
def test_thresholds_are_probabilities(study: SmallStudy, thresholds: str) -> None:
    """0 and 1 would call no query or all queries unanswered."""
    study.replace("[0.2, 0.6]", thresholds)
    with pytest.raises(InputError, match="between 0 and 1"):
        study.read()
