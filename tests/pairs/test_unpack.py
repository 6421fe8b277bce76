"""Do pairs become a collection that leads back to them?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.pairs.unpack import Unpacked
from birchbark.records import Pair

LONG = " ".join(f"word{n}" for n in range(40))
PAIRS = [
    Pair("1", "a query", "a", "the text", 1),
    Pair("1", "a query", "b", LONG, 0),
    Pair("x", "a  query", "c", "the text", 2),
    Pair("2", "another", "a", "the text", 0),
]


def test_distinct_texts_queries_and_relevant_judgments(tmp_path: Path) -> None:
    """Equal texts are one document, whatever their ids and white space; the highest grade stays."""
    found = Unpacked()
    found.add(PAIRS)
    found.write(tmp_path / "pool")
    pool = tmp_path / "pool"
    documents = list(read_collection(str(pool / "documents.jsonl"), Intake()))
    queries = {q.text: q.query_id for q in read_queries(pool / "queries.tsv")}
    assert [d.text for d in documents] == ["the text", LONG]
    assert set(queries) == {"a query", "another"}
    grades = read_qrels(pool / "qrels.txt").grades
    assert grades == {queries["a query"]: {documents[0].doc_id: 2}}


def test_crops_are_words_of_their_text_in_order() -> None:
    """Only of texts that are longer than a crop can be; the same for the same seed."""
    made = []
    for seed in (3, 3, 4):
        found = Unpacked()
        found.add(PAIRS)
        assert found.crop(5, 2, 10, seed) == 1
        made.append(list(found.queries.values())[-1])
        assert 2 <= len(made[-1].split()) <= 10
        assert f" {made[-1]} " in f" {LONG} "
        assert found.grades[list(found.queries)[-1]] == {list(found.texts)[1]: 1}
    assert made[0] == made[1] != made[2]


def test_a_range_that_is_none() -> None:
    """Refused."""
    with pytest.raises(InputError, match="expected 1 or more"):
        Unpacked().crop(1, 5, 4, 0)


def test_the_verb_leads_back_to_pairs(tmp_path: Path) -> None:
    """Unpacked, indexed, retrieved and paired again."""
    lines = ["qid\tquery\tdocid\ttext\tlabel"]
    lines += [
        f"{n}\tfind word{n}\td{m}\ta word{m} in text {m}\t{int(n == m)}"
        for n in range(9)
        for m in range(9)
    ]
    (tmp_path / "some.tsv").write_text("\n".join(lines) + "\n")
    pool = tmp_path / "pool"

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(group, list(map(str, arguments)))
        assert done.exit_code == 0, done.output + repr(done.exception)
        return done.output

    assert "9 documents, 9 queries" in run("pairs", "unpack", tmp_path / "some.tsv", "--to", pool)
    run("index", pool / "documents.jsonl", "--to", tmp_path / "index")
    queries = ("--queries", pool / "queries.tsv")
    run("retrieve", tmp_path / "index", *queries, "--output", tmp_path / "run")
    drawn = ("--run", tmp_path / "run", "--in-collection", 2, "--negatives", 1)
    judged = ("--qrels", pool / "qrels.txt", *drawn, "--output", tmp_path / "again.tsv")
    run("pairs", "judged", pool / "documents.jsonl", *queries, *judged)
    again = (tmp_path / "again.tsv").read_text().splitlines()
    assert sum(line.endswith("\t1") for line in again) == 9
    assert json.loads((pool / "documents.jsonl").read_text().splitlines()[0])["text"]


def test_a_folder_that_is_there_stays(tmp_path: Path) -> None:
    """Told before anything is read."""
    done = CliRunner().invoke(group, ["pairs", "unpack", "none.tsv", "--to", str(tmp_path)])
    assert "already exists" in repr(done.exception) or "already exists" in done.output
