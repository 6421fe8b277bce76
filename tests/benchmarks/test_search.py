"""Does the benchmark of searches measure what `birchbark search` does, and is its report right?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search_collections import COLLECTIONS, Prepared, prepare
from benchmarks.search_first_tokens import NAME as FIRST_TOKENS
from benchmarks.search_first_tokens import score_first_tokens
from benchmarks.search_parts import PARTS, Benchmark
from benchmarks.search_quality import measure_row
from benchmarks.search_report import report
from benchmarks.search_rows import BM25, DEFAULTS, ROWS, NewScorers, Row, Vectors
from benchmarks.search_times import TimedSearch
from birchbark import Index, Ranker, defaults, rerank
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.pipeline.stored.precompute import STATIC, VECTORS
from birchbark.records import Ranking
from birchbark.segment.whole import whole
from conftest import DOCUMENTS

ROOT = Path(__file__).parents[2]
QUERIES = "1\tbirch bark canoe\n2\tbees dance\n3\tnobody judged this\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a small collection in the place of TIME."""
    folder = tmp_path_factory.mktemp("data") / "time"
    folder.mkdir()
    documents = [{"id": d.doc_id, **d.fields} for d in DOCUMENTS]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.tsv").write_text(QUERIES)
    (folder / "qrels.txt").write_text("1 0 canoe 1\n1 0 forest 1\n2 0 bees 1\n")
    return folder.parent


