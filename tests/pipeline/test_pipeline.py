"""Do retrieval, scoring and aggregation work together as the equations say?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.pipeline.answers.answer import Hit
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries, rank_query
from birchbark.retrieve.rm3 import RM3
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences
from birchbark.segment.windows import Windows
from conftest import WordScorer


def scored(index: Index, query: Query, candidates: Ranking, ranker: Ranker) -> list[Hit]:
    """Return all candidates with their evidence, best first."""
    scoring = TopKScoring(RankerReaders(index, ranker), query.text, candidates, len(candidates))
    scoring.run()
    return scoring.hits()


def rerank_query(index: Index, query: Query, first: Ranking, ranker: Ranker) -> Ranking:
    return rerank(index, Run({query.query_id: first}), [query], ranker).rankings[query.query_id]


QUERIES = [Query("1", "birch river"), Query("2", "iron engine"), Query("3", "zeppelin")]


@given(scale=st.sampled_from(Scale), depth=st.integers(1, 6), query=st.sampled_from(QUERIES))
def test_a_1_keeps_the_first_stage_order(
    index: Index, scale: Scale, depth: int, query: Query
) -> None:
    """With a = 1 the ranking is the first stage's, at any depth and scale."""
    first = rank_query(index, query.text)
    ranker = Ranker(WordScorer(), interpolation=Interpolation(1, scale), depth=depth)
    assert rerank_query(index, query, first, ranker).doc_ids == first.doc_ids


def test_an_unknown_document_is_found_before_scoring(index: Index) -> None:
    """It was found when its query was reached, after hours of the queries before."""
    rankings = {"1": rank_query(index, "birch river"), "2": Ranking.of(["gone"], [1])}
    ranked: list[object] = []
    with pytest.raises(InputError, match="no document gone"):
        rerank(index, Run(rankings), QUERIES[:2], Ranker(WordScorer()), on_query=ranked.append)
    assert not ranked
    below = {"2": rank_query(index, "iron engine").head(1).followed_by(["gone"])}
    assert rerank(index, Run(below), QUERIES[1:2], Ranker(WordScorer(), depth=1))


def test_a_0_ranks_by_evidence_alone(index: Index) -> None:
    """With a = 0 first-stage scores do not count."""
    ranker = Ranker(WordScorer(), aggregation=Top((1.0,)), interpolation=Interpolation(0))
    hits = scored(index, QUERIES[0], rank_query(index, "birch river"), ranker)
    assert [h.score for h in hits] == [h.evidence for h in hits]
    assert {h.document.doc_id: h.evidence for h in hits}["forest"] == 0.5


def test_a_hit_adds_up(index: Index) -> None:
    """score = first stage + evidence, and evidence = Σ weight · score of the segments."""
    ranker = Ranker(
        WordScorer(), sentences, aggregation=Top((1, 0.5)), interpolation=Interpolation(0.3)
    )
    for hit in search(IndexEngine(index), "birch river canoe", ranker).hits:
        assert hit.score == pytest.approx(hit.first_stage + hit.evidence)
        shown = sum(e.weight * e.score for e in hit.segments)
        assert hit.evidence == pytest.approx(shown)
        for e in hit.segments:
            assert hit.document.contents[e.segment.start : e.segment.end] == e.segment.text
        shares = [e.weight * e.score for e in hit.segments]
        assert shares == sorted(shares, reverse=True)


def test_candidates_below_the_depth_keep_their_order(index: Index) -> None:
    """They rank below all re-ranked documents."""
    first = rank_query(index, "birch river iron bee")
    ranked = rerank_query(index, QUERIES[0], first, Ranker(WordScorer(), depth=2))
    assert len(ranked) == len(first)
    assert set(ranked.doc_ids[:2]) == set(first.doc_ids[:2])
    assert ranked.doc_ids[2:] == first.doc_ids[2:]
    assert (np.diff(ranked.scores) <= 0).all()


def test_search_and_rerank_agree(index: Index) -> None:
    """The hits of search are the first documents of the re-ranked run."""
    ranker, stage = Ranker(WordScorer()), FirstStage(expansion=RM3())
    run = rerank(index, rank_queries(index, QUERIES, stage), QUERIES, ranker)
    for query in QUERIES:
        hits = search(IndexEngine(index, stage), query.text, ranker, top=3).hits
        assert tuple(h.document.doc_id for h in hits) == run.rankings[query.query_id].doc_ids[:3]


