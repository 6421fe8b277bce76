"""Are the best found without scoring everything, and is an answer ready in time?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine.aggregate import Aggregation, First, Max, Mean, Sum, Top
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.combine.topk import TopK
from birchbark.errors import InputError
from birchbark.pipeline import race as module
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.records import Document, Float32s, Ids, Query, Ranking
from birchbark.remember.remembering import Remembering
from birchbark.remember.store import ScoreStore
from birchbark.segment.windows import Windows
from conftest import WordScorer

QUERY = Query("1", "birch")
SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3, 0.999, 1e-7])
AGGREGATIONS = [Top(), Top((0.2, 1.0)), Top((0.0, 1.0)), First(), Max(), Mean(), Sum()]


class Shelf:
    """Documents by id; each word is a segment, and says what its score is."""

    def __init__(self, documents: Sequence[Sequence[float]]) -> None:
        self.texts = {
            f"d{i}": " ".join(f"{i}:{j}:{score!r}" for j, score in enumerate(scores))
            for i, scores in enumerate(documents)
        }

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        return [Document(d, {"text": self.texts[d]}) for d in doc_ids]


class Written(WordScorer):
    """The score that is written in a segment; a segment takes a second."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        self.now += len(pieces)
        return np.array([float(self.text(p).split(":")[2]) for p in pieces], np.float32)


def raced(shelf: Shelf, first: Ranking, ranker: Ranker, top: int) -> Race:
    race = Race(Readers(shelf, ranker), QUERY, first, top)
    race.run()
    return race


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
    """Ids, order, scores and evidence; any a, weights, aggregation, scale and number of hits."""
    shelf, first, top = case
    ranker = Ranker(Written(), Windows(1, 0), aggregation, Interpolation(a, scale))
    some, every = raced(shelf, first, ranker, top), raced(shelf, first, ranker, len(first))
    assert some.hits() == every.hits()[:top]
    assert some.best() == every.best().head(top)
    assert some.work.exact and every.work.exact
    assert every.work.settled == len(first) >= some.work.settled
    assert some.work.pairs <= every.work.pairs


def test_what_cannot_be_among_the_best_is_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """With raw BM25 scores and a of .5 the first document settles it."""
    monkeypatch.setattr(module, "AHEAD", 1)
    scorer, shelf = Written(), Shelf([[1.0] * 3] * 50)
    first = Ranking.of(list(shelf.texts), np.linspace(40, 10, 50))
    ranker = Ranker(scorer, Windows(1, 0), interpolation=Interpolation(0.5, Scale.RAW))
    race = raced(shelf, first, ranker, 1)
    assert (race.work.settled, race.work.candidates, scorer.now) == (1, 50, 3)


@given(
    documents=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20),
    k=st.integers(1, 20),
)
def test_bounds_settle_the_k_best(documents: list[tuple[float, float]], k: int) -> None:
    """One after the other, as long as one is open."""
    scores = [min(pair) for pair in documents]
    names = [f"d{i:02}" for i in range(len(documents))]
    topk = TopK(names, [max(pair) for pair in documents], k)
    while waiting := topk.open():
        topk.settle(waiting[0], scores[waiting[0]])
    assert topk.best() == Ranking.of(names, scores, k)


def test_equal_bounds_are_open_as_the_tie_rule_may_prefer_them() -> None:
    """A document that can only equal the k-th best may still stand before it."""
    topk = TopK(["a", "b"], [0.5, 0.5], 1)
    topk.settle(0, 0.5)
    assert topk.open() == [1]
    topk.settle(1, 0.5)
    assert topk.best().doc_ids == ("b",)


