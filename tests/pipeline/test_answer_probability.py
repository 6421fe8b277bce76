"""Does a hit's probability follow from its scores, and is an answer without one told?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.index import Index
from birchbark.pipeline.answers.answer import Answer, Hit, SearchStats
from birchbark.pipeline.answers.answer_probability import UNLIKELY, answer_probability
from birchbark.pipeline.answers.search_notes import NO_ANSWER, probably_unanswered, search_notes
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.query_language import literal_query
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences
from conftest import DOCUMENTS

SCORES = st.floats(0, 1)


@pytest.fixture
def ranker(bert: Callable[..., Path]) -> Ranker:
    return Ranker(
        load_scorer(bert(labels=1)),
        sentences,
        embedding=load_scorer(bert(seed=2)),
        plan=ReadingPlan(segments=1, pairs=1),
    )


def hit(probability: float | None) -> Hit:
    return Hit(DOCUMENTS[0], 1.0, 1.0, 0.0, (), probability=probability)


@given(SCORES, SCORES, SCORES)
def test_it_rises_with_both_scores(low: float, high: float, other: float) -> None:
    """It lies between 0 and 1, also for scores of exactly 0 and 1."""
    low, high = sorted([low, high])
    assert 0 < answer_probability(low, other) <= answer_probability(high, other) < 1
    assert answer_probability(other, low) <= answer_probability(other, high)


def test_the_threshold_divides_good_from_bad_scores() -> None:
    """A passage that the cross-encoder likes is an answer, and one that both reject is none."""
    assert answer_probability(0.7, 0.6) > 0.5 > UNLIKELY > answer_probability(0.05, 0.2)


def test_hits_have_it_if_they_were_read(index: Index, ranker: Ranker) -> None:
    """It comes from the best passage and from the embedding's evidence without its weight."""
    hits = search(IndexEngine(index), "birch river", ranker, 5).hits
    read = [one for one in hits if one.scored]
    assert read
    assert len(read) < len(hits)
    for one in read:
        best = max(segment.score for segment in one.segments)
        expected = answer_probability(best, one.embedding / (0.8 * 0.5))
        assert one.probability == pytest.approx(expected)
    assert all(one.probability is None for one in hits if not one.scored)


def test_it_is_not_known_without_an_embedding(index: Index, ranker: Ranker) -> None:
    """It is not known either if the embedding ranks alone."""
    for other in (
        replace(ranker, embedding=None),
        replace(ranker, embedding_weight=0.0),
        Ranker(ranker.embedding or ranker.scorer, sentences),
    ):
        hits = search(IndexEngine(index), "birch river", other).hits
        assert {one.probability for one in hits} == {None}


def answer(*probabilities: float | None, exact: bool = True) -> Answer:
    """Return an answer whose hits have these probabilities."""
    return Answer(tuple(map(hit, probabilities)), SearchStats(exact=exact))


def test_an_improbable_best_hit_is_told(index: Index) -> None:
    """It is told whatever the others are; nothing is told if the probability is not known."""
    low, high = UNLIKELY - 0.01, UNLIKELY
    assert probably_unanswered(answer(low, high))
    assert not probably_unanswered(answer(high, low))
    assert not probably_unanswered(answer(None))
    assert not probably_unanswered(answer())
    birch = literal_query("birch")
    assert search_notes(index, birch, {}, answer(low), by_terms=True) == [NO_ANSWER]
    assert search_notes(index, birch, {}, answer(high), by_terms=True) == []


def test_nothing_is_told_before_everything_was_read(index: Index) -> None:
    """What was not read may answer the query."""
    partial = answer(UNLIKELY - 0.01, exact=False)
    assert not probably_unanswered(partial)
    assert search_notes(index, literal_query("birch"), {}, partial, by_terms=True) == []


def test_hits_are_cut_by_it() -> None:
    """An unknown probability counts as none."""
    whole = answer(0.5, None, 0.2)
    assert [one.probability for one in whole.above(0.3).hits] == [0.5]
    assert [one.probability for one in whole.above(0.0).hits] == [0.5, 0.2]


def test_the_probability_is_that_of_the_regression() -> None:
    """Passages count from 0.0001 to 0.9999, and the embedding's evidence up to 1."""
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731
    assert answer_probability(0.5, 0.0) == pytest.approx(sigmoid(-1.09))
    expected = sigmoid(0.75 * math.log(4) + 1.1 * 0.5 - 1.09)
    assert answer_probability(0.8, 0.5) == pytest.approx(expected)
    assert answer_probability(0.5, 2.0) == pytest.approx(sigmoid(1.1 - 1.09))
    assert answer_probability(0.0, 0.0) == pytest.approx(sigmoid(-0.75 * math.log(9999) - 1.09))
    assert answer_probability(1.0, 0.0) == pytest.approx(sigmoid(0.75 * math.log(9999) - 1.09))
