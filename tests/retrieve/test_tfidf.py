"""Does the vector space model compute the cosine?"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.statistics import Statistics
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, rank_queries, rank_query
from birchbark.retrieve.tfidf import TfIdf
from birchbark.text.analyzer import analyzer
from conftest import DOCUMENTS, WORDS

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=9)


def naive_cosines(texts: list[str], query: str) -> dict[str, float]:
    """Compute equation 2.1 with dense vectors."""
    terms = analyzer("english").terms
    docs = [terms(text) for text in texts]
    nonempty = sum(bool(d) for d in docs)
    vocabulary = sorted({t for d in docs for t in d})
    idf = [math.log(nonempty / sum(t in d for d in docs)) for t in vocabulary]

    def vector(words: list[str]) -> list[float]:
        return [words.count(t) * i for t, i in zip(vocabulary, idf, strict=True)]

    query_vector = vector(terms(query))
    cosines = {}
    for n, doc in enumerate(docs):
        if set(doc) & set(terms(query)):
            v = vector(doc)
            product = sum(a * b for a, b in zip(query_vector, v, strict=True))
            size = math.hypot(*query_vector) * math.hypot(*v)
            cosines[f"d{n}"] = product / size if size else 0.0
    return cosines


@given(texts=TEXTS, query=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
def test_scores_are_cosines(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str
) -> None:
    """They are in [0, 1], and equal to the last bit for any division of the index."""
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    where = tmp_path_factory.mktemp("tfidf")
    stage = FirstStage(TfIdf())
    single = rank_query(build_index(documents, where / "1"), query, stage)
    assert single == rank_query(build_index(documents, where / "2", part_tokens=1), query, stage)
    assert dict(single) == pytest.approx(naive_cosines(texts, query), abs=1e-6)
    assert all(0 <= score <= 1 + 1e-6 for _, score in single)


def test_a_document_is_most_similar_to_itself(index: Index) -> None:
    """Its cosine is 1."""
    best = rank_query(index, DOCUMENTS[1].contents, FirstStage(TfIdf()))
    assert best.doc_ids[0] == "bees"
    assert best.scores[0] == pytest.approx(1)


def test_statistics_follow_the_index(tmp_path: Path) -> None:
    """Statistics cached for one snapshot are not used for the next."""
    index = build_index(DOCUMENTS, tmp_path / "i")
    before = rank_queries(index, [], FirstStage(TfIdf()))
    assert before.tag == "tfidf"
    old = rank_query(index, "birch bark", FirstStage(TfIdf()))
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("forest")
    changed = rank_query(Index(tmp_path / "i"), "birch bark", FirstStage(TfIdf()))
    remaining = [d for d in DOCUMENTS if d.doc_id != "forest"]
    fresh = rank_query(build_index(remaining, tmp_path / "j"), "birch bark", FirstStage(TfIdf()))
    assert changed == fresh != old


def test_the_query_is_a_unit_vector() -> None:
    """A term in no document and one in all have no weight; limits are those of a cosine."""
    statistics = Statistics(FieldTotals(8, 99), 10, {"bee": 1, "tree": 4, "the": 8})
    weights = {"bee": 1.0, "tree": 3.0, "the": 5.0, "zeppelin": 7.0}
    scoring = TfIdf().scoring(weights, statistics)
    bee, tree = math.log(8), 3 * math.log(2)  # of the same length
    unit = {"bee": math.sqrt(0.5), "tree": math.sqrt(0.5), "the": 0, "zeppelin": 0}
    assert bee == pytest.approx(tree)
    assert scoring.limits == pytest.approx(unit)
    assert scoring.weights == pytest.approx(
        {**unit, "bee": unit["bee"] * math.log(8), "tree": unit["tree"] * math.log(2)}
    )
    assert (scoring.saturation, scoring.floor, scoring.slope) == (0, 0, 0)
    assert TfIdf().scoring({"the": 1.0}, statistics).weights == {"the": 0}
