"""Are the figures of the README those of the committed study and of the current code?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import build_index
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.stage_options import StageOptions

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "studies" / "results" / "default-search" / "results.json"
SHOWN = (
    "first stage",
    "BM25+RM3",
    "embedding",
    "cross-encoder",
    "cross-encoder, alone",
    "default",
    "default, with stored vectors",
)


def measured(collection: str, name: str) -> Mapping[str, float]:
    """Map each row of the study of the default search to its mean of one measure."""
    table = json.loads(RESULTS.read_text())["tables"][0]
    column = [column["name"] for column in table["columns"]].index(name)
    group = next(group for group in table["groups"] if group["name"] == collection)
    return {row["name"]: row["cells"][column]["value"] for row in group["rows"]}


@pytest.mark.parametrize("collection", ["TIME", "CACM", "Cranfield", "SciFact", "DL19"])
def test_the_readme_says_what_the_study_measured(collection: str) -> None:
    """The number at the start of each cell equals the committed figure."""
    table = (ROOT / "README.md").read_text().split("## Results at a glance")[1]
    line = next(line for line in table.splitlines() if line.startswith(f"| {collection}, "))
    figures = measured(collection, line.split(",")[1].split("|")[0].strip())
    expected = [f"{figures[row]:.4f}"[1:] for row in SHOWN if row in figures]
    assert re.findall(r"\| (\.\d{4})", line) == expected


@pytest.mark.slow
def test_dl19_gives_the_figures_of_the_study(data: Callable[[str], Path], tmp_path: Path) -> None:
    """Figures agree within .002: other processors may round a near tie the other way."""
    folder = data("trec-dl19-passage")
    index = build_index(read_collection(str(folder / "corpus.jsonl"), Intake()), tmp_path / "i")
    first = read_run(folder / "runs" / "BM25.5bcc39.top100.run")
    options = StageOptions(embedding="none", read_pairs="100", first_stage_weight=0.0)
    ranker = make_ranker(options, LoadedModels())
    run = rerank(index, first, read_queries(folder / "queries.tsv"), ranker)
    value = measure(read_qrels(folder / "qrels.txt"), run, ["nDCG@10"]).means["nDCG@10"]
    expected = measured("DL19", "nDCG@10")["cross-encoder, alone"]
    assert value == pytest.approx(expected, abs=0.002)
