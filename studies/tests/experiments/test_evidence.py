"""Are models compared by the pipeline's evidence, with weights tuned on the other folds?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.collection.data_files import DEFAULT_DATA_ROOT
from birchbark.collection.documents import read_collection
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.evaluate.folds import Folds, make_folds
from birchbark.evaluate.measures import Results, measure
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Qrels, Query
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.session import OnnxSession
from birchbark.segment.sentences import sentences
from birchbark_studies.experiments.evidence.evidence_experiment import EvidenceExperiment
from birchbark_studies.experiments.evidence.evidence_runs import EvidenceRuns
from birchbark_studies.experiments.evidence.evidence_scores import read_candidate_scores
from birchbark_studies.experiments.evidence.evidence_settings import EvidenceSettings
from birchbark_studies.experiments.evidence.evidence_tables import (
    _by_length,
    _length_classes,
    query_length,
)
from birchbark_studies.experiments.evidence.evidence_topics import _changes
from birchbark_studies.first_stages import first_stages
from birchbark_studies.recipe import RM3Choices
from birchbark_studies.run import run_study
from birchbark_studies.workspace import Workspace
from conftest import DOCUMENTS, QUERIES
from small_study import SmallStudy, noted_families, table_of, values_of, write_small_study

RECIPE = """
kind = "evidence"
title = "Evidence"
measures = ["AP"]
[evidence]
models = { cross = "MODEL" }
rm3 = false
depth = 3
best = 2
step = 0.5
folds = 2
"""


@pytest.fixture
def study(tmp_path: Path, bert: Callable[..., Path]) -> SmallStudy:
    return write_small_study(tmp_path, RECIPE, MODEL=bert(labels=1))


def test_queries_are_ranked_as_by_rerank_with_tuned_weights(
    study: SmallStudy, tmp_path: Path
) -> None:
    """Equation 3.2 gives the same order as `rerank` with the weights of one of the folds."""
    outcome = study.run()
    rows = table_of(outcome, "weights").groups[0].rows
    index = build_index(
        [Document(d.doc_id, d.fields) for d in DOCUMENTS], tmp_path / "index", Schema("english")
    )
    scorer = load_scorer(settings_of(study).compared.existing["cross"])
    queries = [Query(q, text) for q, text in QUERIES.items()]
    first = outcome.runs["Tiny.BM25"]
    ranked = []
    for row in rows[:2]:
        a, *weights = [float(str(cell.value)) for cell in row.cells[:3]]
        if a == 1:
            ranked.append(first)
            continue
        ranker = Ranker(
            scorer,
            sentences,
            Top(tuple(w / (1 - a) for w in weights)),
            interpolation=Interpolation(a),
            depth=3,
        )
        ranked.append(rerank(IndexEngine(index), first, queries, ranker))
    for query_id, ranking in outcome.runs["Tiny.cross"].rankings.items():
        assert ranking.doc_ids in [run.rankings[query_id].doc_ids for run in ranked]


def test_the_grid_has_all_weights_once(study: SmallStudy) -> None:
    """No weight is negative; the weights of the first stage and the best segment sum to 1."""
    grid = replace(settings_of(study), step=0.1, segment_counts=(3,)).grid
    assert grid.shape == (1331, 4)
    np.testing.assert_allclose(grid[:, 0] + grid[:, 1], 1)
    assert (grid >= 0).all()
    below = grid[grid[:, 0] < 1]
    assert len(np.unique(below.round(9), axis=0)) == len(below)


def test_cached_scores_give_the_same_figures(study: SmallStudy, tmp_path: Path) -> None:
    """Outcomes are equal without a cache, with an empty cache and with a full cache."""
    caches = (None, tmp_path / "cache", tmp_path / "cache")
    outcomes = [study.run(f"out{n}", cache=cache) for n, cache in enumerate(caches)]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert list((tmp_path / "cache" / "scores").glob("*.scores"))


def test_depth_of_a_collection(study: SmallStudy) -> None:
    """A single candidate keeps the first stage's order; an unknown collection is refused."""
    study.replace("depth = 3", "depth = 3\ndepth_of = { Tiny = 1 }")
    runs = study.run().runs
    for query_id, ranking in runs["Tiny.cross"].rankings.items():
        assert ranking.doc_ids == runs["Tiny.BM25"].rankings[query_id].doc_ids
    study.replace("{ Tiny = 1 }", "{ Tyni = 1 }")
    with pytest.raises(InputError, match=r"an unknown collection.*found Tyni"):
        study.run("out2")


