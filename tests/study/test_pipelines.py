"""Is each row what `rerank --stages` makes of its stages, and is its cost what was done?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from birchbark.checkpoint.reader import Checkpoint
from birchbark.cli import group
from birchbark.collection.runs import read_run, write_run
from birchbark.errors import CheckpointError, InputError
from birchbark.index.build import Schema, build_index
from birchbark.index.reader import Index
from birchbark.pipeline.answer import Work
from birchbark.pipeline.opening import Opener
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.stage_words import StageWords
from birchbark.records import Document, Ids, Query, Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.score.session import Session
from birchbark.show.drawing import _ticks, draw
from birchbark.show.plot import Curves, Plot, Scatter
from birchbark.study.kinds import pipelines
from birchbark.study.kinds.pipelines import PipelineStudy
from birchbark.study.outcome import Outcome
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS, QUERIES, write_collection

RECIPES = Path(__file__).parents[2] / "studies"
RECIPE = """
kind = "pipelines"
title = "Pipelines"
measures = ["AP", "RR@10"]
[pipelines]
models = { cross = "MODEL" }
over = "depth"
timed = 2
[pipelines.stage]
model = "cross"
aggregate = "max"
[[pipelines.rows]]
name = "shallow"
stages = [{ depth = 2 }]
[[pipelines.rows]]
name = "deep"
stages = [{ depth = 4, aggregate = "mean" }, { depth = 3, first_stage_weight = 0.1 }]
[[collections]]
name = "Tiny"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""


@pytest.fixture
def recipe(tmp_path: Path, bert: Callable[..., Path]) -> Path:
    """A recipe beside a collection of a few documents."""
    write_collection(tmp_path)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("MODEL", str(bert(labels=1))))
    return path


def ran(recipe: Path, name: str = "out", **options: Any) -> Outcome:
    return run_study(read_recipe(recipe), recipe.parent, recipe.parent / name, **options)


