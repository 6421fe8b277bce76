"""How does a network learn to say which tokens were hidden from it, and how well does it?

As `Learner`, but what is read of a text is hidden anew each time, and the loss is that of the
tokens that were there: of each text the mean over its hidden ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from birchbark.records import Float32s
from birchbark.train.course import Course, Task
from birchbark.train.examples import List
from birchbark.train.loop import MEASURED, Learner, Read, in_batches
from birchbark.train.masking import Hidden, Hider
from birchbark.train.material import Material, PairInputs
from birchbark.train.network import Inputs, Network
from birchbark.train.world import World


class MaskedLearner(Learner):
    """Learns what `hider` hides; what that is depends on seed, step and pair alone."""

    def __init__(
        self,
        network: Network,
        materials: Sequence[Material],
        course: Course,
        world: World,
        hider: Hider,
    ) -> None:
        super().__init__(network, materials, course, world)
        self._hider, self._now = hider, (0, 0)

    def step(self, number: int, seed: int) -> float:
        """As `Learner.step`."""
        self._now = seed, number
        return super().step(number, seed)

    def likelihoods(self, material: Material, seed: int) -> Float32s:
        """Of each pair kept apart, the mean log-likelihood of what is hidden of it, (n,).

        The same tokens are hidden each time. As the model is used: nothing is left to chance.
        """
        held = material.held
        read = [self._hidden(held, n, (seed, n)) for n in range(len(held.pairs))]
        found = np.empty(len(read), np.float32)
        for batch in in_batches([len(one.ids) for one in read], MEASURED):
            losses = self._losses([read[n] for n in batch], learns=False)
            found[batch] = -losses.cpu().numpy()
        return found

    def _read(self, number: int, one: List) -> Read:
        hidden = self._hidden(self._materials[number].learnt, one[0], (*self._now, number, one[0]))
        return [[(hidden.ids, hidden.types)]], [hidden.places, hidden.answers]

    def _loss(self, tasks: Sequence[Task], read: Sequence[Read]) -> Any:
        import torch

        hidden = [Hidden(*units[0][0], *targets) for units, targets in read]
        weights = [self._materials[number].data.weight for number, _ in tasks]
        return (self._losses(hidden, learns=True) * torch.tensor(weights, device=self.device)).sum()

    def _hidden(self, inputs: PairInputs, number: int, seed: tuple[int, ...]) -> Hidden:
        [(ids, types)] = inputs[number]
        return self._hider.hide(ids, types, inputs.sides(number), np.random.default_rng(seed))

    def _losses(self, hidden: Sequence[Hidden], *, learns: bool) -> Any:
        """The mean cross-entropy of what is hidden of each input, (inputs,)."""
        import torch
        from torch.nn.functional import cross_entropy

        inputs = Inputs.of([(one.ids, one.types) for one in hidden], self.device)
        starts = np.empty(len(hidden), np.int64)
        starts[inputs.order.cpu().numpy()] = inputs.starts.cpu().numpy()
        places = np.concatenate([s + one.places for s, one in zip(starts, hidden, strict=True)])
        answers = np.concatenate([one.answers for one in hidden]).astype(np.int64)
        owner = np.repeat(np.arange(len(hidden)), [len(one.places) for one in hidden])
        at, right, of = (torch.from_numpy(x).to(self.device) for x in (places, answers, owner))
        with self.products():
            scores = self.network.predict(inputs, at, learns=learns)
        losses = cross_entropy(scores, right, reduction="none")
        counts = torch.bincount(of, minlength=len(hidden))
        return torch.zeros(len(hidden), device=self.device).index_add(0, of, losses) / counts
