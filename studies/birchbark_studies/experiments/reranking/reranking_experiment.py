"""How does re-ranking the top k documents by BERT scores only change a run?

Cord paper, cross-encoders: tables 4.6 to 4.8 and A.1, figures 4.2 to 4.8, A.1 and A.2. Scores are
not interpolated with the first stage, unlike in evidence studies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from birchbark import FirstStage, Index, InputError, Run, defaults, rank_queries
from birchbark.checkpoint.locate import locate
from birchbark.index.build_index import Schema
from birchbark.index.layout import CONTENTS, DEFAULT_FIELDS
from birchbark.retrieve.first_stage import matching_ids
from birchbark.retrieve.match import ALL, parse_match
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.show.table import Column
from birchbark.text.analyzer import NORMALISERS
from birchbark_studies.collections import CollectionFiles, TestCollection
from birchbark_studies.experiments.bi_encoder.bi_encoder_scores import (
    compute_cosines,
    note_omissions,
)
from birchbark_studies.experiments.reranking.reranking_runs import Pool, random_scores, score_pool
from birchbark_studies.experiments.reranking.reranking_settings import (
    RerankingSettings,
    VectorFirstStage,
)
from birchbark_studies.experiments.reranking.reranking_tables import (
    RANDOM,
    RerankingReport,
    ScoredFirstStage,
    layout,
    row_name,
)
from birchbark_studies.experiments.trained.model_experiment import ModelExperiment
from birchbark_studies.experiments.trained.training_variants import read_models_and_variants
from birchbark_studies.first_stages import first_stages
from birchbark_studies.layer_encoder import LayerEncoder
from birchbark_studies.models import fingerprint_of
from birchbark_studies.outcome import Outcome, check_run_names, new_row_name
from birchbark_studies.recipe import Recipe
from birchbark_studies.workspace import Workspace

NEAREST = "cosine"  # name of the first stage by vectors
FIRST_STAGE_RUN = "as it was"  # name of the unchanged first-stage run beside the re-ranked runs


@dataclass(frozen=True, slots=True)
class RerankingExperiment(ModelExperiment):
    """The settings of a study of re-ranking.

    Attributes:
        fields: Name → segmenter for documents; a document's score is that of its best segment.
        first_stages: Name → first stage by BM25; empty for BM25 over the joint field. Collections
            with a given run have no such first stages.
        nearest: An additional first stage, by vectors; None for none.
        settings: The settings of the tables and plots.
        precision: The precision of the models' arithmetic.
        analyzer: The name of the analyzer.
    """

    collection_keys = frozenset({"run"})
    fields: Mapping[str, str]
    first_stages: Mapping[str, FirstStage]
    nearest: VectorFirstStage | None
    settings: RerankingSettings
    precision: Precision
    analyzer: str

    @classmethod
    def read(cls, section: Section) -> RerankingExperiment:
        """Read the table [reranking] of a recipe. For its models see `read_models_and_variants`."""
        compared = read_models_and_variants(section)
        table = section.section("fields")
        fields = {name: table.text(name) for name in table.keys}
        for name, segmenter in fields.items():
            try:
                parse_segmenter(segmenter)
            except InputError as fault:
                raise fault.at(table.where(name)) from None
        if not (compared.by_name and fields):
            raise InputError("models and fields are required", where=section.where())
        stages = _read_first_stages(section)
        has_nearest = "nearest" in section.keys
        nearest = VectorFirstStage.read(section.section("nearest")) if has_nearest else None
        precisions = [precision.value for precision in Precision]
        precision = Precision(section.one_of("precision", precisions, Precision.FP32.value))
        settings = RerankingSettings.read(section, compared)
        rows = [row_name(model, field) for model in compared.by_name for field in fields]
        check_run_names([FIRST_STAGE_RUN, RANDOM, *rows], section.where())
        analyzer = section.one_of("analyzer", tuple(NORMALISERS), defaults.ANALYZER)
        section.reject_unknown_keys()
        return cls(compared, fields, stages, nearest, settings, precision, analyzer)

    @property
    def models(self) -> tuple[str, ...]:
        """The existing models, the models that training runs need, and that of `nearest`."""
        nearest = (self.nearest.model,) if self.nearest else ()
        return tuple(dict.fromkeys([*self.compared.required, *nearest]))

    def documents_read(self, collection: CollectionFiles) -> int:
        """Return the number of top documents, for each first stage, model and field.

        Judged documents below them, which AUC needs, are not counted.
        """
        stages = 1 if collection.run else max(1, len(self.first_stages))
        stages += self.nearest is not None
        return self.settings.deepest * stages * len(self.compared.by_name) * len(self.fields)

    def times_encoded(self, collection: CollectionFiles) -> int:
        """Return 1 if a first stage ranks all documents by vectors, else 0."""
        return int(self.nearest is not None)

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        return self.compared.layout() | layout(self.settings, measures, tuple(self.fields))

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Train the models, score the top documents, re-rank at each depth, and evaluate."""
        self._check_recipe(recipe)
        collections = [workspace.open(files) for files in recipe.collections]
        self._check_grades(collections)
        self.compared.check_queries(collections, {})
        prepared = self.compared.prepare(workspace)
        ranked = [
            scored
            for collection in collections
            for scored in self._score(recipe, workspace, collection, prepared.paths)
        ]
        report = RerankingReport(self.settings, recipe, ranked, tuple(self.fields))
        tables, plots = report.tables_and_plots()
        runs = {
            f"{stage.name}.{stage.first.tag}.{tag}": run
            for stage in ranked
            for tag, run in {
                FIRST_STAGE_RUN: stage.first,
                **stage.runs(self.settings.shown),
            }.items()
        }
        outcome = prepared.outcome(tables, plots, runs)
        if nearest := self.nearest:
            models = {**outcome.models, nearest.model: fingerprint_of(nearest.model)}
            outcome = replace(outcome, models=models)
        return outcome

    def _check_recipe(self, recipe: Recipe) -> None:
        """Raise InputError if a setting contradicts the rest of the recipe."""
        recipe.check_depth(self.settings.deepest)
        recipe.check_names("judged_only", self.settings.judged_only)

    def _check_grades(self, collections: Sequence[TestCollection]) -> None:
        """Raise InputError if the qrels contain a grade without a column in the table of grades."""
        for collection in collections:
            highest = max(g for grades in collection.qrels.grades.values() for g in grades.values())
            if highest > self.settings.highest:
                raise InputError(
                    "the qrels contain a grade above the highest grade that is counted",
                    where=f"collection {collection.name}",
                    wanted=f"reranking.highest = {highest}",
                    found=str(self.settings.highest),
                )

    @property
    def _searched(self) -> dict[str, float]:
        """The fields that the first stages search, as keys."""
        return {name: w for s in self.first_stages.values() for name, w in (s.fields or {}).items()}

    @property
    def _schema(self) -> Schema:
        """The indexed fields: the joint field, and those of the first stages."""
        names = set(self._searched)
        single = {name: (name,) for name in sorted(names - {CONTENTS})}
        return Schema(self.analyzer, fields={**DEFAULT_FIELDS, **single})

    def _first_stages(
        self, recipe: Recipe, workspace: Workspace, collection: TestCollection, index: Index
    ) -> list[Run]:
        """Return the first stages of the recipe by BM25, or the run of the collection."""
        if collection.run or not self.first_stages:
            runs = first_stages(recipe, workspace, lambda: index, collection, rm3=False)
            return list(runs.values())
        for name in self._searched:
            if not index.totals(name).tokens:
                raise InputError(
                    f"no document has any term in {name}",
                    where=f"{recipe.path}: reranking.first_stages, collection {collection.name}",
                )
        return [
            rank_queries(
                index,
                collection.queries,
                replace(stage, model=recipe.bm25),
                depth=recipe.depth,
                tag=name,
            )
            for name, stage in self.first_stages.items()
        ]

    def _score(
        self,
        recipe: Recipe,
        workspace: Workspace,
        collection: TestCollection,
        models: Mapping[str, str],
    ) -> list[ScoredFirstStage]:
        """Score the documents of one collection. Returns its first stages with the scores."""
        index = workspace.index(collection, self._schema)
        firsts = self._first_stages(recipe, workspace, collection, index)
        if self.nearest:
            workspace.progress(f"{collection.name}: vectors of {self.nearest.segments}")
            firsts.append(_rank_by_vectors(self.nearest, recipe, workspace, collection, index))
        pool = Pool.of(collection.qrels, firsts, self.settings.deepest, index)
        if pool.missing:
            workspace.progress(
                f"note: {collection.name}: {pool.missing:,} judged pairs refer to documents that "
                "are not in the collection, and are not scored"
            )
        scores = {}
        for model, path in models.items():
            with workspace.scorer(path, self.precision) as scorer:
                for field, segmenter in self.fields.items():
                    workspace.progress(f"{collection.name}: {model} scores {field}")
                    scores[model, field] = score_pool(
                        scorer,
                        parse_segmenter(segmenter),
                        index,
                        collection.queries,
                        pool.documents,
                    )
        random = random_scores(pool.documents, recipe.seed)
        return [
            ScoredFirstStage(collection.name, collection.qrels, first, scores, random)
            for first in firsts
        ]


