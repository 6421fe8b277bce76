"""How does a set of queries become the first-stage run that BERT re-ranks?"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from birchbark.index.layout import CONTENTS
from birchbark.index.reader import Index
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.bm25 import BM25, DEPTH, Match, rank, term_weights
from birchbark.retrieve.rm3 import RM3, expand


def first_stage(
    index: Index,
    queries: Iterable[Query],
    model: BM25 = BM25(),  # noqa: B008
    *,
    match: Match = Match.OR,
    expansion: RM3 | None = None,
    field: str = CONTENTS,
    depth: int = DEPTH,
    tag: str | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> Run:
    """A run of the `depth` best documents for each of `queries`, in their order.

    match: whether a candidate holds any or all terms of the original query. expansion: RM3 over a
    first BM25 ranking. advance: called with 1 after each query. A query without terms, or without
    candidates, has an empty ranking.
    """
    rankings = {}
    for query in queries:
        rankings[query.query_id] = rank_query(
            index, query.text, model, match=match, expansion=expansion, field=field, depth=depth
        )
        advance(1)
    return Run(rankings, tag or ("bm25+rm3" if expansion else "bm25"))


def rank_query(
    index: Index,
    text: str,
    model: BM25 = BM25(),  # noqa: B008
    *,
    match: Match = Match.OR,
    expansion: RM3 | None = None,
    field: str = CONTENTS,
    depth: int = DEPTH,
) -> Ranking:
    """The first-stage ranking of one query text; arguments as in `first_stage`."""
    weights = term_weights(index, text)
    required = set(weights) if match is Match.AND else set()
    if expansion:
        feedback = rank(
            index, weights, model, required=required, field=field, depth=expansion.documents
        )
        weights = expand(index, weights, feedback, expansion, field)
    return rank(index, weights, model, required=required, field=field, depth=depth)
