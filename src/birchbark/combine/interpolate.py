"""How are first-stage scores interpolated with the evidence from segments?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.errors import InputError, require_share
from birchbark.records import Float32s


class Scale(StrEnum):
    """How the first-stage scores of one query's candidates are scaled before interpolation.

    raw: unchanged, as in the birch paper. max: divided by the highest score. minmax: mapped
    linearly to [0, 1].
    """

    RAW = "raw"
    MAX = "max"
    MINMAX = "minmax"


DEFAULT_SCALE = Scale(defaults.FIRST_STAGE_SCALE)


def parse_scale(scale: Scale | str) -> Scale:
    """Return a scale, which may be given by its name; InputError if there is none of that name."""
    if scale not in list(Scale):
        raise InputError("unknown scale", wanted=" or ".join(Scale), found=repr(scale))
    return Scale(scale)


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
        object.__setattr__(self, "scale", parse_scale(self.scale))

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
    default. Under minmax, scores that are all equal become 0. Raises InputError if `scale` is max,
    a score is below 0 and none is above.
    """
    values = scores.astype(np.float64)
    among = values[:candidates]
    if scale is Scale.RAW or not len(among):
        return values
    low = among.min() if scale is Scale.MINMAX else 0.0
    span = among.max() - low
    if span > 0:
        scaled: NDArray[np.float64] = (values - low) / span
        return scaled
    if scale is Scale.MAX and among.min() < 0:
        raise InputError(
            "scores below 0 cannot be divided by their maximum, which is not above 0",
            remedy="use the scale minmax",
        )
    return np.zeros_like(values)