@given(case=cases(), budget=st.integers(1, 40), a=st.sampled_from([0.0, 0.4, 0.9]))
def test_time_up_leaves_the_first_stage_order(
    case: tuple[Shelf, Ranking, int], budget: int, a: float
) -> None:
    """Settled documents have their true scores; the others follow as the first stage has them."""
    shelf, first, top = case
    scorer = Written()
    ranker = Ranker(scorer, Windows(1, 0), interpolation=Interpolation(a, Scale.MINMAX))
    truth = {h.document.doc_id: h for h in raced(shelf, first, ranker, len(first)).hits()}
    scorer.now = 0.0
    race = Race(Readers(shelf, ranker), QUERY, first, top)
    race.run(Deadline(budget, lambda: scorer.now))
    assert scorer.now <= max(budget, 12)  # nothing is begun that cannot end, but the first batch
    hits = race.hits()
    assert len(hits) == top
    settled = [h for h in hits if h.settled]
    assert hits[: len(settled)] == settled == [truth[h.document.doc_id] for h in settled]
    waiting = [h.document.doc_id for h in hits if not h.settled]
    assert waiting == [d for d in first.doc_ids if d in waiting]
    if race.work.exact:
        assert hits == raced(shelf, first, ranker, top).hits()


def test_without_time_the_first_stage_answers() -> None:
    """And the answer says so."""
    shelf = Shelf([[1.0], [0.5], [0.0]])
    first = Ranking.of(list(shelf.texts), [3.0, 2.0, 1.0])
    ranker = Ranker(Written())
    race = Race(Readers(shelf, ranker), QUERY, first, 2)
    race.run(Deadline(-1.0))
    assert [h.document.doc_id for h in race.hits()] == ["d0", "d1"]
    assert (race.work.exact, race.work.settled) == (False, 0)


class Coarse(Written):
    """Scores in steps of a quarter, rounded down."""

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        return np.floor(super().score(query, pieces) * 4).astype(np.float32) / 4


@given(case=cases(), reread=st.integers(1, 12), a=st.sampled_from([0.0, 0.4]))
def test_the_best_are_read_again_precisely(
    case: tuple[Shelf, Ranking, int], reread: int, a: float
) -> None:
    """What is shown of them are precise scores, and the order is that of their scores."""
    shelf, first, top = case
    coarse, precise = Coarse(), Written()
    precise._words = coarse._words
    ranker = Ranker(
        coarse, Windows(1, 0), interpolation=Interpolation(a), precise=precise, reread=reread
    )
    race = raced(shelf, first, ranker, top)
    hits = race.hits()
    assert race.work.exact
    assert len(hits) == top
    for place, hit in enumerate(hits):
        for e in hit.segments:
            true, found = float(e.segment.text.split(":")[2]), e.score
            assert found == np.float32(true) or found == np.floor(true * 4) / 4
            if reread >= len(first) and found > 0:
                assert found == np.float32(true)
        assert place == 0 or np.float32(hit.score) <= np.float32(hits[place - 1].score)
    assert precise.now <= 5 * reread
    alone = replace(ranker, precise=None)
    same = [h.document.doc_id for h in raced(shelf, first, alone, max(top, reread)).hits()]
    assert {h.document.doc_id for h in hits} <= set(same)


class Generous(Written):
    """Scores in steps of a quarter, rounded up."""

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        return np.ceil(super().score(query, pieces) * 4).astype(np.float32) / 4


@given(case=cases(), reread=st.integers(1, 4), a=st.sampled_from([0.0, 0.1, 0.4]))
def test_scores_that_fall_when_read_again_let_others_in(
    case: tuple[Shelf, Ranking, int], reread: int, a: float
) -> None:
    """The best are those of scoring everything, whichever way precise scores differ."""
    shelf, first, top = case
    coarse, precise = Generous(), Written()
    precise._words = coarse._words
    ranker = Ranker(
        coarse,
        Windows(1, 0),
        interpolation=Interpolation(a, Scale.RAW),
        precise=precise,
        reread=reread,
    )
    some, every = raced(shelf, first, ranker, top), raced(shelf, first, ranker, len(first))
    assert some.hits() == every.hits()[:top]


