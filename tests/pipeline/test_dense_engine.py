"""Does the dense engine retrieve the requested candidates and score them correctly?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.cli import group
from birchbark.collection.runs import read_run
from birchbark.combine.aggregate import Top
from birchbark.combine.fusion import reciprocal_rank_fusion
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document, Query, Run
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.match import ALL, AND, OR
from birchbark.retrieve.vector_match import HYBRID, CandidateScores, VectorMatch
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.segment.by_name import parse_segmenter
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
from conftest import DOCUMENTS

FIRST_STAGE = CandidateScores.FIRST_STAGE
QUERY = "birch river"
NAMES = {document.doc_id for document in DOCUMENTS}


@pytest.fixture
def directory(tmp_path: Path, bert: Callable[..., Path]) -> Path:
    """An index of DOCUMENTS with sentence vectors of a tiny embedding."""
    index_directory = tmp_path / "index"
    build_index(DOCUMENTS, index_directory)
    attach(index_directory, bert())
    return index_directory


def attach(index_directory: Path, model: Path, segments: str = "sentences") -> None:
    with IndexWriter(index_directory) as writer:
        precompute_vectors(load_scorer(model), parse_segmenter(segments), str(model)).attach(writer)


def engine(index_directory: Path, *near: object, stage: FirstStage = FirstStage()) -> DenseEngine:
    opened = open_engine(Index(index_directory), stage, VectorMatch(*near), load_scorer)  # type: ignore[arg-type]
    assert isinstance(opened, DenseEngine)
    return opened


def test_cosine_ranking_equals_re_ranking_by_the_embedding(directory: Path) -> None:
    """Scores equal those of the embedding as a re-ranker with MaxP and a = 0."""
    index = Index(directory)
    model = index.attachments["vectors"].config["model"]
    alone = Ranker(
        load_scorer(model), sentences, interpolation=Interpolation(0), aggregation=Top((1.0,))
    )
    candidates = Run({"1": rank_query(index, QUERY, FirstStage(match=ALL))})
    ranked = rerank(index, candidates, [Query("1", QUERY)], [alone]).rankings["1"]
    for near in (VectorMatch(), VectorMatch(5), VectorMatch(0, ALL)):
        assert engine(directory, near.count, near.terms).rank(QUERY, 10) == ranked
    assert engine(directory).rank(QUERY, 2) == ranked.head(2)


@pytest.mark.parametrize("scale", [ScoreScale(2.0, 0.5), ScoreScale(-2.0, 0.5)])
def test_a_ranking_by_cosine_is_by_cosine(directory: Path, scale: ScoreScale) -> None:
    """Also where the model's scale makes all of its scores 0, or all of them 1."""

    def load(model: str) -> Scorer:
        scorer = load_scorer(model)
        scorer.checkpoint = replace(scorer.checkpoint, scale=scale)
        return scorer

    scaled = open_engine(Index(directory), FirstStage(), VectorMatch(), load)
    found, expected = scaled.rank(QUERY, 10), engine(directory).rank(QUERY, 10)
    assert found.doc_ids == expected.doc_ids
    assert (np.diff(found.scores) < 0).all()
    assert np.ptp(found.scores) < 1e-3


def test_candidates(directory: Path) -> None:
    """Candidates are the nearest documents, documents with query terms, or both."""
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
        by_terms = engine(directory, 2, terms, FIRST_STAGE, stage=FirstStage(match=terms))
        scores = dict(rank_query(index, QUERY, FirstStage(match=ALL)))
        assert dict(by_terms.rank(QUERY, 10)) == {d: scores[d] for d in near | matched}
    alone = engine(directory, 2, None, FIRST_STAGE).rank(QUERY, 10)
    assert set(alone.doc_ids) == near
    nearest = engine(directory, 2, None)
    assert nearest.rank(QUERY, 10) == whole.head(2)
    assert nearest.match_ratio(QUERY, 10) == 2 / len(DOCUMENTS)
    assert set(rank_query(index, QUERY).doc_ids) - near  # which match its terms


