"""Which lists are learnt from in which step, and how fast?

Both follow from seed and step alone, so a training that was killed goes on as it would have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.errors import InputError
from birchbark.train.config import Schedule
from birchbark.train.examples import List, Numbers, draw
from birchbark.train.material import Material

Task = tuple[int, List]  # a data set's number, and a list of its pairs


class Course:
    """All steps of a training.

    steps: their number. epoch: steps of an epoch, in which each data set's lists come once. lists:
    how many of each data set an epoch has.
    """

    def __init__(
        self, materials: Sequence[Material], schedule: Schedule, seed: int, processes: int
    ) -> None:
        """processes: how many learn together; each has a batch of its own.

        Raises InputError for a data set without lists: then no query's texts differ in grade.
        """
        self._materials, self.schedule, self._seed = materials, schedule, seed
        self._size = schedule.batch * schedule.accumulate * processes
        self._drawn, self._tasks = 0, self._draw(0)
        self.lists = np.bincount([number for number, _ in self._tasks], minlength=len(materials))
        self.epoch = -(-len(self._tasks) // self._size)
        self.steps = schedule.steps or self.epoch * (schedule.epochs or 1)

    def tasks(self, step: int) -> list[Task]:
        """What all processes learn from in `step`, counted from 0. An epoch's last may be short."""
        epoch, place = divmod(step, self.epoch)
        if epoch != self._drawn:
            self._drawn, self._tasks = epoch, self._draw(epoch)
        return self._tasks[place * self._size : (place + 1) * self._size]

    def learnt(self) -> list[Numbers]:
        """Of each data set the numbers of all pairs that are learnt from in any step."""
        found = [np.zeros(len(material.learnt.pairs), bool) for material in self._materials]
        for epoch in range(-(-self.steps // self.epoch)):
            left = (self.steps - epoch * self.epoch) * self._size
            for number, one in self._draw(epoch)[:left]:
                found[number][list(one)] = True
        return [np.flatnonzero(some) for some in found]

    def _draw(self, epoch: int) -> list[Task]:
        tasks = []
        for number, material in enumerate(self._materials):
            data, seed = material.data, (self._seed, epoch, number)
            if not (lists := draw(material.learnt.pairs, data.draw, seed, data.learns_from)):
                raise InputError(
                    "no lists to learn from",
                    where=data.name,
                    wanted="queries with texts to compare",
                    remedy='lists = { each = "pair" } needs none',
                )
            tasks += [(number, one) for one in lists]
        order = np.random.default_rng((self._seed, epoch)).permutation(len(tasks))
        return [tasks[i] for i in order]

    def rate(self, step: int) -> float:
        """The learning rate of `step`: rises linearly, then falls to 0 at the end, or stays."""
        how = self.schedule
        warm = how.warmup * self.steps if how.warmup < 1 else how.warmup
        if step < warm:
            return how.rate * (step + 1) / (warm + 1)
        left = (self.steps - step) / max(1.0, self.steps - warm)
        return how.rate * (left if how.decay else 1.0)
