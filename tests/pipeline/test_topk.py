"""Are the best documents the same as if all were scored, and are deadlines met?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelf import Shelf, Written

from birchbark.combine.aggregate import Aggregation, First, Mean, Sum, Top
from birchbark.combine.contenders import contenders
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.deadline import Deadline
from birchbark.errors import InputError
from birchbark.pipeline.reading import schedule as module
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Float32s, Ids, Ranking
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.store import ScoreStore
from birchbark.segment.windows import Windows

QUERY = "birch"
SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3, 0.999, 1e-7])
AGGREGATIONS = [Top(), Top((0.2, 1.0)), Top((0.0, 1.0)), First(), Top((1.0,)), Mean(), Sum()]


def scored_topk(shelf: Shelf, first: Ranking, ranker: Ranker, top: int) -> TopKScoring:
    scoring = TopKScoring(RankerReaders(shelf, ranker), QUERY, first, top)
    scoring.run()
    return scoring


@st.composite
def cases(draw: st.DrawFn) -> tuple[Shelf, Ranking, int]:
    documents = draw(st.lists(st.lists(SCORES, max_size=5), min_size=1, max_size=12))
    first = st.sampled_from([0.0, 1.0, 2.0, 7.5, 30.0])
    scores = [draw(first) for _ in documents]
    shelf = Shelf(documents)
    return shelf, Ranking.of(list(shelf.texts), scores), draw(st.integers(1, len(documents)))


@pytest.mark.parametrize("aggregation", AGGREGATIONS, ids=str)
@given(case=cases(), a=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), scale=st.sampled_from(Scale))
def test_the_best_are_those_of_scoring_everything(
    aggregation: Aggregation, case: tuple[Shelf, Ranking, int], a: float, scale: Scale
) -> None:
    """Ids, order, scores and evidence agree for any a, weights, aggregation, scale and top."""
    shelf, first, top = case
    ranker = Ranker(Written(), Windows(1, 0), aggregation, Interpolation(a, scale))
    some, every = (
        scored_topk(shelf, first, ranker, top),
        scored_topk(shelf, first, ranker, len(first)),
    )
    assert some.hits() == every.hits()[:top]
    assert some.best() == every.best().head(top)
    assert some.stats.exact and every.stats.exact
    assert every.stats.scored == len(first) >= some.stats.scored
    assert some.stats.pairs <= every.stats.pairs


def test_documents_that_cannot_be_among_the_best_are_not_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With raw BM25 scores and a = .5, scoring the first document suffices."""
    monkeypatch.setattr(module, "LOOKAHEAD", 1)
    scorer, shelf = Written(), Shelf([[1.0] * 3] * 50)
    first = Ranking.of(list(shelf.texts), np.linspace(40, 10, 50))
    ranker = Ranker(scorer, Windows(1, 0), interpolation=Interpolation(0.5, Scale.RAW))
    scoring = scored_topk(shelf, first, ranker, 1)
    assert (scoring.stats.scored, scoring.stats.candidates, scorer.now) == (1, 50, 3)


@given(
    documents=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20),
    k=st.integers(1, 20),
)
def test_topk_finds_the_k_best(documents: list[tuple[float, float]], k: int) -> None:
    """Scoring one contender after another finds the k best documents."""
    scores = [min(pair) for pair in documents]
    names = [f"d{i:02}" for i in range(len(documents))]
    bounds, found = np.array([max(pair) for pair in documents]), np.full(len(documents), np.nan)
    readable = np.ones(len(documents), bool)
    while waiting := contenders(bounds, found, ~np.isnan(found), readable, k):
        found[waiting[0]] = scores[waiting[0]]
    scored = np.flatnonzero(~np.isnan(found))
    assert Ranking.of([names[i] for i in scored], found[scored], k) == Ranking.of(names, scores, k)


def test_documents_with_a_bound_equal_to_the_kth_score_are_contenders() -> None:
    """Under the tie rule such a document may rank above the k-th."""
    bounds, readable = np.array([0.5, 0.5]), np.array([True, True])
    final = np.array([True, False])
    assert contenders(bounds, np.array([0.5, np.nan]), final, readable, 1) == [1]
    assert contenders(bounds, np.array([0.5, np.nan]), final, final, 1) == []
    assert Ranking.of(["a", "b"], [0.5, 0.5], 1).doc_ids == ("b",)


