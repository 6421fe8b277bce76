"""Which first-stage runs provide the candidates in a study?"""

from __future__ import annotations

from collections.abc import Callable

from birchbark.index.index import Index
from birchbark.records import Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.study.collections import TestCollection
from birchbark.study.recipe import Recipe

FIRST_STAGES = GIVEN, BM25, BM25_RM3 = "first stage", "BM25", "BM25+RM3"


def first_stages(
    recipe: Recipe, index: Callable[[], Index], collection: TestCollection, *, rm3: bool
) -> dict[str, Run]:
    """Return the first-stage runs of a collection by name, each cut off at the recipe's depth.

    That is the run named by the recipe, restricted to judged queries, or else BM25 and, if `rm3`
    is true, BM25 with RM3. index: builds the index; called only if a run must be computed.
    """
    if collection.run:
        judged = {query.query_id for query in collection.queries}
        rankings = {q: r for q, r in collection.run.rankings.items() if q in judged}
        return {GIVEN: Run(rankings, GIVEN).head(recipe.depth)}
    stages = {BM25: FirstStage(recipe.bm25)}
    if rm3:
        stages[BM25_RM3] = FirstStage(recipe.bm25, expansion=RM3())
    return {
        tag: rank_queries(index(), collection.queries, stage, depth=recipe.depth, tag=tag)
        for tag, stage in stages.items()
    }
