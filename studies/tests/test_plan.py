"""Can every study be planned without its data, and does the plan count right?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.section import Section
from birchbark_studies.experiments.evidence.evidence_experiment import EvidenceExperiment
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.listing import list_recipe
from birchbark_studies.plan import TOKENS, TOKENS_OF_WORD, plan_study, speed
from birchbark_studies.recipe_folder import RECIPES

EVERY = [
    pytest.param(path, larger, id=path.stem + " --larger" * larger)
    for path in sorted(RECIPES.glob("*.toml"))
    for larger in (False, True)
    if not larger or "larger" in Section.table(path)
]
WITHOUT_MODELS = {"birch-codec", "birch-covid", "birch-data", "cord-fields", "covid-fields"} | {
    "uva-analyzers",
    "uva-marco-analyzers",
}
RECIPE = """
kind = "evidence"
title = "Two models, one of which is trained from the other"
measures = ["AP"]
[evidence]
depth = 30
depth_of = { B = 5 }
[evidence.models]
first = "runs/first.toml"
both = ["runs/first.toml", "runs/second.toml"]
given = "MODEL"
[larger]
"evidence.depth" = 50
"""
COLLECTION = """
[[collections]]
name = "{name}"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "{name}.qrels"
"""
TRAINING = """
title = "{title}"
base = "MODEL"
max_length = 64
objective = {{ kind = "softmax" }}
lists = {{ each = "positive", texts = 4{take} }}
[[data]]
name = "d"
files = ["{title}.tsv"]
validation = 0
licence = "none"
[schedule]
batch = 8
learning_rate = 1e-4
{length}
"""


@pytest.mark.parametrize(("path", "larger"), EVERY)
def test_every_recipe_is_planned_without_data(path: Path, larger: bool) -> None:
    """Each stage has an estimate or says what is unknown; a model's size is told by its name."""
    recipe = read_recipe(path, larger)
    plan = plan_study(recipe, None, "cpu")
    parts = [*plan.trainings, *plan.readings]
    assert bool(parts) == (path.stem not in WITHOUT_MODELS)
    assert all((part.seconds is None) == bool(part.unknown) for part in parts)
    assert all(part.seconds is None or part.seconds > 0 for part in parts)
    assert {name for run in plan.trainings for name in run.models} == {*recipe.experiment.chains}
    sizes = {reason for reason in plan.unknown if reason.startswith("the size of")}
    assert sizes <= {f"the size of titles-pool/{name}" for name in ("extended", "covid-extended")}


@pytest.fixture
def recipe(tmp_path: Path, bert: Callable[..., Path]) -> Path:
    """A recipe of two training runs and two collections, of one of which the judgments are here."""
    model = str(bert(layers=2))
    (tmp_path / "runs").mkdir()
    for title, take, length in (("first", "", "epochs = 3"), ("second", ", take = 10", "epochs=2")):
        text = TRAINING.format(title=title, take=take, length=length)
        (tmp_path / "runs" / f"{title}.toml").write_text(text.replace("MODEL", model))
    collections = "".join(COLLECTION.format(name=name) for name in "AB")
    path = tmp_path / "two.toml"
    path.write_text(RECIPE.replace("MODEL", model) + collections)
    (tmp_path / "B.qrels").write_text("1 0 d 1\n2 0 d 0\n2 0 e 1\n")
    return path


def test_stages_and_times(recipe: Path) -> None:
    """A shared training run is planned once; times are operations at the device's speed."""
    plan = plan_study(read_recipe(recipe), recipe.parent, "cuda")
    first, second = plan.trainings
    assert (first.models, second.models) == (("first", "both"), ("both",))
    assert (first.texts, first.seconds) == (None, None)
    assert first.unknown == ("the number of pairs in first.tsv",)
    assert (second.base, second.length, second.texts) == ("first", "2 epochs", 80)
    size = 2 * (4 * 16 * 16 + 2 * 16 * 24)  # layers of the tiny model
    assert second.seconds == pytest.approx(6 * size * 80 * 64 / speed("cuda"))
    unread, read = plan.readings
    assert (unread.documents, unread.queries, unread.seconds) == (90, None, None)
    assert (read.documents, read.queries) == (15, 2)
    assert read.seconds == pytest.approx(2 * size * TOKENS * 15 * 2 / speed("cuda"))
    assert plan.seconds == pytest.approx(second.seconds + read.seconds)


