"""Does the first stage agree with Anserini, and give equal runs after any history of the index?"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import write_run
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Query
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf


@pytest.mark.parametrize("part_tokens", [50_000, 10_000_000])
@pytest.mark.parametrize(
    ("folder", "corpus", "expansion", "figures", "tolerance"),
    [
        ("cacm", "corpus.anserini.jsonl", None, {"AP": 0.3123, "P@30": 0.1942}, 0.004),
        ("cacm", "corpus.anserini.jsonl", RM3(), {"AP": 0.3648, "P@30": 0.2224}, 0.01),
        ("scifact", "corpus.jsonl", None, {"nDCG@10": 0.6789, "R@100": 0.9253}, 0.004),
    ],
)
def test_published_first_stage_figures(
    data: Callable[[str], Path],
    tmp_path: Path,
    folder: str,
    corpus: str,
    expansion: RM3 | None,
    figures: dict[str, float],
    tolerance: float,
    part_tokens: int,
) -> None:
    """Differences come from Lucene's rounded lengths and its treatment of HTML."""
    documents = read_collection(str(data(f"{folder}/{corpus}")), Intake())
    index = build_index(documents, tmp_path / "i", part_tokens=part_tokens)
    queries = read_queries(data(f"{folder}/queries.tsv"))
    run = rank_queries(index, queries, FirstStage(expansion=expansion))
    means = measure(read_qrels(data(f"{folder}/qrels.txt")), run, list(figures)).means
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
