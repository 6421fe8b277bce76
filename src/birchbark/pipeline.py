"""How do the rooms work together? retrieve → segment → score → combine: the only composer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from birchbark.combine.aggregate import Aggregation, Top, aggregate
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.records import Document, Query, Ranking, Run, Segment
from birchbark.retrieve.engine import DocumentStore, Engine
from birchbark.score.scorer import Scorer
from birchbark.segment.fit import fit
from birchbark.segment.sentences import sentences

DEPTH = 100
REMEMBERED = 5000
Segmenter = Callable[[Document], list[Segment]]


@dataclass(frozen=True, slots=True)
class Ranker:
    """All choices of the second stage in one value.

    scorer: reads query and segment. segmenter: document → segments. aggregation: segment scores →
    evidence. interpolation: evidence and first stage → score. depth: how many candidates of the
    first stage are re-ranked; those below keep their order, under the re-ranked ones.
    """

    scorer: Scorer
    segmenter: Segmenter = sentences
    aggregation: Aggregation = field(default_factory=Top)
    interpolation: Interpolation = field(default_factory=Interpolation)
    depth: int = DEPTH

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InputError("depth is out of range", wanted="1 or more", found=str(self.depth))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One segment's part in its document's score: weight times score.

    weight: the aggregation's, times 1 − a; so the parts add up to the hit's evidence.
    """

    segment: Segment
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked document, and why it is where it is.

    score = first_stage + evidence: first_stage is a · s_doc, evidence is Σ weight · score.
    segments: those with a weight above 0, the highest share first.
    """

    document: Document
    score: float
    first_stage: float
    evidence: float
    segments: tuple[Evidence, ...]


def search(engine: Engine, text: str, ranker: Ranker | None, top: int = 10) -> list[Hit]:
    """The `top` best hits for `text`, best first: first stage, then every candidate re-ranked.

    At least `top` candidates are re-ranked, whatever the ranker's depth. Without a ranker the first
    stage has the last word, and hits have no evidence.
    """
    if top < 1:
        raise InputError("top is out of range", wanted="1 or more", found=str(top))
    if ranker is None:
        ranking = engine.rank(text, top)
        documents = engine.documents(ranking.doc_ids)
        scores = ranking.scores.tolist()
        return [Hit(d, score, score, 0.0, ()) for d, score in zip(documents, scores, strict=True)]
    candidates = engine.rank(text, max(top, ranker.depth))
    hits = score_candidates(engine, Query("", text), candidates, ranker)
    by_id = {hit.document.doc_id: hit for hit in hits}
    best = Ranking.of(list(by_id), [hit.score for hit in hits], top)
    return [by_id[doc_id] for doc_id in best.doc_ids]


def rerank(
    store: DocumentStore,
    run: Run,
    queries: Sequence[Query],
    ranker: Ranker,
    *,
    tag: str | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> Run:
    """`run` re-ranked for each of `queries`, in their order; advance: called with 1 after each.

    Raises InputError if the run has a query that is not in `queries`. A query without ranking gets
    an empty one.
    """
    texts = {query.query_id for query in queries}
    if unknown := [query_id for query_id in run.rankings if query_id not in texts]:
        raise InputError(
            f"the run ranks a query without a text: {unknown[0]}",
            found=f"{len(unknown)} such queries",
            remedy="give the queries that the run was made for",
        )
    for query in queries:  # before any work is done
        try:
            ranker.scorer.room(query.text)
        except InputError as error:
            raise error.at(f"query {query.query_id}") from None
    ranker = replace(ranker, segmenter=_remembering(ranker.segmenter))
    rankings = {}
    for query in queries:
        candidates = run.rankings.get(query.query_id, Ranking.of([], []))
        rankings[query.query_id] = rerank_query(store, query, candidates, ranker)
        advance(1)
    return Run(rankings, tag or f"{run.tag}+{ranker.scorer.kind}")


def _remembering(segmenter: Segmenter) -> Segmenter:
    """`segmenter`, which cuts a document that many queries find only once."""
    known: dict[str, list[Segment]] = {}

    def segments(document: Document) -> list[Segment]:
        if document.doc_id not in known:
            if len(known) == REMEMBERED:
                known.clear()
            known[document.doc_id] = segmenter(document)
        return known[document.doc_id]

    return segments


def rerank_query(
    store: DocumentStore, query: Query, candidates: Ranking, ranker: Ranker
) -> Ranking:
    """One ranking re-ranked: the first `depth` candidates by their new scores, then the rest.

    Candidates below the depth keep their order; their scores are moved below the lowest new one.
    """
    hits = score_candidates(store, query, candidates.head(ranker.depth), ranker)
    head = Ranking.of([h.document.doc_id for h in hits], [h.score for h in hits])
    rest = candidates.doc_ids[len(head) :]
    if not rest:
        return head
    lowest = float(head.scores.min())
    below = lowest - np.arange(1, len(rest) + 1) * max(1e-3, abs(lowest) * 1e-3)
    return Ranking.of([*head.doc_ids, *rest], [*head.scores.tolist(), *below.tolist()])


def score_candidates(
    store: DocumentStore, query: Query, candidates: Ranking, ranker: Ranker
) -> list[Hit]:
    """A Hit for each candidate, in the order of `candidates`."""
    documents = store.documents(candidates.doc_ids)
    room = ranker.scorer.room(query.text)
    per_document = [
        list(fit(ranker.segmenter(document), room, ranker.scorer.spans)) for document in documents
    ]
    texts = [segment.text for segments in per_document for segment in segments]
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}  # equal ones are scored once
    scores = ranker.scorer.score(query.text, list(place))[[place[text] for text in texts]]
    cuts = np.cumsum([len(segments) for segments in per_document])[:-1]
    of_document = np.split(scores, cuts) if per_document else []
    weights = [ranker.aggregation.weights(s) for s in of_document]
    evidence = np.array([aggregate(s, w) for s, w in zip(of_document, weights, strict=True)])
    first = ranker.interpolation.first_stage_parts(candidates.scores)
    second = ranker.interpolation.evidence_parts(evidence)
    share = 1 - ranker.interpolation.first_stage_weight
    return [
        Hit(document, float(f + e), float(f), float(e), _shares(segments, s, share * w))
        for document, f, e, segments, s, w in zip(
            documents, first, second, per_document, of_document, weights, strict=True
        )
    ]


def _shares(
    segments: list[Segment], scores: Iterable[float], weights: Iterable[float]
) -> tuple[Evidence, ...]:
    counted = [
        Evidence(segment, float(score), float(weight))
        for segment, score, weight in zip(segments, scores, weights, strict=True)
        if weight > 0
    ]
    return tuple(sorted(counted, key=lambda e: -e.weight * e.score))
