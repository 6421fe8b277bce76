"""Does training/passages/marco.sh sample MS MARCO's documents as it says?"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.pairs.read import read_pairs
from conftest import write_bert
from original_formats import SUBJECT_QUERIES, run_script, write_gzip, write_marco


@pytest.mark.slow
def test_training_and_evaluation_share_nothing(tmp_path: Path) -> None:
    """Each has its relevant documents and others; windows are of documents that BM25 finds."""
    write_marco(tmp_path)
    documents, queries = {}, {}
    for part in ("train", "test"):
        read = list(read_collection(tmp_path / f"{part}.docs.tsv", Intake()))
        documents[part] = {document.doc_id for document in read}
        assert all(document.fields["title"] or document.text for document in read)
        queries[part] = {query.query_id for query in read_queries(tmp_path / f"{part}.queries.tsv")}
        grades = read_qrels(tmp_path / f"{part}.qrels").grades
        assert grades.keys() == queries[part]
        assert {doc_id for judged in grades.values() for doc_id in judged} <= documents[part]
        assert len(queries[part]) == len(SUBJECT_QUERIES)
    assert not documents["train"] & documents["test"]
    assert not queries["train"] & queries["test"]
    others = 320 // 32, 320 // 16  # every 32nd and every 16th document, unless it is relevant
    for part, count in zip(("train", "test"), others, strict=True):
        assert 0 < len(documents[part]) - len(SUBJECT_QUERIES) <= count
    pairs = list(read_pairs(tmp_path / "train.windows.tsv", Intake()))
    assert {pair.doc_id for pair in pairs} <= documents["train"]
    assert {pair.relevance for pair in pairs} == {0, 1}


@pytest.mark.slow
def test_pairs_for_distillation(tmp_path: Path) -> None:
    """A query has five windows of its relevant document, and one of each of five others.

    If its relevant document has a single window, it has one of another document.
    """
    write_marco(tmp_path)
    documents = tmp_path / "msmarco/msmarco-docs.tsv.gz"
    lines = gzip.decompress(documents.read_bytes()).decode().splitlines()
    qrels = read_qrels(tmp_path / "msmarco/msmarco-doctrain-qrels.tsv.gz").grades
    short = next(iter(qrels["3"]))
    longer = [line + " and then" * (400 * (line.split()[0] != short)) for line in lines]
    write_gzip(documents, "".join(f"{line}\n" for line in longer))
    model = write_bert(tmp_path / "teacher", labels=1)
    run_script("marco-distil.sh", tmp_path / "msmarco", tmp_path, str(model), "cpu")
    pairs = list(read_pairs(tmp_path / "distil.tsv", Intake()))
    assert {pair.query_id for pair in pairs} == set(qrels)
    numbers, contents = set(), set()
    for query_id, judged in qrels.items():
        mine = [pair for pair in pairs if pair.query_id == query_id]
        relevant = [pair.doc_id for pair in mine if pair.relevance]
        others = [pair.doc_id for pair in mine if not pair.relevance]
        assert relevant == (1 if query_id == "3" else 5) * list(judged)
        assert len(others) == len(set(others) - set(judged)) == len(relevant)
        numbers.update(others)
        contents |= {pair.text.startswith("and then") for pair in mine if not pair.relevance}
    assert len(numbers) > 20
    assert contents == {True, False}  # windows of any place, not the first ones only
