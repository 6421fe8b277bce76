"""How is one collection ranked by the first stage and the evidence of several models?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from birchbark.collection.lines import binary_lines
from birchbark.collection.runs import read_run
from birchbark.collection.segment_scores import Scores, read_segment_scores
from birchbark.combine.aggregate import Sum, judged, parse_aggregation
from birchbark.combine.interpolate import Interpolation, Scale, scaled
from birchbark.errors import InputError
from birchbark.evaluate.tune import Candidates, Tuning, tune
from birchbark.index.build import Schema
from birchbark.index.reader import Index
from birchbark.pipeline.answer import Hit
from birchbark.pipeline.race import Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import settle
from birchbark.pipeline.stage import with_rest
from birchbark.records import Qrels, Query, Ranking, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.scorer import Scorer
from birchbark.segment.named import parse_segmenter
from birchbark.study.bench import Bench
from birchbark.study.data import TestCollection
from birchbark.study.first_stages import first_stages
from birchbark.study.kinds.evidence_choices import EvidenceChoices, pruned_row
from birchbark.study.recipe import Recipe
from birchbark.text.analyzer import analyzer

ANALYZER = "english"
REMEMBERED = 200_000  # texts whose terms are kept
Parts = Mapping[str, Candidates]  # query_id → scores of the first stage and of the best segments
Best = tuple[tuple[float, str], ...]  # score and text of a document's best segments, best first


@dataclass(frozen=True, slots=True)
class EvidenceRuns:
    """What was ranked on one collection. baseline: the run that candidates come from.

    runs: first stages and mixtures. pruned: the same without segments that hold a term of the
    query, of the baseline and of mixtures with all of `best`. tunings: mixture → how its weights
    were chosen. rows: model → its run with the first stage and all that counts. best: model → query
    → document → what counted most, of models that are looked at.
    """

    name: str
    queries: tuple[Query, ...]
    qrels: Qrels
    baseline: str
    runs: Mapping[str, Run]
    pruned: Mapping[str, Run]
    tunings: Mapping[str, Tuning]
    rows: Mapping[str, str]
    best: Mapping[str, Mapping[str, Mapping[str, Best]]]


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of one model: parts of the mixture with all segments, and with the pruned ones.

    aggregated: aggregation → parts of its mixture.
    """

    parts: dict[str, Candidates] = field(default_factory=dict)
    aggregated: dict[str, dict[str, Candidates]] = field(default_factory=dict)
    pruned: dict[str, Candidates] = field(default_factory=dict)
    best: dict[str, Mapping[str, Best]] = field(default_factory=dict)


def rank_by_evidence(
    choices: EvidenceChoices,
    models: Mapping[str, str],
    recipe: Recipe,
    bench: Bench,
    collection: TestCollection,
) -> EvidenceRuns:
    """All runs of one collection. models: name → what opens it."""
    index = cache(lambda: bench.index(collection, Schema(ANALYZER)))
    runs = first_stages(recipe, index, collection, rm3=choices.rm3)
    baseline = list(runs)[-1]
    first = runs[baseline]
    folds = collection.folds or ()
    pruned, tunings, rows, best = {baseline: first}, {}, {}, {}
    grid = choices.grid
    for name in choices.names:
        whole = False
        if name in choices.scores:
            given = _read_scores(bench.root / choices.scores[name])
            scored = _given(choices, given, collection, first)
            _tell_lacking(choices.scores[name], given, scored, collection, bench)
        else:
            segments = choices.segments_of.get(collection.name, choices.segments)
            bench.tell(f"{collection.name}: {name} scores {segments}")
            with bench.scorer(models[name], choices.precision) as scorer:
                whole = scorer.width > 1
                if whole and choices.pruned:
                    raise InputError(f"{name} judges documents as a whole: none can be pruned")
                ranker = _ranker(choices, collection.name, scorer)
                scored = _scored(choices, ranker, index(), collection.queries, first)
        rows[name] = choices.row(name, whole)
        mixtures = choices.mixtures(name, whole)
        if mixtures:
            tuning = tune(scored.parts, collection.qrels, grid, choices.tune, folds, recipe.depth)
        for tag, some in mixtures.items():
            tunings[tag] = tuning.among(some)
            runs[tag] = _mixed(first, scored.parts, tunings[tag], tag)
        aggregated = {} if whole else choices.aggregated_rows(name)
        for tag, (words, alone) in aggregated.items():
            parts, weights = scored.aggregated[words], choices.shares
            tuning = tune(parts, collection.qrels, weights, choices.tune, folds, recipe.depth)
            tunings[tag] = tuning.among((weights[:, 0] == 0) | (not alone))
            runs[tag] = _mixed(first, parts, tunings[tag], tag)
        if choices.pruned:
            tuning = tune(scored.pruned, collection.qrels, grid, choices.tune, folds, recipe.depth)
            pruned[name] = _mixed(first, scored.pruned, tuning, pruned_row(name))
        if name in choices.looked:
            best[name] = scored.best
    return EvidenceRuns(
        collection.name,
        collection.queries,
        collection.qrels,
        baseline,
        runs,
        pruned if choices.pruned else {},
        tunings,
        rows,
        best,
    )


def _ranker(choices: EvidenceChoices, collection: str, scorer: Scorer) -> Ranker:
    """Scores all segments of a document."""
    segments = choices.segments_of.get(collection, choices.segments)
    return Ranker(
        scorer,
        segmenter=parse_segmenter(segments),
        aggregation=Sum(),
        interpolation=Interpolation(0.0),
        depth=choices.depth_of.get(collection, choices.depth),
    )


