"""Does a study of bi-encoders say what its models say, layer by layer, and rank by it?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from birchbark.checkpoint.heads import MODES, Pooling
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.evaluate.roc import auc
from birchbark.index.build import build_index
from birchbark.records import Ranking
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.match import AND
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.model import load_scorer
from birchbark.segment.named import parse_segmenter
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS, QUERIES, write_collection

RECIPE = """
kind = "bi-encoder"
title = "Bi-encoders"
measures = ["AP", "RR@10"]
[bi-encoder]
models = { tiny = "MODEL" }
fields = { both = "whole", title = "title" }
others = 3
curve = "max"
match = ["all", "and", "ann:2", "ann:2+and"]
[[bi-encoder.ranked]]
model = "tiny"
field = "title"
pooling = "mean"
[[bi-encoder.ranked]]
model = "tiny"
field = "both"
pooling = "cls"
layer = 1
[[collections]]
name = "Tiny"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""


@pytest.fixture
def recipe(tmp_path: Path, bert: Callable[..., Path]) -> Path:
    """A recipe beside a collection of a few documents; its model is a cross-encoder's encoder."""
    write_collection(tmp_path)
    with (tmp_path / "qrels.txt").open("a") as out:
        out.write("1 0 engine 0\n2 0 bees 0\n")
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("MODEL", str(bert(labels=1))))
    return path


def by_hand(recipe: Path, segments: str, pooling: Pooling) -> dict[str, dict[str, float]]:
    """query_id → doc_id → cosine."""
    model = next(path for path in recipe.parent.iterdir() if path.name.startswith("bert"))
    scorer = load_scorer(model, pooling=pooling)
    assert isinstance(scorer, EmbeddingScorer)
    found: dict[str, dict[str, float]] = {}
    for query_id, text in QUERIES.items():
        [asked] = scorer.embed(scorer.encode([text]))
        for document in DOCUMENTS:
            for segment in parse_segmenter(segments)(document):
                [vector] = scorer.embed(scorer.encode([segment.text]))
                found.setdefault(query_id, {})[document.doc_id] = float(asked @ vector)
    return found


def test_rankings_and_areas(recipe: Path, tmp_path: Path) -> None:
    """As the embedding of each layer and pooling has them."""
    outcome = run_study(read_recipe(recipe), tmp_path, tmp_path / "out")
    ranked = read_run(tmp_path / "out" / "runs" / "Tiny.tiny-title-mean.run").rankings
    cosines = by_hand(recipe, "title", Pooling("mean"))
    for query_id, ranking in ranked.items():
        assert set(ranking.doc_ids) == {d.doc_id for d in DOCUMENTS if d.title}
        scores = [max(0.0, cosines[query_id][doc_id]) for doc_id in ranking.doc_ids]
        np.testing.assert_allclose(ranking.scores, scores, atol=1e-5)
    second = read_run(tmp_path / "out" / "runs" / "Tiny.tiny-both-cls-layer-1.run").rankings
    cosines = by_hand(recipe, "whole", Pooling("cls", 1))
    for query_id, ranking in second.items():
        names = list(cosines[query_id])
        expected = Ranking.of(names, [max(0.0, cosines[query_id][n]) for n in names])
        np.testing.assert_allclose(ranking.scores, expected.scores, atol=1e-5)
    tables = {table.name: table for table in outcome.tables}
    assert [row.name for row in tables["auc"].groups[0].rows] == ["tiny, both", "tiny, title"]
    index = build_index(DOCUMENTS, tmp_path / "index")
    grades: dict[str, dict[str, int]] = {}
    for line in (tmp_path / "qrels.txt").read_text().splitlines():
        query_id, _, doc_id, grade = line.split()
        grades.setdefault(query_id, {})[doc_id] = int(grade)
    for place, mode in enumerate(MODES):
        cosines, scores, relevant = by_hand(recipe, "whole", Pooling(mode)), [], []
        for query_id, own in grades.items():
            near = rank_query(index, QUERIES[query_id], depth=3).doc_ids
            for doc_id, grade in {**dict.fromkeys(near, 0), **own}.items():
                scores.append(cosines[query_id][doc_id])
                relevant.append(grade > 0)
        cell = tables["auc"].groups[0].rows[0].cells[place].value
        assert cell == pytest.approx(auc(np.array(scores), np.array(relevant)), abs=1e-6)


def test_candidates(recipe: Path, tmp_path: Path) -> None:
    """Match ratios are shares of all documents: those near, those with the terms, or both."""
    run_study(read_recipe(recipe), tmp_path, tmp_path / "out")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    [table] = [table for table in results["tables"] if table["name"] == "match"]
    ratios = {row["name"]: row["cells"][0]["value"] for row in table["groups"][0]["rows"]}
    index = build_index(DOCUMENTS, tmp_path / "index")
    judged = {line.split()[0] for line in (tmp_path / "qrels.txt").read_text().splitlines()}
    asked = [text for query_id, text in QUERIES.items() if query_id in judged]
    with_all = [len(rank_query(index, text, FirstStage(match=AND))) for text in asked]
    assert ratios["all"] == 1
    assert ratios["ann:2"] == pytest.approx(2 / len(DOCUMENTS))
    assert ratios["and"] == pytest.approx(sum(with_all) / len(asked) / len(DOCUMENTS))
    assert ratios["ann:2"] <= ratios["ann:2+and"] <= ratios["ann:2"] + ratios["and"]


def test_an_encoder_without_a_head(recipe: Path, tmp_path: Path, bert: Callable[..., Path]) -> None:
    """As transformers save a masked model."""
    model, text = bert(masked=True), recipe.read_text()
    shutil.rmtree(model / "1_Pooling")
    old = next(path for path in tmp_path.iterdir() if path.name.startswith("bert"))
    recipe.write_text(text.replace(str(old), str(model)))
    assert list(run_study(read_recipe(recipe), tmp_path, tmp_path / "out").models) == ["tiny"]


def test_a_layer_that_the_model_has_not(recipe: Path, tmp_path: Path) -> None:
    """Told before anything is encoded."""
    recipe.write_text(recipe.read_text().replace("layer = 1", "layer = 9"))
    told = r"row tiny, both, cls, layer 9: no such layer: expected 0 to 2, found 9"
    with pytest.raises(InputError, match=told):
        run_study(read_recipe(recipe), tmp_path, tmp_path / "out")


def test_a_field_that_no_document_has(recipe: Path, tmp_path: Path) -> None:
    """There is nothing to measure by it."""
    rows = [json.dumps({"id": d.doc_id, "text": d.fields["text"]}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(rows))
    with pytest.raises(
        InputError, match="collection Tiny, field title: no document that is judged"
    ):
        run_study(read_recipe(recipe), tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('field = "title"', 'field = "body"', "unknown field 'body'"),
        ('"ann:2+and"', '"near"', "unknown match 'near'"),
        ('title = "title"', 'title = "heading"', "unknown segments 'heading'"),
        ('curve = "max"', 'curve = "min"', "unknown curve 'min'"),
    ],
)
def test_faults(recipe: Path, old: str, new: str, told: str) -> None:
    """Told before any work, with their place."""
    recipe.write_text(recipe.read_text().replace(old, new))
    with pytest.raises(InputError, match=told):
        read_recipe(recipe)
