"""Which lists does a training step use, and at which learning rate?

Both depend on seed and step alone, so a resumed training run continues as if never interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.errors import InputError
from birchbark.pairs.pair_table import Indices
from birchbark.train.config import Schedule
from birchbark.train.dataset import TokenisedDataSet
from birchbark.train.lists import PairList, sample_lists

SampledList = tuple[int, PairList]  # (index of a data set, list of its pairs)


class Sampler:
    """Samples the lists of every step.

    steps: the number of steps of the training run.
    steps_per_epoch: the number of steps that use each list of an epoch once.
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
        Raises InputError if a data set yields no lists, usually because no query has texts of
        different grades.
        """
        self._datasets, self.schedule, self._seed = datasets, schedule, seed
        self._lists_per_step = schedule.batch * schedule.accumulate * processes
        self._epoch, self._lists = 0, self._sample_epoch(0)
        set_indices = [index for index, _ in self._lists]
        self.lists_per_epoch = np.bincount(set_indices, minlength=len(datasets))
        self.steps_per_epoch = -(-len(self._lists) // self._lists_per_step)
        self.steps = schedule.steps or self.steps_per_epoch * (schedule.epochs or 1)

    def lists_at(self, step: int) -> list[SampledList]:
        """Return the lists of all processes for `step`, counted from 0.

        The last step of an epoch may have fewer lists than the others.
        """
        epoch, step_of_epoch = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._lists = epoch, self._sample_epoch(epoch)
        start = step_of_epoch * self._lists_per_step
        return self._lists[start : start + self._lists_per_step]

    def sampled_pairs(self) -> list[Indices]:
        """Return, per data set, the ascending indices of all pairs that any step uses."""
        sampled = [np.zeros(len(dataset.training_pairs.pairs), bool) for dataset in self._datasets]
        for epoch in range(-(-self.steps // self.steps_per_epoch)):
            remaining = (self.steps - epoch * self.steps_per_epoch) * self._lists_per_step
            for index, pair_list in self._sample_epoch(epoch)[:remaining]:
                sampled[index][list(pair_list)] = True
        return [np.flatnonzero(mask) for mask in sampled]

    def _sample_epoch(self, epoch: int) -> list[SampledList]:
        sampled: list[SampledList] = []
        for index, dataset in enumerate(self._datasets):
            config, seed = dataset.config, (self._seed, epoch, index)
            pairs = dataset.training_pairs.pairs
            if not (lists := sample_lists(pairs, config.lists, seed, config.has_gradient)):
                raise InputError(
                    "no lists to train on",
                    where=config.name,
                    wanted="queries with texts of different grades",
                    remedy='use lists = { each = "pair" }, which compares no texts',
                )
            sampled += [(index, pair_list) for pair_list in lists]
        order = np.random.default_rng((self._seed, epoch)).permutation(len(sampled))
        return [sampled[i] for i in order]

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of `step`: linear warm-up, then linear decay or constant."""
        schedule = self.schedule
        warmup = schedule.warmup * self.steps if schedule.warmup < 1 else schedule.warmup
        if step < warmup:
            return schedule.learning_rate * (step + 1) / (warmup + 1)
        remaining = (self.steps - step) / max(1.0, self.steps - warmup)
        return schedule.learning_rate * (remaining if schedule.decay else 1.0)
