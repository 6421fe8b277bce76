"""Are models compared by the evidence that the pipeline finds, with weights that others chose?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.collection.qrels import read_qrels
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.index.build import Schema, build_index
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.records import Document, Query
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.session import Session
from birchbark.segment.sentences import sentences
from birchbark.study.kinds.evidence import EvidenceStudy
from birchbark.study.outcome import Outcome
from birchbark.study.recipe import Recipe
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS, QUERIES, write_collection

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
    write_collection(tmp_path)
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
    assert isinstance(recipe.experiment, EvidenceStudy)
    choices = recipe.experiment.choices
    scorer = load_scorer(choices.compared.named["cross"])
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
    assert isinstance(recipe.experiment, EvidenceStudy)
    choices = recipe.experiment.choices
    grid = replace(choices, step=0.1, best=(3,)).grid
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


def cells(outcome: Outcome, table: str) -> dict[str, list[object]]:
    """Row → values, of a table with one collection."""
    (found,) = (t for t in outcome.tables if t.name == table)
    return {row.name: [cell.value for cell in row.cells] for row in found.groups[0].rows}


def test_several_numbers_of_segments(recipe: Recipe, tmp_path: Path) -> None:
    """Each row has the figures of a study of its number alone."""
    text, path = recipe.path.read_text(), recipe.path
    path.write_text(text.replace("best = 2", "best = [1, 2, 4]\nalone = false"))
    many = cells(run_study(read_recipe(path), tmp_path, tmp_path / "many"), "evidence")
    assert list(many) == ["BM25", "1S: cross", "2S: cross", "4S: cross"]
    for n in (1, 2, 4):
        path.write_text(text.replace("best = 2", f"best = {n}"))
        one = cells(run_study(read_recipe(path), tmp_path, tmp_path / f"{n}"), "evidence")
        assert one["cross"] == many[f"{n}S: cross"]


def test_without_the_words_of_the_query(recipe: Recipe, tmp_path: Path) -> None:
    """As if the sentences that hold them had been taken out of the documents beforehand."""
    text, path = recipe.path.read_text(), recipe.path
    (tmp_path / "theirs.run").write_text(
        "".join(f"1 Q0 {d.doc_id} {r} 1 x\n" for r, d in enumerate(DOCUMENTS, 1))
    )
    (tmp_path / "q.tsv").write_text("1\tbirches, rivers\n")
    (tmp_path / "qrels.txt").write_text("1 0 bridge 1\n1 0 bees 1\n2 0 bees 1\n")
    text = text.replace("depth = 3", "depth = 5") + 'run = "theirs.run"\n'
    path.write_text(text.replace("best = 2", "best = 2\npruned = true\nalone = false"))
    found = run_study(read_recipe(path), tmp_path, tmp_path / "out")
    assert list(cells(found, "pruned")) == ["first stage", "cross, pruned"]
    words = ("birch", "river")
    lines = [
        {
            "id": d.doc_id,
            "text": "\n\n".join(
                s.text for s in sentences(d) if not any(word in s.text.lower() for word in words)
            ),
        }
        for d in DOCUMENTS
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    path.write_text(text)
    bare = run_study(read_recipe(path), tmp_path, tmp_path / "bare")
    assert found.runs["Tiny.cross, pruned"].rankings == bare.runs["Tiny.cross"].rankings
    assert found.runs["Tiny.cross"].rankings != bare.runs["Tiny.cross"].rankings


def test_lengths_of_queries(recipe: Recipe, tmp_path: Path) -> None:
    """Classes hold all queries; the mean over them is the mean of the first table."""
    text, path = recipe.path.read_text(), recipe.path
    (tmp_path / "q.tsv").write_text("1\tbirch\n2\tiron engine\n3\tbees that dance\n4\tstone\n")
    path.write_text(text.replace("best = 2", "best = 2\nlengths = [1]"))
    outcome = run_study(read_recipe(path), tmp_path, tmp_path / "out")
    lengths = cells(outcome, "lengths")
    assert lengths["queries"] == ["2", "2"]
    for row in ("BM25", "cross"):
        first, second = (float(str(value)) for value in lengths[row])
        assert (first + second) / 2 == pytest.approx(cells(outcome, "evidence")[row][0])


def test_queries_are_looked_at(recipe: Recipe, tmp_path: Path) -> None:
    """The best and the worst with their sentences, in the report alone; a page of attention."""
    path = recipe.path
    path.write_text(path.read_text().replace("best = 2", 'best = 2\nlooked = ["cross"]'))
    outcome = run_study(read_recipe(path), tmp_path, tmp_path / "out")
    assert [topic.query_id for topic in outcome.topics] == sorted(
        QUERIES, key=lambda q: next(t.before - t.after for t in outcome.topics if t.query_id == q)
    )
    gains = cells(outcome, "gains")["cross"]
    assert gains == [
        sum(t.after > t.before for t in outcome.topics) / 4,
        sum(t.after < t.before for t in outcome.topics) / 4,
    ]
    hit = outcome.topics[0].hits[0]
    assert hit.rank == 1
    assert list(hit.segments) == sorted(hit.segments, reverse=True)
    (document,) = (d for d in DOCUMENTS if d.doc_id == hit.doc_id)
    assert all(text in document.contents for _, text in hit.segments)
    report = (tmp_path / "out" / "report.html").read_text()
    assert hit.segments[0][1] in report
    assert hit.segments[0][1] not in (tmp_path / "out" / "results.json").read_text()
    assert outcome.topics[0].page in report
    assert "attention" in (tmp_path / "out" / outcome.topics[0].page).read_text().lower()


def test_gains_over_another_model(
    recipe: Recipe, tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """Values before are the other model's, not the first stage's."""
    path, other = recipe.path, bert(labels=1, seed=5)
    text = path.read_text().replace("models = { ", f'models = {{ other = "{other}", ')
    path.write_text(text.replace("best = 2", 'best = 2\nlooked = ["cross"]\nlooked_over = "other"'))
    outcome = run_study(read_recipe(path), tmp_path, tmp_path / "out")
    qrels = read_qrels(tmp_path / "qrels.txt")
    assert len(outcome.topics) == len(QUERIES)
    runs = [outcome.runs[f"Tiny.{row}"] for row in ("other", "cross", "BM25")]
    values = [measure(qrels, run, ["AP"]).values["AP"] for run in runs]
    assert values[0] != values[2]
    for topic in outcome.topics:
        assert topic.before == pytest.approx(values[0][topic.query_id])
        assert topic.after == pytest.approx(values[1][topic.query_id])
        for hit in topic.hits:
            ranks = [run.rankings[topic.query_id].doc_ids.index(hit.doc_id) + 1 for run in runs]
            assert (hit.before, hit.rank) == tuple(ranks[:2])


def test_folds_of_others(recipe: Recipe, tmp_path: Path) -> None:
    """Taken as they are; one that lacks a judged query is refused before anything is scored."""
    (tmp_path / "folds.json").write_text('[["1", "2", "3"], ["4"]]')
    path = recipe.path
    path.write_text(path.read_text() + 'folds = "folds.json"\n')
    read = read_recipe(path)
    assert "folds.json" in read.files
    rows = cells(run_study(read, tmp_path, tmp_path / "out"), "weights")
    one = run_study(read, tmp_path, tmp_path / "again")
    assert len(rows) == 4
    assert cells(one, "weights")["cross, 2"][-1] == pytest.approx(
        measure(read_qrels(tmp_path / "qrels.txt"), one.runs["Tiny.cross"], ("AP",)).values["AP"][
            "4"
        ]
    )
    (tmp_path / "folds.json").write_text('[["1", "2"], ["4"]]')
    with pytest.raises(InputError, match="in no fold: 3"):
        run_study(read, tmp_path, tmp_path / "out2")


def test_scores_of_others(recipe: Recipe, tmp_path: Path) -> None:
    """Of segments or of a run, without documents or queries; a document without any has none."""
    lines = [
        {"qid": q, "docid": d, "scores": [0.1, 0.9]} for q, d in (("1", "forest"), ("2", "engine"))
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "t5.run").write_text("1 Q0 bees 1 -0.1 x\n1 Q0 canoe 2 -9 x\n")
    (tmp_path / "theirs.run").write_text(
        "".join(
            f"{q} Q0 {d} {r} {-r} x\n"
            for q in QUERIES
            for r, d in enumerate(["bees", "canoe", "forest"], 1)
        )
    )
    path = recipe.path
    path.write_text("""
