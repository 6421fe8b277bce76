"""Does a study train variants and compare them in tables and plots?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_trainings import settings, some_pairs, toml, write_pairs

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Query, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.load_scorer import load_scorer
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.train.training_state import Progress
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.run import run_study
from birchbark_studies.training_chains import TrainedModel
from birchbark_studies.training_tables import training_plots, training_table
from conftest import write_bert
from small_study import COLLECTION, write_small_study

RECIPE = """
kind = "training"
title = "Variants"
measures = ["AP"]
[training]
config = "tiny.toml"
[[training.variants]]
name = "one layer"
settings = { "model.layers" = 1 }
[[training.variants]]
name = "head / alone"
settings = { "model.learns" = "head" }
[training.evidence]
rm3 = false
depth = 2
step = 0.5
folds = 2
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Write a recipe, its training configuration and its data to one folder."""
    write_bert(tmp_path / "base", labels=1)
    (tmp_path / "tiny.toml").write_text(toml(settings(str(tmp_path / "base"))))
    write_pairs(tmp_path / "pairs.tsv", some_pairs(8))
    queries = {"1": "birch river", "2": "iron engine"}
    qrels = "1 0 canoe 1\n2 0 engine 1\n"
    return write_small_study(tmp_path, RECIPE, queries=queries, qrels=qrels).path


def test_an_unknown_collection_is_reported_before_training(recipe: Path) -> None:
    """The error does not come after hours of training."""
    text = recipe.read_text()
    recipe.write_text(text.replace("depth = 2", "depth = 2\ndepth_of = { Tyni = 1 }"))
    out = recipe.parent / "out"
    with pytest.raises(InputError, match=r"names an unknown collection.*found Tyni"):
        run_study(read_recipe(recipe), recipe.parent, out, cache=recipe.parent / "cache")
    assert not list(recipe.parent.rglob("curve.jsonl"))


def test_variants_are_compared(recipe: Path) -> None:
    """Each has a row and a curve; when the study is run again, it trains nothing."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    root = recipe.parent
    read = read_recipe(recipe)
    assert "pairs.tsv" in read.files
    first, again = (
        run_study(read, root, root / name, cache=root / "cache") for name in ("out", "again")
    )
    trained = first.tables[0]
    assert [row.name for row in trained.groups[0].rows] == ["one layer", "head / alone"]
    assert {"Tiny.BM25", "Tiny.one layer", "Tiny.head / alone, alone"} <= set(first.runs)
    losses = next(plot for plot in first.plots if plot.name == "losses")
    assert list(losses.series) == ["one layer", "head / alone"]  # type: ignore[union-attr]
    assert first == again
    assert len(list((root / "cache" / "trainings").glob("*/model"))) == 2
    assert str(root) not in (root / "out" / "results.json").read_text()


