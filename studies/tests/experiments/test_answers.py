"""Does a study of unanswered queries ask each kind of query, and count those below a threshold?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Query
from birchbark_studies.experiments import answers
from birchbark_studies.experiments.answers import (
    ANSWERED,
    FOREIGN,
    KINDS,
    MEAN,
    REMOVED,
    AnswersExperiment,
    _mean,
    _shares,
)
from birchbark_studies.workspace import Workspace
from conftest import DOCUMENTS
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


@pytest.mark.parametrize(("count", "lost"), [(150, 2), (1, 1)])
def test_queries_without_a_relevant_document_are_not_asked(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch, count: int, lost: int
) -> None:
    """From grade 2 on, one of three queries keeps its document, and those asked besides lose it.

    The number of queries limits each kind; documents of queries that are not asked stay.
    """
    documents = {"1": "canoe", "2": "engine", "3": "bees"}
    qrels = "".join(f"{query_id} 0 {doc_id} 2\n" for query_id, doc_id in documents.items())
    (study.root / "qrels.txt").write_text(f"{qrels}4 0 bridge 1\n1 0 forest 1\n")
    study.replace('name = "Tiny"', 'name = "Tiny"\nrelevant = 2')
    study.replace("thresholds", f"queries = {count}\nthresholds")
    recipe, workspace = study.read(), Workspace(study.root, study.root)
    left: set[str] = set()
    asked: list[str] = []

    def probability(index: Index, query: Query) -> float:
        left.update(document.doc_id for document in index)
        asked.append(query.query_id)
        return 0.1

    monkeypatch.setattr(answers, "attach", lambda *_: None)
    monkeypatch.setattr(answers, "Searcher", lambda directory, loaded: Index(directory))
    monkeypatch.setattr(answers, "_probability", probability)
    collection, foreign = workspace.open(recipe.collections[0]), [Query("9", "steam")]
    assert isinstance(recipe.experiment, AnswersExperiment)
    found = recipe.experiment._ask(collection, foreign, recipe.seed, workspace, LoadedModels())
    assert found == {ANSWERED: [0.1], REMOVED: [0.1] * lost, FOREIGN: [0.1]}
    answered, *removed, last = asked
    assert {answered, *removed} <= documents.keys()
    assert last == "9"
    assert left == {d.doc_id for d in DOCUMENTS} - {documents[query_id] for query_id in removed}


def test_a_probability_at_the_threshold_is_not_below_it() -> None:
    """Shares are of each kind of query, and means of collections count each the same."""
    found = {"a": [0.1, 0.2, 0.3, 0.2], "b": [0.2, 0.1]}
    assert [_shares(found, threshold) for threshold in (0.1, 0.2, 0.25)] == [
        [0.0, 0.0],
        [0.25, 0.5],
        [0.75, 1.0],
    ]
    first, second = [[0.0, 0.5], [0.25, 1.0]], [[1.0, 0.25], [0.75, 0.0]]
    assert _mean([first, second]) == [[0.5, 0.375], [0.5, 0.5]]


def test_one_collection_is_not_enough(study: SmallStudy) -> None:
    """There would be no queries of others."""
    study.replace(OTHER, "")
    with pytest.raises(InputError, match="two collections or more"):
        study.run()


@pytest.mark.parametrize(("key", "line"), [("depth", "depth = 10"), (r"bm25", "[bm25]\nk1 = 1.2")])
def test_settings_of_a_first_stage_are_refused(study: SmallStudy, key: str, line: str) -> None:
    """The default search has its own."""
    study.replace("[answers]", f"{line}\n[answers]")
    with pytest.raises(InputError, match=rf"{key}: studies of this kind search by default"):
        study.read()


@pytest.mark.parametrize("thresholds", ["[0.0, 0.5]", "[0.5, 1.0]"])
def test_thresholds_are_probabilities(study: SmallStudy, thresholds: str) -> None:
    """0 and 1 would call no query or all queries unanswered."""
    study.replace("[0.2, 0.6]", thresholds)
    with pytest.raises(InputError, match="between 0 and 1"):
        study.read()
