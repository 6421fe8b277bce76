"""Which tokens are hidden from a model, for it to say what they were?

Of the hidden tokens 80 % become the mask, 10 % another token, 10 % stay (Devlin et al. 2019). In
texts they are anywhere; in pairs of a query and a relevant passage all are on one side, so that
each side is told from the other: RelEmb (Rau, Kondylidis & Kamps 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import InputError
from birchbark.records import Ids
from birchbark.score.masked import MASKS

MASKED, SWAPPED = 0.8, 0.1
LIKELIHOOD = "log-likelihood"  # of a hidden token: what is measured on texts kept apart
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Masking:
    """How much is hidden, and where.

    share: of the tokens that may be hidden, those that are. query: in pairs, how likely the query
    is the side that is hidden; None where texts stand alone.
    """

    share: float = 0.15
    query: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError("share is out of range", wanted="above 0, below 1")
        if self.query is not None and not 0 <= self.query <= 1:
            raise InputError("query is out of range", wanted="0 to 1", found=f"{self.query:g}")


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """An input of which some tokens are hidden. answers: the ids that stood at `places`."""

    ids: Ids
    types: Ids
    places: Numbers
    answers: Ids


@dataclass(frozen=True, slots=True)
class Hider:
    """Hides tokens of a tokeniser's inputs. ordinary: the ids that may stand in another's place."""

    masking: Masking
    mask: int
    ordinary: Ids

    @classmethod
    def of(cls, masking: Masking, pieces: Pieces) -> Hider:
        """InputError for a tokeniser without a mask."""
        names = pieces.names()
        mask = next((number for number, name in names.items() if name in MASKS), None)
        if mask is None:
            raise InputError("the base's tokeniser has no mask", wanted=" or ".join(MASKS))
        special = pieces.special | {mask}
        return cls(masking, mask, np.array(sorted(names.keys() - special), np.int32))

    def hide(
        self,
        ids: Ids,
        types: Ids,
        sides: Sequence[tuple[int, int]],
        chance: np.random.Generator,
    ) -> Hidden:
        """Hide some tokens of one side, one at least. sides: first place and last + 1 of each text.

        Of several sides one is drawn: the first is the query.
        """
        start, end = sides[0]
        if self.masking.query is not None and chance.random() >= self.masking.query:
            start, end = sides[1]
        count = max(1, round(self.masking.share * (end - start)))
        places = np.sort(chance.choice(np.arange(start, end), count, replace=False))
        fate, swaps = chance.random(count), chance.choice(self.ordinary, count)
        shown = np.where(fate < MASKED + SWAPPED, swaps, ids[places])
        hidden = ids.copy()
        hidden[places] = np.where(fate < MASKED, self.mask, shown)
        return Hidden(hidden, types, places.astype(np.int64), ids[places])
