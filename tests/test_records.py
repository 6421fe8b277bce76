"""Do records keep their guarantees, above all the tie rule?"""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.records import Document, Pair, Ranking, best_first

IDS = st.lists(st.text("abcé1", min_size=1, max_size=3), unique=True, min_size=1, max_size=12)


@given(IDS, st.data())
def test_ranking_follows_trec_evals_order(ids: list[str], data: st.DataObject) -> None:
    """Score descending, then doc_id descending by bytes, as trec_eval sorts."""
    scores = data.draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(ids), max_size=len(ids))
    )
    expected = sorted(
        zip(ids, scores, strict=True), key=lambda p: (p[1], p[0].encode()), reverse=True
    )
    assert list(Ranking.of(ids, scores)) == expected


@given(IDS)
def test_order_of_input_does_not_matter(ids: list[str]) -> None:
    """A ranking depends on the set of scored documents alone."""
    scores = [len(i) for i in ids]
    assert Ranking.of(ids, scores) == Ranking.of(ids[::-1], scores[::-1])


def test_scores_closer_than_float32_are_ties() -> None:
    """trec_eval stores scores as float32, so rankings compare float32."""
    assert Ranking.of(["a", "b"], [1.00000001, 1.0]).doc_ids == ("b", "a")


def test_depth_cuts_after_ties_are_broken() -> None:
    """The first documents under the tie rule are kept."""
    assert Ranking.of(["a", "c", "b"], [1, 1, 1], depth=2).doc_ids == ("c", "b")


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(score: float) -> None:
    """The error names the document."""
    with pytest.raises(InputError, match="score of document b is not a finite number"):
        Ranking.of(["a", "b"], [1.0, score])


def test_a_document_is_ranked_once() -> None:
    """The error names the duplicate."""
    with pytest.raises(InputError, match="document b is ranked twice"):
        Ranking.of(["a", "b", "b"], [3, 2, 1])


def test_scores_of_a_ranking_cannot_be_changed() -> None:
    """The array is read-only."""
    with pytest.raises(ValueError, match="read-only"):
        Ranking.of(["a"], [1.0]).scores[0] = 2


def test_contents_without_title_or_text() -> None:
    """A missing title leaves no empty first line."""
    assert Document("d", {"text": "x"}).contents == "x"
    assert Document("d", {"title": "t", "text": "x"}).contents == "t\nx"
    assert Document("d", {}).contents == ""


@pytest.mark.parametrize("part", ["query_id", "query", "doc_id", "text"])
def test_the_fault_of_a_pair_names_the_field(part: str) -> None:
    """Empty fields and lone surrogates are faults."""
    pair = Pair("1", "do bees dance", "bees", "They do.", 1)
    assert pair.fault == ""
    assert replace(pair, **{part: " \n"}).fault == f"{part} is empty"
    assert replace(pair, **{part: "x\ud800"}).fault.startswith(f"{part} contains a lone surrogate")


def test_a_document_from_a_dict() -> None:
    """Other values become JSON, and values of None are ignored."""
    record = {"_id": 7, "title": "Bees", "contents": "They dance.", "year": 2021, "url": None}
    assert Document.from_dict(record) == Document(
        "7", {"title": "Bees", "text": "They dance.", "year": "2021"}
    )
    assert record["_id"] == 7  # the record itself does not change


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "x"}, "no id: expected a field named id or _id"),
        ({}, "no id.*found an empty object"),
        ({"id": 1.5, "text": "x"}, "field id is not an id: expected a string or an integer"),
        ({"id": {1, 2}, "text": "x"}, "field id is not an id"),
        ({"id": "a", "url": "x"}, "document a has no text.*found url"),
        ({"id": "a", "text": "x", "tags": {"b"}}, "field tags cannot be stored as text.*found set"),
        ({"id": "a", "text": "x", 3: "y"}, "field name 3 is not a string"),
    ],
)
def test_dicts_that_are_no_documents(record: dict[str, object], message: str) -> None:
    """Each error names the field."""
    with pytest.raises(InputError, match=message):
        Document.from_dict(record)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=9), st.none() | st.integers(1, 10))
def test_best_first_is_stable(scores: list[float], count: int | None) -> None:
    """The highest scores come first; of equal ones the earlier."""
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    assert best_first(scores, count) == expected[:count]
    halves = [round(2 * score) for score in scores]
    assert best_first(np.array(halves, np.uint8), count) == expected[:count]


def test_documents_that_follow_a_ranking_have_lower_scores() -> None:
    """They keep their order; the scores of the others do not change."""
    for scores in ([3.0, -1e-9], [1e9, 1e9], []):
        ranking = Ranking.of([f"a{i}" for i in range(len(scores))], scores)
        longer = ranking.followed_by(["z", "y", "x"])
        assert longer.doc_ids == (*ranking.doc_ids, "z", "y", "x")
        assert (np.diff(longer.scores[len(scores) - 1 :]) < 0).all()
        assert longer.head(len(scores)) == ranking
        assert ranking.followed_by([]) is ranking
    above_zero = Ranking.of(["a", "b"], [0.5, 1e-6]).followed_by([str(i) for i in range(5000)])
    assert above_zero.scores.min() > 0
    assert (np.diff(above_zero.scores) < 0).all()


def test_scores_of_rankings_cannot_be_changed() -> None:
    """Nor can those of their copies, as from another process."""
    ranking = Ranking.of(["a", "b"], [0.5, 1.0])
    for same in (ranking, pickle.loads(pickle.dumps(ranking)), deepcopy(ranking)):
        assert same == ranking
        assert not same.scores.flags.writeable


def test_rankings_from_pairs() -> None:
    """They may be in any order, as pairs or as a mapping; a repeated document is an error."""
    expected = Ranking.of(["a", "b", "c"], [0.1, 0.9, 0.5])
    assert Ranking.from_pairs([("a", 0.1), ("c", 0.5), ("b", 0.9)]) == expected
    assert Ranking.from_pairs({"c": 0.5, "b": 0.9, "a": 0.1}) == expected
    scores = {"a": 0.1, "b": 0.9, "c": 0.5}
    assert Ranking.of(scores.keys(), scores.values()) == expected
    assert Ranking.from_pairs(iter([("a", 0.1), ("b", 0.9)]), depth=1).doc_ids == ("b",)
    with pytest.raises(InputError, match="ranked twice"):
        Ranking.from_pairs([("a", 1.0), ("a", 2.0)])
