"""Do token ids and vectors that an index keeps give the scores of computing them anew?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine.aggregate import Max
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.index.build import build_index
from birchbark.index.reader import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline import keeping
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.records import Document, Query, Run, Segment
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import rank_queries
from birchbark.score.model import load_scorer
from birchbark.score.rounding import pack, unpack
from birchbark.score.scorer import Scorer
from birchbark.segment.named import parse_segmenter, spell
from birchbark.segment.sentences import sentences
from birchbark.segment.windows import Windows
from conftest import DOCUMENTS, WordScorer

QUERIES = [Query("1", "birch river"), Query("2", "iron engine bee"), Query("3", "zeppelin")]
LONG = Document("long", {"title": "Birch", "text": "birch river canoe " * 30 + ". Iron engine."})


def ranked(store: Index, ranker: Ranker) -> Run:
    return rerank(store, rank_queries(store, QUERIES), QUERIES, ranker, tag="t")


def silent(document: Document) -> list[Segment]:
    raise AssertionError("split again")


@pytest.mark.parametrize("labels", [None, 1])
@pytest.mark.parametrize("segmenter", [sentences, Windows(5, 2)])
def test_kept_tokens_change_no_bit(
    tmp_path: Path,
    bert: Callable[..., Path],
    labels: int | None,
    segmenter: keeping.Segmenter,
) -> None:
    """Also of over-long sentences, and of documents that were added since."""
    model = bert(labels=labels)
    ranker = Ranker(load_scorer(model), segmenter)
    index = build_index([*DOCUMENTS, LONG], tmp_path / "i")
    plain, hits = ranked(index, ranker), search(IndexEngine(index), "birch river", ranker).hits
    with IndexWriter(tmp_path / "i") as writer:
        keeping.tokens(load_scorer(model), segmenter, str(model)).attach(writer)
    index = Index(tmp_path / "i")
    assert ranked(index, ranker) == plain
    assert search(IndexEngine(index), "birch river", ranker).hits == hits
    other = Document("new", {"text": "A bee dances over the iron river. Birch."})
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(other)
        writer.delete("bees")
    index = Index(tmp_path / "i")
    left = [d for d in (*DOCUMENTS, LONG, other) if d.doc_id != "bees"]
    expected = ranked(build_index(left, tmp_path / "j"), ranker)
    assert index.incomplete() == {"tokens": 1}
    assert ranked(index, ranker) == expected
    with IndexWriter(tmp_path / "i") as writer:
        keeping.complete(writer, keeping.kept_by(writer, load_scorer))
        writer.merge()
    assert ranked(Index(tmp_path / "i"), ranker) == expected


def test_what_is_kept_is_not_computed_again(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """With tokens, only the hits that are shown are split; with vectors, BERT reads the query."""
    scorer = load_scorer(bert())
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        keeping.tokens(scorer, sentences, "m").attach(writer)
        keeping.vectors(scorer, sentences, "m").attach(writer)
    index, runs = Index(tmp_path / "i"), []
    fresh = load_scorer(bert())
    run = fresh._session.run  # type: ignore[attr-defined]
    fresh._session.run = lambda ids: runs.append(len(ids)) or run(ids)  # type: ignore[attr-defined]
    readers = Readers(index, Ranker(fresh))
    readers.main._segmenter = silent
    first = rank_queries(index, QUERIES[:1]).rankings["1"]
    race = Race(readers, QUERIES[0], first, len(first))
    race.run()
    assert race.work.settled == len(first) > 2
    assert runs == [1]


@pytest.mark.parametrize("bits", [16, 8])
def test_kept_vectors_agree_with_new_ones(
    tmp_path: Path, bert: Callable[..., Path], bits: int
) -> None:
    """Bit by bit with those of documents that came later; and nearly with unrounded ones."""
    model = bert()
    ranker = Ranker(load_scorer(model), interpolation=Interpolation(0), aggregation=Max())
    plain = ranked(build_index([*DOCUMENTS, LONG], tmp_path / "p"), ranker)
    results = []
    for name, before, after in (("all", [*DOCUMENTS, LONG], []), ("some", DOCUMENTS, [LONG])):
        build_index(before, tmp_path / name)
        with IndexWriter(tmp_path / name) as writer:
            keeping.vectors(load_scorer(model), sentences, str(model), bits).attach(writer)
        with IndexWriter(tmp_path / name) as writer:
            for document in after:
                writer.add(document)
        results.append(ranked(Index(tmp_path / name), ranker))
    with IndexWriter(tmp_path / "some") as writer:
        keeping.complete(writer, keeping.kept_by(writer, load_scorer))
    results.append(ranked(Index(tmp_path / "some"), ranker))
    assert results[0] == results[1] == results[2]
    shown = [
        [e.segment for h in search(IndexEngine(index), "birch", ranker).hits for e in h.segments]
        for index in (Index(tmp_path / name) for name in ("all", "some", "p"))
    ]
    assert shown[0] == shown[1] != []
    assert bits == 8 or shown[1] == shown[2]
    for query in QUERIES:
        found, exact = (
            dict(results[0].rankings[query.query_id]),
            dict(plain.rankings[query.query_id]),
        )
        assert found.keys() == exact.keys()
        assert all(abs(found[d] - exact[d]) < (2e-3 if bits == 16 else 2e-2) for d in exact)


@given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.sampled_from([16, 8]))
def test_rounded_vectors_are_near(seed: int, count: int, bits: int) -> None:
    """Of any unit vectors, zeros included; rounding again changes nothing."""
    vectors = np.random.default_rng(seed).normal(size=(count, 24)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[: count // 3] = 0
    near = unpack(pack(vectors, bits))
    assert np.abs(near - vectors).max(initial=0) <= (5e-4 if bits == 16 else 1 / 250)
    assert np.allclose(unpack(pack(near, bits)), near, atol=1e-7)


def test_what_was_made_otherwise_is_not_used(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Another model, or other segments: scores are those of an index that keeps nothing."""
    scorer, other = load_scorer(bert()), load_scorer(bert(seed=1))
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        keeping.vectors(other, sentences, "m").attach(writer)
    plain = build_index(DOCUMENTS, tmp_path / "p")
    for ranker in (
        Ranker(scorer),
        Ranker(other, Windows(4, 2)),
        Ranker(other, lambda d: sentences(d)),
    ):
        assert ranked(Index(tmp_path / "i"), ranker) == ranked(plain, ranker)
    assert ranked(Index(tmp_path / "i"), Ranker(other)) != ranked(plain, Ranker(other))
    refused = pytest.raises(InputError, match="made by another model")
    with IndexWriter(tmp_path / "i") as writer, refused:
        keeping.kept_by(writer, lambda name: scorer)


