"""Does the benchmark of the first stage still run, and is its text what it says?"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import text
from benchmarks.report import disk, report
from benchmarks.text import BLOCK, load_pool, rare_word, texts, write_text

ROOT = Path(__file__).parents[2]
PROSE = ROOT / "src" / "birchbark"


def measure(work: Path, *more: str) -> dict[str, object]:
    """The figures of a run of the script over 300 documents."""
    small = ["--documents", "300", "--queries", "4", "--rounds", "1", "--opens", "1"]
    place = ["--text", str(PROSE), "--work", str(work), "--output", str(work / "table.md")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_stage", *small, *place, *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, object] = json.loads((work / "300" / "figures.json").read_text())
    return figures


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with birchbark and the one peer that starts quickly, if it is here."""
    place = tmp_path_factory.mktemp("bench")
    measure(place, "--peer", "tantivy")
    return place


def test_the_script_measures_birchbark(work: Path) -> None:
    """Every figure that has a target is there."""
    figures = json.loads((work / "300" / "figures.json").read_text())
    ours = figures["engines"]["birchbark"]
    assert ours["build"]["seconds"] > 0
    assert disk(ours["build"]["files"])["index"] > 0
    assert ours["open"]["open_ms"] > 0
    assert ours["searching"]["VmRSS"] > 0
    assert figures["cold"]["retrieve"] > 0
    for kind in ("five 1000", "five 10", "weighted 1000", "weighted 10"):
        (only,) = ours["times"]["doc_ids"][kind]
        assert 0 < only["p50"] <= only["p95"]
        assert only["hits"] >= 4
    table = (work / "table.md").read_text()
    assert "| build s |" in table
    assert "| resident MB while searching |" in table


def test_queries_are_what_they_are_called(work: Path) -> None:
    """Five plain terms, and at most 26 weighted ones; every one is in the collection."""
    (path,) = (work / "300").glob("queries-*.json")
    for query in json.loads(path.read_text()):
        assert set(query["five"].values()) == {1.0}
        assert len(query["five"]) == 5
        assert 5 <= len(query["weighted"]) <= 26
        assert min(query["df"] + query["weighted_df"]) > 0


@pytest.mark.slow
def test_a_build_can_be_used_again(work: Path) -> None:
    """Its figures are those of the first run."""
    before = json.loads((work / "300" / "birchbark.json").read_text())
    figures = measure(work, "--peer", "tantivy", "--reuse", "birchbark")
    assert figures["engines"]["birchbark"]["build"] == before  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["tantivy", "bm25s"])
def test_peers_are_measured_where_they_are_installed(peer: str, work: Path) -> None:
    """All of their searches, over the same queries."""
    if not find_spec(peer):
        pytest.skip(f"{peer} is not installed (pip install 'birchbark[bench]')")
    engine = measure(work, "--peer", peer, "--reuse", "birchbark")["engines"][peer]  # type: ignore[index]
    assert engine["times"]
    for of_search in engine["times"].values():
        assert all(only["hits"] > 0 for (only,) in of_search.values())


def test_text_is_the_same_each_time(tmp_path: Path) -> None:
    """And fewer documents are a prefix of more."""
    pool = load_pool(PROSE)
    assert list(texts(5, 1, pool)) == list(texts(BLOCK + 5, 1, pool))[:5]
    assert list(texts(5, 1, pool)) != list(texts(5, 2, pool))
    write_text(tmp_path / "text.jsonl", 5, 1, pool)
    lines = [json.loads(line) for line in (tmp_path / "text.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == list(texts(5, 1, pool))
    assert len({line["id"] for line in lines}) == 5


def test_lengths_are_as_stated() -> None:
    """156 words on average, and spread."""
    lengths = [len(made.split()) for made in texts(2 * BLOCK, 1, load_pool(PROSE))]
    assert sum(lengths) / len(lengths) == pytest.approx(text.MEAN_WORDS, rel=0.05)
    assert min(lengths) < text.MEAN_WORDS / 3
    assert max(lengths) > 3 * text.MEAN_WORDS


def test_rare_words_differ() -> None:
    """A word for each rank, or the vocabulary would be smaller than drawn."""
    ranks = [*range(20_000), *range(2**31, 2**31 + 20_000), *range(2**20, 2**20 + 20_000)]
    assert len({rare_word(rank).lower() for rank in ranks}) == len(ranks)


def test_the_table_says_what_was_not_measured(work: Path) -> None:
    """A peer that is missing is named."""
    figures = json.loads((work / "300" / "figures.json").read_text())
    figures["missing"] = ["tantivy"]
    figures["engines"].pop("tantivy", None)
    assert "tantivy is not installed" in report(figures)
