"""Does the first stage agree with Anserini where Anserini published figures?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.evaluate.measures import measure
from birchbark.index.build import build_index
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rm3 import RM3


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
    """What remains comes from Lucene's rounded lengths and its reading of HTML."""
    documents = read_collection(str(data(f"{folder}/{corpus}")), Intake())
    index = build_index(documents, tmp_path / "i", part_tokens=part_tokens)
    queries = read_queries(data(f"{folder}/queries.tsv"))
    run = rank_queries(index, queries, FirstStage(expansion=expansion))
    found = measure(read_qrels(data(f"{folder}/qrels.txt")), run, list(figures)).means
    assert found == pytest.approx(figures, abs=tolerance)