def test_segments_of_a_collection(study: SmallStudy) -> None:
    """Its documents are split in its own way, as in a study with no other; the note tells."""
    study.replace("step = 0.5", 'step = 0.5\nsegments_of = { Tiny = "title" }')
    outcome = study.run()
    note = table_of(outcome, "evidence").note
    assert "best 2 segments (sentences; Tiny: title). " in note
    study.replace('segments_of = { Tiny = "title" }', 'segments = "title"')
    titles = study.run("titles").runs
    for row in ("cross", "cross, alone"):
        assert outcome.runs[f"Tiny.{row}"].rankings == titles[f"Tiny.{row}"].rankings


def test_first_stages_of_a_given_run(study: SmallStudy, tmp_path: Path) -> None:
    """It is restricted to judged queries and cut off at the depth; nothing else is ranked."""
    lines = [f"{q} Q0 d{n} {n} {-n} x\n" for q in ("1", "9") for n in range(1, 5)]
    (tmp_path / "given.run").write_text("".join(lines))
    study.append('run = "given.run"\n')
    study.replace('title = "Evidence"', 'title = "Evidence"\ndepth = 3')
    recipe, workspace = study.read(), Workspace(tmp_path, tmp_path)
    collection = workspace.open(recipe.collections[0])

    def no_index() -> Index:
        raise AssertionError

    (run,) = first_stages(recipe, workspace, no_index, collection, rm3=True).values()
    assert run.tag == "first stage"
    assert {q: r.doc_ids for q, r in run.rankings.items()} == {"1": ("d1", "d2", "d3")}


def test_parameters_of_rm3(study: SmallStudy) -> None:
    """All combinations of the lists are tried, by the given measure; others are the defaults."""
    rm3 = "documents = [2, 5]\nterms = 7\noriginal_weight = [0.2, 0.6]\nmax_df_share = 0.3\n"
    study.replace("[evidence]", f'[rm3]\n{rm3}tune = "P@5"\n[evidence]')
    assert study.read().rm3 == RM3Choices(
        (RM3(2, 7, 0.2, 0.3), RM3(2, 7, 0.6, 0.3), RM3(5, 7, 0.2, 0.3), RM3(5, 7, 0.6, 0.3)),
        "P@5",
    )
    study.replace(f'{rm3}tune = "P@5"', "terms = 7")
    assert study.read().rm3 == RM3Choices((RM3(terms=7),), "AP")


def test_a_given_run_is_the_first_stage(study: SmallStudy, tmp_path: Path) -> None:
    """All runs rank the documents of the given run only."""
    (tmp_path / "given.run").write_text(
        "".join(
            f"{q} Q0 {d} {r} {9 - r} x\n" for q in QUERIES for r, d in enumerate(["bees", "canoe"])
        )
    )
    study.append('run = "given.run"\n')
    outcome = study.run()
    assert list(outcome.runs) == ["Tiny.first stage", "Tiny.cross", "Tiny.cross, alone"]
    for run in outcome.runs.values():
        assert {frozenset(r.doc_ids) for r in run.rankings.values()} == {
            frozenset({"bees", "canoe"})
        }


def settings_of(study: SmallStudy) -> EvidenceSettings:
    """The settings of the study's experiment."""
    experiment = study.read().experiment
    assert isinstance(experiment, EvidenceExperiment)
    return experiment.settings


def test_several_numbers_of_segments(study: SmallStudy, tmp_path: Path) -> None:
    """Each row equals that of a study with only this number."""
    recipe = study.path.read_text()
    study.replace("best = 2", "best = [1, 2, 4]\nalone = false")
    many = values_of(study.run("many"), "evidence")
    assert list(many) == ["BM25", "1S: cross", "2S: cross", "4S: cross"]
    for n in (1, 2, 4):
        study.path.write_text(recipe.replace("best = 2", f"best = {n}"))
        single = values_of(study.run(f"{n}"), "evidence")
        assert single["cross"] == many[f"{n}S: cross"]