def test_a_row_is_what_the_command_makes_of_its_stages(recipe: Path) -> None:
    """From the same first stage."""
    root = recipe.parent
    outcome = ran(recipe)
    build_index(
        [Document(d.doc_id, d.fields) for d in DOCUMENTS], root / "index", Schema("english")
    )
    write_run(replace(outcome.runs["Tiny.first stage"], tag="first"), root / "first.run")
    (root / "stages.toml").write_text(
        "[[stage]]\ndepth = 4\naggregate = 'mean'\n"
        "[[stage]]\ndepth = 3\naggregate = 'max'\nfirst_stage_weight = 0.1\n"
    )
    model = read_recipe(recipe).experiment.models[0]
    words = ["rerank", root / "index", "--run", root / "first.run", "--queries", root / "q.tsv"]
    words += ["--model", model, "--stages", root / "stages.toml", "--output", root / "deep.run"]
    done = CliRunner().invoke(group, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    theirs, ours = read_run(root / "deep.run"), outcome.runs["Tiny.deep"]
    for query_id, ranking in ours.rankings.items():
        assert ranking.doc_ids == theirs.rankings[query_id].doc_ids


def test_costs_are_what_was_read(recipe: Path) -> None:
    """Parameters of each model once; pairs of all stages; a full store makes it look no cheaper."""
    kept, model = recipe.parent / "kept", Path(read_recipe(recipe).experiment.models[0])
    outcomes = [ran(recipe, name, kept=kept) for name in ("out", "again")]
    index = build_index(
        [Document(d.doc_id, d.fields) for d in DOCUMENTS], recipe.parent / "ix", Schema("english")
    )
    words = [StageWords(model=str(model), aggregate="max", depth=2)]
    works: list[Work] = []
    rerank(
        *(index, outcomes[0].runs["Tiny.first stage"]),
        [Query(*item) for item in QUERIES.items()],
        [Opener().ranker(one) for one in words],
        report=lambda _, work: works.append(work),
    )
    pairs = sum(work.pairs for work in works) / len(QUERIES)
    for outcome in outcomes:
        costs = next(table for table in outcome.tables if table.name == "costs")
        (shallow, deep) = costs.groups[0].rows
        assert shallow.cells[0].value == deep.cells[0].value == Checkpoint.open(model).parameters
        assert shallow.cells[1].value == pairs < float(str(deep.cells[1].value))
        assert shallow.cells[2].value == 0
        assert all(float(str(row.cells[3].value)) > 0 for row in (shallow, deep))
        assert "of 2 queries" in costs.note
    first, second = ([t for t in outcome.tables if t.name == "pipelines"] for outcome in outcomes)
    assert first == second
    assert list((kept / "scores").glob("*.scores"))


def test_time_is_taken_of_models_that_score(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of a store's answers: in a second study as many inputs go through BERT for it."""
    kept, counts = recipe.parent / "kept", []
    run = Session.run

    def counting(self: Session, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Any:
        counts[-1] += len(ids)
        return run(self, ids, types)

    monkeypatch.setattr(Session, "run", counting)
    for name in ("out", "again"):
        counts.append(0)
        ran(recipe, name, kept=kept)
    assert 0 < counts[1] < counts[0]


def test_what_cannot_be_opened_is_told_by_its_row(recipe: Path) -> None:
    """Before anything is indexed."""
    text = recipe.read_text()
    model = read_recipe(recipe).experiment.models[0]
    recipe.write_text(text.replace("{ depth = 4,", f"{{ duo = '{model}', depth = 4,"))
    told: list[str] = []
    with pytest.raises(CheckpointError, match=r"two texts") as caught:
        ran(recipe, tell=told.append)
    assert caught.value.where == model
    assert told == []
    recipe.write_text(text.replace('aggregate = "max"', 'pooling = "mean:9"'))
    with pytest.raises(CheckpointError, match="no such layer"):
        ran(recipe, tell=told.append)
    assert told == []


def test_a_run_without_judged_queries(recipe: Path) -> None:
    """Is refused by its collection."""
    (recipe.parent / "other.run").write_text("9 Q0 canoe 1 2.0 x\n")
    text = recipe.read_text().replace(
        'qrels = "qrels.txt"', 'qrels = "qrels.txt"\nrun = "other.run"'
    )
    recipe.write_text(text)
    with pytest.raises(InputError, match="collection Tiny: the run ranks no judged query"):
        ran(recipe)


def test_rm3_and_baseline(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first stage is expanded where that is asked for; differences are from the baseline."""
    stages: list[FirstStage] = []

    def ranking(index: Index, queries: Sequence[Query], stage: FirstStage, **more: Any) -> Run:
        stages.append(stage)
        return rank_queries(index, queries, stage, **more)

    monkeypatch.setattr(pipelines, "rank_queries", ranking)
    ran(recipe)
    text = recipe.read_text()
    recipe.write_text(text.replace("timed = 2", 'timed = 2\nrm3 = true\nbaseline = "deep"'))
    expanded = ran(recipe, "expanded")
    assert [stage.expansion for stage in stages] == [None, RM3()]
    given = next(table for table in expanded.tables if table.name == "pipelines").groups[0]
    assert [row.name for row in given.rows if row.cells[0].difference is None] == ["deep"]


def test_plots(recipe: Path) -> None:
    """Quality against speed, and the measures over the depth of the last stages."""
    plots = {plot.name: plot for plot in ran(recipe).plots}
    scatter, curves = plots["pareto-1"], plots["over-1"]
    assert isinstance(scatter, Scatter)
    assert [name for name, _, _ in scatter.points] == ["shallow", "deep"]
    assert isinstance(curves, Curves)
    assert [x for x, _ in curves.series["AP"]] == [2, 3]
    drawn: list[Plot] = [scatter, curves]
    assert all(draw(plot).startswith("<svg") for plot in drawn)
    assert "mathdefault" not in draw(scatter)  # a logarithmic axis has words of its own


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (40, 700, [50, 100, 200, 500]),
        (52, 91, [60, 70, 80, 90]),
        (71, 78, [71, 73, 75, 77]),
        (0.05, 90_000, [0.05, 1, 20, 500, 10_000]),
    ],
)
def test_ticks_are_round_and_few(low: float, high: float, ticks: list[float]) -> None:
    """However short or long the axis is."""
    assert _ticks(low, high) == pytest.approx(ticks)


def test_the_front_has_what_nothing_beats() -> None:
    """Equal points are both on it; one that is equal in one and worse in the other is not."""
    points = (("a", 1.0, 0.9), ("b", 2.0, 0.5), ("c", 2.0, 0.6), ("d", 1.5, 0.5), ("e", 1.0, 0.9))
    front = Scatter("s", "S", "x", "y", points).front
    assert [name for name, _, _ in front] == ["a", "e", "c"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "deep"', 'name = "shallow"', "a second row 'shallow'"),
        ('name = "deep"', 'name = "first stage"', "a second row 'first stage'"),
        ("stages = [{ depth = 2 }]", "stages = []", r"rows\[1\].stages: no stages"),
        ("depth = 2", "depht = 2", r"rows\[1\].stages\[1\].depht: unknown key"),
        ("depth = 2", "duo_depth = 2", r"stages\[1\]: duo_depth does nothing without duo"),
        ("timed = 2", "timed = 0", r"pipelines\.timed: out of range"),
        (
            "timed = 2",
            'baseline = "mono"',
            r"unknown baseline 'mono' \(one of first stage",
        ),
        ('over = "depth"', 'over = "width"', "unknown over 'width'"),
        ('aggregate = "max"', 'aggregate = "most"', "unknown aggregation 'most'"),
        ('model = "cross"', 'segments = "chapters"', "unknown segments 'chapters'"),
        ('model = "cross"', 'model = "bert"', "no row uses the model 'cross'.*one of bert"),
        (
            'model = "cross"',
            'model = "cross"\nduo = "d"\nduo_depth = 1',
            "duo_depth is out of range",
        ),
        ("depth = 2", "duo = 'd', depth = 3, duo_depth = 4", "duo_depth is above depth"),
        ("depth = 2", "embedding = 'e', embedding_weight = 2", "embedding_weight is out of range"),
        ('name = "deep"', 'name = "shallow "', "another row's run has this file name"),
    ],
)
def test_bad_recipes(recipe: Path, old: str, new: str, message: str) -> None:
    """Told before any work."""
    text = recipe.read_text()
    assert old in text
    recipe.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_recipe(recipe)


def test_larger_settings(recipe: Path) -> None:
    """Are taken when asked for, and the manifest says so; no other key of the recipe changes."""
    recipe.write_text(recipe.read_text() + '[larger]\n"pipelines.stage.depth" = 77\n')
    rows = []
    for large in (False, True):
        experiment = read_recipe(recipe, large).experiment
        assert isinstance(experiment, PipelineStudy)
        rows.append([[words.depth for words in stages] for stages in experiment.rows.values()])
    assert rows == [[[2], [4, 3]]] * 2  # what a stage says itself stands
    text = recipe.read_text().replace("stage.depth", "rows.shallow.stages")
    recipe.write_text(text.replace("= 77", "= [{}]"))
    shallow = read_recipe(recipe, larger=True)
    assert isinstance(shallow.experiment, PipelineStudy)
    assert shallow.experiment.rows["shallow"][0].depth == 100
    run_study(shallow, recipe.parent, recipe.parent / "out")
    assert json.loads((recipe.parent / "out" / "manifest.json").read_text())["recipe"]["larger"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", r"the recipe has no table \[larger\]"),
        ("[larger]", r"the recipe has no table \[larger\]"),
        ('[larger]\n"pipelines.timed.x" = 3', "timed is no table"),
        ('[larger]\n"pipelines.rows.none.stages" = 3', "none is no table"),
        ('[larger]\n"pipelines.tmed" = 3', "pipelines.tmed: unknown key"),
    ],
)
def test_bad_larger_settings(recipe: Path, table: str, message: str) -> None:
    """Told by their key."""
    recipe.write_text(f"{recipe.read_text()}{table}\n")
    with pytest.raises(InputError, match=message):
        read_recipe(recipe, larger=True)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_recipes_of_the_project(path: Path) -> None:
    """Each can be read as it is and with its larger settings, where it has any."""
    read_recipe(path)
    if "[larger]" in path.read_text():
        assert read_recipe(path, larger=True) != read_recipe(path)
