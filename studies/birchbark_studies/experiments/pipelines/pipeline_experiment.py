"""How effective are multi-stage pipelines, and what do they cost?

Each row equals the output of `birchbark rerank --ranker` with the same stages, except rows with
`vectors`, whose candidates also come from vectors, and rows with a table `tuned`, whose
weights are chosen by cross-validation. Stages read everything unless the recipe sets read = "plan".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark import FirstStage, InputError, defaults
from birchbark.combine.pairwise import parse_pairwise
from birchbark.evaluate.rank_measures import parse_rank_measure
from birchbark.pipeline.load_rankers import pairs_read, segments_read
from birchbark.pipeline.stage_options import ALL, NONE, StageOptions
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.show.table import Column
from birchbark_studies.collections import CollectionFiles
from birchbark_studies.experiments.pipelines.loader import (
    PipelineLoader,
    is_embedding,
    models_of,
)
from birchbark_studies.experiments.pipelines.pipeline_runs import CollectionRanker, PipelineSettings
from birchbark_studies.experiments.pipelines.pipeline_tables import FIRST, layout, plots, tables
from birchbark_studies.experiments.pipelines.rows import EMBEDDING, STATIC, PipelineRows
from birchbark_studies.experiments.trained.model_experiment import ModelExperiment
from birchbark_studies.experiments.trained.training_variants import read_models_and_variants
from birchbark_studies.first_stages import read_first_stage
from birchbark_studies.outcome import Outcome, new_row_name
from birchbark_studies.recipe import Recipe
from birchbark_studies.seeds import seeds_layout
from birchbark_studies.workspace import Workspace

READ_EVERYTHING = StageOptions(
    embedding=NONE,
    read_segments=ALL,
    read_documents=ALL,
    read_pairs=ALL,
    embed_segments=ALL,
    embed_documents=ALL,
)
PLAN = "plan"  # by default, stages read as searches do


@dataclass(frozen=True, slots=True)
class PipelineExperiment(ModelExperiment):
    """The settings of a study of pipelines.

    Attributes:
        ranking: How collections are ranked.
        baseline: The row with which the others are compared; the first stage by default.
        over: A numeric option of the last stage, over which the measures are plotted; empty for
            none.
    """

    collection_keys = frozenset({"run", "folds"})
    ranking: PipelineSettings
    baseline: str
    over: str

    @classmethod
    def read(cls, section: Section) -> PipelineExperiment:
        """Read the table [pipelines] of a recipe."""
        models = read_models_and_variants(section)
        reads_all = section.one_of("read", (ALL, PLAN), ALL) == ALL
        default = READ_EVERYTHING if reads_all else StageOptions()
        default = default.updated(section.section("stage", {}))
        first_stages = _read_first_stages(section)
        rows = PipelineRows.read(section, default, models, (FIRST, *first_stages))
        segments = section.section("segments_of", {})
        ranking = PipelineSettings(
            rows=rows,
            first_stages=first_stages,
            segments_of={name: segments.text(name) for name in segments.keys},
            timed=section.integer("timed", 10, minimum=1),
            tune=section.text("tune", defaults.VALIDATION_MEASURE),
            folds=section.integer("folds", defaults.TUNING_FOLDS, minimum=2),
        )
        named = {name: name for name in rows.models if name not in models.by_name}
        experiment = cls(
            compared=models.adding(named),
            ranking=ranking,
            baseline=section.one_of("baseline", (FIRST, *first_stages, *rows.shown), FIRST),
            over=section.one_of("over", ("depth", "duo_depth")) if "over" in section.keys else "",
        )
        parse_rank_measure(ranking.tune)
        for segmenter in ranking.segments_of.values():
            parse_segmenter(segmenter)
        section.reject_unknown_keys()
        return experiment

    def documents_read(self, collection: CollectionFiles) -> int:
        """Return what all stages read at most; stages share scores of equal models and segments.

        A stage that reads few segments is counted with as many documents. A comparison of two
        documents reads both.
        """
        stages = [stage for row in self.ranking.rows.stages.values() for stage in row]
        read = [((s.model, s.pooling, s.segments), _documents(s)) for s in stages]
        read += [((s.duo, "", s.segments), 2 * _comparisons(s)) for s in stages if s.duo]
        most = dict(sorted(read, key=lambda item: item[1]))
        return sum(most.values())

    def times_encoded(self, collection: CollectionFiles) -> int:
        """Return how many indexes with vectors of an embedding the rows search."""
        rows, segments = self.ranking.rows, self.ranking.segments_of.get(collection.name)
        searched = {
            (_embedding(stage), stage.pooling, segments or stage.segments)
            for name, (stage, *_) in rows.stages.items()
            if rows.vectors.get(name) == EMBEDDING
        }
        return len(searched)

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        rows = self.ranking.rows
        seeds = seeds_layout(self.compared.seeds if rows.shown_as else ())
        return self.compared.layout() | layout(measures, rows.tuned, self.ranking.tune) | seeds

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Train the models, rank with each pipeline, measure effectiveness and speed."""
        self._check_recipe(recipe)
        loader, rows = PipelineLoader(workspace), self.ranking.rows
        self._check_existing(loader)
        collections = [workspace.open(files) for files in recipe.collections]
        for collection in collections if rows.tuned else ():
            collection.folds_or_random(self.ranking.folds, recipe.seed)  # told before any work
        self.compared.check_queries(collections, rows.query_limits)
        prepared = self.compared.prepare(workspace)
        ranked = [
            CollectionRanker(
                self.ranking, loader, prepared.paths, recipe, workspace, collection
            ).rank()
            for collection in collections
        ]
        comparison = recipe.comparison(self.baseline)
        made = tables(ranked, comparison, self.layout(recipe.measures), rows.shown_as, rows.tuned)
        by_name = {table.name: table for table in made}
        effectiveness, costs = by_name["pipelines"], by_name["costs"]
        return prepared.outcome(
            made,
            plots(effectiveness, costs, comparison, rows.over(self.over)),
            {f"{result.name}.{tag}": run for result in ranked for tag, run in result.runs.items()},
        )

    def _check_recipe(self, recipe: Recipe) -> None:
        """Raise InputError if a setting contradicts the rest of the recipe."""
        recipe.check_names("segments_of", self.ranking.segments_of)
        stages = [stage for row in self.ranking.rows.stages.values() for stage in row]
        recipe.check_depth(max(stage.depth for stage in stages))
        if self.baseline in self.ranking.first_stages and any(c.run for c in recipe.collections):
            raise InputError(
                f"the baseline {self.baseline!r} is not computed for a collection with a run",
                where=str(recipe.path),
                wanted="a baseline that all collections have",
            )

    def _check_existing(self, loader: PipelineLoader) -> None:
        """Raise InputError for rows of existing models that cannot be ranked, before training."""
        rows, existing = self.ranking.rows, self.compared.existing
        for name, stages in rows.stages.items():
            used = {model for stage in stages for model in models_of(stage).values()}
            if not used <= existing.keys():
                continue
            for variant in (stages, *(rows.tuned[name].variants if name in rows.tuned else ())):
                first = loader.rankers(name, variant, existing)[0]
                kind = rows.vectors.get(name)
                computing = first.static if kind == STATIC else first.vector_scorer
                if kind and computing is None:
                    raise InputError("vectors need an embedding", where=f"row {name}")


def _embedding(stage: StageOptions) -> str:
    """Return the embedding whose vectors a stage searches."""
    return stage.model if is_embedding(stage) else stage.embedding or defaults.EMBEDDING


def _documents(stage: StageOptions) -> int:
    """Return how many documents the model of a stage reads at most."""
    segments = stage.read_segments or ALL if is_embedding(stage) else segments_read(stage)
    limits = stage.read_documents, pairs_read(stage, segments)
    return min([stage.depth, *(int(limit) for limit in limits if limit != ALL)])


def _comparisons(stage: StageOptions) -> int:
    """Return how many pairs of documents a stage compares for a query at most."""
    pairwise = parse_pairwise(stage.duo_aggregate)
    return stage.duo_depth * pairwise.comparisons_per_document(stage.duo_depth)


def _read_first_stages(section: Section) -> dict[str, FirstStage]:
    """Read the tables [[first_stages]], each with a name."""
    stages: dict[str, FirstStage] = {}
    for table in section.sections("first_stages", []):
        name = new_row_name(table, (FIRST, *stages))
        stages[name] = read_first_stage(table)
        table.reject_unknown_keys()
    return stages
