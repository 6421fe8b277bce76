"""Does a study of bi-encoders measure and rank by the cosines of each layer and pooling?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.checkpoint.heads import POOLING_MODES, Pooling
from birchbark.collection.qrels import read_qrels
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.records import Document, Qrels, Query, Ranking
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.match import AND
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.by_name import parse_segmenter
from birchbark.show.plot import Curves
from birchbark_studies.experiments.bi_encoder import bi_encoder_experiment, bi_encoder_scores
from birchbark_studies.experiments.bi_encoder.bi_encoder_scores import (
    Cosines,
    JudgedPairs,
    compute_cosines,
)
from birchbark_studies.layer_encoder import LayerEncoder
from birchbark_studies.roc import auc, auc_with_interval
from conftest import DOCUMENTS, QUERIES
from small_study import QRELS, SmallStudy, write_small_study

RECIPE = """
kind = "bi-encoder"
title = "Bi-encoders"
measures = ["AP", "RR@10"]
[bi-encoder]
models = { tiny = "MODEL" }
fields = { both = "whole", title = "title" }
others = 1
curve = "max"
match = ["all", "and", "nearest:2", "nearest:2+and"]
[[bi-encoder.ranked]]
model = "tiny"
field = "title"
pooling = "mean"
[[bi-encoder.ranked]]
model = "tiny"
field = "both"
pooling = "cls"
layer = 1
"""


@pytest.fixture
def study(tmp_path: Path, bert: Callable[..., Path]) -> SmallStudy:
    qrels = QRELS + "1 0 engine 0\n2 0 bees 0\n"
    return write_small_study(tmp_path, RECIPE, MODEL=bert(labels=1), qrels=qrels)


def by_hand(
    study: SmallStudy, segments: str, pooling: Pooling, queries: Mapping[str, str] = QUERIES
) -> dict[str, dict[str, float]]:
    """Compute query_id → doc_id → cosine with the embedding scorer."""
    model = next(path for path in study.root.iterdir() if path.name.startswith("bert"))
    scorer = load_scorer(model, pooling=pooling)
    assert isinstance(scorer, EmbeddingScorer)
    cosines: dict[str, dict[str, float]] = {}
    for query_id, text in queries.items():
        [query_vector] = scorer.embed(scorer.encode([text]))
        for document in DOCUMENTS:
            for segment in parse_segmenter(segments)(document):
                [vector] = scorer.embed(scorer.encode([segment.text]))
                cosines.setdefault(query_id, {})[document.doc_id] = float(query_vector @ vector)
    return cosines


def test_rankings_and_areas(study: SmallStudy, tmp_path: Path) -> None:
    """Rankings and AUC equal those from the embedding scorer for each layer and pooling."""
    outcome = study.run()
    ranked = read_run(tmp_path / "out" / "runs" / "Tiny.tiny-title-mean.run").rankings
    cosines = by_hand(study, "title", Pooling("mean"))
    for query_id, ranking in ranked.items():
        assert set(ranking.doc_ids) == {d.doc_id for d in DOCUMENTS if d.title}
        scores = [max(0.0, cosines[query_id][doc_id]) for doc_id in ranking.doc_ids]
        np.testing.assert_allclose(ranking.scores, scores, atol=1e-5)
    second = read_run(tmp_path / "out" / "runs" / "Tiny.tiny-both-cls-layer-1.run").rankings
    cosines = by_hand(study, "whole", Pooling("cls", 1))
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
    for column, mode in enumerate(POOLING_MODES):
        cosines, scores, relevant = by_hand(study, "whole", Pooling(mode)), [], []
        for query_id, judged in grades.items():
            top = rank_query(index, QUERIES[query_id], depth=1).doc_ids
            for doc_id, grade in {**dict.fromkeys(top, 0), **judged}.items():
                scores.append(cosines[query_id][doc_id])
                relevant.append(grade > 0)
        cell = tables["auc"].groups[0].rows[0].cells[column].value
        assert cell == pytest.approx(auc(np.array(scores), np.array(relevant)), abs=1e-6)


def test_the_recipes_seed_draws_the_intervals(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of the bootstrap of each area."""
    seeds = []

    def recorded(*arguments: Any, **options: Any) -> Any:
        seeds.append(options.get("seed"))
        return auc_with_interval(*arguments, **options)

    monkeypatch.setattr(bi_encoder_experiment, "auc_with_interval", recorded)
    study.replace("[bi-encoder]", "seed = 7\n[bi-encoder]")
    study.run()
    assert set(seeds) == {7}