@given(case=cases(), budget=st.integers(1, 40), a=st.sampled_from([0.0, 0.4, 0.9]))
def test_unscored_documents_keep_the_first_stage_order(
    case: tuple[Shelf, Ranking, int], budget: int, a: float
) -> None:
    """Scored documents have at most their true scores; unread ones follow in first-stage order."""
    shelf, first, top = case
    scorer = Written()
    ranker = Ranker(scorer, Windows(1, 0), interpolation=Interpolation(a, Scale.MINMAX))
    truth = {h.document.doc_id: h for h in scored_topk(shelf, first, ranker, len(first)).hits()}
    scorer.now = 0.0
    scoring = TopKScoring(RankerReaders(shelf, ranker), QUERY, first, top)
    scoring.run(Deadline(budget, lambda: scorer.now))
    # Except the first, no batch is started that cannot end in time.
    assert scorer.now <= max(budget, 12)
    hits = scoring.hits()
    assert len(hits) == top
    scored = [h for h in hits if h.scored]
    assert hits[: len(scored)] == scored
    for hit in scored:
        whole = truth[hit.document.doc_id]
        texts = {part.segment.text for part in hit.segments}
        assert hit.score <= whole.score + 1e-9
        assert hit == whole or len(texts) <= len(whole.segments)
    waiting = [h.document.doc_id for h in hits if not h.scored]
    assert waiting == [d for d in first.doc_ids if d in waiting]
    if scoring.stats.exact:
        assert hits == scored_topk(shelf, first, ranker, top).hits()


def test_without_time_the_first_stage_order_is_returned() -> None:
    """The result is marked as not exact."""
    shelf = Shelf([[1.0], [0.5], [0.0]])
    first = Ranking.of(list(shelf.texts), [3.0, 2.0, 1.0])
    ranker = Ranker(Written())
    scoring = TopKScoring(RankerReaders(shelf, ranker), QUERY, first, 2)
    scoring.run(Deadline(-1.0))
    assert [h.document.doc_id for h in scoring.hits()] == ["d0", "d1"]
    assert (scoring.stats.exact, scoring.stats.scored) == (False, 0)


class Coarse(Written):
    """Rounds scores down to steps of a quarter."""

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        return np.floor(super().score(query, token_ids) * 4).astype(np.float32) / 4


@given(case=cases(), rescore_depth=st.integers(1, 12), a=st.sampled_from([0.0, 0.4]))
def test_the_best_are_rescored_by_the_precise_scorer(
    case: tuple[Shelf, Ranking, int], rescore_depth: int, a: float
) -> None:
    """Their segments have precise scores, and the order is that of the final scores."""
    shelf, first, top = case
    coarse, precise = Coarse(), Written()
    precise._words = coarse._words
    ranker = Ranker(
        coarse,
        Windows(1, 0),
        interpolation=Interpolation(a),
        precise=precise,
        rescore_depth=rescore_depth,
    )
    scoring = scored_topk(shelf, first, ranker, top)
    hits = scoring.hits()
    assert scoring.stats.exact
    assert len(hits) == top
    for rank, hit in enumerate(hits):
        for e in hit.segments:
            true, found = float(e.segment.text.split(":")[2]), e.score
            assert found == np.float32(true) or found == np.floor(true * 4) / 4
            if rescore_depth >= len(first) and found > 0:
                assert found == np.float32(true)
        assert rank == 0 or np.float32(hit.score) <= np.float32(hits[rank - 1].score)
    assert precise.now <= 5 * rescore_depth
    alone = replace(ranker, precise=None)
    same = [
        h.document.doc_id for h in scored_topk(shelf, first, alone, max(top, rescore_depth)).hits()
    ]
    assert {h.document.doc_id for h in hits} <= set(same)


class Generous(Written):
    """Rounds scores up to steps of a quarter."""

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        return np.ceil(super().score(query, token_ids) * 4).astype(np.float32) / 4


@given(case=cases(), rescore_depth=st.integers(1, 4), a=st.sampled_from([0.0, 0.1, 0.4]))
def test_lower_precise_scores_admit_other_documents(
    case: tuple[Shelf, Ranking, int], rescore_depth: int, a: float
) -> None:
    """The best are the same as if all documents were scored, however much precise scores differ."""
    shelf, first, top = case
    coarse, precise = Generous(), Written()
    precise._words = coarse._words
    ranker = Ranker(
        coarse,
        Windows(1, 0),
        interpolation=Interpolation(a, Scale.RAW),
        precise=precise,
        rescore_depth=rescore_depth,
    )
    some, every = (
        scored_topk(shelf, first, ranker, top),
        scored_topk(shelf, first, ranker, len(first)),
    )
    assert some.hits() == every.hits()[:top]


