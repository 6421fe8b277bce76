"""Which pipelines does a recipe compare? Its [[pipelines.rows]]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from birchbark import InputError, defaults
from birchbark.pipeline.stage_options import StageOptions
from birchbark.section import Section
from birchbark_studies.experiments.pipelines.loader import models_of, takes_default_embedding
from birchbark_studies.experiments.pipelines.tuned import TunedWeights
from birchbark_studies.models import Models
from birchbark_studies.outcome import new_row_name
from birchbark_studies.seeds import distinct

EMBEDDING, STATIC = "embedding", "static"  # vectors that an index may have
Stages = tuple[StageOptions, ...]


@dataclass(slots=True)
class PipelineRows:
    """The rows of a recipe.

    Attributes:
        stages: Name of a pipeline → its stages; one for each seed of a trained model.
        shown_as: Row with one of several seeds → the row in the tables that stands for all seeds.
        vectors: Name of a row that searches an index with vectors → EMBEDDING, those of its
            embedding, or STATIC, those of a static embedding. Half of the candidates are found by
            them, unless the collection has a run.
        tuned: Name of a row → the weights that are chosen by cross-validation.
    """

    stages: dict[str, Stages] = field(default_factory=dict)
    shown_as: dict[str, str] = field(default_factory=dict)
    vectors: dict[str, str] = field(default_factory=dict)
    tuned: dict[str, TunedWeights] = field(default_factory=dict)

    @property
    def query_limits(self) -> dict[str, int | None]:
        """Map each model to the number of tokens of a query that it reads; None for all."""
        read: dict[str, list[int | None]] = {}
        for stage in (stage for stages in self.stages.values() for stage in stages):
            for model in models_of(stage).values():
                read.setdefault(model, []).append(stage.query_tokens)
        return {
            model: None if None in limits else max(filter(None, limits))
            for model, limits in read.items()
        }

    @classmethod
    def read(
        cls, section: Section, default: StageOptions, models: Models, other_rows: Collection[str]
    ) -> PipelineRows:
        """Read the rows in the table [pipelines] of a recipe.

        default: the options of all stages. other_rows: names that are taken. Raises InputError if
        there are none, or for a model that no row uses.
        """
        rows = cls()
        for row in section.sections("rows"):
            rows._add(row, default, models, other_rows)
        if not rows.stages:
            raise InputError("no rows", where=section.where("rows"))
        used = rows.models
        if unused := [name for name in models.by_name if name not in used]:
            raise InputError(
                f"no row uses the model {unused[0]!r}",
                where=section.where("models"),
                wanted=f"one of {', '.join(used)}",
            )
        return rows

    def _add(
        self, row: Section, default: StageOptions, models: Models, other_rows: Collection[str]
    ) -> None:
        name = new_row_name(row, (*other_rows, *self.stages, *self.shown_as.values()))
        stages = tuple(default.updated(stage) for stage in row.sections("stages"))
        if not stages:
            raise InputError("no stages", where=row.where("stages"))
        by_seed = _by_seed(name, stages, models)
        if taken := self.stages.keys() & by_seed:
            raise InputError(f"two rows are called {min(taken)!r}", where=row.where("name"))
        self.shown_as |= dict.fromkeys(by_seed, name)
        self.stages |= by_seed or {name: stages}
        if "vectors" in row.keys:
            kind = row.one_of("vectors", (EMBEDDING, STATIC), EMBEDDING)
            self.vectors |= dict.fromkeys(by_seed or (name,), kind)
        if "tuned" in row.keys:
            if by_seed:
                raise InputError("seeds cannot be tuned", where=row.where("tuned"))
            self.tuned[name] = TunedWeights.read(row.section("tuned"), stages)
        row.reject_unknown_keys()

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all models that the stages use, each once."""
        every = [stage for stages in self.stages.values() for stage in stages]
        used = [name for stage in every for name in models_of(stage).values()]
        used += [defaults.EMBEDDING] if any(map(takes_default_embedding, every)) else []
        used += [defaults.STATIC_EMBEDDING] if STATIC in self.vectors.values() else []
        return tuple(dict.fromkeys(used))

    @property
    def shown(self) -> tuple[str, ...]:
        """The rows in the tables."""
        return distinct(self.stages, self.shown_as)

    def over(self, option: str) -> Mapping[str, float]:
        """Return row in the tables → its value of a numeric option of its last stage, ascending.

        Rows without the option are left out; all are for an empty name.
        """
        last = {self.shown_as.get(name, name): stages[-1] for name, stages in self.stages.items()}
        numbers = {
            name: getattr(stage, option)
            for name, stage in last.items()
            if option and (stage.duo or option != "duo_depth")
        }
        return dict(sorted(numbers.items(), key=lambda item: item[1]))


def _by_seed(name: str, stages: Sequence[StageOptions], models: Models) -> dict[str, Stages]:
    """Return a row's name for each seed → its stages; empty if no stage's model has seeds."""
    if not any(model in models.by_variant for s in stages for model in models_of(s).values()):
        return {}
    by_seed = {}
    for number, seed in enumerate(models.seeds):
        of_seed = []
        for stage in stages:
            of_roles: dict[str, Any] = {
                role: models.by_variant[model][number]
                for role, model in models_of(stage).items()
                if model in models.by_variant
            }
            of_seed.append(replace(stage, **of_roles))
        by_seed[f"{name}, seed {seed}"] = tuple(of_seed)
    return by_seed
