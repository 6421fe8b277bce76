"""Are the figures of the README those that were measured, and those of today?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.combine.interpolate import Interpolation
from birchbark.evaluate.measures import measure
from birchbark.index.build import build_index
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.score.model import load_scorer
from birchbark.segment.named import parse_segmenter

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "studies" / "results" / "default-model" / "results.json"
SHOWN = ("BM25", "first stage", "BM25+RM3", "embedding", "cross-encoder", "cross-encoder, alone")


def measured(collection: str, name: str) -> Mapping[str, float]:
    """Row → what the study of the default model found, of one measure."""
    table = json.loads(RESULTS.read_text())["tables"][0]
    column = [column["name"] for column in table["columns"]].index(name)
    group = next(group for group in table["groups"] if group["name"] == collection)
    return {row["name"]: row["cells"][column]["value"] for row in group["rows"]}


@pytest.mark.parametrize("collection", ["TIME", "CACM", "Cranfield", "SciFact", "DL19"])
def test_the_readme_says_what_the_study_measured(collection: str) -> None:
    """The number at the start of each cell, row by row."""
    table = (ROOT / "README.md").read_text().split("## What to expect")[1]
    line = next(line for line in table.splitlines() if line.startswith(f"| {collection}, "))
    found = measured(collection, line.split(",")[1].split("|")[0].strip())
    shown = [f"{found[row]:.4f}"[1:] for row in SHOWN if row in found]
    assert re.findall(r"\| (\.\d{4})", line) == shown


@pytest.mark.slow
def test_dl19_gives_the_figures_of_the_study(data: Callable[[str], Path], tmp_path: Path) -> None:
    """By the pipeline; other processors may round a near tie the other way, hence ±.002."""
    folder = data("trec-dl19-passage")
    index = build_index(read_collection(str(folder / "corpus.jsonl"), Intake()), tmp_path / "i")
    first = read_run(folder / "runs" / "BM25.5bcc39.top100.run")
    whole = Ranker(load_scorer(), parse_segmenter("whole"), interpolation=Interpolation(0.0))
    found = rerank(index, first, read_queries(folder / "queries.tsv"), whole)
    value = measure(read_qrels(folder / "qrels.txt"), found, ["nDCG@10"]).means["nDCG@10"]
    expected = measured("DL19", "nDCG@10")["cross-encoder, alone"]
    assert value == pytest.approx(expected, abs=0.002)