def test_a_rescored_document_may_fall_behind_an_unscored_one() -> None:
    """Its coarse score excluded the other document; its precise score does not."""
    coarse, precise = Generous(), Written()
    precise._words = coarse._words
    shelf = Shelf([[0.76], [0.0], [0.9]])
    first = Ranking.of(["d0", "d1", "d2"], [10.0, 9.99, 9.98])
    ranker = Ranker(
        coarse,
        Windows(1, 0),
        Top((1.0,)),
        Interpolation(0.5, Scale.RAW),
        precise=precise,
        rescore_depth=1,
    )
    some, every = scored_topk(shelf, first, ranker, 1), scored_topk(shelf, first, ranker, 3)
    assert [hit.document.doc_id for hit in some.hits()] == ["d2"]
    assert some.hits() == every.hits()[:1]


def test_rescoring_without_candidates() -> None:
    """The result is empty and exact."""
    ranker = Ranker(Coarse(), precise=Written())
    scoring = scored_topk(Shelf([]), Ranking.of([], []), ranker, 10)
    assert (scoring.hits(), scoring.stats.exact) == ([], True)


class Broken(Written):
    """Returns NaN for every segment."""

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        return np.full(len(token_ids), np.nan, np.float32)


def test_nan_scores_are_refused() -> None:
    """Otherwise a document with NaN would stay unscored, and scoring would never end."""
    shelf = Shelf([[0.5], [0.5]])
    with pytest.raises(InputError, match="document d0 is not a finite number"):
        scored_topk(shelf, Ranking.of(["d0"], [1.0]), Ranker(Broken(), Windows(1, 0)), 1)


class Slow(Shelf):
    """Takes ten seconds of a simulated clock to fetch a document."""

    def __init__(self, documents: Sequence[Sequence[float]], clock: Written) -> None:
        super().__init__(documents)
        self.clock = clock

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        self.clock.now += 10 * len(doc_ids)
        return super().documents(doc_ids)


def test_documents_are_fetched_one_by_one_under_a_deadline() -> None:
    """The deadline is checked after each fetched document."""
    scorer = Written()
    shelf = Slow([[0.5]] * 20, scorer)
    first = Ranking.of(list(shelf.texts), np.linspace(2, 1, 20))
    ranker = Ranker(scorer, Windows(1, 0))
    scoring = TopKScoring(RankerReaders(shelf, ranker), QUERY, first, 10)
    scoring.run(Deadline(15, lambda: scorer.now))
    assert scorer.now == 20
    assert not scoring.stats.exact


def test_cached_scores_do_not_affect_the_speed_estimate(tmp_path: Path) -> None:
    """They take no time; counting them would make the next batch too large."""
    scorer, shelf = Written(), Shelf([[0.9 + i * 1e-6 for i in range(300)], []])
    shelf.texts["d1"] = " ".join(f"1:{j}:{0.1 + j * 1e-6!r}" for j in range(900))
    first = Ranking.of(["d0", "d1"], [2.0, 1.0])
    with ScoreStore(tmp_path, scorer) as store:
        ranker = Ranker(CachedScorer(scorer, store), Windows(1, 0))
        scored_topk(shelf, first.head(1), ranker, 1)
        scorer.now = 0.0

        def clock() -> float:
            scorer.now += 1e-4
            return scorer.now

        scoring = TopKScoring(RankerReaders(shelf, ranker), QUERY, first, 2)
        scoring.run(Deadline(20, clock))
    assert not scoring.stats.exact
    assert 15 < scorer.now <= 20


@pytest.mark.parametrize("seconds", [30, 100, 190, 400, 1000])
def test_completely_scored_documents_count_after_a_timeout(seconds: float) -> None:
    """Documents are scored one after another, so that no completed score is lost."""
    scorer = Written()
    shelf = Shelf([[0.001 * (i + 20 * j) for i in range(20)] for j in range(10)])
    first = Ranking.of(list(shelf.texts), np.linspace(2, 1, 10))
    scoring = TopKScoring(RankerReaders(shelf, Ranker(scorer, Windows(1, 0))), QUERY, first, 10)
    scoring.run(Deadline(seconds, lambda: scorer.now))
    assert scorer.now <= seconds
    assert scoring.stats.scored >= (scorer.now - 1) // 20  # seconds, segments per document
    scored = [hit.document.doc_id for hit in scoring.hits() if hit.scored]
    assert sorted(scored) == [f"d{i}" for i in range(scoring.stats.scored)]
