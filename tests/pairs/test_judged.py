"""Does each judgment of a known query and document become a pair, and no other?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.pairs.judged import add_negatives, judged_pairs, segment_texts
from birchbark.records import Document, Pair, Qrels, Query, Segment

QUERIES = [Query("1", "do bees dance"), Query("2", "birch bark")]
BEES = Document("bees", {"title": "Bees", "text": "They dance."})
CANOE = Document("canoe", {"text": "Made of birch bark."})
GRADES = st.dictionaries(
    st.sampled_from("123"),
    st.dictionaries(st.sampled_from("abcd"), st.integers(-2, 3)),
)


@given(GRADES, st.sets(st.sampled_from("12")), st.sets(st.sampled_from("abc")))
def test_every_judgment_is_a_pair_or_noted(
    grades: dict[str, dict[str, int]], known_queries: set[str], known_documents: set[str]
) -> None:
    intake = Intake()
    queries = [Query(query_id, f"query {query_id}") for query_id in sorted(known_queries)]
    documents = [Document(doc_id, {"text": f"text {doc_id}"}) for doc_id in sorted(known_documents)]
    expected = {
        Pair(q, f"query {q}", d, f"text {d}", max(0, grade))
        for q, of_query in grades.items()
        for d, grade in of_query.items()
        if q in known_queries and d in known_documents
    }
    try:
        pairs = list(judged_pairs(queries, Qrels(grades), documents, intake))
    except InputError:
        assert not expected
        return
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    missing = sum(d not in known_documents for q in known_queries for d in grades.get(q, ()))
    assert intake.notes["judged document not in the collection"] == missing
    assert intake.notes["judged query not among the queries"] == len(grades.keys() - known_queries)


def test_the_text_is_title_and_text() -> None:
    pairs = list(judged_pairs(QUERIES, Qrels({"1": {"bees": 2}}), [CANOE, BEES], Intake()))
    assert pairs == [Pair("1", "do bees dance", "bees", "Bees\nThey dance.", 2)]


def test_documents_are_read_once_and_in_their_order() -> None:
    qrels = Qrels({"1": {"canoe": 0, "bees": 1}, "2": {"canoe": 1}})
    pairs = judged_pairs(QUERIES, qrels, iter([BEES, CANOE]), Intake())
    assert [(p.query_id, p.doc_id) for p in pairs] == [
        ("1", "bees"),
        ("1", "canoe"),
        ("2", "canoe"),
    ]


def test_a_collection_of_another_set_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        list(judged_pairs(QUERIES, Qrels({"1": {"d9": 1}}), [BEES], Intake()))
    assert str(caught.value) == (
        "no judged document is in the collection: expected documents like d9 "
        "(check that judgments and collection have the same document ids)"
    )


def test_queries_of_another_set_are_refused() -> None:
    with pytest.raises(InputError, match="no judgment belongs to one of these queries"):
        list(judged_pairs(QUERIES, Qrels({"3": {"bees": 1}}), [BEES], Intake()))


def test_a_judged_document_without_text_is_a_bad_record() -> None:
    qrels = Qrels({"1": {"empty": 0, "bees": 1}})
    documents = [Document("empty", {"text": " "}), BEES]
    with pytest.raises(InputError, match="document empty: text is empty"):
        list(judged_pairs(QUERIES, qrels, documents, Intake()))
    intake = Intake(skip_bad=True)
    assert [p.doc_id for p in judged_pairs(QUERIES, qrels, documents, intake)] == ["bees"]
    assert len(intake.skipped) == 1


def test_segments_have_the_grade_of_their_document() -> None:
    """A document without segments is a bad record."""

    def words(document: Document) -> list[Segment]:
        return [Segment(document.doc_id, 0, 0, word) for word in document.text.split()]

    qrels = Qrels({"1": {"bees": 2, "empty": 1}, "2": {"bees": 0}})
    intake = Intake(skip_bad=True)
    pairs = judged_pairs(
        QUERIES, qrels, [BEES, Document("empty", {"title": "x"})], intake, segment_texts(words)
    )
    assert [(p.query_id, p.doc_id, p.text, p.relevance) for p in pairs] == [
        ("1", "bees", "They", 2),
        ("1", "bees", "dance.", 2),
        ("2", "bees", "They", 0),
        ("2", "bees", "dance.", 0),
    ]
    assert [str(error) for error in intake.skipped] == ["document empty: text is empty"]


def test_negatives_count_as_zero_unless_they_are_judged() -> None:
    qrels = Qrels({"1": {"a": 1, "b": 2}, "2": {"c": 1}})
    negatives = {"1": ["x", "a", "y"], "7": ["z"]}
    assert add_negatives(qrels, negatives).grades == {
        "1": {"x": 0, "a": 1, "y": 0, "b": 2},
        "2": {"c": 1},
    }
    assert qrels.grades["1"] == {"a": 1, "b": 2}
