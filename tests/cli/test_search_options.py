"""Do commands report limits, budgets and stored attachments?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import here

from birchbark.index.index import Index
from command_line import birchbark
from conftest import DOCUMENTS, write_bert

__all__ = ["here"]
COMMAND = ("rerank", "i", "--run", "a.run", "--queries", "q.tsv", "--model", "model")


@pytest.fixture
def run(here: Path) -> Path:
    """Build an index without vectors, and a first-stage run."""
    birchbark("index", "docs.jsonl", "--to", "i", "--vectors", "none")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    return here


def table(path: Path) -> dict[str, dict[str, str]]:
    """Return a TSV file as row name → column → cell."""
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def test_truncation_is_reported(run: Path) -> None:
    """Tokens beyond a limit are counted in the summary and per query."""
    stderr = birchbark(*COMMAND, "--output", "b.run")[1]
    assert "not scored" not in stderr
    Path("limit.toml").write_text("[[stage]]\nmax_segments = 1\n")
    limited = ("--ranker", "limit.toml")
    more = ("--set", "segments=sentences", *limited, "--report", "r.tsv")
    stderr = birchbark(*COMMAND, "--output", "b.run", *more)[1]
    rows = table(run / "r.tsv")
    tokens = sum(int(row["truncated_tokens"]) for row in rows.values())
    documents = sum(int(row["truncated_documents"]) for row in rows.values())
    assert tokens > documents > 2
    assert f"max_segments or max_length: {tokens} tokens of {documents} doc" in stderr
    assert rows["3"]["candidates"] == "0"
    assert rows["1"]["exact"] == "true"
    Path("limit.toml").write_text("[[stage]]\nmax_length = 2\n")
    stderr = birchbark(*COMMAND, "--output", "b.run", *limited)[1]
    assert "not scored, because of max" in stderr
    more = ("--report", "same", "--output", "same")
    assert "are the same file" in birchbark(*COMMAND, *more, status=2)[1]


def test_top(run: Path) -> None:
    """--top gives the head of the full ranking."""
    birchbark(*COMMAND, "--output", "all.run")
    birchbark(*COMMAND, "--output", "best.run", "--top", "1")
    lines = Path("all.run").read_text().splitlines()
    heads = [line for line in lines if line.split()[3] == "1"]
    assert Path("best.run").read_text().splitlines() == heads


def hits_of(out: str) -> list[dict[str, object]]:
    """Return the printed hits without what was read for them."""
    return [{**json.loads(line), "stats": None} for line in out.splitlines()]


def test_budget(run: Path) -> None:
    """With a long budget the answer is exact; with a tiny one it is the first stage's."""
    command = ("search", "i", "birch river", "--model", "model", "--json")
    full = birchbark(*command)[0]
    in_time = birchbark(*command, "--budget", "60s")[0]
    assert hits_of(in_time) == hits_of(full)
    out, stderr = birchbark(*command, "--budget", "0.000001ms")
    hits = [json.loads(line) for line in out.splitlines()]
    assert not any(hit["scored"] or hit["exact"] or hit["segments"] for hit in hits)
    assert all(hit["snippet"]["marks"] for hit in hits)
    assert "the time budget ran out: read 0 of " in stderr
    assert "loading the models took " in stderr
    first = birchbark("search", "i", "birch river", "--model", "none", "--json")[0]
    assert [h["doc_id"] for h in hits] == [json.loads(x)["doc_id"] for x in first.splitlines()]


def test_a_search_tells_what_was_read(run: Path) -> None:
    """The summary and --json name the models and their counts; evidence has marks."""
    out, stderr = birchbark("search", "i", "birch river", "--model", "model", "--json")
    for hit in map(json.loads, out.splitlines()):
        stats = hit["stats"]
        assert stats["models"] == ["model cross-encoder"]
        assert stats["planned"] >= stats["pairs"] - stats["embedded"] > 0
        assert hit["snippet"] is None
        for segment in hit["segments"]:
            for start, end in segment["marks"]:
                assert segment["text"][start:end].lower() in ("birch", "river")
    read = f"read {stats['pairs'] - stats['embedded']} of {stats['segments']} passages with model"
    assert stderr.startswith(f"{read} cross-encoder, {stats['embedded']} with cosine of ")
    out, stderr = birchbark("search", "i", "birch river", "--model", "none")
    assert "A canoe of birch bark." in out
    assert stderr == ""


