"""Which test collections are searched, and where are their indexes?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.children import say
from benchmarks.search_rows import Vectors
from birchbark import (
    Index,
    Qrels,
    Query,
    Run,
    build_index,
    defaults,
    load_scorer,
    rank_queries,
    read_collection,
    read_qrels,
    read_queries,
)
from birchbark.artifact import fingerprint
from birchbark.index.sharded_writer import open_writer
from birchbark.index.shards import is_index
from birchbark.pipeline.stored.precompute import Precomputation, precompute_vectors
from birchbark.pipeline.stored.static_vectors import static_vectors
from birchbark.pipeline.stored.vector_scorer import fast_copy
from birchbark.pipeline.upkeep.update_index import attach
from birchbark.segment.by_name import parse_segmenter

SEED = 1


@dataclass(frozen=True, slots=True)
class Collection:
    """A test collection below the data folder."""

    name: str
    folder: str
    qrels: str = "qrels.txt"


COLLECTIONS = (
    Collection("TIME", "time"),
    Collection("CACM", "cacm", "qrels.fixed.txt"),
    Collection("Cranfield", "cranfield"),
    Collection("SciFact", "scifact"),
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A collection with its judged queries in random order, and an index with each kind of vectors.

    The order is fixed, so that the first queries are a sample.
    """

    collection: Collection
    queries: Sequence[Query]
    qrels: Qrels
    indexes: Mapping[Vectors, Path]

    def first(self, count: int) -> Prepared:
        """Return the collection with its first queries, and with the judgments of these."""
        queries = self.queries[:count]
        grades = {query.query_id: self.qrels.grades[query.query_id] for query in queries}
        return replace(self, queries=queries, qrels=Qrels(grades))

    def candidates(self) -> Run:
        """Return the candidates of all queries by BM25."""
        index = Index(self.indexes[Vectors.NONE])
        return rank_queries(index, self.queries, depth=defaults.RERANKING_DEPTH)


def prepare(collection: Collection, data: Path, cache: Path) -> Prepared:
    """Read a collection, and build its indexes in `cache` unless they exist."""
    folder = data / collection.folder
    corpus = folder / "corpus.jsonl"
    name = f"{collection.name}-{fingerprint(corpus)[:8]}"
    indexes = {kind: cache / f"{name}-{kind.name.lower()}.index" for kind in Vectors}
    for kind, index in indexes.items():
        if not is_index(index):
            build_index(read_collection(str(corpus)), index)
        with open_writer(index) as writer:  # resumes, and computes nothing if all is there
            say(f"{collection.name}, {kind.value}")
            attach(writer, _computations(kind))
    qrels = read_qrels(folder / collection.qrels)
    queries = [q for q in read_queries(folder / "queries.tsv") if q.query_id in qrels.grades]
    shuffled = random.Random(SEED).sample(queries, len(queries))
    return Prepared(collection, shuffled, qrels, indexes)


def _computations(kind: Vectors) -> list[Precomputation]:
    if kind is Vectors.NONE:
        return []
    if kind is Vectors.STATIC:
        return [static_vectors()]
    model, segmenter = defaults.EMBEDDING, parse_segmenter(defaults.SEGMENTS)
    fast = fast_copy(model, load_scorer)
    return [static_vectors(), precompute_vectors(load_scorer(model), segmenter, model, fast=fast)]
