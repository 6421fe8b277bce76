"""Do studies average models that differ only in their seeds, in all kinds that train?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_training_study import RECIPE
from tiny_trainings import settings, some_pairs, toml, write_pairs

from birchbark.collection.qrels import read_qrels
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.records import Document
from birchbark.show.table import Table
from birchbark_studies.experiments.evidence.evidence_experiment import EvidenceExperiment
from birchbark_studies.outcome import Outcome
from conftest import write_bert
from small_study import SmallStudy, table_of, write_small_study

TRAINING = RECIPE.replace('"tiny.toml"', '"tiny.toml"\nseeds = [1, 2]').replace(
    "depth = 2", 'depth = 10\nagainst = "one layer"'
)
RERANKING = """
kind = "reranking"
title = "Re-ranked"
measures = ["AP"]
[reranking]
config = "tiny.toml"
seeds = [1, 2]
fields = { both = "whole" }
depths = [10]
models = { base = "MODEL" }
histograms = ["new"]
[[reranking.variants]]
name = "new"
settings = { "model.head" = "new" }
"""
PIPELINES = """
kind = "pipelines"
title = "Pipelines"
measures = ["AP"]
[pipelines]
config = "tiny.toml"
seeds = [1, 2]
timed = 1
baseline = "new"
[[pipelines.variants]]
name = "new"
settings = { "model.head" = "new" }
[[pipelines.rows]]
name = "new"
stages = [{ model = "new", depth = 10 }]
[[pipelines.rows]]
name = "new, then its base"
stages = [{ model = "new", depth = 10 }, { model = "MODEL", depth = 2 }]
"""


def make_study(folder: Path, recipe: str) -> SmallStudy:
    """Write a recipe, its training configuration and its data to one folder."""
    model = write_bert(folder / "base", labels=1)
    (folder / "tiny.toml").write_text(toml(settings(str(folder / "base"))))
    write_pairs(folder / "pairs.tsv", some_pairs(8))
    words = "river forest canoe bark engine stone bridge bees dance iron".split()
    documents = [Document(f"d{n}", {"text": f"birch {word}"}) for n, word in enumerate(words)]
    queries = {str(n): f"birch {word}" for n, word in enumerate(words[:4])}
    qrels = "".join(f"{n} 0 d{n + 5} 1\n" for n in range(4))
    replacements = {"documents": documents, "queries": queries, "qrels": qrels}
    return write_small_study(folder, recipe, **replacements, MODEL=model)


def names(table: Table) -> list[str]:
    """Return the names of the rows of the first group."""
    return [row.name for row in table.groups[0].rows]


def figures(table: Table) -> dict[str, list[Any]]:
    """Return row → values, of the first group."""
    return {row.name: [cell.value for cell in row.cells] for row in table.groups[0].rows}


def check_means(outcome: Outcome, folder: Path, table: str, row: str, runs: list[str]) -> None:
    """The row has the mean over the runs of both seeds, and the table of seeds has both."""
    qrels = read_qrels(folder / "qrels.txt")
    values = [measure(qrels, outcome.runs[run], ["AP"]).means["AP"] for run in runs]
    assert values[0] != values[1]
    assert figures(table_of(outcome, table))[row][0] == pytest.approx(sum(values) / 2)
    expected = [*values, abs(values[0] - values[1])]
    assert figures(table_of(outcome, "seeds"))[row] == pytest.approx(expected)


def test_in_training(tmp_path: Path) -> None:
    """Each variant has a model per seed, one row in the tables, and one curve."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    outcome = make_study(tmp_path, TRAINING).run()
    models = ["one layer, seed 1", "one layer, seed 2", "head / alone, seed 1"]
    assert names(table_of(outcome, "trained"))[:3] == models
    assert len(set(outcome.models.values())) == 4
    shown = ["BM25", "one layer", "one layer, alone", "head / alone", "head / alone, alone"]
    assert names(table_of(outcome, "evidence")) == shown
    assert names(table_of(outcome, "seeds")) == names(table_of(outcome, "gains")) == shown[1:]
    runs = [f"Tiny.head / alone, seed {seed}, alone" for seed in (1, 2)]
    check_means(outcome, tmp_path, "evidence", "head / alone, alone", runs)
    compared = names(table_of(outcome, "against"))
    assert compared == ["one layer", "head / alone", "one layer, alone", "head / alone, alone"]
    losses = next(plot for plot in outcome.plots if plot.name == "losses")
    assert list(losses.series) == ["one layer", "head / alone"]  # type: ignore[union-attr]


