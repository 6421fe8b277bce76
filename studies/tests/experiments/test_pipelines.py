"""Does each row equal `rerank --ranker` with the same stages, and are costs counted right?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark import defaults
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.locate import open_named
from birchbark.cli import group
from birchbark.collection.qrels import read_qrels
from birchbark.collection.runs import read_run, write_run
from birchbark.errors import CheckpointError, InputError
from birchbark.evaluate.folds import make_folds
from birchbark.evaluate.measures import measure
from birchbark.evaluate.tune import Tuning
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.pipeline.answers.answer import SearchStats
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.stage_options import StageOptions
from birchbark.records import Document, Ids, Qrels, Query, Ranking, Run
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.score.session import OnnxSession
from birchbark.show.draw_plot import draw
from birchbark.show.plot import Curves, Plot, Scatter
from birchbark_studies.comparison import Comparison
from birchbark_studies.experiments.pipelines import pipeline_runs as runs
from birchbark_studies.experiments.pipelines.loader import PipelineLoader
from birchbark_studies.experiments.pipelines.pipeline_experiment import (
    READ_EVERYTHING,
    PipelineExperiment,
)
from birchbark_studies.experiments.pipelines.pipeline_tables import (
    Cost,
    PipelineRuns,
    layout,
    plots,
    tables,
)
from birchbark_studies.experiments.pipelines.rows import PipelineRows
from birchbark_studies.experiments.pipelines.tuned import TunedWeights
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.recipe_folder import RECIPES
from birchbark_studies.seeds import seeds_layout
from birchbark_studies.workspace import Workspace
from conftest import DOCUMENTS, QUERIES
from small_study import COLLECTION, SmallStudy, table_of, write_small_study

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
"""


@pytest.fixture
def study(tmp_path: Path, bert: Callable[..., Path]) -> SmallStudy:
    return write_small_study(tmp_path, RECIPE, MODEL=bert(labels=1))


@pytest.mark.parametrize(
    ("read", "stage", "documents"),
    [
        ("all", "", 100),
        ("all", "read_pairs = '7'", 7),
        ("plan", "", 30),
        ("plan", "aggregate = 'topmean:1,0.5'", 30),
        ("plan", "aggregate = 'max'", 30),
        ("plan", "aggregate = 'mean'", 100),
        ("plan", "read_segments = 'all'", 100),
        ("plan", "max_segments = 9", 100),
        ("plan", "read_documents = '12'", 12),
        ("plan", "read_pairs = '40', depth = 35", 35),
        ("plan", "embedding = 'none'", 30),
        ("plan", f"model = '{defaults.EMBEDDING}'", 100),
    ],
)
def test_documents_that_a_plan_counts(
    study: SmallStudy, read: str, stage: str, documents: int
) -> None:
    """Stages that read few segments, as a search does, read at most as many documents."""
    text = study.path.read_text()
    before, collection = text[: text.index("models =")], text[text.index("[[collections]]") :]
    rows = f'[[pipelines.rows]]\nname = "row"\nstages = [{{ {stage} }}]\n'
    study.path.write_text(f'{before}read = "{read}"\n{rows}{collection}')
    recipe = study.read()
    assert recipe.experiment.documents_read(recipe.collections[0]) == documents


@pytest.mark.parametrize(
    ("second", "documents"),
    [
        ("first_stage_weight = 0.5", 100),
        ("depth = 200", 200),
        ("segments = 'sentences'", 200),
        ("duo = 'd', duo_depth = 5", 140),
        ("duo = 'd', duo_depth = 5, duo_aggregate = 'sample:2'", 120),
        ("duo = 'd', duo_depth = 5, duo_max_comparisons = 7", 140),
    ],
)
def test_a_plan_counts_what_rows_share_once(study: SmallStudy, second: str, documents: int) -> None:
    """That is the scores of equal models and segments; compared are both documents of a pair."""
    text = study.path.read_text()
    before, collection = text[: text.index("models =")], text[text.index("[[collections]]") :]
    rows = [f'name = "{n}"\nstages = [{{ {stage} }}]\n' for n, stage in enumerate(("", second))]
    tables = "".join(f"[[pipelines.rows]]\n{row}" for row in rows)
    study.path.write_text(f"{before}{tables}{collection}")
    recipe = study.read()
    assert recipe.experiment.documents_read(recipe.collections[0]) == documents


