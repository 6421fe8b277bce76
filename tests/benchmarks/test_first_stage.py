"""Does the benchmark of the first stage run, and is its text as documented?"""

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
    """Run the script on 300 documents; return its figures."""
    small = ["--documents", "300", "--queries", "4", "--rounds", "1", "--opens", "1"]
    paths = ["--text", str(PROSE), "--work", str(work), "--output", str(work / "table.md")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_stage", *small, *paths, *more],
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
    """The folder of a run with birchbark and, if it is installed, tantivy, which starts quickly."""
    folder = tmp_path_factory.mktemp("bench")
    measure(folder, "--peer", "tantivy")
    return folder


def test_the_script_measures_birchbark(work: Path) -> None:
    """The figures include every one that has a target."""
    figures = json.loads((work / "300" / "figures.json").read_text())
    ours = figures["engines"]["birchbark"]
    assert ours["build"]["seconds"] > 0
    assert disk(ours["build"]["files"])["index"] > 0
    assert ours["open"]["open_ms"] > 0
    assert ours["searching"]["VmRSS"] > 0
    assert figures["cold"]["retrieve"] > 0
    for kind in ("five 1000", "five 10", "weighted 1000", "weighted 10"):
        (round_,) = ours["times"]["doc_ids"][kind]
        assert 0 < round_["p50"] <= round_["p95"]
        assert round_["hits"] >= 4
    table = (work / "table.md").read_text()
    assert "| build s |" in table
    assert "| resident MB while searching |" in table


def test_queries_have_the_documented_terms(work: Path) -> None:
    """Five plain terms, and at most 26 weighted ones, all of which occur in the collection."""
    (path,) = (work / "300").glob("queries-*.json")
    for query in json.loads(path.read_text()):
        assert set(query["five"].values()) == {1.0}
        assert len(query["five"]) == 5
        assert 5 <= len(query["weighted"]) <= 26
        assert min(query["df"] + query["weighted_df"]) > 0


@pytest.mark.slow
def test_a_build_can_be_reused(work: Path) -> None:
    """Its figures are those of the first run."""
    before = json.loads((work / "300" / "birchbark.json").read_text())
    figures = measure(work, "--peer", "tantivy", "--reuse", "birchbark")
    assert figures["engines"]["birchbark"]["build"] == before  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["tantivy", "bm25s"])
def test_installed_peers_are_measured(peer: str, work: Path) -> None:
    """Each installed peer is measured with all of its searches."""
    if not find_spec(peer):
        pytest.skip(f"{peer} is not installed (pip install 'birchbark[bench]')")
    engine = measure(work, "--peer", peer, "--reuse", "birchbark")["engines"][peer]  # type: ignore[index]
    assert engine["times"]
    for of_search in engine["times"].values():
        assert all(round_["hits"] > 0 for (round_,) in of_search.values())


def test_text_is_reproducible(tmp_path: Path) -> None:
    """Fewer documents are a prefix of more."""
    pool = load_pool(PROSE)
    assert list(texts(5, 1, pool)) == list(texts(BLOCK + 5, 1, pool))[:5]
    assert list(texts(5, 1, pool)) != list(texts(5, 2, pool))
    write_text(tmp_path / "text.jsonl", 5, 1, pool)
    lines = [json.loads(line) for line in (tmp_path / "text.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == list(texts(5, 1, pool))
    assert len({line["id"] for line in lines}) == 5


def test_lengths_are_as_documented() -> None:
    """156 words on average, with a wide distribution."""
    lengths = [len(generated.split()) for generated in texts(2 * BLOCK, 1, load_pool(PROSE))]
    assert sum(lengths) / len(lengths) == pytest.approx(text.MEAN_WORDS, rel=0.05)
    assert min(lengths) < text.MEAN_WORDS / 3
    assert max(lengths) > 3 * text.MEAN_WORDS


def test_rare_words_differ() -> None:
    """Each rank has a distinct word, so that the vocabulary is as large as drawn."""
    ranks = [*range(20_000), *range(2**31, 2**31 + 20_000), *range(2**20, 2**20 + 20_000)]
    assert len({rare_word(rank).lower() for rank in ranks}) == len(ranks)


def test_the_report_names_missing_peers(work: Path) -> None:
    """A peer that is not installed is named."""
    figures = json.loads((work / "300" / "figures.json").read_text())
    figures["missing"] = ["tantivy"]
    figures["engines"].pop("tantivy", None)
    assert "tantivy is not installed" in report(figures)