def test_in_reranking(tmp_path: Path) -> None:
    """AUC, too, is a mean over the seeds."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    outcome = make_study(tmp_path, RERANKING).run()
    assert names(table_of(outcome, "auc")) == ["base", "new"]
    assert names(table_of(outcome, "reranked")) == ["BM25", "base, both", "new, both", "random"]
    assert names(table_of(outcome, "seeds")) == ["new, both"]
    runs = [f"Tiny.BM25.new, seed {seed}, both" for seed in (1, 2)]
    check_means(outcome, tmp_path, "reranked", "new, both", runs)


@pytest.mark.filterwarnings("ignore:.* does not state the scale")  # a model trained here
def test_in_pipelines(tmp_path: Path) -> None:
    """A row whose stages name a variant is ranked once per seed, and its cost is measured once."""
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    outcome = make_study(tmp_path, PIPELINES).run()
    rows = ["new", "new, then its base"]
    assert names(table_of(outcome, "pipelines")) == ["first stage", *rows]
    assert names(table_of(outcome, "costs")) == rows
    for row in rows:
        runs = [f"Tiny.{row}, seed {seed}" for seed in (1, 2)]
        check_means(outcome, tmp_path, "pipelines", row, runs)


def test_of_models_in_a_table(tmp_path: Path) -> None:
    """Trained models have all seeds, the last run of several; existing ones are as they are."""
    models = 'models = { base = "MODEL", once = "tiny.toml", twice = ["tiny.toml", "more.toml"] }'
    recipe = TRAINING.partition("[training]")[0].replace('"training"', '"evidence"')
    study = make_study(
        tmp_path, f"{recipe}[evidence]\nseeds = [1, 2]\n{models}\nagainst = 'once'\n"
    )
    (tmp_path / "more.toml").write_text((tmp_path / "tiny.toml").read_text())
    experiment = study.read().experiment
    assert isinstance(experiment, EvidenceExperiment)
    compared = experiment.settings.compared
    assert compared.shown == ("base", "once", "twice")
    assert compared.of("twice") == ("twice, seed 1", "twice, seed 2")
    first, last = compared.chains["twice, seed 2"]
    assert (first.seed, last.seed) == (0, 2)


def test_a_seed_beside_seeds(tmp_path: Path) -> None:
    """One would replace the other without a word."""
    study = make_study(tmp_path, TRAINING)
    study.replace('"model.layers" = 1', '"model.layers" = 1, seed = 5')
    with pytest.raises(InputError, match="a seed beside seeds"):
        study.read()


def test_topics_of_several_seeds(tmp_path: Path) -> None:
    """Gains are those of the mean; hits are those of the first seed's model, and say so.

    Compared with another model, both rank without the first stage.
    """
    study = make_study(tmp_path, TRAINING)
    topics = 'topics = ["head / alone"]\ntopics_baseline = "one layer"'
    study.replace("depth = 10", f"depth = 10\n{topics}")
    pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
    outcome = study.run()
    qrels = read_qrels(tmp_path / "qrels.txt")

    def mean(variant: str, query_id: str) -> float:
        runs = [outcome.runs[f"Tiny.{variant}, seed {seed}, alone"] for seed in (1, 2)]
        return sum(measure(qrels, run, ["AP"]).values["AP"][query_id] for run in runs) / 2

    first = outcome.runs["Tiny.head / alone, seed 1, alone"].rankings
    assert outcome.topics
    for topic in outcome.topics:
        assert topic.before == pytest.approx(mean("one layer", topic.query_id))
        assert topic.after == pytest.approx(mean("head / alone", topic.query_id))
        assert topic.model == "head / alone, mean over the seeds; hits of head / alone, seed 1"
        shown = [hit.doc_id for hit in topic.hits]
        assert shown == list(first[topic.query_id].doc_ids[: len(shown)])


def test_topics_of_one_of_several_seeds(tmp_path: Path) -> None:
    """They are refused: a name stands for all seeds."""
    study = make_study(tmp_path, TRAINING)
    study.replace("depth = 10", 'depth = 10\ntopics = ["one layer, seed 1"]')
    with pytest.raises(InputError, match="topics: no such model"):
        study.read()