@pytest.mark.parametrize(("more", "times"), [("", 3), ('segments_of = { Tiny = "whole" }', 2)])
def test_vectors_that_a_plan_counts(study: SmallStudy, more: str, times: int) -> None:
    """All documents are read once for each embedding and segments, which rows can share."""
    text = study.path.read_text()
    before, collection = text[: text.index("models =")], text[text.index("[[collections]]") :]
    stages = ["", "depth = 3", 'segments = "sentences"', "model = 'm', pooling = 'mean'"]
    rows = [f'name = "{n}"\nstages = [{{ {stage} }}]\n' for n, stage in enumerate(stages)]
    vectors = [f'{row}vectors = "embedding"\n' for row in rows]
    others = [
        'name = "static"\nstages = [{}]\nvectors = "static"\n',
        'name = "no"\nstages = [{}]\n',
    ]
    tables = "".join(f"[[pipelines.rows]]\n{row}" for row in [*vectors, *others])
    study.path.write_text(f"{before}{more}\n{tables}{collection}")
    recipe = study.read()
    assert recipe.experiment.times_encoded(recipe.collections[0]) == times


def test_a_row_equals_rerank_with_its_stages(study: SmallStudy) -> None:
    """Rankings equal those of the command on the same first stage."""
    root = study.root
    outcome = study.run()
    build_index(
        [Document(d.doc_id, d.fields) for d in DOCUMENTS], root / "index", Schema("english")
    )
    write_run(replace(outcome.runs["Tiny.first stage"], tag="first"), root / "first.run")
    model = study.read().experiment.models[0]
    both = f"[[stage]]\nmodel = '{model}'\nembedding = 'none'\nread_segments = 'all'\n"
    (root / "stages.toml").write_text(
        f"{both}depth = 4\naggregate = 'mean'\n"
        f"{both}depth = 3\naggregate = 'max'\nfirst_stage_weight = 0.1\n"
    )
    arguments = ["rerank", root / "index", "--run", root / "first.run", "--queries", root / "q.tsv"]
    arguments += ["--ranker", root / "stages.toml", "--output", root / "deep.run"]
    done = CliRunner().invoke(group, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    expected = read_run(root / "deep.run").rankings
    for query_id, ranking in outcome.runs["Tiny.deep"].rankings.items():
        assert ranking.doc_ids == expected[query_id].doc_ids


def test_weights_by_cross_validation(study: SmallStudy) -> None:
    """Each query is ranked with the weights that are best for the queries of the other folds."""
    tried = [0.0, 0.5, 1.0]
    rows = "".join(
        f'[[pipelines.rows]]\nname = "a = {a}"\nstages = [{{ first_stage_weight = {a} }}]\n'
        for a in tried
    )
    tuned = f"tuned = {{ first_stage_weight = {tried} }}"
    study.replace("timed = 2", 'timed = 2\nfolds = 2\ntune = "RR@10"')
    study.replace("stages = [{ depth = 2 }]", f"stages = [{{}}]\n{tuned}\n{rows}")
    outcome, qrels = study.run(), read_qrels(study.root / "qrels.txt")
    (weights,) = table_of(outcome, "weights").groups
    assert [row.name for row in weights.rows] == ["shallow, 1", "shallow, 2"]
    folds = make_folds(qrels.grades, 2, study.read().seed)
    values = {
        a: measure(qrels, outcome.runs[f"Tiny.a = {a}"], ["RR@10"]).values["RR@10"] for a in tried
    }
    for row, fold, others in zip(weights.rows, folds, folds[::-1], strict=True):
        best = max(tried, key=lambda a: (sum(values[a][q] for q in others), -a))
        assert row.cells[0].value == best
        for query_id in fold:
            expected = outcome.runs[f"Tiny.a = {best}"].rankings.get(query_id)
            assert outcome.runs["Tiny.shallow"].rankings.get(query_id) == expected


@pytest.mark.parametrize(
    ("tuned", "message"),
    [
        ("{}", "wrong weights: expected values of first_stage_weight or embedding_weight"),
        ("{ depth = [1, 2] }", "wrong weights"),
        ("{ embedding_weight = [0.5] }", "embedding_weight has no effect without an embedding"),
    ],
)
def test_bad_weights_to_tune(study: SmallStudy, tuned: str, message: str) -> None:
    """The error names the table."""
    study.replace("stages = [{ depth = 2 }]", f"stages = [{{ depth = 2 }}]\ntuned = {tuned}")
    with pytest.raises(InputError, match=message) as caught:
        study.read()
    assert "tuned" in str(caught.value.where)


def test_rows_can_read_as_searches_do(study: SmallStudy) -> None:
    """With read = "plan", stages have the defaults of the command line."""
    study.replace("timed = 2", 'timed = 2\nread = "plan"')
    experiment = study.read().experiment
    assert isinstance(experiment, PipelineExperiment)
    ((shallow,), _) = experiment.ranking.rows.stages.values()
    assert shallow == StageOptions(model="cross", aggregate="max", depth=2)


def test_costs(study: SmallStudy) -> None:
    """Parameters count each model once, pairs all stages; cached scores do not lower the cost."""
    cache, model = study.root / "cache", Path(study.read().experiment.models[0])
    outcomes = [study.run(name, cache=cache) for name in ("out", "again")]
    index = build_index(
        [Document(d.doc_id, d.fields) for d in DOCUMENTS], study.root / "ix", Schema("english")
    )
    options = replace(READ_EVERYTHING, model=str(model), aggregate="max", depth=2)
    stats: list[SearchStats] = []
    rerank(
        *(index, outcomes[0].runs["Tiny.first stage"]),
        [Query(*item) for item in QUERIES.items()],
        [make_ranker(options, LoadedModels())],
        on_query=lambda query: stats.append(query.stats),
    )
    pairs = sum(of_query.pairs for of_query in stats) / len(QUERIES)
    for outcome in outcomes:
        costs = table_of(outcome, "costs")
        (shallow, deep) = costs.groups[0].rows
        assert shallow.cells[0].value == deep.cells[0].value == Checkpoint.open(model).parameters
        assert shallow.cells[1].value == pairs < float(str(deep.cells[1].value))
        assert shallow.cells[2].value == 0
        assert all(float(str(row.cells[3].value)) > 0 for row in (shallow, deep))
        assert "on 2 queries" in costs.note
    first, second = (table_of(outcome, "pipelines") for outcome in outcomes)
    assert first == second
    assert list((cache / "scores").glob("*.scores"))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of inputs that models run; the last is added to, and is appended by a test."""
    counts: list[int] = []
    run = OnnxSession.run

    def counting(self: OnnxSession, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Any:
        counts[-1] += len(ids)
        return run(self, ids, types)

    monkeypatch.setattr(OnnxSession, "run", counting)
    return counts


def test_times_are_measured_without_cached_scores(study: SmallStudy, counts: list[int]) -> None:
    """A second study with cached scores still runs BERT to measure the time."""
    for name in ("out", "again"):
        counts.append(0)
        study.run(name, cache=study.root / "cache")
    assert 0 < counts[1] < counts[0]


def test_models_that_a_row_takes_by_default(study: SmallStudy) -> None:
    """They are inputs of the study, and count among a pipeline's parameters."""
    cross, embedding, static = defaults.MODEL, defaults.EMBEDDING, defaults.STATIC_EMBEDDING
    recipe = read_recipe(RECIPES / "default-search.toml")
    assert {cross, embedding, static} <= set(recipe.experiment.models)
    assert not {embedding, static} & set(study.read().experiment.models)
    sizes = {name: open_named(name).parameters for name in (cross, embedding, static)}
    loader = PipelineLoader(Workspace(Path(), Path()))
    named = {name: name for name in sizes}
    for stage, has_static, expected in (
        (StageOptions(), True, sum(sizes.values())),
        (StageOptions(), False, sizes[cross] + sizes[embedding]),
        (StageOptions(embedding="none"), False, sizes[cross]),
        (StageOptions(model=embedding), False, sizes[embedding]),
        (StageOptions(model="all-MiniLM-L6-v2"), False, sizes[embedding]),
    ):
        models = named | {stage.model: embedding if "all" in stage.model else stage.model}
        assert loader.parameters([stage], models, static=has_static) == expected


def test_each_time_is_that_of_new_texts(
    tmp_path: Path, bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, counts: list[int]
) -> None:
    """An embedding remembers vectors of texts, also those of the query timed before."""
    study = write_small_study(tmp_path, RECIPE, MODEL=bert())
    for name, timings in (("first", 1), ("once", 1), ("twice", 2), ("thrice", 3)):
        monkeypatch.setattr(runs, "TIMINGS", timings)
        counts.append(0)
        study.run(name, cache=study.root / "cache")
    _, once, twice, thrice = counts
    assert thrice - twice == twice - once > 0


def test_slow_rows_are_timed_on_fewer_queries(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch, counts: list[int]
) -> None:
    """At least one; no other begins once the seconds for a row are over."""
    rows = (("cached", 60, 1), ("two", 60, 2), ("slow", -1, 2), ("one", 60, 1))
    for name, seconds, timed in rows:
        study.replace("timed = ", f"timed = {timed} # ")
        monkeypatch.setattr(runs, "TIMED_SECONDS", seconds)
        counts.append(0)
        study.run(name, cache=study.root / "cache")
    _, two, slow, one = counts
    assert two > slow == one > 0


def test_models_that_cannot_be_opened(study: SmallStudy) -> None:
    """The error names the row and is reported before anything is indexed."""
    model = study.read().experiment.models[0]
    study.replace("{ depth = 4,", f"{{ duo = '{model}', depth = 4,")
    steps: list[str] = []
    with pytest.raises(CheckpointError, match=r"two texts") as caught:
        study.run(progress=steps.append)
    assert caught.value.where == model
    assert steps == []
    study.replace(f"duo = '{model}', ", "")
    study.replace('aggregate = "max"', 'pooling = "mean:9"')
    with pytest.raises(CheckpointError, match="no such layer"):
        study.run(progress=steps.append)
    assert steps == []


def test_a_run_without_judged_queries(study: SmallStudy) -> None:
    """InputError names the file."""
    (study.root / "other.run").write_text("9 Q0 canoe 1 2.0 x\n")
    study.append('run = "other.run"\n')
    with pytest.raises(InputError, match=r"other\.run: the run ranks no judged query"):
        study.run()


def test_a_given_run_is_cut_at_the_depth_of_the_study(study: SmallStudy) -> None:
    """No row ranks the documents below it, whether it re-ranks fewer or as many."""
    ranks = list(enumerate([document.doc_id for document in DOCUMENTS], 1))
    lines = [f"{q} Q0 {doc_id} {rank} {9 - rank} x\n" for q in QUERIES for rank, doc_id in ranks]
    (study.root / "given.run").write_text("".join(lines))
    study.append('run = "given.run"\n')
    study.replace('title = "Pipelines"', 'title = "Pipelines"\ndepth = 4')
    rows = {name: run.rankings for name, run in study.run().runs.items()}
    assert list(rows) == ["Tiny.first stage", "Tiny.shallow", "Tiny.deep"]
    for rankings in rows.values():
        for query_id in QUERIES:
            assert set(rankings[query_id].doc_ids) == {doc_id for _, doc_id in ranks[:4]}


def test_baseline(study: SmallStudy) -> None:
    """Differences are from the row that the recipe names."""
    study.replace("timed = 2", 'timed = 2\nbaseline = "deep"')
    rows = table_of(study.run(), "pipelines").groups[0].rows
    assert [row.name for row in rows if row.cells[0].difference is None] == ["deep"]


def test_other_first_stages_are_compared(study: SmallStudy) -> None:
    """They are rows without re-ranking, except where the recipe names a run."""
    tables = '[[pipelines.first_stages]]\nname = "k1"\nk1 = 2.0\nb = 0.75\nrm3 = true\n'
    study.replace("[pipelines.stage]", f"{tables}[pipelines.stage]")
    study.replace("timed = 2", 'timed = 2\nbaseline = "k1"')
    outcome = study.run()
    build_index(
        [Document(d.doc_id, d.fields) for d in DOCUMENTS], study.root / "ix", Schema("english")
    )
    queries = [Query(*item) for item in QUERIES.items()]
    stage = FirstStage(BM25(2.0, 0.75), expansion=RM3())
    expected = rank_queries(Index(study.root / "ix"), queries, stage, depth=1000)
    assert outcome.runs["Tiny.k1"].rankings == expected.rankings
    names = [row.name for row in table_of(outcome, "pipelines").groups[0].rows]
    assert names == ["first stage", "k1", "shallow", "deep"]
    assert len(table_of(outcome, "costs").groups[0].rows) == 2
    given = replace(outcome.runs["Tiny.first stage"], tag="given")
    write_run(given, study.root / "given.run")
    study.append('run = "given.run"\n')
    with pytest.raises(InputError, match="baseline 'k1' is not computed for a collection with"):
        study.run("given")
    study.replace('baseline = "k1"', "")
    assert "Tiny.k1" not in study.run("given").runs


def test_all_queries_together(study: SmallStudy) -> None:
    """Each query of all collections counts the same, with one test over all."""
    assert not [table for table in study.run().tables if table.name == "together"]
    (study.root / "two.txt").write_text("1 0 canoe 2\n2 0 engine 1\n")
    study.append(COLLECTION.replace("Tiny", "Two").replace("qrels.txt", "two.txt"))
    outcome = study.run("two")
    [group] = table_of(outcome, "together").groups
    rows = {row.name: row.cells[0] for row in group.rows}
    of_each = table_of(outcome, "pipelines").groups
    for name in ("first stage", "shallow", "deep"):
        four, two = ({r.name: r.cells[0].value for r in each.rows}[name] for each in of_each)
        assert isinstance(four, float)
        assert isinstance(two, float)
        assert rows[name].value == pytest.approx((4 * four + 2 * two) / 6)
    assert rows["first stage"].difference is None
    assert rows["deep"].difference


def test_rows_with_stored_vectors(study: SmallStudy, bert: Callable[..., Path]) -> None:
    """Half of their candidates are found by the vectors, except where the recipe names a run."""
    embedding = f'embedding = "{bert()}"'
    study.replace('"deep"', '"deep"\nvectors = "embedding"')
    with pytest.raises(InputError, match="row deep: vectors need an embedding"):
        study.run()
    study.replace('model = "cross"', f'model = "cross"\n{embedding}')
    study.replace("depth = 2", 'depth = 2, embedding = "none"')
    study.replace('title = "Pipelines"', 'title = "Pipelines"\ndepth = 4')
    outcome = study.run()
    found, by_terms = outcome.runs["Tiny.deep"], outcome.runs["Tiny.first stage"]
    others = [
        set(found.rankings[query_id].doc_ids) - set(by_terms.rankings[query_id].doc_ids)
        for query_id in QUERIES
    ]
    assert any(others)
    assert all(len(ranking) <= 4 for ranking in found.rankings.values())
    write_run(replace(by_terms, tag="given"), study.root / "given.run")
    study.append('run = "given.run"\n')
    for query_id, ranking in study.run("given").runs["Tiny.deep"].rankings.items():
        assert set(ranking.doc_ids) == set(by_terms.rankings[query_id].doc_ids)


def test_vectors_find_half_of_what_is_read(study: SmallStudy, bert: Callable[..., Path]) -> None:
    """As in a search, however many documents the study ranks; the others follow."""
    study.replace('"shallow"', '"shallow"\nvectors = "embedding"')
    study.replace('model = "cross"', f'model = "cross"\nembedding = "{bert()}"')
    runs_of_all = study.run().runs
    read, by_terms = (
        [runs_of_all[f"Tiny.{row}"].rankings[query_id].doc_ids for query_id in QUERIES]
        for row in ("shallow", "first stage")
    )
    pairs = [(set(ids[:2]), set(others[:2])) for ids, others in zip(read, by_terms, strict=True)]
    assert any(best != by_bm25 for best, by_bm25 in pairs if len(by_bm25) == 2)
    assert all(set(ids) >= set(others) for ids, others in zip(read, by_terms, strict=True))


def test_vectors_are_computed_once(study: SmallStudy, bert: Callable[..., Path]) -> None:
    """Rows with the same embedding and segments share them."""
    study.replace('"deep"', '"deep"\nvectors = "embedding"')
    study.replace('"shallow"', '"shallow"\nvectors = "embedding"')
    study.replace('model = "cross"', f'model = "cross"\nembedding = "{bert()}"')
    messages: list[str] = []
    study.run(progress=messages.append)
    assert messages.count("Tiny: computing vectors") == 1


def test_encoding_and_bad_records_of_a_collection(study: SmallStudy) -> None:
    """Documents and queries are read in the encoding; bad records are skipped only on request."""
    expected = study.run("before").runs
    for name in ("docs.jsonl", "q.tsv"):
        file = study.root / name
        file.write_bytes((file.read_text() + "\n").encode("cp1252"))
    documents = study.root / "docs.jsonl"
    documents.write_bytes(documents.read_bytes() + '{"id": "café", "text": \n'.encode("cp1252"))
    with pytest.raises(InputError, match=r"docs\.jsonl:6: wrong encoding"):
        study.run("utf-8")
    study.append('encoding = "cp1252"\n')
    with pytest.raises(InputError, match=r"docs\.jsonl:6.*set .skip_bad. or .encoding. of"):
        study.run("strict")
    study.append("skip_bad = true\n")
    steps: list[str] = []
    assert study.run("skipping", progress=steps.append).runs == expected
    (note,) = [step for step in steps if "skipped 1 bad records, first" in step]
    assert "docs.jsonl:6" in note
    study.replace('encoding = "cp1252"', 'encoding = "latin-77"')
    with pytest.raises(InputError, match=r"collections\[1\].encoding: unknown encoding"):
        study.read()


def test_segments_of_a_collection(study: SmallStudy) -> None:
    """Documents of this collection are split differently in all rows."""
    before = study.run()
    study.replace("timed = 2", 'timed = 2\nsegments_of = { Tiny = "sentences" }')
    whole = study.run("sentences")
    study.replace('segments_of = { Tiny = "sentences" }', "")
    study.replace('aggregate = "max"', 'aggregate = "max"\nsegments = "sentences"')
    for name, run in study.run("same").runs.items():
        assert whole.runs[name].rankings == run.rankings
    assert whole.runs["Tiny.deep"].rankings != before.runs["Tiny.deep"].rankings
    study.replace("timed = 2", 'timed = 2\nsegments_of = { Huge = "sentences" }')
    with pytest.raises(InputError, match="segments_of names an unknown collection"):
        study.run("unknown")


def test_plots(study: SmallStudy) -> None:
    """Effectiveness is plotted against speed, and measures over the depth of the last stage."""
    plots = {plot.name: plot for plot in study.run().plots}
    scatter, curves = plots["pareto-1"], plots["over-1"]
    assert isinstance(scatter, Scatter)
    assert [name for name, _, _ in scatter.points] == ["shallow", "deep"]
    assert isinstance(curves, Curves)
    assert [x for x, _ in curves.series["AP"]] == [2, 3]
    drawn: list[Plot] = [scatter, curves]
    assert all(draw(plot).startswith("<svg") for plot in drawn)
    assert "mathdefault" not in draw(scatter)  # which logarithmic axes would add


def of_hand(name: str, timed: int) -> PipelineRuns:
    """Return the runs of two seeds and of a slow pipeline on one collection."""
    relevant_at = {"first stage": 4, "new, seed 1": 2, "new, seed 2": 1, "slow": 3}
    ranked = {
        tag: Run({q: Ranking.of([*"xyz"[: n - 1], "a"], range(n, 0, -1)) for q in "12"}, tag)
        for tag, n in relevant_at.items()
    }
    costs = {"new": Cost(100, 7.5, 0, 0.5), "slow": Cost(300, 9, 6, 4)}
    return PipelineRuns(name, Qrels({"1": {"a": 1}, "2": {"a": 1}}), ranked, timed, costs)


def test_tables_and_plots_of_two_collections() -> None:
    """Seeds are one row with their mean, also of all queries; a minute has 60 seconds.

    Plots show the first measure against speed, and each measure over the option.
    """
    comparison = Comparison(("RR", "P@2"), "first stage", seed=1, level=0.05)
    shown_as = {"new, seed 1": "new", "new, seed 2": "new"}
    heads = layout(comparison.measures, {}, "RR") | seeds_layout([1, 2])
    collections = [of_hand("A", 10), of_hand("B", 2)]
    made = {t.name: t for t in tables(collections, comparison, heads, shown_as, {})}
    assert list(made) == ["pipelines", "together", "costs", "seeds"]
    for name in ("pipelines", "together"):
        for of_rows in made[name].groups:
            values = {row.name: [cell.value for cell in row.cells] for row in of_rows.rows}
            assert values == {
                "first stage": [1 / 4, 0],
                "new": [3 / 4, 1 / 2],
                "slow": [pytest.approx(1 / 3), 0],
            }
    assert [g.name for g in made["pipelines"].groups] == ["A", "B"]
    for of_rows in made["seeds"].groups:
        assert [[c.value for c in r.cells] for r in of_rows.rows] == [[1 / 2, 1, 1 / 2]]
    for of_rows in made["costs"].groups:
        values = {row.name: [cell.value for cell in row.cells] for row in of_rows.rows}
        assert values == {"new": [100, 7.5, 0, 120], "slow": [300, 9, 6, 15]}
    assert "measured on 10 and 2 queries" in made["costs"].note
    drawn = plots(made["pipelines"], made["costs"], comparison, {"slow": 2, "new": 30})
    found = {plot.name: plot for plot in drawn}
    assert list(found) == [
        f"{kind}-{n}" for n in (1, 2) for kind in ("differences", "pareto", "over")
    ]
    scatter, curves = found["pareto-2"], found["over-2"]
    assert isinstance(scatter, Scatter)
    assert isinstance(curves, Curves)
    assert scatter.points == (("new", 120, 3 / 4), ("slow", 15, pytest.approx(1 / 3)))
    assert curves.series == {
        "RR": ((2, pytest.approx(1 / 3)), (30, 3 / 4)),
        "P@2": ((2, 0), (30, 1 / 2)),
    }


def test_weights_that_a_pipeline_does_not_have_are_empty() -> None:
    """Each weight stands in its own column, whatever the order of the pipelines' options."""
    values = np.array([[0.25, 0.5], [0.75, 1.0]])  # of two weightings, for two queries
    folds = (("1",), ("2",))
    names = {"one": ("first_stage_weight",), "two": ("embedding_weight", "first_stage_weight")}
    weights = {"one": np.array([[0.1], [0.2]]), "two": np.array([[0.3, 0.4], [0.5, 0.6]])}
    tuned = {row: TunedWeights(names[row], weights[row], ()) for row in names}
    tunings = {row: Tuning(weights[row], values, ("1", "2"), folds, (1, 0)) for row in names}
    ranked = replace(of_hand("A", 2), tunings=tunings)
    comparison = Comparison(("RR",), "first stage", seed=1, level=0.05)
    made = tables([ranked], comparison, layout(("RR",), tuned, "RR"), {}, tuned)
    (table,) = [table for table in made if table.name == "weights"]
    first, second = [column.name for column in table.columns][:2]
    assert (first, second) == ("first_stage_weight", "embedding_weight")
    assert {r.name: [c.value for c in r.cells] for r in table.groups[0].rows} == {
        "one, 1": [0.2, None, 1.0, 0.75],
        "one, 2": [0.1, None, 0.25, 0.5],
        "two, 1": [0.6, 0.5, 1.0, 0.75],
        "two, 2": [0.4, 0.3, 0.25, 0.5],
    }


def test_options_of_rows() -> None:
    """The last stage tells, in ascending order; a model reads as much as its longest stage."""
    mono, other = StageOptions(model="m", depth=50), StageOptions(model="o", query_tokens=5)
    duo = replace(mono, duo="d", duo_depth=9, depth=20, query_tokens=8)
    stages = {
        "mono": (other, mono),
        "wide": (replace(duo, duo_depth=30),),
        "duo, seed 1": (other, replace(duo, query_tokens=6)),
    }
    rows = PipelineRows(stages, {"duo, seed 1": "duo"})
    assert list(rows.over("depth").items()) == [("wide", 20), ("duo", 20), ("mono", 50)]
    assert list(rows.over("duo_depth").items()) == [("duo", 9), ("wide", 30)]
    assert rows.over("") == {}
    limits = {name: limit for name, limit in rows.query_limits.items() if name in "mod"}
    assert limits == {"m": None, "o": 5, "d": 8}


def test_documents_that_follow_those_that_were_read() -> None:
    """They keep their order below the lowest score, without repetition, up to the depth."""
    run = Run({"1": Ranking.of(["b", "a"], [0.5, 0.25]), "2": Ranking.of([], [])}, "row")
    deeper = Run({q: Ranking.of(list("acbde"), [5, 4, 3, 2, 1]) for q in "12"}, "deeper")
    followed = runs._followed(run, deeper, 4)
    assert followed.tag == "row"
    assert list(followed.rankings["1"]) == [("b", 0.5), ("a", 0.25), ("c", -0.75), ("d", -1.75)]
    assert followed.rankings["2"].doc_ids == ("a", "c", "b", "d")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "deep"', 'name = "shallow"', "two rows are called 'shallow'"),
        ('name = "deep"', 'name = "first stage"', "two rows are called 'first stage'"),
        ("stages = [{ depth = 2 }]", "stages = []", r"rows\[1\].stages: no stages"),
        ("depth = 2", "depht = 2", r"rows\[1\].stages\[1\].depht: unknown key"),
        ("depth = 2", "duo_depth = 2", r"stages\[1\]: duo_depth has no effect without duo"),
        ("timed = 2", "timed = 0", r"pipelines\.timed: out of range"),
        ("timed = 2", "segments_of = { Tiny = 'chapters' }", "unknown segments 'chapters'"),
        ("timed = 2", "first_stages = [{ name = 'deep' }]", "two rows are called 'deep'"),
        ("timed = 2", "first_stages = [{ name = 'x', b = 2.0 }]", "b is out of range"),
        ("timed = 2", "first_stages = [{ name = 'x', c = 2 }]", "unknown key"),
        (
            "timed = 2",
            'baseline = "mono"',
            "unknown baseline 'mono': expected one of first stage",
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
        ("depth = 2", "duo = 'd', depth = 3, duo_depth = 4", "duo_depth exceeds depth"),
        ("depth = 2", "embedding = 'e', embedding_weight = 2", "embedding_weight is out of range"),
        ('name = "deep"', 'name = "shallow "', "another row has the same run file name"),
    ],
)
def test_invalid_recipes(study: SmallStudy, old: str, new: str, message: str) -> None:
    """Errors are reported before any work."""
    study.replace(old, new)
    with pytest.raises(InputError, match=message):
        study.read()


