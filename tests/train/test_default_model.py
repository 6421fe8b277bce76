"""Was the default model trained as configured, and on no data that it is evaluated on?"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark import defaults
from birchbark.checkpoint.locate import locate
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.pairs.read import read_pairs
from birchbark.train.config import AUTO
from birchbark.train.setting_grid import read_variants

ROOT = Path(__file__).parents[2]
TRAININGS = (ROOT / "training", ROOT / "studies/birchbark_studies/training")
CONFIGS = sorted(path for folder in TRAININGS for path in folder.rglob("*.toml"))
EVALUATED = ("trec-dl19-passage", "time", "cacm", "cranfield")
EXCLUDED = ("871", "1291")  # of SciFact's train part: claims that its test part repeats
TEST_PARTS = ("scifact/queries.tsv", "scifact/qrels.txt")


def forbidden(text: str) -> str | None:
    """Return the first path in `text` that belongs to evaluation data, or None."""
    folders = rf"(?:^|[/\s\"'{{,])({'|'.join(EVALUATED)})/"
    parts = "|".join(map(re.escape, TEST_PARTS))
    match = re.search(rf"{folders}|({parts})", text)
    return match and (match[1] or match[2])


def test_forbidden_paths() -> None:
    """Evaluation data is recognised, other data is not."""
    assert forbidden('files = ["time/x.tsv"]') == "time"
    assert forbidden('"$data/cacm/corpus.jsonl"') == "cacm"
    assert forbidden('--qrels "$data/scifact/qrels.txt"') == "scifact/qrels.txt"
    assert not forbidden('"$data/scifact/qrels.train.txt" mb/trec-2011.tsv runtime/x')


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.name)
def test_no_training_reads_evaluation_data(path: Path) -> None:
    """The files that each configuration names are checked."""
    for variant in read_variants(path):
        for data in variant.training.data:
            assert not [name for name in data.files if forbidden(name)]


def test_the_pool_contains_no_evaluation_data() -> None:
    """The files that the script names are checked."""
    lines = (ROOT / "training" / "default" / "pool.sh").read_text().splitlines()
    assert any("/qa/" in line for line in lines)
    assert any("trec-dl21-passage/" in line for line in lines)
    assert f"'^({'|'.join(EXCLUDED)})\\t'" in "".join(lines)
    assert sum("scifact/queries.train.tsv" in line for line in lines) == 1  # to exclude them
    assert not [line for line in lines if not line.startswith("#") and forbidden(line)]


@pytest.mark.parametrize("name", ["trec-dl19-passage", "time", "cacm", "cranfield", "scifact"])
def test_no_evaluation_query_is_trained_on(name: str, data: Callable[[str], Path]) -> None:
    """It is neither in the pair sets nor among SciFact's training claims."""
    evaluated = {_plain(q.text) for q in read_queries(data(name) / "queries.tsv")}
    claims = read_queries(data("scifact/queries.train.tsv"))
    trained = {_plain(q.text) for q in claims if q.query_id not in EXCLUDED}
    trained |= {_plain(q.text) for q in read_queries(data("trec-dl21-passage/queries.tsv"))}
    for folder in ("dl22-teacher", *(f"qa/{path.name}" for path in data("qa").iterdir())):
        trained |= {_plain(q.text) for q in read_queries(data(folder) / "queries.tsv")}
    for part in ("wikiqa/train.tsv", "wikiqa/dev.tsv", "wikiqa/test.tsv", "selqa/dev.tsv"):
        trained |= {_plain(pair.query) for pair in read_pairs(data(part), Intake())}
    assert not evaluated & trained


@pytest.fixture(scope="module")
def trained_texts(data: Callable[[str], Path]) -> dict[str, set[int]]:
    """Return the name of each set of questions → hashes of its passages, which are read once."""
    return {
        path.name: {
            hash(_plain(passage.contents))
            for passage in read_collection(str(path / "passages.jsonl.gz"))
        }
        for path in sorted(data("qa").iterdir())
    }


@pytest.mark.parametrize("name", ["trec-dl19-passage", "time", "cacm", "cranfield", "scifact"])
def test_no_evaluation_text_is_trained_on(
    name: str, data: Callable[[str], Path], trained_texts: dict[str, set[int]]
) -> None:
    """No passage of the questions' sets is identical to a document of a test collection."""
    documents = read_collection(str(data(name) / "corpus.jsonl"))
    evaluated = {hash(text) for d in documents if (text := _plain(d.contents))}
    for trained, passages in trained_texts.items():
        assert not evaluated & passages, trained


def test_questions_held_out_are_those_that_the_pool_leaves_out(
    tmp_path: Path, data: Callable[[str], Path]
) -> None:
    """None has the words of one from which a cross-encoder learns, of any set."""
    script = (ROOT / "training" / "default" / "pool.sh").read_text()
    every = {
        name.strip(): int(number)
        for names, number in re.findall(r"^ +([\w| -]+)\) each=(\d+)", script, re.MULTILINE)
        for name in names.split("|")
    }
    held_out = runpy.run_path(str(ROOT / "training" / "default" / "held_out.py"))
    assert every == held_out["EVERY"]
    held_out["main"](data("qa").parent, tmp_path)
    asked: set[str] = set()
    for folder in (tmp_path / "held-out").iterdir():
        queries = read_queries(folder / "queries.tsv")
        grades = read_qrels(folder / "qrels.txt").grades
        known = {document.doc_id for document in read_collection(folder / "corpus.jsonl")}
        assert len(queries) in (100, 240)
        assert {query.query_id for query in queries} == set(grades)
        assert all(any(judged.values()) and judged.keys() <= known for judged in grades.values())
        asked |= {_plain(query.text) for query in queries}
    pairs = ["wikiqa/train.tsv", "selqa/dev.tsv", "selqa/test.tsv", "mb/trec-2013.tsv"]
    taken = {_plain(p.query) for name in pairs for p in read_pairs(data(name), Intake(True))}
    taken |= {_plain(q.text) for q in read_queries(data("dl22-teacher/queries.tsv"))}
    for path in data("qa").iterdir():
        step = every.get(path.name, 1)
        queries = read_queries(path / "queries.tsv")[step - 1 :: step]
        taken |= {_plain(query.text) for query in queries}
    assert not asked & taken


def test_the_default_model_has_the_committed_settings() -> None:
    """Its lineage lists the runs configured in training/default in order, each complete.

    Where a configuration has the precision "auto", the lineage says which one was used.
    """
    lineage = json.loads((locate(defaults.MODEL) / "birchbark.json").read_text())
    configs = sorted((ROOT / "training" / "default").glob("*.toml"))
    recorded = [training["settings"] for training in lineage["trainings"]]
    configured = [variant.training for path in configs for variant in read_variants(path)]
    assert all(training.schedule.precision == AUTO for training in configured)
    assert recorded == [
        training.with_precision(settings["schedule"]["precision"]).values
        for training, settings in zip(configured, recorded, strict=True)
    ]
    assert {t["ended"] for t in lineage["trainings"]} == {"all steps"}


def test_the_default_model_is_small() -> None:
    """All files together have a size of at most 25 MB."""
    files = [path for path in locate(defaults.MODEL).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 25_000_000


def test_the_card_has_the_results_of_the_study() -> None:
    """Its last table is part of the published results."""
    card = (locate(defaults.MODEL) / "README.md").read_text()
    measured = card.split("## Measured\n\n")[1]
    published = (ROOT / "studies" / "results" / "default-search" / "README.md").read_text()
    rows = [line for line in measured.splitlines() if line.startswith("|")]
    assert len(rows) > 20
    assert set(rows) <= set(published.splitlines())


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
