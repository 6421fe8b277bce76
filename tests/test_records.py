"""Do the nouns keep their promises, the tie rule first?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.errors import InputError
from birchbark.records import Document, Pair, Ranking

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
    """A ranking is a function of the set of scored documents."""
    scores = [len(i) for i in ids]
    assert Ranking.of(ids, scores) == Ranking.of(ids[::-1], scores[::-1])


def test_scores_closer_than_float32_are_ties() -> None:
    """trec_eval holds scores as float32, so we rank by float32."""
    assert Ranking.of(["a", "b"], [1.00000001, 1.0]).doc_ids == ("b", "a")


def test_depth_cuts_after_ties_are_broken() -> None:
    """The cut keeps what the tie rule puts first."""
    assert Ranking.of(["a", "c", "b"], [1, 1, 1], depth=2).doc_ids == ("c", "b")


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(score: float) -> None:
    """A score that is no number cannot be ranked, and the document is named."""
    with pytest.raises(InputError, match="score of document b is not a finite number"):
        Ranking.of(["a", "b"], [1.0, score])


def test_a_document_is_ranked_once() -> None:
    """Duplicates are refused and named."""
    with pytest.raises(InputError, match="document b is ranked twice"):
        Ranking.of(["a", "b", "b"], [3, 2, 1])


def test_scores_of_a_ranking_cannot_be_changed() -> None:
    """Frozen means frozen."""
    with pytest.raises(ValueError, match="read-only"):
        Ranking.of(["a"], [1.0]).scores[0] = 2


def test_contents_leave_out_what_is_missing() -> None:
    """No empty first line where there is no title."""
    assert Document("d", {"text": "x"}).contents == "x"
    assert Document("d", {"title": "t", "text": "x"}).contents == "t\nx"
    assert Document("d", {}).contents == ""


@pytest.mark.parametrize("part", ["query_id", "query", "doc_id", "text"])
def test_a_pair_has_ids_and_texts_of_whole_characters(part: str) -> None:
    """What is wrong with it is told by name."""
    pair = Pair("1", "do bees dance", "bees", "They do.", 1)
    assert pair.fault == ""
    assert replace(pair, **{part: " \n"}).fault == f"{part} is empty"
    assert replace(pair, **{part: "x\ud800"}).fault.startswith(f"{part} holds half a character")
