"""How is one collection ranked by fields: alone, added up, by tuned weights, and as one?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from birchbark.errors import InputError
from birchbark.evaluate.folds import make_folds
from birchbark.evaluate.tune import Candidates, Tuning, simplex, tune
from birchbark.index.build import Schema
from birchbark.index.reader import Index
from birchbark.records import Qrels, Query, Run
from birchbark.retrieve.first_stage import FirstStage, match_ratio, rank_query
from birchbark.study.bench import Bench
from birchbark.study.data import TestCollection
from birchbark.study.kinds.field_choices import TUNED, FieldChoices
from birchbark.study.recipe import Recipe

Stages = Mapping[str, FirstStage]  # query_id → its first stage


@dataclass(frozen=True, slots=True)
class FieldRuns:
    """What was ranked on one collection.

    compared: row → run. tuning: of the weights. matched: row → run with each match, whose mean
    match ratio is in `ratios`. presence: field → documents that have it, and judged ones.
    documents, judged: how many there are.
    """

    name: str
    qrels: Qrels
    compared: Mapping[str, Run]
    tuning: Tuning
    matched: Mapping[str, Run]
    ratios: Mapping[str, float]
    presence: Mapping[str, tuple[int, int]]
    documents: int
    judged: int


def rank_by_fields(
    fields: FieldChoices, recipe: Recipe, bench: Bench, collection: TestCollection
) -> FieldRuns:
    """All runs of one collection. Weights are tuned on scores of single fields, computed once."""
    schema = Schema(fields.analyzer, fields={**fields.names, fields.joint: _joined(fields)})
    index = bench.index(collection, schema)
    for name, parts in fields.names.items():
        if not index.totals(name).tokens:
            raise InputError(
                f"no document has any term in {' or '.join(parts)}",
                where=f"{recipe.path}: fields.names.{name}",
            )
    ranker = _Ranker(index, collection.queries, recipe.depth)
    stage = FirstStage(recipe.bm25, dict.fromkeys(fields.names, 1.0))
    bench.tell(f"{collection.name}: ranking by each field, tuning weights")
    whole = {name: ranker.whole(replace(stage, fields={name: 1.0}), name) for name in fields.names}
    tuning = _tune(fields, recipe, collection.qrels, whole)
    weighted = {
        query_id: replace(stage, fields=dict(zip(fields.names, weights, strict=True)))
        for query_id, weights in tuning.by_query().items()
    }
    joint = dict.fromkeys(weighted, replace(stage, fields={fields.joint: 1.0}))
    compared = {name: run.head(recipe.depth) for name, run in whole.items()}
    added = dict.fromkeys(weighted, stage)
    for name, stages in ((fields.added, added), (TUNED, weighted), (fields.joint, joint)):
        compared[name] = ranker.run(stages, name)
    bench.tell(f"{collection.name}: ranking by each match")
    matched, ratios = {}, {}
    for word, match in fields.match.items():
        for name, stages in ((TUNED, weighted), (fields.joint, joint)):
            row = f"{name}, {word}"
            chosen = {query_id: replace(one, match=match) for query_id, one in stages.items()}
            matched[row], ratios[row] = ranker.run(chosen, row), ranker.match_ratio(chosen)
    asked = {doc_id for grades in collection.qrels.grades.values() for doc_id in grades}
    presence = _presence(index, _joined(fields), asked)
    judged = sum(index.find(doc_id) is not None for doc_id in asked)
    return FieldRuns(
        *(collection.name, collection.qrels, compared, tuning, matched, ratios),
        *(presence, len(index), judged),
    )


def _presence(index: Index, names: tuple[str, ...], asked: set[str]) -> dict[str, tuple[int, int]]:
    """Field → documents that have it, and those of them that are judged."""
    found = dict.fromkeys(names, (0, 0))
    for document in index:
        for name in names:
            if document.fields.get(name, "").strip():
                there, judged = found[name]
                found[name] = there + 1, judged + (document.doc_id in asked)
    return found


def _joined(fields: FieldChoices) -> tuple[str, ...]:
    """The documents' fields that the joint field is made of, each once."""
    return tuple(dict.fromkeys(part for parts in fields.names.values() for part in parts))


def _tune(fields: FieldChoices, recipe: Recipe, qrels: Qrels, whole: Mapping[str, Run]) -> Tuning:
    """The best weights for each fold of the judged queries."""
    runs = list(whole.values())
    candidates = {q: Candidates.of([run.rankings[q] for run in runs]) for q in runs[0].rankings}
    folds = make_folds(qrels.grades, fields.folds, recipe.seed)
    weights = simplex(len(runs), fields.step)
    return tune(candidates, qrels, weights, fields.tune, folds, recipe.depth)


@dataclass(frozen=True, slots=True)
class _Ranker:
    """Ranks the queries of a collection, each by a first stage of its own."""

    index: Index
    queries: tuple[Query, ...]
    depth: int

    def whole(self, stage: FirstStage, tag: str) -> Run:
        """Every candidate, however deep."""
        rankings = {
            q.query_id: rank_query(self.index, q.text, stage, len(self.index)) for q in self.queries
        }
        return Run(rankings, tag)

    def run(self, stages: Stages, tag: str) -> Run:
        """The best of each query."""
        return Run(
            {
                q.query_id: rank_query(self.index, q.text, stages[q.query_id], self.depth)
                for q in self.queries
            },
            tag,
        )

    def match_ratio(self, stages: Stages) -> float:
        """Share of all documents that are candidates, mean over queries."""
        ratios = [match_ratio(self.index, q.text, stages[q.query_id]) for q in self.queries]
        return sum(ratios) / len(ratios)
