"""Which engine finds the candidates of a search: by terms, by stored vectors, or by both?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.stored_embedding import open_stored_embedding
from birchbark.pipeline.stored.vector_scorer import embedding_scorer
from birchbark.pipeline.stored.vector_sets import count_missing, fitting_set
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.match import OR
from birchbark.retrieve.vector_match import HYBRID, VectorMatch
from birchbark.retrieve.vector_search import StoredVectors
from birchbark.score.scorer import Scorer
from birchbark.score.vector_quantization import inner_products

MAX_COMPARED = 1_000_000  # vectors without a graph, in 0.06 s; more only for those who ask for it


def open_engine(
    index: Index,
    stage: FirstStage = FirstStage(),
    match: VectorMatch | None = None,
    load: Callable[[str], Scorer] | None = None,
    rankers: Sequence[Ranker] = (),
) -> IndexEngine:
    """Return the engine that finds candidates for `rankers`, or hits if there are none.

    Args:
        index: The index.
        stage: The first stage. Defaults to `FirstStage()`: BM25.
        match: How vectors are used. Defaults to None: half of the candidates are found by the
            vectors of the first ranker's embedding, or by static ones as long as more documents
            have these. Terms alone find them if there is no ranker, if the stage has
            another match than `OR`, or if the index has no such vectors, or more than a million
            without a graph.
        load: Returns the scorer of a model by its name, such as `load_scorer`; called with the name
            of the model that computed the vectors. Defaults to None, where none is needed.
        rankers: The stages that re-rank the candidates. Defaults to none.

    Raises:
        InputError: The index lacks the vectors, or `load` returns another model than the one that
            computed them.
    """
    if match is None:
        for vectors, scorer in _finding_sets(index, rankers) if stage.match == OR else ():
            match = replace(HYBRID, vectors=vectors)
            engine = dense_engine(index, stage, match, partial(_given, scorer), rankers)
            if engine.vectors.without_graph <= MAX_COMPARED:
                return engine
        return IndexEngine(index, stage)
    if not match.used:
        return IndexEngine(index, stage)
    if load is None:
        raise InputError("nothing loads the model of the vectors", wanted="load=load_scorer")
    return dense_engine(index, stage, match, load, rankers)


def dense_engine(
    index: Index,
    stage: FirstStage,
    match: VectorMatch,
    load: Callable[[str], Scorer],
    rankers: Sequence[Ranker],
) -> DenseEngine:
    """Return the engine that uses an index's stored vectors; see `open_engine`."""
    cut = match.query_tokens
    if cut is None and rankers:
        cut = rankers[0].query_tokens
    embedding = open_stored_embedding(index, match.vectors, load, cut)
    vectors = StoredVectors.of(index, embedding.vectors, inner_products)
    if match.terms is not None:
        stage = replace(stage, match=match.terms)
    return DenseEngine(index, stage, match=match, embedding=embedding, vectors=vectors)


def _finding_sets(index: Index, rankers: Sequence[Ranker]) -> list[tuple[str, Scorer]]:
    """Return the sets of vectors that can find candidates, the best first, and their scorers.

    A set that more documents have is better; of equal ones, that of the embedding.
    """
    if not rankers or not (scorer := rankers[0].vector_scorer):
        return []
    sets = []
    if name := set_for(index, rankers):
        sets.append((name, scorer))
    static = rankers[0].static
    encoder = embedding_scorer(static) if static else None
    if encoder and (name := fitting_set(index.attachments, encoder, rankers[0].segmenter)):
        sets.append((name, encoder))
    return sorted(sets, key=lambda one: count_missing(index, one[0]))


def _given(scorer: Scorer, model: str) -> Scorer:
    """Return the scorer that computed a set of vectors, whose model is not loaded again."""
    return scorer


def set_for(index: Index, rankers: Sequence[Ranker]) -> str | None:
    """Return the name of the set of vectors that the first ranker uses; None if there is none.

    Vectors of tokens, which find no candidates, are not meant.
    """
    scorer = rankers[0].vector_scorer if rankers else None
    embedding = embedding_scorer(scorer) if scorer else None
    if embedding is None:
        return None
    return fitting_set(index.attachments, embedding, rankers[0].segmenter)
