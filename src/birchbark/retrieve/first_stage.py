"""How does a query become the first-stage ranking that BERT re-ranks?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from birchbark.index.layout import CONTENTS
from birchbark.index.reader import Index
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.bm25 import BM25, DEPTH, Match, rank, term_weights
from birchbark.retrieve.rm3 import RM3, expand


@dataclass(frozen=True, slots=True)
class FirstStage:
    """All choices of the first stage in one value.

    match: whether a candidate holds any or all terms of the original query. expansion: RM3 over a
    first BM25 ranking; none by default. field: the indexed field that is searched.
    """

    model: BM25 = dataclasses.field(default_factory=BM25)
    match: Match = Match.OR
    expansion: RM3 | None = None
    field: str = CONTENTS

    @property
    def name(self) -> str:
        """What runs of this first stage are called."""
        return "bm25+rm3" if self.expansion else "bm25"


def rank_query(
    index: Index, text: str, stage: FirstStage = FirstStage(), depth: int = DEPTH
) -> Ranking:
    """The `depth` best documents for `text`; none if it has no terms or nothing matches."""
    weights = term_weights(index, text)
    required = set(weights) if stage.match is Match.AND else set()
    if stage.expansion:
        seen = stage.expansion.documents
        feedback = rank(
            index, weights, stage.model, required=required, field=stage.field, depth=seen
        )
        weights = expand(index, weights, feedback, stage.expansion, stage.field)
    return rank(index, weights, stage.model, required=required, field=stage.field, depth=depth)


def rank_queries(
    index: Index,
    queries: Iterable[Query],
    stage: FirstStage = FirstStage(),
    *,
    depth: int = DEPTH,
    tag: str | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> Run:
    """A run of the `depth` best documents for each of `queries`, in their order.

    advance: called with 1 after each query. A query without candidates has an empty ranking.
    """
    rankings = {}
    for query in queries:
        rankings[query.query_id] = rank_query(index, query.text, stage, depth)
        advance(1)
    return Run(rankings, tag or stage.name)
