"""Do all processes together learn each list once an epoch, at the rate that was asked for?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_trainings import some_pairs

from birchbark.collection.pairs import Columns
from birchbark.errors import InputError
from birchbark.train.config import Aim, DataSet, Schedule
from birchbark.train.course import Course
from birchbark.train.examples import Draw, Pairs
from birchbark.train.material import Material, PairInputs
from birchbark.train.objectives import Objective

SCHEDULE = Schedule(2, None, 3, 1, 0.5, 0.0, True, 0.01, 1.0, "fp32", None)


def material(name: str, queries: int, how: Draw = Draw(), texts: int = 5) -> Material:
    """A data set whose texts nobody reads."""
    pairs = Pairs.of(some_pairs(queries, texts))
    data = DataSet(
        *(
            name,
            ("pairs.tsv",),
            False,
            False,
            "",
            "whole",
            16,
            Columns(),
            1,
            None,
            False,
            "",
            None,
            0.0,
            None,
            how,
        ),
        *((Aim(Objective()),), 1.0),
    )
    inputs = PairInputs(pairs, (), (), None, 0, 0)  # type: ignore[arg-type]
    return Material(data, inputs, (pairs.grades,), inputs)


MATERIALS = [material("a", 4), material("b", 6, Draw("positive", 3))]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("processes", [1, 3])
def test_an_epoch_holds_every_list_once(accumulate: int, processes: int) -> None:
    """Of every data set; the next epoch holds them in another order."""
    schedule = replace(SCHEDULE, accumulate=accumulate)
    course = Course(MATERIALS, schedule, 7, processes)
    size = 3 * accumulate * processes
    assert course.epoch == -(-26 // size)
    assert course.steps == 2 * course.epoch
    epochs = [
        [task for step in range(course.epoch) for task in course.tasks(epoch * course.epoch + step)]
        for epoch in range(2)
    ]
    for tasks in epochs:
        assert sorted(lists[0] for number, lists in tasks if number == 0) == list(range(20))
        assert sorted(lists[0] for number, lists in tasks if number == 1) == list(range(0, 30, 5))
    assert epochs[0] != epochs[1]


def test_a_step_follows_from_seed_and_number() -> None:
    """Whatever was asked for before it: so a killed training goes on as it would have."""
    course = Course(MATERIALS, SCHEDULE, 7, 1)
    forwards = [course.tasks(step) for step in range(course.steps)]
    for step in (11, 3, 17, 0):
        assert Course(MATERIALS, SCHEDULE, 7, 1).tasks(step) == forwards[step]
    assert Course(MATERIALS, SCHEDULE, 8, 1).tasks(0) != forwards[0]


def test_twice_the_batch_is_two_processes() -> None:
    """Or two batches: the same lists in a step, in the same order."""
    twice = Course(MATERIALS, replace(SCHEDULE, batch=6), 7, 1)
    for other in (
        Course(MATERIALS, SCHEDULE, 7, 2),
        Course(MATERIALS, replace(SCHEDULE, accumulate=2), 7, 1),
    ):
        assert [other.tasks(n) for n in range(10)] == [twice.tasks(n) for n in range(10)]


def test_steps_may_end_within_an_epoch() -> None:
    """Or after several."""
    for steps in (1, 5, 30):
        schedule = replace(SCHEDULE, epochs=None, steps=steps)
        course = Course(MATERIALS, schedule, 7, 1)
        assert course.steps == steps
        assert course.tasks(steps - 1)


def rates(steps: int, **choices: object) -> list[float]:
    schedule = replace(SCHEDULE, epochs=None, steps=steps, **choices)  # type: ignore[arg-type]
    course = Course(MATERIALS, schedule, 0, 1)
    return [course.rate(step) for step in range(steps)]


def test_the_rate_rises_and_falls() -> None:
    """In equal steps: a share of all, or so many; above 0 in each."""
    np.testing.assert_allclose(rates(5), [0.5, 0.4, 0.3, 0.2, 0.1])
    expected = [0.125, 0.25, 0.375, 0.5, 0.375, 0.25, 0.125]
    np.testing.assert_allclose(rates(7, warmup=3), expected)
    np.testing.assert_allclose(rates(10, warmup=0.3), rates(10, warmup=3))
    np.testing.assert_allclose(rates(4, warmup=1, decay=False), [0.25, 0.5, 0.5, 0.5])
    for warmup in (0.0, 0.1, 0.33, 0.99, 1, 5, 100):
        found = rates(9, warmup=warmup)
        assert 0 < min(found) <= max(found) <= 0.5
        top = found.index(max(found))
        assert found == sorted(found[:top]) + sorted(found[top:], reverse=True)


def test_nothing_to_compare_is_told() -> None:
    """Where no query has texts of different grades."""
    lonely = material("lonely", 3, Draw("query", 2), texts=1)
    with pytest.raises(InputError, match=r"no lists to learn from.*lonely|lonely.*no lists"):
        Course([lonely], SCHEDULE, 0, 1)
    with pytest.raises(InputError, match="lonely"):
        Course([MATERIALS[0], lonely], SCHEDULE, 0, 1)