def test_only_embeddings_have_vectors(bert: Callable[..., Path]) -> None:
    """And only named segments can be kept."""
    with pytest.raises(InputError, match="no vectors to keep"):
        keeping.vectors(load_scorer(bert(labels=1)), sentences, "m")
    with pytest.raises(InputError, match="16 or 8 bits, found 4"):
        keeping.vectors(load_scorer(bert()), sentences, "m", 4)
    with pytest.raises(InputError, match="no name"):
        keeping.tokens(load_scorer(bert()), lambda d: [], "m")
    for word in ("sentences", "windows:150/50", "windows:7/0", "whole"):
        assert spell(parse_segmenter(word)) == word
    assert spell(Windows(9, 3, 2)) is None


@pytest.mark.parametrize("vectors", [False, True])
def test_two_scorers_are_mixed_as_the_formula_says(
    tmp_path: Path, bert: Callable[..., Path], vectors: bool
) -> None:
    """a · first + (1 − a) · ((1 − e) · evidence + e · embedding's); exact for the best k."""
    cross, embedding = load_scorer(bert(labels=1)), load_scorer(bert())
    build_index(DOCUMENTS, tmp_path / "i")
    if vectors:
        with IndexWriter(tmp_path / "i") as writer:
            keeping.vectors(embedding, sentences, "m").attach(writer)
    index = Index(tmp_path / "i")
    a, e = 0.3, 0.25
    both = Ranker(cross, interpolation=Interpolation(a), embedding=embedding, embedding_weight=e)
    engine = IndexEngine(index)
    hits = search(engine, "birch river", both, 5).hits
    assert len(hits) > 2
    one = evidence(engine, cross, a)
    two = evidence(engine, embedding, a)
    for hit in hits:
        name = hit.document.doc_id
        assert hit.evidence == pytest.approx((1 - e) * one[name])
        assert hit.embedding == pytest.approx(e * two[name])
        assert hit.score == pytest.approx(hit.first_stage + hit.evidence + hit.embedding)
    for top in (1, 2, 3):
        assert search(engine, "birch river", both, top).hits == hits[:top]


def evidence(engine: IndexEngine, scorer: Scorer, a: float) -> dict[str, float]:
    ranker = Ranker(scorer, interpolation=Interpolation(a))
    return {h.document.doc_id: h.evidence for h in search(engine, "birch river", ranker, 5).hits}


def test_time_may_end_while_the_second_scorer_is_at_work(index: Index) -> None:
    """Then the first stage answers."""

    class Slow(WordScorer):
        now = 0.0

        def score(self, query: str, pieces: Sequence[np.ndarray]) -> np.ndarray:  # type: ignore[type-arg]
            self.now += 1.0
            return super().score(query, pieces)

    slow = Slow()
    ranker = Ranker(WordScorer(), embedding=slow)
    first = rank_queries(index, QUERIES[:1]).rankings["1"]
    race = Race(Readers(index, ranker), QUERIES[0], first, 3)
    race.run(Deadline(2.5, lambda: slow.now))
    assert not race.work.exact
    assert tuple(h.document.doc_id for h in race.hits()) == first.doc_ids[:3]
    race = Race(Readers(index, ranker), QUERIES[0], first, 3)
    race.run(Deadline(1e6, lambda: slow.now))
    assert race.work.exact
    assert replace(race.work, pairs=0).settled == len(race.hits())
