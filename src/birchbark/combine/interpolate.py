"""How are the first-stage score and the segments' evidence mixed?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.records import Float32s


class Scale(StrEnum):
    """How first-stage scores are made comparable to evidence, over one query's candidates.

    raw: as they are (the birch paper). max: divided by the highest. minmax: from 0 to 1.
    """

    RAW = "raw"
    MAX = "max"
    MINMAX = "minmax"


@dataclass(frozen=True, slots=True)
class Interpolation:
    """a · s_doc + (1 − a) · evidence: the birch paper's equation 3.2.

    first_stage_weight is a: 1 keeps the first-stage order, 0 leaves the evidence alone.
    """

    first_stage_weight: float = 0.4
    scale: Scale = Scale.MAX

    def __post_init__(self) -> None:
        if not 0 <= self.first_stage_weight <= 1:
            raise InputError(
                "first-stage weight is out of range",
                wanted="0 to 1",
                found=str(self.first_stage_weight),
            )

    def first_stage_parts(self, scores: Float32s) -> NDArray[np.float64]:
        """A · s_doc for each candidate, after scaling: (n,); 0 where a is 0, whatever they are."""
        if self.first_stage_weight == 0:
            return np.zeros(len(scores))
        return self.first_stage_weight * scaled(scores, self.scale)

    @property
    def evidence_weight(self) -> float:
        """1 − a."""
        return 1 - self.first_stage_weight


def scaled(scores: Float32s, scale: Scale) -> NDArray[np.float64]:
    """Scores (n,) of one query's candidates; InputError for what cannot be scaled so."""
    wide = scores.astype(np.float64)
    if scale is Scale.RAW or not len(wide):
        return wide
    low = wide.min() if scale is Scale.MINMAX else 0.0
    span = wide.max() - low
    if span > 0:
        found: NDArray[np.float64] = (wide - low) / span
        return found
    if scale is Scale.MAX and wide.max() < 0:
        raise InputError(
            "first-stage scores below 0 cannot be divided by their highest",
            remedy="scale them by minmax",
        )
    return np.zeros_like(wide)
