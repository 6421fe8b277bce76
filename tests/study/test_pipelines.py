"""Is each row what `rerank --stages` makes of its stages, and is its cost what was done?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.runs import read_run, write_run
from birchbark.errors import InputError
from birchbark.index.build import Schema, build_index
from birchbark.records import Document
from birchbark.score.checkpoint import Checkpoint
from birchbark.show.drawing import draw
from birchbark.show.plot import Curves, Plot, Scatter
from birchbark.study.outcome import Outcome
from birchbark.study.pipelines import PipelineStudy
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS

RECIPES = Path(__file__).parents[2] / "studies"
QUERIES = {"1": "birch river", "2": "iron engine", "3": "bees dance", "4": "stone bridge"}
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
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in QUERIES.items()))
    (tmp_path / "qrels.txt").write_text(
        "1 0 canoe 2\n1 0 forest 1\n2 0 engine 1\n3 0 bees 1\n4 0 bridge 1\n"
    )
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
    """Parameters of each model once; pairs of all stages; nothing kept makes it look cheaper."""
    kept = recipe.parent / "kept"
    outcomes = [ran(recipe, name, kept=kept) for name in ("out", "again")]
    weights = Checkpoint.open(Path(read_recipe(recipe).experiment.models[0])).parameters
    for outcome in outcomes:
        costs = next(table for table in outcome.tables if table.name == "costs")
        (shallow, deep) = costs.groups[0].rows
        assert shallow.cells[0].value == deep.cells[0].value == weights
        assert 0 < float(str(shallow.cells[1].value)) < float(str(deep.cells[1].value))
        assert shallow.cells[2].value == 0
        assert all(float(str(row.cells[3].value)) > 0 for row in (shallow, deep))
    first, second = ([t for t in outcome.tables if t.name == "pipelines"] for outcome in outcomes)
    assert first == second
    assert list((kept / "scores").glob("*.scores"))


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