def test_engine_contract(directory: Path) -> None:
    """Deeper rankings extend shallower ones, and BERT can re-rank the candidates."""
    dense = engine(directory)
    assert dense.rank(QUERY, 5).head(3) == dense.rank(QUERY, 3)
    answer = search(dense, QUERY, Ranker(load_scorer(), depth=3), 3)
    assert len(answer.hits) == 3


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 7, 20])
def test_half_of_the_places_are_for_the_nearest(directory: Path, depth: int) -> None:
    """The others are for the best that contain a term; all have the first stage's scores."""
    index = Index(directory)
    nearest = engine(directory).rank(QUERY, depth).doc_ids[: depth // 2]
    by_terms = [d for d in rank_query(index, QUERY).doc_ids if d not in nearest]
    ranked = engine(directory, None, OR, FIRST_STAGE).rank(QUERY, depth)
    assert set(ranked.doc_ids) == {*nearest, *by_terms[: depth - len(nearest)]}
    scores = dict(rank_query(index, QUERY, FirstStage(match=ALL)))
    assert dict(ranked) == {d: scores[d] for d in ranked.doc_ids}
    few = engine(directory, 1, OR, FIRST_STAGE).rank(QUERY, depth)
    assert set(few.doc_ids[: len(few)]) >= set(nearest[:1])


@pytest.mark.parametrize("depth", [1, 3, 20])
def test_reciprocal_rank_fusion(directory: Path, depth: int) -> None:
    """It equals `reciprocal_rank_fusion` of the runs by terms and by cosine."""
    index = Index(directory)
    fused = engine(directory, None, OR, CandidateScores.RRF)
    runs = [
        Run({"1": engine(directory).rank(QUERY, depth)}),
        Run({"1": rank_query(index, QUERY, FirstStage(), depth)}),
    ]
    assert fused.rank(QUERY, depth) == reciprocal_rank_fusion(runs).head(depth).rankings["1"]
    assert fused.name == "bm25+dense-rrf"
    assert len(fused.rank("unknown", depth)) == min(depth, len(index))
    for wrong in ((0, OR), (None, None)):
        with pytest.raises(InputError, match="needs candidates by vectors and by terms"):
            VectorMatch(*wrong, CandidateScores.RRF)


def test_equally_near_documents_do_not_take_more_places(directory: Path) -> None:
    """Of documents with the same text, as many are taken as there are places."""
    with IndexWriter(directory) as writer:
        for n in range(6):
            writer.add(Document(f"same{n}", {"text": "Steam engine."}))
    attach(directory, Path(Index(directory).attachments["vectors"].config["model"]))
    ranked = engine(directory, None, OR, FIRST_STAGE).rank("Steam engine.", 4)
    assert len(ranked) == 4
    nearest = engine(directory, 2, None, FIRST_STAGE).rank("Steam engine.", 4)
    assert (
        nearest.doc_ids == engine(directory, 2, None, FIRST_STAGE).rank("Steam engine.", 9).doc_ids
    )
    assert len(nearest) == 2


def test_rankers_choose_whether_vectors_find_candidates(
    directory: Path, bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do if the index has those of the embedding, not too many, and any term may match."""
    index, model = Index(directory), str(bert())
    embedding, cross_encoder = load_scorer(model), load_scorer()
    mixed = Ranker(cross_encoder, sentences, embedding=embedding)

    def opened(rankers: list[Ranker], stage: FirstStage = FirstStage()) -> VectorMatch | None:
        engine = open_engine(index, stage, None, load_scorer, rankers)
        return engine.match if isinstance(engine, DenseEngine) else None

    for ranker in (mixed, Ranker(embedding, sentences)):
        assert opened([ranker]) == replace(HYBRID, vectors="vectors")
    limited = Ranker(embedding, sentences, limit=Limit(segments=2))
    for ranker in (Ranker(cross_encoder), Ranker(load_scorer(bert(seed=3)), sentences), limited):
        assert opened([ranker]) is None
    assert opened([]) is None
    assert opened([mixed], FirstStage(match=AND)) is None
    monkeypatch.setattr("birchbark.pipeline.open_engine.MAX_COMPARED", 3)
    assert opened([mixed]) is None


def test_more_hits_than_are_re_ranked(directory: Path, bert: Callable[..., Path]) -> None:
    """They follow the re-ranked ones, which stay the same; none comes twice."""
    ranker = Ranker(load_scorer(bert()), depth=4)
    hybrid = engine(directory, None, OR, FIRST_STAGE)
    shown = [hit.document.doc_id for hit in search(hybrid, QUERY, ranker, 4).hits]
    more = [hit.document.doc_id for hit in search(hybrid, QUERY, ranker, 20).hits]
    assert more[:4] == shown
    assert set(more) == {*shown, *hybrid.rank(QUERY, 20).doc_ids}
    assert len(set(more)) == len(more)


def test_documents_without_vectors(directory: Path) -> None:
    """They are counted, and found by their terms but not by cosine."""
    with IndexWriter(directory) as writer:
        writer.add(Document("late", {"text": "birch river"}))
    dense = engine(directory)
    assert set(dense.rank(QUERY, 10).doc_ids) == NAMES
    assert set(engine(directory, 0, ALL).rank(QUERY, 10).doc_ids) == NAMES
    by_terms = engine(directory, 3, OR, FIRST_STAGE)
    assert "late" in by_terms.rank(QUERY, 10).doc_ids


def test_titles_alone(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """With vectors of titles, a document without a title is never among the nearest."""
    build_index(DOCUMENTS, tmp_path / "index")
    attach(tmp_path / "index", bert(), "title")
    ranking = engine(tmp_path / "index").rank("Steam engine", 10)
    assert ranking.doc_ids[0] == "engine"
    assert np.isclose(ranking.scores[0], 1, atol=1e-3)
    assert set(ranking.doc_ids) == NAMES - {"bridge"}


def test_errors(tmp_path: Path, directory: Path, bert: Callable[..., Path]) -> None:
    """Missing or foreign vectors, a query that is too long and bad numbers raise InputError."""
    with pytest.raises(InputError, match=r"the index has no vectors.*index attach"):
        open_engine(
            build_index(DOCUMENTS, tmp_path / "bare"), match=VectorMatch(), load=load_scorer
        )
    other = load_scorer(bert(seed=5))
    with pytest.raises(InputError, match="made by a model or version other than"):
        open_engine(Index(directory), match=VectorMatch(), load=lambda name: other)
    with pytest.raises(InputError, match="nothing loads the model of the vectors"):
        open_engine(Index(directory), match=VectorMatch())
    with pytest.raises(InputError, match="query is too long for the model"):
        engine(directory).rank("birch " * 600, 3)
    with pytest.raises(InputError, match="depth is out of range"):
        engine(directory).rank("birch", 0)
    with pytest.raises(InputError, match="no document would be a candidate"):
        VectorMatch(0, None)


def test_commands(tmp_path: Path, directory: Path) -> None:
    """retrieve and search use the engine; options without effect are refused."""
    queries, run = tmp_path / "q.tsv", tmp_path / "dense.run"
    queries.write_text(f"1\t{QUERY}\n")
    command = ["retrieve", str(directory), "--queries", str(queries), "--output", str(run)]
    report = tmp_path / "report.tsv"
    options = ["--first-stage", "dense", "--match", "nearest:2+and", "--report", str(report)]
    CliRunner().invoke(group, [*command, *options], catch_exceptions=False)
    assert read_run(run).rankings["1"] == engine(directory, 2, AND).rank(QUERY, 1000)
    assert read_run(run).tag == "dense"
    assert float(report.read_text().split("\t")[1]) == engine(directory, 2, AND).match_ratio(
        QUERY, 9
    )
    for options, message in (
        (["--first-stage", "dense", "--rm3"], "rm3 has no effect with model dense"),
        (["--first-stage", "dense", "--weighted"], "weights of queries have no effect"),
        (["--match", "near"], "unknown match 'near'"),
    ):
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(group, [*command, *options], catch_exceptions=False)
    result = CliRunner().invoke(
        group,
        [
            "search",
            str(directory),
            QUERY,
            "--set",
            "first_stage.model=dense",
            "--model",
            "none",
            "--json",
        ],
        catch_exceptions=False,
    )
    assert result.stdout.count('"doc_id"') == len(DOCUMENTS)


def test_the_nearest_documents_meet_two_filters_of_a_field(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """Vectors and terms find only what both filters allow, and leave no place to others."""
    kinds = dict(
        zip([d.doc_id for d in DOCUMENTS], ("a/x", "a/y", "b/x", "a/y", "a/y"), strict=True)
    )
    documents = [Document(d.doc_id, {**d.fields, "kind": kinds[d.doc_id]}) for d in DOCUMENTS]
    build_index(documents, tmp_path / "index", Schema(keywords=("kind",)))
    attach(tmp_path / "index", bert())
    whole = engine(tmp_path / "index").rank(QUERY, 10).doc_ids
    nearest = tuple(d for d in whole if kinds[d] == "a/y")
    assert len(nearest) == 3
    for near in ((2,), (2, None, FIRST_STAGE)):
        stage = FirstStage(filters={"kind": "a/*"})
        both = engine(tmp_path / "index", *near, stage=stage).filtered({"kind": "a/y|b/x"})
        assert set(both.rank(QUERY, 10).doc_ids) == set(nearest[:2])
        assert both.filtered({"kind": "b/*"}).rank(QUERY, 10).doc_ids == ()


def test_the_nearest_documents_meet_the_filters(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Those that do not take no places, however near they are."""
    kinds = {d.doc_id: "xy"[n % 2] for n, d in enumerate(DOCUMENTS)}
    documents = [Document(d.doc_id, {**d.fields, "kind": kinds[d.doc_id]}) for d in DOCUMENTS]
    build_index(documents, tmp_path / "index", Schema(keywords=("kind",)))
    attach(tmp_path / "index", bert())
    whole = engine(tmp_path / "index").rank(QUERY, 10).doc_ids
    for kind in "xy":
        nearest = tuple(d for d in whole if kinds[d] == kind)[:2]
        dense = engine(tmp_path / "index", 2).filtered({"kind": kind})
        assert dense.rank(QUERY, 10).doc_ids == nearest
        assert dense.match_ratio(QUERY, 10) == 2 / 5
        scored = engine(tmp_path / "index", 2, None, FIRST_STAGE).filtered({"kind": kind})
        assert set(scored.rank(QUERY, 10).doc_ids) == set(nearest)
