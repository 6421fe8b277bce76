"""From which rankings do studies of evidence, reranking and rewording take their candidates?"""

from __future__ import annotations

from collections.abc import Callable

from birchbark.index.reader import Index
from birchbark.records import Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.study.data import TestCollection
from birchbark.study.recipe import Recipe

FIRST_STAGES = THEIRS, BM25, EXPANDED = "first stage", "BM25", "BM25+RM3"


def first_stages(
    recipe: Recipe, index: Callable[[], Index], collection: TestCollection, *, rm3: bool
) -> dict[str, Run]:
    """BM25, and RM3 if it is asked for; or the run that others made."""
    if collection.run:
        wanted = {query.query_id for query in collection.queries}
        kept = {q: r for q, r in collection.run.rankings.items() if q in wanted}
        return {THEIRS: Run(kept, THEIRS).head(recipe.depth)}
    stages = {BM25: FirstStage(recipe.bm25)}
    if rm3:
        stages[EXPANDED] = FirstStage(recipe.bm25, expansion=RM3())
    return {
        tag: rank_queries(index(), collection.queries, stage, depth=recipe.depth, tag=tag)
        for tag, stage in stages.items()
    }
