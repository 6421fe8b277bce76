"""How is a network trained? Step by step: draw lists, score their texts, follow the gradient.

AdamW, with decay on matrices alone; the learning rate rises and falls linearly; gradients are
clipped. Kingma & Ba 2015; Loshchilov & Hutter 2019; Devlin et al. 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import LossError
from birchbark.records import Ids
from birchbark.train.course import Course, Task
from birchbark.train.examples import List
from birchbark.train.matching import Matcher
from birchbark.train.material import Material
from birchbark.train.network import Inputs, Network, States
from birchbark.train.objectives import Objective
from birchbark.train.world import World

Units = list[tuple[Ids, Ids]]  # what is read for one logit
Read = tuple[list[Units], list[NDArray[Any]]]  # of a list: each logit's inputs, targets of each aim
TOKENS = 16_384  # that gradients are held for at once; 4,096 of six layers of 384 held 1.5 GB
MEASURED = 8_192  # tokens of a batch without gradients
BETAS, EPSILON = (0.9, 0.999), 1e-8


class Learner:
    """A network with its optimiser, which can be stopped and taken up between any two steps."""

    def __init__(
        self,
        network: Network,
        materials: Sequence[Material],
        course: Course,
        world: World,
        matcher: Matcher | None = None,
    ) -> None:
        """The network's weights are changed in place; their device is where all is computed."""
        import torch

        self.network, self._materials, self._course, self._world = network, materials, course, world
        self._matcher = matcher
        self._schedule = course.schedule
        self.learning = {n: w for n, w in network.weights.items() if w.requires_grad}
        self.learning |= matcher.projections if matcher else {}
        self.device = next(iter(network.weights.values())).device
        matrices = [w for w in self.learning.values() if w.ndim > 1]
        vectors = [w for w in self.learning.values() if w.ndim < 2]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": self._schedule.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=self._schedule.rate,
            betas=BETAS,
            eps=EPSILON,
            fused=True,
        )

    def step(self, number: int, seed: int) -> float:
        """Learn from the lists of step `number`; the mean loss of a list before it.

        seed: of dropout. Raises LossError for a loss or gradient that is no number, before any
        weight is changed.
        """
        import torch

        torch.manual_seed(_mixed(seed, number, self._world.rank))
        tasks = self._course.tasks(number)
        mine = tasks[self._world.rank :: self._world.size]
        total = torch.zeros((), device=self.device)
        for start in range(0, len(mine), self._schedule.batch):
            for some, read in self._parts(mine[start : start + self._schedule.batch]):
                loss = self._loss(some, read) / len(tasks)
                loss.backward()
                total += loss.detach()
        for weight in self.learning.values():
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        self._world.add_up([total, *(weight.grad for weight in self.learning.values())])
        norm = torch.nn.utils.clip_grad_norm_(list(self.learning.values()), self._schedule.clip)
        found = float(total)
        if not math.isfinite(found) or not math.isfinite(float(norm)):
            raise LossError(
                f"the loss of step {number + 1} is {found}, its gradient's norm {float(norm)}",
                wanted="numbers",
                remedy="lower schedule.learning_rate, or use precision fp32",
            )
        for group in self.optimiser.param_groups:
            group["lr"] = self._course.rate(number)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return found

    def _parts(self, batch: Sequence[Task]) -> Iterator[tuple[list[Task], list[Read]]]:
        """The lists of a batch that are computed together, and what is read for them.

        All of them, unless they have more tokens than memory should hold: documents of many
        passages do. The gradient is the sum over lists either way.
        """
        tasks: list[Task] = []
        read: list[Read] = []
        held = 0
        for task in batch:
            own = self._read(*task)
            tokens = sum(len(ids) for units in own[0] for ids, _ in units)
            if tasks and held + tokens > TOKENS:
                yield tasks, read
                tasks, read, held = [], [], 0
            tasks.append(task)
            read.append(own)
            held += tokens
        yield tasks, read

    def _loss(self, tasks: Sequence[Task], read: Sequence[Read]) -> Any:
        """The sum over lists of their weighted losses."""
        import torch

        several = [own for units, _ in read for own in units]
        pairs, counts = [pair for own in several for pair in own], list(map(len, several))
        inputs = Inputs.of(pairs, self.device, counts)
        states = States() if self._matcher else None
        ends = np.cumsum([len(units) for units, _ in read])
        total = torch.zeros((), device=self.device)
        with self.products():
            logits = self.network.learn(inputs, states)
            if self._matcher and states:
                apart = self._matcher.losses(inputs, states)
                shares = [
                    self._materials[m].data.weight / count
                    for (m, _), (units, _) in zip(tasks, read, strict=True)
                    for count in [sum(map(len, units))]
                    for _ in range(count)
                ]
                total = total + (apart * torch.tensor(shares, device=self.device)).sum()
        for number, material in enumerate(self._materials):
            chosen = [i for i, (m, _) in enumerate(tasks) if m == number]
            if chosen:
                lists = [np.arange(ends[i] - len(read[i][0]), ends[i]) for i in chosen]
                for place, aim in enumerate(material.data.aims):
                    targets = [read[i][1][place] for i in chosen]
                    losses = list_losses(aim.objective, logits, lists, targets)
                    total = total + material.data.weight * aim.weight * losses.sum()
        return total

    def _read(self, number: int, one: List) -> Read:
        """Inputs of each text of a list, or of each comparison of two; and targets of each aim."""
        material = self._materials[number]
        if not self.network.form.duo:
            return [material.learnt[n] for n in one], [t[list(one)] for t in material.targets]
        grades = material.targets[0]
        both = [(i, j) for i in one for j in one if grades[i] != grades[j]]
        labels = np.array([grades[i] > grades[j] for i, j in both], np.float32)
        return [[material.learnt.comparison(i, j)] for i, j in both], [labels]

    def products(self) -> AbstractContextManager[Any]:
        """Within it, matrix products are computed in the precision that was asked for."""
        import torch

        bf16 = self._schedule.precision == "bf16"
        products: AbstractContextManager[Any] = torch.autocast(
            self.device.type, torch.bfloat16, enabled=bf16
        )
        return products


def list_losses(
    objective: Objective, logits: Any, lists: Sequence[Any], targets: Sequence[Any]
) -> Any:
    """The loss of each list (lists,). lists: places of its texts in `logits`; targets: of each."""
    import torch

    width = max(map(len, lists))
    places = np.zeros((len(lists), width), np.int64)
    goals = np.zeros((len(lists), width), np.float32)
    mask = np.zeros((len(lists), width), bool)
    for row, (place, goal) in enumerate(zip(lists, targets, strict=True)):
        places[row, : len(place)], goals[row, : len(goal)] = place, goal
        mask[row, : len(place)] = True
    at, goal, there = (torch.from_numpy(x).to(logits.device) for x in (places, goals, mask))
    return objective.loss(logits[at], goal, there)


def _mixed(*numbers: int) -> int:
    """One seed from several, as numpy mixes them."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def in_batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Positions of inputs, shortest first, about `tokens` tokens at a time."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batch: list[int] = []
    count = 0
    for position in order:
        if batch and count + lengths[position] > tokens:
            yield batch
            batch, count = [], 0
        batch.append(position)
        count += lengths[position]
    if batch:
        yield batch
