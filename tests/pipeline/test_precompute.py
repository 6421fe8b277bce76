"""Do stored token ids and vectors give the same scores as computing them?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.deadline import Deadline
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import (
    load_precomputations,
    precompute_tokens,
    precompute_vectors,
)
from birchbark.pipeline.upkeep.update_index import complete_attachments
from birchbark.records import Document, Query, Run, Segment
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import rank_queries
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.score.vector_quantization import (
    BITS,
    BLOCK,
    dequantize_vectors,
    inner_products,
    quantize_vectors,
)
from birchbark.segment.by_name import Segmenter, parse_segmenter, segmenter_name
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
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
def test_stored_tokens_change_no_bit(
    tmp_path: Path,
    bert: Callable[..., Path],
    labels: int | None,
    segmenter: Segmenter,
) -> None:
    """This includes over-long sentences and documents added later."""
    model = bert(labels=labels)
    ranker = Ranker(load_scorer(model), segmenter)
    index = build_index([*DOCUMENTS, LONG], tmp_path / "i")
    plain, hits = ranked(index, ranker), search(IndexEngine(index), "birch river", ranker).hits
    with IndexWriter(tmp_path / "i") as writer:
        precompute_tokens(load_scorer(model), segmenter, str(model)).attach(writer)
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
    assert index.missing_rows() == {"tokens": 1}
    assert ranked(index, ranker) == expected
    with IndexWriter(tmp_path / "i") as writer:
        complete_attachments(writer, load_precomputations(writer, load_scorer))
        writer.merge()
    assert ranked(Index(tmp_path / "i"), ranker) == expected


def test_stored_data_are_not_computed_again(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """With stored tokens no document is split; with stored vectors BERT runs on the query alone."""
    scorer = load_scorer(bert())
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        precompute_tokens(scorer, sentences, "m").attach(writer)
        precompute_vectors(scorer, sentences, "m").attach(writer)
    index, runs = Index(tmp_path / "i"), []
    fresh = load_scorer(bert())
    run = fresh._session.run  # type: ignore[attr-defined]
    fresh._session.run = lambda ids: runs.append(len(ids)) or run(ids)  # type: ignore[attr-defined]
    readers = RankerReaders(index, Ranker(fresh, sentences))
    readers.main._segmenter = silent
    first = rank_queries(index, QUERIES[:1]).rankings["1"]
    scoring = TopKScoring(readers, QUERIES[0].text, first, len(first))
    scoring.run()
    assert scoring.stats.scored == len(first) > 2
    assert runs == [1]


@pytest.mark.parametrize("bits", [16, 8])
def test_stored_vectors_agree_with_computed_ones(
    tmp_path: Path, bert: Callable[..., Path], bits: int
) -> None:
    """Scores equal those of documents without stored vectors, and nearly those without rounding."""
    model = bert()
    ranker = Ranker(load_scorer(model), interpolation=Interpolation(0), aggregation=Top((1.0,)))
    plain = ranked(build_index([*DOCUMENTS, LONG], tmp_path / "p"), ranker)
    results = []
    for name, before, after in (("all", [*DOCUMENTS, LONG], []), ("some", DOCUMENTS, [LONG])):
        build_index(before, tmp_path / name)
        with IndexWriter(tmp_path / name) as writer:
            precompute_vectors(load_scorer(model), sentences, str(model), bits).attach(writer)
        with IndexWriter(tmp_path / name) as writer:
            for document in after:
                writer.add(document)
        results.append(ranked(Index(tmp_path / name), ranker))
    with IndexWriter(tmp_path / "some") as writer:
        complete_attachments(writer, load_precomputations(writer, load_scorer))
    results.append(ranked(Index(tmp_path / "some"), ranker))
    assert results[0] == results[1] == results[2]
    shown = [
        [e.segment for h in search(IndexEngine(index), "birch", ranker).hits for e in h.segments]
        for index in (Index(tmp_path / name) for name in ("all", "some", "p"))
    ]
    assert shown[0] == shown[1] != []
    assert bits == 8 or shown[1] == shown[2]
    for query in QUERIES:
        rounded, exact = (
            dict(results[0].rankings[query.query_id]),
            dict(plain.rankings[query.query_id]),
        )
        assert rounded.keys() == exact.keys()
        assert all(abs(rounded[d] - exact[d]) < (2e-3 if bits == 16 else 2e-2) for d in exact)


@given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.sampled_from([16, 8]))
def test_quantization_error_is_bounded(seed: int, count: int, bits: int) -> None:
    """The error is bounded for unit and zero vectors; quantising again changes nothing."""
    vectors = np.random.default_rng(seed).normal(size=(count, 24)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[: count // 3] = 0
    near = dequantize_vectors(quantize_vectors(vectors, bits))
    assert np.abs(near - vectors).max(initial=0) <= (5e-4 if bits == 16 else 1 / 250)
    assert np.allclose(dequantize_vectors(quantize_vectors(near, bits)), near, atol=1e-7)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 5, BLOCK, BLOCK + 3]), st.integers(0, 9))
@settings(max_examples=40)
def test_inner_products_are_those_of_the_dequantized_vectors(
    seed: int, count: int, power: int
) -> None:
    """This holds for any number of vectors, and for numbers near zero."""
    rng = np.random.default_rng(seed)
    vectors = (rng.normal(size=(count, 24)) * 10.0**-power).astype(np.float32)
    query = rng.normal(size=24).astype(np.float32)
    for bits in BITS:
        quantized = quantize_vectors(vectors, bits)
        differences = inner_products(quantized, query) - dequantize_vectors(quantized) @ query
        assert np.abs(differences).max(initial=0) <= 10.0**-power * 1e-5


def test_attachments_of_other_models_or_segments_are_ignored(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """Scores are those of an index without attachments."""
    scorer, other = load_scorer(bert()), load_scorer(bert(seed=1))
    build_index(DOCUMENTS, tmp_path / "i")
    with IndexWriter(tmp_path / "i") as writer:
        precompute_vectors(other, sentences, "m").attach(writer)
    plain = build_index(DOCUMENTS, tmp_path / "p")
    for ranker in (
        Ranker(scorer, sentences),
        Ranker(other, Windows(4, 2)),
        Ranker(other, lambda d: sentences(d)),
        Ranker(other, sentences, limit=Limit(segments=1)),
    ):
        assert ranked(Index(tmp_path / "i"), ranker) == ranked(plain, ranker)
    assert ranked(Index(tmp_path / "i"), Ranker(other, sentences)) != ranked(
        plain, Ranker(other, sentences)
    )
    refused = pytest.raises(InputError, match="made by a model or version other than")
    with IndexWriter(tmp_path / "i") as writer, refused:
        load_precomputations(writer, lambda name, pooling=None: scorer)


def test_only_embeddings_have_vectors(bert: Callable[..., Path]) -> None:
    """Other scorers, unsupported bit widths and segmenters without a name raise InputError."""
    with pytest.raises(InputError, match="computes no vectors"):
        precompute_vectors(load_scorer(bert(labels=1)), sentences, "m")
    with pytest.raises(InputError, match="expected 16 or 8, found 4"):
        precompute_vectors(load_scorer(bert()), sentences, "m", 4)
    with pytest.raises(InputError, match="has a name"):
        precompute_tokens(load_scorer(bert()), lambda d: [], "m")
    for word in ("sentences", "windows:150/50", "windows:7/0", "whole"):
        assert segmenter_name(parse_segmenter(word)) == word


@pytest.mark.parametrize("vectors", [False, True])
def test_two_scorers_are_mixed_as_the_formula_says(
    tmp_path: Path, bert: Callable[..., Path], vectors: bool
) -> None:
    """score = a · first + (1 − a) · ((1 − e) · evidence + e · embedding), exact for the k best."""
    cross, embedding = load_scorer(bert(labels=1)), load_scorer(bert())
    build_index(DOCUMENTS, tmp_path / "i")
    if vectors:
        with IndexWriter(tmp_path / "i") as writer:
            precompute_vectors(embedding, sentences, "m").attach(writer)
    index = Index(tmp_path / "i")
    a, e = 0.3, 0.25
    both = Ranker(cross, interpolation=Interpolation(a), embedding=embedding, embedding_weight=e)
    engine = IndexEngine(index)
    hits = search(engine, "birch river", both, 5).hits
    assert len(hits) > 2
    by_cross_encoder = evidence(engine, cross, a)
    two = evidence(engine, embedding, a)
    for hit in hits:
        name = hit.document.doc_id
        assert hit.evidence == pytest.approx((1 - e) * by_cross_encoder[name])
        assert hit.embedding == pytest.approx(e * two[name])
        assert hit.score == pytest.approx(hit.first_stage + hit.evidence + hit.embedding)
    for top in (1, 2, 3):
        assert search(engine, "birch river", both, top).hits == hits[:top]


def evidence(engine: IndexEngine, scorer: Scorer, a: float) -> dict[str, float]:
    ranker = Ranker(scorer, interpolation=Interpolation(a))
    return {h.document.doc_id: h.evidence for h in search(engine, "birch river", ranker, 5).hits}


def test_timeout_during_the_embedding(index: Index) -> None:
    """The ranking is then the first stage's."""

    class Slow(WordScorer):
        now = 0.0

        def score(self, query: str, token_ids: Sequence[np.ndarray]) -> np.ndarray:  # type: ignore[type-arg]
            self.now += 1.0
            return super().score(query, token_ids)

    slow = Slow()
    ranker = Ranker(WordScorer(), embedding=slow)
    first = rank_queries(index, QUERIES[:1]).rankings["1"]
    scoring = TopKScoring(RankerReaders(index, ranker), QUERIES[0].text, first, 3)
    scoring.run(Deadline(2.5, lambda: slow.now))
    assert not scoring.stats.exact
    assert tuple(h.document.doc_id for h in scoring.hits()) == first.doc_ids[:3]
    scoring = TopKScoring(RankerReaders(index, ranker), QUERIES[0].text, first, 3)
    scoring.run(Deadline(1e6, lambda: slow.now))
    assert scoring.stats.exact
    assert replace(scoring.stats, pairs=0).scored == len(scoring.hits())