def test_tokens_and_vectors_are_stored_and_completed(here: Path) -> None:
    """Attachments are computed when asked for, and for added documents; they can be deleted."""
    write_bert(here / "embedding", positions=64)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    Path("some.jsonl").write_text("\n".join(lines[:3]))
    Path("rest.jsonl").write_text("\n".join(lines[3:]))
    birchbark("index", "some.jsonl", "--to", "i")
    stderr = birchbark("index", "attach", "i", "--tokens", "model")[1]
    assert "tokens of passages:120 are stored in i" in stderr
    birchbark("index", "attach", "i", "--vectors", "embedding", "--vector-bits", "8")
    birchbark("index", "add", "i", "rest.jsonl")
    index = Index("i")
    assert (set(index.attachments), index.missing_rows()) == ({"static", "tokens", "vectors"}, {})
    assert "attachment vectors" in birchbark("index", "stats", "i")[0]
    birchbark("index", "stats", "i", "--verify")
    out = birchbark(
        "search", "i", "birch river", "--model", "model", "--embedding", "embedding", "--json"
    )[0]
    for hit in map(json.loads, out.splitlines()):
        assert hit["embedding"] > 0
        parts = hit["first_stage"] + hit["embedding"] + hit["evidence"]
        assert hit["score"] == pytest.approx(parts)
    stderr = birchbark("search", "i", "birch river", "--model", "embedding")[1]
    assert stderr == "used the stored vectors of 5 documents\n"
    more = ("--model", "embedding", "--set", "segments=windows:9/1")
    stderr = birchbark("search", "i", "birch river", *more)[1]
    assert "none were made with this search's embedding model and segments" in stderr
    birchbark("index", "detach", "i", "vectors")
    assert set(Index("i").attachments) == {"static", "tokens"}
    stderr = birchbark("index", "attach", "i", "--vectors", "model", status=2)[1]
    assert "computes no vectors: expected an embedding model" in stderr


