"""How is a collection ranked by single fields, weighted fields, and one joint field?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from birchbark import FirstStage, Index, InputError, Qrels, Query, Run
from birchbark.evaluate.tune import Candidates, Tuning, simplex_grid, tune
from birchbark.index.build_index import Schema
from birchbark.retrieve.first_stage import match_ratio, rank_query
from birchbark_studies.collections import TestCollection
from birchbark_studies.experiments.fields.field_settings import TUNED, FieldSettings
from birchbark_studies.recipe import Recipe
from birchbark_studies.workspace import Workspace

SCORED = 10  # documents of each query whose scores are averaged
_DATE = re.compile(r"(\d{4})-\d{2}-\d{2}.*")
Counts = dict[str, tuple[int, int]]  # name or value → documents, judged documents
Stages = Mapping[str, FirstStage]  # query_id → its first stage


@dataclass(frozen=True, slots=True)
class FieldRuns:
    """All runs on one collection.

    Attributes:
        compared: Row → run.
        tuning: The tuning of the field weights.
        scores: Field → the mean score of the best 10 documents of each query; of fewer if fewer
            have a score.
        matched: Row → (match ratio averaged over queries, run), one row per match and ranking.
        presence: Field → (number of documents, number of judged documents) that have it.
        counted: Field → value, or its year → (number of documents, number of judged documents).
        documents: The number of documents in the collection.
        judged: The number of judged documents in the collection.
    """

    name: str
    qrels: Qrels
    compared: Mapping[str, Run]
    tuning: Tuning
    scores: Mapping[str, float]
    matched: Mapping[str, tuple[float, Run]]
    presence: Mapping[str, tuple[int, int]]
    counted: Mapping[str, Mapping[str, tuple[int, int]]]
    documents: int
    judged: int


def rank_by_fields(
    settings: FieldSettings, recipe: Recipe, workspace: Workspace, collection: TestCollection
) -> FieldRuns:
    """Rank one collection. Weights are tuned on the scores of the single fields, computed once.

    Raises InputError if no document has one of the fields.
    """
    schema = Schema(
        settings.analyzer, fields={**settings.names, settings.joint: _joined_fields(settings)}
    )
    index = workspace.index(collection, schema)
    for name, parts in settings.names.items():
        if not index.totals(name).tokens:
            raise InputError(
                f"no document has any term in {' or '.join(parts)}",
                where=f"{recipe.path}: fields.names.{name}",
            )
    ranker = _Ranker(index, collection.queries, recipe.depth)
    stage = FirstStage(recipe.bm25, dict.fromkeys(settings.names, 1.0))
    workspace.progress(f"{collection.name}: ranking by each field and tuning weights")
    single = {
        name: ranker.full_run(replace(stage, fields={name: 1.0}), name) for name in settings.names
    }
    tuning = _tune(settings, recipe, collection, single)
    weighted = {
        query_id: replace(stage, fields=dict(zip(settings.names, weights, strict=True)))
        for query_id, weights in tuning.by_query().items()
    }
    joint = dict.fromkeys(weighted, replace(stage, fields={settings.joint: 1.0}))
    compared = {name: run.head(recipe.depth) for name, run in single.items()}
    given = {
        row: dict.fromkeys(weighted, replace(stage, fields=weights))
        for row, weights in settings.weights.items()
    }
    searched: dict[str, Stages] = {**given, TUNED: weighted, settings.joint: joint}
    for name, stages in {settings.sum_row: dict.fromkeys(weighted, stage), **searched}.items():
        compared[name] = ranker.run(stages, name)
    workspace.progress(f"{collection.name}: ranking with each match")
    matched = {}
    for match_name, match in settings.match.items():
        for name, stages in searched.items():
            row = f"{name}, {match_name}"
            matching = {q: replace(stage, match=match) for q, stage in stages.items()}
            matched[row] = ranker.match_ratio(matching), ranker.run(matching, row)
    judged = {doc_id for grades in collection.qrels.grades.values() for doc_id in grades}
    presence, counted = _counts(index, _joined_fields(settings), settings.counted, judged)
    for name, values in counted.items():
        if values.keys() <= {""}:
            raise InputError(
                f"no document has the field {name}", where=f"{recipe.path}: fields.counted"
            )
    judged_documents = sum(index.find(doc_id) is not None for doc_id in judged)
    return FieldRuns(
        name=collection.name,
        qrels=collection.qrels,
        compared=compared,
        tuning=tuning,
        scores={name: _mean_score(run.head(SCORED)) for name, run in single.items()},
        matched=matched,
        presence=presence,
        counted=counted,
        documents=len(index),
        judged=judged_documents,
    )


def _mean_score(run: Run) -> float:
    """Return the mean of all scores of a run, 0 if it has none."""
    scores = [s for ranking in run.rankings.values() for s in ranking.scores]
    return float(sum(scores) / max(1, len(scores)))


def _counts(
    index: Index, present: tuple[str, ...], counted: tuple[str, ...], judged: set[str]
) -> tuple[Counts, dict[str, Counts]]:
    """Count documents and judged documents: those that have a field, and those with each value.

    present: the fields of the first result, by name. counted: those of the second, by name and
    value. A list of values, separated by semicolons, counts once for each of them. Of a date, its
    year counts.
    """
    presence: Counts = dict.fromkeys(present, (0, 0))
    by_value: dict[str, Counts] = {name: {} for name in counted}
    for document in index:
        is_judged = document.doc_id in judged
        for name in present:
            if document.fields.get(name, "").strip():
                _count(presence, name, is_judged)
        for name in counted:
            parts = {part.strip() for part in document.fields.get(name, "").split(";")}
            for value in {found[1] if (found := _DATE.fullmatch(part)) else part for part in parts}:
                _count(by_value[name], value, is_judged)
    return presence, by_value


def _count(counts: Counts, key: str, is_judged: bool) -> None:
    documents, judged_documents = counts.get(key, (0, 0))
    counts[key] = documents + 1, judged_documents + is_judged


def _joined_fields(settings: FieldSettings) -> tuple[str, ...]:
    """Return the document fields that the joint field consists of, without duplicates."""
    return tuple(dict.fromkeys(part for parts in settings.names.values() for part in parts))


def _tune(
    settings: FieldSettings, recipe: Recipe, collection: TestCollection, single: Mapping[str, Run]
) -> Tuning:
    """Choose the weights for each fold of the judged queries. single: field → its complete run."""
    qrels = collection.qrels
    runs = list(single.values())
    candidates = {q: Candidates.of([run.rankings[q] for run in runs]) for q in runs[0].rankings}
    folds = collection.folds_or_random(settings.folds, recipe.seed)
    weights = simplex_grid(len(runs), settings.step)
    return tune(candidates, qrels, weights, settings.tune, folds, recipe.depth)


@dataclass(frozen=True, slots=True)
class _Ranker:
    """Ranks the queries of a collection, each with its own first stage."""

    index: Index
    queries: tuple[Query, ...]
    depth: int

    def full_run(self, stage: FirstStage, tag: str) -> Run:
        """Rank all candidates of each query, without a cutoff."""
        rankings = {
            q.query_id: rank_query(self.index, q.text, stage, len(self.index)) for q in self.queries
        }
        return Run(rankings, tag)

    def run(self, stages: Stages, tag: str) -> Run:
        """Rank the best `depth` documents for each query."""
        return Run(
            {
                q.query_id: rank_query(self.index, q.text, stages[q.query_id], self.depth)
                for q in self.queries
            },
            tag,
        )

    def match_ratio(self, stages: Stages) -> float:
        """Return the share of documents that are candidates, averaged over queries."""
        ratios = [match_ratio(self.index, q.text, stages[q.query_id]) for q in self.queries]
        return sum(ratios) / len(ratios)
