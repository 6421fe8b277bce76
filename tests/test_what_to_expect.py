"""Are the figures of the README those of today?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.evaluate.measures import measure
from birchbark.index.build import build_index
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3
from birchbark.score.model import load_scorer

README = Path(__file__).parents[1] / "README.md"


def published(row: str) -> list[float]:
    """The figures in a row of the README's first table: the number at the start of each cell."""
    table = README.read_text().split("## What to expect")[1]
    line = next(line for line in table.splitlines() if line.startswith(f"| {row} |"))
    return [float(cell) for cell in re.findall(r"\| (\.\d{4})", line)]


@pytest.mark.slow
def test_time_gives_the_figures_of_the_readme(data: Callable[[str], Path], tmp_path: Path) -> None:
    """All defaults; other processors may round a near tie the other way, hence ±.002."""
    folder = data("time")
    index = build_index(read_collection(str(folder / "corpus.jsonl"), Intake()), tmp_path / "i")
    queries, qrels = read_queries(folder / "queries.tsv"), read_qrels(folder / "qrels.txt")
    bm25 = rank_queries(index, queries)
    rm3 = rank_queries(index, queries, FirstStage(expansion=RM3()))
    evidence = rerank(index, rm3, queries, Ranker(load_scorer()))
    for row, run in {
        "BM25": bm25,
        "BM25+RM3": rm3,
        "BM25+RM3 + embedding of sentences": evidence,
    }.items():
        found = measure(qrels, run, ["AP", "P@20", "nDCG@20"]).means
        assert list(found.values()) == pytest.approx(published(row), abs=0.002), row
