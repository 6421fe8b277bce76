"""Does an index return what was indexed, for any division into parts, and detect damage?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.part import Part
from birchbark.records import Document
from birchbark.text.analyzer import analyzer
from conftest import DOCUMENTS, WORDS

TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=9
)


@given(texts=TEXTS, part_tokens=st.sampled_from([1, 10, 1000]), forward=st.booleans())
def test_postings_match_the_texts(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], part_tokens: int, forward: bool
) -> None:
    """Frequencies, lengths and term vectors equal naive counts, for any division into parts."""
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    directory = tmp_path_factory.mktemp("law") / "i"
    schema = Schema(forward=forward)
    index = build_index(documents, directory, schema, part_tokens=part_tokens)
    counts = [Counter(analyzer("english").terms(text)) for text in texts]
    for document, count in zip(documents, counts, strict=True):
        part, number = index.locate(document.doc_id)
        field = index.parts[part].fields[0]
        assert index.term_vectors([document.doc_id], "contents") == [count]
        assert field.lengths[number] == sum(count.values())
        for term, tf in count.items():
            postings = field.postings(term)
            assert postings is not None
            assert postings.tfs[postings.docs.tolist().index(number)] == tf
    terms = set().union(*counts)
    frequencies = index.document_frequencies([*terms, "zeppelin"], "contents")
    assert frequencies == {term: sum(term in c for c in counts) for term in terms}
    assert index.totals("contents").tokens == sum(sum(c.values()) for c in counts)
    assert index.totals("contents").documents == sum(bool(c) for c in counts)
    assert [d.doc_id for d in index] == [d.doc_id for d in documents]


def test_documents_are_returned_in_the_requested_order(index: Index) -> None:
    """Every field is returned unchanged."""
    wanted = [DOCUMENTS[3], DOCUMENTS[0], DOCUMENTS[4]]
    assert index.documents([d.doc_id for d in wanted]) == wanted


def test_documents_without_terms_are_stored(tmp_path: Path) -> None:
    """They have no postings, and do not count in the average length."""
    index = build_index(
        [Document("a", {"text": ""}), Document("b", {"text": "the"})], tmp_path / "i"
    )
    assert len(index) == 2
    assert index.totals("contents").documents == 0


def test_fields_are_indexed_separately(tmp_path: Path) -> None:
    """Each indexed field joins its document fields."""
    fields = {"title": ["title"], "all": ["title", "text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    assert index.fields == ("title", "all")
    assert index.document_frequencies(["river"], "title") == {}
    assert index.document_frequencies(["river"], "all") == {"river": 3}
    assert index.document_frequencies(iter(["river"]), "all") == {"river": 3}
    with pytest.raises(InputError, match="the terms are not a list"):
        index.document_frequencies("river", "all")
    with pytest.raises(InputError, match=r"no field 'body' to search.*title, all"):
        index.totals("body")


def test_an_unknown_document_is_reported(index: Index) -> None:
    """The error suggests the most likely reason."""
    with pytest.raises(InputError, match=r"no document nessie.*another collection"):
        index.documents(["canoe", "nessie"])


def test_an_index_that_is_replaced_while_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is the new one, whose parts have the names of the old ones."""
    build_index([Document("old", {"text": "one birch"})], tmp_path / "i")
    new = build_index([Document("new", {"text": "an iron bridge"})], tmp_path / "new")
    replacing = iter([True])

    def open_part(*arguments: Any) -> Part:
        if next(replacing, False):
            (tmp_path / "i").rename(tmp_path / "old")
            (tmp_path / "new").rename(tmp_path / "i")
        return Part(*arguments)

    monkeypatch.setattr("birchbark.index.index.Part", open_part)
    opened = Index(tmp_path / "i")
    assert opened.fingerprint == new.fingerprint
    assert [document.doc_id for document in opened] == ["new"]
    assert not opened.outdated
