"""How do the candidates of a collection get their scores, from a model or from a file?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from birchbark import Index, InputError, Query, Ranker, Run, defaults, read_run
from birchbark.collection.parsing.lines import binary_lines
from birchbark.collection.segment_scores import Scores, read_segment_scores
from birchbark.combine.aggregate import Sum, aggregate, parse_aggregation
from birchbark.combine.interpolate import Interpolation, Scale, scale_scores
from birchbark.evaluate.mixtures import evidence_candidates
from birchbark.evaluate.tune import Candidates
from birchbark.pipeline.answers.answer import Hit
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import score_documents
from birchbark.records import Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.scorer import Scorer
from birchbark.segment.by_name import parse_segmenter
from birchbark.text.analyzer import analyzer
from birchbark_studies.collections import TestCollection
from birchbark_studies.experiments.evidence.evidence_settings import EvidenceSettings
from birchbark_studies.workspace import Workspace

CACHED_TEXTS = 200_000  # number of texts whose terms are cached
Components = Mapping[str, Candidates]  # query_id → scores of the first stage and of segments
Best = tuple[tuple[float, str], ...]  # scores and texts of a document's segments, best first


@dataclass(frozen=True, slots=True)
class EvidenceScores:
    """The scores from one model or file, or from the models of several folds.

    Attributes:
        components: query_id → candidates, with first-stage and segment scores to combine.
        aggregated: Aggregation → components with one aggregated score in place of segment scores.
        pruned: Components without the segments that contain a query term.
        best: query_id → doc_id → its best segments, if the study shows topics.
    """

    components: dict[str, Candidates] = field(default_factory=dict)
    aggregated: dict[str, dict[str, Candidates]] = field(default_factory=dict)
    pruned: dict[str, Candidates] = field(default_factory=dict)
    best: dict[str, Mapping[str, Best]] = field(default_factory=dict)

    def add(self, other: EvidenceScores) -> None:
        """Add the scores for other queries."""
        self.components.update(other.components)
        self.pruned.update(other.pruned)
        self.best.update(other.best)
        for aggregation, components in other.aggregated.items():
            self.aggregated.setdefault(aggregation, {}).update(components)


def score_candidates(
    settings: EvidenceSettings,
    scorer: Scorer,
    index: Index,
    collection: TestCollection,
    first: Run,
    queries: Iterable[Query],
) -> EvidenceScores:
    """Score the candidates of each query with a model. Queries without candidates are left out."""
    ranker = _ranker(settings, collection.name, scorer)
    readers = RankerReaders(IndexEngine(index), ranker)
    count, scores = settings.max_segments, EvidenceScores()
    for query in queries:
        ranking = first.rankings.get(query.query_id, Ranking.of([], []))
        candidates = ranking.head(ranker.depth)
        if not len(candidates):
            continue
        hits = score_documents(readers, query.text, candidates.doc_ids).hits()
        segments = {
            hit.document.doc_id: tuple((part.score, part.segment.text) for part in hit.segments)
            for hit in hits
        }
        depth = ranker.depth
        scores.components[query.query_id] = _candidates(settings, ranking, depth, segments, count)
        for aggregation in settings.aggregations if scorer.width == 1 else ():
            single = {hit.document.doc_id: ((_aggregate(hit, aggregation), ""),) for hit in hits}
            scores.aggregated.setdefault(aggregation, {})[query.query_id] = _candidates(
                settings, ranking, depth, single, 1
            )
        if settings.pruned:
            pruned = _without_query_terms(query, segments)
            scores.pruned[query.query_id] = _candidates(settings, ranking, depth, pruned, count)
        if settings.topics:
            scores.best[query.query_id] = {d: best[:count] for d, best in segments.items()}
    return scores


def read_candidate_scores(
    settings: EvidenceSettings,
    name: str,
    workspace: Workspace,
    collection: TestCollection,
    first: Run,
) -> EvidenceScores:
    """Read published scores for the candidates. A candidate without published scores gets 0.

    Raises InputError if no candidate has a score.
    """
    published = _read_scores(workspace.root / settings.scores[name])
    depth = settings.depth_of.get(collection.name, settings.depth)
    scores = EvidenceScores()
    for query in collection.queries:
        ranking = first.rankings.get(query.query_id, Ranking.of([], []))
        candidates = ranking.head(depth)
        of_query = published.get(query.query_id, {})
        best = {
            doc_id: tuple((score, "") for score in sorted(of_query.get(doc_id, ()), reverse=True))
            for doc_id in candidates.doc_ids
        }
        if len(candidates):
            scores.components[query.query_id] = _candidates(
                settings, ranking, depth, best, settings.max_segments
            )
    _check_coverage(settings.scores[name], published, scores, collection, workspace)
    return scores


def _ranker(settings: EvidenceSettings, collection: str, scorer: Scorer) -> Ranker:
    """Return a ranker that scores all segments of a document."""
    segments = settings.segments_of.get(collection, settings.segments)
    return Ranker(
        scorer,
        segmenter=parse_segmenter(segments),
        aggregation=Sum(),
        interpolation=Interpolation(0.0),
        depth=settings.depth_of.get(collection, settings.depth),
        query_tokens=settings.query_tokens,
    )


def _aggregate(hit: Hit, aggregation: str) -> float:
    """Aggregate the segment scores of a document, in document order, by another aggregation."""
    ordered = sorted(hit.segments, key=lambda part: (part.segment.start, part.segment.end))
    scores = np.array([part.score for part in ordered], np.float32)
    return aggregate(scores, parse_aggregation(aggregation)).evidence


def _without_query_terms(query: Query, segments: Mapping[str, Best]) -> dict[str, Best]:
    """Remove the segments that contain a query term; both are stemmed."""
    query_terms = _terms(query.text)
    return {
        doc_id: tuple((score, text) for score, text in best if query_terms.isdisjoint(_terms(text)))
        for doc_id, best in segments.items()
    }


def _read_scores(path: Path) -> Scores:
    """Read a file of segment scores (JSON Lines), or a run with one score per document.

    The scores of a run are scaled for each query: the lowest becomes 0, the highest 1.
    """
    first_line = next((raw for _, raw in binary_lines(path) if raw.strip()), b"")
    if first_line.lstrip()[:1] == b"{":
        return read_segment_scores(path)
    scores: dict[str, dict[str, tuple[float, ...]]] = {}
    for query_id, ranking in read_run(path).rankings.items():
        values = scale_scores(ranking.scores, Scale.MINMAX).tolist()
        scores[query_id] = {d: (s,) for d, s in zip(ranking.doc_ids, values, strict=True)}
    return scores


def _check_coverage(
    file: str,
    published: Scores,
    scores: EvidenceScores,
    collection: TestCollection,
    workspace: Workspace,
) -> None:
    """Report how many candidates have no score; raise InputError if none has."""
    pairs = [(q, d) for q, candidates in scores.components.items() for d in candidates.doc_ids]
    missing = sum(not published.get(query_id, {}).get(doc_id) for query_id, doc_id in pairs)
    if missing == len(pairs):
        raise InputError(
            "no candidate has a score",
            where=file,
            remedy=f"check that its query and document ids match {collection.name}",
        )
    if missing:
        workspace.progress(
            f"note: {collection.name}: {missing:,} of {len(pairs):,} candidates have no score"
        )


def _candidates(
    settings: EvidenceSettings,
    first: Ranking,
    depth: int,
    segments: Mapping[str, Best],
    count: int,
) -> Candidates:
    """Join first-stage scores with the scores of the best `count` segments, best first."""
    scores = {doc_id: [score for score, _ in best] for doc_id, best in segments.items()}
    scale = partial(scale_scores, scale=settings.scale)
    return evidence_candidates(first, depth, scores, count, scale)


@lru_cache(CACHED_TEXTS)
def _terms(text: str) -> frozenset[str]:
    """Return the terms under which the first stage would index `text`."""
    return frozenset(analyzer(defaults.ANALYZER).terms(text))