def test_every_query_has_a_ranking_even_if_empty(index: Index) -> None:
    """Rankings are in the order of the queries; on_query is called for each."""
    steps: list[int] = []
    run = rank_queries(index, QUERIES)
    ranked = rerank(
        index,
        run,
        QUERIES,
        Ranker(WordScorer()),
        on_query=lambda query: steps.append(query.stats.candidates),
    )
    assert list(ranked.rankings) == ["1", "2", "3"]
    assert len(ranked.rankings["3"]) == 0
    assert steps == [len(run.rankings[query.query_id]) for query in QUERIES]


def test_a_run_for_other_queries_is_refused(index: Index) -> None:
    """A query without a text cannot be scored."""
    run = Run({"7": Ranking.of(["canoe"], [1.0])})
    with pytest.raises(InputError, match="ranks query 7, which is not among the queries"):
        rerank(index, run, QUERIES, Ranker(WordScorer()))


def test_scores_that_cannot_be_scaled_are_refused_before_scoring(index: Index) -> None:
    """The error names the query; no query of the run is scored."""
    scores = {"1": [2.0, 1.0], "2": [0.01, -1.5]}
    run = Run({q: Ranking.of(["canoe", "bees"], of) for q, of in scores.items()})
    steps: list[object] = []
    with pytest.raises(InputError, match="query 2: scores cannot be divided by the highest"):
        rerank(index, run, QUERIES, Ranker(WordScorer()), on_query=steps.append)
    assert steps == []


def test_depth_is_at_least_1() -> None:
    """A ranker of depth 0 raises InputError."""
    with pytest.raises(InputError, match="depth is out of range"):
        Ranker(WordScorer(), depth=0)


@pytest.mark.parametrize("segmenter", [None, Windows(4, 1)])
@pytest.mark.parametrize("labels", [None, 1])
def test_bert_scores_do_not_depend_on_other_queries(
    index: Index, bert: Callable[..., Path], labels: int | None, segmenter: Windows | None
) -> None:
    """A query ranked alone gives the same bits as all queries together."""
    directory = bert(labels=labels)
    choices = {"segmenter": segmenter} if segmenter else {}
    run = rank_queries(index, QUERIES)
    whole = rerank(index, run, QUERIES, Ranker(load_scorer(directory), **choices))  # type: ignore[arg-type]
    for query in QUERIES:
        ranker = Ranker(load_scorer(directory, threads=1), **choices)  # type: ignore[arg-type]
        alone = rerank_query(index, query, run.rankings[query.query_id], ranker)
        assert alone == whole.rankings[query.query_id]


def test_long_sentences_are_split_and_not_truncated(index: Index) -> None:
    """With a budget of two tokens per segment, every word of a document is still scored."""
    seen: list[str] = []

    class Listener(WordScorer):
        def score(self, query: str, token_ids):  # type: ignore[no-untyped-def]
            seen.extend(self.text(piece) for piece in token_ids)
            return super().score(query, token_ids)

    candidates = Ranking.of(["canoe"], [1.0])
    scored(index, QUERIES[0], candidates, Ranker(Listener(token_budget=2)))
    words = index.documents(["canoe"])[0].contents.split()
    assert sorted(" ".join(seen).split()) == sorted(" ".join(words).lower().split())
    assert all(len(text.split()) <= 2 for text in seen)


def test_top_and_depth_are_at_least_1(index: Index) -> None:
    """search returns `top` hits even below the ranker's depth."""
    ranker = Ranker(WordScorer(), depth=1)
    assert len(search(IndexEngine(index), "birch river iron bee", ranker, top=4).hits) == 4
    for top in (0, -1):
        with pytest.raises(InputError, match="top is out of range"):
            search(IndexEngine(index), "birch", ranker, top=top)
        with pytest.raises(InputError, match="depth is out of range"):
            rank_query(index, "birch", depth=top)


def test_too_long_a_query_is_refused_before_scoring(
    index: Index, bert: Callable[..., Path]
) -> None:
    """The error names the query, and no query of the run is scored."""
    read_whole, cross = load_scorer(bert(labels=1, positions=128)), load_scorer(bert(labels=1))
    refuse_long_queries(index, Ranker(cross))
    refuse_long_queries(index, Ranker(read_whole, embedding=load_scorer(bert())))


def refuse_long_queries(index: Index, ranker: Ranker) -> None:
    queries = [QUERIES[0], Query("9", "bee " * 40)]
    steps: list[int] = []
    with pytest.raises(InputError, match="query 9: query is too long"):
        rerank(
            index,
            rank_queries(index, queries),
            queries,
            ranker,
            on_query=lambda query: steps.append(query.stats.candidates),
        )
    assert steps == []
