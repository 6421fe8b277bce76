"""Do all processes together use each list once per epoch, at the configured learning rate?"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from prepared import table_of
from tiny_trainings import some_pairs

from birchbark.errors import InputError
from birchbark.pairs.sources import PairSource
from birchbark.train.config import DataSetConfig, LossTerm, Schedule
from birchbark.train.dataset import PairInputs, TokenisedDataSet
from birchbark.train.lists import ListSampling, sample_lists
from birchbark.train.objectives import Objective
from birchbark.train.sampler import Sampler

SCHEDULE = Schedule(2, None, 3, 1, 0.5, 0.0, True, 0.01, 1.0, "fp32", 1000, False, None)


def dataset(
    name: str, queries: int, lists: ListSampling = ListSampling(), texts: int = 5, highest: int = 1
) -> TokenisedDataSet:
    """Return a data set whose texts are not tokenised."""
    pairs = table_of(some_pairs(queries, texts, highest))
    config = DataSetConfig(
        name=name,
        source=PairSource(("pairs.tsv",)),
        segments="whole",
        passages=16,
        licence="",
        chunk=None,
        validation=0.0,
        validation_queries=None,
        lists=lists,
        loss_terms=(LossTerm(Objective()),),
        weight=1.0,
    )
    inputs = PairInputs(pairs, (), (), np.zeros(0), np.zeros(0), None, 0, 0)  # type: ignore[arg-type]
    return TokenisedDataSet(config, inputs, (pairs.grades,), inputs, Path())


DATASETS = [dataset("a", 4), dataset("b", 6, ListSampling("positive", 3))]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("processes", [1, 3])
def test_an_epoch_uses_every_list_once(accumulate: int, processes: int) -> None:
    """This holds for the lists of every data set; the next epoch has a different order."""
    schedule = replace(SCHEDULE, accumulate=accumulate)
    sampler = Sampler(DATASETS, schedule, 7, processes)
    size = 3 * accumulate * processes
    assert sampler.steps_per_epoch == -(-26 // size)
    assert sampler.steps == 2 * sampler.steps_per_epoch
    epochs = [
        [
            sampled
            for step in range(sampler.steps_per_epoch)
            for sampled in sampler.lists_at(epoch * sampler.steps_per_epoch + step)
        ]
        for epoch in range(2)
    ]
    for epoch in epochs:
        assert sorted(lists[0] for number, lists in epoch if number == 0) == list(range(20))
        assert sorted(lists[0] for number, lists in epoch if number == 1) == list(range(0, 30, 5))
    assert epochs[0] != epochs[1]


def test_every_epoch_is_shuffled() -> None:
    """The lists of one data set do not all precede those of another."""
    sampler = Sampler(DATASETS, replace(SCHEDULE, epochs=4), 7, 1)
    for epoch in range(4):
        first = epoch * sampler.steps_per_epoch
        steps = range(first, first + sampler.steps_per_epoch)
        numbers = [number for step in steps for number, _ in sampler.lists_at(step)]
        assert numbers != sorted(numbers)


def test_a_step_depends_on_seed_and_number_alone() -> None:
    """It does not depend on earlier steps, so a resumed run uses the same lists."""
    sampler = Sampler(DATASETS, SCHEDULE, 7, 1)
    forwards = [sampler.lists_at(step) for step in range(sampler.steps)]
    for step in (11, 3, 17, 0):
        assert Sampler(DATASETS, SCHEDULE, 7, 1).lists_at(step) == forwards[step]
    assert Sampler(DATASETS, SCHEDULE, 8, 1).lists_at(0) != forwards[0]


def test_two_processes_equal_twice_the_batch() -> None:
    """Two accumulated batches equal it, too: a step has the same lists, in the same order."""
    twice = Sampler(DATASETS, replace(SCHEDULE, batch=6), 7, 1)
    for other in (
        Sampler(DATASETS, SCHEDULE, 7, 2),
        Sampler(DATASETS, replace(SCHEDULE, accumulate=2), 7, 1),
    ):
        assert [other.lists_at(n) for n in range(10)] == [twice.lists_at(n) for n in range(10)]


def test_a_training_can_end_within_an_epoch() -> None:
    """It can also end after several epochs."""
    for steps in (1, 5, 30):
        schedule = replace(SCHEDULE, epochs=None, steps=steps)
        sampler = Sampler(DATASETS, schedule, 7, 1)
        assert sampler.steps == steps
        assert sampler.lists_at(steps - 1)


def rates(steps: int, **choices: object) -> list[float]:
    schedule = replace(SCHEDULE, epochs=None, steps=steps, **choices)  # type: ignore[arg-type]
    sampler = Sampler(DATASETS, schedule, 0, 1)
    return [sampler.learning_rate(step) for step in range(steps)]


def test_the_learning_rate_rises_and_falls() -> None:
    """It changes linearly and stays above 0; warm-up is a share or a number of steps."""
    np.testing.assert_allclose(rates(5), [0.5, 0.4, 0.3, 0.2, 0.1])
    expected = [0.125, 0.25, 0.375, 0.5, 0.375, 0.25, 0.125]
    np.testing.assert_allclose(rates(7, warmup=3), expected)
    np.testing.assert_allclose(rates(10, warmup=0.3), rates(10, warmup=3))
    np.testing.assert_allclose(rates(4, warmup=1, decay=False), [0.25, 0.5, 0.5, 0.5])
    for warmup in (0.0, 0.1, 0.33, 0.99, 1, 5, 100):
        values = rates(9, warmup=warmup)
        assert 0 < min(values) <= max(values) <= 0.5
        top = values.index(max(values))
        assert values == sorted(values[:top]) + sorted(values[top:], reverse=True)


def test_a_data_set_without_lists_is_refused() -> None:
    """It has no query with texts of different grades."""
    lonely = dataset("lonely", 3, ListSampling("query", 2), texts=1)
    with pytest.raises(InputError, match=r"lonely: no lists to train on"):
        Sampler([lonely], SCHEDULE, 0, 1)
    with pytest.raises(InputError, match="lonely"):
        Sampler([DATASETS[0], lonely], SCHEDULE, 0, 1)


def test_a_data_set_may_lack_lists_in_a_later_epoch() -> None:
    """The texts that are drawn then have equal grades; the lists of others are used twice."""
    terms = (LossTerm(Objective("softmax")),)
    few = dataset("few", 1, ListSampling("query", 2), texts=3)
    few = replace(few, config=replace(few.config, loss_terms=terms))
    pairs, gradient = few.training_pairs.pairs, few.config.has_gradient
    counts = [len(sample_lists(pairs, few.config.lists, (5, n, 1), gradient)) for n in range(9)]
    assert counts[0] and 0 in counts
    sampler = Sampler([DATASETS[0], few], replace(SCHEDULE, epochs=9), 5, 1)
    lists = [sampler.lists_at(step) for step in range(sampler.steps)]
    assert all(lists)
    per_epoch = sampler.steps_per_epoch
    for epoch, count in enumerate(counts):
        of_epoch = lists[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sum(map(len, of_epoch)) == 20 + counts[0]
        assert any(of == 1 for step in of_epoch for of, _ in step) == (count > 0)
    used = {pair for step in lists for of, own in step if of == 1 for pair in own}
    assert sampler.sampled_pairs(range(sampler.steps))[1].tolist() == sorted(used)
    with pytest.raises(InputError, match="few: no lists to train on"):
        alone = Sampler([few], replace(SCHEDULE, epochs=99), 5, 1)
        for step in range(alone.steps):
            alone.lists_at(step)


def test_every_step_has_lists() -> None:
    """Lists with equal grades are left out, in one epoch more than in another."""
    terms = (LossTerm(Objective("softmax")),)
    data = dataset("a", 5, ListSampling("query", 2), texts=6, highest=2)
    data = replace(data, config=replace(data.config, loss_terms=terms))
    sampler = Sampler([data], replace(SCHEDULE, epochs=40, batch=1), 1, 1)
    has_gradient = data.config.has_gradient
    counts = {
        len(sample_lists(data.training_pairs.pairs, data.config.lists, (1, epoch, 0), has_gradient))
        for epoch in range(40)
    }
    assert len(counts) > 1
    assert sampler.steps == 40 * sampler.steps_per_epoch
    lists = [sampler.lists_at(step) for step in range(sampler.steps)]
    assert all(len(of_step) == 1 for of_step in lists)
    used = {pair for of_step in lists for _, pairs in of_step for pair in pairs}
    assert sampler.sampled_pairs(range(sampler.steps))[0].tolist() == sorted(used)


def test_data_sets_and_epochs_are_sampled_independently() -> None:
    """Two data sets of the same pairs have other negatives, and lists of both another order."""
    same = dataset("same", 9, ListSampling("positive", 2))
    sampler = Sampler([same, same], SCHEDULE, 7, 1)
    negatives, orders = [], []
    for epoch in range(2):
        steps = range(epoch * sampler.steps_per_epoch, (epoch + 1) * sampler.steps_per_epoch)
        lists = [sampled for step in steps for sampled in sampler.lists_at(step)]
        orders.append([number for number, _ in lists])
        negatives += [dict(pairs for n, pairs in lists if n == number) for number in range(2)]
    assert orders[0] != orders[1]
    assert [len(of_one) for of_one in negatives] == [9] * 4
    assert all(one != other for one, other in combinations(negatives, 2))
