"""Are files of documents, queries, judgments and runs read or refused, whatever changes in them?"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_nyt import ARTICLE
from test_topics import FORMS
from test_trec_car import BARK, BEES, packed

from birchbark.collection.documents import read_collection
from birchbark.collection.folds import read_folds
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.collection.segment_scores import read_segment_scores
from fuzzing import broken, fuzz, is_read, long_bytes
from growth import FASTER_THAN_SQUARE, growth

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def archive() -> bytes:
    """Return an archive of one article and another file."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as made:
        for name in ("1.xml", "2.txt"):
            member = tarfile.TarInfo(name)
            member.size = len(ARTICLE.encode())
            made.addfile(member, io.BytesIO(ARTICLE.encode()))
    return raw.getvalue()


def columns(compression: str) -> bytes:
    """Return rows as Parquet."""
    raw = io.BytesIO()
    rows = [{"id": str(n), "text": f"text {n} " * 9, "year": n} for n in range(5)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), raw, compression=compression)
    return raw.getvalue()


RECORDS = (
    b'{"id": "a", "text": "birch", "tags": ["x"], "year": 7}\n'
    b'{"_id": "b", "title": "c", "x": null}\n'
)
PAPERS = b'cord_uid,title,abstract,url\na,Birch,"Of ""bark""\nand",x\nb,Bees,Dance,\nb,Bees,,y\n'
DOC = (
    b"<DOC>\n<DOCNO> a </DOCNO>\n<HEADLINE>Birch</HEADLINE>\n<TEXT>\nBark &amp; <b>x</b>.\n"
    b"</TEXT>\n</DOC>\n"
)
NEWS: dict[str, Any] = {"id": "a", "title": "Birch"}
NEWS["contents"] = [None, {"type": "sanitized_html", "content": "<p>Bark</p>"}, {"type": "x"}]
DOCUMENTS: dict[str, list[bytes]] = {
    "c.jsonl": [RECORDS, gzip.compress(RECORDS)],
    "c.tsv": [b"id\ttext\na\tbirch\nb\tbark\n", b"a\tBirch\tbark\n", b"a\tu\tBirch\tbark\n"],
    "c.trec": [DOC * 2, b"<?xml?>\n" + DOC.replace(b"TEXT", b"P").lower()],
    "c.xml": [ARTICLE.encode()],
    "c.tgz": [archive()],
    "c.jl": [json.dumps(NEWS).encode() + b"\n"],
    "metadata.csv": [PAPERS, gzip.compress(PAPERS)],
    "c.cbor": [packed(BEES, BARK)],
    "c.parquet": [columns(name) for name in ("none", "snappy", "zstd")],
}
FORMATS = {"c.xml": "nyt"}

Read = Callable[[Path], Any]
JUDGED = ("1", "2", "3")
OTHERS: dict[str, tuple[Read, list[bytes]]] = {
    "topics": (read_queries, [text.encode() for text, _, _ in FORMS.values()]),
    "queries": (
        read_queries,
        [b"1\tbirch\n2\tbees\n", b'{"id": 7, "text": "a"}\n{"qid": "b", "vector": {"c": 1.5}}\n'],
    ),
    "sections": (read_queries, [b"enwiki:A%20b/C 0 d 1\nenwiki:D 0 e 1\n"]),
    "judgments": (
        read_qrels,
        [b"1 0 a 1\n1 0 b -2\n2 Q0 a 3\n", b"query-id\tcorpus-id\tscore\n1\ta\t1\n"],
    ),
    "run": (read_run, [b"1 Q0 a 1 2.5 tag\n1 Q0 b 2 -1e3 tag\n2 Q0 a 1 0 tag\n"]),
    "folds": (
        lambda path: read_folds(path, JUDGED),
        [b'[["1", "2"], ["3", 4]]', b'{"a": ["1"], "b": ["2", "3"]}'],
    ),
    "scores": (
        read_segment_scores,
        [b'{"qid": "1", "docid": "a", "scores": [1, 0.5]}\n{"qid": 1, "id": "b", "scores": []}\n'],
    ),
}  # fmt: skip
NAMES = {"sections": "a.hierarchical.qrels"}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("skip", [False, True])
@fuzz(8)
@given(data=st.data())
def test_documents(name: str, skip: bool, data: st.DataObject, tmp_path: Path) -> None:
    """Those that are read have an id of their own, and a text; those that are skipped, a reason."""
    path = tmp_path / name
    path.write_bytes(data.draw(broken(DOCUMENTS[name])))
    intake = Intake(skip_bad=skip)
    found = is_read(lambda: list(read_collection(path, intake, FORMATS.get(name))), path)
    assert len({document.doc_id for document in found or ()}) == len(found or ())
    assert all(str(path) in str(error) for error in intake.skipped)


