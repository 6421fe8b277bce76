"""Does the benchmark of searches measure what `birchbark search` does, and is its report right?"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.search_collections import COLLECTIONS, Prepared, prepare
from benchmarks.search_first_tokens import NAME as FIRST_TOKENS
from benchmarks.search_first_tokens import score_first_tokens
from benchmarks.search_labels import Box, place
from benchmarks.search_models import Models
from benchmarks.search_parts import PARTS, Benchmark
from benchmarks.search_plot import plot
from benchmarks.search_quality import measure_rows
from benchmarks.search_report import is_searched, report
from benchmarks.search_rows import BM25, MIXTURE, Row, rows
from benchmarks.search_times import TimedSearch
from birchbark import FirstStage, Index, Interpolation, Max, Ranker, Ranking, defaults, rerank
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.stage_options import StageOptions
from birchbark.segment.whole import whole
from conftest import DOCUMENTS, GivenModels

ROOT = Path(__file__).parents[2]
QUERIES = "1\tbirch bark canoe\n2\tbees dance\n3\tnobody judged this\n"
SEARCHED = [row for row in rows() if is_searched(row)]


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
    """The small collection, indexed with and without vectors."""
    return prepare(COLLECTIONS[0], data, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def models() -> Models:
    """The bundled models, loaded once."""
    return Models()


def figures(
    ap: Callable[[Row], float] = lambda row: 0.5, p50: Callable[[Row], float] = lambda row: 100.0
) -> dict[str, Any]:
    """Return invented figures of all parts, with the same AP for each collection."""
    quality = {row.name: {"AP": ap(row), "nDCG@10": 0.7, "queries": 9} for row in rows()}
    quality[FIRST_TOKENS] = {"AP": 0.25, "nDCG@10": 0.3, "queries": 9}
    timed = {
        row.name: {"p50": p50(row), "p95": 2 * p50(row), "queries": 9, "pairs": 60, "embedded": 0}
        for row in rows()
    }
    machine = {"processor": "x", "cores": 2, "memory_gb": 1, "python": "3"}
    return {
        "quality": {collection.name: quality for collection in COLLECTIONS},
        "rm3": {},
        "times": {
            "machine": machine,
            "versions": {"birchbark": "1.0"},
            "rows": {name: {"new": of_row, "running": of_row} for name, of_row in timed.items()},
        },
        "peers": {
            "FlashRank": {
                "p50": 9000.0,
                "p95": 9500.0,
                "queries": 10,
                "version": "0.2",
                "difference": 1e-7,
            }
        },
        "million": {"documents": 1000, "rows": timed},
    }


def test_rows_are_distinct() -> None:
    """Figures are kept by name."""
    assert len({row.name for row in rows()}) == len(rows())


@pytest.mark.parametrize("row", SEARCHED, ids=lambda row: row.group)
def test_the_default_is_that_of_birchbark_search(row: Row, models: Models) -> None:
    """One row with stored vectors and one without have the settings of the command."""
    assert {row.vectors for row in SEARCHED} == {True, False}
    wanted = make_ranker(
        StageOptions(),
        GivenModels(models.load),
        auto_int8=True,
    )
    ranker = row.ranker(models.load, wanted.segmenter)
    assert ranker
    assert wanted.embedding and ranker.embedding
    for name in ("segmenter", "aggregation", "interpolation", "depth", "limit", "plan", "duo"):
        assert getattr(ranker, name) == getattr(wanted, name)
    assert ranker.embedding_weight == wanted.embedding_weight
    assert ranker.scorer.fingerprint == wanted.scorer.fingerprint
    assert ranker.embedding.fingerprint == wanted.embedding.fingerprint
    assert (ranker.fast_embedding is None) == (wanted.fast_embedding is None)
    if ranker.fast_embedding and wanted.fast_embedding:
        assert ranker.fast_embedding.fingerprint == wanted.fast_embedding.fingerprint


def test_quality_is_that_of_the_mixture_where_a_plan_reads_everything(
    prepared: Prepared, models: Models, tmp_path: Path
) -> None:
    """Short documents are read whole; a second run, with stored scores, gives the same figures."""
    chosen = [BM25, SEARCHED[0], MIXTURE]
    default = next(row for row in rows() if row.is_default and row.vectors)
    runs = []
    for _ in range(2):
        measured: dict[str, Any] = {}
        measure_rows(
            prepared,
            FirstStage(),
            [*chosen, default],
            models,
            tmp_path / "scores",
            lambda name, of_row, into=measured: into.update({name: of_row}),
        )
        runs.append(measured)
    assert runs[0] == runs[1]
    assert runs[0][BM25.name]["queries"] == 2  # the third is not judged
    assert runs[0][default.name] == runs[0][MIXTURE.name]


def test_first_tokens_rank_by_the_cross_encoder_alone(
    prepared: Prepared, models: Models, tmp_path: Path
) -> None:
    """Short documents are read as one segment; the scores are those of a ranker without BM25."""
    ranker = Ranker(models.load(MIXTURE.model), whole, Max(), Interpolation(0))
    candidates = prepared.run(FirstStage())
    wanted = rerank(Index(prepared.plain), candidates, prepared.queries, ranker)
    for query, scores in score_first_tokens(
        prepared, candidates, prepared.queries, models, tmp_path
    ):
        ranking = Ranking.of(candidates.rankings[query.query_id].doc_ids, scores)
        assert ranking.doc_ids == wanted.rankings[query.query_id].doc_ids
        assert ranking.scores == pytest.approx(wanted.rankings[query.query_id].scores)


@pytest.mark.parametrize("row", [BM25, *SEARCHED], ids=lambda row: row.label)
def test_times_are_of_exact_answers(row: Row, prepared: Prepared, models: Models) -> None:
    """Each kind times every query, and counts what was read; stored vectors are not computed."""
    index = prepared.index(vectors=row.vectors)
    timed = TimedSearch(row, index, models, prepared.segmenter, seconds=0)
    for of_kind in (timed.new_documents(prepared.queries), timed.running(prepared.queries)):
        assert of_kind["queries"] == len(prepared.queries)
        assert min(of_kind["p50"], of_kind["p95"]) > 0
        assert (of_kind["pairs"] > 0) == (row is not BM25)
        assert (of_kind["embedded"] > 0) == (row is not BM25 and not row.vectors)


def test_missing_collections_are_left_out(data: Path, tmp_path: Path) -> None:
    """What is not in the data folder is not measured; nothing was measured yet."""
    benchmark = Benchmark(data, tmp_path, tmp_path, 0, 0, 1, sys.executable)
    assert [c.name for c in benchmark._collections("quality")] == ["TIME"]
    assert benchmark.figures() == {part: {} for part in PARTS}


def test_figures_of_other_models_are_not_reported(data: Path, tmp_path: Path) -> None:
    """Saved figures are those of the next run, until a model changes."""
    benchmark = Benchmark(data, tmp_path, tmp_path, 0, 0, 1, sys.executable)
    benchmark._save("times", {"rows": 1})
    assert benchmark.figures()["times"] == {"rows": 1}
    path = tmp_path / "times.json"
    path.write_text(path.read_text().replace(defaults.MODEL, "another"))
    assert benchmark.figures()["times"] == {}


def test_known_rows_need_not_be_measured_again(data: Path, tmp_path: Path) -> None:
    """A run that was killed, or that measured other models, goes on with what is missing."""
    benchmark = Benchmark(data, tmp_path, tmp_path, 0, 0, 1, sys.executable)
    benchmark._save("quality", {"TIME": {BM25.name: {"AP": 0.5}}})
    again = replace(benchmark, only_missing=True)
    assert again._is_known("quality", COLLECTIONS[0], BM25.name)
    assert not again._is_known("quality", COLLECTIONS[0], MIXTURE.name)
    assert not again._is_known("quality", COLLECTIONS[1], BM25.name)
    assert not benchmark._is_known("quality", COLLECTIONS[0], BM25.name)


def test_a_sample_has_its_judgments_only(prepared: Prepared) -> None:
    """Means are over the queries of the sample."""
    sample = prepared.only(prepared.queries[1:])
    assert [query.query_id for query in sample.queries] == ["2"]
    assert sample.qrels.grades == {"2": {"bees": 1}}
    assert prepared.only(prepared.queries) == prepared


def test_the_report_says_which_targets_are_met() -> None:
    """Times are compared with limits, and AP with that of the mixture, minus .002."""
    row = next(row for row in SEARCHED if row.vectors)
    text = report(figures(lambda r: 0.5 if r == MIXTURE else 0.4981), "plot.svg")
    assert f"| {row.name}, p50 ms | ≤ 120 | 100 | met |" in text
    assert f"| {row.name}, p95 ms | ≤ 200 | 200 | met |" in text
    assert f"| {row.name}, AP of SciFact | ≥ 0.4980 | 0.4981 | met |" in text
    assert "| FlashRank 0.2 | 9,000 | 9,500 | 10 | 1.0e-07 | 0.2500 |" in text
    text = report(figures(lambda r: 0.5 if r == MIXTURE else 0.4979, lambda r: 500.0), "plot.svg")
    assert f"| {row.name}, AP of TIME | ≥ 0.4980 | 0.4979 | missed |" in text
    assert f"| {row.name}, p50 ms | ≤ 120 | 500 | missed |" in text


def test_the_report_marks_the_default_and_what_was_not_measured() -> None:
    """Parts can be measured one by one."""
    text = report({**{part: {} for part in PARTS}, "quality": figures()["quality"]}, "plot.svg")
    for row in SEARCHED:
        assert f"| **{row.name}: the default here** | – | – | – | – | 0.5000 |" in text
    assert "Peers:" not in text


def test_the_plot_labels_every_point() -> None:
    """It is well-formed, and empty figures give no plot."""
    drawing = plot(figures(p50=lambda row: 10 + len(row.name)))
    assert drawing
    texts = {element.text for element in ElementTree.fromstring(drawing).iter()}
    for row in rows():
        assert f"default: {row.label}" if is_searched(row) else row.label in texts
    assert "FlashRank, 512 tokens" in texts
    assert plot({**figures(), "times": {}, "peers": {}}) is None


centre = st.tuples(st.floats(50, 450), st.floats(50, 450))


@given(st.lists(centre, max_size=12), st.integers(1, 12))
def test_labels_overlap_nothing(centres: list[tuple[float, float]], length: int) -> None:
    """There is room for a dozen labels, near their points or farther away."""
    points = [Box.around(x, y, 3) for x, y in centres]
    limits = Box(0, 0, 500, 500)
    boxes = place(centres, ["x" * length] * len(centres), points, limits, 10)
    for number, box in enumerate(boxes):
        assert limits.contains(box)
        assert not any(box.overlaps(other) for other in (*points, *boxes[:number]))
        assert math.isclose(box.right - box.left, 5.6 * length)


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
    for row in rows():
        assert row.name in output.read_text()
    assert (tmp_path / "search.svg").read_text().startswith("<svg")
