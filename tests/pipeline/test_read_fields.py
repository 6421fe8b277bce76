"""Do models read other fields than title and text, and is it told which fields they do not read?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.fields import text as whole_text
from birchbark.segment.sentences import sentences
from conftest import WordScorer, write_bert

PAPERS = [
    {"id": "a", "title": "Boats", "text": "Of bark.", "body": "A canoe floats.\n\nIt is light."},
    {"id": "b", "title": "Bees", "text": "", "body": "They dance."},
    {"id": "c", "title": "Rivers", "text": "A canoe on a river."},
]


def test_the_contents_are_those_fields() -> None:
    """They have the order given, and blank lines between them.

    Empty and missing ones are left out.
    """
    document = Document("a", {k: v for k, v in PAPERS[0].items() if k != "id"}, ("text", "body"))
    assert document.contents == "Boats\nOf bark.\n\nA canoe floats.\n\nIt is light."
    assert [s.text for s in whole_text(document)] == [document.text]
    assert Document("a", document.fields).text == "Of bark."
    assert Document("b", {"title": "Bees", "text": "", "body": "x"}, ("text", "body")).text == "x"


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """An index whose models read abstract and body."""
    return build_index(PAPERS, tmp_path / "i", Schema().reading(("text", "body")))


def test_evidence_comes_from_the_body(index: Index) -> None:
    """Offsets are those in the contents; the default field is searched in the body, too."""
    (hit, *_) = search(IndexEngine(index), "canoe floats", Ranker(WordScorer(), sentences)).hits
    assert hit.document.doc_id == "a"
    best = hit.segments[0].segment
    assert "A canoe floats." in best.text
    assert hit.document.contents[best.start : best.end].endswith("A canoe floats.")
    (bees,) = search(IndexEngine(index), "dance", ()).hits
    assert bees.document.doc_id == "b"
    assert bees.snippet is None or "dance" in bees.snippet.segment.text
    assert index.unread_fields == ()


def test_the_title_is_not_read_twice() -> None:
    """It may be named among the fields, which may not be repeated either."""
    schema = Schema().reading(("title", "text", "body", "text"))
    assert schema.read_fields == ("text", "body")
    assert dict(schema.fields) == {"contents": ("title", "text", "body")}


def test_a_field_beside_the_default_one_changes_nothing_of_it() -> None:
    """The default field has what is read, unless it was given."""
    title = {"title": ("title",)}
    schema = Schema(fields={**Schema().fields, **title}).reading(("text", "body"))
    assert dict(schema.fields) == {"contents": ("title", "text", "body"), **title}
    given = {"contents": ("body",), **title}
    assert dict(Schema(fields=given).reading(("text",)).fields) == given


def test_changes_and_vectors_keep_the_fields(index: Index, tmp_path: Path) -> None:
    """Added documents, merged parts and stored vectors are read like the first ones."""
    embedding = load_scorer(write_bert(tmp_path / "model"))
    with IndexWriter(index.directory) as writer:
        writer.add(Document("d", {"title": "Ships", "text": "Of iron.", "body": "They sink."}))
        writer.delete("c")
        precompute_vectors(embedding, sentences, "model").attach(writer)
    with IndexWriter(index.directory) as writer:
        writer.merge()
    merged = Index(index.directory)
    assert merged.read_fields == ("text", "body")
    assert [d.contents for d in merged.documents(["d"])] == ["Ships\nOf iron.\n\nThey sink."]
    assert next(iter(merged)).read_fields == ("text", "body")
    ranker = Ranker(embedding, sentences)
    stored = search(IndexEngine(merged), "bees dance", ranker)
    assert stored.stats.by_vectors == stored.stats.candidates > 0
    fresh = build_index(list(merged), tmp_path / "fresh", Schema().reading(("text", "body")))
    (hit,), (again,) = stored.hits, search(IndexEngine(fresh), "bees dance", ranker).hits
    assert [s.segment for s in hit.segments] == [s.segment for s in again.segments]


def test_the_command_tells_what_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so when it indexes and when it searches; with --read, nothing is left out."""
    monkeypatch.chdir(tmp_path)
    Path("p.jsonl").write_text("\n".join(map(json.dumps, PAPERS)))

    def run(*words: str) -> Any:
        result = CliRunner().invoke(group, list(words), catch_exceptions=False)
        assert result.exit_code == 0
        return result

    fields = ("--field", "contents=title+text", "--field", "body=body")
    told = run("index", "p.jsonl", "--to", "i", *fields).stderr
    assert "note: searched but not read by models (see --read): body" in told
    quick = ("--model", str(write_bert(tmp_path / "m", labels=1)), "--embedding", "none")
    told = run("search", "i", "canoe", *quick).stderr
    assert "searched but not read by models: body" in told
    told = run("index", "p.jsonl", "--to", "j", "--read", "text", "--read", "body").stderr
    assert "not read" not in told
    found = run("search", "j", "floats", *quick)
    assert "A canoe floats." in found.stdout
    assert "not read by models" not in found.stderr
    assert "read by models\ttitle, text, body" in run("index", "stats", "j").stdout


@pytest.mark.parametrize(
    ("fields", "read", "noted"),
    [
        ({"title": "A"}, (), ""),
        ({"title": "A", "text": "B"}, (), ""),
        ({"title": "A", "abstract": "B"}, (), "no document has text, which models are to read"),
        ({"title": "A", "abstract": "B"}, ("abstract",), ""),
        ({"title": "A"}, ("abstract",), "(see --read); found: title"),
        ({"title": "A", "text": "B"}, ("body",), "found: text"),
    ],
)
def test_a_field_that_no_document_has_is_noted(
    tmp_path: Path, fields: dict[str, str], read: tuple[str, ...], noted: str
) -> None:
    """A collection whose text has a name of its own; titles alone lack nothing."""
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": "1"} | fields))
    options = [word for name in read for word in ("--read", name)]
    command = ["index", str(tmp_path / "p.jsonl"), "--to", str(tmp_path / "i"), *options]
    told = CliRunner().invoke(group, command, catch_exceptions=False).stderr
    assert noted in told
    assert ("note: " in told) == bool(noted)