def test_texts_that_are_mined_take_time(recipe: Path) -> None:
    """Of 20 lists, 12 come after the first step of 8; 7 texts are scored for each of them."""
    path = recipe.parent / "runs" / "second.toml"
    before = plan_study(read_recipe(recipe), recipe.parent, "cuda").trainings[1]
    path.write_text(path.read_text() + "[mining]\nevery = 1\nstart = 1\ndepth = 7\n")
    after = plan_study(read_recipe(recipe), recipe.parent, "cuda").trainings[1]
    assert before.texts == after.texts == 80
    assert before.seconds and after.seconds
    assert after.seconds / before.seconds == pytest.approx((3 * 80 + 84) / (3 * 80))


def test_teachers_read_what_a_model_learns_from(recipe: Path) -> None:
    """They read each text once, the model in training thrice; steps decide how many there are."""
    path = recipe.parent / "runs" / "second.toml"
    text = path.read_text().replace('"softmax"', '"softmax", teacher = "my-bert-large-x"')
    path.write_text(text.replace("epochs=2", "steps = 5\naccumulate = 2"))
    run = plan_study(read_recipe(recipe), recipe.parent, "cuda").trainings[1]
    assert (run.length, run.texts, run.unknown) == ("5 steps of 16", 5 * 16 * 4, ())
    size, teacher = 2 * (4 * 16 * 16 + 2 * 16 * 24), 24 * (4 * 1024**2 + 2 * 1024 * 4096)
    assert run.seconds == pytest.approx(2 * (3 * size + teacher) * 320 * 64 / speed("cuda"))
    path.write_text(path.read_text().replace("my-bert-large-x", "nobody"))
    run = plan_study(read_recipe(recipe), recipe.parent, "cuda").trainings[1]
    assert (run.seconds, run.unknown) == (None, ("the size of nobody",))


@pytest.mark.parametrize(
    ("model", "layers", "hidden"),
    [
        ("bert-base-uncased", 12, 768),
        ("google/bert_uncased_L-4_H-256_A-4", 4, 256),
        ("my-bert-large_L-2-H-128", 2, 128),
    ],
)
def test_sizes_of_models_that_are_not_here(
    recipe: Path, model: str, layers: int, hidden: int
) -> None:
    """Their names tell; the largest model of a study reads for all."""
    name = next(path.name for path in recipe.parent.iterdir() if path.name.startswith("bert"))
    given = f'given = "{recipe.parent / name}"'
    recipe.write_text(recipe.read_text().replace(given, f'given = "{model}"'))
    read = plan_study(read_recipe(recipe), recipe.parent, "cpu").readings[1]
    size = layers * (4 * hidden**2 + 2 * hidden * 4 * hidden)
    assert read.seconds == pytest.approx(2 * size * TOKENS * 15 * 2 / speed("cpu"))


def test_layers_that_a_training_keeps(recipe: Path) -> None:
    """They decide its size, and that of the models trained from it."""
    first = recipe.parent / "runs" / "first.toml"
    first.write_text(first.read_text() + "[model]\nlayers = 1\nintermediate = 8\n")
    run = plan_study(read_recipe(recipe), recipe.parent, "cuda").trainings[1]
    size = 4 * 16 * 16 + 2 * 16 * 8
    assert run.seconds == pytest.approx(6 * size * 80 * 64 / speed("cuda"))


def test_documents_are_as_long_as_those_that_are_here(recipe: Path) -> None:
    """The first documents of a file tell, and bad lines do not matter."""
    lines = [
        json.dumps({"id": f"d{n}", "text": "word " * length}) for n, length in enumerate((9, 5))
    ]
    (recipe.parent / "docs.jsonl").write_text("\n".join([*lines, "{"]))
    read = plan_study(read_recipe(recipe), recipe.parent, "cpu").readings[1]
    size = 2 * (4 * 16 * 16 + 2 * 16 * 24)
    expected = 2 * size * 7 * TOKENS_OF_WORD * 15 * 2 / speed("cpu")
    assert read.seconds == pytest.approx(expected)


