"""Can an index hold vectors by several models, and of several kinds of segments?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.checkpoint.state_scale import copy_with_scale
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answers.answer import Answer
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import VECTORS, Precomputation, precompute_vectors
from birchbark.pipeline.stored.stored_segments import PrecomputedSegments
from birchbark.pipeline.stored.vector_sets import vector_sets
from birchbark.pipeline.upkeep.update_index import Changes, add_documents, attach
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.vector_match import CandidateScores, VectorMatch
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.by_name import parse_segmenter
from birchbark.segment.sentences import sentences
from conftest import DOCUMENTS

BertFactory = Callable[..., Path]


def vectors_of(model: Path, segments: str = "sentences", bits: int = 16) -> Precomputation:
    return precompute_vectors(load_scorer(model), parse_segmenter(segments), str(model), bits)


def scores(answer: Answer) -> list[tuple[str, float]]:
    return [(hit.document.doc_id, hit.score) for hit in answer.hits]


def store(directory: Path, *computations: Precomputation) -> list[str]:
    with IndexWriter(directory) as writer:
        return attach(writer, computations)


@pytest.fixture
def index_directory(tmp_path: Path) -> Path:
    build_index(DOCUMENTS, tmp_path / "index")
    return tmp_path / "index"


@pytest.fixture
def models(bert: BertFactory) -> tuple[Path, Path]:
    return bert(seed=1), bert(seed=2)


def test_models_and_segments_have_sets_of_their_own(
    index_directory: Path, models: tuple[Path, Path]
) -> None:
    """The same model and segments are stored once, in the bits asked for last."""
    one, other = models
    assert store(index_directory, vectors_of(one)) == ["vectors"]
    assert store(index_directory, vectors_of(other)) == ["vectors-2"]
    assert store(index_directory, vectors_of(other, "title")) == ["vectors-3"]
    assert store(index_directory, vectors_of(other, bits=8)) == ["vectors-2"]
    with IndexWriter(index_directory) as writer:
        assert vector_sets(writer.attachments) == ["vectors", "vectors-2", "vectors-3"]
        assert writer.attachments["vectors-2"].config["bits"] == 8
        writer.detach(VECTORS)
        writer.merge()
    index = Index(index_directory)
    assert (vector_sets(index.attachments), index.missing_rows()) == (
        ["vectors-2", "vectors-3"],
        {},
    )
    assert store(index_directory, vectors_of(one)) == ["vectors"]


def test_a_ranker_uses_the_set_of_its_model(
    index_directory: Path, models: tuple[Path, Path]
) -> None:
    """Its scores are those of an index with this set alone, and its set finds candidates."""
    one, other = models
    ranker = Ranker(load_scorer(other), sentences)
    store(index_directory, vectors_of(other))
    alone = search(IndexEngine(Index(index_directory)), "birch canoe", ranker)
    with IndexWriter(index_directory) as writer:
        writer.detach(VECTORS)
    store(index_directory, vectors_of(one), vectors_of(other))
    index = Index(index_directory)
    both = search(IndexEngine(index), "birch canoe", ranker)
    assert both.stats.by_vectors == len(both.hits) > 0
    assert scores(both) == scores(alone)
    engine = open_engine(index, FirstStage(), None, load_scorer, [ranker])
    assert isinstance(engine, DenseEngine)
    assert engine.match.vectors == "vectors-2"


def test_the_nearest_are_of_the_set_that_a_searcher_was_told(
    index_directory: Path, models: tuple[Path, Path]
) -> None:
    """Without one, they are of the set that fits its ranker."""
    one, other = models
    store(index_directory, vectors_of(one), vectors_of(other))
    ranker = Ranker(load_scorer(one), sentences)

    def nearest(match: VectorMatch | None) -> tuple[list[tuple[str, float]], str | None]:
        searcher = Searcher(index_directory, ranker, vector_match=match)
        return (
            scores(searcher.search("canoe", candidates="nearest", rankers=())),
            searcher.vectors_model,
        )

    def of_set(vectors: str) -> list[tuple[str, float]]:
        match = VectorMatch(vectors=vectors)
        return scores(Searcher(index_directory, (), vector_match=match).search("canoe"))

    assert nearest(None) == (of_set("vectors"), str(one))
    assert nearest(VectorMatch(vectors="vectors-2")) == (of_set("vectors-2"), str(other))
    assert of_set("vectors") != of_set("vectors-2")


def test_a_first_stage_uses_the_set_that_it_is_told(
    index_directory: Path, models: tuple[Path, Path]
) -> None:
    """The default is the first one.

    An unknown set is refused with the names of those that exist.
    """
    one, other = models
    store(index_directory, vectors_of(one), vectors_of(other))
    index = Index(index_directory)

    def ranking(vectors: str | None) -> list[tuple[str, float]]:
        found = open_engine(index, match=VectorMatch(vectors=vectors), load=load_scorer).rank(
            "canoe", 9
        )
        return list(zip(found.doc_ids, found.scores.tolist(), strict=True))

    assert ranking(None) == ranking("vectors") != ranking("vectors-2")
    with pytest.raises(InputError, match="no such set of vectors") as error:
        ranking("vectors-3")
    assert error.value.wanted == "vectors or vectors-2"
    with pytest.raises(InputError, match="no vectors are used"):
        replace(
            VectorMatch(),
            count=0,
            terms=FirstStage().match,
            scores=CandidateScores.FIRST_STAGE,
            vectors="vectors",
        )


def test_added_documents_get_vectors_of_each_set(
    index_directory: Path, models: tuple[Path, Path]
) -> None:
    """A set that is left out is completed by someone else; others are completed at once."""
    one, other = models
    store(index_directory, vectors_of(one), vectors_of(other))
    searcher = Searcher(index_directory, Ranker(load_scorer(other), sentences))
    assert searcher.vectors_model == str(other)
    tree = Document("tree", {"text": "A birch tree."})
    searcher.add([tree])
    assert searcher.index.missing_rows() == {}
    bush = Document("bush", {"text": "A birch bush."})
    add_documents(index_directory, Changes([bush]), load_scorer, leave_out=["vectors-2"])
    assert searcher.index.missing_rows() == {"vectors-2": 1}
    assert "tree" in [hit.document.doc_id for hit in searcher.search("tree").hits]


def test_vectors_remain_valid_when_a_scale_is_stated(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """A calibrated copy of a model uses the vectors of the original, but scores are its own."""
    model, index = bert(), tmp_path / "scaled"
    build_index(DOCUMENTS, index)
    with IndexWriter(index) as writer:
        precompute_vectors(load_scorer(model), sentences, str(model)).attach(writer)
    copy_with_scale(model, ScoreScale(-0.5, 2.0, stated=True), tmp_path / "copy")
    original, scaled = load_scorer(model), load_scorer(tmp_path / "copy")
    assert original.fingerprint != scaled.fingerprint
    found = [
        PrecomputedSegments(Index(index), scorer, sentences).scores("birch river", ["canoe"])[0]
        for scorer in (original, scaled)
    ]
    assert found[0] is not None
    assert found[1] is not None
    inside = found[0] > 0  # others were clipped
    assert inside.any()
    np.testing.assert_allclose(found[1][inside], (found[0][inside] + 0.5) / 2, atol=1e-6)
