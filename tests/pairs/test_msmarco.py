"""Are MS MARCO's training files read in their original formats?"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.pairs.hash_table import HashTable
from birchbark.pairs.judged import add_negatives, judged_pairs
from birchbark.pairs.msmarco import read_id_triples, read_triples
from birchbark.pairs.read import text_id
from birchbark.records import Document, Pair, Query

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines

Write = Callable[[str, str], Path]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), min_size=1).filter(
    str.strip
)
QUERIES = [Query("7", "do bees dance"), Query("8", "birch bark")]
PASSAGES = [Document(i, {"text": f"passage {i}"}) for i in "0123"]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, "utf-8", newline="")
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("triples") / "triples.tsv"


@given(
    st.lists(st.tuples(TEXT, TEXT, TEXT).filter(lambda t: t[1] != t[2]), min_size=1), st.booleans()
)
def test_triples_round_trip(file: Path, triples: list[tuple[str, str, str]], gzipped: bool) -> None:
    raw = "".join("\t".join(triple) + "\n" for triple in triples).encode()
    file.write_bytes(gzip.compress(raw) if gzipped else raw)
    pairs = list(read_triples(file, Intake()))
    assert [(p.query, p.text, p.relevance) for p in pairs] == [
        row for q, yes, no in triples for row in ((q, yes, 1), (q, no, 0))
    ]
    for pair in pairs:
        assert (pair.query_id, pair.doc_id) == (text_id(pair.query), text_id(pair.text))


@given(st.text() | st.text("ab\t\n", max_size=40))
def test_any_text_is_triples_or_an_input_error(file: Path, text: str) -> None:
    file.write_text(text, "utf-8", newline="")
    intake = Intake(skip_bad=True)
    try:
        pairs = list(read_triples(file, intake))
    except InputError as error:
        assert str(error).startswith(str(file))
        return
    filled = [line for line in text.split("\n") if line.removeprefix("\ufeff").strip()]
    assert len(pairs) / 2 + len(intake.skipped) == len(filled)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q\tp", r"wrong number of columns: expected 3: query TAB positive TAB negative, found 2"),
        ("q\ta\tb\tc", r"wrong number of columns: .* found 4"),
        ("q\ta\t ", r"text is empty"),
        (" \ta\tb", r"query is empty"),
        ("q\ta\ta", r"the same text is positive and negative"),
    ],
)
def test_the_error_for_a_bad_triple_names_the_line(write: Write, line: str, message: str) -> None:
    path = write("triples.tsv", f"q\ta\tb\n{line}\n")
    with pytest.raises(InputError, match=rf"triples\.tsv:2: {message}"):
        list(read_triples(path, Intake()))


@pytest.mark.parametrize("text", ["", "\n", "q\tp\n"])
def test_a_file_without_triples_is_refused(write: Write, text: str) -> None:
    path = write("t.tsv", text)
    for pairs in (
        read_triples(path, Intake(skip_bad=True)),
        read_id_triples(path, QUERIES, PASSAGES, Intake(skip_bad=True)),
    ):
        with pytest.raises(InputError, match=r"t\.tsv: no triples"):
            list(pairs)


def test_id_triples_take_their_texts_from_queries_and_collection(write: Write) -> None:
    queries = read_queries(write("queries.train.tsv", "7\tdo bees dance\n8\tbirch bark\n"))
    collection = write("collection.tsv", "0\tBees.\n1\tTrees.\n2\tNobody asks.\n3\tBark.\n")
    triples = write("qidpidtriples.train.small.tsv", "7\t0\t1\n8\t3\t0\n")
    documents = read_collection(str(collection), Intake())
    assert list(read_id_triples(triples, queries, documents, Intake())) == [
        Pair("7", "do bees dance", "0", "Bees.", 1),
        Pair("7", "do bees dance", "1", "Trees.", 0),
        Pair("8", "birch bark", "3", "Bark.", 1),
        Pair("8", "birch bark", "0", "Bees.", 0),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("9\t0\t1", "query 9 is not among the queries"),
        ("7\t0\t99", "document 99 is not in the collection"),
        ("7\t-1\t0", "document -1 is not in the collection"),
        ("7\t1\t1", "the same text is positive and negative"),
        ("7\t1", "wrong number of columns"),
    ],
)
def test_a_bad_id_triple_is_reported_once_with_its_line(
    write: Write, line: str, message: str
) -> None:
    path = write("ids.tsv", f"{line}\n8\t2\t3\n")
    with pytest.raises(InputError, match=rf"ids\.tsv:1: {message}"):
        list(read_id_triples(path, QUERIES, PASSAGES, Intake()))
    intake = Intake(skip_bad=True)
    assert len(list(read_id_triples(path, QUERIES, PASSAGES, intake))) == 2
    assert len(intake.skipped) == 1


def test_a_limit_is_the_number_of_valid_triples(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of triples of ids, others are not read in the first pass, unless bad ones may be skipped."""
    path = write("ids.tsv", "7\t0\t1\n8\t2\t9\n8\t2\t3\n8\t0\t3\n")
    numbered: list[int] = []
    numbers = HashTable.numbers
    monkeypatch.setattr(
        HashTable, "numbers", lambda self, h: (numbered.append(len(h)), numbers(self, h))[1]
    )
    expected = [("7", "0", 1), ("7", "1", 0), ("8", "2", 1), ("8", "3", 0)]
    for skip_bad, limit, first_pass in ((False, 1, 2), (True, 2, 8), (True, 1, 8)):
        pairs = read_id_triples(path, QUERIES, PASSAGES, Intake(skip_bad), limit)
        found = [(p.query_id, p.doc_id, p.relevance) for p in pairs]
        assert (found, numbered.pop()) == (expected[: 2 * limit], first_pass)
    with pytest.raises(InputError, match=r"ids\.tsv:2: document 9"):
        list(read_id_triples(path, QUERIES, PASSAGES, Intake(), 2))
    texts = write("texts.tsv", "a\tb\tc\na\tb\td\nbad\n")
    assert [p.text for p in read_triples(texts, Intake(), 2)] == ["b", "c", "b", "d"]


def test_the_documents_are_read_as_a_test_collection(write: Write) -> None:
    """The qrels list relevant documents; the run provides negatives."""
    queries = read_queries(write("msmarco-doctrain-queries.tsv", "3\tdo bees dance\n"))
    qrels = read_qrels(write("msmarco-doctrain-qrels.tsv", "3 0 D2 1\n"))
    run = read_run(
        write(
            "msmarco-doctrain-top100",
            "3 Q0 D1 1 -5.5 IndriQueryLikelihood\n3 Q0 D2 2 -5.6 IndriQueryLikelihood\n",
        )
    )
    docs = write("msmarco-docs.tsv", "D1\thttp://a\tTrees\tBark.\nD2\thttp://b\tBees\tDance.\n")
    documents = read_collection(str(docs), Intake())
    negatives = {query_id: ranking.doc_ids for query_id, ranking in run.rankings.items()}
    labelled = add_negatives(qrels, negatives)
    assert list(judged_pairs(queries, labelled, documents, Intake())) == [
        Pair("3", "do bees dance", "D1", "Trees\nBark.", 0),
        Pair("3", "do bees dance", "D2", "Bees\nDance.", 1),
    ]