def test_the_words_of_larger_runs(study: SmallStudy) -> None:
    """Findings are those of the table [larger], if any; the source tells what it changes."""
    study.replace("kind =", 'findings = "Small."\nsource = "Ours."\nkind =')
    study.append('[larger]\n"pipelines.stage.depth" = 77\ndemonstration = ""\n')
    study.append('"pipelines.tune" = "AP@9"\n"pipelines.segments_of" = { Tiny = "whole" }\n')
    assert (study.read().findings, study.read().source) == ("Small.", "Ours.")
    larger = study.read(larger=True)
    told = (
        "Ours. Run with --larger: pipelines.stage.depth = 77, "
        'pipelines.tune = "AP@9", pipelines.segments_of.'
    )
    assert (larger.findings, larger.source) == ("", told)
    study.append('findings = "Large."\nsource = "Theirs."\n')
    larger = study.read(larger=True)
    assert (larger.findings, larger.source) == ("Large.", "Theirs.")


def test_larger_settings(study: SmallStudy) -> None:
    """They apply only if requested, change no other key, and are recorded in the manifest."""
    study.append('[larger]\n"pipelines.stage.depth" = 77\n')
    rows = []
    for large in (False, True):
        experiment = study.read(large).experiment
        assert isinstance(experiment, PipelineExperiment)
        rows.append(
            [
                [stage.depth for stage in stages]
                for stages in experiment.ranking.rows.stages.values()
            ]
        )
    assert rows == [[[2], [4, 3]]] * 2  # options of a stage override the defaults
    study.replace("stage.depth", "rows.shallow.stages")
    study.replace("= 77", "= [{}]")
    experiment = study.read(larger=True).experiment
    assert isinstance(experiment, PipelineExperiment)
    assert experiment.ranking.rows.stages["shallow"][0].depth == 100
    study.run(larger=True)
    assert json.loads((study.root / "out" / "manifest.json").read_text())["recipe"]["larger"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", r"the recipe has no table \[larger\]"),
        ("[larger]", r"the recipe has no table \[larger\]"),
        ('[larger]\n"pipelines.timed.x" = 3', "timed is not a table"),
        ('[larger]\n"pipelines.rows.none.stages" = 3', "none is not a table"),
        ('[larger]\n"pipelines.tmed" = 3', "pipelines.tmed: unknown key"),
    ],
)
def test_invalid_larger_settings(study: SmallStudy, table: str, message: str) -> None:
    """Errors name the key."""
    study.append(f"{table}\n")
    with pytest.raises(InputError, match=message):
        study.read(larger=True)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_recipes_of_the_project(path: Path) -> None:
    """Every recipe can be read, with and without its larger settings."""
    recipe = read_recipe(path)
    if "[larger]" in path.read_text():
        assert read_recipe(path, larger=True) != recipe
