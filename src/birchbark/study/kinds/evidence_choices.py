"""What can be chosen in a study of evidence? The tables [evidence] and [training] of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.aggregate import parse_aggregation
from birchbark.combine.interpolate import Scale
from birchbark.errors import InputError
from birchbark.evaluate.ranks import Float64s, parse_rank_measure
from birchbark.evaluate.tune import steps_of
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.named import parse_segmenter
from birchbark.study.first_stages import FIRST_STAGES
from birchbark.study.models import Models
from birchbark.study.outcome import check_run_names

MOST_POINTS = 200_000  # of a grid; the birch paper has 1,331 (benchmarks/RESULTS-TUNING.md)


def pruned_row(name: str) -> str:
    """What the run without the words of the query is called."""
    return f"{name}, pruned"


@dataclass(frozen=True, slots=True)
class EvidenceChoices:
    """The choices of this kind.

    compared: models by what rows call them. scores: name → file below the data root, of scores that
    others computed, instead of a model. rm3: whether the first stage is expanded. segments: of
    documents, and segments_of: collection → its own. depth: so many candidates, and depth_of alike.
    best: n, segments of a document that count, each tried; 3, or none where there are aggregations:
    those are of all segments, by their words (first, max, sum, mean). A model that judges documents
    as a whole (PARADE) has neither. alone: whether all are tried without the first stage, too.
    pruned: and without segments that hold a term of the query. lengths: of queries, the highest of
    each class but the last. looked: models whose queries are looked at one by one; looked_over: the
    model that their gains are counted from, the first stage if empty. against: a model that the
    others are compared with, besides the first stage; empty for none. ranks: whether it is drawn
    how far down the first relevant documents are. step: of the grid. folds: where a collection
    brings none. scale: of the first stage's scores. precision: of the arithmetic.
    """

    compared: Models
    scores: Mapping[str, str]
    rm3: bool
    segments: str
    segments_of: Mapping[str, str]
    depth: int
    depth_of: Mapping[str, int]
    best: tuple[int, ...]
    aggregations: tuple[str, ...]
    alone: bool
    pruned: bool
    lengths: tuple[int, ...]
    looked: tuple[str, ...]
    looked_over: str
    against: str
    ranks: bool
    tune: str
    step: float
    folds: int
    scale: Scale
    precision: Precision

    @classmethod
    def read(cls, section: Section) -> EvidenceChoices:
        """From the table [evidence] of a recipe."""
        compared = Models.read(section.section("models", {}))
        if not compared.named and not section.section("scores", {}).keys:
            raise InputError("no models", where=section.where("models"))
        return cls.of(compared, section)

    @classmethod
    def of(cls, compared: Models, section: Section) -> EvidenceChoices:
        """As `read`, with the models that the caller knows."""
        own, depths = section.section("segments_of", {}), section.section("depth_of", {})
        scores = section.section("scores", {})
        found = cls(
            compared=compared,
            scores={name: scores.text(name) for name in scores.keys},
            rm3=section.truth("rm3", True),
            segments=section.text("segments", "sentences"),
            segments_of={name: own.text(name) for name in own.keys},
            depth=section.whole("depth", 100, least=1),
            depth_of={name: depths.whole(name, least=1) for name in depths.keys},
            best=section.wholes("best", () if "aggregations" in section.keys else (3,), least=1),
            aggregations=section.texts("aggregations", ()),
            alone=section.truth("alone", True),
            pruned=section.truth("pruned", False),
            lengths=section.wholes("lengths", (), least=1),
            looked=section.texts("looked", ()),
            looked_over=section.text("looked_over", ""),
            against=section.text("against", ""),
            ranks=section.truth("ranks", False),
            tune=section.text("tune", "AP"),
            step=section.number("step", 0.1),
            folds=section.whole("folds", 5, least=2),
            scale=Scale(section.one_of("scale", [s.value for s in Scale], Scale.MAX.value)),
            precision=Precision(
                section.one_of("precision", [p.value for p in Precision], Precision.FP32.value)
            ),
        )
        try:
            found.check()
        except InputError as fault:
            raise fault.at(section.where()) from None
        section.end()
        return found

    def check(self) -> None:
        """Raise InputError for choices that cannot be, before any work."""
        for words in (self.segments, *self.segments_of.values()):
            parse_segmenter(words)
        for words in self.aggregations:
            parse_aggregation(words)
        parse_rank_measure(self.tune)
        steps_of(self.step)
        if self.scores and (self.pruned or self.looked or self.aggregations):
            raise InputError("scores of others have no text to prune, look at or aggregate")
        if unknown := [name for name in self.looked if name not in self.compared.named]:
            known = ", ".join(self.compared.named)
            raise InputError(f"looked names no model: {unknown[0]}", wanted=known)
        others = [name for name in self.names if name not in self.looked]
        if self.looked_over and (self.looked_over not in others or not self.looked):
            raise InputError(
                "looked_over names no other model, or there is nothing to look at",
                wanted=f"looked, and one of {', '.join(others)}",
                found=self.looked_over,
            )
        if self.against and (self.against not in self.names or len(self.names) < 2):
            raise InputError(
                "against names no model, or the only one",
                wanted=f"one of several: {', '.join(self.names)}",
                found=self.against,
            )
        if (points := (steps_of(self.step) + 1) ** self.most) > MOST_POINTS:
            raise InputError(
                "too many weights to try", wanted=f"{MOST_POINTS:,} at most", found=f"{points:,}"
            )
        rows = [
            row
            for name in self.names
            for row in self.rows(name, whole=True)
            | self.rows(name)
            | self.aggregated_rows(name)
            | {pruned_row(name): None}
        ]
        check_run_names([*FIRST_STAGES, *rows])

    @property
    def names(self) -> tuple[str, ...]:
        """Of models and of scores, in the order of the recipe."""
        return (*self.compared.named, *self.scores)

    @property
    def models(self) -> tuple[str, ...]:
        """All that must be there to score with, or to train from."""
        return self.compared.needed

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from, and scores of others."""
        return tuple(dict.fromkeys([*self.compared.files, *self.scores.values()]))

    @property
    def grid(self) -> Float64s:
        """Weights (settings, 1 + best): of the first stage and of the best segments."""
        return self._grid(self.most)

    @property
    def shares(self) -> Float64s:
        """Weights (settings, 2) of the first stage and of aggregated evidence: a and 1 − a."""
        return self._grid(1)

    def _grid(self, most: int) -> Float64s:
        steps = steps_of(self.step)
        levels = np.arange(steps + 1) / steps
        return np.array(
            [
                (a, *((1 - a) * w for w in (1.0, *others)))
                for a in levels
                for others in product(levels, repeat=most - 1)
            ]
        )

    def mixtures(self, name: str, whole: bool) -> dict[str, NDArray[np.bool_]]:
        """Row → which settings (settings,) of the grid it may have, for the model called `name`.

        whole: it judges documents, so that there is nothing to choose or to aggregate.
        """
        grid = self.grid
        return {
            row: (grid[:, 1 + n :] == 0).all(axis=1) & ((grid[:, 0] == 0) | (not alone))
            for row, (n, alone) in self.rows(name, whole).items()
        }

    def rows(self, name: str, whole: bool = False) -> dict[str, tuple[int, bool]]:
        """Row → number of segments, and whether they are alone, for the model called `name`."""
        found = {}
        best = (1,) if whole else self.best
        for n in best:
            row = name if len(best) == 1 else f"{n}S: {name}"
            found[row] = n, False
            if self.alone:
                found[f"{row}, alone"] = n, True
        return found

    def aggregated_rows(self, name: str) -> dict[str, tuple[str, bool]]:
        """Row → aggregation, and whether it is alone, for the model called `name`."""
        found = {f"{name}, {words}": (words, False) for words in self.aggregations}
        alone = {f"{row}, alone": (words, True) for row, (words, _) in found.items() if self.alone}
        return found | alone

    def row(self, name: str, whole: bool) -> str:
        """The row of a model with the first stage and all of its best segments."""
        if whole:
            return name
        if not self.best:
            return next(iter(self.aggregated_rows(name)))
        return name if len(self.best) == 1 else f"{self.most}S: {name}"

    @property
    def most(self) -> int:
        """The most segments of a document that count."""
        return max(self.best, default=1)