def test_pruned_segments(study: SmallStudy, tmp_path: Path) -> None:
    """The run equals that over documents without the sentences that contain query terms."""
    (tmp_path / "given.run").write_text(
        "".join(f"1 Q0 {d.doc_id} {r} 1 x\n" for r, d in enumerate(DOCUMENTS, 1))
    )
    (tmp_path / "q.tsv").write_text("1\tbirches, rivers\n")
    (tmp_path / "qrels.txt").write_text("1 0 bridge 1\n1 0 bees 1\n2 0 bees 1\n")
    study.replace("depth = 3", "depth = 5")
    study.append('run = "given.run"\n')
    study.replace("best = 2", "best = 2\npruned = true\nalone = false")
    outcome = study.run()
    assert list(values_of(outcome, "pruned")) == ["first stage", "cross"]
    words = ("birch", "river")
    lines = [
        {
            "id": d.doc_id,
            "text": "\n\n".join(
                s.text for s in sentences(d) if not any(word in s.text.lower() for word in words)
            ),
        }
        for d in DOCUMENTS
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    study.replace("pruned = true\nalone = false", "")
    removed = study.run("removed").runs["Tiny.cross"].rankings
    assert outcome.runs["Tiny.cross, pruned"].rankings == removed
    assert outcome.runs["Tiny.cross"].rankings != removed


def test_tables_of_the_best_number_of_segments(study: SmallStudy) -> None:
    """The tables of lengths and of pruned segments show each model's best row; ties: the first."""
    study.replace("best = 2", "best = [1, 2, 4]\nalone = false\npruned = true\nlengths = [1]")
    outcome = study.run()
    names = ["1S: cross", "2S: cross", "4S: cross"]
    whole = values_of(outcome, "evidence")
    best = max(names, key=lambda name: whole[name][0])
    assert list(values_of(outcome, "lengths")) == ["queries", "BM25", best]
    qrels = read_qrels(study.root / "qrels.txt")
    pruned = {n: measure(qrels, outcome.runs[f"Tiny.{n}, pruned"], ["AP"]).means for n in names}
    best = max(names, key=lambda name: pruned[name]["AP"])
    rows = values_of(outcome, "pruned")
    assert list(rows) == ["BM25", best]
    assert rows[best] == [pruned[best]["AP"]]


def test_pruned_segments_beside_aggregations(study: SmallStudy) -> None:
    """Without numbers of segments, one row shows the best segment that is left."""
    study.replace("best = 2", 'aggregations = ["mean"]\npruned = true\nalone = false')
    outcome = study.run()
    assert list(values_of(outcome, "pruned")) == ["BM25", "cross"]
    study.replace('aggregations = ["mean"]', "best = 1")
    assert values_of(study.run("best"), "pruned") == values_of(outcome, "pruned")


def test_another_first_stage_is_not_among_the_comparisons(study: SmallStudy) -> None:
    """BM25 without expansion has a mean, but no difference, and does not count as a comparison."""
    study.replace("rm3 = false", "rm3 = true")
    rows = {row.name: row.cells[0] for row in table_of(study.run(), "evidence").groups[0].rows}
    assert rows["BM25"].interval
    assert rows["BM25"].difference is None
    for name in ("cross", "cross, alone"):
        difference = rows[name].difference
        assert difference and difference.p is not None
        assert difference.corrected_p == min(1, 2 * difference.p)


def test_the_recipes_seed_draws_all_folds(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RM3's parameters are tuned on the same folds as weights."""
    drawn_as = set()

    def drawn(query_ids: Iterable[str], count: int, seed: int) -> Folds:
        drawn_as.add((count, seed))
        return make_folds(query_ids, count, seed)

    monkeypatch.setattr("birchbark_studies.collections.make_folds", drawn)
    study.replace("rm3 = false", "rm3 = true")
    study.replace("[evidence]", "seed = 7\n[rm3]\ndocuments = [1, 3]\n[evidence]")
    study.run()
    assert drawn_as == {(2, 7)}


def test_rm3_is_tuned_on_the_other_folds(study: SmallStudy, tmp_path: Path) -> None:
    """Each query is ranked with the parameters that are best for the other folds' queries."""
    study.replace("rm3 = false", "rm3 = true")
    study.replace(
        "[evidence]", "[rm3]\ndocuments = [1, 3]\noriginal_weight = [0.2, 0.9]\n[evidence]"
    )
    (tmp_path / "folds.json").write_text('[["1", "2"], ["3", "4"]]')
    study.append('folds = "folds.json"\n')
    told: list[str] = []
    outcome = study.run(progress=told.append)
    qrels = read_qrels(tmp_path / "qrels.txt")
    index = build_index(read_collection(tmp_path / "docs.jsonl"), tmp_path / "index")
    queries = read_queries(tmp_path / "q.tsv")
    runs = [
        rank_queries(index, queries, FirstStage(BM25(), expansion=RM3(n, 10, w)), depth=1000)
        for n in (1, 3)
        for w in (0.2, 0.9)
    ]
    values = [measure(qrels, run, ["AP"]).values["AP"] for run in runs]
    tuned = outcome.runs["Tiny.BM25+RM3"].rankings
    for fold, others in ((("1", "2"), ("3", "4")), (("3", "4"), ("1", "2"))):
        best = max(range(4), key=lambda row: sum(values[row][query_id] for query_id in others))
        for query_id in fold:
            assert tuned[query_id] == runs[best].rankings[query_id]
    notes = [line for line in told if "RM3 of fold" in line]
    assert len(notes) == 2
    assert "original_weight 0." in notes[0]
    study.replace("documents = [1, 3]", "documents = [1, 0]")
    with pytest.raises(InputError, match=r"rm3\.documents.*integers of 1 or more"):
        study.read()


def test_the_level_of_significance(study: SmallStudy) -> None:
    """It decides which differences have a †, and is told; it must be between 0 and 1."""
    study.replace('title = "Evidence"', 'title = "Evidence"\nsignificance_level = 0.01')
    table = table_of(study.run(), "evidence")
    assert "p < .01." in table.note
    study.replace("significance_level = 0.01", "significance_level = 1")
    with pytest.raises(InputError, match=r"significance_level.*between 0 and 1.*found 1"):
        study.read()


def test_lengths_of_robust04_are_those_of_the_paper() -> None:
    """Table 5.4 of the birch paper counts 11, 90, 135 and 14 queries of one to four words."""
    topics = DEFAULT_DATA_ROOT / "checks/robust04/topics.robust04.txt"
    if not topics.exists():
        pytest.skip(f"{topics} is missing")
    lengths = Counter(min(4, query_length(query)) for query in read_queries(topics, ("title",)))
    assert lengths == {1: 11, 2: 90, 3: 135, 4: 14}


def test_classes_of_query_lengths() -> None:
    """A class ends with its largest length; queries without text are in none."""
    assert _length_classes([]) == []
    assert _length_classes([2]) == ["1–2", "3 and more"]
    assert _length_classes([1, 2, 4]) == ["1", "2", "3–4", "5 and more"]
    words = "birch river stone bridge iron".split()
    queries = [Query(f"q{n}", " ".join(["the", *words[:n]])) for n in (1, 2, 3, 4, 5)]
    qrels = Qrels({q: {"d": 1} for q in ("q5", "q4", "q3", "none", "q2", "q1")})
    runs = EvidenceRuns("Tiny", tuple(queries), qrels, "BM25", {}, {}, {}, {}, {})
    assert _by_length(runs, [1, 2, 4]) == [["q1"], ["q2"], ["q4", "q3"], ["q5"]]


def test_other_tables_are_of_the_tuned_measure(study: SmallStudy) -> None:
    """Gains, query lengths and topics are, whatever measures the first table shows.

    One document rises from the second place to the first, which changes AP but not P@2.
    """
    (study.root / "qrels.txt").write_text("1 0 forest 1\n2 0 bridge 1\n3 0 bees 1\n4 0 forest 1\n")
    study.replace("best = 2", 'best = 2\nlengths = [9]\ntopics = ["cross"]\ntune = "P@2"')
    outcome = study.run()
    qrels = read_qrels(study.root / "qrels.txt")
    before, after = (
        measure(qrels, outcome.runs[f"Tiny.{row}"], ["AP", "P@2"]).values
        for row in ("BM25", "cross")
    )
    assert before["AP"] != after["AP"]
    assert before["P@2"] == after["P@2"]
    assert values_of(outcome, "gains")["cross"] == [0, 0]
    mean = sum(before["P@2"].values()) / 4
    lengths = values_of(outcome, "lengths")
    assert lengths["BM25"] == lengths["cross"] == [mean, None]
    assert mean != sum(before["AP"].values()) / 4
    assert [topic.query_id for topic in outcome.topics] == ["1", "2", "3", "4"]  # all equal
    for topic in outcome.topics:
        assert topic.before == topic.after == before["P@2"][topic.query_id]
    (bars,) = [plot for plot in outcome.plots if plot.name == "queries-1-1"]
    assert bars.title == "Tiny: cross, 0 % of queries improved"


def test_topics_begin_with_the_largest_gain() -> None:
    """Equal gains are in the order of the query ids; the value before comes first."""
    before = {"c": 0.5, "b": 0.25, "a": 0.5, "d": 1.0}
    after = {"c": 0.75, "b": 0.5, "a": 0.75, "d": 0.25}
    results = [Results(tag, {"AP": of}, {}) for tag, of in (("BM25", before), ("x", after))]
    assert _changes(*results, "AP") == [
        ("a", 0.5, 0.75),
        ("b", 0.25, 0.5),
        ("c", 0.5, 0.75),
        ("d", 1.0, 0.25),
    ]


def test_query_lengths(study: SmallStudy, tmp_path: Path) -> None:
    """Classes partition the queries; the mean over the classes equals that in the first table."""
    (tmp_path / "q.tsv").write_text("1\tbirch\n2\tiron engine\n3\tbees that dance\n4\tstone\n")
    study.replace("best = 2", "best = 2\nlengths = [1]")
    outcome = study.run()
    lengths = values_of(outcome, "lengths")
    assert lengths["queries"] == ["2", "2"]
    for row in ("BM25", "cross"):
        first, second = (float(str(value)) for value in lengths[row])
        assert (first + second) / 2 == pytest.approx(values_of(outcome, "evidence")[row][0])


def test_p_of_query_lengths_is_corrected_for_all_tests(study: SmallStudy, tmp_path: Path) -> None:
    """One model is compared in two of three classes; the third has no queries here."""
    (tmp_path / "q.tsv").write_text(
        "1\triver\n2\tiron\n3\tbirch\n4\tthe river\n5\tiron river\n6\tbirch river\n"
    )
    grades = [f"{number} 0 {'bridge' if number == 2 else 'canoe'} 1\n" for number in range(1, 7)]
    (tmp_path / "qrels.txt").write_text("".join(grades))
    study.replace("best = 2", "best = 2\nlengths = [1, 2]")
    counts, first, cross = table_of(study.run(), "lengths").groups[0].rows
    assert [cell.value for cell in counts.cells] == ["4", "2", "0"]
    difference = cross.cells[0].difference
    assert difference and difference.p
    assert difference.corrected_p == 2 * difference.p < 1
    for row in (first, cross):
        low, high = row.cells[0].interval or (1, 0)
        assert low <= float(str(row.cells[0].value)) <= high


def test_p_of_query_lengths_is_not_corrected_where_the_recipe_says_so(
    study: SmallStudy, tmp_path: Path
) -> None:
    """Without the correction, p is that of each test alone."""
    (tmp_path / "q.tsv").write_text("1\triver\n2\tiron\n3\tbirch\n4\tthe river\n")
    (tmp_path / "qrels.txt").write_text("1 0 canoe 1\n2 0 bridge 1\n3 0 canoe 1\n4 0 canoe 1\n")
    study.replace("best = 2", "best = 2\nlengths = [1]")
    study.replace('title = "Evidence"', 'title = "Evidence"\nbonferroni = false')
    *_, cross = table_of(study.run(), "lengths").groups[0].rows
    difference = cross.cells[0].difference
    assert difference and difference.p
    assert difference.corrected_p == difference.p < 1


def test_example_topics(study: SmallStudy, tmp_path: Path) -> None:
    """Only the report quotes the best and worst topics; it links an attention page."""
    study.replace("best = 2", 'best = 2\ntopics = ["cross"]')
    outcome = study.run()
    assert [topic.query_id for topic in outcome.topics] == sorted(
        QUERIES, key=lambda q: next(t.before - t.after for t in outcome.topics if t.query_id == q)
    )
    gains = values_of(outcome, "gains")["cross"]
    assert gains == [
        sum(t.after > t.before for t in outcome.topics) / 4,
        sum(t.after < t.before for t in outcome.topics) / 4,
    ]
    hit = outcome.topics[0].hits[0]
    assert hit.rank == 1
    assert list(hit.segments) == sorted(hit.segments, reverse=True)
    (document,) = (d for d in DOCUMENTS if d.doc_id == hit.doc_id)
    assert all(text in document.contents for _, text in hit.segments)
    report = (tmp_path / "out" / "report.html").read_text()
    assert hit.segments[0][1] in report
    assert hit.segments[0][1] not in (tmp_path / "out" / "results.json").read_text()
    assert outcome.topics[0].page in report
    assert "attention" in (tmp_path / "out" / outcome.topics[0].page).read_text().lower()


def test_gains_over_another_model(
    study: SmallStudy, tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """Gains are relative to the other model, not to the first stage, and without it."""
    other = bert(labels=1, seed=6)
    study.replace("models = { ", f'models = {{ other = "{other}", ')
    study.replace("best = 2", 'best = 2\ntopics = ["cross"]\ntopics_baseline = "other"')
    study.replace("step = 0.5", "step = 1")  # the best weight of some folds is that of BM25
    outcome = study.run()
    qrels = read_qrels(tmp_path / "qrels.txt")
    assert len(outcome.topics) == len(QUERIES)
    rows = ("other, alone", "cross, alone", "BM25", "other")
    runs = [outcome.runs[f"Tiny.{row}"] for row in rows]
    values = [measure(qrels, run, ["AP"]).values["AP"] for run in runs]
    assert values[0] != values[2]
    orders = [[ranking.doc_ids for ranking in run.rankings.values()] for run in runs]
    assert orders[0] != orders[3]
    for topic in outcome.topics:
        assert topic.before == pytest.approx(values[0][topic.query_id])
        assert topic.after == pytest.approx(values[1][topic.query_id])
        for hit in topic.hits:
            ranks = [run.rankings[topic.query_id].doc_ids.index(hit.doc_id) + 1 for run in runs]
            assert (hit.before, hit.rank) == tuple(ranks[:2])


def test_attention_is_of_the_query_as_it_was_scored(study: SmallStudy, tmp_path: Path) -> None:
    """A model that reads one token of queries is not shown with the others."""
    study.replace("best = 2", 'best = 2\ntopics = ["cross"]\nquery_tokens = 1')
    topic = study.run().topics[0]
    page = (tmp_path / "out" / topic.page).read_text()
    assert topic.query.split()[1:]
    assert f"<title>Attention: {topic.query.split()[0]}</title>" in page


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("folds = 2", "folds = 5", "wrong number of folds"),
        ("[evidence]", "depth = 2\n[evidence]", "fewer documents than are re-ranked"),
        ("best = 2", "best = 2\ndepth_of = { Tiny = 1001 }", "fewer documents than are re-ranked"),
    ],
)
def test_settings_that_do_not_fit_are_told_before_any_work(
    study: SmallStudy, old: str, new: str, message: str
) -> None:
    """Scoring and training may take hours."""
    study.replace(old, new)
    told = list[str]()
    with pytest.raises(InputError, match=message):
        study.run(progress=told.append)
    assert told == []


def test_given_folds(study: SmallStudy, tmp_path: Path) -> None:
    """Given folds are used; folds without a judged query are refused before scoring."""
    (tmp_path / "folds.json").write_text('[["1", "2", "3"], ["4"]]')
    study.append('folds = "folds.json"\n')
    assert "folds.json" in study.read().files
    outcome = study.run()
    weights = values_of(outcome, "weights")
    assert len(weights) == 4
    qrels = read_qrels(tmp_path / "qrels.txt")
    values = measure(qrels, outcome.runs["Tiny.cross"], ("AP",)).values["AP"]
    assert weights["cross, 2"][-1] == pytest.approx(values["4"])
    (tmp_path / "folds.json").write_text('[["1", "2"], ["4"]]')
    with pytest.raises(InputError, match="in no fold: 3"):
        study.run("out2")


def test_published_scores(study: SmallStudy, tmp_path: Path) -> None:
    """Published scores need no documents or queries; some candidates may have none."""
    lines = [
        {"qid": q, "docid": d, "scores": [0.1, 0.9]} for q, d in (("1", "forest"), ("2", "engine"))
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "t5.run").write_text("1 Q0 bees 1 -0.1 x\n1 Q0 canoe 2 -9 x\n")
    (tmp_path / "given.run").write_text(
        "".join(
            f"{q} Q0 {d} {r} {-r} x\n"
            for q in QUERIES
            for r, d in enumerate(["bees", "canoe", "forest"], 1)
        )
    )
    study.path.write_text("""
kind = "evidence"
title = "Published scores"
measures = ["AP"]
[evidence]
scores = { segments = "s.jsonl", t5 = "t5.run" }
best = 2
step = 0.5
folds = 2
scale = "minmax"
[[collections]]
name = "Tiny"
qrels = "qrels.txt"
run = "given.run"
""")
    assert {"s.jsonl", "t5.run"} <= set(study.read().files)
    outcome = study.run()
    alone = outcome.runs["Tiny.segments, alone"].rankings["1"]
    assert alone.doc_ids[0] == "forest"
    assert outcome.runs["Tiny.t5, alone"].rankings["1"].doc_ids[0] == "bees"
    study.replace('scale = "minmax"', 'scale = "max"')
    with pytest.raises(InputError, match=r"below 0.*minmax"):
        study.run("out2")
    study.replace("best = 2", "best = 2\npruned = true")
    with pytest.raises(InputError, match="no texts to prune"):
        study.read()


def test_published_scores_below_the_depth_of_a_collection(
    study: SmallStudy, tmp_path: Path
) -> None:
    """They are not used: its third document stays third. Scores may be in any order."""
    scores = {"bees": [0.25, 0.5], "canoe": [0.125, 0.75], "forest": [9]}
    lines = [{"qid": "1", "docid": d, "scores": values} for d, values in scores.items()]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "given.run").write_text(
        "".join(f"1 Q0 {d} {n} {4 - n} x\n" for n, d in enumerate(scores, 1))
    )
    study.append('run = "given.run"\n')
    study.replace("depth = 3", "depth = 3\ndepth_of = { Tiny = 2 }")
    study.replace("best = 2", "best = 1")
    study.replace("models = {", 'scores = { file = "s.jsonl" } # {')
    recipe, workspace = study.read(), Workspace(tmp_path, tmp_path)
    assert isinstance(recipe.experiment, EvidenceExperiment)
    collection = workspace.open(recipe.collections[0])
    assert collection.run
    found = read_candidate_scores(
        recipe.experiment.settings, "file", workspace, collection, collection.run
    )
    (of_query,) = found.components.values()
    assert (of_query.doc_ids, of_query.below) == (("canoe", "bees"), ("forest",))
    assert of_query.scores.tolist() == [[pytest.approx(2 / 3), 0.75], [1.0, 0.5]]


