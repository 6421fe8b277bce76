"""Are models compared by the evidence that the pipeline finds, with weights that others chose?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.index.build import Schema, build_index
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.records import Document, Query
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.model import load_scorer
from birchbark.study.evidence import Evidence
from birchbark.study.recipe import Recipe, read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS

QUERIES = {"1": "birch river", "2": "iron engine", "3": "bees dance", "4": "stone bridge"}
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
[[collections]]
name = "Tiny"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""


@pytest.fixture
def recipe(tmp_path: Path, bert: Callable[..., Path]) -> Recipe:
    """A recipe beside a collection of a few documents."""
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in QUERIES.items()))
    (tmp_path / "qrels.txt").write_text(
        "1 0 canoe 2\n1 0 forest 1\n2 0 engine 1\n3 0 bees 1\n4 0 bridge 1\n"
    )
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("MODEL", str(bert(labels=1))))
    return read_recipe(path)


def test_every_query_is_ranked_as_rerank_ranks_with_the_weights_of_its_fold(
    recipe: Recipe, tmp_path: Path
) -> None:
    """Equation 3.2, by two ways."""
    outcome = run_study(recipe, tmp_path, tmp_path / "out")
    rows = next(t for t in outcome.tables if t.name == "weights").groups[0].rows
    index = build_index(
        [Document(d.doc_id, d.fields) for d in DOCUMENTS], tmp_path / "index", Schema("english")
    )
    experiment = recipe.experiment
    assert isinstance(experiment, Evidence)
    scorer = load_scorer(experiment.named["cross"])
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
            aggregation=Top(tuple(w / (1 - a) for w in weights)),
            interpolation=Interpolation(a),
            depth=3,
        )
        ranked.append(rerank(IndexEngine(index), first, queries, ranker))
    for query_id, ranking in outcome.runs["Tiny.cross"].rankings.items():
        assert ranking.doc_ids in [run.rankings[query_id].doc_ids for run in ranked]


def test_the_grid_has_every_mixture_once(recipe: Recipe) -> None:
    """a and the further weights in steps; the first weight is 1 − a; the parts are not negative."""
    experiment = recipe.experiment
    assert isinstance(experiment, Evidence)
    grid = replace(experiment, step=0.1, best=(3,)).grid
    assert grid.shape == (1331, 4)
    np.testing.assert_allclose(grid[:, 0] + grid[:, 1], 1)
    assert (grid >= 0).all()
    below = grid[grid[:, 0] < 1]
    assert len(np.unique(below.round(9), axis=0)) == len(below)


def test_kept_scores_give_the_same_figures(recipe: Recipe, tmp_path: Path) -> None:
    """With an empty store, with a full one, and without."""
    outcomes = [
        run_study(recipe, tmp_path, tmp_path / f"out{n}", kept=kept)
        for n, kept in enumerate((None, tmp_path / "kept", tmp_path / "kept"))
    ]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert list((tmp_path / "kept" / "scores").glob("*.scores"))


def test_a_collection_may_have_a_depth_of_its_own(recipe: Recipe, tmp_path: Path) -> None:
    """One candidate keeps the first stage's order; a name that is none is refused."""
    text, path = recipe.path.read_text(), recipe.path
    path.write_text(text.replace("depth = 3", "depth = 3\ndepth_of = { Tiny = 1 }"))
    runs = run_study(read_recipe(path), tmp_path, tmp_path / "out").runs
    for query_id, ranking in runs["Tiny.cross"].rankings.items():
        assert ranking.doc_ids == runs["Tiny.BM25"].rankings[query_id].doc_ids
    path.write_text(text.replace("depth = 3", "depth = 3\ndepth_of = { Tyni = 1 }"))
    with pytest.raises(InputError, match=r"a collection that the recipe has not.*found Tyni"):
        run_study(read_recipe(path), tmp_path, tmp_path / "out2")


def test_a_run_of_others_is_the_first_stage(recipe: Recipe, tmp_path: Path) -> None:
    """Its order where a = 1, its documents alone."""
    (tmp_path / "theirs.run").write_text(
        "".join(
            f"{q} Q0 {d} {r} {9 - r} x\n" for q in QUERIES for r, d in enumerate(["bees", "canoe"])
        )
    )
    path = recipe.path
    path.write_text(path.read_text() + 'run = "theirs.run"\n')
    outcome = run_study(read_recipe(path), tmp_path, tmp_path / "out")
    assert list(outcome.runs) == ["Tiny.first stage", "Tiny.cross", "Tiny.cross, alone"]
    for run in outcome.runs.values():
        assert {frozenset(r.doc_ids) for r in run.rankings.values()} == {
            frozenset({"bees", "canoe"})
        }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("depth = 3", 'segments = "words"', "evidence: .*words"),
        ("depth = 3", 'precision = "fp8"', r"evidence\.precision: unknown precision \(one of fp32"),
        ("depth = 3", 'tune = "MAP@"', "evidence: "),
        ("rm3 = false", 'rm3 = "no"', r"evidence\.rm3: wrong type: expected true or false"),
        ('models = { cross = "MODEL" }', "models = {}", r"evidence\.models: no models"),
        ('models = { cross = "MODEL" }', 'models = { BM25 = "MODEL" }', "two rows .*'BM25'"),
        ("step = 0.5", "step = 0", "evidence: not a step"),
        ("step = 0.5", "step = 0.3", "evidence: not a step"),
        ("depth = 3", 'segments_of = { Tiny = "nothing" }', "evidence: .*nothing"),
    ],
)
def test_bad_recipes(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Told by file and key, before any work."""
    path = tmp_path / "recipe.toml"
    assert old in RECIPE
    path.write_text(RECIPE.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_recipe(path)