kind = "evidence"
title = "Others"
measures = ["AP"]
[evidence]
scores = { segments = "s.jsonl", t5 = "t5.run" }
best = 2
step = 0.5
folds = 2
scale = "minmax"
[[collections]]
name = "Tiny"
qrels = "qrels.txt"
run = "theirs.run"
""")
    read = read_recipe(path)
    assert {"s.jsonl", "t5.run"} <= set(read.files)
    outcome = run_study(read, tmp_path, tmp_path / "out")
    alone = outcome.runs["Tiny.segments, alone"].rankings["1"]
    assert alone.doc_ids[0] == "forest"
    assert outcome.runs["Tiny.t5, alone"].rankings["1"].doc_ids[0] == "bees"
    path.write_text(path.read_text().replace('scale = "minmax"', 'scale = "max"'))
    with pytest.raises(InputError, match=r"below 0.*minmax"):
        run_study(read_recipe(path), tmp_path, tmp_path / "out2")
    path.write_text(path.read_text().replace("best = 2", "best = 2\npruned = true"))
    with pytest.raises(InputError, match="no text to prune"):
        read_recipe(path)


def test_runs_do_not_depend_on_threads_or_batches(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes of every run, figures and plots."""
    written = []
    for threads, tokens in ((1, 8), (3, 4096)):
        folder = tmp_path / f"out-{threads}"
        monkeypatch.setattr(Session.__init__, "__defaults__", (threads, tokens, Precision.FP32, ()))
        run_study(recipe, tmp_path, folder)
        files = [*sorted((folder / "runs").iterdir()), folder / "results.json"]
        written.append([(file.name, file.read_bytes()) for file in files])
    assert written[0] == written[1]
    assert len(written[0]) == 4


