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
LOWEST = 0.0  # what a document without the field counts as


def to_score(qrels: Qrels, firsts: Iterable[Run], depth: int) -> dict[str, tuple[str, ...]]:
    """Of each judged query, the first documents of all `firsts`, and what else is judged."""
    runs = list(firsts)
    found = {}
    for query_id, grades in qrels.grades.items():
        rankings = [run.rankings[query_id] for run in runs if query_id in run.rankings]
        heads = [doc_id for ranking in rankings for doc_id in ranking.doc_ids[:depth]]
        found[query_id] = tuple(dict.fromkeys([*heads, *grades]))
    return found


def score(
    scorer: Scorer,
    segmenter: Segmenter,
    index: Index,
    queries: Sequence[Query],
    documents: Mapping[str, Sequence[str]],
) -> Scores:
    """The best segment's score of each of a query's `documents` that the index has."""
    ranker = Ranker(scorer, segmenter, Max(), Interpolation(0.0))
    readers = Readers(IndexEngine(index), ranker)
    found = {}
    for query in queries:
        known = [d for d in documents.get(query.query_id, ()) if index.find(d) is not None]
        hits = settle(readers, query, Ranking.of(known, [0.0] * len(known)), ranker).hits
        found[query.query_id] = {h.document.doc_id: h.evidence for h in hits if h.segments}
    return found


def by_chance(documents: Mapping[str, Sequence[str]], seed: int) -> Scores:
    """A score for each, drawn anew for each query: what a ranking without any sense has."""
    return {
        query_id: dict(zip(names, np.random.default_rng([seed, n]).random(len(names)), strict=True))
        for n, (query_id, names) in enumerate(documents.items())
    }


def reranked(first: Run, scores: Scores, depth: int, tag: str) -> Run:
    """The first `depth` documents of each query by their scores; those below keep their order."""
    rankings = {}
    for query_id, ranking in first.rankings.items():
        head, own = ranking.head(depth), scores.get(query_id, {})
        ranked = Ranking.of(head.doc_ids, [own.get(d, LOWEST) for d in head.doc_ids])
        rankings[query_id] = with_rest(ranked, ranking) if len(head) else ranking
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
