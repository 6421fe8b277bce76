"""Do a study's figures match its runs, and are its weights the best on the other folds?

The collection is random, so that queries, folds and numbers of segments differ.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.combine.aggregate import Top, parse_aggregation
from birchbark.combine.interpolate import Interpolation
from birchbark.evaluate.folds import make_folds
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Qrels, Ranking, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences
from birchbark.show.plot import Curves
from birchbark_studies.comparison import rank_curves
from birchbark_studies.experiments.evidence.evidence_experiment import EvidenceExperiment
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Recipe
from conftest import WORDS, write_bert
from small_study import SmallStudy, values_of, write_small_study

RECIPE = """
kind = "evidence"
title = "Random"
measures = ["AP", "P@5"]
[evidence]
models = { cross = "MODEL" }
topics = ["cross"]
rm3 = false
depth = 9
best = [1, 2]
aggregations = ["first", "mean", "sum"]
step = 0.5
folds = 3
ranks = true
"""
SEED = 1  # gives folds that choose different weights, and queries that gain and lose
QUERIES, DOCUMENTS = 12, 30


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    """A study of a random collection."""
    folder, random = tmp_path_factory.mktemp("random"), np.random.default_rng(SEED)

    def sentence() -> str:
        return " ".join(random.choice(WORDS[2:-4], random.integers(2, 6))).capitalize() + "."

    texts = [" ".join(sentence() for _ in range(random.integers(1, 5))) for _ in range(DOCUMENTS)]
    queries = [" ".join(random.choice(WORDS[2:-4], 2, replace=False)) for _ in range(QUERIES)]
    qrels = [
        f"{n} 0 d{d} 1\n"
        for n in range(QUERIES)
        for d in random.choice(DOCUMENTS, 6, replace=False)
    ]
    return write_small_study(
        folder,
        RECIPE,
        documents=[Document(f"d{n}", {"text": text}) for n, text in enumerate(texts)],
        queries={str(n): text for n, text in enumerate(queries)},
        qrels="".join(qrels),
        MODEL=write_bert(folder / "model", labels=1, positions=64, seed=3),
    )


@pytest.fixture(scope="module")
def here(study: SmallStudy) -> Path:
    """The folder of the study."""
    return study.root


@pytest.fixture(scope="module")
def recipe(study: SmallStudy) -> Recipe:
    return study.read()


@pytest.fixture(scope="module")
def outcome(study: SmallStudy) -> Outcome:
    return study.run()


@pytest.fixture(scope="module")
def qrels(here: Path) -> Qrels:
    return read_qrels(here / "qrels.txt")


@pytest.fixture(scope="module")
def by_setting(here: Path, recipe: Recipe, outcome: Outcome) -> list[Run]:
    """The pipeline's run for each weighting of the grid."""
    lines = map(json.loads, (here / "docs.jsonl").read_text().splitlines())
    documents = [Document(line["id"], {"title": "", "text": line["text"]}) for line in lines]
    engine = IndexEngine(build_index(documents, here / "index", Schema("english")))
    scorer, first = load_scorer(str(here / "model")), outcome.runs["Tiny.BM25"]
    assert isinstance(recipe.experiment, EvidenceExperiment)
    runs = []
    for a, *weights in recipe.experiment.settings.grid.tolist():
        ranker = Ranker(
            scorer,
            sentences,
            Top(tuple(w / (1 - a) for w in weights) if a < 1 else (1.0,)),
            Interpolation(a),
            depth=9,
        )
        runs.append(rerank(engine, first, read_queries(here / "q.tsv"), ranker))
    return runs


def average_precision(qrels: Qrels, run: Run) -> dict[str, float]:
    return dict(measure(qrels, run, ("AP",)).values["AP"])