@pytest.fixture(scope="module")
def prepared(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The small collection, indexed with each kind of vectors."""
    return prepare(COLLECTIONS[0], data, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def models() -> NewScorers:
    """The bundled models, whose sessions are opened once."""
    return NewScorers()


def figures(p50: float = 100.0) -> dict[str, Any]:
    """Return invented figures of all parts, with the same AP for each collection."""
    measured = {"AP": 0.5, "nDCG@10": 0.7, "R@100": 0.9}
    quality: dict[str, Any] = {"queries": 9, **{row.name: measured for row in ROWS}}
    quality[FIRST_TOKENS] = {"AP": 0.25, "nDCG@10": 0.3, "R@100": 0.9}
    timed = {"p50": p50, "p95": 2 * p50, "queries": 9, "pairs": 60, "embedded": 0}
    machine = {"processor": "x", "cores": 2, "memory_gb": 1, "python": "3"}
    peer = {"p50": 9000.0, "p95": 9500.0, "queries": 10, "version": "0.2", "difference": 1e-7}
    return {
        "quality": {collection.name: quality for collection in COLLECTIONS},
        "times": {
            "machine": machine,
            "versions": {"birchbark": "1.0"},
            "rows": {row.name: {"new": timed, "running": timed} for row in ROWS},
        },
        "peers": {"FlashRank": peer},
    }


def test_rows_are_distinct() -> None:
    """Figures are kept by name."""
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_each_index_has_its_kind_of_vectors(prepared: Prepared) -> None:
    """None, static ones as when just indexed, or those of the embedding beside them."""
    attachments = {kind: set(Index(path).attachments) for kind, path in prepared.indexes.items()}
    assert attachments == {
        Vectors.NONE: set(),
        Vectors.STATIC: {STATIC},
        Vectors.EMBEDDING: {STATIC, VECTORS},
    }


def test_quality_is_of_judged_queries(prepared: Prepared, models: NewScorers) -> None:
    """Both relevant documents of the first query are found by BM25, and one of the second."""
    assert [query.query_id for query in prepared.queries] in (["1", "2"], ["2", "1"])
    for row in (BM25, *DEFAULTS):
        assert measure_row(prepared, row, models)["R@100"] == 1.0


def test_first_tokens_rank_by_the_cross_encoder_alone(
    prepared: Prepared, models: NewScorers, tmp_path: Path
) -> None:
    """Short documents are read as one segment; the scores are those of a ranker without BM25."""
    ranker = Ranker(models.scorer(defaults.MODEL), whole, Top((1.0,)), Interpolation(0))
    candidates = prepared.candidates()
    index = Index(prepared.indexes[Vectors.NONE])
    wanted = rerank(index, candidates, prepared.queries, ranker)
    for query, scores in score_first_tokens(prepared, candidates, prepared.queries, tmp_path):
        ranking = Ranking.of(candidates.rankings[query.query_id].doc_ids, scores)
        assert ranking.doc_ids == wanted.rankings[query.query_id].doc_ids
        assert ranking.scores == pytest.approx(wanted.rankings[query.query_id].scores)


@pytest.mark.parametrize("row", [BM25, *DEFAULTS], ids=lambda row: row.vectors.name)
def test_times_are_of_exact_answers(row: Row, prepared: Prepared, models: NewScorers) -> None:
    """Each kind times every query, and counts what was read; stored vectors are not computed."""
    timed = TimedSearch(row, prepared.indexes[row.vectors], models, seconds=0)
    for of_kind in (timed.new_documents(prepared.queries), timed.running(prepared.queries)):
        assert of_kind["queries"] == len(prepared.queries)
        assert min(of_kind["p50"], of_kind["p95"]) > 0
        assert (of_kind["pairs"] > 0) == (row is not BM25)
        assert row.vectors is not Vectors.EMBEDDING or of_kind["embedded"] == 0


def test_missing_collections_are_left_out(data: Path, tmp_path: Path) -> None:
    """What is not in the data folder is not measured; nothing was measured yet."""
    benchmark = Benchmark(data, tmp_path, tmp_path, 0, 1, sys.executable)
    assert [collection.name for collection in benchmark.collections] == ["TIME"]
    assert benchmark.figures() == {part: {} for part in PARTS}


def test_figures_of_other_models_are_not_reported(data: Path, tmp_path: Path) -> None:
    """Saved figures are those of the next run, until a model changes."""
    benchmark = Benchmark(data, tmp_path, tmp_path, 0, 1, sys.executable)
    benchmark._save("times", {"rows": 1})
    assert benchmark.figures()["times"] == {"rows": 1}
    path = tmp_path / "times.json"
    path.write_text(path.read_text().replace(defaults.MODEL, "another"))
    assert benchmark.figures()["times"] == {}


def test_a_sample_has_its_judgments_only(prepared: Prepared) -> None:
    """Means are over the queries of the sample."""
    sample, query_id = prepared.first(1), prepared.queries[0].query_id
    assert [query.query_id for query in sample.queries] == [query_id]
    assert set(sample.qrels.grades) == {query_id}
    assert prepared.first(2) == prepared


def test_the_report_says_which_targets_are_met() -> None:
    """The p50 of new documents is compared with what is wanted."""
    met, missed = (report(figures(p50)) for p50 in (100.0, 200.0))
    assert "| default, just indexed, new documents, p50 ms | ≤ 250 | 100 | met |" in met
    row = "| default, with the embedding's vectors, new documents, p50 ms | ≤ 110 | {} |"
    assert row.format("100 | met") in met
    assert row.format("200 | missed") in missed
    assert "| FlashRank 0.2 | 9,000 | 9,500 | 10 | 1.0e-07 | 0.2500 |" in met


def test_the_report_marks_what_was_not_measured() -> None:
    """Parts can be measured one by one."""
    text = report({**{part: {} for part in PARTS}, "quality": figures()["quality"]})
    for row in DEFAULTS:
        assert f"| **{row.name}** | – | – | – | – | – | 0.5000 |" in text
    assert "Peers:" not in text


@pytest.mark.slow
def test_the_script_reports_what_it_measured(data: Path, tmp_path: Path) -> None:
    """Quality and times of every row, measured one after the other."""
    output = tmp_path / "RESULTS.md"
    command = [sys.executable, "-m", "benchmarks.search", "--data", str(data), "--seconds", "0"]
    command += ["--cache", str(tmp_path / "cache"), "--figures", str(tmp_path / "figures")]
    command += ["--output", str(output)]
    for part in ("quality", "times", "none"):
        done = subprocess.run(
            [*command, "--part", part], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "| TIME |" in output.read_text()
    for row in ROWS:
        assert row.name in output.read_text()
