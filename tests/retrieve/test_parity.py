"""Does the first stage agree with Anserini, and give equal runs after any history of the index?"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import write_run
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.part import PartField
from birchbark.index.statistics import Statistics
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Query
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf
from birchbark.retrieve.weighting_model import Scoring


class RoundedBM25(BM25):
    """BM25 with lengths that Lucene rounds to one byte, on which Anserini's figures depend."""

    def norms(self, field: PartField, statistics: Statistics) -> NDArray[np.float64]:
        """Return the norms of lengths of which, less 24, only the first four bits are kept."""
        floor, slope = self._norm_line(statistics)
        above = np.maximum(field.lengths.astype(np.int64) - 24, 0)
        dropped = np.maximum(np.frexp(above)[1] - 4, 0)
        lengths = field.lengths - above + (above >> dropped << dropped)
        return np.asarray(floor + slope * lengths, np.float64)

    def scoring(self, weights: Mapping[str, float], statistics: Statistics) -> Scoring:
        """Return the scoring of exact lengths, with a bound of norms that rounding cannot pass."""
        return replace(BM25.scoring(self, weights, statistics), slope=0.0)


@pytest.mark.parametrize("part_tokens", [50_000, 10_000_000])
@pytest.mark.parametrize(
    ("folder", "corpus", "expansion", "figures"),
    [
        ("cacm", "corpus.anserini.jsonl", None, {"AP": 0.3123, "P@30": 0.1942}),
        ("cacm", "corpus.anserini.jsonl", RM3(), {"AP": 0.3648, "P@30": 0.2224}),
        ("scifact", "corpus.jsonl", None, {"nDCG@10": 0.6789, "R@100": 0.9253}),
    ],
)
def test_published_first_stage_figures(
    data: Callable[[str], Path],
    tmp_path: Path,
    folder: str,
    corpus: str,
    expansion: RM3 | None,
    figures: dict[str, float],
    part_tokens: int,
) -> None:
    """With Lucene's rounded lengths they are met to .003, with exact lengths nearly so.

    The text differs as well: Anserini indexes HTML files.
    """
    documents = read_collection(str(data(f"{folder}/{corpus}")), Intake())
    index = build_index(documents, tmp_path / "i", part_tokens=part_tokens)
    queries = read_queries(data(f"{folder}/queries.tsv"))
    qrels = read_qrels(data(f"{folder}/qrels.txt"))
    for model, tolerance in ((RoundedBM25(), 0.003), (BM25(), 0.0045)):
        run = rank_queries(index, queries, FirstStage(model, expansion=expansion))
        means = measure(qrels, run, list(figures)).means
        assert means == pytest.approx(figures, abs=tolerance)


STAGES = (FirstStage(), FirstStage(expansion=RM3()), FirstStage(TfIdf()))


def run_bytes(index: Index, queries: list[Query], scratch: Path) -> list[bytes]:
    """Return the run file of each stage."""
    files = []
    for number, stage in enumerate(STAGES):
        write_run(rank_queries(index, queries, stage, depth=100), scratch / f"{number}.run")
        files.append((scratch / f"{number}.run").read_bytes())
    return files


def history(documents: list[Document], where: Path, seed: int) -> Index:
    """Index `documents` with commits, updates, deletions and merges in random order."""
    rng = random.Random(seed)
    order = rng.sample(documents, len(documents))
    schema = Schema(forward=seed % 2 == 1)
    build_index([Document("gone", {"text": "canoe paper"}), order[0]], where, schema)
    at = 1
    while at < len(order):
        with IndexWriter(where, part_tokens=rng.choice([2000, 30_000, 10**6])) as writer:
            size = rng.choice([30, 300, 1000])
            for document in order[at : at + size]:
                if rng.random() < 0.2:  # an earlier version of the document
                    writer.add(Document(document.doc_id, {"text": "old words of another time"}))
                    if rng.random() < 0.02:
                        writer.commit()
                writer.add(document)
            at += size
            if rng.random() < 0.2:
                writer.merge()
    with IndexWriter(where) as writer:
        writer.delete("gone")
    return Index(where)


@pytest.mark.parametrize(
    ("folder", "corpus"),
    [
        ("cacm", "corpus.anserini.jsonl"),
        pytest.param("scifact", "corpus.jsonl", marks=pytest.mark.slow),
    ],
)
def test_runs_have_the_same_bytes_after_any_history(
    data: Callable[[str], Path], tmp_path: Path, folder: str, corpus: str
) -> None:
    """BM25, RM3 and tf-idf, after commits, merges, reopening and reindexing."""
    documents = list(read_collection(str(data(f"{folder}/{corpus}")), Intake()))
    queries = read_queries(data(f"{folder}/queries.tsv"))[:60]
    expected = run_bytes(build_index(documents, tmp_path / "fresh"), queries, tmp_path)
    for seed in range(2):
        index = history(documents, tmp_path / f"{seed}", seed)
        assert run_bytes(index, queries, tmp_path) == expected
        with IndexWriter(tmp_path / f"{seed}") as writer:
            writer.merge()
        assert run_bytes(Index(tmp_path / f"{seed}"), queries, tmp_path) == expected
