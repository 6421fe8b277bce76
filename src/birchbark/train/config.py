"""What settings does a training run have?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.heads import Pooling
from birchbark.pairs.sources import PairSource
from birchbark.records import Float32s
from birchbark.score.precision import Precision
from birchbark.train.hidden_state_distillation import HiddenStateSettings
from birchbark.train.initialise import Initialisation
from birchbark.train.lists import ListSampling
from birchbark.train.masking import Masking
from birchbark.train.objectives import Objective

RANKING = "ranking"  # learns grades
DISTILLATION = "distillation"  # learns from the output of other models, too
ADAPTATION = "adaptation"  # predicts masked tokens of texts
RELEMB = "relemb"  # predicts masked tokens of a query from a relevant passage, or the reverse
KINDS = (RANKING, DISTILLATION, ADAPTATION, RELEMB)


@dataclass(frozen=True, slots=True)
class Teacher:
    """One or several models whose scores are training targets.

    The target of a pair is scale · (score − shift), as log-odds. The score is a bi-encoder's cosine
    (MaxSim with late interaction) or a cross-encoder's log-odds; it is averaged over the models.

    pooling: the bi-encoder's pooling if its checkpoint declares none, or `tokens` for late
    interaction; see `load_scorer`.
    precision: the arithmetic of the models' linear layers.
    """

    models: tuple[str, ...]
    scale: float = 1.0
    shift: float = 0.0
    pooling: Pooling | None = None
    precision: Precision = Precision.FP32

    @property
    def unscaled(self) -> Teacher:
        """The same teacher with its scores as targets."""
        return replace(self, scale=1.0, shift=0.0)

    def targets(self, scores: Float32s) -> Float32s:
        """Return scale · (score − shift) for each score."""
        return np.float32(self.scale) * (scores - np.float32(self.shift))


@dataclass(frozen=True, slots=True)
class LossTerm:
    """A term of the weighted sum of losses that is minimised.

    teacher: provides the targets if the objective needs one. Otherwise the targets are grades, and
    a teacher says which texts of grade 0 are left out: those that it scores higher than every
    relevant text of the query, since they are probably relevant, too. None for no teacher.
    """

    objective: Objective
    teacher: Teacher | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class DataSetConfig:
    """A data set, and the losses that are minimised on it.

    segments: the segmenter for documents of a collection; each segment becomes a pair.
    passages: the number of passages per document that PARADE reads; None for 16.
    licence: the licence of the data, for the model card.
    chunk: the number of words after which texts are split; each chunk has the grade of its text.
    validation: the share of the queries that is held out.
    validation_queries: the number of held-out queries to validate on; None for all.
    lists: how pairs are sampled into lists.
    weight: a factor for all losses of this data set.
    """

    name: str
    source: PairSource
    segments: str
    passages: int | None
    licence: str
    chunk: int | None
    validation: float
    validation_queries: int | None
    lists: ListSampling
    loss_terms: tuple[LossTerm, ...]
    weight: float

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the data set's files, relative to the data root."""
        return self.source.files

    def has_gradient(self, grades: NDArray[np.float32]) -> bool:
        """Return whether a list with these grades (texts,) has a loss that depends on the model."""
        terms = self.loss_terms
        return not terms or any(term.objective.has_gradient(grades) for term in terms)

    @property
    def teachers(self) -> tuple[Teacher, ...]:
        """The teachers whose scores a loss term needs, one per term."""
        return tuple(term.teacher for term in self.loss_terms if term.teacher)