def test_areas_of_the_layers(study: SmallStudy) -> None:
    """The best layer is that of the curve's pooling, which the plot shows for all layers."""
    outcome = study.run()
    tables = {table.name: table for table in outcome.tables}
    (layers,) = [plot for plot in outcome.plots if plot.name == "layers-1"]
    assert isinstance(layers, Curves)
    index = build_index(DOCUMENTS, study.root / "index")
    qrels = read_qrels(study.root / "qrels.txt").grades
    model = next(path for path in study.root.iterdir() if path.name.startswith("bert"))
    encoder = LayerEncoder(model, ("max",))  # three layers
    titles = {d.doc_id: d.title for d in DOCUMENTS if d.title}
    asked = encoder.embed(list(QUERIES.values()), queries=True)  # (queries, layers, hidden)
    vectors = encoder.embed(list(titles.values()))
    cosines, relevant = [], []
    for number, (query_id, text) in enumerate(QUERIES.items()):
        top = rank_query(index, text, depth=1).doc_ids
        for column, doc_id in enumerate(titles):
            if doc_id in top or doc_id in qrels[query_id]:
                cosines.append((asked[number] * vectors[column]).sum(axis=1))
                relevant.append(qrels[query_id].get(doc_id, 0) > 0)
    areas = [auc(of_layer, np.array(relevant)) for of_layer in np.array(cosines).T]
    best = areas.index(max(areas))
    assert areas[best] != areas[2]
    row = tables["layers"].groups[0].rows[1]
    assert row.name == "tiny, title"
    assert [c.value for c in row.cells] == pytest.approx([best, areas[best], areas[2]])
    assert list(layers.series[row.name]) == [pytest.approx(point) for point in enumerate(areas)]