def test_attachments_are_completed_from_any_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model named by a relative path is found from another working directory."""
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    Path("some.jsonl").write_text("\n".join(lines[:3]))
    Path("rest.jsonl").write_text("\n".join(lines[3:]))
    birchbark("index", "some.jsonl", "--to", "i")
    birchbark("index", "attach", "i", "--tokens", "model")
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    birchbark("index", "add", "../i", "../rest.jsonl")
    assert Index(here / "i").missing_rows() == {}


def test_pages_of_the_evidence_are_told(here: Path) -> None:
    """A document with form feeds, such as one from a PDF, has pages."""
    pages = "A steam engine.\n\fBees dance.\n\fA birch canoe."
    Path("paged.jsonl").write_text(json.dumps({"id": "report", "text": pages}))
    birchbark("index", "paged.jsonl", "--to", "paged")
    shown = birchbark("search", "paged", "birch canoe", "--model", "model")[0]
    assert "p. 3: A birch canoe." in shown
    (line,) = birchbark("search", "paged", "birch", "--model", "model", "--json")[0].splitlines()
    (one,) = json.loads(line)["segments"]
    assert one["text"][slice(*one["sentence"])] == "A birch canoe."
    assert one["page"] == 3
    birchbark("index", "docs.jsonl", "--to", "i")
    assert "p. 1" not in birchbark("search", "i", "birch", "--model", "model")[0]


def test_hits_for_spreadsheets_and_notes(here: Path) -> None:
    """Each form has the hits that are shown otherwise; two forms at once are refused."""
    birchbark("index", "docs.jsonl", "--to", "i")
    command = ("search", "i", "birch river", "--model", "model", "--top", "2")
    ids = [json.loads(line)["doc_id"] for line in birchbark(*command, "--json")[0].splitlines()]
    rows = birchbark(*command, "--csv")[0].splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [["1", ids[0]], ["2", ids[1]]]
    notes = birchbark(*command, "--markdown")[0]
    assert notes.startswith(f"## birch river\n\n1. **{ids[0]}**")
    refused = birchbark(*command, "--csv", "--json", status=2)[1]
    assert "--csv cannot be combined with --json" in refused


def test_lines_of_the_evidence_are_told(here: Path) -> None:
    """Source code and text files have lines; a document with a title has none."""
    Path("notes").mkdir()
    Path("notes/a.txt").write_text("A steam engine.\n\nBees dance.\r\nA birch canoe.\n")
    Path("notes/b.md").write_text("# Canoes\n\nA birch canoe.\n")
    birchbark("index", "notes", "--to", "lined")
    command = ("search", "lined", "birch canoe", "--model", "model")
    shown = birchbark(*command)[0]
    assert "line 4: A birch canoe." in shown
    hits = list(map(json.loads, birchbark(*command, "--json")[0].splitlines()))
    lines = {hit["doc_id"]: hit["segments"][0]["line"] for hit in hits}
    assert lines == {"a.txt": 4, "b.md": None}


def test_a_misspelt_query_without_hits(run: Path) -> None:
    command = ("search", "i", "--model", "model")
    assert "did you mean: birch river" in birchbark(*command, "brich rivver")[1]
    messages = birchbark(*command, "zzzzzzzz")[1].splitlines()
    assert messages[0] == "no document matches"
    assert messages[1].startswith("only documents with these words can be found")


def test_a_filter_that_no_document_meets(here: Path) -> None:
    """The message lists the values that there are."""
    records = [{"id": str(n), "text": "birch", "kind": f"kind {n}"} for n in range(14)]
    Path("kinds.jsonl").write_text("\n".join(map(json.dumps, records)))
    birchbark("index", "kinds.jsonl", "--to", "kinds", "--keyword", "kind")
    command = ("search", "kinds", "birch", "--model", "none", "--filter")
    messages = birchbark(*command, "kind=3")[1]
    assert "no document has kind=3; there are: kind 0, kind 1, kind 10" in messages
    assert messages.rstrip().endswith(", …")
    assert "no document has" not in birchbark(*command, "kind=kind 3")[1]


def test_without_common_words_the_nearest_are_shown(here: Path) -> None:
    """They are if their vectors are stored; a note says so, and offers a correction."""
    write_bert(here / "embedding", positions=64)
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("index", "attach", "i", "--vectors", "embedding")
    command = ("search", "i", "--model", "model", "--embedding", "embedding")
    out, messages = birchbark(*command, "brich rivver")[:2]
    assert "1." in out
    assert (
        "none of these documents has the words of the query; they are nearest in meaning; did you"
        in messages
    )
    assert "no document" not in birchbark(*command, "birch")[1]
    messages = birchbark(*command, "zzzzzzzz", "--set", "first_stage.match=or")[1]
    assert "no document matches" in messages
    assert "can be found" not in messages


def test_control_characters_of_documents_are_not_printed(here: Path) -> None:
    """Neither hits nor messages have them; the JSON output escapes them."""
    hostile = "\x1b]0;owned\x07 \x1b[31m birch \x9b2J canoe\x7f"
    hostile += "\u202egnp.evil\u202c \u2067 \u2028"  # another direction, another line
    record = {"id": "a\x1bb", "title": hostile, "text": f"A {hostile}. {hostile}"}
    Path("hostile.jsonl").write_text(json.dumps(record))
    birchbark("index", "hostile.jsonl", "--to", "hostile")
    controls = set("\x1b\x07\x9b\x7f\u202e\u202c\u2067\u2028")
    for options in (
        ("--model", "model"),
        (
            "--model",
            "none",
        ),
    ):
        out, messages = birchbark("search", "hostile", "birch", *options)[:2]
        assert "birch" in out
        assert not set(out + messages) & controls
    out = birchbark("search", "hostile", "birch", "--model", "none", "--json")[0]
    assert json.loads(out)["title"] == hostile
    assert not set(out) & controls
    assert "\x1b" not in birchbark("search", "no\x1bwhere", "birch", status=2)[1]


def test_a_folder_stands_for_its_index(here: Path) -> None:
    """The index beside a folder is searched; without one, the message says how to make it."""
    (here / "notes").mkdir()
    (here / "notes" / "boats.txt").write_text("A birch canoe.")
    messages = birchbark("search", "notes", "canoe", "--model", "none", status=2)[1]
    assert "birchbark index notes --to notes.index" in messages
    birchbark("index", "notes", "--to", "notes.index")
    for name in ("notes", "notes/", "notes.index"):
        assert "boats.txt" in birchbark("search", name, "canoe", "--model", "none")[0]
    assert "documents" in birchbark("index", "stats", "notes")[0]


@pytest.mark.parametrize("name", [".", ".."])
def test_a_folder_without_a_name(here: Path, name: str) -> None:
    """It is resolved, and the message says how its index is made."""
    messages = birchbark("search", name, "canoe", "--model", "none", status=2)[1]
    assert "no index here" in messages


def test_hits_below_a_probability_are_left_out(run: Path) -> None:
    """Their number is told; without a cross-encoder there are no probabilities."""
    command = ("search", "i", "birch river", "--model", "model", "--json")
    hits = [json.loads(line) for line in birchbark(*command)[0].splitlines()]
    probabilities = sorted(hit["probability"] for hit in hits)
    out, stderr = birchbark(*command, "--min-probability", str(probabilities[-1]))
    assert [json.loads(line)["probability"] for line in out.splitlines()] == probabilities[-1:]
    assert "left out 2 hits whose probability is below" in stderr
    first = ("search", "i", "birch river", "--model", "none")
    stderr = birchbark(*first, "--min-probability", "0.5", status=2)[1]
    assert "--min-probability has no effect without BERT" in stderr
