"""What becomes of a first stage whose first so many documents are ranked by one model alone?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.combine.aggregate import Max
from birchbark.combine.interpolate import Interpolation
from birchbark.index.reader import Index
from birchbark.pipeline.race import Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import settle
from birchbark.pipeline.stage import with_rest
from birchbark.records import Qrels, Query, Ranking, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.scorer import Scorer
from birchbark.segment.named import Segmenter

Scores = Mapping[str, Mapping[str, float]]  # query_id → doc_id → score; without the field: none


@dataclass(frozen=True, slots=True)
class ToScore:
    """query_id → the documents that are scored. absent: judged pairs that have no text here."""

    documents: Mapping[str, tuple[str, ...]]
    absent: int

    @classmethod
    def of(cls, qrels: Qrels, firsts: Iterable[Run], depth: int, index: Index) -> ToScore:
        """Of each judged query the first documents of all `firsts`, and what else is judged."""
        runs, found, absent = list(firsts), {}, 0
        for query_id, grades in qrels.grades.items():
            rankings = [run.rankings[query_id] for run in runs if query_id in run.rankings]
            heads = dict.fromkeys(d for ranking in rankings for d in ranking.doc_ids[:depth])
            judged = [d for d in grades if d not in heads]
            known = [d for d in judged if index.find(d) is not None]
            absent += len(judged) - len(known)
            found[query_id] = (*heads, *known)
        return cls(found, absent)


def score(
    scorer: Scorer,
    segmenter: Segmenter,
    index: Index,
    queries: Sequence[Query],
    documents: Mapping[str, Sequence[str]],
) -> Scores:
    """The best segment's score of each of a query's `documents`.

    Raises InputError for a document that the index has not.
    """
    ranker = Ranker(scorer, segmenter, Max(), Interpolation(0.0))
    readers = Readers(IndexEngine(index), ranker)
    found = {}
    for query in queries:
        names = documents.get(query.query_id, ())
        hits = settle(readers, query, Ranking.of(names, [0.0] * len(names))).hits
        found[query.query_id] = {h.document.doc_id: h.evidence for h in hits if h.segments}
    return found


def by_chance(documents: Mapping[str, Sequence[str]], seed: int) -> Scores:
    """A score for each, drawn anew for each query: what a ranking without any sense has."""
    return {
        query_id: dict(zip(names, np.random.default_rng([seed, n]).random(len(names)), strict=True))
        for n, (query_id, names) in enumerate(documents.items())
    }


def reranked(first: Run, scores: Scores, depth: int, tag: str) -> Run:
    """The first `depth` documents of each query by their scores; those below keep their order.

    So do those without a score, under the others.
    """
    rankings = {}
    for query_id, ranking in first.rankings.items():
        head, own = ranking.doc_ids[:depth], scores.get(query_id, {})
        some = [doc_id for doc_id in head if doc_id in own]
        best = Ranking.of(some, [own[doc_id] for doc_id in some])
        order = [*best.doc_ids, *(d for d in head if d not in own), *ranking.doc_ids[depth:]]
        whole = Ranking.of(order, -np.arange(len(order)))
        rankings[query_id] = with_rest(best, whole) if some else ranking
    return Run(rankings, tag)


def places_moved(first: Run, run: Run, depth: int) -> float:
    """How far a document among the first `depth` of `first` is from where it was, on average."""
    moved = []
    for query_id, ranking in first.rankings.items():
        now = {doc_id: n for n, doc_id in enumerate(run.rankings[query_id].doc_ids)}
        moved += [abs(n - now[doc_id]) for n, doc_id in enumerate(ranking.doc_ids[:depth])]
    return sum(moved) / max(1, len(moved))


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Pairs of query and document that one model scored: scores and relevant, (n,) both."""

    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: Scores, qrels: Qrels) -> Told:
        """Of all pairs; what nobody judged is not relevant."""
        pairs = [
            (value, qrels.grades.get(query_id, {}).get(doc_id, 0) > 0)
            for query_id, own in scores.items()
            for doc_id, value in own.items()
        ]
        return cls(np.array([s for s, _ in pairs], float), np.array([r for _, r in pairs], bool))

    def histogram(self, bins: int) -> dict[str, tuple[tuple[float, float], ...]]:
        """Relevant or not → (middle of a bin, share of their pairs in it), of scores 0 to 1."""
        edges = np.linspace(0, 1, bins + 1)
        middles = (edges[:-1] + edges[1:]) / 2
        found = {}
        for name, some in (("relevant", self.relevant), ("others", ~self.relevant)):
            counts, _ = np.histogram(np.clip(self.scores[some], 0, 1), edges)
            shares = counts / max(1, int(some.sum()))
            found[name] = tuple(zip(middles.tolist(), shares.tolist(), strict=True))
        return found
