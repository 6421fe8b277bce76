"""How are weights of a pipeline chosen by cross-validation?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from birchbark import InputError, Qrels, Run
from birchbark.evaluate.folds import Folds
from birchbark.evaluate.mixtures import cross_validated_run
from birchbark.evaluate.rank_measures import Float64s
from birchbark.evaluate.tune import Tuning
from birchbark.pipeline.stage_options import NUMBERS, StageOptions
from birchbark.section import Section


@dataclass(frozen=True, slots=True)
class TunedWeights:
    """Weights of a pipeline's last stage, which are tried in all combinations.

    Attributes:
        names: The options, from NUMBERS.
        values: Their values in each combination, (combinations, options).
        variants: The pipeline's stages with each combination.
    """

    names: tuple[str, ...]
    values: Float64s
    variants: tuple[tuple[StageOptions, ...], ...]

    @classmethod
    def read(cls, section: Section, stages: Sequence[StageOptions]) -> TunedWeights:
        """Read a table that lists the values to try of each option.

        Raises InputError for an option that is no weight, and for an invalid value.
        """
        names = section.keys
        if not names or not set(names) <= set(NUMBERS):
            wanted = f"values of {' or '.join(NUMBERS)}"
            raise InputError("wrong weights", where=section.where(), wanted=wanted)
        tried = [section.numbers(name, ()) for name in names]
        combinations = list(product(*tried))
        variants = []
        for combination in combinations:
            changed: dict[str, Any] = dict(zip(names, combination, strict=True))
            last = replace(stages[-1], **changed)
            try:
                last.check(names)
            except InputError as fault:
                raise fault.at(section.where()) from None
            variants.append((*stages[:-1], last))
        return cls(tuple(names), np.array(combinations, np.float64), tuple(variants))


def cross_validated(
    tag: str,
    weights: TunedWeights,
    runs: Sequence[Run],
    qrels: Qrels,
    folds: Folds,
    measure_name: str,
) -> tuple[Run, Tuning]:
    """Rank each query as the variant does that is best on the other folds.

    runs: one for each variant, over the same queries.
    """
    run, values, chosen = cross_validated_run(runs, qrels, folds, measure_name, tag)
    return run, Tuning(weights.values, values, tuple(qrels.grades), folds, chosen)