def _scored(
    choices: EvidenceChoices, ranker: Ranker, index: Index, queries: tuple[Query, ...], first: Run
) -> Scored:
    """Each candidate's first-stage score, scaled, and its best segments' scores."""
    readers = Readers(IndexEngine(index), ranker)
    most, found = choices.most, Scored()
    for query in queries:
        ranking = first.rankings.get(query.query_id, Ranking.of([], []))
        candidates = ranking.head(ranker.depth)
        if not len(candidates):
            continue
        hits = settle(readers, query, candidates).hits
        segments = {
            hit.document.doc_id: tuple((one.score, one.segment.text) for one in hit.segments)
            for hit in hits
        }
        found.parts[query.query_id] = _candidates(choices, candidates, segments, ranking)
        for words in choices.aggregations if ranker.scorer.width == 1 else ():
            whole = {hit.document.doc_id: ((_aggregated(hit, words), ""),) for hit in hits}
            parts = _candidates(choices, candidates, whole, ranking, most=1)
            found.aggregated.setdefault(words, {})[query.query_id] = parts
        if choices.pruned:
            asked = _terms(query.text)
            others = {
                doc_id: tuple(one for one in scores if asked.isdisjoint(_terms(one[1])))
                for doc_id, scores in segments.items()
            }
            found.pruned[query.query_id] = _candidates(choices, candidates, others, ranking)
        if choices.looked:
            found.best[query.query_id] = {d: scores[:most] for d, scores in segments.items()}
    return found


def _aggregated(hit: Hit, words: str) -> float:
    """A document's evidence by another aggregation of the same scores."""
    ordered = sorted(hit.segments, key=lambda one: (one.segment.start, one.segment.end))
    scores = np.array([one.score for one in ordered], np.float32)
    return judged(scores, parse_aggregation(words)).evidence


def _read_scores(path: Path) -> Scores:
    """Scores that others computed: of segments, or a run's, as if each document were one segment.

    A run's scores are scaled, the lowest of a query to 0 and the highest to 1.
    """
    first = next((raw for _, raw in binary_lines(path) if raw.strip()), b"")
    if first.lstrip()[:1] == b"{":
        return read_segment_scores(path)
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for query_id, ranking in read_run(path).rankings.items():
        scores = scaled(ranking.scores, Scale.MINMAX).tolist()
        found[query_id] = {d: (s,) for d, s in zip(ranking.doc_ids, scores, strict=True)}
    return found


def _given(
    choices: EvidenceChoices, given: Scores, collection: TestCollection, first: Run
) -> Scored:
    """As `_scored`, with scores that others computed; a document that they lack has none."""
    depth = choices.depth_of.get(collection.name, choices.depth)
    found = Scored()
    for query in collection.queries:
        ranking = first.rankings.get(query.query_id, Ranking.of([], []))
        candidates = ranking.head(depth)
        scores = given.get(query.query_id, {})
        best = {
            doc_id: tuple((score, "") for score in sorted(scores.get(doc_id, ()), reverse=True))
            for doc_id in candidates.doc_ids
        }
        if len(candidates):
            found.parts[query.query_id] = _candidates(choices, candidates, best, ranking)
    return found


def _tell_lacking(
    file: str, given: Scores, scored: Scored, collection: TestCollection, bench: Bench
) -> None:
    """Say how many candidates have no score; InputError if none has."""
    pairs = [(q, d) for q, candidates in scored.parts.items() for d in candidates.doc_ids]
    lacking = sum(not given.get(query_id, {}).get(doc_id) for query_id, doc_id in pairs)
    if lacking == len(pairs):
        raise InputError(
            "no candidate has a score",
            where=file,
            remedy=f"are its ids those of {collection.name}, and of its first stage?",
        )
    if lacking:
        bench.tell(
            f"note: {collection.name}: {lacking:,} of {len(pairs):,} candidates have no score"
        )


def _candidates(
    choices: EvidenceChoices,
    ranking: Ranking,
    segments: Mapping[str, Best],
    whole: Ranking,
    most: int | None = None,
) -> Candidates:
    """The documents of `ranking` with what is mixed, and those of `whole` that lie below them.

    segments: of each, the best first. most: how many of them count.
    """
    most = most or choices.most
    stage = scaled(ranking.scores, choices.scale)
    scores = {doc_id: np.zeros(1 + most) for doc_id in sorted(ranking.doc_ids, reverse=True)}
    for doc_id, score in zip(ranking.doc_ids, stage.tolist(), strict=True):
        best = [score for score, _ in segments[doc_id][:most]]
        scores[doc_id][: 1 + len(best)] = [score, *best]
    below = whole.doc_ids[len(ranking) :]
    return Candidates(tuple(scores), np.stack(list(scores.values())), below)


@lru_cache(REMEMBERED)
def _terms(text: str) -> frozenset[str]:
    """What the first stage would find `text` by."""
    return frozenset(analyzer(ANALYZER).terms(text))


def query_length(query: Query) -> int:
    """How many terms the first stage searches for, stop words left out."""
    return len(analyzer(ANALYZER).terms(query.text))


def _mixed(first: Run, parts: Parts, tuning: Tuning, tag: str) -> Run:
    """Each query's candidates by the weights of its fold; those below keep their order."""
    weights = tuning.by_query()
    rankings = {}
    for query_id, candidates in parts.items():
        chosen = weights[query_id]
        mixed = sum(w * candidates.scores[:, i] for i, w in enumerate(chosen))
        rankings[query_id] = with_rest(
            Ranking.of(candidates.doc_ids, mixed), first.rankings[query_id]
        )
    return Run(rankings, tag)
