"""How is a collection ranked by the first stage combined with the evidence from models?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from birchbark import Qrels, Query, Run
from birchbark.evaluate.mixtures import mixed_run
from birchbark.evaluate.rank_measures import Float64s
from birchbark.evaluate.tune import Tuning, tune
from birchbark.index.build_index import Schema
from birchbark_studies.collections import TestCollection
from birchbark_studies.experiments.evidence.evidence_scores import (
    Best,
    Components,
    EvidenceScores,
    read_candidate_scores,
    score_candidates,
)
from birchbark_studies.experiments.evidence.evidence_settings import EvidenceSettings, pruned_row
from birchbark_studies.first_stages import first_stages
from birchbark_studies.recipe import Recipe
from birchbark_studies.workspace import Workspace


@dataclass(frozen=True, slots=True)
class EvidenceRuns:
    """All runs on one collection.

    Attributes:
        baseline: The name of the first-stage run that provides the candidates.
        runs: The first-stage runs, and their combinations with evidence.
        pruned: The baseline, and for each run with the first stage and the best segments the run
            without segments that contain a query term; empty unless the recipe requests pruning.
        tunings: Run → the tuning that chose its weights.
        rows: Model → its runs with the first stage, one for each number of best segments.
        best: Model → query_id → doc_id → the best segments, for models whose topics are shown.
    """

    name: str
    queries: tuple[Query, ...]
    qrels: Qrels
    baseline: str
    runs: dict[str, Run]
    pruned: dict[str, Run]
    tunings: dict[str, Tuning]
    rows: dict[str, tuple[str, ...]]
    best: dict[str, Mapping[str, Mapping[str, Best]]]


def rank_by_evidence(
    settings: EvidenceSettings,
    models: Mapping[str, str],
    recipe: Recipe,
    workspace: Workspace,
    collection: TestCollection,
) -> EvidenceRuns:
    """Rank one collection. models: name of a model, or of a fold's model → model name or path."""
    index = cache(lambda: workspace.index(collection, Schema()))
    runs = first_stages(
        recipe, workspace, index, collection, rm3=settings.rm3, folds=settings.folds
    )
    baseline = list(runs)[-1]
    first = runs[baseline]
    ranked = EvidenceRuns(
        name=collection.name,
        queries=collection.queries,
        qrels=collection.qrels,
        baseline=baseline,
        runs=runs,
        pruned={baseline: first} if settings.pruned else {},
        tunings={},
        rows={},
        best={},
    )
    segments = settings.segments_of.get(collection.name, settings.segments)
    for name in settings.names:
        scores_documents = False
        if name in settings.scores:
            scores = read_candidate_scores(settings, name, workspace, collection, first)
        else:
            scores = EvidenceScores()
            for part, queries in _parts(settings, name, recipe, collection).items():
                workspace.progress(f"{collection.name}: {part} scores {segments}")
                with workspace.scorer(models[part], settings.precision) as scorer:
                    scores_documents = scorer.width > 1
                    of_part = score_candidates(
                        settings, scorer, index(), collection, first, queries
                    )
                    scores.add(of_part)
        ranked.rows[name] = settings.rows_with_first_stage(name, scores_documents)
        if name in map(settings.first_seed, settings.topics):
            ranked.best[name] = scores.best
        _combine(settings, name, scores_documents, scores, ranked, recipe, collection)
    return ranked


def _parts(
    settings: EvidenceSettings, name: str, recipe: Recipe, collection: TestCollection
) -> dict[str, list[Query]]:
    """Map each part of a model to the queries for which it scores documents.

    A fold's model scores those of this fold, from which it has not learnt.
    """
    parts = settings.compared.parts(name)
    if len(parts) == 1:
        return {name: list(collection.queries)}
    folds = collection.folds_or_random(settings.folds, recipe.seed)
    return {
        part: [query for query in collection.queries if query.query_id in fold]
        for part, fold in zip(parts, map(frozenset, folds), strict=True)
    }


def _combine(
    settings: EvidenceSettings,
    name: str,
    scores_documents: bool,
    scores: EvidenceScores,
    ranked: EvidenceRuns,
    recipe: Recipe,
    collection: TestCollection,
) -> None:
    """Tune the weights for all rows of a model, and add their runs to `ranked`."""

    def tuned(components: Components, weights: Float64s) -> Tuning:
        folds = collection.folds_or_random(settings.folds, recipe.seed)
        return tune(components, collection.qrels, weights, settings.tune, folds, recipe.depth)

    if allowed := settings.allowed_weights(name, scores_documents):
        tuning = tuned(scores.components, settings.grid)
        for tag, mask in allowed.items():
            ranked.tunings[tag] = tuning.restrict(mask)
            ranked.runs[tag] = mixed_run(scores.components, ranked.tunings[tag], tag)
    aggregated = {} if scores_documents else settings.aggregated_rows(name)
    for tag, (aggregation, alone) in aggregated.items():
        components, weights = scores.aggregated[aggregation], settings.interpolation_grid
        tuning = tuned(components, weights)
        ranked.tunings[tag] = tuning.restrict((weights[:, 0] == 0) | (not alone))
        ranked.runs[tag] = mixed_run(components, ranked.tunings[tag], tag)
    if settings.pruned:
        tuning = tuned(scores.pruned, settings.grid)
        for row in settings.pruned_rows(name):
            restricted = tuning.restrict(allowed[row]) if row in allowed else tuning
            ranked.pruned[row] = mixed_run(scores.pruned, restricted, pruned_row(row))
