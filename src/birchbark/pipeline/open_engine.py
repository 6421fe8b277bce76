"""Which engine finds the candidates of a search: by terms, by stored vectors, or by both?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from birchbark.combine.fusion import fuse_rankings
from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.stored_embedding import open_stored_embedding
from birchbark.pipeline.stored.vector_scorer import embedding_scorer
from birchbark.pipeline.stored.vector_sets import fitting_set
from birchbark.retrieve.dense_engine import DenseEngine
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.match import OR
from birchbark.retrieve.vector_match import HYBRID, VectorMatch
from birchbark.score.scorer import Scorer

MAX_COMPARED = 1_000_000  # vectors without a graph, in 0.06 s; more only for those who ask for it


def open_engine(
    index: Index,
    stage: FirstStage = FirstStage(),
    match: VectorMatch | None = None,
    load: Callable[[str], Scorer] | None = None,
    rankers: Sequence[Ranker] = (),
) -> IndexEngine | DenseEngine:
    """Return the engine that finds candidates for `rankers`, or hits if there are none.

    Args:
        index: The index.
        stage: The first stage. Defaults to `FirstStage()`: BM25.
        match: How vectors are used. Defaults to None: half of the candidates are found by the
            vectors that the first ranker uses, those of its embedding if all documents have some,
            otherwise static ones. Terms alone find them if there is no ranker, if the stage has
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
        found = _finding_set(index, rankers)
        if found is None or stage.match != OR:
            return IndexEngine(index, stage)
        vectors, scorer = found
        match = replace(HYBRID, vectors=vectors)
        engine = dense_engine(index, stage, match, lambda model: scorer, rankers)
        return engine if engine.vectors_without_graph <= MAX_COMPARED else IndexEngine(index, stage)
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
    return DenseEngine(index, embedding, match, stage, fuse_rankings)


def _finding_set(index: Index, rankers: Sequence[Ranker]) -> tuple[str, Scorer] | None:
    """Return the set of vectors that finds candidates, and the scorer that computed it."""
    if not rankers:
        return None
    name, scorer, static = set_for(index, rankers), rankers[0].vector_scorer, rankers[0].static
    encoder = embedding_scorer(static) if static else None
    if static and encoder and (name is None or _lacks_documents(index, name)):
        other = fitting_set(index.attachments, encoder, rankers[0].segmenter)
        if other:
            return other, static
    return (name, scorer) if name and scorer else None


def _lacks_documents(index: Index, name: str) -> bool:
    """Return whether vectors of a document have not been computed yet."""
    vectors = index.attachment(name)
    return not vectors or any(len(vectors.missing(part)) for part in range(len(index.parts)))


def set_for(index: Index, rankers: Sequence[Ranker]) -> str | None:
    """Return the name of the set of vectors that the first ranker uses; None if there is none.

    Vectors of tokens, which find no candidates, are not meant.
    """
    scorer = rankers[0].vector_scorer if rankers else None
    embedding = embedding_scorer(scorer) if scorer else None
    if embedding is None:
        return None
    return fitting_set(index.attachments, embedding, rankers[0].segmenter)
