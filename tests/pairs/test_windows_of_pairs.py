"""Is every word of a judged document in a pair with the document's grade?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.intake import Intake
from birchbark.pairs.judged import judged_pairs, segment_texts
from birchbark.pairs.read import read_pairs
from birchbark.pairs.write import write_pairs
from birchbark.records import Document, Qrels, Query
from birchbark.segment.sentences import sentences
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows

WORDS = st.lists(st.sampled_from(["bees", "dance.", "\n", "\t", "\n\n", "É", "U.S.", "x" * 30]))
TEXTS = WORDS.map(" ".join)
QUERIES = [Query("1", "do bees dance"), Query("2", "birch")]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("windows") / "pairs.tsv"


@pytest.mark.parametrize("segmenter", [whole, sentences, Windows(), Windows(4, 1), Windows(3, 0)])
@given(
    st.dictionaries(st.sampled_from("abc"), st.tuples(TEXTS, TEXTS), min_size=1),
    st.dictionaries(
        st.sampled_from("12"), st.dictionaries(st.sampled_from("abcd"), st.integers(-1, 3))
    ),
)
def test_every_word_is_in_a_pair_with_the_grade(path, segmenter, texts, grades) -> None:  # type: ignore[no-untyped-def]
    """This also holds after writing and reading, with any segmenter."""
    documents = {
        d: Document(d, {"title": title, "text": f"{text} end"})
        for d, (title, text) in texts.items()
    }
    judged = {"1": {**grades.get("1", {}), next(iter(documents)): 1}, "2": grades.get("2", {})}
    pairs = judged_pairs(
        QUERIES, Qrels(judged), documents.values(), Intake(), segment_texts(segmenter)
    )
    write_pairs(pairs, path, Intake())
    read = list(read_pairs(path, Intake(), highest=3))
    for query_id, of_query in judged.items():
        for doc_id, document in documents.items():
            of_document = [p for p in read if (p.query_id, p.doc_id) == (query_id, doc_id)]
            if doc_id not in of_query:
                assert not of_document
                continue
            words = {word for pair in of_document for word in pair.text.split()}
            assert words == set(document.contents.split())
            assert {pair.relevance for pair in of_document} == {max(0, of_query[doc_id])}
