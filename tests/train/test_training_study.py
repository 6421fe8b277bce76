"""Are variants of a training trained, measured and shown side by side?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_trainings import settings, some_pairs, toml, write_pairs

from birchbark.errors import InputError
from birchbark.score.model import load_scorer
from birchbark.section import Section
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS, write_bert

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
[[collections]]
name = "Tiny"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe, its training and its data, in one folder."""
    write_bert(tmp_path / "base", labels=1)
    (tmp_path / "tiny.toml").write_text(toml(settings(str(tmp_path / "base"))))
    write_pairs(tmp_path / "pairs.tsv", some_pairs(8))
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "q.tsv").write_text("1\tbirch river\n2\tiron engine\n")
    (tmp_path / "qrels.txt").write_text("1 0 canoe 1\n2 0 engine 1\n")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path / "recipe.toml"


def test_a_collection_that_is_not_there_is_told_before_anything_is_learnt(recipe: Path) -> None:
    """Hours of training must not come first."""
    text = recipe.read_text()
    recipe.write_text(text.replace("depth = 2", "depth = 2\ndepth_of = { Tyni = 1 }"))
    out = recipe.parent / "out"
    with pytest.raises(InputError, match=r"a collection that the recipe has not.*found Tyni"):
        run_study(read_recipe(recipe), recipe.parent, out, kept=recipe.parent / "kept")
    assert not list(recipe.parent.rglob("curve.jsonl"))


def test_variants_side_by_side(recipe: Path) -> None:
    """A row each in all tables, a curve each; a second run trains nothing and says the same."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    root = recipe.parent
    read = read_recipe(recipe)
    assert "pairs.tsv" in read.files
    first, again = (
        run_study(read, root, root / name, kept=root / "kept") for name in ("out", "again")
    )
    trained = first.tables[0]
    assert [row.name for row in trained.groups[0].rows] == ["one layer", "head / alone"]
    assert {"Tiny.BM25", "Tiny.one layer", "Tiny.head / alone, alone"} <= set(first.runs)
    losses = next(plot for plot in first.plots if plot.name == "losses")
    assert list(losses.series) == ["one layer", "head / alone"]  # type: ignore[union-attr]
    assert first == again
    assert len(list((root / "kept" / "trainings").iterdir())) == 2
    assert str(root) not in (root / "out" / "results.json").read_text()


def test_trainings_in_turn(recipe: Path) -> None:
    """A model of two trainings is what the second makes of the first's; the first is made once."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    from birchbark.train.config import read_training
    from birchbark.train.training import train

    root = recipe.parent
    second = {**settings(str(root / "nobody"), {"seed": 5}), "title": "second"}
    (root / "second.toml").write_text(toml(second))
    head, _, tail = RECIPE.partition("[training]")
    evidence = tail.partition("[training.evidence]")[2]
    models = '[evidence]\nmodels = { one = "tiny.toml", two = ["tiny.toml", "second.toml"] }'
    recipe.write_text(head.replace('"training"', '"evidence"') + models + evidence)
    read = read_recipe(recipe)
    assert read.experiment.models == (str(root / "base"),)
    outcome = run_study(read, root, root / "out", kept=root / "kept")
    assert [row.name for row in outcome.tables[0].groups[0].rows] == ["one", "two"]
    assert len(list((root / "kept" / "trainings").glob("*/model"))) == 2
    base = root / "base"
    for number, file in enumerate(("tiny.toml", "second.toml")):
        values = {**Section.table(root / file), "base": str(base)}
        train(read_training(values, root / file), root, root / f"by-hand-{number}")
        base = root / f"by-hand-{number}" / "model"
    scored = [load_scorer(str(m)) for m in (base, *(root / "kept" / "trainings").glob("*/model"))]
    scores = [s.score("birch", s.encode(["canoe of bark", "iron engine"])).tolist() for s in scored]
    assert scores[0] in scores[1:]
    lineages = [
        json.loads(path.read_text()) for path in (root / "kept").rglob("model/birchbark.json")
    ]
    titles = [[one["title"] for one in lineage["trainings"]] for lineage in lineages]
    assert sorted(titles) == [["tiny"], ["tiny", "second"]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("head / alone", "one layer", "a second variant 'one layer'"),
        (
            '"model.layers" = 1',
            '"model.layer" = 1',
            "model: .*unknown key|model.layer: unknown key",
        ),
        ('config = "tiny.toml"', 'config = "none.toml"', "none.toml: no such file"),
        ('{ "model.learns" = "head" }', '{ "model.learns" = "feet" }', "unknown part 'feet'"),
    ],
)
def test_bad_variants(recipe: Path, old: str, new: str, message: str) -> None:
    """Told before any work."""
    assert old in RECIPE
    recipe.write_text(RECIPE.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_recipe(recipe)
