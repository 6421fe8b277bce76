"""Which tokens are selected and masked for masked language modelling?

Of the selected tokens, 80 % are replaced by the mask token and 10 % by a random token; 10 % are
left unchanged (Devlin et al. 2019). In a single text, any token can be selected. In a pair of a
query and a relevant passage, all selected tokens are on one side, so that the model learns to
predict one side from the other: RelEmb (Rau, Kondylidis & Kamps 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from birchbark import defaults
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError, require_share
from birchbark.pairs.pair_table import Indices
from birchbark.records import Ids
from birchbark.score.masked_lm import MASKS

MASK_RATE, RANDOM_RATE = 0.8, 0.1
LOG_LIKELIHOOD = "log-likelihood"  # mean over selected tokens, the measure in validation


@dataclass(frozen=True, slots=True)
class Masking:
    """How many tokens are selected for prediction, and where.

    share: the share of a side's tokens that is selected, at least one token.
    query: the probability that tokens of the query rather than of the passage are selected; None
    for training on single texts.
    """

    share: float = defaults.MASKED_SHARE
    query: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError("share is out of range", wanted="above 0, below 1")
        if self.query is not None:
            require_share("query", self.query)


@dataclass(frozen=True, slots=True, eq=False)
class MaskedInput:
    """An input with masked tokens.

    ids, types: (length,).
    positions: the positions of the selected tokens, also of those left unchanged, in ascending
    order (selected,).
    labels: their original ids (selected,).
    """

    ids: Ids
    types: Ids
    positions: Indices
    labels: Ids


@dataclass(frozen=True, slots=True)
class Masker:
    """Masks tokens of inputs.

    mask: the id of the mask token. ordinary: the ids of all other tokens that are not special, from
    which random replacements are drawn.
    """

    masking: Masking
    mask: int
    ordinary: Ids

    @classmethod
    def of(cls, masking: Masking, tokenizer: CheckpointTokenizer) -> Masker:
        """Return a Masker for `tokenizer`. Raises InputError if it has no mask token."""
        names = tokenizer.id_to_token()
        mask = next((token_id for token_id, name in names.items() if name in MASKS), None)
        if mask is None:
            raise InputError(
                "the base model's tokeniser has no mask token", wanted=" or ".join(MASKS)
            )
        special = tokenizer.special_ids | {mask}
        return cls(masking, mask, np.array(sorted(names.keys() - special), np.int32))

    def mask_tokens(
        self, ids: Ids, types: Ids, text_ranges: Sequence[tuple[int, int]], rng: np.random.Generator
    ) -> MaskedInput:
        """Select one or more tokens of one side, and mask, replace or keep each.

        ids, types: (length,). text_ranges: the token ranges of query and passage, or of a single
        text; see `PairInputs.text_ranges`.
        """
        start, end = text_ranges[0]
        if self.masking.query is not None and rng.random() >= self.masking.query:
            start, end = text_ranges[1]
        count = max(1, round(self.masking.share * (end - start)))
        positions = np.sort(rng.choice(np.arange(start, end), count, replace=False))  # (count,)
        lots, random_ids = rng.random(count), rng.choice(self.ordinary, count)
        unmasked = np.where(lots < MASK_RATE + RANDOM_RATE, random_ids, ids[positions])
        masked = ids.copy()
        masked[positions] = np.where(lots < MASK_RATE, self.mask, unmasked)
        return MaskedInput(masked, types, positions.astype(np.int64), ids[positions])
