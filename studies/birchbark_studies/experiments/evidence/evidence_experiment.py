"""What does segment evidence add to the first stage? Compares models with cross-validated weights.

Birch paper, equation 3.2: score = a · s_doc + (1 − a) · Σ w_i · s_i. s_doc is the first-stage
score, s_i is the score of the document's i-th best segment, and w_1 = 1. For each fold, a and the
other w_i are tuned on the other folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from birchbark import InputError
from birchbark.score.scorer import Scorer
from birchbark.score.token_limits import cut_text
from birchbark.section import Section
from birchbark.show.table import Column
from birchbark_studies.collections import CollectionFiles, TestCollection
from birchbark_studies.experiments.evidence.evidence_runs import rank_by_evidence
from birchbark_studies.experiments.evidence.evidence_settings import EvidenceSettings
from birchbark_studies.experiments.evidence.evidence_tables import EvidenceReport, layout
from birchbark_studies.experiments.evidence.evidence_topics import analyse_topics
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Experiment, Recipe
from birchbark_studies.training_chains import Chain
from birchbark_studies.workspace import Workspace


@dataclass(frozen=True, slots=True)
class EvidenceExperiment(Experiment):
    """A study of evidence, with its settings."""

    collection_keys = frozenset({"run", "folds"})
    uses_rm3 = True
    settings: EvidenceSettings

    @classmethod
    def read(cls, section: Section) -> EvidenceExperiment:
        """Read the table [evidence] of a recipe."""
        return cls(EvidenceSettings.read(section))

    @property
    def reads_texts(self) -> bool:
        """Whether models score documents; published scores need none."""
        return bool(self.settings.compared.by_name)

    @property
    def models(self) -> tuple[str, ...]:
        """The existing models, and the models that training runs start from or learn from."""
        return self.settings.compared.required

    @property
    def chains(self) -> Mapping[str, Chain]:
        """The models that the study trains."""
        return self.settings.compared.chains

    @property
    def files(self) -> tuple[str, ...]:
        """The training data, and the files with published scores."""
        scores = self.settings.scores.values()
        return tuple(dict.fromkeys([*self.settings.compared.files, *scores]))

    def documents_read(self, collection: CollectionFiles) -> int:
        """Return the number of candidates, for each model."""
        depth = self.settings.depth_of.get(collection.name, self.settings.depth)
        return depth * len(self.settings.compared.by_name)

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        return self.settings.compared.layout() | layout(self.settings, measures)

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Train the models, rank, score the candidates, tune the weights, and evaluate."""
        settings = self.settings
        self._check_collections(recipe)
        collections = [workspace.open(files) for files in recipe.collections]
        self._check_folds(recipe, collections)
        for collection in collections:
            collection.folds_or_random(settings.folds, recipe.seed)  # told before any work
        limits = dict.fromkeys(settings.compared.chains, settings.query_tokens)
        settings.compared.check_queries(collections, limits)
        chains = settings.compared.chains.items()
        self._check_pruned([name for name, chain in chains if chain[-1].initialisation.parade])
        for name, model in settings.compared.existing.items():
            with workspace.scorer(model, settings.precision) as scorer:
                self._check_pruned([name] * (scorer.width > 1))
                for collection in collections:
                    self._check_queries(name, scorer, collection, workspace)
        prepared = settings.compared.prepare(workspace)
        models = prepared.paths
        ranked = [
            rank_by_evidence(settings, models, recipe, workspace, collection)
            for collection in collections
        ]
        report = EvidenceReport(settings, ranked, recipe)
        tables = report.tables()
        topics = analyse_topics(settings, ranked, report.results, models)
        runs = {
            f"{result.name}.{run.tag}": run
            for result in ranked
            for run in (*result.runs.values(), *list(result.pruned.values())[1:])
        }
        outcome = prepared.outcome(tables, (*report.plots(tables), *topics.plots), runs)
        return replace(outcome, topics=topics.topics, pages=topics.pages)

    def _check_queries(
        self, name: str, scorer: Scorer, collection: TestCollection, workspace: Workspace
    ) -> None:
        """Raise InputError for a query that is too long for the model; report those that are cut.

        This is done for models that exist before anything is trained or scored.
        """
        limit, cut_queries = self.settings.query_tokens, 0
        for query in collection.queries:
            cut, lost = cut_text(scorer, query.text, limit)
            cut_queries += lost > 0
            try:
                scorer.token_budget(cut)
            except InputError as fault:
                raise fault.at(f"collection {collection.name}, query {query.query_id}") from None
        if cut_queries:
            workspace.progress(
                f"note: {collection.name}: {name} reads the first {limit} tokens of queries; "
                f"{cut_queries:,} are longer"
            )

    def _check_pruned(self, whole: Sequence[str]) -> None:
        """Raise InputError if segments are to be pruned. whole: models of whole documents."""
        if self.settings.pruned and whole:
            raise InputError(f"{whole[0]} scores whole documents: segments cannot be pruned")

    def _check_folds(self, recipe: Recipe, collections: Sequence[TestCollection]) -> None:
        """Raise InputError unless models by fold leave out the folds of the only collection."""
        compared, where = self.settings.compared, f"{recipe.path}: training.by_fold"
        if not compared.folds:
            return
        if len(collections) > 1 or collections[0].folds is None:
            raise InputError("models by fold need one collection, with folds", where=where)
        [collection] = collections
        files, folds = collection.files, collection.folds or ()
        for *earlier, last in compared.chains.values():
            data = {file for dataset in last.data for file in dataset.files}
            for training in (*earlier, last):
                held_out = training.held_out.files if training.held_out else ()
                if held_out == (files.queries, files.folds):
                    continue
                if held_out or training is last or data.intersection(training.files):
                    raise InputError(
                        f"{training.path.name} does not hold out the folds of {collection.name}",
                        where=where,
                        wanted=f"held_out: queries = {files.queries!r}, folds = {files.folds!r}",
                        found=", ".join(held_out) or "nothing held out",
                    )
        if len(folds) != compared.folds:
            raise InputError(
                "wrong number of folds",
                where=where,
                wanted=f"{len(folds)}, as in {files.folds}",
                found=str(compared.folds),
            )

    def _check_collections(self, recipe: Recipe) -> None:
        """Raise InputError if a setting does not fit the collections of the recipe."""
        settings = self.settings
        deepest = max((settings.depth, *settings.depth_of.values()))
        recipe.check_depth(deepest)
        for collection in recipe.collections:
            if (settings.length_bounds or settings.topics) and not collection.queries:
                raise InputError(
                    "lengths and topics need queries",
                    where=f"{recipe.path}: collection {collection.name}",
                )
        recipe.check_names("segments_of", settings.segments_of)
        recipe.check_names("depth_of", settings.depth_of)