@pytest.mark.parametrize("name", OTHERS)
@fuzz(20)
@given(data=st.data())
def test_queries_judgments_and_runs(name: str, data: st.DataObject, tmp_path: Path) -> None:
    """They are read as evaluations read them."""
    read, seeds = OTHERS[name]
    path = tmp_path / NAMES.get(name, "file")
    path.write_bytes(data.draw(broken(seeds)))
    is_read(lambda: read(path), path)


LINES: dict[str, tuple[Read, list[bytes]]] = {
    "c.jsonl": (lambda path: list(read_collection(path)), [RECORDS]),
    "c.tsv": (lambda path: list(read_collection(path)), [b"a\tbirch\nb\tbark\n"]),
    "c.jl": (lambda path: list(read_collection(path)), DOCUMENTS["c.jl"]),
    "queries": (read_queries, [b"1\tbirch bark\n2\tbees\n", b'{"id": 7, "text": "a"}\n']),
    "judgments": (
        lambda path: [d for of in read_qrels(path).grades.values() for d in of],
        [b"1 0 a 1\n1 0 b -2\n2 Q0 a 3\n"],
    ),
    "run": (
        lambda path: [d for of in read_run(path).rankings.values() for d in of.doc_ids],
        OTHERS["run"][1],
    ),
    "scores": (
        lambda path: [d for of in read_segment_scores(path).values() for d in of],
        OTHERS["scores"][1],
    ),
}


@pytest.mark.parametrize("name", LINES)
@fuzz(8)
@given(data=st.data())
def test_each_line_is_a_record(name: str, data: st.DataObject, tmp_path: Path) -> None:
    """If a file is read, so is each line of it that is not blank; judgments may stand twice."""
    read, seeds = LINES[name]
    path = tmp_path / name
    raw = data.draw(broken(seeds, 2))
    path.write_bytes(raw)
    lines = [
        line for line in raw.decode(errors="replace").split("\n") if line.strip("\ufeff").strip()
    ]
    if name == "judgments":
        lines = list({tuple(line.split()) for line in lines})
    found = is_read(lambda: read(path), path)
    assert found is None or len(found) == len(lines)


@pytest.mark.parametrize(
    "name", [*OTHERS, "c.jsonl", "c.tsv", "c.trec", "c.xml", "c.jl", "metadata.csv"]
)
@fuzz(1)
@given(data=st.data())
def test_time_grows_with_the_length_of_a_list(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    """Lists of 20 and 80 KB are compared, most of which are one piece that is repeated."""
    read, seeds = OTHERS.get(name) or (
        lambda path: list(read_collection(path, Intake(skip_bad=True), FORMATS.get(name))),
        DOCUMENTS[name][:1],
    )
    paths = [tmp_path / size / NAMES.get(name, name) for size in ("short", "long")]
    for path, raw in zip(paths, data.draw(long_bytes(seeds, 20_000)), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(raw)
    assert growth(lambda path: is_read(lambda: read(path), path), *paths) < FASTER_THAN_SQUARE