def test_a_document_read_again_may_fall_behind_one_that_was_not_read() -> None:
    """Its coarse score kept another out, its precise one does not."""
    coarse, precise = Generous(), Written()
    precise._words = coarse._words
    shelf = Shelf([[0.76], [0.0], [0.9]])
    first = Ranking.of(["d0", "d1", "d2"], [10.0, 9.99, 9.98])
    ranker = Ranker(
        coarse,
        Windows(1, 0),
        Max(),
        Interpolation(0.5, Scale.RAW),
        precise=precise,
        reread=1,
    )
    some, every = raced(shelf, first, ranker, 1), raced(shelf, first, ranker, 3)
    assert [hit.document.doc_id for hit in some.hits()] == ["d2"]
    assert some.hits() == every.hits()[:1]


def test_nothing_is_read_again_where_there_is_no_candidate() -> None:
    """The answer is empty, and exact."""
    ranker = Ranker(Coarse(), precise=Written())
    race = raced(Shelf([]), Ranking.of([], []), ranker, 10)
    assert (race.hits(), race.work.exact) == ([], True)


class Broken(Written):
    """Says nothing of a segment."""

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        return np.full(len(pieces), np.nan, np.float32)


def test_a_score_that_is_no_number_is_refused() -> None:
    """It would never be settled, and the race never end."""
    shelf = Shelf([[0.5], [0.5]])
    with pytest.raises(InputError, match="document d0 is not a finite number"):
        raced(shelf, Ranking.of(["d0"], [1.0]), Ranker(Broken(), Windows(1, 0)), 1)


class Slow(Shelf):
    """Each document takes ten seconds to fetch."""

    def __init__(self, documents: Sequence[Sequence[float]], clock: Written) -> None:
        super().__init__(documents)
        self.clock = clock

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        self.clock.now += 10 * len(doc_ids)
        return super().documents(doc_ids)


def test_a_budget_is_no_time_to_read_more_documents_than_one_by_one() -> None:
    """What reading takes is noticed after each document."""
    scorer = Written()
    shelf = Slow([[0.5]] * 20, scorer)
    first = Ranking.of(list(shelf.texts), np.linspace(2, 1, 20))
    ranker = Ranker(scorer, Windows(1, 0))
    race = Race(Readers(shelf, ranker), QUERY, first, 10)
    race.run(Deadline(15, lambda: scorer.now))
    assert scorer.now == 20
    assert not race.work.exact


def test_known_scores_say_nothing_of_speed(tmp_path: Path) -> None:
    """They take no time, and would make the next batch too large."""
    scorer, shelf = Written(), Shelf([[0.9 + i * 1e-6 for i in range(300)], []])
    shelf.texts["d1"] = " ".join(f"1:{j}:{0.1 + j * 1e-6!r}" for j in range(900))
    first = Ranking.of(["d0", "d1"], [2.0, 1.0])
    with ScoreStore(tmp_path, scorer) as store:
        ranker = Ranker(Remembering(scorer, store), Windows(1, 0))
        raced(shelf, first.head(1), ranker, 1)
        scorer.now = 0.0

        def clock() -> float:
            scorer.now += 1e-4
            return scorer.now

        race = Race(Readers(shelf, ranker), QUERY, first, 2)
        race.run(Deadline(20, clock))
    assert race.work.settled == 1
    assert scorer.now <= 20


@pytest.mark.parametrize("seconds", [30, 100, 190, 400, 1000])
def test_what_was_read_whole_counts_when_time_is_up(seconds: float) -> None:
    """Documents are read one after the other, so time that does not suffice for all is not lost."""
    scorer = Written()
    shelf = Shelf([[0.001 * (i + 20 * j) for i in range(20)] for j in range(10)])
    first = Ranking.of(list(shelf.texts), np.linspace(2, 1, 10))
    race = Race(Readers(shelf, Ranker(scorer, Windows(1, 0))), QUERY, first, 10)
    race.run(Deadline(seconds, lambda: scorer.now))
    assert scorer.now <= seconds
    assert race.work.settled >= (scorer.now - 1) // 20  # seconds, segments of a document
    settled = [hit.document.doc_id for hit in race.hits() if hit.settled]
    assert sorted(settled) == [f"d{i}" for i in range(race.work.settled)]
