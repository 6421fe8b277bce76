"""Are a study's figures those of its runs, and its weights those that other folds would choose?

On a collection drawn by chance, where queries, folds and numbers of segments differ.
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
from birchbark.index.build import Schema, build_index
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.records import Document, Qrels, Ranking, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.model import load_scorer
from birchbark.study.comparison import rank_curves
from birchbark.study.kinds.evidence import EvidenceStudy
from birchbark.study.outcome import Outcome
from birchbark.study.recipe import Recipe
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import WORDS, write_bert

RECIPE = """
kind = "evidence"
title = "By chance"
measures = ["AP", "P@5"]
[evidence]
models = { cross = "MODEL" }
looked = ["cross"]
rm3 = false
depth = 9
best = [1, 2]
aggregations = ["first", "mean", "sum"]
step = 0.5
folds = 3
[[collections]]
name = "C"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""
SEED = 1  # with which folds choose different weights, and queries gain and lose
QUERIES, DOCUMENTS = 12, 30


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the collection, the model and the recipe."""
    folder, random = tmp_path_factory.mktemp("chance"), np.random.default_rng(SEED)

    def sentence() -> str:
        return " ".join(random.choice(WORDS[2:-4], random.integers(2, 6))).capitalize() + "."

    lines = [
        json.dumps(
            {"id": f"d{n}", "text": " ".join(sentence() for _ in range(random.integers(1, 5)))}
        )
        for n in range(DOCUMENTS)
    ]
    (folder / "docs.jsonl").write_text("\n".join(lines))
    asked = [" ".join(random.choice(WORDS[2:-4], 2, replace=False)) for _ in range(QUERIES)]
    (folder / "q.tsv").write_text("".join(f"{n}\t{text}\n" for n, text in enumerate(asked)))
    (folder / "qrels.txt").write_text(
        "".join(
            f"{n} 0 d{d} 1\n"
            for n in range(QUERIES)
            for d in random.choice(DOCUMENTS, 6, replace=False)
        )
    )
    model = write_bert(folder / "model", labels=1, positions=64, seed=3)
    (folder / "recipe.toml").write_text(RECIPE.replace("MODEL", str(model)))
    return folder


@pytest.fixture(scope="module")
def recipe(here: Path) -> Recipe:
    return read_recipe(here / "recipe.toml")


@pytest.fixture(scope="module")
def outcome(here: Path, recipe: Recipe) -> Outcome:
    return run_study(recipe, here, here / "out")


@pytest.fixture(scope="module")
def qrels(here: Path) -> Qrels:
    return read_qrels(here / "qrels.txt")


@pytest.fixture(scope="module")
def by_setting(here: Path, recipe: Recipe, outcome: Outcome) -> list[Run]:
    """The run of each point of the grid, by the pipeline's own mixing."""
    lines = map(json.loads, (here / "docs.jsonl").read_text().splitlines())
    documents = [Document(line["id"], {"title": "", "text": line["text"]}) for line in lines]
    engine = IndexEngine(build_index(documents, here / "index", Schema("english")))
    scorer, first = load_scorer(str(here / "model")), outcome.runs["C.BM25"]
    assert isinstance(recipe.experiment, EvidenceStudy)
    choices = recipe.experiment.choices
    runs = []
    for a, *weights in choices.grid.tolist():
        ranker = Ranker(
            scorer,
            aggregation=Top(tuple(w / (1 - a) for w in weights) if a < 1 else (1.0,)),
            interpolation=Interpolation(a),
            depth=9,
        )
        runs.append(rerank(engine, first, read_queries(here / "q.tsv"), ranker))
    return runs


def average_precision(qrels: Qrels, run: Run) -> dict[str, float]:
    return dict(measure(qrels, run, ("AP",)).values["AP"])