def test_documents_are_encoded_in_blocks(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of the last block, which is not full, and of one in which no document has text."""
    model = next(path for path in study.root.iterdir() if path.name.startswith("bert"))
    encoder = LayerEncoder(model)
    texts = {"a": "birch", "b": "", "c": "", "d": "river bark", "e": "iron"}
    documents = [Document(doc_id, {"text": text}) for doc_id, text in texts.items()]
    index = build_index(documents, study.root / "index")
    queries = [Query("1", "canoe"), Query("2", "stone bridge")]
    segmenter = parse_segmenter("whole")
    whole = compute_cosines(encoder, index, segmenter, queries)
    for size in (1, 2, 3):
        monkeypatch.setattr(bi_encoder_scores, "BLOCK_DOCUMENTS", size)
        cosines = compute_cosines(encoder, index, segmenter, queries)
        assert (cosines.doc_ids, cosines.queries) == (("a", "d", "e"), ("1", "2"))
        np.testing.assert_allclose(cosines.values, whole.values, atol=1e-6)


def test_more_documents_count_as_not_relevant_than_are_ranked(study: SmallStudy) -> None:
    """The first stage is searched that deep for AUC, and cut off at the depth of the study."""
    study.replace("others = 1", "others = 3")
    deep = study.run("deep")
    study.replace('title = "Bi-encoders"', 'title = "Bi-encoders"\ndepth = 1')
    outcome = study.run()
    for run in outcome.runs.values():
        assert {len(ranking) for ranking in run.rankings.values()} == {1}
    tables = [{table.name: table for table in of.tables} for of in (outcome, deep)]
    assert tables[0]["auc"] == tables[1]["auc"]
    study.replace("others = 3", "others = 1")
    (auc_table, *_) = study.run("fewer").tables
    assert auc_table != tables[0]["auc"]


def test_pairs_are_relevant_from_the_lowest_relevant_grade_on() -> None:
    """Pairs below it are not relevant, nor unjudged ones; documents without cosines are in none."""
    cosines = Cosines(np.zeros((1, 2, 3), np.float32), (Pooling("cls"),), ("1", "2"), tuple("abc"))
    qrels = Qrels({"1": {"a": 1, "b": 2, "z": 3}, "2": {"b": 3, "c": 0}}, relevant=2)
    pairs = JudgedPairs.of(cosines, qrels, {"1": ["c", "b"]})
    found = zip(pairs.query.tolist(), pairs.document.tolist(), pairs.relevant.tolist(), strict=True)
    assert set(found) == {
        (0, 0, False),
        (0, 1, True),
        (0, 2, False),
        (1, 1, True),
        (1, 2, False),
    }
    every = JudgedPairs.of(cosines, replace(qrels, relevant=1), {})
    assert every.relevant.sum() == 3


@pytest.mark.parametrize("analyzer", ["english", "porter"])
def test_candidates(study: SmallStudy, tmp_path: Path, analyzer: str) -> None:
    """Match ratios are the shares of all documents that are nearest, contain the terms, or both.

    Porter keeps stop words, which a document must then contain as well.
    """
    study.replace("[bi-encoder]", f'[bi-encoder]\nanalyzer = "{analyzer}"')
    queries = {query_id: f"the {text}" for query_id, text in QUERIES.items()}
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in queries.items()))
    study.run()
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    [table] = [table for table in results["tables"] if table["name"] == "match"]
    ratios = {row["name"]: row["cells"][0]["value"] for row in table["groups"][0]["rows"]}
    index = build_index(DOCUMENTS, tmp_path / "index", Schema(analyzer))
    judged = {line.split()[0] for line in (tmp_path / "qrels.txt").read_text().splitlines()}
    texts = [text for query_id, text in queries.items() if query_id in judged]
    with_all = [len(rank_query(index, text, FirstStage(match=AND))) for text in texts]
    assert ratios["all"] == 1
    assert ratios["nearest:2"] == pytest.approx(2 / len(DOCUMENTS))
    assert ratios["and"] == pytest.approx(sum(with_all) / len(texts) / len(DOCUMENTS))
    cosines = by_hand(study, "title", Pooling("mean"), queries)
    shares = []
    for query_id, text in queries.items():
        cosine = cosines[query_id]
        near = Ranking.of(list(cosine), np.clip(list(cosine.values()), 0, 1), 2).doc_ids
        matching = rank_query(index, text, FirstStage(match=AND)).doc_ids
        shares.append(len({*near, *matching}) / len(DOCUMENTS))
    assert ratios["nearest:2+and"] == pytest.approx(sum(shares) / len(shares))
    assert ratios["nearest:2+and"] > max(ratios["nearest:2"], ratios["and"])


def test_an_encoder_without_a_head(
    study: SmallStudy, tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """A model directory without pooling or classifier works."""
    model = bert(masked=True)
    shutil.rmtree(model / "1_Pooling")
    old = next(path for path in tmp_path.iterdir() if path.name.startswith("bert"))
    study.replace(str(old), str(model))
    assert list(study.run().models) == ["tiny"]


def test_a_layer_beyond_the_model(study: SmallStudy, tmp_path: Path) -> None:
    """The error is reported before anything is encoded."""
    study.replace("layer = 1", "layer = 9")
    message = r"row tiny, both, cls, layer 9: no such layer: expected 0 to 2, found 9"
    with pytest.raises(InputError, match=message):
        study.run()


def test_a_field_that_no_document_has(study: SmallStudy, tmp_path: Path) -> None:
    """A field without any document raises InputError."""
    rows = [json.dumps({"id": d.doc_id, "text": d.fields["text"]}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(rows))
    with pytest.raises(
        InputError, match="collection Tiny, field title: no document that is judged or"
    ):
        study.run()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('field = "title"', 'field = "body"', "unknown field 'body'"),
        ('"nearest:2+and"', '"near"', "unknown match 'near'"),
        ('title = "title"', 'title = "heading"', r"bi-encoder: unknown segments 'heading'"),
        ('curve = "max"', 'curve = "min"', "unknown curve 'min'"),
    ],
)
def test_invalid_recipes(study: SmallStudy, old: str, new: str, message: str) -> None:
    """Errors are reported with their location before any work."""
    study.replace(old, new)
    with pytest.raises(InputError, match=message):
        study.read()
