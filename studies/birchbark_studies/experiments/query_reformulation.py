"""Do query variants from a masked language model help BM25? Cord paper, equation 5.1, and RM3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark import FirstStage, Index, InputError, Run
from birchbark.checkpoint.locate import locate
from birchbark.index.build_index import Schema
from birchbark.retrieve.first_stage import rank_query
from birchbark.score.masked_lm import MaskedLanguageModel
from birchbark.section import Section
from birchbark.show.table import Column, Heading, build_tables
from birchbark_studies.collections import TestCollection
from birchbark_studies.comparison import measure_columns
from birchbark_studies.experiments.trained.model_experiment import ModelExperiment
from birchbark_studies.first_stages import BY_BM25, FIRST_STAGES, first_stages
from birchbark_studies.models import Models
from birchbark_studies.outcome import Outcome, check_run_names
from birchbark_studies.query_variants import (
    check_queries,
    query_variants,
    terms_with_variants,
)
from birchbark_studies.recipe import Recipe
from birchbark_studies.workspace import Workspace


@dataclass(frozen=True, slots=True)
class QueryReformulationExperiment(ModelExperiment):
    """The settings of a study of query reformulation. Every count is combined with every share.

    Attributes:
        compared: The masked language models.
        counts: The numbers of query variants to add.
        shares: The weights of a variant relative to the query's weight. Each is multiplied by the
            variant's similarity to the query.
    """

    uses_rm3 = True
    counts: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def read(cls, section: Section) -> QueryReformulationExperiment:
        """Read the table [query-reformulation] of a recipe."""
        compared = Models.read(section.section("models"))
        if not compared.by_name:
            raise InputError("no models", where=section.where("models"))
        counts = section.integers("counts", (1, 3), minimum=1)
        shares = section.numbers("shares", (1.0,))
        if shares[0] <= 0 or shares[-1] > 1:
            raise InputError(
                "out of range", where=section.where("shares"), wanted="above 0, at most 1"
            )
        section.reject_unknown_keys()
        rows = [
            cls.row(name, count, share)
            for name in compared.by_name
            for count in counts
            for share in shares
        ]
        check_run_names([*FIRST_STAGES, *rows], section.where())
        return cls(compared, counts, shares)

    @staticmethod
    def row(name: str, count: int, share: float) -> str:
        """Return the name of a row: model, number of variants and share."""
        return f"{name}, {count} × {share:g}"

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        return {**self.compared.layout(), "rankings": measure_columns(measures)}

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Train the models, generate query variants, rank and compare."""
        collections = [workspace.open(files) for files in recipe.collections]
        prepared = self.compared.prepare(workspace)
        runs = {c.name: self._rank(recipe, workspace, c, prepared.paths) for c in collections}
        comparison = recipe.comparison(BY_BM25)
        groups = [
            comparison.group(collection.name, collection.qrels, runs[collection.name].values())
            for collection in collections
        ]
        headings = {"rankings": Heading("Queries with variants", "ranked by", comparison.note())}
        return prepared.outcome(
            build_tables(self.layout(recipe.measures), headings, {"rankings": groups}),
            comparison.plots(groups),
            {f"{name}.{tag}": run for name, ranked in runs.items() for tag, run in ranked.items()},
        )

    def _rank(
        self,
        recipe: Recipe,
        workspace: Workspace,
        collection: TestCollection,
        models: Mapping[str, str],
    ) -> dict[str, Run]:
        """Return row → run: BM25, BM25 with RM3, and BM25 with the variants of each model."""
        index = workspace.index(collection, Schema())
        runs = first_stages(recipe, workspace, lambda: index, collection, rm3=True)
        for name, path in models.items():
            workspace.progress(f"{collection.name}: query variants from {name}")
            workspace.note_cpu_only("masked language models")
            model = MaskedLanguageModel(locate(path))
            check_queries(model, collection.queries)
            max_count = self.counts[-1]
            variants = {
                query.query_id: query_variants(model, query.text, index.analyzer.terms, max_count)
                for query in collection.queries
            }
            if fewer := sum(len(of_query) < max_count for of_query in variants.values()):
                workspace.progress(f"note: {fewer:,} queries have fewer than {max_count} variants")
            for count in self.counts:
                for share in self.shares:
                    weights = {
                        query.query_id: terms_with_variants(
                            index.analyzer,
                            query.text,
                            variants[query.query_id][:count],
                            share,
                        )
                        for query in collection.queries
                    }
                    tag = self.row(name, count, share)
                    runs[tag] = _rank_weighted(index, weights, recipe, tag)
        return runs


def _rank_weighted(
    index: Index, weights: Mapping[str, Mapping[str, float]], recipe: Recipe, tag: str
) -> Run:
    """Rank weighted queries with BM25. weights: query_id → term → weight."""
    stage = FirstStage(recipe.bm25)
    rankings = {
        query_id: rank_query(index, terms, stage, recipe.depth)
        for query_id, terms in weights.items()
    }
    return Run(rankings, tag)
