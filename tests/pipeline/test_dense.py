"""Are candidates found by vectors as they were asked for?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.runs import read_run
from birchbark.combine.aggregate import Max
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.index.build import build_index
from birchbark.index.reader import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline import keeping
from birchbark.pipeline.dense import DenseEngine, Near, parse_near
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.records import Document, Query, Run
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.match import ALL, AND, OR
from birchbark.score.model import load_scorer
from birchbark.segment.named import parse_segmenter
from conftest import DOCUMENTS

QUERY = "birch river"
NAMES = {document.doc_id for document in DOCUMENTS}


@pytest.fixture
def directory(tmp_path: Path, bert: Callable[..., Path]) -> Path:
    """DOCUMENTS, with vectors of sentences by a tiny embedding."""
    place = tmp_path / "index"
    build_index(DOCUMENTS, place)
    attach(place, bert())
    return place


def attach(place: Path, model: Path, segments: str = "sentences") -> None:
    with IndexWriter(place) as writer:
        keeping.vectors(load_scorer(model), parse_segmenter(segments), str(model)).attach(writer)


def engine(place: Path, *near: object, stage: FirstStage = FirstStage()) -> DenseEngine:
    return DenseEngine(Index(place), load_scorer, Near(*near), stage)  # type: ignore[arg-type]


def test_all_by_cosine_is_the_embedding_alone(directory: Path) -> None:
    """The scores are those of the second stage: the best sentence's, without BM25."""
    index = Index(directory)
    model = index.attachments["vectors"].config["model"]
    alone = Ranker(load_scorer(model), interpolation=Interpolation(0), aggregation=Max())
    candidates = Run({"1": rank_query(index, QUERY, FirstStage(match=ALL))})
    ranked = rerank(index, candidates, [Query("1", QUERY)], [alone]).rankings["1"]
    for near in (Near(), Near(5), Near(0, ALL)):
        assert engine(directory, near.count, near.terms).rank(QUERY, 10) == ranked
    assert engine(directory).rank(QUERY, 2) == ranked.head(2)


def test_candidates(directory: Path) -> None:
    """Those that are near, those that hold terms, or both; ranked by cosine or by BM25."""
    index = Index(directory)
    whole = engine(directory).rank(QUERY, 10)
    near = set(whole.doc_ids[:2])
    for terms in (AND, OR):
        matched = set(rank_query(index, QUERY, FirstStage(match=terms)).doc_ids)
        assert set(engine(directory, 0, terms).rank(QUERY, 10).doc_ids) == matched
        both = engine(directory, 2, terms).rank(QUERY, 10)
        assert both.doc_ids == tuple(d for d in whole.doc_ids if d in near | matched)
        ratio = engine(directory, 2, terms).match_ratio(QUERY, 10)
        assert ratio == len(near | matched) / len(DOCUMENTS)
        by_terms = engine(directory, 2, terms, False, stage=FirstStage(match=terms))
        scores = dict(rank_query(index, QUERY, FirstStage(match=ALL)))
        assert dict(by_terms.rank(QUERY, 10)) == {d: scores[d] for d in near | matched}
    alone = engine(directory, 2, None, False).rank(QUERY, 10)
    assert set(alone.doc_ids) == near


def test_it_is_an_engine(directory: Path) -> None:
    """Deeper rankings begin like shallower ones; it finds, and BERT ranks."""
    found = engine(directory)
    assert found.rank(QUERY, 5).head(3) == found.rank(QUERY, 3)
    answer = search(found, QUERY, Ranker(load_scorer(), depth=3), 3)
    assert len(answer.hits) == 3


def test_documents_without_vectors(directory: Path) -> None:
    """Are not found by cosine, and counted; by terms they are."""
    with IndexWriter(directory) as writer:
        writer.add(Document("late", {"text": "birch river"}))
    found = engine(directory)
    assert found.missing == 1
    assert set(found.rank(QUERY, 10).doc_ids) == NAMES
    assert set(engine(directory, 0, ALL).rank(QUERY, 10).doc_ids) == NAMES
    by_terms = engine(directory, 3, OR, False)
    assert "late" in by_terms.rank(QUERY, 10).doc_ids


def test_titles_alone(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """A vector of each title; a document without one is not near anything."""
    build_index(DOCUMENTS, tmp_path / "index")
    attach(tmp_path / "index", bert(), "title")
    ranking = engine(tmp_path / "index").rank("Steam engine", 10)
    assert ranking.doc_ids[0] == "engine"
    assert np.isclose(ranking.scores[0], 1, atol=1e-3)
    assert set(ranking.doc_ids) == NAMES - {"bridge"}


def test_faults(tmp_path: Path, directory: Path, bert: Callable[..., Path]) -> None:
    """No vectors, or another model's; a query that is too long; numbers out of range."""
    with pytest.raises(InputError, match=r"no vectors are kept.*index attach"):
        DenseEngine(build_index(DOCUMENTS, tmp_path / "bare"), load_scorer)
    other = load_scorer(bert(seed=5))
    with pytest.raises(InputError, match="made by another model"):
        DenseEngine(Index(directory), lambda name: other)
    with pytest.raises(InputError, match="query is too long for the model"):
        engine(directory).rank("birch " * 600, 3)
    with pytest.raises(InputError, match="depth is out of range"):
        engine(directory).rank("birch", 0)
    with pytest.raises(InputError, match="no document would be a candidate"):
        Near(0, None)


def test_words() -> None:
    """What --match says."""
    assert parse_near("", dense=True) == Near()
    assert not parse_near("", dense=False).used
    assert parse_near("and", dense=True) == Near(0, AND)
    assert not parse_near("and", dense=False).used
    assert parse_near("ann:100", dense=False) == Near(100, None, cosine=False)
    assert parse_near("ann:100+or", dense=True) == Near(100, OR)
    for wrong in ("ann", "ann:", "ann:x", "ann:5+", "ann:5+xor", "nearest"):
        with pytest.raises(InputError, match="unknown match"):
            parse_near(wrong, dense=True)


def test_commands(tmp_path: Path, directory: Path) -> None:
    """retrieve and search take it; what would do nothing is refused."""
    queries, run = tmp_path / "q.tsv", tmp_path / "dense.run"
    queries.write_text(f"1\t{QUERY}\n")
    asked = ["retrieve", str(directory), "--queries", str(queries), "--output", str(run)]
    report = tmp_path / "report.tsv"
    words = ["--first-stage", "dense", "--match", "ann:2+and", "--report", str(report)]
    CliRunner().invoke(group, [*asked, *words], catch_exceptions=False)
    assert read_run(run).rankings["1"] == engine(directory, 2, AND).rank(QUERY, 1000)
    assert read_run(run).tag == "dense"
    assert float(report.read_text().split("\t")[1]) == engine(directory, 2, AND).match_ratio(
        QUERY, 9
    )
    for words, told in (
        (["--first-stage", "dense", "--rm3"], "--rm3 ranks by terms"),
        (["--first-stage", "dense", "--k1", "2"], "--k1 is for BM25: found --first-stage dense"),
        (["--first-stage", "dense", "--weighted"], "text is needed"),
        (["--match", "near"], "unknown match 'near'"),
    ):
        with pytest.raises(InputError, match=told):
            CliRunner().invoke(group, [*asked, *words], catch_exceptions=False)
    found = CliRunner().invoke(
        group,
        ["search", str(directory), QUERY, "--first-stage", "dense", "--first-stage-only", "--json"],
        catch_exceptions=False,
    )
    assert found.stdout.count('"doc_id"') == len(DOCUMENTS)
