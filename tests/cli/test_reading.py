"""Does the command line say what was read, what was not, and in what time?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import birchbark, here

from birchbark.cli.options import parse_seconds
from birchbark.errors import InputError
from birchbark.index.reader import Index
from conftest import DOCUMENTS, write_bert

__all__ = ["here"]
ASKED = ("rerank", "i", "--run", "a.run", "--queries", "q.tsv", "--model", "model")


@pytest.fixture
def run(here: Path) -> Path:
    """An index and a first run."""
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    return here


def table(path: Path) -> dict[str, dict[str, str]]:
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def test_what_a_limit_leaves_unread_is_told(run: Path) -> None:
    """In the summary and for each query; nothing is told where all was read."""
    said = birchbark(*ASKED, "--output", "b.run")[1]
    assert "not read" not in said
    more = ("--max-segments", "1", "--report", "r.tsv")
    said = birchbark(*ASKED, "--output", "b.run", *more)[1]
    rows = table(run / "r.tsv")
    tokens = sum(int(row["unread_tokens"]) for row in rows.values())
    documents = sum(int(row["unread_documents"]) for row in rows.values())
    assert tokens > documents > 2
    assert f"not read, as asked: {tokens} tokens of {documents} documents" in said
    assert rows["3"]["candidates"] == "0"
    assert rows["1"]["exact"] == "true"
    said = birchbark(*ASKED, "--output", "b.run", "--max-length", "2")[1]
    assert "not read, as asked" in said
    more = ("--report", "same", "--output", "same")
    assert "are one file" in birchbark(*ASKED, *more, status=2)[1]


def test_only_the_best_are_ranked_where_asked(run: Path) -> None:
    """They are the head of the full ranking."""
    birchbark(*ASKED, "--output", "all.run")
    birchbark(*ASKED, "--output", "best.run", "--top", "1")
    lines = Path("all.run").read_text().splitlines()
    heads = [line for line in lines if line.split()[3] == "1"]
    assert Path("best.run").read_text().splitlines() == heads


def test_a_budget_is_kept_and_told(run: Path) -> None:
    """With time enough the answer is exact; with none it is the first stage's."""
    asked = ("search", "i", "birch river", "--model", "model", "--json")
    full = birchbark(*asked)[0]
    assert birchbark(*asked, "--budget", "60s")[0] == full
    out, said = birchbark(*asked, "--budget", "0.000001ms")
    hits = [json.loads(line) for line in out.splitlines()]
    assert not any(hit["settled"] or hit["exact"] for hit in hits)
    assert "read 0 of 3 documents: time was up" in said
    first = birchbark("search", "i", "birch river", "--first-stage-only", "--json")[0]
    assert [h["doc_id"] for h in hits] == [json.loads(x)["doc_id"] for x in first.splitlines()]


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("2s", 2), ("1.5", 1.5)])
def test_times_are_read(text: str, seconds: float) -> None:
    """With a unit or without."""
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "-1s", "ms", "1e3", "nan"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """And says what one looks like."""
    with pytest.raises(InputError, match="not a time: expected 500ms, or 2s"):
        parse_seconds(text)


def test_tokens_and_vectors_are_kept_and_completed(here: Path) -> None:
    """At once or later; documents that are added get theirs; and they can be dropped."""
    write_bert(here / "embedding", positions=64)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    Path("some.jsonl").write_text("\n".join(lines[:3]))
    Path("rest.jsonl").write_text("\n".join(lines[3:]))
    said = birchbark("index", "some.jsonl", "--to", "i", "--tokens", "model")[1]
    assert "tokens of sentences are kept in i" in said
    birchbark("index", "attach", "i", "--vectors", "embedding", "--vector-bits", "8")
    birchbark("index", "add", "i", "rest.jsonl")
    index = Index("i")
    assert (set(index.attachments), index.incomplete()) == ({"tokens", "vectors"}, {})
    assert "attachment vectors" in birchbark("index", "stats", "i")[0]
    birchbark("index", "verify", "i")
    out = birchbark(
        "search", "i", "birch river", "--model", "model", "--embedding", "embedding", "--json"
    )[0]
    for hit in map(json.loads, out.splitlines()):
        assert hit["embedding"] > 0
        parts = hit["first_stage"] + hit["embedding"] + hit["evidence"]
        assert hit["score"] == pytest.approx(parts)
    said = birchbark("search", "i", "birch river", "--model", "embedding")[1]
    assert "documents were scored by vectors that the index keeps" in said
    more = ("--model", "embedding", "--segments", "windows:9/1")
    said = birchbark("search", "i", "birch river", *more)[1]
    assert "keeps vectors, but not of this model and these segments" in said
    birchbark("index", "detach", "i", "vectors")
    assert set(Index("i").attachments) == {"tokens"}
    assert "--tokens MODEL or --vectors MODEL" in birchbark("index", "attach", "i", status=2)[1]
    said = birchbark("index", "attach", "i", "--vectors", "model", status=2)[1]
    assert "no vectors to keep: expected an embedding model" in said


def test_what_is_kept_is_completed_from_any_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that was named by a path is found again from elsewhere."""
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    Path("some.jsonl").write_text("\n".join(lines[:3]))
    Path("rest.jsonl").write_text("\n".join(lines[3:]))
    birchbark("index", "some.jsonl", "--to", "i", "--tokens", "model")
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    birchbark("index", "add", "../i", "../rest.jsonl")
    assert Index(here / "i").incomplete() == {}