@pytest.mark.parametrize("words", ["first", "mean", "sum"])
def test_aggregations_rank_as_rerank_does(
    here: Path, recipe: Recipe, outcome: Outcome, words: str
) -> None:
    """Each query by the a of its fold; “alone” with a = 0."""
    lines = map(json.loads, (here / "docs.jsonl").read_text().splitlines())
    documents = [Document(line["id"], {"title": "", "text": line["text"]}) for line in lines]
    index = build_index(documents, here / f"index-{words}", Schema("english"))
    scorer, first = load_scorer(str(here / "model")), outcome.runs["C.BM25"]
    queries = read_queries(here / "q.tsv")
    weights = next(table for table in outcome.tables if table.name == "weights").groups[0].rows
    folds = make_folds(read_qrels(here / "qrels.txt").grades, 3, recipe.seed)
    for row in (f"cross, {words}", f"cross, {words}, alone"):
        for number, fold in enumerate(folds):
            chosen = next(one for one in weights if one.name == f"{row}, {number + 1}").cells
            a = chosen[0].value
            assert chosen[1].value == pytest.approx(1 - a)
            assert chosen[2].value is None
            assert a == 0 or "alone" not in row
            mixing = Interpolation(a)
            ranker = Ranker(scorer, aggregation=parse_aggregation(words), interpolation=mixing)
            asked = [query for query in queries if query.query_id in fold]
            some = Run({q.query_id: first.rankings[q.query_id] for q in asked})
            found = rerank(IndexEngine(index), some, asked, replace(ranker, depth=9))
            for query_id, ranking in found.rankings.items():
                mine = outcome.runs[f"C.{row}"].rankings[query_id]
                assert mine.doc_ids == ranking.doc_ids


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("alone", [False, True])
def test_weights_are_what_the_other_folds_choose(
    n: int, alone: bool, recipe: Recipe, outcome: Outcome, qrels: Qrels, by_setting: list[Run]
) -> None:
    """By brute force; each query is ranked with its own fold's, and the table says their values."""
    assert isinstance(recipe.experiment, EvidenceStudy)
    choices = recipe.experiment.choices
    row = f"{n}S: cross" + (", alone" if alone else "")
    grid = choices.grid
    allowed = [
        place
        for place, weights in enumerate(grid.tolist())
        if not any(weights[1 + n :]) and (weights[0] == 0 or not alone)
    ]
    values = [average_precision(qrels, run) for run in by_setting]
    (table,) = (t for t in outcome.tables if t.name == "weights")
    told = {r.name: [c.value for c in r.cells] for r in table.groups[0].rows}
    seen = set()
    for number, fold in enumerate(make_folds(qrels.grades, 3, 0), 1):
        others = [q for q in qrels.grades if q not in fold]
        means = [np.mean([values[place][q] for q in others]) for place in allowed]
        chosen = allowed[int(np.argmax(np.round(means, 12)))]
        *weights, other, this = told[f"{row}, {number}"]
        assert weights == pytest.approx(grid[chosen].tolist())
        assert other == pytest.approx(max(means))
        assert this == pytest.approx(np.mean([values[chosen][q] for q in fold]))
        seen.add(chosen)
        for query_id in fold:
            ranked = outcome.runs[f"C.{row}"].rankings[query_id]
            assert ranked.doc_ids == by_setting[chosen].rankings[query_id].doc_ids
    assert len(seen) > 1 or (alone and n == 1)  # else folds could be confounded


def test_means_gains_and_topics_are_those_of_the_runs(outcome: Outcome, qrels: Qrels) -> None:
    """Of the table, the shares, the plot, and the queries from both ends."""
    tables = {
        t.name: {r.name: [c.value for c in r.cells] for r in t.groups[0].rows}
        for t in outcome.tables
    }
    before = average_precision(qrels, outcome.runs["C.BM25"])
    for row, (improved, worse) in tables["gains"].items():
        after = average_precision(qrels, outcome.runs[f"C.{row}"])
        changes = [after[q] - before[q] for q in before]
        assert (improved, worse) == (
            sum(c > 0 for c in changes) / QUERIES,
            sum(c < 0 for c in changes) / QUERIES,
        )
        assert tables["evidence"][row][0] == pytest.approx(np.mean(list(after.values())))
    after = average_precision(qrels, outcome.runs["C.2S: cross"])
    (bars,) = (plot for plot in outcome.plots if plot.name == "queries-1-1")
    falling = sorted((after[q] - before[q] for q in before), reverse=True)
    assert bars.values == pytest.approx(tuple(falling))  # type: ignore[union-attr]
    assert falling[0] > 0 > falling[-1]
    told = [topic.after - topic.before for topic in outcome.topics]
    assert told == pytest.approx([*falling[:3], *falling[-3:]])
    for topic in outcome.topics:
        ranks = outcome.runs["C.2S: cross"].rankings[topic.query_id].doc_ids
        assert [hit.doc_id for hit in topic.hits] == list(ranks[:3])
        assert (topic.before, topic.after) == (before[topic.query_id], after[topic.query_id])


def test_numbers_of_segments_differ(outcome: Outcome) -> None:
    """So that a study that mixed them up would be found out above."""
    one, two = (outcome.runs[f"C.{n}S: cross, alone"].rankings for n in (1, 2))
    assert one != two


def test_ranks_of_the_first_relevant_documents() -> None:
    """The share of all judged queries that have found one, as far as rank 20."""
    qrels = Qrels({"1": {"a": 1}, "2": {"b": 2, "c": 1}, "3": {"z": 1}, "4": {"a": 0}})
    rankings = {"1": ["x", "a"], "2": ["c", "x", "b"], "4": ["a"]}
    run = Run({q: Ranking.of(d, -np.arange(len(d))) for q, d in rankings.items()}, "r")
    curves = rank_curves("n", "t", qrels, {"r": run})
    assert [x for x, _ in curves.series["r"]] == list(range(1, 21))
    assert [y for _, y in curves.series["r"]] == [0.25] + [0.5] * 19
