"""Is the default model what it says: trained as committed, on nothing that it is measured on?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.checkpoint.named import DEFAULT_MODEL, locate
from birchbark.collection.intake import Intake
from birchbark.collection.pairs import read_pairs
from birchbark.collection.queries import read_queries
from birchbark.train.grid import read_variants

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "training").rglob("*.toml"))
MEASURED = ("trec-dl19-passage", "time", "cacm", "cranfield")
LEFT_OUT = ("871", "1291")  # of SciFact's train part: claims of its test part, word by word
TEST_PARTS = ("scifact/queries.tsv", "scifact/qrels.txt")


def forbidden(text: str) -> str | None:
    """The first path in `text` that belongs to what is measured."""
    folders = rf"(?:^|[/\s\"'{{,])({'|'.join(MEASURED)})/"
    parts = "|".join(map(re.escape, TEST_PARTS))
    found = re.search(rf"{folders}|({parts})", text)
    return found and (found[1] or found[2])


def test_the_guard_itself() -> None:
    """Finds what it should, and nothing else."""
    assert forbidden('files = ["time/x.tsv"]') == "time"
    assert forbidden('"$data/cacm/corpus.jsonl"') == "cacm"
    assert forbidden('--qrels "$data/scifact/qrels.txt"') == "scifact/qrels.txt"
    assert not forbidden('"$data/scifact/qrels.train.txt" mb/trec-2011.tsv runtime/x')


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.name)
def test_no_training_reads_what_is_measured(path: Path) -> None:
    """By the files it names, each of which can be read as a training."""
    for variant in read_variants(path):
        for data in variant.training.data:
            assert not [name for name in data.files if forbidden(name)]


def test_the_pools_hold_nothing_that_is_measured() -> None:
    """By the files that the scripts name."""
    folder = ROOT / "training" / "default"
    lines = (folder / "pool.sh").read_text().splitlines()
    assert any("trec-dl21-passage/" in line for line in lines)
    assert f"'^({'|'.join(LEFT_OUT)})\\t'" in "".join(lines)
    assert sum("scifact/queries.train.tsv" in line for line in lines) == 1  # to leave them out
    later = (folder / "late-pool.sh").read_text().splitlines()
    assert any("docstrings.py" in line for line in later)
    assert not [line for line in later if "scifact/" in line or "pydocs" in line]
    both = [*lines, *later]
    assert not [line for line in both if not line.startswith("#") and forbidden(line)]


@pytest.mark.parametrize("name", ["trec-dl19-passage", "time", "cacm", "cranfield", "scifact"])
def test_no_query_that_is_measured_is_learnt_from(name: str, data: Callable[[str], Path]) -> None:
    """By its text, in the pair sets and in SciFact's train part."""
    asked = {_plain(q.text) for q in read_queries(data(name) / "queries.tsv")}
    claims = read_queries(data("scifact/queries.train.tsv"))
    learnt = {_plain(q.text) for q in claims if q.query_id not in LEFT_OUT}
    learnt |= {_plain(q.text) for q in read_queries(data("trec-dl21-passage/queries.tsv"))}
    for part in ("wikiqa/train.tsv", "wikiqa/dev.tsv", "wikiqa/test.tsv", "selqa/dev.tsv"):
        learnt |= {_plain(pair.query) for pair in read_pairs(data(part), Intake())}
    assert not asked & learnt


def test_the_shipped_model_comes_of_the_committed_trainings() -> None:
    """One after the other, with these settings, to the end."""
    lineage = json.loads((locate(DEFAULT_MODEL) / "birchbark.json").read_text())
    configs = sorted((ROOT / "training" / "default").glob("*.toml"))
    assert [t["settings"] for t in lineage["trainings"]] == [
        variant.training.values for path in configs for variant in read_variants(path)
    ]
    assert {t["ended"] for t in lineage["trainings"]} == {"all steps"}


def test_the_shipped_model_is_small() -> None:
    """25 MB at most, all files."""
    files = [path for path in locate(DEFAULT_MODEL).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 25_000_000


def test_the_card_says_what_the_study_measured() -> None:
    """Its last table is the one of the results that are kept."""
    card = (locate(DEFAULT_MODEL) / "README.md").read_text()
    measured = card.split("## Measured\n\n")[1]
    kept = (ROOT / "studies" / "results" / "default-model" / "README.md").read_text()
    rows = [line for line in measured.splitlines() if line.startswith("|")]
    assert len(rows) > 20
    assert set(rows) <= set(kept.splitlines())


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
