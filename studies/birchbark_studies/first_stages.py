"""Which first-stage runs provide the candidates in a study, or are compared with its rankings?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from itertools import product

from birchbark import FirstStage, Index, InputError, Run, defaults, rank_queries
from birchbark.evaluate.folds import Folds
from birchbark.evaluate.mixtures import cross_validated_run
from birchbark.evaluate.rank_measures import parse_rank_measure
from birchbark.evaluate.tune import check_weightings
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.rm3 import RM3
from birchbark.section import Section
from birchbark_studies.collections import TestCollection
from birchbark_studies.recipe import Recipe, RM3Choices
from birchbark_studies.workspace import Workspace

MAX_RM3 = 1_000  # combinations of parameters to try, each of which ranks all queries
FIRST_STAGES = GIVEN, BY_BM25, BY_RM3 = "first stage", "BM25", "BM25+RM3"


def read_bm25(section: Section) -> BM25:
    """Read the keys k1, b and idf_documents. Raises InputError if one is out of range."""
    k1, b = section.number("k1", defaults.BM25_K1), section.number("b", defaults.BM25_B)
    idf_documents = section.text("idf_documents", defaults.IDF_DOCUMENTS)
    try:
        return BM25(k1, b, idf_documents)
    except InputError as fault:
        raise fault.at(section.where()) from None


def read_rm3(section: Section) -> RM3Choices:
    """Read the keys documents, terms, original_weight, max_df_share and tune.

    Each parameter is a number, or a list of numbers to try. Raises InputError if one is out of
    range, or if there are too many combinations.
    """
    usual = RM3()
    documents = section.integers("documents", (usual.documents,), minimum=1)
    terms = section.integers("terms", (usual.terms,), minimum=1)
    weights = section.numbers("original_weight", (usual.original_weight,))
    shares = section.numbers("max_df_share", (usual.max_df_share,))
    measure = section.text("tune", defaults.TUNED_MEASURE)
    try:
        check_weightings(math.prod(map(len, (documents, terms, weights, shares))), MAX_RM3)
        variants = tuple(
            RM3(*counts, *numbers)
            for counts in product(documents, terms)
            for numbers in product(weights, shares)
        )
        parse_rank_measure(measure)
    except InputError as fault:
        raise fault.at(section.where()) from None
    return RM3Choices(variants, measure)


def read_first_stage(section: Section) -> FirstStage:
    """Read the keys k1, b and rm3, whether queries are expanded with RM3."""
    expansion = RM3() if section.boolean("rm3", False) else None
    return FirstStage(read_bm25(section), expansion=expansion)


def first_stage_note(recipe: Recipe, bm25: BM25, depth: int, seed: int) -> str:
    """Return the settings of the first stage, and the seed; empty if no collections are read.

    bm25, depth, seed: those of the results, which may be older than the recipe.
    """
    if not recipe.collections:
        return ""
    if not recipe.experiment.uses_first_stage:
        return f"seed {seed}"
    note = f"{depth} documents per query, seed {seed}"
    if all(collection.run for collection in recipe.collections):
        return note
    idf = " and idf of all documents" if bm25.idf_documents == "all" else ""
    return f"{note}; BM25 with k1 {bm25.k1}, b {bm25.b}{idf}"


def first_stages(
    recipe: Recipe,
    workspace: Workspace,
    index: Callable[[], Index],
    collection: TestCollection,
    *,
    rm3: bool,
    folds: int = defaults.TUNING_FOLDS,
) -> dict[str, Run]:
    """Return the first-stage runs of a collection by name, each cut off at the recipe's depth.

    That is the run named by the recipe, restricted to judged queries, or else BM25 and, if `rm3`
    is true, BM25 with RM3. If the recipe lists several parameters of RM3, each query is ranked with
    those that are best on the other folds, which are reported. index: builds the index; called only
    if a run must be computed. folds: their number, unless the collection has its own.
    """
    if collection.run:
        judged = {query.query_id for query in collection.queries}
        rankings = {q: r for q, r in collection.run.rankings.items() if q in judged}
        return {GIVEN: Run(rankings, GIVEN).head(recipe.depth)}

    def rank(expansion: RM3 | None, tag: str) -> Run:
        stage = FirstStage(recipe.bm25, expansion=expansion)
        return rank_queries(index(), collection.queries, stage, depth=recipe.depth, tag=tag)

    variants = recipe.rm3.variants if rm3 else ()
    divided: Folds = ()
    if len(variants) > 1:  # told before any work
        divided = collection.folds_or_random(folds, recipe.seed)
    runs = {BY_BM25: rank(None, BY_BM25)}
    ranked = [rank(variant, BY_RM3) for variant in variants]
    if len(ranked) == 1:
        runs[BY_RM3] = ranked[0]
    if len(ranked) > 1:
        runs[BY_RM3], _, chosen = cross_validated_run(
            ranked, collection.qrels, divided, recipe.rm3.measure, BY_RM3
        )
        for number, row in enumerate(chosen, 1):
            told = ", ".join(f"{name} {value}" for name, value in asdict(variants[row]).items())
            workspace.progress(f"note: {collection.name}: RM3 of fold {number}: {told}")
    return runs
