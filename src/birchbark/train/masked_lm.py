"""How is a network trained to predict masked tokens, and how well does it predict them?

Training works as in `Learner`, but tokens are masked again each time a text is used. The loss of a
text is the mean cross-entropy of its masked tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from birchbark.records import Float32s
from birchbark.score.batches import similar_lengths
from birchbark.train.dataset import TokenisedDataSet
from birchbark.train.distributed import ProcessGroup
from birchbark.train.hidden_state_distillation import HiddenStateDistillation
from birchbark.train.learner import Learner, ListInputs
from birchbark.train.masking import MaskedInput, Masker
from birchbark.train.network import Network
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.pair_inputs import PairInputs
from birchbark.train.sampler import Sampler


class MaskedLearner(Learner):
    """Trains a network to predict masked tokens.

    Which tokens `masker` masks depends on seed, step, data set and pair alone.
    """

    def __init__(
        self,
        network: Network,
        datasets: Sequence[TokenisedDataSet],
        sampler: Sampler,
        processes: ProcessGroup,
        masker: Masker,
    ) -> None:
        super().__init__(network, datasets, sampler, processes)
        self._masker, self._seed_and_step = masker, (0, 0)

    def step(self, number: int, seed: int) -> float:
        """Update the weights by one step; see `Learner.step`. seed: also the seed for masking."""
        self._seed_and_step = seed, number
        return super().step(number, seed)

    def log_likelihoods(self, dataset: TokenisedDataSet, seed: int) -> Float32s:
        """Return, per held-out pair, the mean log-likelihood of its masked tokens, (pairs,).

        For equal seeds, every call masks the same tokens. Dropout is off.
        """
        pairs = dataset.heldout_pairs
        lengths = [len(pairs[n][0][0]) for n in range(len(pairs.pairs))]
        values = np.empty(len(lengths), np.float32)
        for batch in similar_lengths(lengths, self.inference_tokens):
            masked = [self._masked(pairs, n, (seed, n)) for n in batch]
            values[batch] = -self._losses(masked, training=False).cpu().numpy()
        return values

    def _inputs(self, index: int, pair_list: Sequence[int]) -> ListInputs:
        pair, pairs = pair_list[0], self._datasets[index].training_pairs
        masked = self._masked(pairs, pair, (*self._seed_and_step, index, pair))
        inputs = [[(masked.ids, masked.types)]]
        return ListInputs(index, inputs, [masked.positions, masked.labels])

    def _loss(
        self, lists: Sequence[ListInputs], distillation: HiddenStateDistillation | None = None
    ) -> Any:
        import torch

        masked = [MaskedInput(*item.inputs[0][0], *item.targets) for item in lists]
        weights = [self._datasets[item.dataset].config.weight for item in lists]
        losses = self._losses(masked, training=True)  # (lists,)
        return (losses * torch.tensor(weights, device=self.device)).sum()

    def _masked(self, inputs: PairInputs, pair: int, seed: tuple[int, ...]) -> MaskedInput:
        [(ids, types)] = inputs[pair]
        rng = np.random.default_rng(seed)
        return self._masker.mask_tokens(ids, types, inputs.text_ranges(pair), rng)

    def _losses(self, masked: Sequence[MaskedInput], *, training: bool) -> Any:
        """Return the mean cross-entropy of the masked tokens of each input, (inputs,)."""
        import torch
        from torch.nn.functional import cross_entropy

        packed = PackedInputs.of([(item.ids, item.types) for item in masked], self.device)
        starts = np.empty(len(masked), np.int64)  # (inputs,), in the order of `masked`
        starts[packed.order.cpu().numpy()] = packed.spans.starts.cpu().numpy()
        arrays = (  # (masked tokens,) each: position, original id, input
            np.concatenate([s + item.positions for s, item in zip(starts, masked, strict=True)]),
            np.concatenate([item.labels for item in masked]).astype(np.int64),
            np.repeat(np.arange(len(masked)), [len(item.positions) for item in masked]),
        )
        positions, labels, owner = (torch.from_numpy(x).to(self.device) for x in arrays)
        with self.autocast():
            logits = self.network.token_logits(packed, positions, training=training)
        losses = cross_entropy(logits, labels, reduction="none")  # (masked tokens,)
        sums = torch.zeros(len(masked), device=self.device).index_add(0, owner, losses)
        return sums / torch.bincount(owner, minlength=len(masked))
