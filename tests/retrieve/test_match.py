"""Which documents match a query?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, match_ratio, matching_ids, rank_query
from birchbark.retrieve.match import ALL, AND, OR, Match, parse_match
from birchbark.retrieve.rm3 import RM3
from conftest import DOCUMENTS


def test_and_requires_all_terms(index: Index) -> None:
    """The scores are those of OR."""
    either = dict(rank_query(index, "birch river"))
    both = dict(rank_query(index, "birch river", FirstStage(match=AND)))
    assert set(both) == {"canoe", "forest"}
    assert both == {doc_id: either[doc_id] for doc_id in both}


def test_and_with_an_unknown_term_matches_nothing(index: Index) -> None:
    """No document contains all of the terms."""
    assert len(rank_query(index, "birch zeppelin", FirstStage(match=AND))) == 0


def test_matches_count_terms_in_all_fields(tmp_path: Path) -> None:
    """A term in the title and another in the text count as two, one in both as one."""
    fields = {"title": ["title"], "text": ["text"]}
    index = build_index(DOCUMENTS, tmp_path / "i", Schema(fields=fields))
    both = {"title": 1.0, "text": 1.0}

    def matches(query: str, match: Match) -> set[str]:
        return set(rank_query(index, query, FirstStage(fields=both, match=match)).doc_ids)

    assert matches("birch bark stands", Match(2)) == {"canoe", "forest"}
    assert matches("birch bark stands", Match(3)) == set()
    assert matches("forest tree", AND) == {"forest"}
    assert matches("birch", Match(2)) == set()
    assert matches("zeppelin", ALL) == {d.doc_id for d in DOCUMENTS}
    assert matches("zeppelin", OR) == set()
    assert matches("", ALL) == {d.doc_id for d in DOCUMENTS}
    assert matches("", AND) == set()


def test_match_ratio_is_the_share_of_candidates(index: Index) -> None:
    """It is relative to all documents and does not depend on the depth."""
    assert match_ratio(index, "river") == 3 / 5
    assert match_ratio(index, "birch river", FirstStage(match=AND)) == 2 / 5
    assert match_ratio(index, "", FirstStage(match=ALL)) == 1


def test_matches_are_parsed() -> None:
    """The names are those of the command line."""
    assert [parse_match(t) for t in ("or", "and", "all", "2")] == [OR, AND, ALL, Match(2)]
    for bad in ("", "any", "-1", "1.5"):
        with pytest.raises(InputError, match="unknown match"):
            parse_match(bad)


@pytest.fixture
def bees(tmp_path: Path) -> Index:
    texts = {"a": "bee honey", "b": "bee", "c": "honey", "d": "canoe"}
    documents = [Document(d, {"text": text, "kind": d}) for d, text in texts.items()]
    schema = Schema("plain", keywords=["kind"])
    return build_index(documents, tmp_path / "bees", schema, part_tokens=1)


def test_terms_of_an_expansion_need_not_match(bees: Index) -> None:
    """Only under OR are they terms that make a document a candidate."""
    model = RM3(documents=2, max_df_share=1.0)  # adds honey, from a
    for match, expected in ((OR, "abc"), (AND, "ab"), (Match(2), ""), (ALL, "abcd")):
        ranking = rank_query(bees, "bee", FirstStage(match=match, expansion=model))
        assert sorted(ranking.doc_ids) == list(expected)


def test_terms_without_weight_need_not_match(bees: Index) -> None:
    """They make no document a candidate, and none that lacks them is left out."""
    weights = {"bee": 0.0, "honey": 1.0}
    for match in (OR, AND):
        stage = FirstStage(match=match)
        assert set(rank_query(bees, weights, stage).doc_ids) == {"a", "c"}
        assert matching_ids(bees, weights, stage) == {"a", "c"}
        assert match_ratio(bees, weights, stage) == 2 / 4


def test_documents_that_match_meet_the_filters(bees: Index) -> None:
    """They are from all parts of the index; the share is still one of all documents."""
    stage = FirstStage(filters={"kind": "a|c|d"})
    assert matching_ids(bees, "bee honey", stage) == {"a", "c"}
    assert match_ratio(bees, "bee honey", stage) == 2 / 4
