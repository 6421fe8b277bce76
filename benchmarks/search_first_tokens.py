"""How good is what peers do: the cross-encoder alone, on the first 512 tokens of each document?

The scores are computed with Birchbark's scorer, from the token ids that peers feed to the model, so
that they can be stored; search_peers.py compares them with those of the peers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.search_collections import Prepared
from benchmarks.search_quality import means
from benchmarks.search_rows import NewScorers, Vectors
from birchbark import Index, Query, Run, defaults
from birchbark.records import Float32s, Ranking
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.store import ScoreStore

NAME = "cross-encoder alone, first 512 tokens of each document"
MAX_TOKENS, SPECIAL_TOKENS = 512, 3
Figures = dict[str, Any]


def measure_first_tokens(prepared: Prepared, scores: Path) -> Figures:
    """Return measure → mean over the queries. scores: the folder of the score store."""
    candidates = prepared.candidates()
    rankings = {
        query.query_id: Ranking.of(candidates.rankings[query.query_id].doc_ids, of_query)
        for query, of_query in score_first_tokens(prepared, candidates, prepared.queries, scores)
    }
    return means(prepared, Run(rankings, "first-tokens"))


def score_first_tokens(
    prepared: Prepared,
    candidates: Run,
    queries: Sequence[Query],
    scores: Path,
) -> Iterator[tuple[Query, Float32s]]:
    """Yield each query with the scores of its candidates, in their order."""
    index = Index(prepared.indexes[Vectors.NONE])
    scorer = NewScorers().scorer(defaults.MODEL)
    with ScoreStore(scores, scorer) as store:
        cached = CachedScorer(scorer, store)
        for query in queries:
            (query_ids,) = scorer.encode([query.text])
            room = MAX_TOKENS - SPECIAL_TOKENS - len(query_ids)
            documents = index.documents(candidates.rankings[query.query_id].doc_ids)
            token_ids = scorer.encode([document.contents for document in documents])
            yield query, cached.score(query.text, [ids[:room] for ids in token_ids])
