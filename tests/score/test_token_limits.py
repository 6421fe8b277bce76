"""Is a text cut to a number of tokens?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from birchbark.score.load_scorer import load_scorer
from birchbark.score.token_limits import cut_text

SCORER = load_scorer()


def test_a_character_may_have_more_tokens_than_the_limit() -> None:
    """Then nothing is left; the first stage still uses the query."""
    text = "한국어 검색"
    assert cut_text(SCORER, text, 1) == ("", len(SCORER.spans(text)))


@given(
    st.text()
    | st.text("한국어검색é ")
    | st.lists(st.sampled_from(["unaffable", "embeddings", "x-ray", "é"])).map(" ".join)
)
def test_a_cut_query_has_at_most_that_many_tokens(query: str) -> None:
    """It is a beginning of the query; what is cut is counted."""
    whole = len(SCORER.spans(query))
    assert cut_text(SCORER, query, None) == (query, 0)
    for limit in (1, 3, whole or 1):
        cut, lost = cut_text(SCORER, query, limit)
        assert query.startswith(cut)
        assert len(SCORER.spans(cut)) <= limit
        assert lost >= max(0, whole - limit)
        assert (lost == 0) == (whole <= limit)