@dataclass(frozen=True, slots=True)
class HeldOutQueries:
    """Queries from which no data set learns, and on which none validates.

    They are recognised by their texts.

    queries: the file of queries, relative to the data root.
    folds: a file of folds, relative to the data root; empty to hold out all queries.
    fold: the number of the fold, from 1, whose queries are held out; None without folds.
    """

    queries: str
    folds: str
    fold: int | None

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files."""
        return tuple(filter(None, (self.queries, self.folds)))


FP32, TF32, BF16, AUTO = "fp32", "tf32", "bf16", "auto"  # precisions


@dataclass(frozen=True, slots=True)
class Schedule:
    """The length of a training run, its batches and its learning rate.

    epochs, steps: the length; exactly one of them is None.
    batch: lists per batch and process.
    accumulate: batches per step.
    learning_rate: the peak, reached by a linear warm-up.
    warmup: the length of the warm-up, as a share of all steps if below 1, otherwise in steps.
    decay: whether the rate falls linearly to 0 after the warm-up, or stays constant.
    weight_decay: applies to matrices only.
    clip: the largest norm of the gradient.
    precision: of matrix products: FP32, TF32 (on a GPU, of 10 bits), BF16, or AUTO for BF16 where
        the device is fast at it and FP32 elsewhere, which `train` decides and records.
    batch_tokens: the number of tokens that are computed at once; a longer batch is divided, which
        changes only the order of sums. Half as many in validation.
    recompute: whether to save memory; see Network.recomputes.
    save_every: steps between two saved training states; None to save at each validation only.
    """

    epochs: int | None
    steps: int | None
    batch: int
    accumulate: int
    learning_rate: float
    warmup: float
    decay: bool
    weight_decay: float
    clip: float
    precision: str
    batch_tokens: int
    recompute: bool
    save_every: int | None


LOSS = "loss"  # as the measure of validation


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """When the model is measured on held-out queries, and when training stops early.

    measure: a ranking measure, `loss`, of which the lowest is best, or log-likelihood for a masked
    model.
    every: steps between validations; None to validate at the end of each epoch.
    patience: the number of validations without a better value after which training stops; None to
    never stop early.
    keeps_last: whether the model of the last validation is kept, and not the best one.
    """

    measure: str
    every: int | None
    patience: int | None
    keeps_last: bool

    @property
    def lowest_is_best(self) -> bool:
        """Whether a lower value of the measure is better."""
        return self.measure == LOSS

    def is_better(self, value: float, best: float) -> bool:
        """Return whether the mean `value` is better than `best`."""
        return value < best if self.lowest_is_best else value > best


@dataclass(frozen=True, slots=True)
class MiningSettings:
    """When and how negatives are mined with the model in training; see mining.py.

    every: steps between two searches.
    start: the number of steps before the first one.
    depth: the number of texts per query that the model scores, beside those paired with it.
    keep: the number of negatives per query; None for twice as many as a list has.
    margin: how much lower than the best relevant text, in log-odds, an unjudged text must score.
    """

    every: int
    start: int
    depth: int
    keep: int | None
    margin: float

    def round_at(self, step: int) -> int | None:
        """Return the step before which the negatives of `step` are mined; None if none are."""
        return None if step < self.start else step - (step - self.start) % self.every


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """All settings of a training run, as read from its TOML file at `path`.

    base: the model to start from, named as for `--model`.
    max_length: the maximum number of tokens per input, including special tokens.
    query_length: the maximum number of tokens per query; None for half an input (bi-encoder: all).
    distillation: settings for distilling hidden states; None without it.
    masking: settings for masked language modelling; None if the model is trained to rank.
    mining: settings for mining negatives; None if those of the files are used.
    held_out: queries that are kept for evaluation; None for none.
    values: the contents of the file, without its grid.
    """

    path: Path
    title: str
    base: str
    seed: int
    initialisation: Initialisation
    max_length: int
    query_length: int | None
    data: tuple[DataSetConfig, ...]
    schedule: Schedule
    validation: ValidationSettings
    distillation: HiddenStateSettings | None
    masking: Masking | None
    mining: MiningSettings | None
    held_out: HeldOutQueries | None
    values: Mapping[str, Any]

    def with_precision(self, precision: str) -> TrainingConfig:
        """Return a copy whose schedule has this precision."""
        values = {**self.values, "schedule": {**self.values["schedule"], "precision": precision}}
        return replace(self, schedule=replace(self.schedule, precision=precision), values=values)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all files, relative to the data root."""
        held_out = self.held_out.files if self.held_out else ()
        return tuple(dict.fromkeys([*(f for data in self.data for f in data.files), *held_out]))

    @property
    def kind(self) -> str:
        """What the run is: one of KINDS."""
        if self.masking:
            return ADAPTATION if self.masking.query is None else RELEMB
        return DISTILLATION if self.teachers else RANKING

    @property
    def teachers(self) -> tuple[str, ...]:
        """The distinct models whose scores or states the run uses."""
        models = [m for data in self.data for teacher in data.teachers for m in teacher.models]
        return tuple(
            dict.fromkeys([*models, *([self.distillation.teacher] if self.distillation else [])])
        )

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of all loss terms of all data sets."""
        return tuple(term.objective for data in self.data for term in data.loss_terms)