def test_processors_of_other_precisions_share_no_training(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `auto`, one that is slow in bf16 finds what was trained in fp32, in the same cache."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    from birchbark.train import training

    root = recipe.parent
    found = []
    for precision, is_fast in (("auto", True), ("auto", False), ("fp32", True)):
        monkeypatch.setattr(training, "has_fast_bf16", lambda device, fast=is_fast: fast)
        changes = {"schedule.precision": precision}
        (root / "tiny.toml").write_text(toml(settings(str(root / "base"), changes)))
        run_study(read_recipe(recipe), root, root / f"{precision}{is_fast}", cache=root / "cache")
        found.append({path.parent for path in (root / "cache").glob("trainings/*/model")})
    auto, both, again = found
    assert len(auto) == 2
    assert len(both) == 4
    assert again == both


def test_figures_of_training_runs() -> None:
    """The final training loss is over a fortieth of the steps, and one more if there is a rest.

    Curves of held-out queries need two points, and are named by their data sets if there are two.
    """
    losses = [{"step": n, "loss": float(n)} for n in range(1, 82)]
    measured = [
        {"step": 40, "losses": {"A": 4.0, "B": 2.0}, "values": {"A": 0.25}},
        {"step": 81, "losses": {"A": 1.0, "B": 0.5}, "values": {"B": 0.5}},
    ]
    models = {
        "both": TrainedModel(Path("x"), Progress(81, 0.75, 40), [*losses, *measured]),
        "none": TrainedModel(Path("y"), Progress(3), losses[:3]),
    }
    rows = training_table(models).groups[0].rows
    assert [[cell.value for cell in row.cells] for row in rows] == [
        [81, 40, 0.75, 80.0, 0.75],
        [3, 0, None, 3.0, None],
    ]
    plots = {plot.name: plot for plot in training_plots(models)}
    assert list(plots) == ["losses", "held-out-losses"]
    assert plots["held-out-losses"].series == {
        "both, A": ((40, 4.0), (81, 1.0)),
        "both, B": ((40, 2.0), (81, 0.5)),
    }
    assert plots["losses"].series["none"] == ((1, 1.0), (2, 2.0), (3, 3.0))
    assert plots["losses"].series["both"][0] == (3, 2.0)


def test_consecutive_trainings(recipe: Path) -> None:
    """The second run starts from the model of the first, which is trained only once."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    from birchbark.train.read_config import read_training
    from birchbark.train.training import train

    root = recipe.parent
    second = {**settings(str(root / "nobody"), {"seed": 5}), "title": "second"}
    (root / "second.toml").write_text(toml(second))
    head, _, tail = (RECIPE + COLLECTION).partition("[training]")
    evidence = tail.partition("[training.evidence]")[2]
    models = '[evidence]\nmodels = { one = "tiny.toml", two = ["tiny.toml", "second.toml"] }'
    recipe.write_text(head.replace('"training"', '"evidence"') + models + evidence)
    read = read_recipe(recipe)
    assert read.experiment.models == (str(root / "base"),)
    outcome = run_study(read, root, root / "out", cache=root / "cache")
    assert [row.name for row in outcome.tables[0].groups[0].rows] == ["one", "two"]
    assert len(list((root / "cache" / "trainings").glob("*/model"))) == 2
    base = root / "base"
    for number, file in enumerate(("tiny.toml", "second.toml")):
        values = {**Section.table(root / file), "base": str(base)}
        train(read_training(values, root / file), root, root / f"by-hand-{number}")
        base = root / f"by-hand-{number}" / "model"
    scored = [load_scorer(str(m)) for m in (base, *(root / "cache" / "trainings").glob("*/model"))]
    scores = [s.score("birch", s.encode(["canoe of bark", "iron engine"])).tolist() for s in scored]
    assert scores[0] in scores[1:]
    lineages = [
        json.loads(path.read_text()) for path in (root / "cache").rglob("model/birchbark.json")
    ]
    titles = [[training["title"] for training in lineage["trainings"]] for lineage in lineages]
    assert sorted(titles) == [["tiny"], ["tiny", "second"]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("head / alone", "one layer", "two models are called 'one layer'"),
        (
            '"model.layers" = 1',
            '"model.layer" = 1',
            "model: .*unknown key|model.layer: unknown key",
        ),
        ('config = "tiny.toml"', 'config = "none.toml"', "none.toml: no such file"),
        ('{ "model.learns" = "head" }', '{ "model.learns" = "feet" }', "unknown part 'feet'"),
    ],
)
def test_invalid_variants(recipe: Path, old: str, new: str, message: str) -> None:
    """They raise an error when the recipe is read."""
    assert old in RECIPE
    recipe.write_text((RECIPE + COLLECTION).replace(old, new))
    with pytest.raises(InputError, match=message):
        read_recipe(recipe)


BY_FOLD = {"queries": "q.tsv", "folds": "folds.json", "fold": 1}


@pytest.fixture
def recipe_by_fold(recipe: Path) -> Path:
    """Let the models learn from the collection's queries, by fold."""
    root = recipe.parent
    (root / "folds.json").write_text('[["1"], ["2"]]')
    pairs = some_pairs(8)
    asked = {"q0": "birch river", "q1": "iron engine"}
    write_pairs(
        root / "pairs.tsv", [replace(p, query=asked.get(p.query_id, p.query)) for p in pairs]
    )
    changes = {"held_out": BY_FOLD, "data.validation": None}
    (root / "tiny.toml").write_text(toml(settings(str(root / "base"), changes)))
    text = (RECIPE + COLLECTION).replace("[training]", "[training]\nby_fold = 2")
    recipe.write_text(
        text.replace("folds = 2", 'best = [1]\naggregations = ["max"]') + 'folds = "folds.json"\n'
    )
    return recipe


def test_a_model_of_each_fold_learns_from_the_others(recipe_by_fold: Path) -> None:
    """A query's documents have the scores of the model that has not learnt from it."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    from birchbark.train.read_config import read_training
    from birchbark.train.training import train

    root, read = recipe_by_fold.parent, read_recipe(recipe_by_fold)
    assert {"folds.json", "q.tsv", "pairs.tsv"} <= set(read.files)
    outcome = run_study(read, root, root / "out")
    parts = [f"{name}, fold {n}" for name in ("one layer", "head / alone") for n in (1, 2)]
    assert [row.name for row in outcome.tables[0].groups[0].rows] == parts
    shown = {table.name: [row.name for row in table.groups[0].rows] for table in outcome.tables}
    kinds = ("", ", alone", ", max", ", max, alone")
    rows = [f"{name}{kind}" for name in ("one layer", "head / alone") for kind in kinds]
    assert shown["evidence"] == ["BM25", *rows]
    documents = read_collection(str(root / "docs.jsonl"), Intake())
    index = build_index(documents, root / "ix", Schema("english"))
    for fold, query in enumerate((Query("1", "birch river"), Query("2", "iron engine")), 1):
        changes = {"held_out": {**BY_FOLD, "fold": fold}, "data.validation": None}
        values = settings(str(root / "base"), {**changes, "model.layers": 1})
        train(read_training(values, root / "tiny.toml"), root, root / f"fold-{fold}")
        scorer = load_scorer(str(root / f"fold-{fold}" / "model"))
        sentences = parse_segmenter("sentences")
        ranker = Ranker(scorer, sentences, Top((1.0,)), Interpolation(0.0), depth=2)
        ranked = outcome.runs["Tiny.BM25"].rankings[query.query_id]
        first = Run({query.query_id: ranked})
        alone = rerank(IndexEngine(index), first, [query], ranker).rankings[query.query_id]
        for row in ("one layer, alone", "one layer, max, alone"):
            ranking = outcome.runs[f"Tiny.{row}"].rankings[query.query_id]
            assert ranking.doc_ids == alone.doc_ids
            np.testing.assert_allclose(ranking.scores, alone.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("recipe.toml", "by_fold = 2", "by_fold = 3", r"wrong number of folds.*found 3"),
        ("recipe.toml", 'folds = "folds.json"', "", "need one collection, with folds"),
        ("tiny.toml", "folds.json", "more.json", r"does not hold out the folds.*found .*more.json"),
        ("folds.json", '[["1"], ["2"]]', '[["1"]]', "in no fold"),
    ],
)
def test_folds_that_do_not_fit_are_refused(
    recipe_by_fold: Path, file: str, old: str, new: str, message: str
) -> None:
    """Nothing is trained, since a model would rank queries that it has learnt from."""
    path = recipe_by_fold if file == "recipe.toml" else recipe_by_fold.parent / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    (recipe_by_fold.parent / "more.json").write_text('[["1"], ["2"]]')
    with pytest.raises(InputError, match=message):
        run_study(read_recipe(recipe_by_fold), recipe_by_fold.parent, recipe_by_fold.parent / "out")
    assert not list(recipe_by_fold.parent.rglob("curve.jsonl"))


def test_all_trainings_of_a_model_leave_its_fold_out(recipe_by_fold: Path) -> None:
    """An earlier one, too, that learns from the same pairs."""
    root = recipe_by_fold.parent
    text = recipe_by_fold.read_text()
    recipe_by_fold.write_text(text.replace('"tiny.toml"', '["first.toml", "tiny.toml"]'))
    (root / "first.toml").write_text((root / "tiny.toml").read_text())
    chains = read_recipe(recipe_by_fold).experiment.chains
    folds = {name: [t.held_out and t.held_out.fold for t in c] for name, c in chains.items()}
    assert folds["one layer, fold 1"] == [1, 1]
    assert folds["one layer, fold 2"] == [2, 2]
    (root / "first.toml").write_text(toml(settings(str(root / "base"), {"data.validation": None})))
    with pytest.raises(InputError, match=r"first.toml does not hold out.*found nothing held out"):
        run_study(read_recipe(recipe_by_fold), root, root / "out")
    assert not list(root.rglob("curve.jsonl"))


EVIDENCE = """
kind = "evidence"
[evidence]
depth = 2
folds = 2
models = { one = "tiny.toml" }
"""
PIPELINES = """
kind = "pipelines"
[pipelines]
models = { one = "tiny.toml" }
[[pipelines.rows]]
name = "one"
stages = [{ model = "one", depth = 2 }]
"""
RERANKING = """
kind = "reranking"
[reranking]
depths = [2]
fields = { text = "text" }
models = { one = "tiny.toml" }
"""


@pytest.mark.filterwarnings("ignore:.* does not state the scale")  # a model trained here
@pytest.mark.parametrize(
    "kind", [EVIDENCE, PIPELINES, RERANKING], ids=["evidence", "pipelines", "reranking"]
)
def test_a_query_too_long_is_reported_before_training(recipe: Path, kind: str) -> None:
    """The limit is the trained model's, unless only the beginning of a query is read."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    root = recipe.parent
    (root / "q.tsv").write_text(f"1\tbirch river\n2\t{'iron engine ' * 8}\n")
    common = 'title = "Long"\nmeasures = ["AP"]\n'
    recipe.write_text(common + kind.lstrip() + COLLECTION)
    with pytest.raises(
        InputError, match=r"Tiny: query 2 is too long for models of tiny.toml: .* at most 14 tok"
    ):
        run_study(read_recipe(recipe), root, root / "out")
    assert not list(root.rglob("curve.jsonl"))
    if "reranking" in kind:
        return
    shorter = kind.replace("depth = 2", "depth = 2\nquery_tokens = 14")
    if "pipelines" in kind:
        shorter = kind.replace("depth = 2", "depth = 2, query_tokens = 14")
    recipe.write_text(common + shorter.lstrip() + COLLECTION)
    assert run_study(read_recipe(recipe), root, root / "out").runs