def test_runs_do_not_depend_on_threads_or_batches(
    study: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs, figures and plots have the same bytes."""
    written = []
    for threads, tokens in ((1, 8), (3, 4096)):
        folder = tmp_path / f"out-{threads}"
        options = (threads, tokens, Precision.FP32, ())
        monkeypatch.setattr(OnnxSession.__init__, "__defaults__", options)
        study.run(folder.name)
        files = [*sorted((folder / "runs").iterdir()), folder / "results.json"]
        written.append([(file.name, file.read_bytes()) for file in files])
    assert written[0] == written[1]
    assert len(written[0]) == 4


def test_a_collection_of_ir_datasets(study: SmallStudy, tmp_path: Path) -> None:
    """An ID replaces documents, queries and judgments; the manifest names the version."""
    ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed")
    from ir_datasets.formats import GenericDoc, GenericQuery, TrecQrel

    class Tiny:
        """DOCUMENTS and QUERIES."""

        def has_docs(self) -> bool:
            return True

        has_queries = has_qrels = has_docs

        def docs_iter(self) -> Iterator[Any]:
            return (GenericDoc(d.doc_id, d.contents) for d in DOCUMENTS)

        def queries_iter(self) -> Iterator[Any]:
            return (GenericQuery(q, text) for q, text in QUERIES.items())

        def qrels_iter(self) -> Iterator[Any]:
            return (TrecQrel(q, d, 1, "0") for q, d in (("1", "canoe"), ("2", "engine")))

    ir_datasets.registry._registered["birchbark-tiny"] = Tiny()
    name = "ir_datasets:birchbark-tiny"
    for file in ("docs.jsonl", "q.tsv", "qrels.txt"):
        study.replace(f'"{file}"', f'"{name}"')
    try:
        outcome = run_study(study.read(), None, tmp_path / "out")
    finally:
        del ir_datasets.registry._registered["birchbark-tiny"]
    assert set(outcome.runs["Tiny.BM25"].rankings) == {"1", "2"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert list(manifest["inputs"]) == [name]
    assert manifest["inputs"][name].startswith("ir_datasets 0.")


def test_scores_of_no_candidate(study: SmallStudy, tmp_path: Path) -> None:
    """Published scores that cover no candidate are refused."""
    (tmp_path / "s.jsonl").write_text(json.dumps({"qid": "99", "docid": "bees", "scores": [1]}))
    lines = study.path.read_text().splitlines()
    old = next(line for line in lines if line.startswith("models = "))
    study.replace(old, 'scores = { s = "s.jsonl" }')
    with pytest.raises(InputError, match=r"s\.jsonl: no candidate has a score.*Tiny"):
        study.run()


def test_names_of_models_are_plain_text(study: SmallStudy, tmp_path: Path) -> None:
    """A $ in a name does not begin a formula in plots."""
    study.replace("{ cross =", "{ 'a $\\foo$ b' =")
    study.run()
    assert "a $\\foo$ b" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(("key", "file"), [("documents", "docs.jsonl"), ("queries", "q.tsv")])
def test_missing_texts(study: SmallStudy, key: str, file: str) -> None:
    """A study whose models score documents needs both, also with a given run."""
    study.replace(f'{key} = "{file}"\n', 'run = "first.run"\n')
    with pytest.raises(InputError, match=rf"collections\[1\]\.{key}: key is missing"):
        study.run()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("depth = 3", 'segments = "words"', "evidence: .*words"),
        (
            "depth = 3",
            'precision = "fp8"',
            r"\.precision: unknown precision .fp8.: expected one of fp32",
        ),
        ("depth = 3", 'tune = "MAP@"', "evidence: "),
        ("rm3 = false", 'rm3 = "no"', r"evidence\.rm3: wrong type: expected true or false"),
        ('models = { cross = "MODEL" }', "models = {}", r"evidence\.models: no models"),
        (
            'models = { cross = "MODEL" }',
            'models = { BM25 = "MODEL" }',
            "two rows are called 'BM25'",
        ),
        ("step = 0.5", "step = 0", "evidence: invalid step"),
        ("step = 0.5", "step = 0.3", "evidence: invalid step"),
        ("best = 2", "best = [2, 1]", r"evidence\.best: wrong list: expected ascending numbers"),
        ("best = 2", 'topics = ["crossed"]', "evidence: topics: no such model.*.*found crossed"),
        (
            "best = 2",
            'topics_baseline = "cross"',
            "evidence: topics_baseline has no effect without topics",
        ),
        (
            "best = 2",
            'against = "cross"',
            "evidence: against: there is no other model to compare",
        ),
        (
            "best = 2",
            'topics = ["cross"]\ntopics_baseline = "cross"',
            "evidence: topics_baseline: no such model outside topics: expected a model",
        ),
        (
            'models = { cross = "MODEL" }',
            'models = { c = ["a", "b"] }',
            r"models\.c: several models",
        ),
        ('models = { cross = "MODEL" }', 'models = { c = "no.toml" }', r"no\.toml: no such file"),
        (
            "depth = 3",
            'scale = "log"',
            r"\.scale: unknown scale .log.: expected one of raw, max, minmax",
        ),
        ('qrels = "qrels.txt"', 'qrels = "qrels.txt"\nformat = "doc"', "unknown format 'doc'"),
        ("depth = 3", 'segments_of = { Tiny = "nothing" }', "evidence: .*nothing"),
    ],
)
def test_invalid_recipes(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Errors name the file and key, and are reported before any work."""
    study = write_small_study(tmp_path, RECIPE)
    study.replace(old, new)
    with pytest.raises(InputError, match=message):
        study.read()


def test_differences_from_a_model(study: SmallStudy, bert: Callable[..., Path]) -> None:
    """Differences compare rows with the first stage, and rows without it."""
    other = f'other = "{bert(labels=1, seed=5)}" }}\nagainst = "cross"'
    study.replace('" }\nrm3', f'", {other}\nrm3')
    outcome = study.run()
    table = table_of(outcome, "against")
    rows = {row.name: row.cells[0] for row in table.groups[0].rows}
    assert list(rows) == ["cross", "other", "cross, alone", "other, alone"]
    assert rows["cross"].difference is None and rows["cross, alone"].difference is None
    for kind in ("", ", alone"):
        other_cell, baseline = rows["other" + kind], rows["cross" + kind]
        assert other_cell.difference is not None
        mean = float(str(other_cell.value)) - float(str(baseline.value))
        assert other_cell.difference.mean == pytest.approx(mean)
    for name in ("other", "other, alone"):
        difference = rows[name].difference
        assert difference and difference.p is not None
        assert difference.corrected_p == min(1, 2 * difference.p)  # two rows are compared
    assert {"differences-1", "against-1"} <= {plot.name for plot in outcome.plots}
    study.replace('against = "cross"', 'against = "else"')
    with pytest.raises(InputError, match="against: no such model"):
        study.read()


def test_differences_from_a_model_are_corrected_for_all_of_them(
    study: SmallStudy, bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two other models, two measures, with and without the first stage; or with it alone."""
    families = noted_families(monkeypatch)
    others = "".join(f', m{seed} = "{bert(labels=1, seed=seed)}"' for seed in (5, 6))
    study.replace('" }\nrm3', f'"{others} }}\nagainst = "cross"\nrm3')
    study.replace('["AP"]', '["AP", "RR"]')
    study.run()
    assert families == [None, 2 * 2 * 2, 2 * 2 * 2]
    study.replace("best = 2", "best = 2\nalone = false")
    study.run("beside")
    assert families[3:] == [None, 2 * 2]
