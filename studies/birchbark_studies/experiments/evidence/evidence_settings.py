"""Which settings does a study of evidence have? The table [evidence] of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark import InputError, defaults
from birchbark.combine.aggregate import parse_aggregation
from birchbark.combine.interpolate import Scale
from birchbark.evaluate.mixtures import evidence_grid
from birchbark.evaluate.rank_measures import Float64s, parse_rank_measure
from birchbark.evaluate.tune import check_weightings, count_steps
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark_studies.first_stages import FIRST_STAGES
from birchbark_studies.models import Models
from birchbark_studies.outcome import check_run_names

ALONE_SUFFIX = ", alone"  # of rows without the first stage


def pruned_row(row: str) -> str:
    """Return the name of the run like `row` without segments that contain query terms."""
    return f"{row}, pruned"


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    """The settings of a study of evidence.

    The comments give the TOML key where it differs from the attribute.

    Attributes:
        compared: The models by name.
        scores: Name → file below the data root with published scores, used in place of a model.
        rm3: Whether the first stage expands queries with RM3.
        segments: The segmenter for documents.
        segments_of: Collection → segmenter, where it differs from `segments`.
        depth: The number of candidates per query.
        depth_of: Collection → depth, where it differs from `depth`.
        segment_counts: The numbers of best segments to sum, one row per number; by default 3, or
            none if there are aggregations. Ignored for models that score whole documents (PARADE).
        aggregations: Aggregations of all segment scores to try (first, max, sum, mean). Ignored for
            models that score whole documents.
        without_first_stage: Whether each row is repeated without the first stage (a = 0).
        pruned: Whether to rank also without the segments that contain a query term.
        length_bounds: The largest query length of each class; the last class has no bound.
        topics: The models whose best and worst queries the report shows.
        topics_baseline: The model relative to which gains are computed, both without the first
            stage; empty for the first stage.
        reference_model: A model that the others are also compared with; empty for none.
        plot_ranks: Whether to plot the ranks of the first relevant documents.
        tune: The measure for which weights are tuned.
        step: The spacing of the grid of weights.
        folds: The number of folds, for collections without given folds.
        scale: How first-stage scores are scaled.
        precision: The precision of the models' arithmetic.
        query_tokens: Number of tokens of a query that models read; None for all.
    """

    compared: Models
    scores: Mapping[str, str]
    rm3: bool
    segments: str
    segments_of: Mapping[str, str]
    depth: int
    depth_of: Mapping[str, int]
    segment_counts: tuple[int, ...]  # best
    aggregations: tuple[str, ...]
    without_first_stage: bool  # alone
    pruned: bool
    length_bounds: tuple[int, ...]  # lengths
    topics: tuple[str, ...]
    topics_baseline: str
    reference_model: str  # against
    plot_ranks: bool  # ranks
    tune: str
    step: float
    folds: int
    scale: Scale
    precision: Precision
    query_tokens: int | None

    @classmethod
    def read(cls, section: Section) -> EvidenceSettings:
        """Read the table [evidence] of a recipe."""
        seeds = section.integers("seeds", (), minimum=0)
        compared = Models.read(section.section("models", {}), seeds)
        if not compared.by_name and not section.section("scores", {}).keys:
            raise InputError("no models", where=section.where("models"))
        return cls.read_for(compared, section)

    @classmethod
    def read_for(cls, compared: Models, section: Section) -> EvidenceSettings:
        """Read the settings from `section`, for models that were read before."""
        segments = section.section("segments_of", {})
        depths = section.section("depth_of", {})
        scores = section.section("scores", {})
        default_counts = () if "aggregations" in section.keys else (defaults.TUNED_SEGMENTS,)
        settings = cls(
            compared=compared,
            scores={name: scores.text(name) for name in scores.keys},
            rm3=section.boolean("rm3", True),
            segments=section.text("segments", "sentences"),
            segments_of={name: segments.text(name) for name in segments.keys},
            depth=section.integer("depth", defaults.RERANKING_DEPTH, minimum=1),
            depth_of={name: depths.integer(name, minimum=1) for name in depths.keys},
            segment_counts=section.integers("best", default_counts, minimum=1),
            aggregations=section.texts("aggregations", ()),
            without_first_stage=section.boolean("alone", True),
            pruned=section.boolean("pruned", False),
            length_bounds=section.integers("lengths", (), minimum=1),
            topics=section.texts("topics", ()),
            topics_baseline=section.text("topics_baseline", ""),
            reference_model=section.text("against", ""),
            plot_ranks=section.boolean("ranks", False),
            tune=section.text("tune", defaults.TUNED_MEASURE),
            step=section.number("step", defaults.TUNING_STEP),
            folds=section.integer("folds", defaults.TUNING_FOLDS, minimum=2),
            scale=Scale(section.one_of("scale", [s.value for s in Scale], Scale.MAX.value)),
            precision=Precision(
                section.one_of("precision", [p.value for p in Precision], Precision.FP32.value)
            ),
            query_tokens=section.integer("query_tokens", None, minimum=1),
        )
        try:
            settings.check()
        except InputError as fault:
            raise fault.at(section.where()) from None
        section.reject_unknown_keys()
        return settings

    def check(self) -> None:
        """Raise InputError if a setting is invalid or settings contradict each other."""
        for segmenter in (self.segments, *self.segments_of.values()):
            parse_segmenter(segmenter)
        for aggregation in self.aggregations:
            parse_aggregation(aggregation)
        parse_rank_measure(self.tune)
        count_steps(self.step)
        if self.scores and (self.pruned or self.topics or self.aggregations):
            raise InputError("published scores have no texts to prune, show or aggregate")
        self._check_names()
        check_weightings((count_steps(self.step) + 1) ** self.max_segments)
        check_run_names([*FIRST_STAGES, *self._all_rows()])

    def _check_names(self) -> None:
        """Raise InputError if a setting names a model that does not exist or is not allowed."""
        models = self.compared.shown
        if unknown := [name for name in self.topics if name not in models]:
            raise InputError(
                "topics: no such model",
                wanted=f"one of {', '.join(models)}",
                found=unknown[0],
            )
        if self.topics and self.compared.folds:
            raise InputError("topics cannot be shown of models by fold")
        if self.topics_baseline and not self.topics:
            raise InputError("topics_baseline has no effect without topics")
        if self.topics_baseline and not self.without_first_stage:
            raise InputError("topics_baseline compares models alone", wanted="alone = true")
        others = [name for name in self.shown if name not in self.topics]
        if self.topics_baseline and self.topics_baseline not in others:
            raise InputError(
                "topics_baseline: no such model outside topics",
                wanted=", ".join(others) or "a model that topics does not name",
                found=self.topics_baseline,
            )
        if self.reference_model and self.reference_model not in self.shown:
            raise InputError(
                "against: no such model",
                wanted=f"one of {', '.join(self.shown)}",
                found=self.reference_model,
            )
        if self.reference_model and len(self.shown) < 2:
            raise InputError("against: there is no other model to compare")

    def _all_rows(self) -> list[str]:
        return [row for name in self.names for row in self._possible_rows(name)]

    def _possible_rows(self, name: str) -> tuple[str, ...]:
        """Return all rows that model `name` may have, in the same order for each model."""
        return tuple(
            self.rows(name, scores_documents=True)
            | self.rows(name)
            | self.aggregated_rows(name)
            | {pruned_row(row): None for row in self.pruned_rows(name)}
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of models and of published scores, in the order of the recipe."""
        return (*self.compared.by_name, *self.scores)

    @property
    def shown(self) -> tuple[str, ...]:
        """The names in the tables: `names`, with one for all seeds of a variant."""
        return (*self.compared.shown, *self.scores)

    def first_seed(self, name: str) -> str:
        """Return the model called `name`, or for several seeds that of the first."""
        return self.compared.of(name)[0]

    @property
    def shown_as(self) -> dict[str, str]:
        """Map the rows of each model that has other seeds to those that stand for all seeds."""
        return {
            row: shown
            for model, variant in self.compared.variant_of.items()
            for row, shown in zip(
                self._possible_rows(model), self._possible_rows(variant), strict=True
            )
        }

    @property
    def grid(self) -> Float64s:
        """The weights of the first stage and of the best segments.

        Shape (weightings, 1 + max_segments); the first column is a, the others include 1 − a.
        """
        return evidence_grid(self.step, self.max_segments)

    @property
    def interpolation_grid(self) -> Float64s:
        """The weights a and 1 − a of first stage and aggregated evidence: (weightings, 2)."""
        return evidence_grid(self.step, 1)

    def pruned_rows(self, name: str) -> tuple[str, ...]:
        """Return the model's rows in the table of pruned segments.

        Without segment counts, it is one row, with the best segment.
        """
        return self.rows_with_first_stage(name, False) if self.segment_counts else (name,)

    def allowed_weights(self, name: str, scores_documents: bool) -> dict[str, NDArray[np.bool_]]:
        """Return row → mask over the weightings that it may use, (weightings,), for model `name`.

        scores_documents: whether the model gives one score per document, not one per segment.
        """
        grid = self.grid
        return {
            row: (grid[:, 1 + n :] == 0).all(axis=1) & ((grid[:, 0] == 0) | (not alone))
            for row, (n, alone) in self.rows(name, scores_documents).items()
        }

    def rows(self, name: str, scores_documents: bool = False) -> dict[str, tuple[int, bool]]:
        """Return row → (number of segments, whether the first stage is left out)."""
        rows = {}
        counts = (1,) if scores_documents else self.segment_counts
        for n in counts:
            row = name if len(counts) == 1 else f"{n}S: {name}"
            rows[row] = n, False
            if self.without_first_stage:
                rows[row + ALONE_SUFFIX] = n, True
        return rows

    def aggregated_rows(self, name: str) -> dict[str, tuple[str, bool]]:
        """Return row → (aggregation, whether the first stage is left out)."""
        rows = {f"{name}, {aggregation}": (aggregation, False) for aggregation in self.aggregations}
        if not self.without_first_stage:
            return rows
        return rows | {row + ALONE_SUFFIX: (a, True) for row, (a, _) in rows.items()}

    def rows_with_first_stage(self, name: str, scores_documents: bool) -> tuple[str, ...]:
        """Return the model's rows with the first stage, in the order of `segment_counts`.

        Without segment counts, return only its row with the first aggregation.
        """
        if not self.segment_counts and not scores_documents:
            return (next(iter(self.aggregated_rows(name))),)
        return tuple(
            row for row, (_, alone) in self.rows(name, scores_documents).items() if not alone
        )

    @property
    def max_segments(self) -> int:
        """The largest number of best segments to sum."""
        return max(self.segment_counts, default=1)
