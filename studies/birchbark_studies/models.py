"""Which models does a study compare, and which of them does it train?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from birchbark import InputError, Run
from birchbark.checkpoint.locate import open_named
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.score.token_limits import longest_query
from birchbark.section import Section
from birchbark.show.plot import Plot
from birchbark.show.table import Column, Table
from birchbark.train.config import TrainingConfig
from birchbark_studies.collections import TestCollection
from birchbark_studies.outcome import Outcome
from birchbark_studies.seeds import distinct
from birchbark_studies.training_chains import (
    Chain,
    TrainedModel,
    base_models,
    read_models,
    train_all,
    training_files,
    with_seeds,
    without_fold,
)
from birchbark_studies.training_tables import COLUMNS, training_plots, training_table
from birchbark_studies.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a recipe.

    Attributes:
        by_name: Name → model name or directory, or the training runs that make it.
        seeds: The seeds with which each model is trained; empty for the seed of its settings.
        folds: The number of folds for each of which a model is trained on the other folds; 0 for
            none.
        by_variant: Name in the tables → the names of its models, one for each of `seeds`.
    """

    by_name: Mapping[str, str | Chain]
    seeds: tuple[int, ...] = ()
    folds: int = 0
    by_variant: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, section: Section, seeds: tuple[int, ...] = (), folds: int = 0) -> Models:
        """Read a table of models from a recipe; see `read_models`. seeds, folds: as above."""
        return cls({}, seeds, folds).adding(read_models(section))

    def adding(self, models: Mapping[str, str | Chain]) -> Models:
        """Return these and further models, of which those that are trained have all seeds."""
        by_name, by_variant = dict(self.by_name), dict(self.by_variant)
        for name, model in models.items():
            of_seeds: Mapping[str, str | Chain] = {name: model}
            if not isinstance(model, str):
                of_seeds = with_seeds(name, model, self.seeds)
            if taken := by_name.keys() & of_seeds:
                raise InputError(f"two models are called {min(taken)!r}", where="models")
            by_name |= of_seeds
            if self.seeds and not isinstance(model, str):
                by_variant[name] = tuple(of_seeds)
        return replace(self, by_name=by_name, by_variant=by_variant)

    @property
    def existing(self) -> dict[str, str]:
        """The models that need no training."""
        return {name: model for name, model in self.by_name.items() if isinstance(model, str)}

    @property
    def chains(self) -> dict[str, Chain]:
        """The models that the study trains, each fold's by itself."""
        trained = {name: c for name, c in self.by_name.items() if not isinstance(c, str)}
        if not self.folds:
            return trained
        return {
            part: without_fold(chain, fold)
            for name, chain in trained.items()
            for fold, part in enumerate(self.parts(name), 1)
        }

    def parts(self, name: str) -> tuple[str, ...]:
        """Return what the model called `name` consists of: itself, or a model for each fold."""
        if name in self.existing or not self.folds:
            return (name,)
        return tuple(f"{name}, fold {fold}" for fold in range(1, self.folds + 1))

    @property
    def variant_of(self) -> dict[str, str]:
        """Map the name of each model that was trained with one of `seeds` to its variant."""
        return {name: variant for variant, names in self.by_variant.items() for name in names}

    @property
    def shown(self) -> tuple[str, ...]:
        """The names in the tables: those of the models, or one for all seeds of a variant."""
        return distinct(self.by_name, self.variant_of)

    def of(self, name: str) -> tuple[str, ...]:
        """Return the models that a name in the tables stands for."""
        return self.by_variant.get(name, (name,))

    @property
    def required(self) -> tuple[str, ...]:
        """All models that must exist before the study starts."""
        return tuple(dict.fromkeys([*self.existing.values(), *base_models(self.chains.values())]))

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the training data."""
        return training_files(self.chains.values())

    def layout(self) -> dict[str, tuple[Column, ...]]:
        """Map the name of each table that `PreparedModels.outcome` adds to its columns."""
        return {"trained": COLUMNS} if self.chains else {}

    def check_queries(
        self, collections: Iterable[TestCollection], limits: Mapping[str, int | None]
    ) -> None:
        """Raise InputError for a query that is too long for a cross-encoder that will be trained.

        limits: name of a model → the number of tokens of a query that it reads; others read all.
        """
        inputs: dict[tuple[str, int, int | None], TrainingConfig] = {}
        for name, chain in self.chains.items():
            kept = chain[-1].initialisation
            if not (kept.pooling or kept.duo):
                key = chain[0].base, chain[-1].max_length, limits.get(name)
                inputs.setdefault(key, chain[-1])
        queries = [(c.name, query) for c in collections for query in c.queries]
        for (base, max_length, limit), training in inputs.items():
            tokenizer = CheckpointTokenizer(open_named(base))
            longest = longest_query(max_length - tokenizer.pair_overhead)
            for collection, query in queries:
                length = len(tokenizer.spans(query.text))
                if min(length, limit or length) > longest:
                    raise InputError(
                        f"query {query.query_id} is too long for models of {training.path.name}",
                        where=f"collection {collection}",
                        wanted=f"at most {longest} tokens, half of max_length",
                        found=str(length),
                        remedy=f"query_tokens = {longest}, or a larger max_length",
                    )

    def prepare(self, workspace: Workspace) -> PreparedModels:
        """Train the models that are neither existing nor cached."""
        return PreparedModels(self, train_all(self.chains, workspace))


def fingerprint_of(model: str) -> str:
    """Return the fingerprint of a checkpoint, whatever its head."""
    return open_named(model).fingerprint


@dataclass(frozen=True, slots=True)
class PreparedModels:
    """The models of a recipe after training. trained: name → model that the study trained."""

    models: Models
    trained: Mapping[str, TrainedModel]

    @property
    def paths(self) -> dict[str, str]:
        """Map each name, and that of each fold's model, to a model name or path, in order."""
        existing, parts = self.models.existing, map(self.models.parts, self.models.by_name)
        return {
            name: existing[name] if name in existing else str(self.trained[name].model)
            for names in parts
            for name in names
        }

    @property
    def fingerprints(self) -> dict[str, str]:
        """Map each name to the fingerprint of its checkpoint."""
        return {name: fingerprint_of(model) for name, model in self.paths.items()}

    @property
    def _plotted(self) -> dict[str, TrainedModel]:
        """Map each name in the tables to its trained model, that of the first seed and fold."""
        models = self.models
        first = {name: models.parts(models.of(name)[0])[0] for name in models.shown}
        return {name: self.trained[model] for name, model in first.items() if model in self.trained}

    def outcome(
        self, tables: Iterable[Table], plots: Iterable[Plot], runs: Mapping[str, Run]
    ) -> Outcome:
        """Make the outcome of a study, with the table and curves of training runs first."""
        return Outcome(
            tables=(*([training_table(self.trained)] if self.trained else []), *tables),
            plots=(*(training_plots(self._plotted) if self.trained else []), *plots),
            runs=runs,
            models=self.fingerprints,
        )
