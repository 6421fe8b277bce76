"""How is the top of a first-stage run re-ranked by one model's scores only?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark import Index, Qrels, Query, Ranker, Run
from birchbark.combine.aggregate import Top
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import score_documents
from birchbark.records import Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.scorer import Scorer
from birchbark.segment.by_name import Segmenter

Scores = Mapping[str, Mapping[str, float]]  # query_id → doc_id → score, if it has text


@dataclass(frozen=True, slots=True)
class Pool:
    """The documents to score.

    Attributes:
        documents: query_id → doc_ids.
        missing: The number of judged query–document pairs whose document is not in the index.
    """

    documents: Mapping[str, tuple[str, ...]]
    missing: int

    @classmethod
    def of(cls, qrels: Qrels, runs: Sequence[Run], depth: int, index: Index) -> Pool:
        """Pool the top `depth` documents of all runs with the judged documents of each query."""
        documents, missing = {}, 0
        for query_id, grades in qrels.grades.items():
            rankings = [run.rankings[query_id] for run in runs if query_id in run.rankings]
            top = dict.fromkeys(d for ranking in rankings for d in ranking.doc_ids[:depth])
            judged = [d for d in grades if d not in top]
            indexed = [d for d in judged if index.find(d) is not None]
            missing += len(judged) - len(indexed)
            documents[query_id] = (*top, *indexed)
        return cls(documents, missing)


def score_pool(
    scorer: Scorer,
    segmenter: Segmenter,
    index: Index,
    queries: Sequence[Query],
    documents: Mapping[str, Sequence[str]],
) -> Scores:
    """Score documents by their best segment. Documents without segments are left out.

    documents: query_id → doc_ids. Raises InputError for a document that is not in the index.
    """
    ranker = Ranker(scorer, segmenter, Top((1.0,)))
    readers = RankerReaders(IndexEngine(index), ranker)
    scores = {}
    for query in queries:
        doc_ids = documents.get(query.query_id, ())
        hits = score_documents(readers, query.text, doc_ids).hits()
        scores[query.query_id] = {h.document.doc_id: h.evidence for h in hits if h.segments}
    return scores


def random_scores(documents: Mapping[str, Sequence[str]], seed: int) -> Scores:
    """Draw random scores for the documents of each query, with a separate generator per query."""
    return {
        query_id: dict(
            zip(doc_ids, np.random.default_rng([seed, n]).random(len(doc_ids)), strict=True)
        )
        for n, (query_id, doc_ids) in enumerate(documents.items())
    }


def rerank_top(first: Run, scores: Scores, depth: int, tag: str) -> Run:
    """Re-rank the top `depth` documents of each query by their scores.

    Documents without a score follow, and then the documents below `depth`, each group in its
    first-stage order.
    """
    rankings = {}
    for query_id, ranking in first.rankings.items():
        top, query_scores = ranking.doc_ids[:depth], scores.get(query_id, {})
        scored = [doc_id for doc_id in top if doc_id in query_scores]
        best = Ranking.of(scored, [query_scores[doc_id] for doc_id in scored])
        unscored = [doc_id for doc_id in top if doc_id not in query_scores]
        rest = [*unscored, *ranking.doc_ids[depth:]]
        rankings[query_id] = best.followed_by(rest) if scored else ranking
    return Run(rankings, tag)


def mean_rank_change(first: Run, run: Run, depth: int) -> float:
    """Return the mean absolute change in rank of the top `depth` documents of `first`."""
    changes = []
    for query_id, ranking in first.rankings.items():
        after = {doc_id: n for n, doc_id in enumerate(run.rankings[query_id].doc_ids)}
        changes += [abs(n - after[doc_id]) for n, doc_id in enumerate(ranking.doc_ids[:depth])]
    return sum(changes) / max(1, len(changes))


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPairs:
    """Query–document pairs scored by one model. scores, relevant: (n,), the same order for all.

    queries: the number of each pair's query (n,).
    """

    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    queries: NDArray[np.int64]

    @classmethod
    def of(cls, scores: Scores, qrels: Qrels, *, judged_only: bool = False) -> ScoredPairs:
        """Collect all scored pairs, or the judged ones. Unjudged pairs count as not relevant."""
        pairs = [
            (value, qrels.grades.get(query_id, {}).get(doc_id, 0) >= qrels.relevant, number)
            for number, (query_id, by_document) in enumerate(scores.items())
            for doc_id, value in sorted(by_document.items())
            if not judged_only or doc_id in qrels.grades.get(query_id, {})
        ]
        columns = zip(*pairs, strict=True) if pairs else ((), (), ())
        values, relevant, queries = columns
        return cls(np.array(values, float), np.array(relevant, bool), np.array(queries, int))

    def histogram(self, bins: int) -> dict[str, tuple[tuple[float, float], ...]]:
        """Return a histogram of scores from 0 to 1 for relevant and for non-relevant pairs.

        Each is a sequence of (centre of the bin, share of the pairs). Scores are clipped to 0 to 1.
        """
        edges = np.linspace(0, 1, bins + 1)
        centres = (edges[:-1] + edges[1:]) / 2
        shares = {}
        for name, mask in (("relevant", self.relevant), ("not relevant", ~self.relevant)):
            counts, _ = np.histogram(np.clip(self.scores[mask], 0, 1), edges)
            share = counts / max(1, int(mask.sum()))
            shares[name] = tuple(zip(centres.tolist(), share.tolist(), strict=True))
        return shares