@pytest.mark.parametrize("aggregation", ["first", "mean", "sum"])
def test_aggregations_rank_as_rerank_does(
    here: Path, recipe: Recipe, outcome: Outcome, aggregation: str
) -> None:
    """Each query is ranked with the a of its fold; in rows “alone”, a is 0."""
    lines = map(json.loads, (here / "docs.jsonl").read_text().splitlines())
    documents = [Document(line["id"], {"title": "", "text": line["text"]}) for line in lines]
    index = build_index(documents, here / f"index-{aggregation}", Schema("english"))
    scorer, first = load_scorer(str(here / "model")), outcome.runs["Tiny.BM25"]
    queries = read_queries(here / "q.tsv")
    weights = values_of(outcome, "weights")
    folds = make_folds(read_qrels(here / "qrels.txt").grades, 3, recipe.seed)
    for row in (f"cross, {aggregation}", f"cross, {aggregation}, alone"):
        for number, fold in enumerate(folds):
            a, evidence, none, *_ = weights[f"{row}, {number + 1}"]
            assert evidence == pytest.approx(1 - a)
            assert none is None
            assert a == 0 or "alone" not in row
            interpolation = Interpolation(a)
            ranker = Ranker(scorer, sentences, parse_aggregation(aggregation), interpolation)
            in_fold = [query for query in queries if query.query_id in fold]
            candidates = Run({q.query_id: first.rankings[q.query_id] for q in in_fold})
            expected = rerank(IndexEngine(index), candidates, in_fold, replace(ranker, depth=9))
            for query_id, ranking in expected.rankings.items():
                ranked = outcome.runs[f"Tiny.{row}"].rankings[query_id]
                assert ranked.doc_ids == ranking.doc_ids


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("alone", [False, True])
def test_weights_are_the_best_on_the_other_folds(
    n: int, alone: bool, recipe: Recipe, outcome: Outcome, qrels: Qrels, by_setting: list[Run]
) -> None:
    """Brute force finds the weights in the table, which rank the queries of the fold."""
    assert isinstance(recipe.experiment, EvidenceExperiment)
    row = f"{n}S: cross" + (", alone" if alone else "")
    grid = recipe.experiment.settings.grid
    allowed = [
        number
        for number, weights in enumerate(grid.tolist())
        if not any(weights[1 + n :]) and (weights[0] == 0 or not alone)
    ]
    values = [average_precision(qrels, run) for run in by_setting]
    shown = values_of(outcome, "weights")
    seen = set()
    for number, fold in enumerate(make_folds(qrels.grades, 3, 0), 1):
        others = [q for q in qrels.grades if q not in fold]
        means = [np.mean([values[n][q] for q in others]) for n in allowed]
        chosen = allowed[int(np.argmax(np.round(means, 12)))]
        *weights, other, this = shown[f"{row}, {number}"]
        assert weights == pytest.approx(grid[chosen].tolist())
        assert other == pytest.approx(max(means))
        assert this == pytest.approx(np.mean([values[chosen][q] for q in fold]))
        seen.add(chosen)
        for query_id in fold:
            ranked = outcome.runs[f"Tiny.{row}"].rankings[query_id]
            assert ranked.doc_ids == by_setting[chosen].rankings[query_id].doc_ids
    assert len(seen) > 1 or (alone and n == 1)  # otherwise a mix-up of folds would go unnoticed


def test_means_gains_and_topics_are_those_of_the_runs(outcome: Outcome, qrels: Qrels) -> None:
    """Means, shares, the plot and the example topics match the runs."""
    means, gains = values_of(outcome, "evidence"), values_of(outcome, "gains")
    before = average_precision(qrels, outcome.runs["Tiny.BM25"])
    for row, (improved, worse) in gains.items():
        after = average_precision(qrels, outcome.runs[f"Tiny.{row}"])
        changes = [after[q] - before[q] for q in before]
        assert (improved, worse) == (
            sum(c > 0 for c in changes) / QUERIES,
            sum(c < 0 for c in changes) / QUERIES,
        )
        assert means[row][0] == pytest.approx(np.mean(list(after.values())))
    after = average_precision(qrels, outcome.runs["Tiny.2S: cross"])
    (bars,) = (plot for plot in outcome.plots if plot.name == "queries-1-1")
    falling = sorted((after[q] - before[q] for q in before), reverse=True)
    assert bars.values == pytest.approx(tuple(falling))  # type: ignore[union-attr]
    assert falling[0] > 0 > falling[-1]
    differences = [topic.after - topic.before for topic in outcome.topics]
    assert differences == pytest.approx([*falling[:3], *falling[-3:]])
    for topic in outcome.topics:
        ranks = outcome.runs["Tiny.2S: cross"].rankings[topic.query_id].doc_ids
        assert [hit.doc_id for hit in topic.hits] == list(ranks[:3])
        assert (topic.before, topic.after) == (before[topic.query_id], after[topic.query_id])


def test_numbers_of_segments_differ(outcome: Outcome) -> None:
    """Otherwise a mix-up of them would go unnoticed above."""
    one, two = (outcome.runs[f"Tiny.{n}S: cross, alone"].rankings for n in (1, 2))
    assert one != two


def test_rank_curves() -> None:
    """The share of judged queries with a relevant document up to each rank, to rank 20."""
    qrels = Qrels({"1": {"a": 1}, "2": {"b": 2, "c": 1}, "3": {"z": 1}, "4": {"a": 0}})
    rankings = {"1": ["x", "a"], "2": ["c", "x", "b"], "4": ["a"]}
    run = Run({q: Ranking.of(d, -np.arange(len(d))) for q, d in rankings.items()}, "r")
    curves = rank_curves("n", "t", qrels, {"r": run})
    assert [x for x, _ in curves.series["r"]] == list(range(1, 21))
    assert [y for _, y in curves.series["r"]] == [0.25] + [0.5] * 19
    curves = rank_curves("n", "t", replace(qrels, relevant=2), {"r": run})
    assert [y for _, y in curves.series["r"]] == [0, 0] + [0.25] * 18


def test_rank_curves_are_of_rows_without_the_first_stage(outcome: Outcome, qrels: Qrels) -> None:
    """As in the thesis; the first stage stands beside them."""
    (curves,) = [plot for plot in outcome.plots if plot.name == "ranks-1"]
    names = ["1S: cross", "2S: cross", "cross, first", "cross, mean", "cross, sum"]
    tags = ["BM25", *(f"{name}, alone" for name in names)]
    runs = {tag: outcome.runs[f"Tiny.{tag}"] for tag in tags}
    assert isinstance(curves, Curves)
    assert curves.series == rank_curves("n", "t", qrels, runs).series
