"""Does `birchbark model` check and pack, and does --precision reach the scorer?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import load_file, save_file

from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.score.describe import describe
from conftest import DOCUMENTS, write_bert


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a tiny model, pairs, and a run to re-rank."""
    monkeypatch.chdir(tmp_path)
    write_bert(tmp_path / "model", labels=1, positions=64)
    lines = ["birch\ta canoe of birch bark", "birch\tthe bees dance", "bee\tbee " + "bee " * 99]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines))
    documents = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(documents))
    (tmp_path / "q.tsv").write_text("1\tbirch river\n2\tiron engine\n")
    return tmp_path


def birchbark(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, catch_exceptions=False)


def test_a_check_is_a_row_for_each_precision(here: Path) -> None:
    """Of the user's own pairs; a text that is too long is cut, not refused."""
    shown = birchbark("model", "check", "model", "--pairs", "pairs.tsv", "--threads", "1").output
    for word in ("fp32", "weights in 16 bits", "weights in 8 bits", "int8 arithmetic", "1.0000"):
        assert word in shown
    (here / "bad.tsv").write_text("birch\ta canoe\nno tab here\n")
    with pytest.raises(InputError, match=r"bad\.tsv:2: not a pair: expected query TAB text"):
        birchbark("model", "check", "model", "--pairs", "bad.tsv")
    (here / "empty.tsv").write_text("")
    with pytest.raises(InputError, match=r"empty\.tsv: no pairs"):
        birchbark("model", "check", "model", "--pairs", "empty.tsv")


@pytest.mark.slow
def test_a_check_brings_texts_of_its_own(here: Path) -> None:
    """Short and long ones."""
    shown = birchbark("model", "check", "model").output
    assert "short, pairs/s" in shown
    assert "long, pairs/s" in shown


def test_a_packed_model_ranks(here: Path) -> None:
    """In either precision; scores of fp32 and int8 are kept apart, and int8's best read again."""
    said = birchbark("model", "pack", "model", "--bits", "8", "--to", "small").output
    assert "small: " in said
    assert " MB before" in said
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    asked = ["rerank", "i", "--run", "a.run", "--queries", "q.tsv", "--scores", "kept"]
    for model in ("model", "small"):
        for precision, known in (("fp32", 0), ("int8", 12)):
            more = ["--model", model, "--precision", precision, "--output", f"{model}.run"]
            assert f"12 pairs scored, {known} known before" in birchbark(*asked, *more).output
    rows = birchbark("scores", "kept").output
    assert "small, int8 cross-encoder" in rows
    assert "model cross-encoder\n" in rows


def test_only_a_model_is_replaced_by_one(here: Path) -> None:
    """Other programs have a config.json, too; nothing of theirs is lost."""
    Path("app").mkdir()
    asked = ["model", "pack", "model", "--bits", "8", "--to", "app"]
    with pytest.raises(InputError, match="app: already exists"):
        birchbark(*asked)
    for text in ('{"port": 80}', "[]", "{", ""):
        Path("app/config.json").write_text(text)
        with pytest.raises(InputError, match="app: holds something else than a model"):
            birchbark(*asked, "--replace")
    assert [path.name for path in Path("app").iterdir()] == ["config.json"]
    Path("app/config.json").unlink()
    for _ in range(2):  # what is empty, then what is one
        birchbark(*asked, "--replace")


def test_a_model_without_a_head_is_taken(here: Path) -> None:
    """To be packed, to get words, and to give an index its pieces."""
    shutil.copytree("model", "bare")
    tensors = load_file("bare/model.safetensors")
    save_file({n: v for n, v in tensors.items() if "class" not in n}, "bare/model.safetensors")
    assert "no head" in describe(Path("bare"), "bare").head
    assert "small: " in birchbark("model", "pack", "bare", "--bits", "8", "--to", "small").output
    birchbark("index", "docs.jsonl", "--to", "i", "--analyzer", "wordpiece", "--vocabulary", "bare")
    with pytest.raises(InputError, match="--vocabulary does nothing with --analyzer english"):
        birchbark("index", "docs.jsonl", "--to", "j", "--vocabulary", "bare")


@pytest.mark.parametrize("verb", ["check", "pack"])
def test_help_shows_an_example(verb: str) -> None:
    """Of each, which begins like a command."""
    assert f"Example: birchbark model {verb}" in birchbark("model", verb, "--help").output
