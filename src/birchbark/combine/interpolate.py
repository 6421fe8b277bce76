"""How are first-stage scores interpolated with the evidence from segments?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.arguments import choice_of
from birchbark.errors import InputError, require_share
from birchbark.records import Float32s


class Scale(StrEnum):
    """How the first-stage scores of one query's candidates are scaled before interpolation.

    raw: unchanged, as in the birch paper. max: divided by the highest score; scores that are
    further below 0 than the highest is above it are refused. minmax: mapped linearly to [0, 1].
    """

    RAW = "raw"
    MAX = "max"
    MINMAX = "minmax"


DEFAULT_SCALE = Scale(defaults.FIRST_STAGE_SCALE)


@dataclass(frozen=True, slots=True)
class Interpolation:
    """score = a · s_doc + (1 − a) · evidence, as in equation 3.2 of the birch paper.

    Attributes:
        first_stage_weight: a, from 0 to 1. 1 keeps the first-stage order; 0 ranks by evidence
            alone. Defaults to 0.2.
        scale: How first-stage scores become s_doc: `Scale.RAW`, unchanged; `Scale.MAX`, divided by
            the highest score of the query's candidates; `Scale.MINMAX`, mapped linearly to [0, 1];
            or these names as strings: `raw`, `max`, `minmax`. Defaults to `Scale.MAX`.
    """

    first_stage_weight: float = defaults.FIRST_STAGE_WEIGHT
    scale: Scale | str = DEFAULT_SCALE

    def __post_init__(self) -> None:
        require_share("first-stage weight", self.first_stage_weight)
        object.__setattr__(self, "scale", choice_of(Scale, self.scale, "scale"))

    def weighted_first_stage(
        self, scores: Float32s, below: Float32s | None = None
    ) -> NDArray[np.float64]:
        """Return a · s_doc (n + m,) for first-stage scores (n,); zeros if a is 0.

        below: scores (m,) of documents below the candidates; they are scaled as the candidates are.
        Under minmax, s_doc may therefore be below 0. Default: none.
        """
        values = scores if below is None else np.concatenate([scores, below])
        if self.first_stage_weight == 0:
            return np.zeros(len(values))
        return self.first_stage_weight * scale_scores(values, Scale(self.scale), len(scores))

    @property
    def evidence_weight(self) -> float:
        """1 − a."""
        return 1 - self.first_stage_weight


def scale_scores(
    scores: Float32s, scale: Scale, candidates: int | None = None
) -> NDArray[np.float64]:
    """Scale the scores (n,) of one query's candidates.

    candidates: the number of first scores whose lowest and highest determine the scale; all by
    default. Under minmax, scores that are all equal become 0. Raises InputError if `scale` is max
    and a score is further below 0 than the highest is above it: its share would have no limit.
    """
    values = scores.astype(np.float64)
    among = values[:candidates]
    if scale is Scale.RAW or not len(among):
        return values
    lowest, highest = float(among.min()), float(among.max())
    if scale is Scale.MAX and -lowest > max(0.0, highest):
        raise InputError(
            "scores cannot be divided by the highest, since others are further below 0",
            found=f"{lowest:g} to {highest:g}",
            remedy="use the scale minmax",
        )
    low = lowest if scale is Scale.MINMAX else 0.0
    if highest == low:
        return np.zeros_like(values)
    scaled: NDArray[np.float64] = (values - low) / (highest - low)
    return scaled