def test_a_first_stage_by_vectors_reads_all_documents() -> None:
    """Re-ranking plans it as pipelines do."""
    recipe = read_recipe(RECIPES / "cord-reranking.toml")
    assert recipe.experiment.times_encoded(recipe.collections[0]) == 1


def test_the_last_time_is_of_the_same_settings() -> None:
    """The time of a small run says nothing of a large one."""
    path = RECIPES / "passages-depth.toml"
    seconds = [list_recipe(read_recipe(path, larger), None).seconds for larger in (False, True)]
    assert seconds[0]
    assert seconds[1] is None


def test_documents_with_vectors_are_all_read(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is known if the file is here and not large; queries do not matter to them."""
    monkeypatch.setattr(EvidenceExperiment, "times_encoded", lambda *_: 3)
    monkeypatch.setattr(EvidenceExperiment, "documents_read", lambda *_: 0)
    options = ["--data", str(recipe.parent)]
    read = plan_study(read_recipe(recipe), recipe.parent, "cpu").readings[0]
    assert (read.seconds, read.unknown) == (None, ("the number of documents in A",))
    (recipe.parent / "docs.jsonl").write_text("{")
    read = plan_study(read_recipe(recipe), recipe.parent, "cpu").readings[0]
    assert (read.seconds, read.unknown) == (None, ("the number of documents in A",))
    lines = [json.dumps({"id": f"d{n}", "text": "word " * n}) for n in range(1, 301)]
    (recipe.parent / "docs.jsonl").write_text("\n".join(lines))
    read = plan_study(read_recipe(recipe), recipe.parent, "cpu").readings[0]
    size, words = 2 * (4 * 16 * 16 + 2 * 16 * 24), 300 * 301 / 2
    assert read.seconds == pytest.approx(2 * size * 3 * words * TOKENS_OF_WORD / speed("cpu"))
    shown = CliRunner().invoke(group, ["study", "plan", str(recipe), *options]).stdout
    assert "\n  reads all documents 3 times, A; about 0 s\n" in shown
    monkeypatch.setattr("birchbark_studies.plan.MOST_READ", 1000)
    read = plan_study(read_recipe(recipe), recipe.parent, "cpu").readings[0]
    assert (read.seconds, read.unknown) == (None, ("the number of documents in A",))


@pytest.mark.parametrize(("each", "texts"), [("query", 3 * 6), ("positive", None)])
def test_pairs_are_counted_where_they_are(recipe: Path, each: str, texts: int | None) -> None:
    """Each line is read once an epoch; how many lists begin with a relevant text, none tells."""
    first = recipe.parent / "runs" / "first.toml"
    first.write_text(first.read_text().replace("positive", each))
    (recipe.parent / "first.tsv").write_text("a pair\n" * 6)
    run = plan_study(read_recipe(recipe), recipe.parent, "cpu").trainings[0]
    assert (run.texts, run.seconds is None) == (texts, texts is None)


def test_command(recipe: Path) -> None:
    """It prints stages, what is unknown and lacking, and the same as JSON; for folders, too."""
    options = ["--data", str(recipe.parent)]
    shown = CliRunner().invoke(group, ["study", "plan", str(recipe), *options]).stdout
    assert shown.startswith("two: Two models, one of which is trained from the other\n  lacks docs")
    assert "\n  trains 2 models by 2 training runs\n" in shown
    assert "\n    first → second: 2 epochs, 80 texts; about 0 s\n" in shown
    assert "\n  reads 15 documents for each of 2 queries, B; about 0 s\n" in shown
    assert "\n  unknown: the number of queries of A\n" in shown
    (recipe.parent / "without.toml").write_text(
        recipe.read_text().replace("[larger]", "[bm25]").replace('"evidence.depth"', "k1")
    )
    folder = ["study", "plan", str(recipe.parent), "--json"]
    for larger, depths in (([], {"two": 90, "without": 90}), (["--larger"], {"two": 150})):
        plans = json.loads(CliRunner().invoke(group, [*folder, *options, *larger]).stdout)
        assert {plan["name"]: plan["readings"][0]["documents"] for plan in plans} == depths