def _read_first_stages(section: Section) -> dict[str, FirstStage]:
    """Read the tables [[reranking.first_stages]]: name, fields (document field → weight), match."""
    stages: dict[str, FirstStage] = {}
    for table in section.sections("first_stages", []):
        name, weights = new_row_name(table, (NEAREST, RANDOM, *stages)), table.section("fields", {})
        try:
            match = parse_match(table.text("match", "or"))
            fields = {field: weights.number(field) for field in weights.keys}
            stages[name] = FirstStage(fields=fields or {CONTENTS: 1.0}, match=match)
        except InputError as fault:
            raise fault.at(table.where()) from None
        table.reject_unknown_keys()
    return stages


def _rank_by_vectors(
    stage: VectorFirstStage,
    recipe: Recipe,
    workspace: Workspace,
    collection: TestCollection,
    index: Index,
) -> Run:
    """Rank the documents by the cosine of their vector with the query's vector.

    Documents without the field are left out.
    """
    workspace.note_cpu_only("encoders of all layers")
    encoder = LayerEncoder(locate(stage.model), (stage.mode,))
    segmenter = parse_segmenter(stage.segments)
    cosines = compute_cosines(encoder, index, segmenter, collection.queries)
    note_omissions(workspace, index, cosines, encoder)
    candidates = None
    if stage.match != ALL:
        first = FirstStage(match=stage.match)
        ids = {q.query_id: matching_ids(index, q.text, first) for q in collection.queries}
        candidates = ids.__getitem__
    return cosines.run(encoder.poolings[-1], recipe.depth, NEAREST, candidates)
