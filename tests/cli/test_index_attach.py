"""How do the commands store vectors, and what do they say about documents without them?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from birchbark import defaults
from birchbark.cli import group
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.stored.precompute import VECTORS
from birchbark.records import Document
from conftest import DOCUMENTS, write_bert


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with two collections."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "some.jsonl").write_text("\n".join(lines[:3]))
    (tmp_path / "rest.jsonl").write_text("\n".join(lines[3:]))
    return tmp_path


def birchbark(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments)


def model_of(index: str) -> str:
    return str(Index(index).attachments[VECTORS].config["model"])


def test_indexing_computes_vectors_with_one_flag(here: Path) -> None:
    """Without it, the last line says how vectors are added."""
    result = birchbark("index", "some.jsonl", "--to", "i")
    assert result.exit_code == 0
    assert VECTORS not in Index("i").attachments
    assert "`birchbark index attach i`" in result.stderr.splitlines()[-1]
    result = birchbark("index", "build", "some.jsonl", "--to", "j", "--vectors")
    assert result.exit_code == 0
    assert "computing vectors of 3 documents" in result.stderr
    assert (model_of("j"), Index("j").missing_rows()) == (defaults.EMBEDDING, {})


def test_attaching_needs_no_model(here: Path) -> None:
    """It also accepts the options of vectors; added documents get vectors of the same model."""
    birchbark("index", "some.jsonl", "--to", "i")
    assert birchbark("index", "attach", "i", "--vector-bits", "8").exit_code == 0
    assert model_of("i") == defaults.EMBEDDING
    assert Index("i").attachments[VECTORS].config["bits"] == 8
    assert birchbark("index", "add", "i", "rest.jsonl").exit_code == 0
    assert Index("i").missing_rows() == {}
    assert "computing" not in birchbark("index", "attach", "i", "--vector-bits", "8").stderr
    with IndexWriter("i") as writer:
        writer.add(Document("new", {"text": "An arch of stone."}))
    again = birchbark("index", "attach", "i", "--vector-bits", "8")
    assert "computing vectors of 1 document;" in again.stderr


@pytest.mark.parametrize("argument", ["some.jsonl", "."])
def test_a_collection_is_not_taken_for_a_model(here: Path, argument: str) -> None:
    """The value of --vectors is optional, so the next word is taken for it."""
    result = birchbark("index", "build", "--vectors", argument, "--to", "i")
    assert result.exit_code == 2
    assert "is not a model; if it is the collection or the index, put it before" in result.stderr


def test_vectors_of_other_segments_are_stored_beside_the_first(here: Path) -> None:
    """A first stage by vectors can choose a set."""
    birchbark("index", "some.jsonl", "--to", "i", "--vectors")
    result = birchbark("index", "attach", "i", "--segments", "title")
    assert result.exit_code == 0
    assert "vectors-2 of title are stored in i" in result.stderr
    assert "detach" not in result.stderr
    assert "attachment vectors-2: documents\t3" in birchbark("index", "stats", "i").stdout
    dense = ("search", "i", "arches", "--model", "none", "--set", "first_stage.model=dense")
    dense = (*dense, "--json")
    first, other = birchbark(*dense), birchbark(*dense, "--set", "first_stage.vector_set=vectors-2")
    assert json.loads(first.stdout.splitlines()[0]) != json.loads(other.stdout.splitlines()[0])
    result = birchbark(*dense, "--set", "first_stage.vector_set=vectors-3")
    assert "expected vectors or vectors-2" in str(result.exception)
    result = birchbark("search", "i", "arches", "--set", "first_stage.vector_set=vectors-2")
    assert "nearest in the match" in str(result.exception)
    assert birchbark("index", "detach", "i", VECTORS).exit_code == 0
    assert (
        birchbark(*dense).stdout
        == birchbark(*dense, "--set", "first_stage.vector_set=vectors-2").stdout
    )


def test_vectors_by_another_model(here: Path) -> None:
    """It is said how those of the same segments by the former model are deleted."""
    birchbark("index", "some.jsonl", "--to", "i", "--vectors")
    model = str(write_bert(here / "another", positions=64, seed=3))
    result = birchbark("index", "attach", "i", "--vectors", model)
    assert "birchbark index detach i vectors deletes them" in result.stderr


def test_a_vector_per_token_is_stored_for_late_interaction(here: Path) -> None:
    """It has 8 bits, or 4.

    The command says how rounding changes scores, and added documents get theirs.
    """
    model = str(write_bert(here / "encoder", positions=64, seed=3, labels=1))
    birchbark("index", "some.jsonl", "--to", "i")
    attach = ("index", "attach", "i", "--vectors", model)
    result = birchbark(*attach, "--pooling", "tokens")
    assert result.exit_code == 0
    assert "stored vectors change scores by at most 0.00" in result.stderr
    assert "their beginnings as queries)" in result.stderr
    assert birchbark("index", "add", "i", "rest.jsonl").exit_code == 0
    assert Index("i").missing_rows() == {}
    result = birchbark(
        *("search", "i", "arches", "--model", model, "--set", "pooling=tokens"),
        *("--set", "first_stage_weight=0"),
    )
    assert result.exit_code == 0
    assert "late-interaction" in result.stdout
    result = birchbark(*attach, "--pooling", "tokens", "--vector-bits", "4")
    assert (result.exit_code, Index("i").attachments[VECTORS].config["bits"]) == (0, 4)
    result = birchbark(
        "search", "i", "arches", "--set", "first_stage.match=nearest", "--model", "none"
    )
    assert "vectors of tokens find no candidates" in str(result.exception)


def test_other_poolings_are_refused(here: Path) -> None:
    """Models state how they pool; and 16 bits are too many for vectors of tokens."""
    birchbark("index", "some.jsonl", "--to", "i")
    result = birchbark("index", "attach", "i", "--pooling", "mean")
    assert "pool_model writes a model" in str(result.exception)
    result = birchbark("index", "attach", "i", "--pooling", "tokens", "--vector-bits", "16")
    assert "expected 8 or 4, found 16" in str(result.exception)
    result = birchbark("index", "attach", "i", "--tokens", "x", "--pooling", "tokens")
    assert "--pooling has no effect without --vectors" in str(result.exception)


def test_missing_vectors_are_reported_with_their_options(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that is advised computes the same vectors."""
    model = str(write_bert(here / "encoder", positions=64, seed=3))
    options = ("--vectors", model, "--pooling", "tokens:1", "--vector-bits", "4")
    birchbark("index", "some.jsonl", "--to", "i")
    birchbark("index", "attach", "i", *options)
    before = Index("i").attachments[VECTORS]
    with IndexWriter(Path("i")) as writer:
        writer.add(DOCUMENTS[-1])
    result = birchbark("index", "add", "i", "rest.jsonl")
    advised = result.stderr.split("birchbark index attach i ")[1].split("\n")[0].split()
    assert birchbark("index", "attach", "i", *advised).exit_code == 0
    assert Index("i").missing_rows() == {}
    assert Index("i").attachments[VECTORS] == before


def test_a_report_has_a_line_for_each_query(here: Path) -> None:
    """Also of a query with line breaks and tabs, which JSON Lines can have."""
    birchbark("index", "some.jsonl", "--to", "i", "--vectors")
    Path("q.jsonl").write_text(json.dumps({"id": "1", "text": "birch\tbark\n river"}))
    dense = ("--first-stage", "dense", "--output", "dense.run", "--report", "r.tsv")
    assert birchbark("retrieve", "i", "--queries", "q.jsonl", *dense).exit_code == 0
    assert Path("r.tsv").read_text() == "1\t1.000000\tbirch bark river\n"
