"""How does a network learn in one training step?

The optimiser is AdamW with clipped gradients, with weight decay on matrices alone, and with linear
warm-up and decay of the learning rate (Kingma & Ba 2015; Loshchilov & Hutter 2019; Devlin et al.
2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import LossError
from birchbark.records import Ids
from birchbark.train.config import BF16
from birchbark.train.dataset import TokenisedDataSet
from birchbark.train.distributed import ProcessGroup
from birchbark.train.hidden_state_distillation import HiddenStateDistillation
from birchbark.train.network import Network
from birchbark.train.objectives import Objective
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.sampler import SampledList, Sampler
from birchbark.train.transformer_layer import HiddenStates

BETAS, EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True, slots=True)
class ListInputs:
    """A sampled list, as inputs of the network.

    dataset: the index of the list's data set.
    inputs: for each logit of the list, the ids and types of the inputs that it is computed from.
    targets: an array (logits,) per loss term.
    """

    dataset: int
    inputs: list[list[tuple[Ids, Ids]]]
    targets: list[NDArray[Any]]

    @property
    def input_count(self) -> int:
        """The number of inputs for all logits of the list."""
        return sum(map(len, self.inputs))


class Learner:
    """A network and its optimiser. Their state can be saved and restored between steps."""

    def __init__(
        self,
        network: Network,
        datasets: Sequence[TokenisedDataSet],
        sampler: Sampler,
        processes: ProcessGroup,
        distillation: HiddenStateDistillation | None = None,
    ) -> None:
        """Prepare to train the weights of `network` in place, on the device that holds them."""
        import torch

        self.network, self._datasets, self._sampler = network, datasets, sampler
        self._processes, self._distillation = processes, distillation
        self._schedule = sampler.schedule
        network.recomputes = self._schedule.recompute
        self.trainable = {n: w for n, w in network.weights.items() if w.requires_grad}
        self.trainable |= distillation.projections if distillation else {}
        self.device = next(iter(network.weights.values())).device
        matrices = [weight for weight in self.trainable.values() if weight.ndim > 1]
        vectors = [weight for weight in self.trainable.values() if weight.ndim < 2]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": self._schedule.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=self._schedule.learning_rate,
            betas=BETAS,
            eps=EPSILON,
            fused=True,
        )

    def use(self, datasets: Sequence[TokenisedDataSet], sampler: Sampler) -> None:
        """Learn from other data sets from now on."""
        self._datasets, self._sampler = datasets, sampler

    def step(self, number: int, seed: int) -> float:
        """Update the weights by step `number` (from 0), and return the mean loss before the update.

        The loss is the mean over the lists of all processes. seed: seed for dropout.
        Raises LossError if the loss or the norm of the gradient is not finite; no weight has
        changed by then.
        """
        import torch

        torch.manual_seed(_combined_seed(seed, number, self._processes.rank))
        lists = self._sampler.lists_at(number)
        share = lists[self._processes.rank :: self._processes.size]
        distillation = self._distillation
        if distillation and distillation.steps is not None and number >= distillation.steps:
            distillation = None
        total = torch.zeros((), device=self.device)
        for start in range(0, len(share), self._schedule.batch):
            for batch in self._micro_batches(share[start : start + self._schedule.batch]):
                loss = self._loss(batch, distillation) / len(lists)
                loss.backward()
                total += loss.detach()
        for weight in self.trainable.values():
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        gradients = (weight.grad for weight in self.trainable.values())
        self._processes.sum_over_processes([total, *gradients])
        norm = torch.nn.utils.clip_grad_norm_(list(self.trainable.values()), self._schedule.clip)
        mean_loss = float(total)
        if not math.isfinite(mean_loss) or not math.isfinite(float(norm)):
            raise LossError(
                f"step {number + 1} has loss {mean_loss} and gradient norm {float(norm)}",
                wanted="finite numbers",
                remedy="lower schedule.learning_rate, or use precision fp32",
            )
        for group in self.optimiser.param_groups:
            group["lr"] = self._sampler.learning_rate(number)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return mean_loss

    def _micro_batches(self, batch: Sequence[SampledList]) -> Iterator[list[ListInputs]]:
        """Divide a batch into micro-batches, each of about `batch_tokens` tokens at most.

        Only batches of long texts, such as documents of many passages, are divided. A longer list
        forms a micro-batch alone. The gradient is summed over lists, so it does not depend on the
        division.
        """
        lists: list[ListInputs] = []
        total = 0
        for index, pair_list in batch:
            inputs = self._inputs(index, pair_list)
            tokens = sum(len(ids) for of_logit in inputs.inputs for ids, _ in of_logit)
            if lists and total + tokens > self._schedule.batch_tokens:
                yield lists
                lists, total = [], 0
            lists.append(inputs)
            total += tokens
        yield lists

    def _inputs(self, index: int, pair_list: Sequence[int]) -> ListInputs:
        """Return the inputs of a list: one logit per text.

        For duo, there is one logit per ordered pair of texts with different grades.
        """
        dataset = self._datasets[index]
        pairs = dataset.training_pairs
        if not self.network.architecture.duo:
            targets = [target[list(pair_list)] for target in dataset.targets]
            return ListInputs(index, [pairs[pair] for pair in pair_list], targets)
        grades = dataset.targets[0]
        compared = [(i, j) for i in pair_list for j in pair_list if grades[i] != grades[j]]
        labels = np.array([grades[i] > grades[j] for i, j in compared], np.float32)
        return ListInputs(index, [[pairs.comparison(i, j)] for i, j in compared], [labels])

    def _loss(
        self, lists: Sequence[ListInputs], distillation: HiddenStateDistillation | None = None
    ) -> Any:
        """Return the weighted sum of the losses of all lists, a scalar.

        distillation: of hidden states, whose losses are added; None (the default) for none.
        """
        import torch

        by_logit = [inputs for item in lists for inputs in item.inputs]
        pairs, counts = [pair for inputs in by_logit for pair in inputs], list(map(len, by_logit))
        packed = PackedInputs.of(pairs, self.device, counts)
        states = HiddenStates(distillation.keeps_attention) if distillation else None
        total = torch.zeros((), device=self.device)
        with self.autocast():
            logits = self.network.training_logits(packed, states)  # (logits of all lists,)
            if distillation and states:
                losses = distillation.losses(packed, states)  # (inputs,)
                shares = [
                    self._datasets[item.dataset].config.weight / item.input_count
                    for item in lists
                    for _ in range(item.input_count)
                ]
                total = total + (losses * torch.tensor(shares, device=self.device)).sum()
        ends = np.cumsum([len(item.inputs) for item in lists])
        for index, dataset in enumerate(self._datasets):
            numbers = [i for i, item in enumerate(lists) if item.dataset == index]
            if not numbers:
                continue
            indices = [np.arange(ends[i] - len(lists[i].inputs), ends[i]) for i in numbers]
            for column, term in enumerate(dataset.config.loss_terms):
                targets = [lists[i].targets[column] for i in numbers]
                losses = list_losses(term.objective, logits, indices, targets)  # (lists,)
                total = total + dataset.config.weight * term.weight * losses.sum()
        return total

    @property
    def inference_tokens(self) -> int:
        """The number of tokens per batch without gradients."""
        return self._schedule.batch_tokens // 2

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context that computes matrix products in the configured precision."""
        import torch

        bf16 = self._schedule.precision == BF16
        context: AbstractContextManager[Any] = torch.autocast(
            self.device.type, torch.bfloat16, enabled=bf16
        )
        return context


def list_losses(
    objective: Objective, logits: Any, lists: Sequence[Any], targets: Sequence[Any]
) -> Any:
    """Return the loss of each list, (lists,).

    lists: for each list, indices into `logits` (n,). targets: for each list, targets in that order.
    """
    import torch

    width = max(map(len, lists))
    indices = np.zeros((len(lists), width), np.int64)  # (lists, width), padded
    padded_targets = np.zeros((len(lists), width), np.float32)
    mask = np.zeros((len(lists), width), bool)
    for row, (list_indices, list_targets) in enumerate(zip(lists, targets, strict=True)):
        indices[row, : len(list_indices)] = list_indices
        padded_targets[row, : len(list_targets)] = list_targets
        mask[row, : len(list_indices)] = True
    arrays = (indices, padded_targets, mask)
    gather, padded, exists = (torch.from_numpy(x).to(logits.device) for x in arrays)
    return objective.loss(logits[gather], padded, exists)


def _combined_seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