def test_a_collection_of_ir_datasets(recipe: Recipe, tmp_path: Path) -> None:
    """Its ID stands for documents, queries and judgments; the manifest names the version."""
    ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed")
    from ir_datasets.formats import GenericDoc, GenericQuery, TrecQrel

    class Tiny:
        """DOCUMENTS and QUERIES."""

        def has_docs(self) -> bool:
            return True

        has_queries = has_qrels = has_docs

        def docs_iter(self) -> Iterator[Any]:
            return (GenericDoc(d.doc_id, d.contents) for d in DOCUMENTS)

        def queries_iter(self) -> Iterator[Any]:
            return (GenericQuery(q, text) for q, text in QUERIES.items())

        def qrels_iter(self) -> Iterator[Any]:
            return (TrecQrel(q, d, 1, "0") for q, d in (("1", "canoe"), ("2", "engine")))

    ir_datasets.registry._registered["birchbark-tiny"] = Tiny()
    path, name = recipe.path, "ir_datasets:birchbark-tiny"
    text = path.read_text()
    for file in ("docs.jsonl", "q.tsv", "qrels.txt"):
        text = text.replace(f'"{file}"', f'"{name}"')
    path.write_text(text)
    try:
        outcome = run_study(read_recipe(path), None, tmp_path / "out")
    finally:
        del ir_datasets.registry._registered["birchbark-tiny"]
    assert set(outcome.runs["Tiny.BM25"].rankings) == {"1", "2"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert list(manifest["inputs"]) == [name]
    assert manifest["inputs"][name].startswith("ir_datasets 0.")


def test_scores_that_fit_nothing(recipe: Recipe, tmp_path: Path) -> None:
    """Of no candidate at all: refused."""
    (tmp_path / "s.jsonl").write_text(json.dumps({"qid": "99", "docid": "bees", "scores": [1]}))
    path = recipe.path
    text = path.read_text()
    old = next(line for line in text.splitlines() if line.startswith("models = "))
    path.write_text(text.replace(old, 'scores = { s = "s.jsonl" }'))
    with pytest.raises(InputError, match=r"s\.jsonl: no candidate has a score.*Tiny"):
        run_study(read_recipe(path), tmp_path, tmp_path / "out")


def test_names_of_models_are_plain_text(recipe: Recipe, tmp_path: Path) -> None:
    """In plots too, where $ could begin a formula."""
    path = recipe.path
    path.write_text(path.read_text().replace("{ cross =", "{ 'a $\\foo$ b' ="))
    run_study(read_recipe(path), tmp_path, tmp_path / "out")
    assert "a $\\foo$ b" in (tmp_path / "out" / "report.html").read_text()


def test_documents_are_missing_where_they_are_read(recipe: Recipe, tmp_path: Path) -> None:
    """A recipe may leave them out; a kind that reads them says so."""
    path = recipe.path
    path.write_text(path.read_text().replace('documents = "docs.jsonl"\n', ""))
    with pytest.raises(InputError, match="collection Tiny: this study needs documents"):
        run_study(read_recipe(path), tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("depth = 3", 'segments = "words"', "evidence: .*words"),
        (
            "depth = 3",
            'precision = "fp8"',
            r"\.precision: unknown precision .fp8. \(one of fp32",
        ),
        ("depth = 3", 'tune = "MAP@"', "evidence: "),
        ("rm3 = false", 'rm3 = "no"', r"evidence\.rm3: wrong type: expected true or false"),
        ('models = { cross = "MODEL" }', "models = {}", r"evidence\.models: no models"),
        ('models = { cross = "MODEL" }', 'models = { BM25 = "MODEL" }', "two rows .*'BM25'"),
        ("step = 0.5", "step = 0", "evidence: not a step"),
        ("step = 0.5", "step = 0.3", "evidence: not a step"),
        ("best = 2", "best = [2, 1]", r"evidence\.best: wrong list: expected numbers that rise"),
        ("best = 2", 'looked = ["crossed"]', "evidence: looked names no model: crossed"),
        ("best = 2", 'looked_over = "cross"', "evidence: looked_over names no other model, or"),
        (
            "best = 2",
            'looked = ["cross"]\nlooked_over = "cross"',
            "evidence: looked_over names no other model, or",
        ),
        (
            'models = { cross = "MODEL" }',
            'models = { c = ["a", "b"] }',
            r"models\.c: several models",
        ),
        ('models = { cross = "MODEL" }', 'models = { c = "no.toml" }', r"no\.toml: no such file"),
        (
            "depth = 3",
            'scale = "log"',
            r"\.scale: unknown scale .log. \(one of raw, max, minmax",
        ),
        ('qrels = "qrels.txt"', 'qrels = "qrels.txt"\nformat = "doc"', "unknown format 'doc'"),
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


def test_differences_from_a_model(recipe: Recipe, bert: Callable[..., Path]) -> None:
    """Beside those from the first stage: mixed from mixed, alone from alone."""
    path = recipe.path
    other = f'other = "{bert(labels=1, seed=5)}" }}\nagainst = "cross"'
    path.write_text(path.read_text().replace('" }\nrm3', f'", {other}\nrm3'))
    outcome = run_study(read_recipe(path), path.parent, path.parent / "out")
    table = next(t for t in outcome.tables if t.name == "against")
    rows = {row.name: row.cells[0] for row in table.groups[0].rows}
    assert list(rows) == ["cross", "other", "cross, alone", "other, alone"]
    assert rows["cross"].difference is None and rows["cross, alone"].difference is None
    for kind in ("", ", alone"):
        one, base = rows["other" + kind], rows["cross" + kind]
        assert one.difference is not None
        found = float(str(one.value)) - float(str(base.value))
        assert one.difference.mean == pytest.approx(found)
    assert "times the 2 comparisons" in table.note
    assert {"differences-1", "against-1"} <= {plot.name for plot in outcome.plots}
    path.write_text(path.read_text().replace('against = "cross"', 'against = "else"'))
    with pytest.raises(InputError, match="against names no model"):
        read_recipe(path)
