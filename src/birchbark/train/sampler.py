"""Which lists does a training step use, and at which learning rate?

Both depend on seed and step alone, so a resumed training run continues as if never interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.pairs.pair_table import Groups, Indices
from birchbark.train.config import Schedule
from birchbark.train.dataset import TokenisedDataSet
from birchbark.train.lists import sample_lists

SampledList = tuple[int, tuple[int, ...]]  # (index of a data set, pairs of one query)


@dataclass(frozen=True, slots=True, eq=False)
class _Epoch:
    """The lists of all data sets in one epoch, and their order.

    ends: where each data set's lists end among all lists (data sets,). order: indices of
    the lists that are used, as many as in the first epoch.
    """

    by_dataset: Sequence[Groups]
    ends: NDArray[np.int64]
    order: NDArray[np.int32]

    def lists(self, start: int, stop: int) -> list[SampledList]:
        """Return the lists from `start` to `stop` in this order."""
        indices = self.order[start:stop]
        sets = np.searchsorted(self.ends, indices, side="right").tolist()
        return [
            (of, tuple(self.by_dataset[of][i].tolist()))
            for of, i in zip(sets, indices - self._firsts[sets], strict=True)
        ]

    @property
    def _firsts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], self.ends[:-1]])

    def sampled_pairs(self, start: int, stop: int) -> list[Indices]:
        """Return, per data set, the pairs of the lists from `start` to `stop` as they occur."""
        sampled = []
        is_used = np.zeros(int(self.ends[-1]), bool)
        is_used[self.order[start:stop]] = True
        for lists, used in zip(self.by_dataset, np.split(is_used, self.ends[:-1]), strict=True):
            sampled.append(lists.members[np.repeat(used, np.diff(lists.ends, prepend=0))])
        return sampled


class Sampler:
    """Samples the lists of every step.

    steps: the number of steps of the training run.
    steps_per_epoch: the number of steps that use each list of the first epoch once. Another epoch
    may have fewer lists, since those without different grades are left out; some are then used
    twice. If it has more, some are left out.
    lists_per_epoch: the number of lists of each data set in an epoch, (data sets,).
    """

    def __init__(
        self,
        datasets: Sequence[TokenisedDataSet],
        schedule: Schedule,
        seed: int,
        processes: int,
    ) -> None:
        """Sample the first epoch.

        processes: the number of processes, each of which has a separate batch.
        Raises InputError if a data set yields no lists in it, usually because no query has texts of
        different grades.
        """
        self._datasets, self.schedule, self._seed = datasets, schedule, seed
        self._lists_per_step = schedule.batch * schedule.accumulate * processes
        self._count = 0  # of the lists of an epoch; 0 until it is known
        self._epoch, self._lists = 0, self._sample_epoch(0)
        self._count = len(self._lists.order)
        self.lists_per_epoch = np.diff(self._lists.ends, prepend=0)
        self.steps_per_epoch = -(-len(self._lists.order) // self._lists_per_step)
        self.steps = schedule.steps or self.steps_per_epoch * (schedule.epochs or 1)

    def lists_at(self, step: int) -> list[SampledList]:
        """Return the lists of all processes for `step`, counted from 0.

        The last step of an epoch may have fewer lists than the others.
        """
        epoch, step_of_epoch = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._lists = epoch, self._sample_epoch(epoch)
        start = step_of_epoch * self._lists_per_step
        return self._lists.lists(start, start + self._lists_per_step)

    def sampled_pairs(self, steps: range) -> list[Indices]:
        """Return, per data set, the ascending indices of all pairs that one of these steps uses."""
        sampled = [np.zeros(len(dataset.training_pairs.pairs), bool) for dataset in self._datasets]
        per_epoch = self.steps_per_epoch
        for epoch in range(steps.start // per_epoch, -(-steps.stop // per_epoch)):
            first, end = (
                max(0, step - epoch * per_epoch) * self._lists_per_step
                for step in (steps.start, min(steps.stop, (epoch + 1) * per_epoch))
            )
            pairs = self._sample_epoch(epoch).sampled_pairs(first, end)
            for is_sampled, indices in zip(sampled, pairs, strict=True):
                is_sampled[indices] = True
        return [np.flatnonzero(mask) for mask in sampled]

    def _sample_epoch(self, epoch: int) -> _Epoch:
        """Sample an epoch.

        A data set without lists is refused in the first one; later, only if no data set has any.
        """
        by_dataset = []
        for index, dataset in enumerate(self._datasets):
            config, seed = dataset.config, (self._seed, epoch, index)
            pairs = dataset.training_pairs.pairs
            by_dataset.append(sample_lists(pairs, config.lists, seed, config.has_gradient))
        ends = np.cumsum([len(lists) for lists in by_dataset])
        without = [index for index, lists in enumerate(by_dataset) if not lists]
        if without and (epoch == 0 or not ends[-1]):
            raise InputError(
                "no lists to train on",
                where=self._datasets[without[0]].config.name,
                wanted="queries with texts of different grades",
                remedy='use lists = { each = "pair" }, which compares no texts',
            )
        order = np.random.default_rng((self._seed, epoch)).permutation(int(ends[-1]))
        order = np.resize(order, self._count or len(order))
        return _Epoch(by_dataset, ends, order.astype(np.int32))

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of `step`: linear warm-up, then linear decay or constant."""
        schedule = self.schedule
        warmup = schedule.warmup * self.steps if schedule.warmup < 1 else schedule.warmup
        if step < warmup:
            return schedule.learning_rate * (step + 1) / (warmup + 1)
        remaining = (self.steps - step) / max(1.0, self.steps - warmup)
        return schedule.learning_rate * (remaining if schedule.decay else 1.0)
