"""Which first-stage runs provide the candidates in a study, or are compared with its rankings?"""

from __future__ import annotations

from collections.abc import Callable

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.records import Run
from birchbark.retrieve import bm25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.section import Section
from birchbark.study.collections import TestCollection
from birchbark.study.recipe import Recipe

FIRST_STAGES = GIVEN, BM25, BM25_RM3 = "first stage", "BM25", "BM25+RM3"


def read_bm25(section: Section) -> bm25.BM25:
    """Read the keys k1 and b. Raises InputError if one is out of range."""
    k1, b = section.number("k1", defaults.BM25_K1), section.number("b", defaults.BM25_B)
    try:
        return bm25.BM25(k1, b)
    except InputError as fault:
        raise fault.at(section.where()) from None


def read_first_stage(section: Section) -> FirstStage:
    """Read the keys k1, b and rm3, whether queries are expanded with RM3."""
    expansion = RM3() if section.boolean("rm3", False) else None
    return FirstStage(read_bm25(section), expansion=expansion)


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
