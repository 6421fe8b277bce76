"""Which test collections are searched, and where are their indexes, with and without vectors?"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.children import ROOT, say
from birchbark import (
    FirstStage,
    Index,
    Qrels,
    Query,
    Run,
    build_index,
    defaults,
    rank_queries,
    read_collection,
    read_qrels,
    read_queries,
    read_run,
)
from birchbark.artifact import fingerprint
from birchbark.index.shards import is_index
from birchbark.segment.by_name import Segmenter, parse_segmenter


@dataclass(frozen=True, slots=True)
class Collection:
    """A test collection below the data folder.

    run: the candidates, if they do not come from an index of all documents. measures: AP and
    nDCG@10, as ir-measures spells them for this collection.
    """

    name: str
    folder: str
    qrels: str = "qrels.txt"
    run: str | None = None
    segments: str = defaults.SEGMENTS
    measures: tuple[str, str] = ("AP", "nDCG@10")


# Judgments of TREC DL have four grades; grade 1 is on topic, but not relevant.
COLLECTIONS = (
    Collection("TIME", "time"),
    Collection("CACM", "cacm", "qrels.fixed.txt"),
    Collection(
        "DL19",
        "trec-dl19-passage",
        run="runs/BM25.5bcc39.top100.run",
        segments="whole",
        measures=("AP(rel=2)", "nDCG@10"),
    ),
    Collection("Cranfield", "cranfield"),
    Collection("SciFact", "scifact"),
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A collection with its judged queries and two indexes: without and with stored vectors."""

    collection: Collection
    queries: Sequence[Query]
    qrels: Qrels
    plain: Path
    vectors: Path
    candidates: Run | None

    @property
    def segmenter(self) -> Segmenter:
        """How documents are split."""
        return parse_segmenter(self.collection.segments)

    def only(self, queries: Sequence[Query]) -> Prepared:
        """Return the collection with some of its queries, their judgments and candidates."""
        chosen = {query.query_id for query in queries}
        qrels = Qrels({id_: of_one for id_, of_one in self.qrels.grades.items() if id_ in chosen})
        run = self.candidates and Run(
            {id_: of_one for id_, of_one in self.candidates.rankings.items() if id_ in chosen},
            self.candidates.tag,
        )
        in_order = [query for query in self.queries if query.query_id in chosen]
        return replace(self, queries=in_order, qrels=qrels, candidates=run)

    def index(self, *, vectors: bool) -> Path:
        """Return the folder of the index with or without stored vectors."""
        return self.vectors if vectors else self.plain

    def run(self, first_stage: FirstStage) -> Run:
        """Return the candidates of all queries, best first."""
        if self.candidates:
            return self.candidates
        depth = defaults.RERANKING_DEPTH
        return rank_queries(Index(self.plain), self.queries, first_stage, depth=depth)


def prepare(collection: Collection, data: Path, cache: Path) -> Prepared:
    """Read a collection, and build its indexes in `cache` unless they exist."""
    folder = data / collection.folder
    corpus = folder / "corpus.jsonl"
    name = f"{collection.name}-{fingerprint(corpus)[:8]}"
    plain, vectors = (cache / f"{name}{kind}.index" for kind in ("", "-vectors"))
    if not is_index(plain):
        build_index(read_collection(str(corpus)), plain)
    _attach_vectors(plain, vectors, collection.segments)
    qrels = read_qrels(folder / collection.qrels)
    return Prepared(
        collection,
        [q for q in read_queries(folder / "queries.tsv") if q.query_id in qrels.grades],
        qrels,
        plain,
        vectors,
        read_run(folder / collection.run) if collection.run else None,
    )


def _attach_vectors(plain: Path, vectors: Path, segments: str) -> None:
    """Copy an index, and compute the vectors that it lacks: none if they are complete."""
    if not is_index(vectors):
        shutil.copytree(plain, vectors)
    say(f"vectors of {vectors.name}")
    attach = ["index", "attach", str(vectors), "--vectors", defaults.EMBEDDING]
    command = [sys.executable, "-m", "birchbark", *attach, "--segments", segments]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
