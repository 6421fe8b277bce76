"""Can pairs be made again from the collection that they become?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.pairs.to_collection import PairCollection
from birchbark.records import Pair

LONG = " ".join(f"word{n}" for n in range(40))
PAIRS = [
    Pair("1", "a query", "a", "the text", 1),
    Pair("1", "a query", "b", LONG, 0),
    Pair("x", "a  query", "c", "the text", 2),
    Pair("2", "another", "a", "the text", 0),
]


def test_distinct_texts_queries_and_relevant_judgments(tmp_path: Path) -> None:
    """Equal texts become one document, with any ids and white space; the highest grade counts."""
    collection = PairCollection()
    collection.add(PAIRS)
    collection.write(tmp_path / "pool")
    pool = tmp_path / "pool"
    documents = list(read_collection(str(pool / "documents.jsonl"), Intake()))
    queries = {q.text: q.query_id for q in read_queries(pool / "queries.tsv")}
    assert [d.text for d in documents] == ["the text", LONG]
    assert set(queries) == {"a query", "another"}
    grades = read_qrels(pool / "qrels.txt").grades
    assert grades == {queries["a query"]: {documents[0].doc_id: 2}}


def test_crops_are_words_of_their_text_in_order() -> None:
    """Only long texts are cropped; equal seeds give equal crops."""
    made = []
    for seed in (3, 3, 4):
        collection = PairCollection()
        collection.add(PAIRS)
        assert collection.add_crops(5, 2, 10, seed) == 1
        made.append(list(collection.queries.values())[-1])
        assert 2 <= len(made[-1].split()) <= 10
        assert f" {made[-1]} " in f" {LONG} "
        assert collection.grades[list(collection.queries)[-1]] == {list(collection.texts)[1]: 1}
    assert made[0] == made[1] != made[2]


def test_an_empty_range_is_refused() -> None:
    """The lower number comes first."""
    with pytest.raises(InputError, match="expected MIN-MAX with 1 ≤ MIN"):
        PairCollection().add_crops(1, 5, 4, 0)


def test_the_command_line_makes_pairs_again(tmp_path: Path) -> None:
    """By to-collection, index, retrieve and pairs judged."""
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

    assert "9 documents, 9 queries" in run(
        "pairs", "to-collection", tmp_path / "some.tsv", "--to", pool
    )
    run("index", pool / "documents.jsonl", "--to", tmp_path / "index")
    queries = ("--queries", pool / "queries.tsv")
    run("retrieve", tmp_path / "index", *queries, "--output", tmp_path / "run")
    sample = ("--run", tmp_path / "run", "--random-negatives", 2, "--negatives", 1)
    judged = ("--qrels", pool / "qrels.txt", *sample, "--output", tmp_path / "again.tsv")
    run("pairs", "judged", pool / "documents.jsonl", *queries, *judged)
    again = (tmp_path / "again.tsv").read_text().splitlines()
    assert sum(line.endswith("\t1") for line in again) == 9
    assert json.loads((pool / "documents.jsonl").read_text().splitlines()[0])["text"]


def test_an_existing_folder_is_not_replaced(tmp_path: Path) -> None:
    """The error comes before anything is read."""
    done = CliRunner().invoke(group, ["pairs", "to-collection", "none.tsv", "--to", str(tmp_path)])
    assert "already exists" in repr(done.exception) or "already exists" in done.output
