"""Does the schedule say what is read next, by the table alone?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.pipeline.reading.candidates import Candidates
from birchbark.pipeline.reading.query_scoring import DocumentReading
from birchbark.pipeline.reading.schedule import Action, Progress, Rules, Step, next_step
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.records import Float32s, Ranking
from birchbark.segment.sentences import sentences
from conftest import WordScorer

RANKER = Ranker(WordScorer(), sentences, Top(), Interpolation(0.5, "minmax"))
RULES = Rules(RANKER, top=2, rounds=False)
PLANNED = Progress(vectors_compared=True, planned=True)


def table(count: int = 30, ranker: Ranker = RANKER) -> Candidates:
    """A table of candidates, best first."""
    names = [f"d{i:02}" for i in range(count)]
    return Candidates(ranker, Ranking.of(names, np.linspace(1, 0.5, count)))


def read(candidates: Candidates, position: int, *scores: float, of: int | None = None) -> None:
    """Have these scores read of a document with `of` segments."""
    values: Float32s = np.array(scores, np.float32)
    order = range(len(scores) if of is None else of)
    reading = DocumentReading([np.zeros(1, np.int32) for _ in order], order)
    reading.add(values)
    candidates.readings[position] = reading
    candidates.set_score(position, final=reading.complete)


def test_vectors_come_first_then_the_embedding_then_the_plan() -> None:
    """Each only while there is something to do, and time."""
    candidates, progress = table(), Progress()
    assert next_step(candidates, progress, RULES, passed=False) == Step(Action.VECTORS)
    progress.vectors_compared, progress.missing = True, [3, 4]
    assert next_step(candidates, progress, RULES, passed=True) == Step(Action.EMBED, (3, 4))
    progress.out_of_time.add(Action.EMBED)
    assert next_step(candidates, progress, RULES, passed=False) == Step(Action.PLAN)
    progress.out_of_time, progress.missing = set(), []
    assert next_step(candidates, progress, RULES, passed=False) == Step(Action.PLAN)


def test_in_rounds_the_first_page_is_read_before_all_is_embedded() -> None:
    """It is read after ten documents without vectors are embedded, from those that are known."""
    rules, candidates = replace(RULES, rounds=True), table()
    missing = list(range(5, 30))
    progress = Progress(vectors_compared=True, missing=missing[:], without_vectors=25)
    assert next_step(candidates, progress, rules, passed=False) == Step(
        Action.EMBED, tuple(missing[:10])
    )
    del progress.missing[:10]
    page = [*range(5), *range(5, 10)]
    assert next_step(candidates, progress, rules, passed=False) == Step(Action.PAGE, page, 1)
    progress.page_read = True
    assert next_step(candidates, progress, rules, passed=False) == Step(
        Action.EMBED, tuple(missing[10:])
    )


def test_documents_are_read_to_the_end_without_a_deadline() -> None:
    """As many are read ahead as make full batches, in the order of their bounds."""
    candidates = table()
    step = next_step(candidates, PLANNED, RULES, passed=False)
    assert step == Step(Action.READ, [0, 1])
    few = Rules(replace(RANKER, plan=ReadingPlan(segments=5)), top=2, rounds=False)
    step = next_step(candidates, PLANNED, few, passed=False)
    assert step == Step(Action.READ, list(range(12)))


def test_in_rounds_the_least_read_documents_come_first() -> None:
    """One segment of each is read."""
    candidates, rules = table(), replace(RULES, rounds=True)
    read(candidates, 0, 0.5, of=3)
    assert next_step(candidates, PLANNED, rules, passed=False) == Step(Action.READ, [1, 2], 1)
    for position in range(1, 30):
        read(candidates, position, 0.5, of=3)
    assert next_step(candidates, PLANNED, rules, passed=False) == Step(Action.READ, [0, 1], 1)


@pytest.mark.parametrize("rounds", [False, True])
def test_the_search_stops(rounds: bool) -> None:
    """It stops when time is up, or when no other document can be among the best."""
    candidates, rules = table(3), replace(RULES, rounds=rounds)
    assert next_step(candidates, PLANNED, rules, passed=True) == Step(Action.STOP)
    ended = replace(PLANNED, out_of_time={Action.READ})
    assert next_step(candidates, ended, rules, passed=True) is None
    for position in (0, 1):
        read(candidates, position, 1.0, 1.0, 1.0)
    assert next_step(candidates, PLANNED, rules, passed=False) is None
    candidates.readable[:] = False
    assert next_step(table(3), PLANNED, rules, passed=False) is not None


def test_the_best_are_rescored_once_and_only_if_nothing_is_missing() -> None:
    """As many are rescored as the ranker says."""
    precise = replace(RANKER, precise=WordScorer(), rescore_depth=2)
    candidates, rules = table(3, precise), replace(RULES, ranker=precise)
    for position, score in ((0, 0.1), (1, 1.0), (2, 0.9)):
        read(candidates, position, score, score, score)
    assert next_step(candidates, PLANNED, rules, passed=False) == Step(Action.RESCORE, [1, 2])
    for undone in (
        replace(PLANNED, rescored=True),
        replace(PLANNED, left_out=True),
        replace(PLANNED, out_of_time={Action.EMBED}),
    ):
        assert next_step(candidates, undone, rules, passed=False) is None
    candidates.split_in_time = False
    assert next_step(candidates, PLANNED, rules, passed=False) is None
